"""The reference: the attribute tables of `docs/feed-file.md`, and the JSON Schema from which editors complete files.

Both are made from the declaration's model: `python -m headrace.reference` writes them anew.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from headrace.declaration import Declaration

Schema = Mapping[str, Any]

PAGE, EDITORS = "feed-file.md", "feed-file.schema.json"
BEGIN, END = "<!-- made by python -m headrace.reference -->\n", "<!-- end -->\n"
NEEDED = "(needed)"
PII = {
    "description": "The kind of personal data that the field holds, such as `email`; `false` says that it holds none.",
    "anyOf": [{"type": "string", "minLength": 1}, {"const": False}],
}


def write(docs: Path) -> None:
    """Bring both files in the docs folder up to date."""
    (docs / EDITORS).write_text(editor_text(), encoding="utf-8")
    page = docs / PAGE
    page.write_text(renewed(page.read_text(encoding="utf-8")), encoding="utf-8")


def editor_text() -> str:
    return json.dumps(editor_schema(), indent=2, ensure_ascii=False) + "\n"


def editor_schema() -> dict[str, Any]:
    """What a whole feed file may be, Avro or JSON Schema; of the schema's own language only what a feed needs."""
    declaration = _untitled(Declaration.model_json_schema())
    parts = declaration.pop("$defs")
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A feed file of Headrace",
        "type": "object",
        "properties": {
            "feed": {"$ref": "#/$defs/Declaration"},
            "x-feed": {"$ref": "#/$defs/Declaration"},
            "fields": {"type": "array", "items": {"$ref": "#/$defs/AvroField"}},
            "properties": {"type": "object", "additionalProperties": {"$ref": "#/$defs/JsonProperty"}},
        },
        "oneOf": [
            {"properties": {"type": {"const": "record"}}, "required": ["feed", "type", "name", "fields"]},
            {"required": ["x-feed"]},
        ],
        "$defs": {
            "Declaration": declaration,
            **parts,
            "AvroField": {"type": "object", "properties": {"doc": {"type": "string"}, "pii": PII}},
            "JsonProperty": {"properties": {"description": {"type": "string"}, "pii": PII}},
        },
    }


def _untitled(schema: Any) -> Any:
    """The schema without the titles that pydantic makes of names, which say nothing more; properties keep theirs."""
    if isinstance(schema, list):
        return [_untitled(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {name: _untitled(each) for name, each in schema.items() if name != "title" or not isinstance(each, str)}


def renewed(page: str) -> str:
    """The page with the tables between its two marks written anew."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{tables()}\n{END}{after}"


def tables() -> str:
    """One table for each part of the declaration, in the order of its attributes."""
    whole = Declaration.model_json_schema()
    return "".join(_tables("feed", whole, parts=whole["$defs"]))


def _tables(path: str, part: Schema, *, parts: Mapping[str, Schema]) -> Iterator[str]:
    yield f"\n### `{path}`\n\n{part['description']}\n\n| attribute | type | default | meaning |\n|---|---|---|---|\n"
    for name, attribute in part["properties"].items():
        needed = name in part.get("required", ())
        # Where an attribute says the same as the part that it holds, only the part has it.
        meaning = attribute.get("description") or parts[_part(attribute) or ""]["description"]
        type_ = words(attribute)
        if _part(attribute):
            type_ = f"[{type_}](#{_anchor(_below(path, name, attribute))})"
        cells = [f"`{name}`", type_, _default(attribute, needed=needed), meaning]
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"
    for name, attribute in part["properties"].items():
        if inner := _part(attribute):
            yield from _tables(_below(path, name, attribute), parts[inner], parts=parts)


def _below(path: str, name: str, attribute: Schema) -> str:
    """Where the parts that an attribute holds stand."""
    return f"{path}.{name}" + {"array": "[]", "object": ".NAME"}.get(attribute.get("type", ""), "")


def _anchor(path: str) -> str:
    """A heading as links call it."""
    return "".join(letter for letter in path.lower() if letter.isalnum() or letter == "_")


def _part(attribute: Schema) -> str | None:
    """The part of the declaration that an attribute holds: itself, in a list or by names."""
    held = [attribute, attribute.get("items"), attribute.get("additionalProperties"), *attribute.get("anyOf", ())]
    found = (each["$ref"] for each in held if isinstance(each, dict) and "$ref" in each)
    return next((reference.rpartition("/")[2] for reference in found), None)


def words(attribute: Schema) -> str:
    """An attribute's type as people say it."""
    if choices := [each for each in attribute.get("anyOf", ()) if each.get("type") != "null"]:
        return " or ".join(words(each) for each in choices)
    if "enum" in attribute:
        return ", ".join(f"`{word}`" for word in attribute["enum"])
    match attribute:
        case {"const": value}:
            return f"`{json.dumps(value)}`"
        case {"$ref": _}:
            return "object"
        case {"type": "array", "maxItems": 2}:
            return "list of two"
        case {"type": "array", "items": {"type": "string"}}:
            return "list of texts"
        case {"type": "array"}:
            return "list"
        case {"type": "object", "additionalProperties": dict(values)} if values:
            return f"object: name to {words(values)}"
        case {"type": "string", "pattern": pattern} if "MiB" in pattern:
            return "size"
        case {"type": "string", "pattern": pattern} if "smhd" in pattern:
            return "duration"
    plain = {"string": "text", "integer": "number", "number": "number", "boolean": "true, false"}
    return plain.get(attribute.get("type", ""), "object")


def _default(attribute: Schema, *, needed: bool) -> str:
    if needed:
        return NEEDED
    default = attribute.get("default")
    return "" if default is None else f"`{default}`" if isinstance(default, str) else f"`{json.dumps(default)}`"


if __name__ == "__main__":
    write(Path("docs"))
