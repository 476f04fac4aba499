"""Lint against what is registered: asked of the registry in a running Airflow."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner
from workshop import ORDER, ORDER_FIELDS, Workshop

from headrace.cli import app

Make = Callable[..., Workshop]
NOTE = {"name": "note", "type": "string"}


def lint(path: Path, severity: str = "error") -> tuple[int, list[dict[str, Any]]]:
    done = CliRunner().invoke(app, ["lint", str(path), "--against-registry", "--json"])
    assert done.exit_code in (0, 1), done.output
    return done.exit_code, [each for each in json.loads(done.stdout) if each["severity"] == severity]


def write(folder: Path, shop: Workshop, *fields: Any, name: str | None = None, **declared: Any) -> Path:
    path = folder / f"{name or shop.feed.name}.avsc"
    schema = {**shop.feed.schema, "fields": [*ORDER_FIELDS, *fields], "feed": {**ORDER, "owner": "us", **declared}}
    path.write_text(json.dumps(schema))
    return path


def test_a_version_that_fits_what_is_registered_is_let_through(workshop: Make, tmp_path: Path) -> None:
    shop = workshop()
    assert lint(write(tmp_path, shop)) == (0, [])
    assert lint(write(tmp_path, shop, {**NOTE, "default": ""})) == (0, [])


def test_a_feed_that_nobody_registered_is_new_and_fine(workshop: Make, tmp_path: Path) -> None:
    assert lint(write(tmp_path, workshop(), NOTE, name="never_registered")) == (0, [])


def test_every_reason_of_the_registry_is_a_fault_with_its_place(workshop: Make, tmp_path: Path) -> None:
    code, faults = lint(write(tmp_path, workshop(), NOTE, {**NOTE, "name": "more"}))
    assert code == 1
    assert [(each["path"], each["fix"]) for each in faults] == [
        (f"fields.{len(ORDER_FIELDS)}", "Give the field a default."),
        (f"fields.{len(ORDER_FIELDS) + 1}", "Give the field a default."),
    ]


def test_an_attribute_whose_change_takes_a_rebuild_is_told(workshop: Make, tmp_path: Path) -> None:
    shop = workshop()
    code, faults = lint(write(tmp_path, shop, key=["revision"]), "warning")
    assert (code, [each["path"] for each in faults]) == (0, ["feed.key"])
    assert faults[0]["message"] == (
        'was ["id"] in the registry and is ["revision"] now: the clean table has one row per key.'
    )
    assert faults[0]["fix"].endswith(f"headrace rebuild {shop.feed.name}")


def test_a_registry_that_does_not_answer_is_no_verdict(
    workshop: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = json.dumps({"conn_type": "schema_registry", "host": "http://127.0.0.1:9/registry"})
    monkeypatch.setenv("AIRFLOW_CONN_HEADRACE_REGISTRY", address)
    done = CliRunner().invoke(app, ["lint", str(write(tmp_path, workshop())), "--against-registry"])
    assert done.exit_code == 2
    assert "Is the address right, and the registry up?" in " ".join(done.output.replace("│", " ").split())
