"""What the demo needs to know of a feed, read from its schema file without the package that it judges."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import fastavro

from demo.errors import FeedError

SCHEMAS = Path(__file__).resolve().parents[1] / "schemas"
EXAMPLES = ("orders", "calls", "customers")

Form = Literal["avro", "json"]
Merge = Literal["latest", "first", "patch", "append"]


@dataclass(frozen=True)
class Share:
    """What one warehouse may see: personal fields kept as they are or masked, and further columns dropped."""

    keep: frozenset[str]
    mask: Mapping[str, str]
    drop: frozenset[str]


@dataclass(frozen=True)
class Feed:
    """One example feed. `example` says whose stories are told; `name` may differ, so that a test can own its topic."""

    name: str
    example: str
    form: Form
    schema: dict[str, Any]
    fields: tuple[str, ...]
    personal: frozenset[str]
    key: tuple[str, ...]
    order: tuple[str, ...]
    merge: Merge
    partitions: int
    warehouses: Mapping[str, Share]
    deletes: tuple[str, tuple[Any, ...]] | None = None
    """The field, and its values, by which a version deletes its row."""


def read_feed(example: str, *, name: str | None = None, folder: Path = SCHEMAS) -> Feed:
    """The feed that `schemas/<example>.avsc` or `.json` declares."""
    avro, plain = folder / f"{example}.avsc", folder / f"{example}.json"
    if avro.exists():
        return _avro_feed(json.loads(avro.read_text(encoding="utf-8")), example, name=name or example)
    if plain.exists():
        return _json_feed(json.loads(plain.read_text(encoding="utf-8")), example, name=name or example)
    raise FeedError(f"There is neither {avro.name} nor {plain.name} in {folder}. The demo tells {', '.join(EXAMPLES)}.")


def _avro_feed(schema: dict[str, Any], example: str, *, name: str) -> Feed:
    fields = {field["name"]: field for field in schema["fields"]}
    parsed = cast("dict[str, Any]", fastavro.parse_schema(schema))
    return _feed(schema["feed"], fields, name=name, example=example, form="avro", schema=parsed)


def _json_feed(schema: dict[str, Any], example: str, *, name: str) -> Feed:
    return _feed(schema["x-feed"], schema["properties"], name=name, example=example, form="json", schema=schema)


def _feed(
    declared: Mapping[str, Any],
    fields: Mapping[str, Mapping[str, Any]],
    *,
    name: str,
    example: str,
    form: Form,
    schema: dict[str, Any],
) -> Feed:
    return Feed(
        name=name,
        example=example,
        form=form,
        schema=schema,
        fields=tuple(fields),
        personal=frozenset(field for field, about in fields.items() if "pii" in about),
        key=tuple(declared["key"]),
        order=tuple(declared.get("order", ())),
        merge=declared.get("merge", "latest"),
        partitions=declared.get("topic", {}).get("partitions", 1),
        warehouses={warehouse: _share(share) for warehouse, share in declared["warehouses"].items()},
        deletes=_deletes(declared.get("delete")),
    )


def _deletes(declared: Mapping[str, Any] | None) -> tuple[str, tuple[Any, ...]] | None:
    return (declared["field"], tuple(declared.get("one_of", [True]))) if declared else None


def _share(declared: Mapping[str, Any]) -> Share:
    return Share(
        keep=frozenset(declared.get("keep", ())),
        mask=dict(declared.get("mask", {})),
        drop=frozenset(declared.get("drop", ())),
    )
