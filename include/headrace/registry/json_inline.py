"""A JSON Schema with the schemas that it refers to written into it, for where there is no registry to ask."""

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urljoin

import jsonschema_rs

from headrace.registry.schema import InvalidSchema

NOWHERE = "http://nowhere.invalid/"
"""The address of a schema that has none, so that relative references lead somewhere."""
REFERRING = ("$ref", "$dynamicRef", "$recursiveRef")


def inlined(text: str, dependencies: Mapping[str, str]) -> str:
    """The text with the texts of its references, by their names, in their places; nothing is fetched."""
    root, others = json.loads(text), {name: json.loads(each) for name, each in dependencies.items()}
    known = dict(_addressed(root, others))
    try:
        made = jsonschema_rs.dereference(root, retriever=known.__getitem__, base_uri=NOWHERE)
    except (ValueError, KeyError, jsonschema_rs.ReferencingError) as error:
        raise InvalidSchema(f"its references cannot be written out: {error}") from error
    # A reference into a circle stays, and would then be taken for one into the root.
    if _refers(made):
        raise InvalidSchema("it refers to other subjects' schemas and in a circle, so it cannot be written out whole")
    return json.dumps(made, ensure_ascii=False)


def _addressed(root: Any, others: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The schemas by every address that a reference of their names may become."""
    bases = [NOWHERE, *others, *(_address(each) for each in (root, *others.values()))]
    for name, other in others.items():
        for base in bases:
            yield urljoin(urljoin(NOWHERE, base), name), other


def _address(schema: Any) -> str:
    found = schema.get("$id", schema.get("id")) if isinstance(schema, dict) else None
    return found if isinstance(found, str) else ""


def _refers(schema: Any) -> bool:
    if isinstance(schema, dict):
        return any(isinstance(schema.get(name), str) for name in REFERRING) or any(map(_refers, schema.values()))
    return isinstance(schema, list) and any(map(_refers, schema))
