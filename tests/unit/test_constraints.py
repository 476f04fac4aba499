"""Constraints: what a schema says of values, and its patterns as Java reads them."""

import json
from typing import Any

import pytest

from headrace import feed
from headrace.constraints import Bound, Constraint, constraints
from headrace.java_pattern import java_pattern


def of_json(field: dict[str, Any], **whole: Any) -> Constraint | None:
    schema = {"type": "object", "properties": {"id": {"type": "string"}, "x": field}, "required": ["id"], **whole}
    return constraints(feed.parse("rows.json", json.dumps({**schema, "x-feed": {"key": ["id"]}}))).get("x")


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ({"type": "string"}, None),
        ({"enum": ["a", "b", None]}, Constraint(symbols=("a", "b"))),
        ({"const": "a"}, Constraint(symbols=("a",))),
        ({"type": "integer", "minimum": 0}, Constraint(low=Bound(0))),
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 9.5}, Constraint(low=Bound(0, True), high=Bound(9.5))),
        ({"type": "number", "minimum": 5, "exclusiveMinimum": 1}, Constraint(low=Bound(5))),
        ({"type": "number", "maximum": 5, "exclusiveMaximum": 5}, Constraint(high=Bound(5, True))),
        ({"type": "integer", "maximum": 2**64}, None),
        ({"type": ["string", "null"], "minLength": 1, "maxLength": 3}, Constraint(shortest=1, longest=3)),
        ({"type": "string", "minLength": 0}, None),
        ({"type": "string", "pattern": "^a$"}, Constraint(pattern=r"^a\z")),
        ({"type": "string", "pattern": "(?<=a)b"}, None),
        ({"anyOf": [{"type": "null"}, {"type": "integer", "maximum": 3}]}, Constraint(high=Bound(3))),
        ({"anyOf": [{"type": "integer", "maximum": 3}, {"type": "integer", "minimum": 7}]}, None),
        ({"$ref": "#/$defs/size"}, Constraint(low=Bound(1))),
        ({"allOf": [{"$ref": "#/$defs/size"}, {"maximum": 4}]}, Constraint(low=Bound(1), high=Bound(4))),
    ],
)
def test_a_json_schema_constrains_values(field: dict[str, Any], expected: Constraint | None) -> None:
    assert of_json(field, **{"$defs": {"size": {"type": "integer", "minimum": 1}}}) == expected


def test_draft_4_says_by_a_boolean_that_a_bound_is_left_out() -> None:
    field = {"type": "integer", "minimum": 0, "exclusiveMinimum": True}
    assert of_json(field, **{"$schema": "http://json-schema.org/draft-04/schema#"}) == Constraint(low=Bound(0, True))


def test_avro_constrains_by_enums_also_in_a_union_and_by_name() -> None:
    status = {"type": "enum", "name": "Status", "symbols": ["a", "b"]}
    fields = [
        {"name": "id", "type": "string"},
        {"name": "status", "type": ["null", status]},
        {"name": "before", "type": ["null", "Status"]},
        {"name": "mixed", "type": ["string", {"type": "enum", "name": "Other", "symbols": ["x"]}]},
    ]
    schema = {"type": "record", "name": "Row", "fields": fields, "feed": {"key": ["id"]}}
    symbols = Constraint(symbols=("a", "b"))
    assert constraints(feed.parse("rows.avsc", json.dumps(schema))) == {"status": symbols, "before": symbols}


@pytest.mark.parametrize(
    ("pattern", "java"),
    [
        ("^[A-Z]{2}$", r"^[A-Z]{2}\z"),
        (r"\d+\.\d{2,}", r"\d+\.\d{2,}"),
        (r"[$^]\$", r"[$^]\$"),
        (r"[a[&]", r"[a\[\&]"),
        (r"\u{1F600}", r"\x{1F600}"),
        (r"(?<year>\d{4})-\k<year>", r"(?<year>\d{4})-\k<year>"),
        (r"\v", r"\x0B"),
        (r"^\/", r"^\/"),
        ("(?=a)(?!b)(?:c)", "(?=a)(?!b)(?:c)"),
    ],
)
def test_a_pattern_is_rewritten_for_java(pattern: str, java: str) -> None:
    assert java_pattern(pattern) == java


@pytest.mark.parametrize("pattern", ["[]", "[^]", "a{", "}", r"\e", "(?<=a)b", "(?i)a", "[a", r"[\b]", r"\0", r"[\S]"])
def test_a_pattern_that_java_would_read_otherwise_is_given_up(pattern: str) -> None:
    assert java_pattern(pattern) is None
