"""What load, reconcile and upkeep ask of a warehouse, of whatever kind it is."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol

import pyarrow as pa

from headrace.share import Share
from headrace.warehouses.changes import Standing
from headrace.warehouses.load import Counts, Held, Load, Way


class LoadSession(Protocol):
    """One transaction in which a table is changed; loads of one table take turns."""

    def loaded(self) -> Load:
        """What was loaded last."""

    def standing(self) -> Standing | None:
        """The table as it is; None when there is none."""

    def keeps(self, share: Share, last: Load) -> bool:
        """Whether the table stays and only its rows change; raises where that would lose values."""

    def vet(self, share: Share) -> None:
        """Raise where define() would refuse, before rows are brought; nobody waits for that."""

    def define(self, share: Share) -> None:
        """Bring the table that is there to the share's columns, comments and grants."""

    def fill(self, share: Share, batches: Iterator[pa.RecordBatch]) -> Counts:
        """Make the table new of these rows, and switch to it."""

    def stage(self, share: Share, batches: Iterator[pa.RecordBatch]) -> int:
        """Bring rows to where they can be merged from, hidden ones marked; how many they are."""

    def merge(self, share: Share, *, whole: bool) -> Counts:
        """Apply what was staged by key; of `whole` tables, rows that were not staged go."""

    def record(self, share: Share, load: Load, way: Way, counts: Counts) -> None:
        """Note which snapshot the table holds now, and what was done."""


class ReadSession(Protocol):
    """One read transaction: all of it sees the same moment."""

    def loaded(self) -> Load:
        """What was loaded last."""

    def reconciled(self) -> Load:
        """At which snapshot the table was last seen to agree with the clean table."""

    def look_for(self, share: Share, keys: Iterator[pa.RecordBatch]) -> None:
        """Have only rows with these keys read from now on."""

    def rows(self, share: Share, *, looked_for: bool = False) -> Iterator[pa.RecordBatch]:
        """Every row of the table, or those that are looked for, in the types in which they travel."""


class WarehouseClient(Protocol):
    """A warehouse."""

    @property
    def name(self) -> str: ...

    def loading(self, feed: str) -> AbstractContextManager[LoadSession]:
        """A transaction that is committed where nothing is raised in it."""

    def reading(self, feed: str) -> AbstractContextManager[ReadSession]:
        """A look at a table as it is at one moment."""

    def holds(self, feed: str) -> Load:
        """What was loaded last; nothing, where the table was dropped, or it does not answer: its own task tells why."""

    def open(self) -> None:
        """Make what has to be there before a first load."""

    def tables(self) -> list[Held]:
        """The tables that are loaded there; raises where it does not answer."""

    def remove(self) -> list[str]:
        """Take away what we have loaded there; the tables that were."""

    def vacuum(self, feed: str) -> None:
        """Have a table give up what deleted rows said."""

    def note_reconciled(self, feed: str, load: Load) -> None:
        """Note that a table was seen to agree with a snapshot."""
