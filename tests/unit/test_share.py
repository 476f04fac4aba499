"""Shares and masks: what leaves the lake."""

import json
from datetime import date, time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace import feed, masks, withheld
from headrace.declaration import Mask
from headrace.share import keys, share

SCHEMAS = Path(__file__).parents[2] / "schemas"
CUSTOMERS = feed.load(SCHEMAS / "customers.avsc")


def test_a_personal_field_that_is_not_mentioned_is_left_out() -> None:
    names = share(CUSTOMERS, "engineering").names
    assert "email" in names  # masked by name
    assert not {"name", "phone", "birth_date"} & set(names)


def test_a_kept_personal_field_goes_there_as_it_is() -> None:
    finance = share(CUSTOMERS, "finance")
    assert {"name", "email"} <= set(finance.names)
    assert "name" not in finance.masks


def test_a_mask_changes_the_columns_type() -> None:
    schema = share(CUSTOMERS, "finance").schema
    assert schema.field("birth_date").type == pa.int32()
    assert schema.field("phone").type == pa.string()


@pytest.mark.parametrize(
    ("mask", "values", "expected"),
    [
        ("last4", ["+49301234567", "1234", None], ["4567", None, None]),
        ("year", [date(1980, 5, 1), None], [1980, None]),
        ("null", ["a", None], [None, None]),
    ],
)
def test_a_mask_hides_a_value_and_leaves_null_alone(mask: Mask, values: list[object], expected: list[object]) -> None:
    masked = masks.apply(pa.table({"field": values}), {"field": mask}, key=b"key")
    assert masked.column("field").to_pylist() == expected


def test_a_hash_is_stable_under_one_key_and_other_under_another() -> None:
    table = pa.table({"field": ["a@b.c", "d@e.f", "a@b.c", None]})
    one, two = (masks.apply(table, {"field": "hash"}, key=key).column("field").to_pylist() for key in (b"1", b"2"))
    assert one[0] == one[2] != one[1]
    assert one[3] is None
    assert not set(one[:3]) & set(two[:3])


def noted(field: dict[str, Any], warehouses: dict[str, Any], before: str | None = None) -> str:
    fields = [{"name": "id", "type": "string"}, {"type": "string", **field}]
    schema = {"type": "record", "name": "R", "feed": {"key": ["id"], "warehouses": warehouses}, "fields": fields}
    return withheld.note(feed.parse("r.avsc", json.dumps(schema)), before)


SECRET = {"name": "secret"}


@pytest.mark.parametrize("said", [{"drop": ["secret"]}, {"mask": {"secret": "hash"}}])
def test_a_column_that_the_feed_dropped_goes_to_none_from_which_it_was_withheld(said: dict[str, Any]) -> None:
    note = noted(SECRET, {"engineering": said, "finance": {}})
    assert withheld.reaches("secret", "finance", noted=note)
    assert not withheld.reaches("secret", "engineering", noted=note)
    assert not withheld.reaches("secret", "growth", noted=note), "it was not there then, and somebody was kept out"
    assert withheld.reaches("id", "growth", noted=note)
    assert not withheld.reaches("secret", "finance", noted=None), "nothing is known of it"


def test_what_was_withheld_is_remembered_of_a_warehouse_that_is_named_no_more() -> None:
    first = noted(SECRET, {"engineering": {"drop": ["secret"]}, "growth": {}, "finance": {}})
    note = noted(SECRET, {"finance": {}}, first)
    reached = [name for name in ("engineering", "finance", "growth") if withheld.reaches("secret", name, noted=note)]
    assert reached == ["finance"], "growth may be another team's by now"
    note = noted(SECRET, {"engineering": {}}, first)
    assert withheld.reaches("secret", "engineering", noted=note), "it may see it now"


def test_a_renamed_column_takes_along_from_whom_it_was_withheld() -> None:
    first = noted(SECRET, {"engineering": {"drop": ["secret"]}})
    note = noted({"name": "hidden", "aliases": ["secret"]}, {"finance": {}}, first)
    assert not withheld.reaches("hidden", "engineering", noted=note)
    assert withheld.reaches("hidden", "finance", noted=note)


def test_a_personal_column_that_nothing_is_said_of_was_withheld() -> None:
    note = noted({**SECRET, "pii": "name"}, {"engineering": {}, "finance": {"keep": ["secret"]}})
    assert not withheld.reaches("secret", "engineering", noted=noted(SECRET, {"finance": {}}, note))


def test_keys_that_are_times_are_told_as_their_warehouse_has_them() -> None:
    declared = {"key": ["at"], "warehouses": {"finance": {}}}
    fields = [{"name": "at", "type": {"type": "long", "logicalType": "time-micros"}}]
    schema = {"type": "record", "name": "Row", "feed": declared, "fields": fields}
    shared = share(feed.parse("rows.avsc", json.dumps(schema)), "finance")
    told = keys(shared, [["03:04:05.500000"], ["23:59:59.999999"]], mask_key=b"key")
    assert told.column("at").to_pylist() == [time(3, 4, 5, 500_000), time(23, 59, 59, 999_999)]
