"""Check: the suite that a feed implies, and what a failure says."""

import json
from pathlib import Path
from typing import Any

import pytest

from headrace import feed
from headrace.errors import CheckError
from headrace.outcome import Expectation, Outcome
from headrace.stages.check import ADVICE, judge, shown_key, suite

PAGE = (Path(__file__).parents[2] / "docs" / "checks.md").read_text(encoding="utf-8")


def expectations(declaration: dict[str, Any]) -> set[tuple[str, str]]:
    fields = [
        {"name": "id", "type": "string"},
        {"name": "region", "type": "string"},
        {"name": "status", "type": {"type": "enum", "name": "S", "symbols": ["a", "b"]}},
        {"name": "price", "type": ["null", "double"]},
    ]
    schema = {"type": "record", "name": "Row", "fields": fields, "feed": declaration}
    return {(each.name, json.dumps(each.arguments)) for each in suite(feed.parse("rows.avsc", json.dumps(schema)))}


def test_the_schema_implies_unique_keys_types_required_fields_and_enums() -> None:
    types = {"id": "StringType", "region": "StringType", "status": "StringType", "price": "DoubleType"}
    assert expectations({"key": ["id"]}) == {
        *(
            ("expect_column_values_to_be_in_type_list", json.dumps({"column": name, "type_list": [type_]}))
            for name, type_ in types.items()
        ),
        ("expect_column_values_to_be_unique", '{"column": "id"}'),
        ("expect_column_values_to_not_be_null", '{"column": "id"}'),
        ("expect_column_values_to_not_be_null", '{"column": "region"}'),
        ("expect_column_values_to_not_be_null", '{"column": "status"}'),
        ("expect_column_values_to_be_in_set", '{"column": "status", "value_set": ["a", "b"]}'),
    }


def test_a_key_of_several_fields_is_unique_as_a_whole() -> None:
    assert ("expect_compound_columns_to_be_unique", '{"column_list": ["id", "region"]}') in expectations(
        {"key": ["id", "region"]}
    )


@pytest.mark.parametrize(
    ("check", "name", "arguments"),
    [
        ({"between": [0, 9]}, "expect_column_values_to_be_between", {"min_value": 0, "max_value": 9}),
        ({"one_of": [1, 2]}, "expect_column_values_to_be_in_set", {"value_set": [1, 2]}),
        ({"matches": "^a"}, "expect_column_values_to_match_regex", {"regex": "^a"}),
        ({"not_null": True}, "expect_column_values_to_not_be_null", {}),
        ({"not_null": True, "mostly": 0.9}, "expect_column_values_to_not_be_null", {"mostly": 0.9}),
        ({"unique": True}, "expect_column_values_to_be_unique", {}),
        ({"expect": "expect_column_mean_to_be_between", "arguments": {"min_value": 1}},
         "expect_column_mean_to_be_between", {"min_value": 1}),
    ],
)  # fmt: skip
def test_a_short_form_becomes_its_expectation(check: dict[str, Any], name: str, arguments: dict[str, Any]) -> None:
    declared = expectations({"key": ["id"], "checks": [{"column": "price", **check}]})
    assert (name, json.dumps({"column": "price", **arguments})) in declared


@pytest.mark.parametrize(
    ("check", "name", "arguments"),
    [
        ({"unique": ["id", "region"]}, "expect_compound_columns_to_be_unique", {"column_list": ["id", "region"]}),
        ({"row_count": [1, None]}, "expect_table_row_count_to_be_between", {"min_value": 1}),
        ({"column": "id", "length": [None, 8]}, "expect_column_value_lengths_to_be_between",
         {"column": "id", "max_value": 8}),
    ],
)  # fmt: skip
def test_a_short_form_may_be_about_more_than_one_column(
    check: dict[str, Any], name: str, arguments: dict[str, Any]
) -> None:
    assert (name, json.dumps(arguments)) in expectations({"key": ["id"], "checks": [check]})


def test_bounds_and_patterns_hold_only_where_a_column_has_the_values_as_they_came() -> None:
    properties = {
        "id": {"type": "string", "pattern": "^a", "maxLength": 9},
        "on": {"type": "string", "format": "date", "pattern": "^2", "maxLength": 10, "enum": ["2026-01-01"]},
        "any": {"type": ["string", "integer"], "minimum": 1, "pattern": "^a"},
        "size": {"type": "integer", "minimum": 1, "exclusiveMaximum": 9},
    }
    schema = {"type": "object", "properties": properties, "x-feed": {"key": ["id"]}}
    found = [each for each in suite(feed.parse("rows.json", json.dumps(schema))) if "type" not in each.name]
    assert [str(each) for each in found] == [
        "id: every value once",
        "id: not null",
        "id: at most 9 characters",
        "id: matches ^a",
        "size: at least 1 and less than 9",
    ]


def test_what_is_about_a_personal_field_says_so_and_a_personal_key_is_not_shown() -> None:
    fields = [{"name": "id", "type": "string"}, {"name": "mail", "type": "string", "pii": "email"}]
    schema = {"type": "record", "name": "Row", "fields": fields}
    by_id, by_mail = (
        feed.parse("rows.avsc", json.dumps({**schema, "feed": {"key": [key], "owner": "a"}})) for key in ("id", "mail")
    )
    assert {each.arguments["column"] for each in suite(by_id) if each.personal} == {"mail"}
    assert (shown_key(by_id), shown_key(by_mail)) == (["id"], [])


def outcome(*, success: bool, severity: Any = "stop") -> Outcome:
    expectation = Expectation(name="expect_it", arguments={"column": "price"}, severity=severity)
    return Outcome(expectation=expectation, success=success, unexpected=None if success else 3, rows=9, keys=("a", "b"))


def test_a_failed_check_says_which_where_the_rows_wait_and_what_to_do() -> None:
    with pytest.raises(CheckError) as raised:
        judge([outcome(success=True), outcome(success=False)], feed="orders", branch="run_1", page="http://a/checks")
    told = str(raised.value)
    assert "1 of 2 checks failed: price: it (expect_it: 3 of 9 rows; keys a, b)." in told
    assert "headrace compare orders run_1" in told
    assert told.endswith("http://a/checks")
    assert "branch run_1 of clean.orders" in told
    assert "clear the transform task" in told


def test_a_check_that_only_warns_does_not_stop_the_run() -> None:
    warned = judge([outcome(success=False, severity="warn")], feed="orders", branch="run_1")
    assert len(warned) == 1


def test_the_page_shows_what_a_failure_advises() -> None:
    assert ADVICE in " ".join(PAGE.split())
