"""The registry's page tells every route, query and error code that there is."""

import re
from pathlib import Path
from typing import Any

import pytest

from headrace.database import Database
from headrace.registry.api import application
from headrace.registry.errors import Code
from headrace.registry.registry import Registry
from headrace.registry.store import Store

PAGE = (Path(__file__).parents[2] / "docs" / "registry.md").read_text(encoding="utf-8")
SHORT = {"subject": "s", "version": "v", "id_": "id"}


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    # Nothing is asked of the database to describe the routes.
    paths: dict[str, Any] = application(Registry(Store(Database("nowhere", 1, "none", "none", "")))).openapi()["paths"]
    return paths


def test_every_route_and_query_is_documented(described: dict[str, Any]) -> None:
    for path, operations in described.items():
        told = re.sub(r"\{(\w+)\}", lambda match: f"{{{SHORT.get(match[1], match[1])}}}", path)
        rows = [line for line in PAGE.splitlines() if line.startswith("|") and re.search(rf"{re.escape(told)}`", line)]
        assert rows, f"docs/registry.md: {told} is not in a table."
        queries = {
            parameter["name"]
            for operation in operations.values()
            for parameter in operation.get("parameters", ())
            if parameter["in"] == "query"
        }
        missing = [name for name in queries if not any(f"`{name}`" in row for row in rows)]
        assert not missing, f"docs/registry.md: {told} lacks {missing}."


@pytest.mark.parametrize("code", Code)
def test_every_error_code_is_documented(code: Code) -> None:
    assert re.search(rf"\b{code.value}\b", PAGE), f"docs/registry.md: {code.value} ({code.name}) is not told."
