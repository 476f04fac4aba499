"""Reckoning: what two stores hold, in figures that agree only if their rows do, and then the rows that differ.

One engine reckons both sides, as streams of Arrow in the same types, so that no two databases' casts are compared. Rows
are counted, declared columns summed to the last digit, and every row hashed, in one pass that keeps the figures of each
partition and, to count different keys, their hashes. Only where figures differ is there a second pass, which keeps of
the rows of such partitions their keys and a hash of each column.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import Any, Literal

import duckdb
import pyarrow as pa
from psycopg import sql

from headrace import scanning, scratch, shown
from headrace.declaration import Partition

Side = Callable[[], Iterator[pa.RecordBatch]]
"""Gives a store's rows, from the first, whenever it is called."""
Term = tuple[sql.Composable, int]
"""A part of a sum, and how often it counts."""
Kind = Literal["lost", "surplus", "doubled", "altered"]
Depth = Literal["count", "sums", "checksum"]

LISTED = 100
MEMORY = "1GB"
"""What the engine holds before it writes to disk."""
PARTS = 64
"""Where a table has no partitions, rows are told apart by their keys' hashes, into so many parts."""
DIGITS = 9
"""Of floating-point numbers so many decimal places are summed: as whole numbers, so that their order is nothing."""
HALF = 10**19
"""Sums of wide numbers are made of two halves: no type of the engine holds them."""
NARROW = 18
"""Decimals of so many digits the engine sums exactly, however many rows there are."""
EXACT = Context(prec=100)
"""Python's own context would round a long sum."""
NOUGHT = Decimal(0)
EXPECTED, FOUND = "expected", "found"


@dataclass(frozen=True)
class Shape:
    """What the two sides have in common."""

    schema: pa.Schema
    key: tuple[str, ...]
    sums: tuple[str, ...] = ()
    partition: Partition | None = None
    """Set where both sides have its field as it is."""

    @property
    def names(self) -> list[str]:
        return list(self.schema.names)

    @property
    def plain(self) -> pa.Schema:
        """The same with moments in UTC that do not say so: the engine would look at its own zone."""
        return pa.schema([each.with_type(_zoneless(each.type)) for each in self.schema])


@dataclass(frozen=True)
class Figures:
    """Three depths, each finer than the one before."""

    rows: int = 0
    unique: int = 0
    """How many different keys there are."""
    sums: Mapping[str, Decimal] = field(default_factory=dict)
    checksum: int = 0

    def __add__(self, other: "Figures") -> "Figures":
        names = {**self.sums, **other.sums}
        return Figures(
            self.rows + other.rows,
            self.unique + other.unique,
            {name: EXACT.add(self.sums.get(name, NOUGHT), other.sums.get(name, NOUGHT)) for name in names},
            self.checksum + other.checksum,
        )


@dataclass(frozen=True)
class Keys:
    """Keys that differ in one way: how many there are, and the first of them."""

    count: int
    listed: tuple[str, ...]


@dataclass(frozen=True)
class Differences:
    """Which rows differ."""

    keys: Mapping[Kind, Keys]
    columns: Mapping[str, int]
    """Of the altered rows: in how many each column differs."""


@dataclass(frozen=True)
class Verdict:
    """Both sides' figures, and where they differ."""

    expected: Figures
    found: Figures
    partitions: tuple[str, ...] = ()
    """Those that differ, where the table has partitions."""
    keys: Mapping[Kind, Keys] = field(default_factory=dict)
    columns: Mapping[str, int] = field(default_factory=dict)
    """Of the altered rows: in how many each column differs."""

    @property
    def agrees(self) -> bool:
        return all(self.depths.values())

    @property
    def depths(self) -> dict[Depth, bool]:
        """Whether the two agree, at each depth."""
        counts = ((each.rows, each.unique) for each in (self.expected, self.found))
        return {
            "count": len(set(counts)) == 1,
            "sums": self.expected.sums == self.found.sums,
            "checksum": self.expected.checksum == self.found.checksum,
        }


