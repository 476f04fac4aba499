"""Teams' own warehouses: made from the lake with one command, loaded like any other, and taken away again."""

import json
import os
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from typer.testing import CliRunner
from workshop import ORDER, ORDER_FIELDS, Record, Workshop

from headrace import warehouse
from headrace.airflow import connections, feed_file, warehouses
from headrace.cli import app
from headrace.declaration import Sharing
from headrace.errors import SettingsError, WarehouseBusy
from headrace.warehouses import postgres_platform

Make = Callable[..., Workshop]


def order(id_: str, revision: int = 1, email: str | None = None) -> Record:
    row = {"id": id_, "revision": revision, "price": Decimal("1.00"), "created_at": 1_790_000_000_000, "email": email}
    return Record({"status": "placed", **row}, key=id_)


class Office:
    """A feed whose file lies in a folder of feed files, and a folder of warehouses."""

    def __init__(self, shop: Workshop, schemas: Path) -> None:
        self.shop, self.schemas = shop, schemas
        self.team = f"team_{uuid.uuid4().hex[:8]}"
        (schemas / shop.feed.file).write_text(json.dumps(dict(shop.feed.schema)))

    def headrace(self, *arguments: str, code: int = 0) -> str:
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == code, f"{done.output}{done.exception!r}"
        return done.output

    def rows(self) -> list[tuple[Any, ...]]:
        with psycopg.connect(connections.warehouse(self.team).database.url()) as connection:
            table = sql.Identifier(self.team, self.shop.feed.name)
            return connection.execute(sql.SQL("select * from {} order by 1").format(table)).fetchall()

    def exists(self, statement: str) -> bool:
        with psycopg.connect(connections.database("headrace_warehouses").url()) as connection:
            return connection.execute(statement, [self.team]).fetchone() is not None  # type: ignore[arg-type]


@pytest.fixture
def office(workshop: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Office]:
    folders = {"HEADRACE_SCHEMAS": tmp_path / "schemas", "HEADRACE_WAREHOUSES": tmp_path / "warehouses"}
    for name, folder in folders.items():
        folder.mkdir()
        monkeypatch.setenv(name, str(folder))
    (tmp_path / "warehouses" / "finance.json").write_text("{}")
    shop = workshop({**ORDER, "warehouses": {"finance": {}}})
    office = Office(shop, tmp_path / "schemas")
    yield office
    if (tmp_path / "warehouses" / f"{office.team}.json").exists():
        warehouses.remove(office.team)


SCHEMA = "select 1 from pg_namespace where nspname = %s"
ROLE = "select 1 from pg_roles where rolname = %s || '_reader'"


def test_a_team_gets_all_that_was_published_and_what_comes_after(office: Office) -> None:
    shop, feed = office.shop, office.shop.feed.name
    shop.merge(order("a"), order("b", email="b@example.org"))
    told = office.headrace("warehouse", "add", office.team, "--feeds", feed, "--mask", f"{feed}.email=hash")
    assert "2 rows" in told
    assert [row[0] for row in office.rows()] == ["a", "b"]
    assert "b@example.org" not in str(office.rows())
    shared = feed_file.sharing(shop.feed)
    assert set(shared.declaration.warehouses) == {"finance", office.team}, "its runs load it from now on"
    shop.merge(order("a", 2), Record(None, key="b"))
    assert office.headrace("load", feed, office.team).strip().endswith("0 inserted, 1 updated, 1 deleted")
    assert [row[:2] for row in office.rows()] == [("a", 2)]
    listed = json.loads(office.headrace("warehouse", "list", "--json"))
    assert [(row["warehouse"], row["table"], row["loaded"] is not None) for row in listed] == [
        ("finance", feed, False),
        (office.team, feed, True),
    ]
    assert office.exists(SCHEMA)
    assert office.exists(ROLE)
    office.headrace("warehouse", "remove", office.team, "--yes")
    assert not office.exists(SCHEMA)
    assert not office.exists(ROLE)
    assert not (Path(os.environ["HEADRACE_WAREHOUSES"]) / f"{office.team}.json").exists()


