"""Great Expectations' expectations as it publishes them itself: their names, and the arguments that each takes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ENGINE = "Spark"
OURS = {"id", "meta", "metadata", "severity", "result_format", "catch_exceptions", "rendered_content", "windows"}
"""What the check job sets itself, and what only their own service reads."""
COLUMNS = ("column", "column_A", "column_B")
COLUMN_LIST = "column_list"


@dataclass(frozen=True)
class Expectation:
    """One expectation, and what it may and must be told."""

    name: str
    arguments: tuple[str, ...]
    needed: tuple[str, ...]
    runs: bool
    """Whether it can be tested where our rows are."""


@cache
def expectations() -> Mapping[str, Expectation]:
    """All of them by name, from the schemas that come with the package: importing it takes seconds."""
    spec = find_spec("great_expectations")
    roots = spec.submodule_search_locations if spec else None
    files = [path for root in roots or () for path in Path(root).glob("expectations/core/schemas/*.json")]
    found = (_expectation(json.loads(path.read_text(encoding="utf-8"))) for path in sorted(files))
    return {each.name: each for each in found if each}


def _expectation(schema: Mapping[str, Any]) -> Expectation | None:
    properties = schema.get("properties", {})
    about = properties.get("metadata", {}).get("properties", {})
    if "expectation_type" not in about:
        return None
    return Expectation(
        about["expectation_type"]["const"],
        arguments=tuple(name for name in properties if name not in OURS),
        needed=tuple(schema.get("required", ())),
        runs=ENGINE in about["supported_data_sources"]["const"],
    )


def named_columns(arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The columns that arguments name, each with the argument that does."""
    alone = [(name, arguments[name]) for name in COLUMNS if isinstance(arguments.get(name), str)]
    listed = arguments.get(COLUMN_LIST)
    several = listed if isinstance(listed, list) else []
    return [*alone, *((COLUMN_LIST, each) for each in several if isinstance(each, str))]
