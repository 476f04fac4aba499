"""What is set for subjects and contexts, as one transaction sees it: configs and modes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
from psycopg.types.json import Jsonb

from headrace.registry.subject import qualified


@dataclass(frozen=True)
class Settings:
    """Questions and changes, all inside one transaction; the default context's own have no subject."""

    connection: psycopg.Connection

    def config(self, subject: str) -> dict[str, Any] | None:
        rows = self._rows("select value from configs where subject = %s", [subject])
        return rows[0][0] if rows else None

    def configs(self, subjects: Iterable[str]) -> dict[str, dict[str, Any]]:
        return dict(self._rows("select subject, value from configs where subject = any(%s)", [list(subjects)]))

    def aliases(self) -> list[tuple[str, str]]:
        """Each subject that stands for another, with that other as it was written."""
        return self._rows(
            "select subject, value ->> 'alias' from configs where value ->> 'alias' <> '' "
            'order by subject collate "C"',
            [],
        )

    def set_config(self, subject: str, value: dict[str, Any]) -> None:
        self.connection.execute(
            "insert into configs values (%s, %s) on conflict (subject) do update set value = excluded.value",
            [subject, Jsonb(value)],
        )

    def delete_config(self, subject: str) -> None:
        self.connection.execute("delete from configs where subject = %s", [subject])

    def modes(self, subjects: Iterable[str]) -> dict[str, str]:
        return dict(self._rows("select subject, mode from modes where subject = any(%s)", [list(subjects)]))

    def set_mode(self, subject: str, mode: str) -> None:
        self.connection.execute(
            "insert into modes values (%s, %s) on conflict (subject) do update set mode = excluded.mode",
            [subject, mode],
        )

    def delete_mode(self, subject: str) -> None:
        self.connection.execute("delete from modes where subject = %s", [subject])

    def modes_within(self, context: str) -> list[str]:
        """The subjects of a context that have a mode of their own."""
        subjects = [row[0] for row in self._rows("select subject from modes", [])]
        return [each for each in subjects if not (found := qualified(each)).is_context and found.context == context]

    def _rows(self, statement: LiteralString, values: Sequence[Any]) -> list[Any]:
        return self.connection.execute(statement, values).fetchall()
