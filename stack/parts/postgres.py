"""Postgres: Airflow's metadata, the Iceberg catalog, the registry and the warehouses, one database each."""

import asyncio
import os
import pwd
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from stack import commands, postgres_programs
from stack.environment import WAREHOUSES, database_url
from stack.errors import StackError
from stack.parts.part import NotReady, Part, Stack
from stack.passwords import Passwords
from stack.settings import HOST, Settings
from stack.supervision import Program

SUPERUSER = "headrace"
VENV = Path(sys.prefix)
# Postgres refuses to run as root. In a user namespace that names us otherwise it runs, and the files stay ours.
_RENAMED = ["unshare", "--user", "--map-user=65534"]


@dataclass(frozen=True)
class Owner:
    """As whom Postgres runs: ourselves, another user of the machine, or ourselves under another name."""

    user: str | None = None
    prefix: tuple[str, ...] = ()


@dataclass(frozen=True)
class Database:
    """A database, the role that owns it, and the role that may only connect to it."""

    name: str
    owner: str
    password: str
    reader: str | None = None
    reader_password: str = ""
    makes_roles: bool = False
    """Whether its owner may make roles, for those who read what it makes."""


def databases(passwords: Passwords) -> list[Database]:
    """All databases of a stack."""
    own = [
        Database("airflow", "airflow", passwords.airflow_database),
        Database("catalog", "catalog", passwords.catalog),
        Database("registry", "registry", passwords.registry),
        Database("teams", "headrace_teams", passwords.teams, makes_roles=True),
    ]
    return own + [
        Database(
            team,
            f"headrace_{team}",
            getattr(passwords, team),
            reader=f"{team}_reader",
            reader_password=getattr(passwords, f"{team}_reader"),
        )
        for team in WAREHOUSES
    ]


def data_folder(settings: Settings) -> Path:
    """Where Postgres keeps its data."""
    return settings.state / "postgres" / "data"


def programs(settings: Settings) -> Path:
    """The folder of Postgres programs that fit the data, or any new enough when there is no data yet."""
    mark = data_folder(settings) / "PG_VERSION"
    wanted = int(mark.read_text()) if mark.is_file() else None
    found = postgres_programs.find(VENV, wanted=wanted)
    if found is None:
        need = (
            f"Postgres {wanted}, which wrote {mark.parent},"
            if wanted
            else f"Postgres {postgres_programs.OLDEST} or newer"
        )
        raise StackError(f"{need} was not found on this machine or in .venv. Run: make setup")
    return found[0]


def owner(settings: Settings, folder: Path) -> Owner:
    """Decide as whom Postgres runs; data that is there already decides by whose it is."""
    if os.getuid() != 0:
        return Owner()
    data = data_folder(settings)
    users = [pwd.getpwuid(data.stat().st_uid).pw_name] if data.exists() else ["postgres", "nobody"]
    for user in users:
        if user != "root" and _reaches(user, settings=settings, folder=folder):
            return Owner(user=user)
    if (
        shutil.which(_RENAMED[0])
        and subprocess.run([*_RENAMED, "true"], capture_output=True, check=False).returncode == 0
    ):
        return Owner(prefix=tuple(_RENAMED))
    raise StackError(
        f"Postgres does not run as root, and the users postgres and nobody cannot reach {settings.state}. "
        "Work as another user, or move the repository to a folder that every user may enter."
    )


def _reaches(user: str, *, settings: Settings, folder: Path) -> bool:
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        return False
    settings.state.mkdir(parents=True, exist_ok=True)
    command = ["sh", "-c", 'test -x "$1" && "$2" --version', "sh", str(settings.state), str(folder / "postgres")]
    tried = subprocess.run(
        command, user=entry.pw_uid, group=entry.pw_gid, extra_groups=[], capture_output=True, cwd="/", check=False
    )
    return tried.returncode == 0


