"""Quarantine: what is rejected, how much of it a feed allows, and how it comes back once the cause is mended."""

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner
from workshop import ORDER, ORDER_FIELDS, Record, Workshop, registered

from headrace import feed as feeds
from headrace import layout
from headrace.airflow import connections
from headrace.cli import app
from headrace.errors import QuarantineFull, SliceError
from headrace.quarantine import Reason
from headrace.stages import release
from headrace.stages.release import Choice, Place

Make = Callable[..., Workshop]
CHEAP = {"column": "price", "between": [0, 10], "severity": "quarantine"}


def order(id_: str, revision: int = 1, *, price: str = "1.00", **others: Any) -> Record:
    row = {"id": id_, "revision": revision, "price": Decimal(price), "created_at": 1_790_000_000_000, **others}
    return Record({"status": "placed", "email": None, **row}, key=id_)


def ids(shop: Workshop) -> dict[str, int]:
    return {row["id"]: row["revision"] for row in shop.clean()}


def test_a_record_that_breaks_a_quarantine_check_is_as_if_it_had_never_come(workshop: Make) -> None:
    checks = [
        CHEAP,
        {"column": "id", "matches": "^[a-z]+$", "severity": "quarantine"},
        {"column": "status", "one_of": ["placed"], "severity": "quarantine"},
        {"column": "email", "not_null": True, "severity": "quarantine"},
    ]
    shop = workshop({**ORDER, "checks": checks})
    mail = {"email": "x@example.com"}
    shop.merge(
        order("a", 1, **mail), order("a", 2, price="11.00", **mail), order("b9", **mail), order("c"),
        order("d", status="paid", **mail), order("e", price="10.00", **mail),
    )  # fmt: skip
    assert ids(shop) == {"a": 1, "e": 1}
    assert shop.quarantine() == dict.fromkeys([(0, 1), (0, 2), (0, 3), (0, 4)], "check")
    told = {each.detail: each.count for each in release.groups(shop.feed, lake=shop.lake)}
    assert told == {
        "price: between 0 and 10": 1, "id: matches ^[a-z]+$": 1, "email: not null": 1, "status: one of placed": 1,
    }  # fmt: skip


def test_a_mended_check_lets_released_records_in_and_releasing_twice_changes_nothing(workshop: Make) -> None:
    shop = workshop({**ORDER, "checks": [CHEAP]})
    shop.merge(order("a", 1), order("a", 3, price="11.00"), order("b", 1, price="99.00"))
    shop.merge(order("a", 2))
    assert ids(shop) == {"a": 2}
    mended = shop.redeclared(checks=[{**CHEAP, "between": [0, 50]}])
    assert release.release(mended.feed, lake=mended.lake, choice=Choice(Reason.CHECK)) == 2
    assert release.release(mended.feed, lake=mended.lake, choice=Choice(Reason.CHECK)) == 0
    accounts = mended.again()
    assert (accounts["read"], accounts["quarantined"], accounts["updated"]) == (2, 1, 1)
    assert ids(mended) == {"a": 3}
    assert mended.quarantine() == {(0, 2): "check"}
    assert mended.again() is None, "what is still bad waits for another release"
    assert release.release(mended.feed, lake=mended.lake, choice=Choice(places=[Place(0, 1)])) == 0
    assert ids(mended) == {"a": 3}


def test_a_released_record_that_is_superseded_leaves_quarantine_and_changes_no_row(workshop: Make) -> None:
    shop = workshop({**ORDER, "checks": [CHEAP]})
    shop.merge(order("a", 1, price="11.00"), order("a", 2))
    mended = shop.redeclared(checks=[])
    release.release(mended.feed, lake=mended.lake, choice=Choice())
    assert mended.again()["superseded"] == 1
    assert (ids(mended), mended.quarantine()) == ({"a": 2}, {})


