"""Clean rows: what one reader sees of a clean table at one snapshot, in whatever form they work with.

Everything is told when it is opened: the snapshot, the columns and the rows that are meant. So all forms of it agree,
however often the feed publishes meanwhile.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg.expressions import And, BooleanExpression, parser
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.table import DataScan, Table

from headrace import away, layout, scanning, share
from headrace.clean import HIDDEN_ROW
from headrace.errors import ReadError
from headrace.lake import Lake, spark_properties
from headrace.masks import MaskKey
from headrace.readers import published, spark_condition
from headrace.readers.published import Published
from headrace.readers.sight import Seen
from headrace.share import Share

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

VISIBLE = parser.parse(share.VISIBLE)
KEPT = "Nothing was changed."
SOURCE = "headrace_rows"


@dataclass(frozen=True, repr=False, eq=False)
class CleanRows:
    """Rows of a feed's clean table, as they were published; deleted ones and the platform's own columns never show."""

    feed: str
    at: Published
    columns: tuple[Seen, ...]
    """Those that are shown, in this order."""
    known: tuple[Seen, ...]
    """All that the table has."""
    condition: BooleanExpression
    table: Table
    lake: Lake

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns' types in Arrow."""
        projected = {each.name: each for each in schema_to_pyarrow(self._scan().projection(), include_field_ids=False)}
        return pa.schema([projected[name] for name in self.names])

    def arrow(self) -> pa.Table:
        """All rows in memory; files are read side by side."""
        with self._telling():
            return self._scan().to_arrow().select(self.names).cast(self.schema)

    def batches(self) -> pa.RecordBatchReader:
        """The rows one batch after the other, with no more than a few of them in memory; can be read once."""
        return pa.RecordBatchReader.from_batches(self.schema, self._stream())

    def pandas(self) -> "pd.DataFrame":
        return self.arrow().to_pandas()

    def duckdb(
        self, connection: "duckdb.DuckDBPyConnection | None" = None, *, name: str | None = None
    ) -> "duckdb.DuckDBPyRelation":
        """A relation over a temporary table of the feed's name, so that SQL of the same connection can join it."""
        import duckdb
        from psycopg import sql

        engine = connection if connection is not None else duckdb.connect()
        called = name or self.feed
        engine.register(SOURCE, self.batches())
        statement = sql.SQL("create or replace temp table {} as from {}")
        engine.execute(statement.format(sql.Identifier(called), sql.Identifier(SOURCE)).as_string())
        engine.unregister(SOURCE)
        return engine.table(called)

    def spark(self, session: Any) -> Any:
        """A DataFrame of a session of yours, classic or Connect; Spark reads the files itself and prunes them."""
        introduce(self.lake, session)
        name = ".".join(f"`{part}`" for part in (self.lake.name, *layout.clean_table(self.feed)))
        frame = session.read.option("versionAsOf", self.at.snapshot).table(name)
        visible = spark_condition.condition(self._filter, frame, schema=self._stored)
        return frame.where(visible).select(*self.names)

    def count(self) -> int:
        """How many rows there are; of files, only what the filter asks about is read."""
        with self._telling():
            return self._scan(HIDDEN_ROW).count()

    def files(self) -> list[str]:
        """The data files that will be read; partitions and statistics leave out the others."""
        with self._telling():
            return sorted(task.file.file_path for task in self._scan().plan_files())

    def describe(self) -> "pd.DataFrame":
        """Every column of the table: its type, what it means, what is personal in it, and whether it is shown here."""
        import pandas as pd

        told = [
            {
                "column": column.name,
                "type": str(column.type),
                "personal": column.pii or "",
                "shown": column.name in self.names,
                "meaning": column.doc or "",
            }
            for column in self.known
        ]
        return pd.DataFrame(told)

    def snapshots(self) -> "pd.DataFrame":
        """What was published and can still be read, the newest first, with what each run did."""
        import pandas as pd

        told = [{"published": each.at, "snapshot": each.snapshot, **each.accounts} for each in self.history()]
        return pd.DataFrame(told)

    def history(self) -> list[Published]:
        """The same as objects."""
        return published.history(self.table)

    def __repr__(self) -> str:
        return f"<{self.feed}: {', '.join(self.names)}; {self.at}>"

    @property
    def _filter(self) -> BooleanExpression:
        return And(VISIBLE, self.condition)

    @property
    def _stored(self) -> Schema:
        """The table's columns at the snapshot."""
        return self.table.scan(snapshot_id=self.at.snapshot).projection()

    def _scan(self, *names: str) -> DataScan:
        """The files and rows, with the columns that are shown or with others."""
        selected = names or tuple(self.names)
        return self.table.scan(row_filter=self._filter, selected_fields=selected, snapshot_id=self.at.snapshot)

    def _stream(self) -> Iterator[pa.RecordBatch]:
        with self._telling():
            for batch in scanning.stream(self._scan()):
                yield from pa.Table.from_batches([batch]).select(self.names).cast(self.schema).to_batches()

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            with away.services(lake=self.lake, kept=KEPT):
                yield
        except FileNotFoundError as error:
            raise ReadError(
                f"clean.{self.feed}: a file of snapshot {self.at.snapshot} is gone: it has expired since it was "
                f"opened. Call headrace.read again, and read it sooner."
            ) from error


@dataclass(frozen=True, repr=False, eq=False)
class WarehouseRows(CleanRows):
    """The same as a warehouse gets them: its columns, in the types in which they travel, masked as the feed says."""

    shared: Share
    mask_key: MaskKey

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([self.shared.schema.field(name) for name in self.names])

    def arrow(self) -> pa.Table:
        return self.batches().read_all()

    def spark(self, session: Any) -> Any:
        """A DataFrame of rows that were masked here, in this process's memory: the mask's key does not go to Spark."""
        return session.createDataFrame(self.arrow())

    def _stream(self) -> Iterator[pa.RecordBatch]:
        snapshot, where = self.at.snapshot, self._filter
        with self._telling():
            for batch in share.rows(self.table, self.shared, snapshot=snapshot, where=where, mask_key=self.mask_key):
                yield batch.select(self.names)


def introduce(lake: Lake, session: Any) -> None:
    """Tell a session of the catalog, unless it has one of that name."""
    properties = spark_properties(lake)
    if session.conf.get(f"spark.sql.catalog.{lake.name}", None) is None:
        for key, value in properties.items():
            session.conf.set(key, value)
