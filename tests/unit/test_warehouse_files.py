"""Warehouses' files: what they declare, what feeds get by them, who holds what, and which DAGs hear of a change."""

import json
import os
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from headrace import feed as feeds
from headrace import lint, warehouse, whereabouts
from headrace.airflow import feed_file
from headrace.airflow.warehouse_watch import WarehouseWatch
from headrace.cli import app
from headrace.errors import FeedError, SettingsError
from headrace.feed import Feed
from headrace.share import share
from headrace.whereabouts import Place

TODAY = date(2026, 11, 18)
FIELDS = [
    {"name": "id", "type": "string"},
    {"name": "email", "type": "string", "pii": "email", "aliases": ["mail"]},
    {"name": "card", "type": "string", "pii": "card"},
    {
        "name": "address",
        "type": {
            "type": "record",
            "name": "Address",
            "fields": [
                {"name": "city", "type": "string", "doc": "Where."},
                {
                    "name": "geo",
                    "type": {"type": "record", "name": "Geo", "fields": [{"name": "lat", "type": "double"}]},
                },
                {"name": "lines", "type": {"type": "array", "items": "string"}},
            ],
        },
    },
]


def feed(*more: dict[str, Any], **declared: Any) -> Feed:
    fields = [*FIELDS, *more]
    schema = {"type": "record", "name": "Order", "feed": {"key": ["id"], **declared}, "fields": fields}
    return feeds.parse("orders.avsc", json.dumps(schema))


def written(folder: Path, name: str, **declared: Any) -> Path:
    path = folder / f"{name}.json"
    path.write_text(json.dumps(declared))
    return path


def test_an_empty_object_declares_a_warehouse(tmp_path: Path) -> None:
    found = warehouse.read(written(tmp_path, "finance"))
    assert (found.kind, found.schema_name, found.connection, found.readers) == ("postgres", "public", None, None)


