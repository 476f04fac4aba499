"""Where: every store that holds a field, or a kind of personal data, is told, of columns that feeds dropped too."""

import json
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from typer.testing import CliRunner
from workshop import ORDER, ORDER_FIELDS, Record, Workshop

from headrace import layout
from headrace.airflow import connections
from headrace.cli import app

ROW = {"id": "a", "revision": 1, "status": "paid", "price": Decimal(1), "email": "a@example.org", "created_at": 0}


@pytest.fixture
def team(stack: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A warehouse that is the only one, with a schema of its own; nothing else was ever loaded there."""
    name, folder = f"team_{uuid.uuid4().hex[:8]}", tmp_path / "warehouses"
    folder.mkdir()
    declared = {"connection": layout.WAREHOUSES_CONNECTION, "schema": name}
    (folder / f"{name}.json").write_text(json.dumps(declared))
    monkeypatch.setenv("HEADRACE_WAREHOUSES", str(folder))
    connections.warehouse(name).open()
    yield name
    (folder / f"{name}.json").write_text(json.dumps(declared))
    connections.warehouse(name).remove()


def test_a_column_that_the_feed_dropped_is_told_as_long_as_clean_holds_it(
    workshop: Callable[..., Workshop], team: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = {"name": "channel", "type": "string", "default": ""}
    warehouses = {team: {}, "engineering": {"drop": ["channel"]}}
    before = workshop({**ORDER, "warehouses": warehouses}, fields=[*ORDER_FIELDS, noted])
    before.merge(Record({**ROW, "channel": "web"}))
    shop = before.redeclared(warehouses={team: {}, "engineering": {}})
    shop = shop.changed(*(field for field in ORDER_FIELDS if field["name"] != "email"))
    (tmp_path / shop.feed.file).write_text(json.dumps(shop.feed.schema))
    monkeypatch.setenv("HEADRACE_SCHEMAS", str(tmp_path))

    def told(word: str) -> dict[str, str]:
        done = CliRunner().invoke(app, ["where", word, "--json"])
        assert done.exit_code == 0, done.output + done.stderr
        return {place["store"]: place["how"] for place in json.loads(done.stdout) if place["feed"] == shop.feed.name}

    for word in ("email", "channel"):
        assert told(word)["clean"] == "as it is, of former versions"
    assert team not in told("email"), "a personal one goes nowhere once the feed does not say so"
    assert told("channel")[team] == "as it is, of former versions"
    assert "engineering" not in told("channel"), "it was withheld from it"
    assert told("price")[team] == "as it is"
    table = CliRunner().invoke(app, ["where", "email"])
    assert f"clean.{shop.feed.name}.email" in table.output
    nobody = CliRunner().invoke(app, ["where", "emial"])
    assert nobody.exit_code == 1
    assert 'Did you mean "email"?' in str(nobody.exception or nobody.output)


def test_what_has_no_good_file_is_told_and_so_is_what_could_not_be_looked_at(
    workshop: Callable[..., Workshop], team: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = workshop({**ORDER, "warehouses": {team: {"keep": ["email"]}}})
    shop.merge(Record(ROW))
    shop.load(team)
    feed, file = shop.feed.name, tmp_path / shop.feed.file
    monkeypatch.setenv("HEADRACE_SCHEMAS", str(tmp_path))

    def told(*, code: int = 0) -> tuple[dict[str, str], str]:
        done = CliRunner().invoke(app, ["where", "email", "--json"])
        assert done.exit_code == code, done.output + done.stderr
        found = json.loads(done.stdout)
        return {place["store"]: place["how"] for place in found if place["feed"] == feed}, done.stderr

    orphaned = {
        "archive": "in bytes, of a feed that has no good file",
        "quarantine": "in bytes, if rejected, of a feed that has no good file",
        "clean": "as it is, of a feed that has no good file",
        team: "perhaps: in a table of before, which is loaded no more",
    }
    assert told()[0] == orphaned, "its file is gone"
    file.write_text(json.dumps({**shop.feed.schema, "feed": {"key": ["idd"]}}))
    found, unseen = told(code=1)
    assert found == orphaned
    assert f'not looked at: {file.name}: feed.key names "idd"' in unseen
    file.write_text(json.dumps({**shop.feed.schema, "feed": {**ORDER, "warehouses": {}}}))
    assert told()[0][team] == orphaned[team], "the feed no longer goes there"
    (tmp_path / "warehouses" / "silent.json").write_text("{}")
    monkeypatch.setenv("AIRFLOW_CONN_HEADRACE_WAREHOUSE_SILENT", "postgres://nobody:x@127.0.0.1:1/none")
    assert "not looked at: warehouse silent: The warehouse silent at 127.0.0.1:1/none" in told(code=1)[1]
    (tmp_path / "warehouses" / "silent.json").unlink()
    shop.lake.catalog.drop_table(layout.clean_table(feed))
    file.unlink()
    done = CliRunner().invoke(app, ["where", "email"])
    assert done.exit_code == 1
    assert f"not looked at: warehouse {team}: its table {feed}, for it is of a feed that has no good" in done.stderr
