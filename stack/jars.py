"""The Java parts of the stack: fetched from Maven Central as jars.lock says, each checked by its checksum."""

import argparse
import hashlib
import os
import shutil
import sys
import tomllib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import requests
from jgo.maven import Artifact, MavenContext

from stack import stamps
from stack.errors import StackError, from_os_error
from stack.settings import JARS

HERE = Path(__file__).parent
LOCK = HERE / "jars.lock"
ROOTS = HERE / "jars.toml"
_AT_ONCE = 8
_PATIENCE = 120


@dataclass(frozen=True, order=True)
class Jar:
    """One jar by its Maven coordinate, the part of the stack it serves, and its checksum."""

    part: str
    coordinate: str
    sha256: str

    @property
    def filename(self) -> str:
        """The name Maven gives the file: artifact-version[-classifier].jar."""
        return "-".join(self.coordinate.split(":")[1:]) + ".jar"


def parse_lock(text: str) -> list[Jar]:
    """Read a lock: [part] lines, each followed by `group:artifact:version[:classifier] sha256` lines."""
    part, jars = "", []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        words = line.split()
        if line.startswith("[") and line.endswith("]"):
            part = line[1:-1]
        elif part and len(words) == 2 and words[0].count(":") in (2, 3) and len(words[1]) == 64:
            jars.append(Jar(part, *words))
        else:
            raise StackError(
                f'jars.lock line {number}: "{line}" is not `group:artifact:version sha256`. '
                "Run: python -m stack.jars --lock"
            )
    return jars


def render_lock(jars: Iterable[Jar]) -> str:
    """Write a lock, sorted, so that a change of one jar is a change of one line."""
    lines = ["# Made from jars.toml by `python -m stack.jars --lock`; not edited by hand."]
    part = ""
    for jar in sorted(jars):
        if jar.part != part:
            part = jar.part
            lines += ["", f"[{part}]"]
        lines.append(f"{jar.coordinate} {jar.sha256}")
    return "\n".join(lines) + "\n"


def sha256_of(path: Path) -> str:
    """The checksum of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check(path: Path, jar: Jar) -> None:
    """Remove the file and fail when it is not the very jar that was locked."""
    found = sha256_of(path)
    if found != jar.sha256:
        path.unlink()
        raise StackError(
            f"{jar.coordinate}: the file from Maven Central has checksum {found}, jars.lock says {jar.sha256}. "
            "It was removed; run the command again, and do not trust the network you are on if this repeats."
        )


def fetch(jar: Jar, context: MavenContext) -> Path:
    """Bring one jar into Maven's local repository and check it there."""
    artifact = _artifact(jar.coordinate, context)
    known = artifact.cached_path
    if known is not None and known.exists() and sha256_of(known) != jar.sha256:
        known.unlink()  # half a download of an interrupted run: Maven's tools take any file that is there
    path = _download(artifact, jar.coordinate)
    check(path, jar)
    return path


def place(source: Path, target: Path) -> None:
    """Put a jar into the stack's folder, as a hard link where the file system can."""
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    try:
        os.link(source, draft)
    except OSError:
        shutil.copyfile(source, draft)
    draft.replace(target)


def install(jars: Iterable[Jar], folder: Path) -> Iterator[Jar]:
    """Fetch all jars side by side, yield each as it lands, and drop what no longer belongs."""
    wanted = {folder / jar.part / jar.filename: jar for jar in jars}
    for stale in set(folder.glob("*/*.jar")) - set(wanted):
        stale.unlink()
    context = MavenContext(timeout=_PATIENCE)

    def settle(target: Path, jar: Jar) -> Jar:
        if not (target.exists() and sha256_of(target) == jar.sha256):
            place(fetch(jar, context), target)
        return jar

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        landed = [pool.submit(settle, target, jar) for target, jar in wanted.items()]
        try:
            for done in as_completed(landed):
                yield done.result()
        finally:
            pool.shutdown(cancel_futures=True)


def lock(roots: Path = ROOTS) -> str:
    """Resolve a list of roots anew; needs the network and trusts what Maven Central serves today."""
    context = MavenContext(timeout=_PATIENCE)
    jars: list[Jar] = []
    for part, wish in tomllib.loads(roots.read_text()).items():
        for coordinate in _resolve(wish, context):
            path = _download(_artifact(coordinate, context), coordinate)
            jars.append(Jar(part, coordinate, sha256_of(path)))
    return render_lock(jars)


def _resolve(wish: dict[str, list[str]], context: MavenContext) -> list[str]:
    """List the coordinates of the roots, what they depend on, and the jars that stand alone."""
    found: list[str] = []
    if wish["roots"]:
        roots = [context.create_dependency(root) for root in wish["roots"]]
        inputs, behind = context.resolver.resolve(roots, transitive=True)
        needed = [dependency for dependency in [*inputs, *behind] if dependency.scope in ("compile", "runtime", None)]
        found = [f"{needed_one.groupId}:{needed_one.artifactId}:{needed_one.version}" for needed_one in needed]
    replaced = {_project(coordinate) for coordinate in wish["alone"]}
    chosen = {coordinate for coordinate in found if _project(coordinate) not in replaced} | set(wish["alone"])
    return sorted(coordinate for coordinate in chosen if _kept(coordinate, wish.get("keep")))


def _kept(coordinate: str, keep: list[str] | None) -> bool:
    """`artifact` keeps any version, `artifact:3` those of major version 3."""
    _, artifact, version = coordinate.split(":")[:3]
    return keep is None or artifact in keep or f"{artifact}:{version.split('.')[0]}" in keep


def _project(coordinate: str) -> str:
    return ":".join(coordinate.split(":")[:2])


def _artifact(coordinate: str, context: MavenContext) -> Artifact:
    group, artifact, version, *classifier = coordinate.split(":")
    return context.project(group, artifact).at_version(version).artifact(*classifier)


def _download(artifact: Artifact, coordinate: str) -> Path:
    try:
        return Path(artifact.resolve())
    except requests.RequestException as error:
        reason = f"{type(error).__name__}, so Maven Central could not be reached"
        raise StackError(f"{coordinate}: {reason}. Check the network, then run the command again.") from error
    except RuntimeError as error:  # jgo's word for "not there"
        raise StackError(f"{coordinate} is not on Maven Central. Correct it in stack/jars.toml.") from error


def main(arguments: list[str]) -> int:
    """Fetch the locked jars, or with --lock make the lock anew."""
    parser = argparse.ArgumentParser(prog="python -m stack.jars", description=__doc__)
    parser.add_argument("--lock", action="store_true", help="resolve jars.toml into jars.lock (for maintainers)")
    if parser.parse_args(arguments).lock:
        stamps.write(LOCK, lock())
        return 0
    jars = parse_lock(LOCK.read_text())
    for count, jar in enumerate(install(jars, JARS), start=1):
        if count % 10 == 0 or count == len(jars):
            print(f"         {count:3} of {len(jars)} jars, {jar.filename}", flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except StackError as error:
        sys.exit(str(error))
    except OSError as error:
        sys.exit(str(from_os_error(error)))
