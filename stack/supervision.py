"""supervisord: the process that starts, watches and stops the parts."""

import configparser
import io
import os
import shlex
import subprocess
import sys
import tempfile
import time
import xmlrpc.client
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from http.client import HTTPException
from pathlib import Path
from typing import Any

from supervisor.xmlrpc import SupervisorTransport

from stack import stamps
from stack.commands import tail
from stack.errors import StackError
from stack.settings import REPOSITORY, Settings

_LONGEST_SOCKET_PATH = 100  # the kernel's limit is 107 bytes, and supervisord adds its pid while it opens the socket
_START_SECONDS = 20
RUNNING = {"STARTING", "RUNNING"}


@dataclass(frozen=True)
class Program:
    """What supervisord has to know about one part."""

    name: str
    command: list[str]
    stop_signal: str
    stop_seconds: int
    user: str | None = None
    restart: bool = True


@dataclass(frozen=True)
class Process:
    """What supervisord knows about one part."""

    name: str
    state: str
    pid: int
    start: int
    now: int

    @property
    def is_running(self) -> bool:
        """Whether the part has a process."""
        return self.state in RUNNING


def socket_path(state: Path) -> Path:
    """Where supervisord listens: in the state folder, or under a short name when that path is too long."""
    path = state / "run" / "supervisor.sock"
    if len(os.fsencode(path)) <= _LONGEST_SOCKET_PATH:
        return path
    short = sha256(os.fsencode(state)).hexdigest()[:12]
    return Path(tempfile.gettempdir(), f"headrace-{os.getuid()}-{short}.sock")


def render(programs: Iterable[Program], settings: Settings) -> str:
    """supervisord's configuration."""
    config = configparser.RawConfigParser()
    config["unix_http_server"] = {"file": str(socket_path(settings.state)), "chmod": "0600"}
    config["supervisord"] = {
        "logfile": str(settings.log("supervisord")),
        "logfile_maxbytes": "5MB",
        "logfile_backups": "1",
        "pidfile": str(settings.run / "supervisord.pid"),
        "childlogdir": str(settings.logs),
        "directory": str(REPOSITORY),
    }
    if os.getuid() == 0:
        config["supervisord"]["user"] = "root"  # said aloud, or supervisord warns about it
    config["rpcinterface:supervisor"] = {
        "supervisor.rpcinterface_factory": "supervisor.rpcinterface:make_main_rpcinterface"
    }
    for program in programs:
        config[f"program:{program.name}"] = _section(program, settings)
    text = io.StringIO()
    config.write(text)
    return text.getvalue()


def _section(program: Program, settings: Settings) -> dict[str, str]:
    as_group = "false" if program.user else "true"
    section = {
        "command": shlex.join(program.command),
        "autostart": "false",
        "autorestart": "true" if program.restart else "false",
        "startsecs": "1" if program.restart else "0",
        "stopsignal": program.stop_signal,
        "stopwaitsecs": str(program.stop_seconds),
        "stopasgroup": as_group,
        "killasgroup": "true",
        "redirect_stderr": "true",
        "stdout_logfile": str(settings.log(program.name)),
        "stdout_logfile_maxbytes": "20MB",
        "stdout_logfile_backups": "2",
    }
    if program.user:
        section["user"] = program.user
    # supervisord expands %(name)s in values.
    return {key: value.replace("%", "%%") for key, value in section.items()}


class Supervisor:
    """A supervisord of one state folder, whether it runs or not."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._config = settings.run / "supervisord.conf"
        self._stamp = settings.run / "supervisord.stamp"

    def pid(self) -> int | None:
        """The process id of a supervisord that answers, else None."""
        try:
            return int(self._call("getPID"))
        except (OSError, HTTPException):
            return None

    def is_current(self, digest: str) -> bool:
        """Whether the running supervisord was started with the settings of this digest."""
        return stamps.is_current(self._stamp, digest)

    def start(self, config: str, *, environment: Mapping[str, str], digest: str) -> None:
        """Start supervisord, which then outlives this command, and wait until it answers."""
        stamps.write(self._config, config)
        self._settings.logs.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "supervisor.supervisord", "-c", str(self._config)]
        started = subprocess.run(
            command,
            env=dict(environment),
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if started.returncode != 0:
            raise StackError("supervisord did not start. It said:", started.stderr + started.stdout)
        deadline = time.monotonic() + _START_SECONDS
        while self.pid() is None:
            if time.monotonic() > deadline:
                log = self._settings.log("supervisord")
                raise StackError(f"supervisord does not answer. The last lines of {log}:", tail(log))
            time.sleep(0.05)
        stamps.write(self._stamp, digest)

    def processes(self) -> dict[str, Process]:
        """What each part is doing; nothing when supervisord does not run."""
        try:
            answers = self._call("getAllProcessInfo")
        except (OSError, HTTPException):
            return {}
        return {
            answer["name"]: Process(answer["name"], answer["statename"], answer["pid"], answer["start"], answer["now"])
            for answer in answers
        }

    def start_part(self, name: str) -> None:
        """Start one part without waiting for it."""
        try:
            self._call("startProcess", name, False)
        except xmlrpc.client.Fault as fault:
            if "ALREADY_STARTED" not in fault.faultString:
                raise StackError(f"{name}: supervisord could not start it: {fault.faultString}.") from fault

    def stop_part(self, name: str) -> None:
        """Stop one part and wait until its process is gone."""
        try:
            self._call("stopProcess", name, True)
        except xmlrpc.client.Fault as fault:
            if "NOT_RUNNING" not in fault.faultString:
                raise StackError(f"{name}: supervisord could not stop it: {fault.faultString}.") from fault

    def shut_down(self) -> None:
        """Ask supervisord to stop what it still runs, and itself."""
        self._call("shutdown")

    def _call(self, method: str, *arguments: object) -> Any:
        path = socket_path(self._settings.state)
        transport = SupervisorTransport(None, None, f"unix://{path}")
        with xmlrpc.client.ServerProxy("http://127.0.0.1", transport=transport) as server:
            return getattr(server.supervisor, method)(*arguments)