def reckon(shape: Shape, *, expected: Side, found: Side, listed: int = LISTED) -> Verdict:
    """Hold what a store has against what it should have."""
    with _engine() as engine:
        there = {EXPECTED: _figures(engine, shape, expected()), FOUND: _figures(engine, shape, found())}
        buckets = sorted(there[EXPECTED].keys() | there[FOUND].keys())
        apart = [each for each in buckets if there[EXPECTED].get(each) != there[FOUND].get(each)]
        verdict = Verdict(_total(there[EXPECTED], shape), _total(there[FOUND], shape))
        if not apart:
            return verdict
        found_ = _differences(engine, shape, expected=expected, found=found, listed=listed, buckets=apart)
        named = tuple(apart) if shape.partition else ()
        return Verdict(verdict.expected, verdict.found, named, found_.keys, found_.columns)


def _differences(
    engine: duckdb.DuckDBPyConnection,
    shape: Shape,
    *,
    expected: Side,
    found: Side,
    listed: int,
    buckets: Sequence[str] | None = None,
) -> Differences:
    for name, side in ((EXPECTED, expected), (FOUND, found)):
        _keep(engine, name, shape, side(), buckets=buckets)
    search = _Search(engine, shape)
    keys = {kind: keys for kind in KINDS if (keys := search.keys(kind, listed)).count}
    return Differences(keys, search.columns())


def figures(shape: Shape, side: Side) -> Figures:
    """What one store has, in all."""
    with _engine() as engine:
        return _total(_figures(engine, shape, side()), shape)


def differences(shape: Shape, *, expected: Side, found: Side, listed: int = LISTED) -> Differences:
    """The rows that differ, of two sides that are known to."""
    with _engine() as engine:
        return _differences(engine, shape, expected=expected, found=found, listed=listed)


@contextmanager
def _engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with scratch.folder() as folder:
        settings: dict[str, Any] = {
            "memory_limit": MEMORY,
            "temp_directory": str(folder),
            "preserve_insertion_order": False,
        }
        with closing(duckdb.connect(config=settings)) as engine:
            yield engine


@contextmanager
def _source(engine: duckdb.DuckDBPyConnection, shape: Shape, batches: Iterator[pa.RecordBatch]) -> Iterator[None]:
    """A side's rows under the name `source`, to be read once."""
    plain = shape.plain
    with scanning.telling(batch.cast(plain) for batch in batches) as asked:
        engine.register("source", pa.RecordBatchReader.from_batches(plain, asked))
        try:
            yield
        finally:
            engine.unregister("source")


def _figures(engine: duckdb.DuckDBPyConnection, shape: Shape, batches: Iterator[pa.RecordBatch]) -> dict[str, Figures]:
    """The figures of every partition; a checksum is a sum, not an xor, so that doubled rows show."""
    terms = {name: tuple(_terms(name, shape.schema.field(name).type)) for name in shape.sums}
    wanted = [
        sql.SQL("{} as part").format(_part(shape)),
        sql.SQL("count(*)"),
        sql.SQL("count(distinct hash({}))").format(_names(shape.key)),
        sql.SQL("sum(hash({})::hugeint)").format(_names(shape.names)),
        *(term for each in terms.values() for term, _ in each),
    ]
    grouped = sql.SQL("select {} from source group by 1").format(sql.SQL(", ").join(wanted))
    # Texts are made of the few groups, not of each row, which would cost more than its hash.
    query = sql.SQL("select {}, * exclude (part) from ({})").format(_shown(shape, sql.Identifier("part")), grouped)
    with _source(engine, shape, batches):
        rows = engine.execute(query.as_string()).fetchall()
    return {
        bucket: Figures(count, unique, _sums(shape, terms, iter(found)), checksum)
        for bucket, count, unique, checksum, *found in rows
    }