def program(stack: Stack) -> Program:
    """The server: TCP on this machine only, passwords always, nothing lost when it is killed."""
    folder = programs(stack.settings)
    who = owner(stack.settings, folder)
    options = {
        "port": stack.settings.ports["postgres"],
        "listen_addresses": HOST,
        "unix_socket_directories": "",
        "max_connections": 200,
        "shared_buffers": "128MB",
        "log_checkpoints": "off",
    }
    command = [*who.prefix, str(folder / "postgres"), "-D", str(data_folder(stack.settings))]
    for name, value in options.items():
        command += ["-c", f"{name}={value}"]
    # SIGINT is Postgres's fast shutdown: it ends the sessions and writes a checkpoint.
    return Program("postgres", command, stop_signal="INT", stop_seconds=30, user=who.user)


async def prepare(stack: Stack) -> None:
    """Create the data folder once; it appears under its name only when it is whole."""
    data = data_folder(stack.settings)
    if (data / "PG_VERSION").is_file():
        return
    folder = programs(stack.settings)
    who = owner(stack.settings, folder)
    home = data.parent
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    password = home / "password"
    password.touch(mode=0o600)
    password.write_text(stack.passwords.postgres)
    if who.user:
        for path in (home, password):
            shutil.chown(path, who.user)
    command = [
        *who.prefix, folder / "initdb", "-D", home / "new", "-U", SUPERUSER, "--encoding=UTF8", "--no-locale",
        "--auth=scram-sha-256", f"--pwfile={password}",
    ]  # fmt: skip
    log = stack.settings.log("postgres")
    await commands.run(command, log=log, environment=stack.environment, user=who.user)
    password.unlink()
    (home / "new").rename(data)


def answers(stack: Stack, _: int) -> None:
    """Run a query."""
    try:
        with _connect(stack, "postgres") as connection:
            connection.execute("SELECT 1")
    except psycopg.OperationalError as error:
        raise NotReady(str(error)) from error


async def settle(stack: Stack) -> None:
    """Create the databases and the roles."""
    await asyncio.to_thread(_create_databases, stack)


def _create_databases(stack: Stack) -> None:
    wanted = databases(stack.passwords)
    with _connect(stack, "postgres") as connection:
        for database in wanted:
            _create_role(connection, database.owner, password=database.password, makes_roles=database.makes_roles)
            if database.reader:
                _create_role(connection, database.reader, password=database.reader_password)
            _create_database(connection, database)
    for database in wanted:
        with _connect(stack, database.name) as connection:
            # What Postgres 15 made the default: only the owner may create in the public schema.
            connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
            statement = sql.SQL("GRANT CREATE, USAGE ON SCHEMA public TO {}")
            connection.execute(statement.format(sql.Identifier(database.owner)))


def _create_role(
    connection: psycopg.Connection[tuple[object, ...]], name: str, *, password: str, makes_roles: bool = False
) -> None:
    found = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [name]).fetchone()
    verb = sql.SQL("ALTER" if found else "CREATE")
    more = sql.SQL("CREATEROLE" if makes_roles else "")
    statement = sql.SQL("{} ROLE {} LOGIN {} PASSWORD {}")
    connection.execute(statement.format(verb, sql.Identifier(name), more, sql.Literal(password)))


def _create_database(connection: psycopg.Connection[tuple[object, ...]], database: Database) -> None:
    name = sql.Identifier(database.name)
    found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database.name]).fetchone()
    if not found:
        connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(name, sql.Identifier(database.owner)))
    connection.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(name))
    if database.reader:
        connection.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(name, sql.Identifier(database.reader)))


def _connect(stack: Stack, database: str) -> psycopg.Connection[tuple[object, ...]]:
    url = database_url(stack.settings, user=SUPERUSER, password=stack.passwords.postgres, database=database)
    return psycopg.connect(url, connect_timeout=3, autocommit=True)


PART = Part("postgres", program, answers, ports=("postgres",), prepare=prepare, settle=settle)
