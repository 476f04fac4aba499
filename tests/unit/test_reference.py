"""The reference page and the schema for editors: made from the model, and never behind it."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from headrace import feed, reference
from headrace.declaration import Declaration
from headrace.quarantine import Reason

ROOT = Path(__file__).parents[2]
SCHEMAS, DOCS = ROOT / "schemas", ROOT / "docs"
OUTDATED = "Out of date. Type: python -m headrace.reference"
EDITOR = Draft7Validator(reference.editor_schema())


def avro(declared: dict[str, Any], **field: Any) -> dict[str, Any]:
    fields = [{"name": "id", "type": "string", **field}]
    return {"type": "record", "name": "Row", "fields": fields, "feed": {"key": ["id"], **declared}}


def wrong(document: dict[str, Any]) -> list[str]:
    return [f"{error.json_path} {error.message}" for error in EDITOR.iter_errors(document)]


def test_the_page_is_up_to_date() -> None:
    page = (DOCS / reference.PAGE).read_text(encoding="utf-8")
    assert page == reference.renewed(page), OUTDATED


def test_the_schema_for_editors_is_up_to_date() -> None:
    assert (DOCS / reference.EDITORS).read_text(encoding="utf-8") == reference.editor_text(), OUTDATED


def test_every_attribute_is_documented() -> None:
    tables = reference.tables()
    whole = Declaration.model_json_schema()
    for part in (whole, *whole["$defs"].values()):
        for name in part["properties"]:
            assert f"| `{name}` |" in tables


def test_a_text_of_some_pattern_is_a_size_a_duration_or_a_text() -> None:
    tables = reference.tables()
    for told in ("`file` | text", "`retry_delay` | duration", "`largest_message` | number or size"):
        assert f"| {told} |" in tables


@pytest.mark.parametrize("page", [reference.PAGE, "quarantine.md"])
def test_every_reason_for_quarantine_is_documented(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert [reason for reason in Reason if f"| `{reason}` |" not in text] == []


def test_the_example_of_the_page_is_a_good_feed() -> None:
    page = (DOCS / reference.PAGE).read_text(encoding="utf-8")
    example = page.partition("```json\n")[2].partition("```")[0]
    assert feed.parse("orders.avsc", example).declaration.owner == "shop-team"
    assert wrong(json.loads(example)) == []


def test_the_checks_of_the_page_are_good_checks() -> None:
    page = (DOCS / reference.PAGE).read_text(encoding="utf-8")
    forms = page.partition("## Checks")[2].partition("## Fields")[0]
    checks = [json.loads(line.split("`")[1]) for line in forms.splitlines() if line.startswith("| `{")]
    assert len(checks) == 10
    assert wrong(avro({"checks": checks})) == []


@pytest.mark.parametrize("path", feed.files(SCHEMAS), ids=lambda path: path.name)
def test_every_example_is_good_for_editors(path: Path) -> None:
    assert wrong(json.loads(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (avro({"ordr": []}), "$.feed Additional properties are not allowed ('ordr' was unexpected)"),
        (avro({"warehouses": {"a": {"maks": {}}}}), "$.feed.warehouses.a Additional properties"),
        (avro({"merge": "newest"}), "$.feed.merge 'newest' is not one of"),
        (avro({"topic": {"partitions": "3"}}), "$.feed.topic.partitions '3' is not of type 'integer'"),
        (avro({"runs": {"retry_delay": "soon"}}), "$.feed.runs.retry_delay 'soon' does not match"),
        (avro({"topic": {"largest_message": "big"}}), "$.feed.topic.largest_message 'big' is not valid"),
        (avro({}, pii=True), "$.fields[0].pii True is not valid"),
        ({**avro({}), "type": "enum"}, "is not valid under any of the given schemas"),
        ({"x-feed": {"key": []}}, "$['x-feed'].key [] should be non-empty"),
    ],
)
def test_editors_underline_what_is_wrong(document: dict[str, Any], told: str) -> None:
    assert told in "\n".join(wrong(document))


@pytest.mark.parametrize("size", [1048588, "16 MiB"])
def test_editors_take_sizes_both_ways(size: object) -> None:
    assert wrong(avro({"topic": {"largest_message": size, "retention": "forever"}}, pii=False)) == []
