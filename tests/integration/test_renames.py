"""Renames, defaults and drops: a feed's new version in its clean table, nested columns too, with nothing rewritten."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from avro_defaults import DEFAULTS
from psycopg import sql
from workshop import Record, Workshop, registered

from headrace import clean, feed, layout
from headrace.airflow import connections

Make = Callable[..., Workshop]
DECLARED = {"key": ["id"], "order": ["revision"], "warehouses": {"finance": {}}}
ID, REVISION = {"name": "id", "type": "string"}, {"name": "revision", "type": "long"}


def line(*fields: Any) -> dict[str, Any]:
    return {"name": "lines", "type": {"type": "array", "items": {"type": "record", "name": "Line", "fields": fields}}}


def geo(*fields: Any) -> dict[str, Any]:
    return {"name": "geo", "type": ["null", {"type": "record", "name": "Geo", "fields": fields}], "default": None}


def files(shop: Workshop) -> set[str]:
    table = shop.lake.find(layout.clean_table(shop.feed.name))
    return {task.file.file_path for task in table.scan().plan_files()}


def warehouse(shop: Workshop, *names: str) -> list[tuple[Any, ...]]:
    columns = sql.SQL(", ").join(map(sql.Identifier, names))
    query = sql.SQL("select {} from {} order by 1").format(columns, sql.Identifier(shop.feed.name))
    with psycopg.connect(connections.warehouse("finance").database.url()) as connection:
        return connection.execute(query).fetchall()


def test_a_renamed_field_is_the_same_column_and_late_older_records_fill_it(workshop: Make) -> None:
    old = workshop(
        DECLARED,
        fields=[ID, REVISION, {"name": "n", "type": "int"}, line({"name": "sku", "type": "string"}),
                geo({"name": "lat", "type": "double"})],
    )  # fmt: skip
    old.merge(Record({"id": "a", "revision": 1, "n": 1, "lines": [{"sku": "x"}], "geo": {"lat": 0.5}}))
    old.load()
    before = files(old)
    new = old.changed(
        ID, REVISION, {"name": "number", "type": "long", "aliases": ["n"]},
        line({"name": "article", "type": "string", "aliases": ["sku"]}),
        geo({"name": "latitude", "type": "double", "aliases": ["lat"]}),
    )  # fmt: skip
    table = clean.clean_of(new.feed, new.lake)
    assert [each.name for each in table.schema().fields][:5] == ["id", "revision", "number", "lines", "geo"]
    assert files(new) == before, "nothing is rewritten"
    new.load()
    first = {"id": "a", "revision": 1, "number": 1, "lines": [{"article": "x"}], "geo": {"latitude": 0.5}}
    assert new.clean() == [first]
    assert warehouse(new, "id", "number", "lines") == [("a", 1, [{"article": "x"}])]
    old.publish(Record({"id": "b", "revision": 1, "n": 2, "lines": [], "geo": None}))
    new.merge(Record({"id": "c", "revision": 1, "number": 2**40, "lines": [{"article": "z"}], "geo": None}))
    assert [(row["id"], row["number"], row["lines"]) for row in new.clean()] == [
        ("a", 1, [{"article": "x"}]), ("b", 2, []), ("c", 2**40, [{"article": "z"}]),
    ]  # fmt: skip


def renamed_key(shop: Workshop) -> Workshop:
    fields = [
        {"name": "code", "type": "string", "aliases": ["id"]}, {"name": "rev", "type": "long", "aliases": ["revision"]},
        {"name": "sub", "type": "int"},
        {"name": "made_on", "type": {"type": "int", "logicalType": "date"}, "aliases": ["made"]},
    ]  # fmt: skip
    declared = {**shop.feed.schema["feed"], "key": ["code", "sub"], "order": ["rev"], "partition": {"field": "made_on"}}
    text = json.dumps({**shop.feed.schema, "fields": fields, "feed": declared})
    made = feed.parse(f"{shop.feed.name}.avsc", text)
    return replace(shop, feed=made, schema_id=registered(connections.registry(), made))


def test_key_order_and_partition_are_renamed_and_rows_merge_delete_and_load_as_before(workshop: Make) -> None:
    made = {"name": "made", "type": {"type": "int", "logicalType": "date"}}
    declared = {**DECLARED, "key": ["id", "sub"], "partition": {"field": "made"}}
    old = workshop(declared, fields=[ID, REVISION, {"name": "sub", "type": "int"}, made])
    old.merge(*(Record({"id": each, "revision": 2, "sub": 1, "made": 1}) for each in "abc"))
    old.load()
    new = renamed_key(old)
    old.publish(Record(None, key='{"id": "b", "sub": 1}'))
    new.merge(
        Record({"code": "a", "rev": 1, "sub": 1, "made_on": 9}),
        Record({"code": "c", "rev": 3, "sub": 1, "made_on": 9}),
    )
    assert new.quarantine() == {}
    assert [(row["code"], row["rev"]) for row in new.clean()] == [("a", 2), ("c", 3)]
    new.load()
    assert warehouse(new, "code", "rev") == [("a", 2), ("c", 3)]
    assert new.reconcile().figures.rows == 2


@pytest.mark.parametrize("kind", ["whole", "nested"])
def test_a_dropped_column_stays_at_any_depth(workshop: Make, kind: str) -> None:
    lat, lon = {"name": "lat", "type": "double"}, {"name": "lon", "type": ["null", "double"], "default": None}
    old = workshop(DECLARED, fields=[ID, REVISION, geo(lat, lon), line(lat, lon)])
    place = {"lat": 1.0, "lon": 2.0}
    old.merge(Record({"id": "a", "revision": 1, "geo": place, "lines": [place]}))
    new = old.changed(ID, REVISION, *([geo(lat), line(lat)] if kind == "nested" else []))
    old.publish(Record({"id": "c", "revision": 1, "geo": place, "lines": [place]}))
    later = {"geo": {"lat": 3.0}, "lines": [{"lat": 3.0}]} if kind == "nested" else {}
    new.merge(Record({"id": "b", "revision": 1, **later}))
    rows = new.lake.find(layout.clean_table(new.feed.name)).scan(selected_fields=("id", "geo")).to_arrow().to_pylist()
    found = {row["id"]: row["geo"] for row in rows}
    assert found == {"a": place, "b": {"lat": 3.0, "lon": None} if kind == "nested" else None, "c": place}


def every_column(shop: Workshop) -> list[dict[str, Any]]:
    """The visible rows with the columns that the feed has dropped."""
    table = shop.lake.find(layout.clean_table(shop.feed.name))
    names = [field.name for field in table.schema().fields if not field.name.startswith("_")]
    rows = table.scan(row_filter="_hidden = false").to_arrow().to_pylist()
    return sorted(({name: row[name] for name in names} for row in rows), key=lambda row: str(row["id"]))


def test_a_row_merged_before_a_field_was_added_equals_its_record_read_again(workshop: Make) -> None:
    names = {kind: f"f_{kind.replace('-', '_').replace(' ', '_')}" for kind in DEFAULTS}
    added = [{"name": names[kind], "type": type_, "default": written} for kind, (type_, written, _) in DEFAULTS.items()]
    old = workshop(DECLARED, fields=[ID, REVISION, geo({"name": "lat", "type": "double"}), line(ID)])
    row = {"revision": 1, "geo": {"lat": 1.0}, "lines": [{"id": "x"}]}
    old.merge(Record({"id": "a", **row}), Record({"id": "c", **row}))
    old.load()
    before = files(old)
    datum = {"name": "datum", "type": "string", "default": "WGS84"}
    new = old.changed(ID, REVISION, geo({"name": "lat", "type": "double"}, datum), line(ID, datum), *added)
    new.load()
    clean.clean_of(new.feed, new.lake)
    new.load()
    merged = new.clean()[0]
    assert files(new) == before, "nothing is rewritten"
    assert {kind: merged[name] for kind, name in names.items()} == {
        kind: held for kind, (_, _, held) in DEFAULTS.items()
    }
    assert (merged["geo"], merged["lines"]) == ({"lat": 1.0, "datum": "WGS84"}, [{"id": "x", "datum": "WGS84"}])
    new.reconcile()
    # The row of c lies in the file of a, which Spark reads and writes again.
    old.publish(Record({"id": "b", **row}), Record({"id": "c", **row, "revision": 2}))
    new.run()
    assert not files(new) & before
    first, late, _ = increments = new.clean()
    assert first == merged == {**late, "id": "a"}, "a late record of the old version is read as the old row is"
    new.again(anew=True)
    assert new.clean() == increments, "a rebuild equals the increments"
    new.load()
    new.reconcile()


def test_a_late_patch_does_not_take_the_place_of_a_default_that_a_newer_version_is_read_with(workshop: Make) -> None:
    lat, datum = {"name": "lat", "type": "double"}, {"name": "datum", "type": "string", "default": "WGS84"}
    old = workshop({**DECLARED, "merge": "patch"}, fields=[ID, REVISION, geo(lat)])
    old.merge(Record({"id": "a", "revision": 2, "geo": {"lat": 1.0}}), Record({"id": "b", "revision": 4, "geo": None}))
    old.merge(Record({"id": "a", "revision": 4, "geo": None}))
    new = old.changed(ID, REVISION, geo(lat, datum), {**datum, "name": "channel", "default": "web"})
    late = {"channel": "app", "geo": {"lat": 3.0, "datum": "ED50"}}
    new.merge(*(Record({"id": each, "revision": 3, **late}) for each in "ab"))
    assert new.clean() == (rows := [
        {"id": each, "revision": 4, "geo": {"lat": 3.0, "datum": "ED50"}, "channel": "web"} for each in "ab"
    ])  # fmt: skip
    new.merge(*(Record({"id": each, "revision": 1, **late, "geo": None}) for each in "ab"))
    assert new.clean() == rows
    new.again(anew=True)
    assert new.clean() == rows, "a rebuild equals the increments"


def test_a_rebuild_finds_what_versions_have_dropped_and_renamed_since(workshop: Make) -> None:
    note, tag = {"name": "note", "type": ["null", "string"], "default": None}, {"name": "tag", "type": "string"}
    old = workshop(DECLARED, fields=[ID, REVISION, note, geo(tag, {"name": "lat", "type": "double"})])
    old.merge(Record({"id": "a", "revision": 1, "note": "x", "geo": {"tag": "t", "lat": 1.0}}))
    new = old.changed(ID, REVISION, geo({"name": "latitude", "type": "double", "aliases": ["lat"]}))
    new.merge(Record({"id": "b", "revision": 1, "geo": {"latitude": 2.0}}))
    increments = every_column(new)
    assert increments == [
        {"id": "a", "revision": 1, "note": "x", "geo": {"tag": "t", "latitude": 1.0}},
        {"id": "b", "revision": 1, "note": None, "geo": {"tag": None, "latitude": 2.0}},
    ]
    new.again(anew=True)
    assert every_column(new) == increments