def test_a_redshift_needs_no_more_than_its_kind(tmp_path: Path) -> None:
    assert warehouse.read(written(tmp_path, "insights", kind="redshift")).kind == "redshift"
    role, staging = "arn:aws:iam::123456789012:role/headrace", "s3://shop-staging/headrace"
    found = warehouse.read(written(tmp_path, "insights", kind="redshift", iam_role=role, staging=staging))
    assert (found.iam_role, found.staging) == (role, staging)
    both = f"{role},arn:aws:iam::210987654321:role/path/other"
    assert warehouse.read(written(tmp_path, "insights", kind="redshift", iam_role=both)).iam_role == both


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "cannot be read as JSON"),
        ('{"kind": "oracle"}', 'kind is "oracle", which is not one of postgres, redshift.'),
        ('{"shcema": "public"}', 'shcema is not an attribute. Did you mean "schema"?'),
        ('{"feeds": {"orders": {"keeep": []}}}', 'feeds.orders.keeep is not an attribute. Did you mean "keep"?'),
        ('{"until": "tomorrow"}', 'until is "tomorrow"'),
        ('{"iam_role": "default"}', "iam_role goes with kind redshift, and this is postgres."),
        ('{"kind": "redshift", "iam_role": "me"}', 'iam_role is "me": it is default, or a role such as arn:aws:iam::'),
        ('{"kind": "redshift", "staging": "/tmp"}', 'staging is "/tmp": it is a bucket, and a prefix if need be'),
    ],
)
def test_what_is_wrong_with_a_file_is_told(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "finance.json"
    path.write_text(text)
    with pytest.raises(SettingsError) as caught:
        warehouse.read(path)
    assert told in str(caught.value)
    assert str(caught.value).startswith("finance.json: ")


def test_two_warehouses_never_share_a_schema_of_one_database(tmp_path: Path) -> None:
    written(tmp_path, "finance")
    written(tmp_path, "growth", connection="headrace_warehouse_finance", feeds={"orders": {}})
    written(tmp_path, "audit", connection="headrace_warehouse_finance", schema="audit")
    found, bad = warehouse.declared(tmp_path)
    assert (set(found), set(bad)) == ({"audit"}, {"finance", "growth"})
    for name, other in (("finance", "growth"), ("growth", "finance")):
        told = rf"^{name}\.json: the schema public of .* headrace_warehouse_finance is that of {other}\.json too"
        with pytest.raises(SettingsError, match=told):
            warehouse.named(name, tmp_path)


def test_lint_tells_what_is_wrong_with_warehouses_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schemas, warehouses = tmp_path / "schemas", tmp_path / "warehouses"
    for name, folder in (("HEADRACE_SCHEMAS", schemas), ("HEADRACE_WAREHOUSES", warehouses)):
        folder.mkdir()
        monkeypatch.setenv(name, str(folder))
    written(warehouses, "finance")
    written(warehouses, "growth", connection="headrace_warehouse_finance")
    written(warehouses, "other", kindd="postgres", untill="2026-11-18")
    done = CliRunner().invoke(app, ["lint", "--json"])
    found = [(Path(fault["file"]).name, fault["message"][:24]) for fault in json.loads(done.stdout)]
    assert done.exit_code == 1
    assert found == [
        ("finance.json", "the schema public of the"),
        ("growth.json", "the schema public of the"),
        ("other.json", "kindd is not an attribut"),
        ("other.json", "untill is not an attribu"),
    ]


def test_lint_tells_where_a_warehouses_file_does_not_fit_a_feed_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schemas, warehouses = tmp_path / "schemas", tmp_path / "warehouses"
    for name, folder in (("HEADRACE_SCHEMAS", schemas), ("HEADRACE_WAREHOUSES", warehouses)):
        folder.mkdir()
        monkeypatch.setenv(name, str(folder))
    (schemas / "orders.avsc").write_text(json.dumps(feed(warehouses={"finance": {}}).schema))
    (schemas / "broken.avsc").write_text("{")
    written(warehouses, "finance", feeds={"orders": {"keep": ["what its own file says counts"]}})
    written(warehouses, "fits", connection="a", feeds={"orders": {"mask": {"email": "hash"}}, "broken": {}})
    written(warehouses, "growth", connection="b", feeds={"orders": {"mask": {"mail": "hash"}}, "order": {}})
    done = CliRunner().invoke(app, ["lint", "--json"])
    found = [
        (Path(each["file"]).name, each["path"], each["message"], each["fix"], each["line"])
        for each in json.loads(done.stdout)
        if each["file"].endswith(".json")
    ]
    assert done.exit_code == 1
    assert found == [
        ("growth.json", "feeds.orders.mask", 'names "mail", which is not a field.', 'Did you mean "email"?', 1),
        ("growth.json", "feeds.order", "is no feed.", 'Did you mean "orders"?', 1),
    ]


def test_who_is_cut_off_from_a_feed_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HEADRACE_WAREHOUSES", str(tmp_path))
    written(tmp_path, "growth", feeds={"orders": {"drop": ["mail"]}})
    written(tmp_path, "other", connection="b", feeds={"orders": {"drop": ["email"]}})
    assert set(feed_file.sharing(feed()).declaration.warehouses) == {"other"}
    (told,) = caplog.messages
    assert told.startswith("warehouse growth gets nothing of feed orders: growth.json: feeds.orders.drop names")


def test_a_feed_goes_to_those_that_name_it_until_their_last_day(tmp_path: Path) -> None:
    written(tmp_path, "finance", until="2026-11-17")
    written(tmp_path, "growth", feeds={"orders": {"mask": {"email": "hash"}}}, until="2026-11-18")
    written(tmp_path, "other", feeds={"customers": {}})
    written(tmp_path, "late", feeds={"orders": {}}, until="2026-11-17")
    declared, bad = warehouse.declared(tmp_path)
    assert not bad
    shared = warehouse.sharing(feed(warehouses={"finance": {}, "engineering": {}}), declared, today=TODAY)
    assert set(shared.declaration.warehouses) == {"engineering", "growth"}
    assert share(shared, "growth").masks == {"email": "hash"}


def test_a_feeds_own_word_counts_more_than_the_warehouses(tmp_path: Path) -> None:
    written(tmp_path, "finance", feeds={"orders": {"keep": ["email", "card"]}})
    declared, _ = warehouse.declared(tmp_path)
    shared = warehouse.sharing(feed(warehouses={"finance": {}}), declared, today=TODAY)
    assert share(shared, "finance").names == ["id", "address"]


def test_a_record_is_flattened_into_columns() -> None:
    flat = share(feed(warehouses={"finance": {"flatten": ["address"], "index": [["address_city"]]}}), "finance")
    assert flat.names == ["id", "address_city", "address_geo_lat", "address_lines"]
    assert [column.path for column in flat.columns][1:3] == [("address", "city"), ("address", "geo", "lat")]
    assert flat.columns[1].doc == "Where."
    assert flat.indexes == (("address_city",),)


def test_a_flattened_records_former_name_is_its_columns_too() -> None:
    inner = {"type": "record", "name": "Home", "fields": [{"name": "city", "type": "string"}]}
    home = {"name": "home", "type": inner, "aliases": ["house", "flat"]}
    (city,) = share(feed(home, warehouses={"finance": {"flatten": ["home"]}}), "finance").columns[2:]
    assert (city.name, city.aliases, city.former) == ("home_city", ("house_city", "flat_city"), ("house", "flat"))


@pytest.mark.parametrize(
    ("more", "declared", "told"),
    [
        ({"name": "Address_City", "type": "int"}, {}, 'flatten makes the column "Address_City", which is there alr'),
        (
            {
                "name": "a" * 40,
                "type": {"type": "record", "name": "Long", "fields": [{"name": "b" * 40, "type": "int"}]},
            },
            {"flatten": ["address", "a" * 40]},
            f'flatten makes the column "{"a" * 40}_{"b" * 40}" of 81 bytes, and Postgres takes names of 63.',
        ),
        (
            {"name": "more", "type": "int"},
            {"index": [["more", "address_ctiy"]]},
            'index names "address_ctiy", which is no column there. Did you mean "address_city"?',
        ),
        (
            {"name": "more", "type": "int"},
            {"distribute": "address_cty"},
            'distribute names "address_cty", which is no column there. Did you mean "address_city"?',
        ),
    ],
)
def test_lint_tells_what_flattening_cannot_make(more: Any, declared: dict[str, Any], told: str, tmp_path: Path) -> None:
    path = tmp_path / "orders.avsc"
    sharing = {"flatten": ["address"], **declared}
    path.write_text(json.dumps(feed(more, warehouses={"finance": sharing, "engineering": {}}).schema))
    (fault,) = [fault for fault in lint.lint([path]) if fault.severity == "error"]
    assert f"{path}: feed.warehouses.finance.{told}" in str(fault)


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ({"flatten": ["id"]}, 'flatten names "id", a field of kind string; only a record has fields'),
        ({"flatten": ["address"], "drop": ["address"]}, 'flattens "address" and also masks or drops it'),
        ({"index": [["adress"]]}, 'index names "adress", which is not a field. Did you mean "address"?'),
    ],
)
def test_what_cannot_be_flattened_or_indexed_is_told(declared: dict[str, Any], told: str) -> None:
    with pytest.raises(FeedError) as caught:
        feed(warehouses={"finance": declared})
    assert told in str(caught.value)


