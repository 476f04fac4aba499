"""The drafts of JSON Schema: which one a document is written in, and which of its keywords decide what is valid."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jsonschema_rs
from referencing import Specification
from referencing.jsonschema import DRAFT4, DRAFT6, DRAFT7, DRAFT201909, DRAFT202012

from headrace.registry.schema import InvalidSchema


@dataclass(frozen=True)
class Draft:
    """One edition of the specification."""

    name: str
    url: str
    specification: Specification[Any]
    keywords: frozenset[str]
    """Those that can make a value invalid; every other word is an annotation, or only tells where things are."""
    whole_numbers: frozenset[str]
    """What `integer` means: draft 4 goes by how a number is written, so that 1.0 is none."""
    reference_stands_alone: bool
    """Whether `$ref` makes its neighbours void, as it did until draft 7."""

    def check(self, schema: Any, *, at: str = "#") -> None:
        """Refuse what this draft's meta-schema refuses."""
        if isinstance(schema, bool):
            return
        if not isinstance(schema, dict):
            raise InvalidSchema(f"{at}: a JSON Schema is an object or a boolean, not {_kind(schema)}")
        try:
            jsonschema_rs.meta.validate({**schema, "$schema": self.url})
        except jsonschema_rs.ValidationError as error:
            where = "/".join([at, *(str(step) for step in error.instance_path)])
            raise InvalidSchema(f"{where} is not of JSON Schema {self.name}: {error.message}") from error


def _kind(value: Any) -> str:
    return {list: "an array", str: "a string", int: "a number", type(None): "null"}.get(type(value), "a number")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ALL = _words(
    "$ref type enum allOf anyOf oneOf not "
    "maximum exclusiveMaximum minimum exclusiveMinimum multipleOf maxLength minLength pattern "
    "items maxItems minItems uniqueItems "
    "properties patternProperties additionalProperties required maxProperties minProperties "
    # No word of the later drafts any more, but validators go on applying it.
    "dependencies"
)
# Formats and contents may be asserted until draft 7, and widely are; later drafts call them annotations.
_DRAFT_4 = _ALL | _words("format additionalItems")
_DRAFT_6 = _DRAFT_4 | _words("const contains propertyNames")
_DRAFT_7 = _DRAFT_6 | _words("if then else contentEncoding contentMediaType")
_LATER = _ALL | _words(
    "const contains minContains maxContains propertyNames if then else "
    "dependentRequired dependentSchemas unevaluatedItems unevaluatedProperties"
)
_DRAFT_2019_09 = _LATER | _words("additionalItems $recursiveRef")
_DRAFT_2020_12 = _LATER | _words("prefixItems $dynamicRef")

_WRITTEN_WHOLE = frozenset({"int"})
_WHOLE = frozenset({"int", "whole"})

DRAFTS: Mapping[str, Draft] = {
    draft.name: draft
    for draft in (
        Draft("draft 4", "http://json-schema.org/draft-04/schema#", DRAFT4, _DRAFT_4, _WRITTEN_WHOLE, True),
        Draft("draft 6", "http://json-schema.org/draft-06/schema#", DRAFT6, _DRAFT_6, _WHOLE, True),
        Draft("draft 7", "http://json-schema.org/draft-07/schema#", DRAFT7, _DRAFT_7, _WHOLE, True),
        Draft(
            "2019-09", "https://json-schema.org/draft/2019-09/schema", DRAFT201909, _DRAFT_2019_09, _WHOLE, False
        ),
        Draft(
            "2020-12", "https://json-schema.org/draft/2020-12/schema", DRAFT202012, _DRAFT_2020_12, _WHOLE, False
        ),
    )
}  # fmt: skip
UNDECLARED = DRAFTS["draft 7"]
LATEST = DRAFTS["2020-12"]

_BY_ADDRESS = {draft.url.removesuffix("#").partition("://")[2]: draft for draft in DRAFTS.values()}
_BY_ADDRESS["json-schema.org/schema"] = DRAFTS["draft 4"]


def declared(document: Any) -> Draft | None:
    """The draft that a document names in `$schema`; none where it names none, or one that nobody knows."""
    address = document.get("$schema") if isinstance(document, dict) else None
    return _BY_ADDRESS.get(address.removesuffix("#").partition("://")[2]) if isinstance(address, str) else None
