"""Files as a source: Parquet, CSV, JSON lines and Avro, on disk or on S3, one after another by name."""

import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedIOBase
from itertools import count, islice
from pathlib import Path
from typing import Any, Literal

import fastavro
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from headrace import scratch
from headrace.errors import HistoryError
from headrace.history.folder import Folder, Stored
from headrace.history.source import BATCH_ROWS, Reading, Rows, SourceColumn, Values
from headrace.json_text import decoder
from headrace.kafka.pace import Pace, Rate

Format = Literal["parquet", "csv", "jsonl", "avro"]
ENDINGS: Mapping[str, Format] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".avro": "avro",
}
BATCH_BYTES = 16 * 1024 * 1024
SEEN_LINES = 1000
"""How many lines tell which columns JSON lines have; a field that is first met later is read all the same."""


@dataclass(frozen=True)
class Csv:
    """How CSV files are written, which they do not tell themselves."""

    delimiter: str = ","
    nulls: tuple[str, ...] = ("",)
    """The texts, not in quotes, that mean null."""
    header: tuple[str, ...] = ()
    """The columns' names, where the first line does not have them."""


@dataclass(frozen=True)
class FileSource:
    """All files of a pattern, of one format."""

    pattern: str
    folder: Folder
    format: Format | None = None
    csv: Csv = field(default_factory=Csv)
    rate: float | None = None
    """Rows per second at most."""
    scratch: Path | None = None
    """Where a file on S3 is brought to be read; else the machine's own folder for such things."""

    @property
    def told(self) -> str:
        how = [self.format or "", *([str(self.csv)] if self.csv != Csv() else [])]
        return " ".join([f"files:{self.pattern}", *filter(None, how)])

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        found = self.folder.find(self.pattern)
        if not found:
            raise HistoryError(f"{self.pattern}: there is no such file. Quote a pattern, so that the shell leaves it.")
        with scratch.folder(self.scratch) as room:
            yield FileReading(self, found, room)

    def kind(self, name: str) -> Format:
        bare = name.removesuffix(".gz")
        given = self.format or ENDINGS.get(Path(bare).suffix)
        if given is None:
            raise HistoryError(f"{name}: its name tells no format. Say it: --format {'|'.join(READERS)}.")
        return given


@dataclass(frozen=True)
class FileReading:
    """The files as they were found: one that changes meanwhile ends the reading."""

    source: FileSource
    files: Sequence[Stored]
    scratch: Path

    @property
    def columns(self) -> Sequence[SourceColumn]:
        """Those of the first file; the others must have them too."""
        with self._local(self.files[0]) as path:
            return COLUMNS[self.source.kind(self.files[0].name)](path, self.source.csv)

    @property
    def is_open(self) -> bool:
        return any(self.source.kind(file.name) == "jsonl" for file in self.files)

    @property
    def total(self) -> int | None:
        """Not known before they are read, except where every file tells."""
        return None

    def rows(self, names: Sequence[str]) -> Iterator[Rows]:
        pace = Pace(Rate(self.source.rate))
        for file in self.files:
            with self._local(file) as path:
                for numbers, columns, unread in READERS[self.source.kind(file.name)](path, names, self.source.csv):
                    pace.wait(len(numbers), 0)
                    yield Rows(file.name, numbers, columns, unread)

    @contextmanager
    def _local(self, file: Stored) -> Iterator[Path]:
        path = self.source.folder.fetch(file, self.scratch)
        try:
            yield path
            self.source.folder.require_same(file)
        # What Arrow, fastavro and gzip say of a file that is cut off, or holds something else.
        except (pa.ArrowException, ArithmeticError, EOFError, LookupError, OSError, ValueError, zlib.error) as error:
            raise HistoryError(f"{file.name}: it cannot be read: {_told(error)}") from None
        finally:
            if path.is_relative_to(self.scratch):
                path.unlink(missing_ok=True)


def _told(error: Exception) -> str:
    """An error's first line, without what stood in a row."""
    return str(error).split("\n", maxsplit=1)[0].split("Row #", maxsplit=1)[0][:200]


Numbered = Iterator[tuple[int, Mapping[str, Any] | str]]
"""Rows with their numbers; a text in the place of one tells why it cannot be read."""

Batches = Iterator[tuple[Sequence[int], Mapping[str, Values], Mapping[int, str]]]


def _parquet_columns(path: Path, csv: Csv) -> list[SourceColumn]:
    return [SourceColumn(field.name, _dense_type(field.type)) for field in pq.read_schema(path)]


