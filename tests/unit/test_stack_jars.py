"""jars.lock: what it says, and what happens to a file that is not what it says."""

import hashlib
from pathlib import Path

import pytest
from jgo.maven import MavenContext

from stack import jars
from stack.errors import StackError
from stack.jars import Jar

CONTENT = b"a jar"
GOOD = Jar("kafka", "org.example:tool:1.0", hashlib.sha256(CONTENT).hexdigest())


def test_the_lock_is_sorted_whole_and_reads_back_as_itself() -> None:
    text = jars.LOCK.read_text()
    locked = jars.parse_lock(text)
    assert jars.render_lock(locked) == text
    assert {jar.part for jar in locked} == {"kafka", "s3", "spark"}


def test_no_part_holds_two_files_of_the_same_name() -> None:
    places = [(jar.part, jar.filename) for jar in jars.parse_lock(jars.LOCK.read_text())]
    assert len(places) == len(set(places))


def test_a_classifier_is_part_of_the_file_name() -> None:
    assert Jar("kafka", "org.example:tool:1.0:linux", "").filename == "tool-1.0-linux.jar"


@pytest.mark.parametrize("line", ["org.example:tool:1.0", "org.example:tool 00", "org.example:tool:1.0 00ff", "word"])
def test_a_broken_line_of_the_lock_is_named(line: str) -> None:
    with pytest.raises(StackError, match=r"jars\.lock line 2"):
        jars.parse_lock(f"[kafka]\n{line}\n")


def test_a_file_with_the_wrong_checksum_is_removed_and_named(tmp_path: Path) -> None:
    path = tmp_path / GOOD.filename
    path.write_bytes(b"something else")
    with pytest.raises(StackError, match=r"org\.example:tool:1\.0: the file from Maven Central has checksum"):
        jars.check(path, GOOD)
    assert not path.exists()


@pytest.fixture
def repository(tmp_path: Path) -> MavenContext:
    """A Maven repository on disk and an empty local one, without a network."""
    folder = tmp_path / "repository" / "org" / "example" / "tool" / "1.0"
    folder.mkdir(parents=True)
    (folder / GOOD.filename).write_bytes(CONTENT)
    return MavenContext(
        repo_cache=tmp_path / "m2", local_repos=[tmp_path / "repository"], remote_repos={}, offline=True
    )


def test_half_a_download_in_the_local_repository_is_fetched_again(tmp_path: Path, repository: MavenContext) -> None:
    half = tmp_path / "m2" / "org" / "example" / "tool" / "1.0" / GOOD.filename
    half.parent.mkdir(parents=True)
    half.write_bytes(CONTENT[:2])
    assert jars.fetch(GOOD, repository).read_bytes() == CONTENT


def test_a_jar_that_is_nowhere_is_named(repository: MavenContext) -> None:
    with pytest.raises(StackError, match=r"org\.example:other:1\.0 is not on Maven Central"):
        jars.fetch(Jar("kafka", "org.example:other:1.0", GOOD.sha256), repository)


def test_placing_a_jar_replaces_the_one_before(tmp_path: Path) -> None:
    source, target = tmp_path / "source.jar", tmp_path / "jars" / "target.jar"
    source.write_bytes(CONTENT)
    target.parent.mkdir()
    target.write_bytes(b"old")
    jars.place(source, target)
    assert target.read_bytes() == CONTENT
    assert [path.name for path in target.parent.iterdir()] == ["target.jar"]