def _total(figures: Mapping[str, Figures], shape: Shape) -> Figures:
    return sum(figures.values(), Figures(sums=dict.fromkeys(shape.sums, NOUGHT)))


def _part(shape: Shape) -> sql.Composed:
    """Where a row belongs: its partition, or a part of the table that its key tells."""
    if shape.partition is None:
        return sql.SQL("(hash({}) % {})").format(_names(shape.key), sql.Literal(PARTS))
    return sql.SQL("date_trunc({}, {})").format(sql.Literal(shape.partition.by), sql.Identifier(shape.partition.field))


def _shown(shape: Shape, part: sql.Composable) -> sql.Composed:
    """What a part is called."""
    if shape.partition is None:
        return sql.SQL("{}::varchar").format(part)
    return sql.SQL("coalesce(strftime({}::timestamp, {}), 'null')").format(part, sql.Literal(SHOWN[shape.partition.by]))


SHOWN = {"hour": "%Y-%m-%d %H:00", "day": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}
"""How a partition is called."""


def _terms(name: str, type_: pa.DataType) -> Iterator[Term]:
    """Whole numbers of a column's smallest unit, of which its sum is made; what is no number counts as none."""
    column = sql.Identifier(name)
    if pa.types.is_floating(type_):
        # As large as can be told apart from its neighbours anyway; beyond that, and for NaN, the checksum tells.
        scaled = sql.SQL("round({}::double * {}.0)").format(column, sql.Literal(10**DIGITS))
        small = sql.SQL("try_cast({} as bigint)").format(scaled)
        yield sql.SQL("sum({})").format(small), 1
        yield from _halves(sql.SQL("case when {} is null then try_cast({} as hugeint) end").format(small, scaled))
    elif not pa.types.is_decimal(type_):
        yield sql.SQL("sum({})").format(column), 1
    elif type_.precision <= NARROW:
        yield _unscaled(sql.SQL("sum({})").format(column)), 1
    else:
        yield from _halves(_unscaled(column))


def _halves(whole: sql.Composable) -> Iterator[Term]:
    """A sum in two whole numbers, the second of which is less than a fixed part of the first."""
    yield sql.SQL("sum({} // {})").format(whole, sql.Literal(HALF)), HALF
    yield sql.SQL("sum({} % {})").format(whole, sql.Literal(HALF)), 1


def _unscaled(number: sql.Composable) -> sql.Composed:
    return sql.SQL("replace({}::varchar, '.', '')::hugeint").format(number)


def _sums(shape: Shape, terms: Mapping[str, Sequence[Term]], found: Iterator[int | None]) -> dict[str, Decimal]:
    totals = {name: sum((next(found) or 0) * times for _, times in each) for name, each in terms.items()}
    return {
        name: EXACT.scaleb(Decimal(total), -_scale(shape.schema.field(name).type)) for name, total in totals.items()
    }


def _scale(type_: pa.DataType) -> int:
    if pa.types.is_floating(type_):
        return DIGITS
    return int(type_.scale) if pa.types.is_decimal(type_) else 0


def _keep(
    engine: duckdb.DuckDBPyConnection,
    side: str,
    shape: Shape,
    batches: Iterator[pa.RecordBatch],
    *,
    buckets: Sequence[str] | None,
) -> None:
    """Keep a side's rows, all or those of some partitions: keys as they are, of everything a hash."""
    hashes = [
        sql.SQL("hash({}) as {}").format(sql.Identifier(name), sql.Identifier(_hash(name))) for name in shape.names
    ]
    kept = sql.SQL(", ").join([*map(sql.Identifier, shape.key), *hashes])
    where: sql.Composable = sql.SQL("true")
    if buckets is not None:
        listed = sql.SQL(", ").join(map(sql.Literal, buckets))
        where = sql.SQL("{} in ({})").format(_shown(shape, _part(shape)), listed)
    made = sql.SQL("create table {} as select {} from source where {}").format(sql.Identifier(side), kept, where)
    with _source(engine, shape, batches):
        engine.execute(made.as_string())


