"""Decoding: every form in which a record names its schema, and every version of it, in one pass."""

import json
import uuid
from typing import Any

import pytest
from decoding_bench import Sent, avro_bytes, decoded, frame, reading

pytestmark = pytest.mark.usefixtures("stack")

OLD = {"type": "record", "name": "Row", "fields": [{"name": "id", "type": "string"}]}
NEW = {**OLD, "fields": [*OLD["fields"], {"name": "n", "type": "long", "default": 7}]}
TEXT = {"type": "object", "properties": {"id": {"type": "string"}, "n": {"type": "integer"}}, "required": ["id"]}
MARK = "__value_schema_id"


def seen(rows: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
    """The id and the reason, or the row, of each record."""
    return [(row["schema_id"], row["reason"] or tuple(row["row"].values())) for row in rows]


def test_a_header_or_a_frame_names_the_schema_by_its_id_or_its_guid() -> None:
    old, new, other = (uuid.uuid4() for _ in range(3))
    body, longer = avro_bytes(OLD, {"id": "a"}), avro_bytes(NEW, {"id": "b", "n": 1})
    guid = b"\1" + new.bytes
    records = [
        Sent(frame(1) + body),
        Sent(longer, [("trace", b"x"), (MARK, guid)]),
        Sent(longer, [(MARK, frame(2)), (MARK, b"\1" + old.bytes)]),
        Sent(guid + longer),
        Sent(frame(1) + body, [(MARK, None)]),
        Sent(body, [("__key_schema_id", guid)]),
        Sent(longer, [(MARK, b"\1" + other.bytes)]),
        Sent(longer, [(MARK, b"\2")]),
        Sent(longer, [(MARK, frame(9))]),
        Sent(frame(1)[:4]),
        Sent(b""),
        Sent(None, [(MARK, guid)], key=b"c"),
    ]
    guids = {old.hex.upper(): 1, new.hex.upper(): 2}
    found = seen(decoded(records, guids=guids, **reading("AVRO", NEW, {1: OLD, 2: NEW})))
    assert found == [
        (1, ("a", 7)),
        (2, ("b", 1)),
        (2, ("b", 1)),
        (2, ("b", 1)),
        (1, ("a", 7)),
        (None, "unframed"),
        (None, "unknown_id"),
        (None, "unknown_id"),
        (9, "unknown_id"),
        (None, "unframed"),
        (None, "unframed"),
        (2, ("c", None)),
    ]


def test_avro_without_a_frame_is_read_by_the_declared_version_and_a_frame_counts_by_its_id() -> None:
    long_zero = {**OLD, "fields": [{"name": "n", "type": "long"}, *OLD["fields"]]}
    body = avro_bytes(long_zero, {"n": 0, "id": "abcdefgh"})
    assert body[0] == 0, "it looks like a frame"
    records = [Sent(body), Sent(frame(2) + avro_bytes(NEW, {"id": "b", "n": 1})), Sent(b"\xff"), Sent(None, key=b"c")]
    versions = reading("AVRO", NEW, {1: long_zero, 2: NEW})
    undeclared, declared = decoded(records, **versions), decoded(records, unframed=1, **versions)
    assert seen(undeclared)[0][1] == "unknown_id"
    assert seen(declared) == [(1, ("abcdefgh", 0)), (2, ("b", 1)), (1, "undecodable"), (None, ("c", None))]


def test_json_without_a_frame_is_read_by_the_declared_version() -> None:
    stricter = {**TEXT, "required": ["id", "n"]}
    texts = [b'{"id": "a", "n": 1}', b'{"id": "b"}', b" \n[1]", b"", b"not json"]
    records = [*map(Sent, texts), Sent(frame(1) + texts[1]), Sent(frame(9) + texts[1])]
    found = seen(decoded(records, unframed=2, **reading("JSON", TEXT, {1: TEXT, 2: stricter})))
    assert found == [
        (2, ("a", 1)),
        (2, "invalid"),
        (2, "invalid"),
        (2, "undecodable"),
        (2, "undecodable"),
        (1, ("b", None)),
        (9, "unknown_id"),
    ]


def test_records_of_a_drained_topic_have_a_declaration_of_their_own() -> None:
    body = avro_bytes(OLD, {"id": "a"})
    records = [Sent(body, drained=True), Sent(frame(1) + body, drained=True), Sent(body)]
    plan = {**reading("AVRO", NEW, {2: NEW}), "drained": {1: json.dumps(OLD)}}
    assert [row["reason"] for row in decoded(records, **plan)] == ["unframed", None, "unframed"]
    assert seen(decoded(records, drained_unframed=1, **plan))[:2] == [(1, ("a", 7)), (1, ("a", 7))]
