"""Forget against real stores: a person's records leave them all, stay away, and what is left is read byte by byte."""

import json
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from psycopg import sql
from workshop import ORDER, ORDER_FIELDS, Record, Workshop

from headrace import layout, objects, outcome, results
from headrace.airflow import connections, forgetting
from headrace.stages import absence, verify

Make = Callable[..., Workshop]
PERSON = "person-0815"
MAIL = "ada.lovelace@example.org"
CHEAP = {"column": "price", "between": [0, 10], "severity": "quarantine"}


def order(id_: str, revision: int, *, price: str = "1.00", email: str | None = None) -> Record:
    row = {"id": id_, "revision": revision, "price": Decimal(price), "created_at": 1_790_000_000_000, "email": email}
    return Record({"status": "placed", **row}, key=id_)


def forgotten(shop: Workshop, *keys: str, **more: Any) -> forgetting.Report:
    done = forgetting.forget(shop.feed, keys or (PERSON,), by="test", **more)
    assert done is not None
    return done


def records(done: forgetting.Report) -> dict[str, int]:
    """What was changed, by the kind of store."""
    return {each.store.partition(".")[0]: each.records for each in done.done.stores if each.records}


def rebuilt(shop: Workshop) -> None:
    from headrace.airflow import rebuild

    rebuild.rebuild(shop.feed, run=f"rebuild_{uuid.uuid4().hex}", publish=True)


def ids(shop: Workshop, warehouse: str = "finance") -> set[str]:
    query = sql.SQL("select id from {}").format(sql.Identifier(shop.feed.name))
    with psycopg.connect(connections.warehouse(warehouse).database.url()) as connection:
        return {id_ for (id_,) in connection.execute(query).fetchall()}


def bodies(shop: Workshop) -> Iterator[tuple[str, bytes]]:
    """Every object of the lake whose key names the feed."""
    bucket, prefix = objects.place(shop.lake.location)
    for each in objects.listed(shop.lake.s3, bucket, f"{prefix}/" if prefix else ""):
        if shop.feed.name in each.key:
            yield each.key, shop.lake.s3.get_object(Bucket=bucket, Key=each.key)["Body"].read()


def holding(shop: Workshop, *values: str) -> set[str]:
    needles = [form for value in values for form in absence.forms(value)]
    return {key for key, body in bodies(shop) if any(True for _ in absence.search(key, body, needles))}


def test_a_person_leaves_every_store_and_nothing_brings_them_back(workshop: Make) -> None:
    shop = workshop({**ORDER, "checks": [CHEAP]})
    shop.merge(order(PERSON, 1, email=MAIL), order("other", 1, email="shared@example.org"), order("third", 1))
    shop.merge(order(PERSON, 2, email="shared@example.org"), order(PERSON, 3, price="99.00", email=MAIL))
    shop.merge(Record(b"\x07 no frame", key=PERSON), Record(f"x {PERSON} x".encode()), Record(None, key="third"))
    shop.load("finance")
    shop.load("engineering")
    assert len(shop.quarantine()) == 3
    told = outcome.Outcome(
        expectation=outcome.Expectation(name="x", arguments={}), success=False, keys=("other", PERSON)
    )
    result = results.Result(
        feed=shop.feed.name, run="r", branch="b", snapshot="1", at="2026-11-18T00:00:00Z", outcomes=[told]
    )
    results.write(result, lake=shop.lake)
    assert holding(shop, PERSON, MAIL)

    tried = forgotten(shop, dry_run=True)
    assert records(tried) == {"archive": 5, "clean": 1, "quarantine": 3}
    assert len(shop.quarantine()) == 3

    done = forgotten(shop)
    assert done.is_whole, forgetting.told(done)
    assert records(done) == {"archive": 5, "clean": 1, "quarantine": 3, "checks": 1}
    assert done.done.undecoded == 2
    assert done.absence and done.absence.objects > 10
    assert (done.topics[0].records, done.done.located.shared) == (5, 1)
    assert PERSON not in json.dumps(forgetting.told(done))
    assert holding(shop, PERSON, MAIL) == set()
    assert ids(shop) == ids(shop, "engineering") == {"other"}
    assert shop.quarantine() == {}
    assert results.latest(shop.feed.name, lake=shop.lake, count=1)[0].outcomes[0].keys == ("other",)
    for table in ("archive", "clean", "quarantine"):
        assert len(shop.lake.find((table, shop.feed.name)).metadata.snapshots) <= 2

    verified = verify.verify(shop.feed, lake=shop.lake, kafka=shop.kafka)
    assert verified.is_equal
    assert (verified.accounts[0].equal, verified.accounts[0].counts["forgotten"]) == (3, 5)

    seen = shop.clean()
    rebuilt(shop)
    assert shop.clean() == seen
    assert [row["id"] for row in seen] == ["other"]
    accounts = shop.again(window=(0, 2**62))
    assert (accounts["read"], accounts["forgotten"]) == (8, 5)
    again = forgotten(shop)
    assert again.is_whole
    assert records(again) == {}

    shop.merge(order(PERSON, 1, email="new@example.org"))
    shop.load()
    assert {row["id"]: row["email"] for row in shop.clean()}[PERSON] == "new@example.org"
    assert ids(shop) == {"other", PERSON}
    shop.reconcile()
