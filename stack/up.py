"""Starting a stack: each part when what it needs answers, all that can at once."""

import asyncio
import shutil
import signal
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import TypeVar

from stack import commands, environment, java, passwords, processes, signals, stamps, supervision
from stack import settings as choices
from stack.down import down, stop_parts
from stack.errors import StackError
from stack.parts import programs
from stack.parts.part import NotReady, Part, Stack
from stack.settings import Settings
from stack.supervision import Supervisor

_BETWEEN_QUESTIONS = 0.2
_SPACE_NEEDED = 500 * 2**20
Say = Callable[[str], None]
T = TypeVar("T")


class Ascent:
    """One `up`: what it found running, what it started, and how long that took."""

    def __init__(self, stack: Stack, say: Say) -> None:
        self.stack = stack
        self.say = say
        self.supervisor = Supervisor(stack.settings)
        self.started: list[str] = []
        self.trouble: StackError | None = None
        self.began = time.monotonic()

    def report(self, name: str, text: str) -> None:
        """One line of progress."""
        self.say(f"{name:18} {text:28} {time.monotonic() - self.began:6.1f} s")

    async def raise_all(self, parts: list[Part]) -> None:
        """Bring up the parts side by side, each after its needs."""
        ready = {part.name: asyncio.Event() for part in parts}
        try:
            async with asyncio.TaskGroup() as group:
                for part in parts:
                    group.create_task(self._raise(part, ready))
        except* (StackError, OSError) as failures:
            raise failures.exceptions[0] from None

    async def _raise(self, part: Part, ready: Mapping[str, asyncio.Event]) -> None:
        for need in part.needs:
            await ready[need].wait()
        known = (await asyncio.to_thread(self.supervisor.processes)).get(part.name)
        is_new = known is None or not known.is_running
        if is_new and not await self._is_started(part):
            outcome = "failed"
        else:
            await self._await_answer(part)
            outcome = "ready" if is_new else "was already up"
            if is_new:
                await part.settle(self.stack)
        ready[part.name].set()
        self.report(part.name, outcome)

    async def _is_started(self, part: Part) -> bool:
        """Start a part; the failure of one that is not vital is kept for later."""
        try:
            await self._start(part)
        except StackError as error:
            if part.vital:
                raise
            self.trouble = error
            return False
        return True

    async def _start(self, part: Part) -> None:
        await part.prepare(self.stack)
        if part.program is not None:
            self.started.append(part.name)
            await asyncio.to_thread(self.supervisor.start_part, part.name)

    async def _await_answer(self, part: Part) -> None:
        deadline = time.monotonic() + part.patience
        first_start = None
        while True:
            since = await self._alive_since(part)
            first_start = first_start or since
            if since != first_start:
                raise self._failure(part, "it stopped and had to be started again")
            try:
                return await asyncio.to_thread(part.answers, self.stack, since)
            except NotReady as reason:
                if time.monotonic() > deadline:
                    raise self._failure(part, f"no answer after {part.patience} s ({reason})") from reason
            await asyncio.sleep(_BETWEEN_QUESTIONS)

    async def _alive_since(self, part: Part) -> int:
        if part.program is None:
            return 1
        process = (await asyncio.to_thread(self.supervisor.processes)).get(part.name)
        if process is None or not process.is_running:
            raise self._failure(part, "its process ended")
        return process.start or process.now

    def _failure(self, part: Part, reason: str) -> StackError:
        log = self.stack.settings.log(part.name)
        return commands.failure(f"{part.name} did not come up: {reason}", log=log, advice=f"{part.name}: {part.advice}")


def build(settings: Settings, own: Mapping[str, str]) -> tuple[Stack, dict[str, str]]:
    """Put together a stack and the variables that stack.env will hold."""
    command = java.find(own)
    if command is None:
        raise StackError(java.complaint(own))
    secret = passwords.load(settings.state)
    variables = environment.render(settings, secret)
    around = environment.of_parts(variables, settings=settings, java_command=command, own=own)
    return Stack(settings, secret, command, around), variables


def up(settings: Settings, parts: list[Part], *, say: Say, own: Mapping[str, str]) -> Stack:
    """Bring up the parts; on a failure or an interruption stop again what this call started."""
    settings.state.mkdir(parents=True, exist_ok=True)
    _check_space(settings)
    stack, variables = build(settings, own)
    supervisor = Supervisor(settings)
    config = supervision.render(programs(stack), settings)
    digest = stamps.digest(words=[config, environment.as_text(variables)])
    if supervisor.pid() is not None and not supervisor.is_current(digest):
        say("The settings have changed since the stack was started: starting it anew.")
        down(settings, say=say)
    is_new = supervisor.pid() is None
    if is_new:
        for name in processes.end(processes.marked(settings.state)):
            say(f"Ended {name}, which an earlier stack had left behind.")
    _check_ports(parts, settings=settings, running=supervisor.processes())
    choices.keep(settings)
    stamps.write(settings.state / "stack.env", environment.as_text(variables), mode=0o600)
    (settings.state / "tmp").mkdir(exist_ok=True)
    ascent = Ascent(stack, say)
    is_up = False
    try:
        if is_new:
            supervisor.start(config, environment=stack.environment, digest=digest)
        _run(ascent.raise_all(parts))
        is_up = True
    finally:
        if not is_up:
            _undo(ascent, is_new=is_new)
    if ascent.trouble is not None:
        raise StackError(f"The stack is up, but not all of it; mend this, then type: make up. {ascent.trouble}")
    return stack


def _undo(ascent: Ascent, *, is_new: bool) -> None:
    """Stop what this `up` started; a second Ctrl-C must not leave half of it running."""
    signals.ignore()
    ascent.say("Stopping what was started.")
    if is_new:
        down(ascent.stack.settings, say=lambda _: None)
    else:
        stop_parts(ascent.supervisor, ascent.started)


def _run(work: Coroutine[None, None, T]) -> T:
    """Run some work to its end or to a signal; the loop forgets the handlers that were there before."""
    before = {number: signal.getsignal(number) for number in signals.stopping()}
    try:
        return asyncio.run(_until_signal(work))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def _until_signal(work: Coroutine[None, None, T]) -> T:
    """Run some work; a signal to stop ends it as Interrupted."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for number in signals.stopping():
        loop.add_signal_handler(number, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        raise signals.Interrupted from None


def _check_space(settings: Settings) -> None:
    free = shutil.disk_usage(settings.state).free
    if free < _SPACE_NEEDED:
        raise StackError(
            f"The stack needs {_SPACE_NEEDED // 2**20} MB of disk to start, but {free // 2**20} MB are free at "
            f"{settings.state}. Free some space, then run the command again."
        )


def _check_ports(parts: list[Part], *, settings: Settings, running: Mapping[str, supervision.Process]) -> None:
    for part in parts:
        if part.name in running and running[part.name].is_running:
            continue
        for name in part.ports:
            port = settings.ports[name]
            if not processes.port_is_free(port):
                raise StackError(taken(part.name, port=port, variable=choices.port_variable(name)))


def taken(part: str, *, port: int, variable: str) -> str:
    """The line about a taken port."""
    holder = processes.port_holder(port) or "another process"
    return (
        f"{part}: port {port} is taken by {holder}. Stop that, or type: {variable}={port + 100} make up "
        "(HEADRACE_PORT_OFFSET=100 moves all ports)"
    )
