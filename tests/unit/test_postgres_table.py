"""How a table in Postgres becomes another one: told from the two alone, and nothing that loses values is among it."""

import json
from typing import Any

import pytest

from headrace import feed as feeds
from headrace.share import Share, share
from headrace.warehouses import postgres_table
from headrace.warehouses.changes import Changes, Standing


def shared(*fields: dict[str, Any], **sharing: Any) -> Share:
    declared = {"key": ["id"], "warehouses": {"finance": sharing}}
    named = [{"name": "id", "type": "int"}, *fields]
    schema = {"type": "record", "name": "Order", "feed": declared, "fields": named}
    return share(feeds.parse("orders.avsc", json.dumps(schema)), "finance")


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def standing(masks: dict[str, str] | None = None, **columns: str) -> Standing:
    return Standing({"id": "integer", **columns}, ("id",), masks or {})


def test_nothing_changes_where_nothing_is_other() -> None:
    found = postgres_table.changes(standing(name="text"), shared({"name": "name", "type": "string"}))
    assert found == Changes({}, (), (), (), (), ())


@pytest.mark.parametrize(
    ("old", "type_", "kind"),
    [
        ("integer", "long", "widened"),
        ("real", "double", "widened"),
        ("numeric(8, 2)", decimal(10, 2), "widened"),
        ("numeric(8, 2)", decimal(10, 3), "lossy"),
        ("numeric(8, 2)", decimal(6, 2), "lossy"),
        ("bigint", "int", "lossy"),
        ("text", "int", "lossy"),
        ("integer", "string", "lossy"),
    ],
)
def test_only_what_every_value_fits_into_is_wider(old: str, type_: Any, kind: str) -> None:
    found = postgres_table.changes(standing(value=old), shared({"name": "value", "type": type_}))
    assert bool(found.widened) == (kind == "widened")
    assert bool(found.lossy) == (kind == "lossy")


def test_a_rename_takes_the_former_column_and_no_other() -> None:
    field = {"name": "remark", "type": "string", "aliases": ["note", "hint"]}
    found = postgres_table.changes(standing(hint="text", other="text"), shared(field))
    assert (found.renamed, found.added, found.emptied) == ({"hint": "remark"}, (), ("other",))
    both = postgres_table.changes(standing(hint="text", remark="text"), shared(field))
    assert (both.renamed, both.emptied) == ({}, ("hint",)), "the name is taken, so the former column is only emptied"


def test_a_column_that_is_renamed_and_widened_is_both() -> None:
    field = {"name": "count", "type": "long", "aliases": ["number"]}
    found = postgres_table.changes(standing(number="integer"), shared(field))
    assert (found.renamed, found.widened) == ({"number": "count"}, ("count",))


def test_another_mask_may_have_another_type() -> None:
    born = {"name": "born", "type": {"type": "int", "logicalType": "date"}, "pii": "birth"}
    masked = shared(born, mask={"born": "year"})
    assert postgres_table.changes(standing(born="date"), masked).remade == ("born",)
    assert postgres_table.changes(standing({"born": "year"}, born="integer"), shared(born, keep=["born"])).remade
    assert postgres_table.changes(standing({"born": "year"}, born="text"), masked).lossy, "the mask is what it was"


@pytest.mark.parametrize(
    ("asked", "spelled"),
    [
        ("timestamp with time zone", "timestamptz"),
        ("numeric(12,2)", "numeric(12, 2)"),
        ("jsonb", "jsonb"),
        ("time without time zone", "time"),
    ],
)
def test_types_are_spelled_as_ours(asked: str, spelled: str) -> None:
    assert postgres_table.spelled(asked) == spelled
