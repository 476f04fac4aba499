"""The analysts' notebook and the page about reading: what they show is what a round of the demo comes to."""

import doctest
import os
import shlex
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import notebook
import pytest
from shelf import Shelf, published
from typer.testing import CliRunner

from demo.feed import EXAMPLES, read_feed
from demo.generator import meanings
from demo.oracle import judged
from headrace import feed as feeds
from headrace.airflow import connections
from headrace.cli import app
from headrace.settings import Settings

ROOT = Path(__file__).parents[2]
NOTEBOOK, PAGE = ROOT / "docs" / "analysts.ipynb", ROOT / "docs" / "read.md"


@pytest.fixture(scope="module", autouse=True)
def demo_rows(stack: Any) -> Iterator[None]:
    """A lake and a catalog of their own, with the rows that the oracle says a round of the demo ends with."""
    name = f"t_{uuid.uuid4().hex[:10]}"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HEADRACE_CATALOG", name)
        environment.setenv("HEADRACE_LAKE", f"{Settings().lake}/{name}")
        environment.setenv("HEADRACE_SCHEMAS", str(ROOT / "schemas"))
        lake = connections.lake(Settings())
        for example in EXAMPLES:
            told = read_feed(example)
            rows, _ = judged(told, meanings(told, rounds=1))
            published(Shelf(feeds.named(example, Settings().schemas), lake), *rows)
        yield


def shown(page: dict[str, Any]) -> list[Any]:
    """The outputs, but of a picture only that it is there: its bytes are those of one machine's libraries."""
    outputs = [output for cell in page["cells"] for output in cell.get("outputs", [])]
    for data in (output.get("data", {}) for output in outputs):
        data.update({"image/png": ""} if "image/png" in data else {})
    return outputs


def test_the_notebook_shows_what_it_says_it_does() -> None:
    fresh = notebook.run(notebook.load(NOTEBOOK))
    if os.environ.get("WRITE_NOTEBOOK"):
        notebook.save(NOTEBOOK, fresh)
    committed = shown(notebook.load(NOTEBOOK))
    assert shown(fresh) == committed, "Type: WRITE_NOTEBOOK=1 pytest tests/integration/test_read_pages.py"


def test_the_notebook_names_no_machine_and_no_person() -> None:
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert not any(word in text for word in (str(ROOT), "@example", "127.0.0.1", os.environ["HEADRACE_STATE"]))
    assert len(text) < 60_000


def test_the_examples_of_the_page_give_what_it_says() -> None:
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    told: list[str] = []
    examples = doctest.DocTestParser().get_doctest(PAGE.read_text(encoding="utf-8"), {}, "read.md", str(PAGE), 0)
    doctest.DocTestRunner(optionflags=options).run(examples, out=told.append)
    assert not told, "".join(told)


def test_the_command_of_the_page_prints_what_it_says() -> None:
    command, *expected = PAGE.read_text(encoding="utf-8").partition("$ headrace ")[2].partition("```")[0].splitlines()
    done = CliRunner().invoke(app, shlex.split(command))
    assert done.exit_code == 0, done.output
    assert [line.split() for line in done.stdout.splitlines()] == [line.split() for line in expected]


@pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
def test_rows_are_written_to_a_file(format_: str, tmp_path: Path) -> None:
    file = tmp_path / f"orders.{format_}"
    command = ["read", "orders", "--columns", "order_id,price", "--limit", "7", "--format", format_, "-o", str(file)]
    assert CliRunner().invoke(app, command).exit_code == 0
    import duckdb

    rows = duckdb.sql(f"select count(*), count(price) from '{file}'").fetchall()
    assert rows == [(7, 7)]
    assert CliRunner().invoke(app, ["read", "orders", "--format", "parquet"]).exit_code == 2


def test_the_command_tells_of_columns_and_of_what_was_published() -> None:
    told = CliRunner().invoke(app, ["read", "orders", "--describe"]).stdout
    assert "Where the confirmation was sent." in told
    assert "headrace" not in told
    assert "3905" in CliRunner().invoke(app, ["read", "orders", "--snapshots"]).stdout