def _parquet(path: Path, names: Sequence[str], csv: Csv) -> Batches:
    with pq.ParquetFile(path) as file:
        _require(path, names, file.schema_arrow.names)
        widest = max((group.total_byte_size // max(group.num_rows, 1) for group in _groups(file)), default=1)
        size = max(1, min(BATCH_ROWS, BATCH_BYTES // max(widest, 1)))
        first = 1
        for batch in file.iter_batches(size, columns=list(names)):
            columns = {name: _dense(batch.column(name)) for name in names}
            yield range(first, first + batch.num_rows), columns, {}
            first += batch.num_rows


def _groups(file: pq.ParquetFile) -> Iterator[Any]:
    return (file.metadata.row_group(number) for number in range(file.metadata.num_row_groups))


def _dense_type(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def _dense(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _csv_columns(path: Path, csv: Csv) -> list[SourceColumn]:
    with pcsv.open_csv(path, **_csv_options(csv, (), {})) as file:
        return [SourceColumn(name, pa.string()) for name in file.schema.names]


def _csv(path: Path, names: Sequence[str], csv: Csv) -> Batches:
    unread: dict[int, str] = {}
    first = 1
    with pcsv.open_csv(path, **_csv_options(csv, names, unread)) as file:
        for batch in file:
            # Also of a block without one good row: its bad ones are told, and forgotten.
            for start in range(0, max(batch.num_rows, 1), BATCH_ROWS):
                part = batch.slice(start, BATCH_ROWS)
                numbers, told = _numbered(part.num_rows, first, unread=unread)
                first += len(numbers) + len(told)
                yield numbers, {name: part.column(name) for name in names}, told
    yield [], {name: [] for name in names}, unread


def _numbered(rows: int, first: int, *, unread: dict[int, str]) -> tuple[list[int], dict[int, str]]:
    """The numbers of so many good rows, and the bad ones before, among and right behind them, taken out of `unread`."""
    numbers: list[int] = []
    told: dict[int, str] = {}
    for number in count(first):
        if number in unread:
            told[number] = unread.pop(number)
        elif len(numbers) < rows:
            numbers.append(number)
        else:
            break
    return numbers, told


def _csv_options(csv: Csv, names: Sequence[str], unread: dict[int, str]) -> dict[str, Any]:
    """Every value as its text: what it means, the field says. Bad rows are noted in `unread`."""
    titles = 0 if csv.header else 1

    def skip(row: Any) -> str:
        unread[row.number - titles] = f"{row.actual_columns} values instead of {row.expected_columns}"
        return "skip"

    return {
        # Only one thread numbers the rows.
        "read_options": pcsv.ReadOptions(
            column_names=list(csv.header) or None, block_size=4 * 1024 * 1024, use_threads=False
        ),
        "parse_options": pcsv.ParseOptions(delimiter=csv.delimiter, newlines_in_values=True, invalid_row_handler=skip),
        "convert_options": pcsv.ConvertOptions(
            check_utf8=False,
            column_types={name: pa.string() for name in names},
            include_columns=list(names) or None,
            null_values=list(csv.nulls),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    }


def _jsonl_columns(path: Path, csv: Csv) -> list[SourceColumn]:
    names: dict[str, None] = {}
    with _opened(path) as file:
        for _, row in islice(_lines(file), SEEN_LINES):
            names |= dict.fromkeys(row if isinstance(row, dict) else ())
    return [SourceColumn(name) for name in names]


def _jsonl(path: Path, names: Sequence[str], csv: Csv) -> Batches:
    with _opened(path) as file:
        yield from _columns(_lines(file), names, file=file)


def _lines(file: BufferedIOBase) -> Numbered:
    """The objects of the lines that are not blank; a text tells why a line is none."""
    parse = decoder()
    for number, line in enumerate(file, start=1):
        if line.strip():
            try:
                row = parse(line.decode())
            except (ValueError, RecursionError):
                yield number, "no JSON"
            else:
                yield number, row if isinstance(row, dict) else "no JSON object"


def _opened(path: Path) -> BufferedIOBase:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _avro_columns(path: Path, csv: Csv) -> list[SourceColumn]:
    with path.open("rb") as file:
        schema = fastavro.reader(file).writer_schema
    fields = schema.get("fields") if isinstance(schema, dict) else None
    if fields is None:
        raise HistoryError(f"{path.name}: it holds no Avro records.")
    return [SourceColumn(each["name"]) for each in fields]


def _avro(path: Path, names: Sequence[str], csv: Csv) -> Batches:
    _require(path, names, [column.name for column in _avro_columns(path, csv)])
    with path.open("rb") as file:
        records: Iterator[Any] = iter(fastavro.reader(file))
        yield from _columns(enumerate(records, start=1), names, file=file)


def _columns(rows: Numbered, names: Sequence[str], *, file: BufferedIOBase) -> Batches:
    while some := list(_some(rows, file)):
        good = [(number, row) for number, row in some if not isinstance(row, str)]
        columns: dict[str, Values] = {name: [row.get(name) for _, row in good] for name in names}
        yield [number for number, _ in good], columns, {number: row for number, row in some if isinstance(row, str)}


def _some(rows: Numbered, file: BufferedIOBase) -> Numbered:
    """The next rows, as many as are a batch by their number or by their bytes in the file."""
    start = file.tell()
    for row in islice(rows, BATCH_ROWS):
        yield row
        if file.tell() - start > BATCH_BYTES:
            return


def _require(path: Path, names: Sequence[str], there: Sequence[str]) -> None:
    if missing := [name for name in names if name not in there]:
        raise HistoryError(f"{path.name}: it has no column {', '.join(missing)}, which the first file has.")


COLUMNS: Mapping[Format, Callable[[Path, Csv], list[SourceColumn]]] = {
    "parquet": _parquet_columns,
    "csv": _csv_columns,
    "jsonl": _jsonl_columns,
    "avro": _avro_columns,
}
READERS: Mapping[Format, Callable[[Path, Sequence[str], Csv], Batches]] = {
    "parquet": _parquet,
    "csv": _csv,
    "jsonl": _jsonl,
    "avro": _avro,
}
