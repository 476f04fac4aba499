"""Absence, proven: every object of a feed in the lake is read, and none holds what was forgotten.

The bytes of each are looked through as they lie, and once more as they are meant: Parquet column by column, Avro value
by value, so that no compression, dictionary or statistic hides anything. What was found is told by its place alone.
"""

import io
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from botocore.exceptions import ClientError

from headrace import away, layout, objects
from headrace.feed import Feed
from headrace.filed import claims
from headrace.lake import Lake
from headrace.objects import Object, place
from headrace.stages.sweep import ARCHIVED

READERS = 2
"""How many objects are held in memory at once."""
MISSING = ("NoSuchKey", "404")


@dataclass(frozen=True)
class Found:
    """A place that still holds something."""

    object: str
    where: str
    """A column, or how its bytes were read."""


@dataclass(frozen=True)
class Absence:
    """What was read, and what was found all the same."""

    objects: int
    bytes: int
    needles: int
    """How many keys and values were looked for."""
    found: tuple[Found, ...]


@away.tells
def prove(feed: Feed, values: Collection[str], *, lake: Lake) -> Absence:
    """Look for values in everything that the lake holds of a feed."""
    needles = sorted({form for value in values for form in forms(value)})
    bucket = place(lake.location)[0]

    def searched(each: Object) -> tuple[int, list[Found]]:
        body = _read(lake, bucket, each.key)
        return (
            (0, [])
            if body is None
            else (len(body), [Found(each.key, where) for where in search(each.key, body, needles)])
        )

    every = {each.key: each for each in _objects(feed, lake)}
    with ThreadPoolExecutor(READERS) as pool:
        done = list(pool.map(searched, every.values()))
    found = tuple(chain.from_iterable(each for _, each in done))
    return Absence(len(every), sum(bytes_ for bytes_, _ in done), len(values), found)


def forms(value: str) -> set[bytes]:
    """A text as bytes may hold it: as it is, and as JSON writes it."""
    plain = (json.dumps(value, ensure_ascii=ascii_)[1:-1].encode() for ascii_ in (True, False))
    return {value.encode(), *plain}


def _objects(feed: Feed, lake: Lake) -> Iterator[Object]:
    """All that lies under the feed's prefixes; of folders that archives of several feeds share, its own files."""
    bucket = place(lake.location)[0]
    tables = (
        layout.archive_table, layout.clean_table, layout.quarantine_table, layout.reconciled_table,
        layout.forgotten_table,
    )  # fmt: skip
    locations = [layout.table_location(lake.location, table(feed.name)) for table in tables]
    locations += [layout.results_location(lake.location, feed.name), layout.imports_location(lake.location, feed.name)]
    for location in locations:
        yield from objects.listed(lake.s3, bucket, f"{place(location)[1]}/")
    for folder in _archive_folders(feed, lake):
        for each in objects.listed(lake.s3, bucket, folder):
            name = ARCHIVED.fullmatch(each.key.rpartition("/")[2])
            if name is None or name["feed"] == feed.name:
                yield each


def _archive_folders(feed: Feed, lake: Lake) -> set[str]:
    """Where the archive's files lie: a folder for each topic, former ones that it still names too."""
    drains, prefix = feed.declaration.topic.drains, place(f"{lake.location.rstrip('/')}/archive")[1]
    table = lake.find(layout.archive_table(feed.name))
    current = table.current_snapshot() if table else None
    named = {each.name.partition("/")[0] for each in claims(table, current.snapshot_id)} if table and current else set()
    return {f"{prefix}/{topic}/" for topic in {feed.topic, *([drains.topic] if drains else []), *named}}


def _read(lake: Lake, bucket: str, key: str) -> bytes | None:
    """An object's bytes; None when somebody has removed it meanwhile."""
    try:
        return lake.s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") in MISSING:
            return None
        raise


def search(key: str, body: bytes, needles: Collection[bytes]) -> Iterator[str]:
    """Where an object holds one of the needles."""
    if _holds(body, needles):
        yield "its bytes"
    read = READ.get(key.rpartition(".")[2])
    if read is not None and body:
        yield from read(body, needles)


def _holds(content: bytes, needles: Collection[bytes]) -> bool:
    return any(needle in content for needle in needles)


def _parquet(body: bytes, needles: Collection[bytes]) -> Iterator[str]:
    seen: set[str] = set()
    with pq.ParquetFile(pa.BufferReader(body)) as file:
        for number in range(file.num_row_groups):
            for name, column in zip(file.schema_arrow.names, file.read_row_group(number).columns, strict=True):
                if name not in seen and any(_in_array(chunk, needles) for chunk in column.chunks):
                    seen.add(name)
                    yield f"column {name}"


def _in_array(values: pa.Array, needles: Collection[bytes]) -> bool:
    """Whether a text or some bytes anywhere inside an array hold a needle."""
    type_ = values.type
    if pa.types.is_dictionary(type_):
        return _in_array(values.dictionary, needles)
    if pa.types.is_struct(type_):
        return any(_in_array(each, needles) for each in values.flatten())
    if pa.types.is_map(type_):
        return any(_in_array(each, needles) for each in (values.keys, values.items))
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return _in_array(values.flatten(), needles)
    if not (pa.types.is_string(type_) or pa.types.is_binary(type_) or pa.types.is_large_string(type_)):
        return False
    octets = values.cast(pa.large_binary() if pa.types.is_large_string(type_) else pa.binary())
    # All values lie one behind the other: only where that holds a needle is each asked.
    content = octets.buffers()[2]
    together = content.to_pybytes() if content is not None else b""
    return any(needle in together and bool(pc.any(pc.match_substring(octets, needle)).as_py()) for needle in needles)


def _avro(body: bytes, needles: Collection[bytes]) -> Iterator[str]:
    if any(_holds(each, needles) for entry in fastavro.reader(io.BytesIO(body)) for each in _leaves(entry)):
        yield "a manifest's entries"


def _leaves(value: Any) -> Iterator[bytes]:
    match value:
        case bytes():
            yield value
        case str():
            yield value.encode()
        case dict():
            for each in value.values():
                yield from _leaves(each)
        case list() | tuple():
            for each in value:
                yield from _leaves(each)


Read = Callable[[bytes, Collection[bytes]], Iterator[str]]
READ: Mapping[str, Read] = {"parquet": _parquet, "avro": _avro}
"""How objects of a kind are read as they are meant; others are texts, whose bytes say all."""