def test_records_come_back_once_their_schema_is_registered_and_others_stay(
    workshop: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_SCHEMAS", str(tmp_path))
    shop, store = workshop(), connections.registry()
    fields = [*ORDER_FIELDS, {"name": "note", "type": ["null", "string"], "default": None}]
    text = json.dumps({**shop.feed.schema, "fields": fields})
    later = feeds.parse(shop.feed.file, text)
    ahead = replace(shop, feed=later, schema_id=int(store.register(f"{later.name}-other-value", "AVRO", text=text).id))
    late, nobodys = order("a", 3, note="n"), order("z", note=None)
    unknown = b"\0" + (ahead.schema_id + 100_000).to_bytes(4, "big") + (ahead.encoded(nobodys.value) or b"")[5:]
    shop.merge(
        Record(ahead.encoded(late.value), key="a"), Record(unknown, key="z"), order("a", 1), Record(b"bad", key="jane")
    )
    assert shop.quarantine() == {(0, 0): "unknown_id", (0, 1): "unknown_id", (0, 3): "unframed"}
    mended = replace(shop, feed=later, schema_id=registered(store, later))
    assert mended.schema_id == ahead.schema_id
    (tmp_path / later.file).write_text(text)

    asked = ("--reason", "unknown_id", "--release")
    assert cli(mended, *asked).stdout == f"feed {later.name}: released 2 records; its next run judges them again\n"
    assert json.loads(cli(mended, *asked, "--json").stdout) == {"released": 0}
    accounts = mended.again()
    assert (accounts["read"], accounts["quarantined"], accounts["updated"]) == (2, 1, 1)
    (row,) = mended.clean()
    assert (row["id"], row["revision"], row["note"]) == ("a", 3, "n")
    assert mended.quarantine() == {(0, 1): "unknown_id", (0, 3): "unframed"}, "an id that is still nobody's"


def cli(shop: Workshop, *arguments: str) -> Any:
    return CliRunner().invoke(app, ["quarantine", shop.feed.name, *arguments], catch_exceptions=False)


def test_until_its_row_is_published_a_released_record_stays_in_quarantine(workshop: Make) -> None:
    shop = workshop({**ORDER, "checks": [CHEAP]})
    shop.merge(order("a", price="11.00"))
    mended = shop.redeclared(checks=[])
    release.release(mended.feed, lake=mended.lake, choice=Choice())
    mended.transform("dies")
    assert mended.quarantine() == {(0, 0): "check"}
    mended.again()
    assert (ids(mended), mended.quarantine()) == ({"a": 1}, {})


NOW = (0, 4_000_000_000_000)
"""A window with everything in it."""


def switched(shop: Workshop, run: str) -> None:
    """What a publish does first, and then dies."""
    from headrace.stages import publish

    table, branch = shop.lake.find(layout.clean_table(shop.feed.name)), layout.branch(run)
    main, tip = (table.metadata.refs[name].snapshot_id for name in ("main", branch))
    publish.switch(shop.lake, table, branch=branch, main=main, tip=tip)


def test_what_a_run_rejects_of_merged_records_is_in_quarantine_once_it_is_published(workshop: Make) -> None:
    shop = workshop(ORDER)
    shop.merge(order("a", price="11.00"), order("b"))
    tight = shop.redeclared(checks=[CHEAP])
    tight.transform("dry", anew=True)
    for run in ("stopped", "again", "again"):
        tight.transform(run, window=NOW)
        assert (ids(tight), tight.quarantine()) == ({"a": 1, "b": 1}, {})
        assert release.groups(tight.feed, lake=tight.lake) == []
        assert release.release(tight.feed, lake=tight.lake, choice=Choice()) == 0
    assert shop.prove().agrees
    tight.publish_run("again")
    assert (ids(tight), tight.quarantine()) == ({"b": 1}, {(0, 0): "check"})
    assert tight.prove().agrees
    assert tight.again(window=NOW)["quarantined"] == 1
    assert tight.quarantine() == {(0, 0): "check"}


def test_what_an_unpublished_run_rejected_is_no_longer_in_quarantine_once_it_is_merged(workshop: Make) -> None:
    shop = workshop({**ORDER, "checks": [CHEAP]})
    shop.publish(order("a", price="11.00"), order("b"))
    shop.extract()
    shop.transform("stopped")
    loose = shop.redeclared(checks=[])
    loose.again()
    assert (ids(loose), loose.quarantine()) == ({"a": 1, "b": 1}, {})
    assert loose.prove().agrees


@pytest.mark.parametrize("mended_by", ["retry", "next run"])
def test_quarantine_is_settled_though_the_publish_died_after_the_switch(workshop: Make, mended_by: str) -> None:
    shop = workshop({**ORDER, "checks": [CHEAP]})
    shop.merge(order("a", price="11.00"), order("b", price="9.00"))
    other = shop.redeclared(checks=[{**CHEAP, "between": [10, 20]}])
    other.transform("dies", window=NOW)
    switched(other, "dies")
    assert ids(other) == {"a": 1}
    if mended_by == "retry":
        assert other.publish_run("dies") is None
    else:
        assert other.again() is None
    assert other.quarantine() == {(0, 1): "check"}
    assert other.prove().agrees


@pytest.mark.parametrize("limit", [{"count": 1}, {"share": 0.5}], ids=str)
def test_a_run_that_would_reject_more_than_its_feed_allows_stops_and_changes_nothing(
    workshop: Make, limit: dict[str, float]
) -> None:
    shop = workshop({**ORDER, "quarantine": limit})
    shop.publish(order("a"), Record(b"no frame", key="b"), Record(b"none either", key="c"))
    shop.extract()
    with pytest.raises(QuarantineFull, match=r"2 of 3 new records would go to quarantine \(unframed 2\)"):
        shop.transform("stops")
    assert shop.quarantine() == {}
    assert shop.redeclared(quarantine={}).again()["quarantined"] == 2


@pytest.mark.parametrize("limit", [{"count": 1}, {"share": 0.5}], ids=str)
def test_the_limit_is_about_new_records_and_not_about_those_that_are_judged_again(
    workshop: Make, limit: dict[str, float]
) -> None:
    shop = workshop({**ORDER, "checks": [CHEAP]})
    shop.merge(order("a", price="11.00"), order("b", price="12.00"))
    limited = shop.redeclared(quarantine=limit)
    release.release(limited.feed, lake=limited.lake, choice=Choice())
    assert limited.merge(order("c"))["quarantined"] == 2, "what was released and is still bad stops no run"
    assert limited.again(anew=True)["quarantined"] == 2, "nor does all that ever was rejected stop a rebuild"
    release.release(limited.feed, lake=limited.lake, choice=Choice())
    with pytest.raises(QuarantineFull, match=r"2 of 3 new records would go to quarantine \(check 1, unframed 1\)"):
        limited.merge(order("d"), order("e", price="11.00"), Record(b"no frame", key="f"))
    assert set(limited.quarantine().values()) == {"check"}


def test_the_listing_tells_no_value_and_a_record_is_shown_to_who_asks_for_it(
    workshop: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_SCHEMAS", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "400")
    shop = workshop()
    (tmp_path / shop.feed.file).write_text(json.dumps(shop.feed.schema))
    assert "nothing lies in quarantine" in cli(shop).stdout
    shop.merge(Record(b"secret of a person", key="person"), Record(b"\xff\xfe", key="other"))
    (listed, _) = release.records(shop.feed, lake=shop.lake, choice=Choice(), limit=10)
    assert (listed["partition"], listed["offset"], listed["reason"], listed["bytes"]) == (0, 0, "unframed", 18)
    (group,) = json.loads(cli(shop, "--json").stdout)
    assert (group["reason"], group["count"], group["released"]) == ("unframed", 2, 0)
    for told in (str(listed), cli(shop).stdout, cli(shop, "--list").stdout, cli(shop, "0/0").stdout):
        assert "unframed" in told
        assert "person" not in told

    shown = release.record(shop.feed, lake=shop.lake, place=Place(0, 0))
    assert (shown["key"], shown["value"]) == (b"person", b"secret of a person")
    assert "secret of a person" in cli(shop, "0/0", "--show").stdout
    told = json.loads(cli(shop, "0/1", "--show", "--json").stdout)
    assert (told["key"], told["value"]) == ("other", "hex:fffe")
    refused = cli(shop, "--show")
    assert (refused.exit_code, "name the one record to show" in refused.stderr) == (2, True)
    with pytest.raises(SliceError, match="no record 0/7 lies there"):
        cli(shop, "0/7", "--show")