def test_a_warehouse_that_nobody_declared_is_told_by_lint(tmp_path: Path) -> None:
    path = tmp_path / "orders.avsc"
    path.write_text(json.dumps(feed(warehouses={"finanse": {}}).schema))
    found = [fault for fault in lint.lint([path], warehouses=["finance"]) if fault.severity == "error"]
    assert [(fault.path, fault.fix) for fault in found] == [("feed.warehouses.finanse", 'Did you mean "finance"?')]
    assert not [fault for fault in lint.lint([path]) if fault.severity == "error"]


def test_where_tells_every_store_that_holds_a_field_or_a_kind(tmp_path: Path) -> None:
    written(tmp_path, "finance", schema="shop")
    declared, _ = warehouse.declared(tmp_path)
    one = feed(warehouses={"finance": {"keep": ["email"]}, "engineering": {"mask": {"email": "hash"}}, "other": {}})
    for word in ("email", "mail"):
        assert list(whereabouts.find(word, [one], declared)) == [
            Place("orders", "email", "email", "topic", "orders", "in bytes"),
            Place("orders", "email", "email", "archive", "archive.orders", "in bytes"),
            Place("orders", "email", "email", "quarantine", "quarantine.orders", "in bytes, if rejected"),
            Place("orders", "email", "email", "clean", "clean.orders.email", "as it is"),
            Place("orders", "email", "email", "finance", "shop.orders.email", "as it is"),
            Place("orders", "email", "email", "engineering", "?.orders.email", "masked: hash"),
        ]
    assert {place.store for place in whereabouts.find("card", [one], declared)} == {
        "topic", "archive", "clean", "quarantine",
    }  # fmt: skip
    assert not list(whereabouts.find("nothing", [one], declared))


def test_where_a_key_or_a_drained_field_is_told_wherever_it_may_be() -> None:
    one = feed(topic={"drains": {"topic": "old_orders"}})
    assert {(place.store, place.place) for place in whereabouts.find("id", [one], {})} == {
        ("topic", "orders"), ("topic", "old_orders"), ("archive", "archive.orders"),
        ("quarantine", "quarantine.orders"), ("clean", "clean.orders.id"), ("hold list", "forgotten.orders"),
        ("checks", "checks/orders"), ("reconciled", "reconciled.orders"),
    }  # fmt: skip
    assert {place.field for place in whereabouts.find("lat", [one], {})} == {"address"}, "however deep it lies"


def test_every_kind_inside_a_field_is_found() -> None:
    inside = [{"name": "name", "type": "string", "pii": "name"}, {"name": "tel", "type": "string", "pii": "phone"}]
    person = {"name": "person", "type": {"type": "record", "name": "Person", "fields": inside}}
    schema = {"type": "record", "name": "Order", "feed": {"key": ["id"]}, "fields": [*FIELDS, person]}
    one = feeds.parse("orders.avsc", json.dumps(schema))
    for kind in ("name", "phone"):
        assert {place.field for place in whereabouts.find(kind, [one], {})} == {"person"}


def test_only_feeds_that_a_changed_file_names_are_parsed_again(tmp_path: Path) -> None:
    watch = WarehouseWatch(tmp_path)
    written(tmp_path, "finance")
    assert watch.changed() == frozenset(), "who starts parses everything anyway"
    path = written(tmp_path, "growth", feeds={"orders": {}})
    assert watch.changed() == {"orders"}
    assert watch.changed() == frozenset()
    written(tmp_path, "growth", feeds={"orders": {"drop": ["card"]}, "calls": {}})
    os.utime(path, (1, 1))
    assert watch.changed() == {"orders", "calls"}
    path.unlink()
    assert watch.changed() == {"orders", "calls"}
