"""What the stack makes of the machine it finds: Java, Python, Postgres, disks and permissions."""

import errno
import stat
import sys
from pathlib import Path

import pytest

from stack import bootstrap, errors, java, postgres_programs, stamps
from stack.errors import StackError


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "22-ea" 2024-03-19', 22),
        ("java: not found", None),
    ],
)
def test_the_major_version_is_read_from_what_java_says(said: str, version: int | None) -> None:
    assert java.parse_version(said) == version


def fake_java(folder: Path, version: str) -> Path:
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    command.chmod(command.stat().st_mode | stat.S_IEXEC)
    return command


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    home, on_path = fake_java(tmp_path / "home", "21.0.1"), fake_java(tmp_path / "path", "17.0.1")
    assert java.find({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)}) == home


def test_an_old_java_is_passed_over_for_a_newer_one(tmp_path: Path) -> None:
    fake_java(tmp_path / "home", "11.0.2")
    newer = fake_java(tmp_path / "path", "17.0.1")
    assert java.find({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(newer.parent)}) == newer


def test_only_an_old_java_is_one_line_that_says_what_to_type(tmp_path: Path) -> None:
    old = fake_java(tmp_path, "11.0.2")
    around = {"PATH": str(old.parent)}
    assert java.find(around) is None
    assert java.complaint(around) == (
        f"Java 17 or newer is needed, but {old} is version 11, which is too old. "
        "Type: sudo apt-get install openjdk-17-jre-headless"
    )


def test_no_java_is_one_line_that_says_what_to_type(tmp_path: Path) -> None:
    assert "no java command was found in JAVA_HOME or PATH" in java.complaint({"PATH": str(tmp_path)})


def test_the_pythons_that_fit_are_read_from_pyproject() -> None:
    assert bootstrap.python_range('requires-python = ">=3.11,<3.13"') == ((3, 11), (3, 13))


def test_this_python_is_taken_when_it_fits() -> None:
    here = sys.version_info[:2]
    assert bootstrap.choose_python((here, (here[0], here[1] + 1))) == sys.executable


def test_no_python_that_fits_is_one_line_that_says_what_to_type() -> None:
    with pytest.raises(StackError, match=r"Python 3\.90 or newer and older than 3\.91 is needed"):
        bootstrap.choose_python(((3, 90), (3, 91)))


def test_the_version_of_postgres_is_read_from_what_it_says() -> None:
    assert postgres_programs.parse_version("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)") == 15
    assert postgres_programs.parse_version("postgres (PostgreSQL) 18.1") == 18
    assert postgres_programs.parse_version("nonsense") is None


@pytest.mark.parametrize(
    ("number", "line"),
    [
        (errno.ENOSPC, "No disk space left while writing /some/file"),
        (errno.EACCES, "No permission to write /some/file"),
        (errno.EROFS, "No permission to write /some/file"),
    ],
)
def test_a_disk_that_does_not_take_it_is_one_line(number: int, line: str) -> None:
    message = str(errors.from_os_error(OSError(number, "said the system", "/some/file")))
    assert message.startswith(line)
    assert "\n" not in message


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    stamps.write(path, "old")
    with pytest.raises(UnicodeEncodeError):
        stamps.write(path, "new \udcff")
    assert path.read_text() == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["kept"]


def test_a_stamp_is_current_only_for_the_same_inputs(tmp_path: Path) -> None:
    source, stamp = tmp_path / "source", tmp_path / "stamp"
    source.write_text("one")
    stamps.write(stamp, stamps.digest(files=[source]))
    assert stamps.is_current(stamp, stamps.digest(files=[source]))
    source.write_text("two")
    assert not stamps.is_current(stamp, stamps.digest(files=[source]))
