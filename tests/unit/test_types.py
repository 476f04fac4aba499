"""Types: the documented tables are what the code does, and values become texts and rows that lose nothing."""

import subprocess
import sys
from ast import literal_eval
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.types import BinaryType, FloatType, StringType, TimestamptzType

from headrace import type_reference
from headrace.arrow import travelling
from headrace.columns import JsonText, TimeText
from headrace.columns.field_type import FieldType, list_of, map_of, struct
from headrace.constructs import CONSTRUCTS, REFUSED
from headrace.json_text import canonical, decoder
from spark_jobs import json_rows

DOCS = Path(__file__).parents[2] / "docs"
REFUSALS = [(schema_type, each) for schema_type, refused in REFUSED.items() for each in refused]


def test_the_page_tells_what_the_code_does() -> None:
    page = (DOCS / type_reference.PAGE).read_text(encoding="utf-8")
    assert type_reference.renewed(page) == page, "run python -m headrace.type_reference"


def test_every_construct_has_a_name_of_its_own() -> None:
    for constructs in CONSTRUCTS.values():
        assert len({each.field for each in constructs}) == len(constructs)


@pytest.mark.parametrize(("schema_type", "construct"), REFUSALS, ids=lambda each: getattr(each, "name", each))
def test_what_is_refused_is_refused_with_its_field_and_what_to_do(schema_type: Any, construct: Any) -> None:
    told = type_reference.refusal(schema_type, construct)
    assert construct.field in told
    assert told.count(". ") >= 1, "says what to do"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"b": 1, "a": [true, null, "ä\\n"]}', '{"a":[true,null,"ä\\n"],"b":1}'),
        ("[1.0, 1.10, 1e2, -0.0, 0.1]", "[1,1.1,100,0,0.1]"),
        ("[1234567890123456789012345678901234567890.000000000000000000000000000001]",) * 2,
        ("[1e-300]", "[0." + "0" * 299 + "1]"),
    ],
)
def test_json_text_has_one_form_and_keeps_every_digit(text: str, expected: str) -> None:
    assert canonical(decoder()(text)) == expected
    assert canonical(decoder()(expected)) == expected


@pytest.mark.parametrize("text", ["[NaN]", "[1e400]", "[1e-400]", "{", "[Infinity]"])
def test_what_no_store_keeps_is_no_json_text(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        canonical(decoder()(text))


def test_nested_values_travel_as_json() -> None:
    members = {
        "at": (TimestamptzType(), datetime(2026, 1, 2, tzinfo=UTC)),
        "bytes": (BinaryType(), b"\0\xff"),
        "json": (JsonText(), '{"a":[1.50]}'),
        "list": (list_of(FloatType()), [0.1, float("nan"), None]),
        "map": (map_of(StringType()), [("k", "v")]),
    }
    named = [FieldType(name, each, required=False) for name, (each, _) in members.items()]
    type_ = struct([*named, FieldType("later", StringType(), required=False)])
    values = pa.array([{name: value for name, (_, value) in members.items()}, None], pa.struct([
        ("at", pa.timestamp("us", "UTC")), ("bytes", pa.binary()), ("json", pa.string()),
        ("list", pa.list_(pa.float32())), ("map", pa.map_(pa.string(), pa.string())),
    ]))  # fmt: skip
    expected = (
        '{"at": "2026-01-02T00:00:00Z", "map": {"k": "v"}, "json": {"a": [1.5]}, "list": [0.1, "NaN", null], '
        '"bytes": "AP8=", "later": null}'
    )
    assert travelling(pa.chunked_array([values]), type_).to_pylist() == [expected, None]


def test_a_time_travels_as_a_time() -> None:
    assert travelling(pa.chunked_array([["23:59:59.999999", None]]), TimeText()).type == pa.time64("us")


@pytest.mark.parametrize(
    ("shape", "value", "expected"),
    [
        ("long", Decimal("3.0"), 3),
        ("long", -(2**63), -(2**63)),
        ("double", 3, 3.0),
        ("date", "0001-01-01", date(1, 1, 1)),
        ("timestamptz", "2026-06-30t23:30:00.123456789-01:00", datetime(2026, 7, 1, 0, 30, 0, 123456, UTC)),
        ("uuid", "F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"),
        ("json", {"b": [Decimal("1.50")], "a": None}, '{"a":null,"b":[1.5]}'),
        ("json", "\\u0000", '"\\\\u0000"'),
        (("map", "long"), {"a": 1, "b": None}, [("a", 1), ("b", None)]),
        (("struct", {"a": "string", "b": "long"}), {"a": "x", "c": 1}, {"a": "x", "b": None}),
    ],
)
def test_a_json_value_is_read_as_its_column(shape: Any, value: Any, expected: Any) -> None:
    assert json_rows.reader(shape)(value) == expected


@pytest.mark.parametrize(
    ("shape", "value"),
    [
        ("long", 2**63),
        ("long", True),
        ("long", Decimal("1.5")),
        ("double", Decimal("1e400")),
        ("string", 1),
        ("string", "\ud800"),
        ("uuid", "f81d4fae"),
        ("timestamptz", "2026-12-31T23:59:60Z"),
        ("timestamptz", "2026-12-31T23:59:59"),
        ("timestamptz", "0001-01-01T00:00:00+01:00"),
        ("json", {"a": ["\0"]}),
        (("list", "long"), {"a": 1}),
        (("struct", {"a": "long"}), []),
    ],
)
def test_a_json_value_that_fits_no_column_is_not_bent_to_fit(shape: Any, value: Any) -> None:
    with pytest.raises((ValueError, OverflowError)):
        json_rows.reader(shape)(value)


WORKER = """
import pickle, sys
sys.modules["headrace"] = sys.modules["spark_jobs"] = None
rows, shape = pickle.load(sys.stdin.buffer)
print(rows([1, 1], [b'{"a": {"b": 1.50}}', b"{"], writers={1: "{}"}, shape=shape).to_pylist())
"""


def test_what_runs_in_sparks_workers_takes_none_of_our_modules_with_it() -> None:
    # Imported here, for it brings pyspark, and has the two modules sent by value.
    from pyspark import cloudpickle

    from spark_jobs import decoding

    sent = cloudpickle.dumps((decoding.rows, ("struct", {"a": "json"})))
    worker = subprocess.run([sys.executable, "-c", WORKER], input=sent, capture_output=True, check=True)
    assert literal_eval(worker.stdout.decode()) == [
        {"fault": None, "row": {"a": '{"b":1.5}'}},
        {"fault": "undecodable", "row": None},
    ]
