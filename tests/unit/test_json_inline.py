"""A JSON Schema that stands alone judges as it did with its references, and fetches nothing."""

import json
from typing import Any

import jsonschema_rs
import pytest

from headrace.registry.json_inline import inlined
from headrace.registry.schema import InvalidSchema

SEVEN, LATEST = "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"
TEXT = {"type": "string"}


def refers(to: str, **more: Any) -> dict[str, Any]:
    return {**more, "properties": {"a": {"$ref": to}}}


@pytest.mark.parametrize(
    ("schema", "others"),
    [
        (refers("text.json"), {"text.json": TEXT}),
        (refers("./text.json"), {"./text.json": TEXT}),
        (refers("text.json", **{"$schema": SEVEN, "$id": "https://a.example/b/main.json"}), {"text.json": TEXT}),
        (refers("text.json", **{"$schema": "http://json-schema.org/draft-04/schema#"}), {"text.json": TEXT}),
        (refers("more/text.json#/definitions/t"), {"more/text.json": {"definitions": {"t": TEXT}}}),
        (refers("text.json#t", **{"$schema": LATEST}), {"text.json": {"$defs": {"t": {"$anchor": "t", **TEXT}}}}),
        (refers("https://a.example/text.json"), {"https://a.example/text.json": TEXT}),
        (
            refers("b.json", **{"$schema": SEVEN}),
            {"c.json": TEXT, "b.json": {"$id": "https://b.example/b.json", "$ref": "c.json"}},
        ),
        (
            refers("b.json", **{"$schema": SEVEN}),
            {"b.json": {"definitions": {"t": {"$ref": "#/definitions/u"}, "u": TEXT}, "$ref": "#/definitions/t"}},
        ),
    ],
)
def test_a_schema_judges_as_it_did_with_its_references(schema: dict[str, Any], others: dict[str, Any]) -> None:
    alone = inlined(json.dumps(schema), {name: json.dumps(other) for name, other in others.items()})
    validator = jsonschema_rs.validator_for(json.loads(alone), offline=True)
    assert [validator.is_valid(value) for value in ({"a": "x"}, {"a": 1}, {})] == [True, False, True]


@pytest.mark.parametrize(
    "other",
    [
        {"definitions": {"t": {"properties": {"next": {"$ref": "#/definitions/t"}}}}, "$ref": "#/definitions/t"},
        {"properties": {"next": {"$ref": "other.json"}}},
        {"$ref": "https://a.example/unknown.json"},
    ],
)
def test_what_cannot_be_written_out_is_refused(other: dict[str, Any]) -> None:
    with pytest.raises(InvalidSchema):
        inlined(json.dumps(refers("other.json")), {"other.json": json.dumps(other)})
