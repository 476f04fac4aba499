"""Finding a Java that Spark and Kafka run on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

OLDEST = 17
INSTALL = "apt-get install openjdk-17-jre-headless"


def parse_version(text: str) -> int | None:
    """Read the major version from what `java -version` prints: 17 from "17.0.15", 8 from "1.8.0_392"."""
    found = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if not found:
        return None
    major, minor = found.groups()
    return int(minor) if major == "1" and minor else int(major)


def candidates(environment: Mapping[str, str]) -> list[Path]:
    """List the java commands to try, JAVA_HOME's before PATH's."""
    home = environment.get("JAVA_HOME")
    on_path = shutil.which("java", path=environment.get("PATH"))
    found = [Path(home, "bin", "java")] if home else []
    return list(dict.fromkeys(found + ([Path(on_path)] if on_path else [])))


def version_of(java: Path) -> int | None:
    """Ask a java command for its major version; None when it does not run."""
    try:
        answer = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_version(answer.stderr + answer.stdout)


def find(environment: Mapping[str, str]) -> Path | None:
    """Find the first java that is new enough."""
    fit = (java for java in candidates(environment) if (version_of(java) or 0) >= OLDEST)
    return next(fit, None)


def complaint(environment: Mapping[str, str]) -> str:
    """Say in one line what is wrong with this machine's Java and what to type."""
    seen = [f"{java} is version {version_of(java) or 'unknown'}" for java in candidates(environment)]
    state = f"{', '.join(seen)}, which is too old" if seen else "no java command was found in JAVA_HOME or PATH"
    return f"Java {OLDEST} or newer is needed, but {state}. Type: sudo {INSTALL}"


def home_of(java: Path) -> Path:
    """The JAVA_HOME a java command belongs to."""
    return Path(os.path.realpath(java)).parent.parent
