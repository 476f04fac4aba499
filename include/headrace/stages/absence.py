"""Absence, proven: every object of a feed in the lake is read, and none holds what was forgotten.

The bytes of each are looked through as they lie, and once more as they are meant: Parquet column by column, Avro value
by value, so that no compression, dictionary or statistic hides anything. What was found is told by its place alone.
"""

import io
import json
import re
import uuid
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
from headrace.objects import place
from headrace.shown import OCTETS
from headrace.stages.locating import SHORTEST
from headrace.stages.sweep import ARCHIVED

READERS = 2
"""How many objects are held in memory at once."""
LONG = 8
"""What has fewer bytes is met by chance: in compressed bytes anything, among digits that tell other things a number."""
METADATA = ".metadata.json"
"""How a table's own metadata is called: it holds counts, sizes, moments and ids, and no value of a row."""
MISSING = ("NoSuchKey", "404")
UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
HEX = re.compile(f"{OCTETS}([0-9a-f]*)")

LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
TEXTS = (
    pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view,
    pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary,
)  # fmt: skip
"""Texts and bytes, in whichever of Arrow's forms a file's writer chose."""
OTHERS = (pa.types.is_null, pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal,
          pa.types.is_temporal)  # fmt: skip
"""What holds no text. Any type that is in none of these was never thought of, and proves nothing."""


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
def prove(feed: Feed, values: Collection[str], *, lake: Lake, stagings: Collection[str] = ()) -> Absence:
    """Look for values in everything that the lake holds of a feed; `stagings` as upkeep takes them."""
    needles = sorted({form for value in values for form in forms(value)})

    def searched(there: tuple[str, str]) -> tuple[int, list[Found]]:
        bucket, key = there
        body = _read(lake, bucket, key)
        return (0, []) if body is None else (len(body), [Found(key, where) for where in search(key, body, needles)])

    every = sorted({*_objects(feed, lake), *_staged(feed, {lake.location, *stagings}, lake)})
    with ThreadPoolExecutor(READERS) as pool:
        done = list(pool.map(searched, every))
    found = tuple(chain.from_iterable(each for _, each in done))
    return Absence(len(every), sum(bytes_ for bytes_, _ in done), len(values), found)


def forms(value: str) -> set[bytes]:
    """A text as bytes may hold it: as it is, and as JSON writes it; of a uuid, or bytes told in hex, those too."""
    plain = (json.dumps(value, ensure_ascii=ascii_)[1:-1].encode() for ascii_ in (True, False))
    return {value.encode(), *plain, *_meant(value)}


def _meant(value: str) -> Iterator[bytes]:
    if UUID.fullmatch(value):
        yield from (value.upper().encode(), uuid.UUID(value).bytes)
    if (told := HEX.fullmatch(value)) and len(octets := bytes.fromhex(told[1])) >= SHORTEST:
        yield octets


def _staged(feed: Feed, locations: Collection[str], lake: Lake) -> Iterator[tuple[str, str]]:
    """What loads have on its way to warehouses, or left there."""
    for location in locations:
        bucket, prefix = place(layout.stagings_location(location, feed.name))
        for each in objects.listed(lake.s3, bucket, f"{prefix}/"):
            yield bucket, each.key


def _objects(feed: Feed, lake: Lake) -> Iterator[tuple[str, str]]:
    """All that lies under the feed's prefixes; of folders that archives of several feeds share, its own files."""
    bucket = place(lake.location)[0]
    tables = (
        layout.archive_table, layout.clean_table, layout.quarantine_table, layout.reconciled_table,
        layout.forgotten_table,
    )  # fmt: skip
    locations = [layout.table_location(lake.location, table(feed.name)) for table in tables]
    locations += [layout.results_location(lake.location, feed.name), layout.imports_location(lake.location, feed.name)]
    for location in locations:
        yield from ((bucket, each.key) for each in objects.listed(lake.s3, bucket, f"{place(location)[1]}/"))
    for folder in _archive_folders(feed, lake):
        for each in objects.listed(lake.s3, bucket, folder):
            name = ARCHIVED.fullmatch(each.key.rpartition("/")[2])
            if name is None or name["feed"] == feed.name:
                yield bucket, each.key


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
    read = READ.get(key.rpartition(".")[2])
    if _holds(body, _sought(key, needles, compressed=read is not None)):
        yield "its bytes"
    if read is not None and body:
        yield from read(body, needles)


def _sought(key: str, needles: Collection[bytes], *, compressed: bool) -> list[bytes]:
    """Those of the needles that an object's bytes, as they lie, hold by no mere chance."""
    if compressed:
        return [needle for needle in needles if len(needle) >= LONG]
    return [needle for needle in needles if not (_is_short_number(needle) and key.endswith(METADATA))]


def _is_short_number(needle: bytes) -> bool:
    return len(needle) < LONG and needle.isdigit()


def _holds(content: bytes, needles: Collection[bytes]) -> bool:
    return any(needle in content and _stands_there(needle, content) for needle in needles)


def _stands_there(needle: bytes, content: bytes) -> bool:
    """Whether a needle that is inside something is there as itself: a short number is not part of a longer one."""
    if not _is_short_number(needle):
        return True
    return re.search(rb"(?<![\w.+-])" + needle + rb"(?![\w.+-])", content) is not None


def _parquet(body: bytes, needles: Collection[bytes]) -> Iterator[str]:
    seen: set[str] = set()
    with pq.ParquetFile(pa.BufferReader(body)) as file:
        for number in range(file.num_row_groups):
            for name, column in zip(file.schema_arrow.names, file.read_row_group(number).columns, strict=True):
                if name not in seen and any(holds(chunk, needles) for chunk in column.chunks):
                    seen.add(name)
                    yield f"column {name}"


def holds(values: pa.Array, needles: Collection[bytes]) -> bool:
    """Whether a text or some bytes anywhere inside an array hold a needle."""
    type_ = values.type
    if isinstance(values, pa.ExtensionArray):
        return holds(values.storage, needles)
    if pa.types.is_dictionary(type_):
        return holds(values.dictionary, needles)
    if pa.types.is_struct(type_):
        return any(holds(each, needles) for each in values.flatten())
    if pa.types.is_map(type_):
        return any(holds(each, needles) for each in (values.keys, values.items))
    if any(each(type_) for each in LISTS):
        return holds(values.flatten(), needles)
    if any(each(type_) for each in OTHERS):
        return False
    if not any(each(type_) for each in TEXTS):
        raise TypeError(f"nobody knows how to look through values of type {type_}: absence is not proven.")
    octets = values.cast(pa.large_binary())
    # All values lie one behind the other: only where that holds a needle is each asked.
    content = octets.buffers()[2]
    together = content.to_pybytes() if content is not None else b""
    return any(needle in together and _is_in(octets, needle) for needle in needles)


def _is_in(octets: pa.Array, needle: bytes) -> bool:
    found = octets.filter(pc.fill_null(pc.match_substring(octets, needle), False))
    return any(_stands_there(needle, value) for value in found.to_pylist())


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
