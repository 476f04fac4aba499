"""Check: the suite that a feed implies, and what a failure says."""

import json
from typing import Any

import pytest

from headrace import feed
from headrace.errors import CheckError
from headrace.stages.check import Expectation, Outcome, judge, suite


def expectations(declaration: dict[str, Any]) -> set[tuple[str, str]]:
    fields = [
        {"name": "id", "type": "string"},
        {"name": "region", "type": "string"},
        {"name": "status", "type": {"type": "enum", "name": "S", "symbols": ["a", "b"]}},
        {"name": "price", "type": ["null", "double"]},
    ]
    schema = {"type": "record", "name": "Row", "fields": fields, "feed": declaration}
    return {(each.name, json.dumps(each.arguments)) for each in suite(feed.parse("rows.avsc", json.dumps(schema)))}


def test_the_schema_implies_unique_keys_required_fields_and_enums() -> None:
    assert expectations({"key": ["id"]}) == {
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
        ({"expect": "expect_column_mean_to_be_between", "arguments": {"min_value": 1}},
         "expect_column_mean_to_be_between", {"min_value": 1}),
    ],
)  # fmt: skip
def test_a_short_form_becomes_its_expectation(check: dict[str, Any], name: str, arguments: dict[str, Any]) -> None:
    declared = expectations({"key": ["id"], "checks": [{"column": "price", **check}]})
    assert (name, json.dumps({"column": "price", **arguments})) in declared


def outcome(*, success: bool, severity: Any = "stop") -> Outcome:
    expectation = Expectation(name="expect_it", arguments={"column": "price"}, severity=severity)
    return Outcome(expectation=expectation, success=success, unexpected=None if success else 3)


def test_a_failed_check_says_which_where_the_rows_wait_and_what_to_do() -> None:
    with pytest.raises(CheckError) as raised:
        judge([outcome(success=True), outcome(success=False)], feed="orders", branch="run_1")
    told = str(raised.value)
    assert "1 of 2 checks failed: price: expect_it (3 rows)" in told
    assert "branch run_1 of clean.orders" in told
    assert "clear the transform task" in told


def test_a_check_that_only_warns_does_not_stop_the_run() -> None:
    warned = judge([outcome(success=False, severity="warn")], feed="orders", branch="run_1")
    assert len(warned) == 1
