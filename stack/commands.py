"""Running a step's command to its end, with its output in a log."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from stack.errors import StackError

TAIL = 20
_END_SECONDS = 10
_FULL = "No space left on device"


def tail(log: Path, lines: int = TAIL) -> str:
    """The last lines of a log."""
    if not log.is_file():
        return f"    ({log} is empty)"
    kept = log.read_text(errors="replace").splitlines()[-lines:]
    return "\n".join(f"    {line}" for line in kept)


def failure(what: str, *, log: Path, advice: str = "") -> StackError:
    """The error of something that failed: with the end of its log, or in one line when the disk is simply full."""
    end = tail(log)
    if _FULL in end:
        return StackError(f"{what}: no disk space left at {log.parent}. Free some space, then run the command again.")
    return StackError(f"{what}. The last lines of {log}:", f"{end}\n{advice}" if advice else end)


async def run(command: Sequence[object], *, log: Path, environment: Mapping[str, str], user: str | None = None) -> None:
    """Run a command to its end; when it fails, say so with the end of its log; when cancelled, end it too."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *map(str, command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=dict(environment),
            start_new_session=True,  # so that Ctrl-C reaches us alone, and we end the whole group
            user=user,
            group=user and _group_of(user),
            extra_groups=[] if user else None,
        )
    try:
        code = await process.wait()
    except asyncio.CancelledError:
        await _end(process)
        raise
    if code != 0:
        raise failure(f"{Path(str(command[0])).name} failed with exit code {code}", log=log)


def _group_of(user: str) -> int:
    import pwd

    return pwd.getpwnam(user).pw_gid


async def _end(process: asyncio.subprocess.Process) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            await asyncio.wait_for(process.wait(), _END_SECONDS)
        except ProcessLookupError:
            return
        except TimeoutError:
            continue
        else:
            return
