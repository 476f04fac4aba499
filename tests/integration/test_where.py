"""Where: every store that holds a field, or a kind of personal data, is told, of columns that feeds dropped too."""

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from typer.testing import CliRunner
from workshop import ORDER, ORDER_FIELDS, Record, Workshop

from headrace.cli import app


def test_a_column_that_the_feed_dropped_is_told_as_long_as_clean_holds_it(
    workshop: Callable[..., Workshop], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = {"name": "channel", "type": "string", "default": ""}
    warehouses = {"finance": {}, "engineering": {"drop": ["channel"]}}
    before = workshop({**ORDER, "warehouses": warehouses}, fields=[*ORDER_FIELDS, noted])
    row = {"id": "a", "revision": 1, "status": "paid", "price": Decimal(1), "email": "a@example.org", "created_at": 0}
    before.merge(Record({**row, "channel": "web"}))
    shop = before.redeclared(warehouses={"finance": {}, "engineering": {}})
    shop = shop.changed(*(field for field in ORDER_FIELDS if field["name"] != "email"))
    (tmp_path / shop.feed.file).write_text(json.dumps(shop.feed.schema))
    monkeypatch.setenv("HEADRACE_SCHEMAS", str(tmp_path))

    def told(word: str) -> dict[str, str]:
        done = CliRunner().invoke(app, ["where", word, "--json"])
        assert done.exit_code == 0, done.output
        return {place["store"]: place["how"] for place in json.loads(done.stdout)}

    for word in ("email", "channel"):
        assert told(word)["clean"] == "as it is, of former versions"
    assert "finance" not in told("email"), "a personal one goes nowhere once the feed does not say so"
    assert told("channel")["finance"] == "as it is, of former versions"
    assert "engineering" not in told("channel"), "it was withheld from it"
    assert told("price")["finance"] == "as it is"
    table = CliRunner().invoke(app, ["where", "email"])
    assert f"clean.{shop.feed.name}.email" in table.output
    nobody = CliRunner().invoke(app, ["where", "emial"])
    assert nobody.exit_code == 1
    assert 'Did you mean "email"?' in str(nobody.exception or nobody.output)
