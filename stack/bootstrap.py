"""Setting up a fresh machine: .venv, Java, jars and Postgres, each step only when its inputs have changed.

Runs before .venv exists, so it uses the standard library only, and syntax that an old Python can still read, because
such a Python must be told that it is too old.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

from stack import java, postgres_programs, stamps
from stack.errors import StackError, from_os_error

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
UV = "uv==0.13.7"
_SPACE_NEEDED = 4 * 1024**3
_TAIL = 15
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_SPACE_MESSAGE = "No space left on device"


class Progress:
    """Lines about a step: what it is, what happens, and the seconds since the start."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def say(self, step: str, text: str) -> None:
        """Print one line."""
        print(f"setup {step:10} {text:60} {time.monotonic() - self._began:6.1f} s", flush=True)


def python_range(pyproject: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """Read the first Python that fits and the first that no longer does from requires-python."""
    found = re.search(r'requires-python\s*=\s*">=\s*(\d+)\.(\d+)\s*,\s*<\s*(\d+)\.(\d+)"', pyproject)
    if not found:
        raise StackError('pyproject.toml: requires-python is not of the form ">=3.11,<3.13".')
    low, low_minor, high, high_minor = (int(number) for number in found.groups())
    return (low, low_minor), (high, high_minor)


def choose_python(fits: tuple[tuple[int, int], tuple[int, int]]) -> str:
    """This Python when it fits, else another that is on the PATH."""
    oldest, too_new = fits
    if oldest <= sys.version_info[:2] < too_new:
        return sys.executable
    for minor in range(too_new[1] - 1, oldest[1] - 1, -1):
        other = shutil.which(f"python3.{minor}")
        if other and subprocess.run([other, "-c", ""], capture_output=True, check=False).returncode == 0:
            return other
    raise StackError(
        f"Python {oldest[0]}.{oldest[1]} or newer and older than {too_new[0]}.{too_new[1]} is needed, but "
        f"{sys.executable} is {platform.python_version()}. Install one, for example: "
        f"sudo apt-get install python3.{oldest[1]} python3.{oldest[1]}-venv"
    )


def run(command: list[str], *, what: str) -> None:
    """Run a command quietly; when it fails, show what it said last."""
    try:
        done = subprocess.run(
            command,
            cwd=str(ROOT),
            env=_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    except OSError as error:
        raise StackError(f"{what}: {command[0]} cannot be run ({error.strerror}).") from error
    if done.returncode != 0:
        if _SPACE_MESSAGE in done.stdout:
            raise StackError(f"{what}: no disk space left at {ROOT}. Free some space, then run make setup again.")
        said = "\n".join(f"    {line}" for line in done.stdout.splitlines()[-_TAIL:])
        raise StackError(f"{what} failed with exit code {done.returncode}. Then run make setup again. It said:", said)


def install_packages(progress: Progress) -> None:
    """Make .venv and install what requirements.txt locks, with uv where possible because it is many times faster."""
    requirements = ROOT / "requirements.txt"
    if not requirements.is_file():
        raise StackError(f"{requirements} is missing. Restore it with git, or make it with: make lock")
    python = choose_python(python_range((ROOT / "pyproject.toml").read_text()))
    stamp = VENV / ".headrace-packages"
    inputs = stamps.digest(files=[requirements], words=[_version(python)])
    if stamps.is_current(stamp, inputs) and PYTHON.exists():
        return
    _check_space()
    uv = shutil.which("uv")
    _make_venv(python, uv=uv)
    progress.say("packages", "downloading and installing; this takes a minute or two")
    how = _install(requirements, uv=uv)
    stamps.write(stamp, inputs)
    progress.say("packages", f"installed with {how}")


def _make_venv(python: str, *, uv: str | None) -> None:
    if PYTHON.exists() and _version(str(PYTHON)) == _version(python):
        return
    if uv:
        run([uv, "venv", "--clear", "--python", python, str(VENV)], what="Making .venv")
        return
    if subprocess.run([python, "-c", "import ensurepip"], capture_output=True, check=False).returncode != 0:
        # Debian keeps this module of Python in a package of its own.
        if not _can_apt():
            raise StackError(f"{python} cannot make virtual environments. Type: sudo apt-get install python3-venv")
        _apt("python3-venv")
    run([python, "-m", "venv", "--clear", str(VENV)], what="Making .venv")


def _install(requirements: Path, *, uv: str | None) -> str:
    """Install with the machine's uv, else with one put into .venv, else with pip; say which it was."""
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if uv is None:
        run([str(PYTHON), "-m", "ensurepip"], what="Installing pip")
        try:
            run([*pip, UV], what="Installing uv")
            uv = str(VENV / "bin" / "uv")
        except StackError:
            uv = None
    if uv:
        try:
            base = [uv, "pip", "install", "--quiet", "--python", str(PYTHON)]
            run([*base, "--compile-bytecode", "-r", str(requirements)], what="Installing the packages")
            return "uv"
        except StackError as error:
            # A machine whose index only pip is configured for; a full disk will not be helped by it.
            if "no disk space" in str(error):
                raise
    run([*pip, "-r", str(requirements)], what="Installing the packages")
    return "pip"


def install_headrace(progress: Progress) -> None:
    """Install this repository's own package, so that an edit is at work at once."""
    stamp = VENV / ".headrace-package"
    inputs = stamps.digest(files=[ROOT / "pyproject.toml"], words=[str(ROOT)])
    if stamps.is_current(stamp, inputs):
        return
    uv = shutil.which("uv") or str(VENV / "bin" / "uv")
    options = ["--quiet", "--no-deps", "-e", str(ROOT)]
    if Path(uv).exists():
        run([uv, "pip", "install", "--python", str(PYTHON), *options], what="Installing headrace")
    else:
        run([str(PYTHON), "-m", "pip", "install", *options], what="Installing headrace")
    stamps.write(stamp, inputs)
    progress.say("headrace", "installed into .venv")


def connect_terminal(progress: Progress) -> None:
    """Let every Python of .venv know the running stack: see terminal.py."""
    folders = list(VENV.glob("lib/python3*/site-packages"))
    loader = (ROOT / "stack" / "terminal.py").read_text()
    for folder in folders:
        module, hook = folder / "headrace_stack.py", folder / "headrace_stack.pth"
        if not (stamps.is_current(module, loader) and hook.is_file()):
            stamps.write(module, loader)
            stamps.write(hook, "import headrace_stack; headrace_stack.load()\n")
            progress.say("terminal", "airflow and headrace will talk to the stack")


def check_java(progress: Progress) -> None:
    """Find Java, or install it where that is possible."""
    if java.find(os.environ) is None:
        if not _can_apt():
            raise StackError(java.complaint(os.environ))
        progress.say("java", f"{java.INSTALL}")
        _apt(java.INSTALL.split()[-1])
        if java.find(os.environ) is None:
            raise StackError(java.complaint(os.environ))
        progress.say("java", "installed")


def fetch_jars(progress: Progress) -> None:
    """Fetch the Java parts that jars.lock names."""
    lock = ROOT / "stack" / "jars.lock"
    stamp = ROOT / ".headrace" / "jars" / "stamp"
    inputs = stamps.digest(files=[lock])
    if stamps.is_current(stamp, inputs):
        return
    progress.say("jars", "downloading Kafka, S3Proxy and Spark's extensions")
    command = [str(PYTHON), "-m", "stack.jars"]
    done = subprocess.run(command, cwd=str(ROOT), env=_environment(), stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise StackError(done.stderr.strip())
    stamps.write(stamp, inputs)
    progress.say("jars", "downloaded and checked")


def check_postgres(progress: Progress) -> None:
    """Make sure that there are Postgres programs."""
    if postgres_programs.find(VENV) is None:
        raise StackError(
            f"Postgres {postgres_programs.OLDEST} or newer was not found on this machine or in .venv. "
            "Type: sudo apt-get install postgresql"
        )


def check_browser(progress: Progress) -> None:
    """Find a browser for the tests of the UI, or install one where that is possible."""
    if any(shutil.which(name) for name in _BROWSERS):
        return
    if not _can_apt():
        raise StackError("The tests of the UI need a browser, but none was found. Type: sudo apt-get install chromium")
    progress.say("browser", "apt-get install chromium")
    _apt("chromium")
    progress.say("browser", "installed")


def _can_apt() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def _apt(package: str) -> None:
    run(["apt-get", "update", "-qq"], what="apt-get update")
    run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", package], what=f"apt-get install {package}")


def _check_space() -> None:
    free = shutil.disk_usage(str(ROOT)).free
    if free < _SPACE_NEEDED:
        raise StackError(
            f"Setting up needs {_SPACE_NEEDED // 1024**3} GB of disk, but only {free / 1024**3:.1f} GB are free at "
            f"{ROOT}. Free some space, then run make setup again."
        )


def _version(python: str) -> str:
    """What a Python says its version is; nothing when it does not run."""
    try:
        return subprocess.run([python, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def _environment() -> dict[str, str]:
    """The environment without what would make every later Python start compile all modules again."""
    kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV")}
    return {**kept, "DEBIAN_FRONTEND": "noninteractive"}


def main(arguments: list[str]) -> int:
    """Run all steps; with --tests also those that only tests need."""
    parser = argparse.ArgumentParser(
        prog="python3 -m stack.bootstrap", description="Set up .venv, Java, jars and Postgres."
    )
    parser.add_argument("--tests", action="store_true", help="also what the tests need: a browser")
    options = parser.parse_args(arguments)
    progress = Progress()
    check_java(progress)
    install_packages(progress)
    install_headrace(progress)
    connect_terminal(progress)
    fetch_jars(progress)
    check_postgres(progress)
    if options.tests:
        check_browser(progress)
    progress.say("done", "everything is in place")
    return 0


def stop(message: str, *, code: int = 1) -> NoReturn:
    """End with a line for people."""
    print(message, file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    # As for Ctrl-C: the command that runs is then ended too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main(sys.argv[1:]))
    except StackError as error:
        stop(str(error))
    except OSError as error:
        stop(str(from_os_error(error)))
    except KeyboardInterrupt:
        stop("Interrupted. Run make setup again: it goes on where it was.", code=130)
