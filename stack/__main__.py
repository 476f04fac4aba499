"""The command line of the local stack: python -m stack up | down | status | logs | restart | demo | env."""

import argparse
import os
import signal
import subprocess
import sys

from stack import compose, parts, settings, signals, status
from stack.down import down, stop_parts
from stack.errors import StackError, from_os_error
from stack.lock import hold
from stack.parts.part import Stack
from stack.settings import HOST, REPOSITORY, Settings
from stack.signals import Interrupted
from stack.supervision import Supervisor
from stack.up import build, up

NOT_ALL_UP = 3
INTERRUPTED = 130
_LOG_LINES = 100
_CHILD_SECONDS = 15


def say(line: str) -> None:
    """Print a line at once, also when the output is a file."""
    print(line, flush=True)


def command_up(chosen: Settings, options: argparse.Namespace) -> int:
    """Start the stack, or the parts that are not running."""
    names = [name for name in (options.only or "").split(",") if name]
    with hold(chosen.state):
        stack = up(chosen, parts.choose(names), say=say, own=os.environ)
    if not names:
        _greet(stack)
    return 0


def command_down(chosen: Settings, _: argparse.Namespace) -> int:
    """Stop the stack."""
    with hold(chosen.state):
        down(chosen, say=say)
    say("The stack is down.")
    return 0


def command_restart(chosen: Settings, options: argparse.Namespace) -> int:
    """Stop and start one part, or all."""
    with hold(chosen.state):
        if options.part:
            wanted = parts.choose([options.part])
            stop_parts(Supervisor(chosen), [options.part])
        else:
            wanted = parts.choose([])
            down(chosen, say=say)
        up(chosen, wanted, say=say, own=os.environ)
    return 0


def command_status(chosen: Settings, _: argparse.Namespace) -> int:
    """Show what each part is doing."""
    stack, _variables = build(chosen, os.environ)
    lines = status.rows(stack)
    say(status.table(lines))
    return 0 if status.all_up(lines) else NOT_ALL_UP


def command_logs(chosen: Settings, options: argparse.Namespace) -> int:
    """Show the end of one log, or of all."""
    logs = [chosen.log(options.part)] if options.part else sorted(chosen.logs.glob("*.log"))
    there = [str(log) for log in logs if log.is_file()]
    if not there:
        known = ", ".join(sorted(log.stem for log in chosen.logs.glob("*.log"))) or "none yet"
        raise StackError(f"No log of {options.part or 'this stack'} in {chosen.logs}. The logs are: {known}.")
    follow = ["-F"] if options.follow else []
    return subprocess.run(["tail", "-n", str(_LOG_LINES), *follow, *there], check=False).returncode


def command_demo(chosen: Settings, _: argparse.Namespace) -> int:
    """Start the stack and run the demo; an interrupted demo takes the stack down again."""
    with hold(chosen.state):
        stack = up(chosen, parts.choose([]), say=say, own=os.environ)
    # A session of its own: Ctrl-C then reaches this process only, which ends the demo before the stack.
    child = subprocess.Popen(
        [sys.executable, "-m", "demo"], cwd=REPOSITORY, env=_for_child(stack), start_new_session=True
    )
    try:
        return child.wait()
    except Interrupted:
        signals.ignore()
        say("Interrupted: stopping the demo and the stack.")
        _end(child)
        with hold(chosen.state):
            down(chosen, say=say)
        return INTERRUPTED


def command_env(_: Settings, __: argparse.Namespace) -> int:
    """Print freshly generated passwords as the .env file of docker-compose.yaml."""
    print(compose.render_env(), end="")
    return 0


def _for_child(stack: Stack) -> dict[str, str]:
    """The parts' environment without their mark: the demo is a guest of the stack and not a part of it."""
    return {key: value for key, value in stack.environment.items() if key != "HEADRACE_STACK"}


def _end(child: subprocess.Popen[bytes]) -> None:
    os.killpg(child.pid, signal.SIGINT)
    try:
        child.wait(_CHILD_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _greet(stack: Stack) -> None:
    address = f"http://{HOST}:{stack.settings.ports['airflow']}"
    say(f"Airflow: {address}  user admin  password {stack.passwords.airflow_admin}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m stack", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, function in (
        ("up", command_up), ("down", command_down), ("status", command_status), ("logs", command_logs),
        ("restart", command_restart), ("demo", command_demo), ("env", command_env),
    ):  # fmt: skip
        command = commands.add_parser(name, help=function.__doc__, description=function.__doc__)
        command.set_defaults(function=function)
        if name == "up":
            command.add_argument("--only", metavar="PART,PART", help="only these parts and what they need")
        if name in ("logs", "restart"):
            command.add_argument("part", nargs="?", help="one part; all when left out")
        if name == "logs":
            command.add_argument("-f", "--follow", action="store_true", help="go on as the log grows")
    return parser


def main(arguments: list[str]) -> int:
    """Run one command; every trouble becomes a line and an exit code."""
    options = _parser().parse_args(arguments)
    signals.raise_interrupted()
    try:
        return int(options.function(settings.load(os.environ), options))
    except StackError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(from_os_error(error), file=sys.stderr)
        return 1
    except Interrupted:
        print("Interrupted.", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