def _hash(column: str) -> str:
    return f"{column} #"  # no column is called so


@dataclass(frozen=True)
class _Search:
    """Looks for rows that differ among those that were kept."""

    engine: duckdb.DuckDBPyConnection
    shape: Shape

    def keys(self, kind: Kind, listed: int) -> Keys:
        rows = KINDS[kind](self)
        first = sql.SQL("select {} from ({}) group by all order by all limit {}")
        keys = self._asked(first.format(_names(self.shape.key), rows, sql.Literal(listed)))
        count = self._asked(sql.SQL("select count(*) from ({})").format(rows))[0][0]
        return Keys(count, tuple(map(shown.key, keys)))

    def columns(self) -> dict[str, int]:
        """In how many of the altered rows each column differs, the busiest first."""
        counts = sql.SQL(", ").join(
            sql.SQL("count(*) filter (where {})").format(self._differs(name)) for name in self.shape.names
        )
        query = sql.SQL("select {} from {} e join {} f on {}")
        found = self._asked(query.format(counts, _only(self, EXPECTED), _only(self, FOUND), self.same_key))[0]
        named = zip(self.shape.names, found, strict=True)
        return dict(sorted(((name, count) for name, count in named if count), key=lambda each: -each[1]))

    def missing(self, here: str, there: str) -> sql.Composed:
        query = sql.SQL("select {} from {} e where not exists (select 1 from {} f where {})")
        return query.format(_names(self.shape.key, "e"), sql.Identifier(here), sql.Identifier(there), self.same_key)

    def doubled(self) -> sql.Composed:
        """Keys that are found oftener than they should be, however often that is."""
        counted = sql.SQL("(select {0}, count(*) as n from {1} group by {0})")
        names = _names(self.shape.key)
        sides = [counted.format(names, sql.Identifier(side)) for side in (EXPECTED, FOUND)]
        query = sql.SQL("select {} from {} e join {} f on {} where f.n > e.n")
        return query.format(_names(self.shape.key, "e"), *sides, self.same_key)

    def altered(self) -> sql.Composed:
        differs = sql.SQL(" or ").join(self._differs(name) for name in self.shape.names)
        query = sql.SQL("select {} from {} e join {} f on {} where {}")
        sides = _only(self, EXPECTED), _only(self, FOUND)
        return query.format(_names(self.shape.key, "e"), *sides, self.same_key, differs)

    @property
    def same_key(self) -> sql.Composed:
        pairs = (sql.SQL("e.{0} = f.{0}").format(sql.Identifier(name)) for name in self.shape.key)
        return sql.SQL(" and ").join(pairs)

    def _differs(self, column: str) -> sql.Composed:
        return sql.SQL("e.{0} <> f.{0}").format(sql.Identifier(_hash(column)))

    def _asked(self, query: sql.Composed) -> list[tuple[Any, ...]]:
        return self.engine.execute(query.as_string()).fetchall()


def _only(search: _Search, side: str) -> sql.Composed:
    """A side's rows, those apart whose keys come more than once: of them one cannot tell which was altered."""
    names = _names(search.shape.key)
    return sql.SQL("(select * from {} qualify count(*) over (partition by {}) = 1)").format(sql.Identifier(side), names)


KINDS: Mapping[Kind, Callable[[_Search], sql.Composed]] = {
    "lost": lambda search: search.missing(EXPECTED, FOUND),
    "surplus": lambda search: search.missing(FOUND, EXPECTED),
    "doubled": _Search.doubled,
    "altered": _Search.altered,
}


def _names(names: Sequence[str], prefix: str | None = None) -> sql.Composed:
    parts = (sql.Identifier(prefix, name) if prefix else sql.Identifier(name) for name in names)
    return sql.SQL(", ").join(parts)


def _zoneless(type_: pa.DataType) -> pa.DataType:
    return pa.timestamp(type_.unit) if pa.types.is_timestamp(type_) else type_
