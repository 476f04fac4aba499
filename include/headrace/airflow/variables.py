"""The feeds as Airflow Variables: visible in the UI and the command line, readable in tasks, equal to the registry."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from airflow.models.variable import Variable
from airflow.utils.session import create_session
from sqlalchemy import select
from sqlalchemy.orm import Session

from headrace import layout
from headrace.registry import feeds
from headrace.registry.store import Store

DESCRIPTION = "Written by Headrace from the schema registry, which mends what is changed here."
LOCK = "select pg_advisory_xact_lock(hashtext('headrace.variables'))"


@dataclass(frozen=True)
class Changes:
    """The Variables that differed from the registry."""

    written: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.written or self.deleted)


def sync(store: Store) -> Changes:
    """Make the Variables equal to the registry: only what differs is written; needs Airflow's own database.

    Whoever changed the registry calls this afterwards, and the DAG bundle does so every now and then, which mends what
    somebody who was killed in between, or a person's hand, has left.
    """
    # Whoever reads the registry last must write last: otherwise an older state could come over a newer one.
    with _alone(store), create_session() as session:
        wanted = {layout.feed_variable(name): each.as_json() for name, each in feeds.known(store.declaring()).items()}
        changes = differences(wanted, _found(session))
        for key in changes.written:
            Variable.set(key, wanted[key], DESCRIPTION, serialize_json=True, session=session)
        for key in changes.deleted:
            Variable.delete(key, session=session)
    return changes


@dataclass(frozen=True)
class Found:
    """A Variable as it is."""

    value: str | None
    description: str | None


def differences(wanted: Mapping[str, object], found: Mapping[str, Found]) -> Changes:
    """What to write and what to delete; a Variable that is not ours is deleted by nobody but its owner."""
    return Changes(
        written=tuple(key for key, value in wanted.items() if key not in found or not _says(found[key], value)),
        deleted=tuple(key for key, kept in found.items() if key not in wanted and kept.description == DESCRIPTION),
    )


def _says(found: Found, value: object) -> bool:
    try:
        return found.description == DESCRIPTION and json.loads(found.value or "") == value
    except json.JSONDecodeError:
        return False


def _found(session: Session) -> dict[str, Found]:
    chosen = select(Variable).where(Variable.key.startswith(layout.feed_variable(""), autoescape=True))
    return {each.key: Found(each.val, each.description) for each in session.scalars(chosen)}


@contextmanager
def _alone(store: Store) -> Iterator[None]:
    """One at a time, in all processes; the lock is in the registry's database, which is Postgres in any Airflow."""
    with psycopg.connect(store.database.url()) as connection:
        connection.execute(LOCK)
        yield