def test_whoever_was_interrupted_may_add_it_again(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = office.shop.feed.name
    office.shop.merge(order("a"))
    warehouses.declare(office.team, {feed: Sharing()}, until=None, connection=None)  # and then it was killed
    assert "1 rows" in office.headrace("warehouse", "add", office.team, "--feeds", feed)
    assert [row[0] for row in office.rows()] == ["a"]
    told = CliRunner().invoke(app, ["warehouse", "add", office.team, "--feeds", feed, "--drop", f"{feed}.status"])
    assert f"there is a warehouse {office.team} already" in str(told.exception)


def test_a_temporary_one_goes_away_by_itself(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    today = datetime.now(UTC).date()
    office.shop.merge(order("a"))
    office.headrace("warehouse", "add", office.team, "--feeds", office.shop.feed.name, "--until", f"{today:%F}")
    assert warehouses.remove_ended() == [], "its last day is not over"

    class Tomorrow(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> "Tomorrow":
            return super().now(tz) + timedelta(days=1)  # type: ignore[return-value]

    monkeypatch.setattr(warehouses, "datetime", Tomorrow)
    monkeypatch.setattr(feed_file, "datetime", Tomorrow)
    assert set(feed_file.sharing(office.shop.feed).declaration.warehouses) == {"finance"}, "nothing is loaded any more"
    assert warehouses.remove_ended() == [office.team]
    assert not office.exists(SCHEMA)


def test_one_that_was_never_loaded_goes_away_too(office: Office) -> None:
    told = office.headrace("warehouse", "add", office.team, "--feeds", office.shop.feed.name)
    assert "nothing is published yet" in told
    assert office.exists(SCHEMA)
    assert "removed, with no table" in office.headrace("warehouse", "remove", office.team, "--yes")
    assert not office.exists(SCHEMA)
    assert not office.exists(ROLE)
    # One whose schema was there before keeps it; its role goes.
    with psycopg.connect(connections.database("headrace_warehouses").url()) as owner:
        owner.execute(sql.SQL("create schema {}").format(sql.Identifier(office.team)))
    office.headrace("warehouse", "add", office.team, "--feeds", office.shop.feed.name)
    office.headrace("warehouse", "remove", office.team, "--yes")
    assert office.exists(SCHEMA)
    assert not office.exists(ROLE)
    with psycopg.connect(connections.database("headrace_warehouses").url()) as owner:
        owner.execute(sql.SQL("drop schema {}").format(sql.Identifier(office.team)))


def test_nobody_gets_a_warehouse_where_another_has_its_tables(office: Office) -> None:
    feed, folder = office.shop.feed.name, Path(os.environ["HEADRACE_WAREHOUSES"])
    (folder / "other.json").write_text(json.dumps({"connection": "headrace_warehouses", "schema": office.team}))
    told = CliRunner().invoke(app, ["warehouse", "add", office.team, "--feeds", feed])
    assert f"other has the schema {office.team} of the connection headrace_warehouses already" in str(told.exception)
    (folder / "growth.json").write_text(json.dumps({"connection": "headrace_warehouse_finance"}))
    told = CliRunner().invoke(app, ["warehouse", "remove", "growth", "--yes"])
    assert "growth.json: the schema public of the connection headrace_warehouse_finance" in str(told.exception)
    assert (folder / "growth.json").exists()


def test_a_locked_table_is_told_on_the_command_line_with_what_to_do(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_platform, "LOCK_TIMEOUT", "200ms")
    feed = office.shop.feed.name
    office.shop.merge(order("a"))
    office.headrace("warehouse", "add", office.team, "--feeds", feed)
    office.shop.merge(order("a", 2))
    with psycopg.connect(connections.warehouse(office.team).database.url(), application_name="a notebook") as other:
        other.execute(sql.SQL("lock table {} in share mode").format(sql.Identifier(office.team, feed)))
        told = CliRunner().invoke(app, ["load", feed, office.team]).exception
        assert isinstance(told, WarehouseBusy)
        for words in ("(a notebook), idle in transaction", "when they are typed again", "pg_terminate_backend"):
            assert words in str(told)
    assert "1 updated" in office.headrace("load", feed, office.team)


def test_what_cannot_be_is_told_before_anything_is_made(office: Office) -> None:
    feed, folder = office.shop.feed.name, Path(os.environ["HEADRACE_WAREHOUSES"])
    cases = {
        ("--feeds", feed, "--keep", f"{feed}.emial"): 'names "emial", which is not a field. Did you mean "email"',
        ("--feeds", feed, "--mask", f"{feed}.status=year"): "only a date or a timestamp has a year",
        ("--feeds", "nothing_such"): "it has no file of a feed",
        ("--feeds", feed, "--until", "2020-01-01"): "its last day, 2020-01-01, is over",
    }
    for arguments, told in cases.items():
        done = CliRunner().invoke(app, ["warehouse", "add", office.team, *arguments])
        assert told in str(done.exception)
    for option, value in (("--keep", "other.email"), ("--mask", f"{feed}.email=rot13")):
        office.headrace("warehouse", "add", office.team, "--feeds", feed, option, value, code=2)
    assert [path.name for path in folder.iterdir()] == ["finance.json"]
    assert not office.exists(SCHEMA)
    with pytest.raises(SettingsError, match=rf"the files of {feed} name it"):
        warehouses.remove("finance")


def test_a_warehouses_file_that_is_at_fault_stops_nobody_elses_rows(office: Office) -> None:
    folder = Path(os.environ["HEADRACE_WAREHOUSES"])
    (folder / "broken.json").write_text('{"kindd": "postgres", "feeds": {"x": {}}}')
    feed = office.shop.feed.name
    half = {"connection": "headrace_warehouses", "schema": "half", "feeds": {feed: {"keep": ["nothing"]}}}
    (folder / "half.json").write_text(json.dumps(half))
    assert set(feed_file.sharing(office.shop.feed).declaration.warehouses) == {"finance"}
    assert 'kindd is not an attribute. Did you mean "kind"?' in office.headrace("warehouse", "list").replace("\n", " ")
    told = f'half: half.json: feeds.{feed}.keep names "nothing", which is not a field.'
    assert told in office.headrace("warehouse", "list").replace("\n", " ")
    with pytest.raises(SettingsError, match="kindd"):
        warehouse.named("broken", folder)
    with pytest.raises(SettingsError, match=r'there is no warehouse financ:.*Did you mean "finance"'):
        warehouse.named("financ", folder)


def test_a_personal_key_goes_there_hashed(workshop: Make, office: Office) -> None:
    personal = [{**field, "pii": "account"} if field["name"] == "id" else field for field in ORDER_FIELDS]
    shop = workshop({**ORDER, "warehouses": {}}, fields=personal)
    (office.schemas / shop.feed.file).write_text(json.dumps(dict(shop.feed.schema)))
    shop.merge(order("somebody"))
    office.headrace("warehouse", "add", office.team, "--feeds", shop.feed.name)
    office.shop = shop
    assert len(office.rows()[0][0]) == 64
    assert "somebody" not in str(office.rows())
