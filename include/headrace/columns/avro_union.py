"""The union of an Avro schema and its earlier versions: a reader that still knows the fields which were dropped."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from pyiceberg.types import IcebergType, ListType, MapType, StructType

from headrace.columns.avro import member_name, members, values
from headrace.columns.avro_names import NAMED, RECORDS, resolved

Type = Any
"""A resolved Avro type."""


def united(schema: Type, olders: Sequence[Type], there: StructType) -> Type:
    """The schema with the fields of older ones, the newest first, as far as the table's columns `there` have them.

    Such a field is null in a record whose version has dropped it, and what it was in a record from before.
    """
    whole = resolved(schema, [])
    for older in olders:
        whole = _joined(whole, resolved(older, []), there)
    return _written(whole, {}, count())


def _joined(new: Type, old: Type, there: IcebergType | None) -> Type:
    if isinstance(new, list) or isinstance(old, list):
        return _joined_choice(new, old, there)
    match new["type"], old["type"], there:
        case "array", "array", ListType():
            return {**new, "items": _joined(new["items"], old["items"], there.element_type)}
        case "map", "map", MapType():
            return {**new, "values": _joined(new["values"], old["values"], there.value_type)}
        case (("record" | "error"), ("record" | "error"), StructType()):
            return {**new, "fields": _joined_fields(new["fields"], old["fields"], there)}
    return new


def _joined_choice(new: Type, old: Type, there: IcebergType | None) -> Type:
    """Of two unions, or of a type that became one: the members that meet, and those that only the older one had."""
    ours, theirs = list(values(new)), {member_name(member): member for member in values(old)}
    if len(ours) == len(theirs) == 1:
        joined = [_joined(ours[0], next(iter(theirs.values())), there)]
    else:
        columns = _columns(there)
        met = {name: [each for each in (name, *_short(member)) if each in theirs] for name, member in _named(ours)}
        joined = [
            _joined(member, theirs[met[name][0]], columns.get(name)) if met[name] else member
            for name, member in _named(ours)
        ]
        older = {name for names in met.values() for name in names}
        joined += [member for name, member in theirs.items() if name in columns and name not in older]
    # In their order, for a default is of the first.
    following = iter(joined)
    whole = [member if member["type"] == "null" else next(following) for member in members(new)]
    whole += following
    return whole if len(whole) > 1 else whole[0]


def _named(choices: Sequence[Type]) -> list[tuple[str, Type]]:
    return [(member_name(member), member) for member in choices]


def _short(member: Type) -> list[str]:
    return [alias.rpartition(".")[2] for alias in member.get("aliases", ())]


def _columns(there: IcebergType | None) -> dict[str, IcebergType]:
    return {field.name: field.field_type for field in there.fields} if isinstance(there, StructType) else {}


def _joined_fields(new: list[Type], old: list[Type], there: StructType) -> list[Type]:
    columns = _columns(there)
    meets = {name: field["name"] for field in new for name in (*field.get("aliases", ()), field["name"])}
    found = {meets[field["name"]]: field["type"] for field in old if field["name"] in meets}
    joined = [
        {**field, "type": _joined(field["type"], found[field["name"]], columns.get(field["name"]))}
        if field["name"] in found
        else field
        for field in new
    ]
    taken = {field["name"].lower() for field in new}
    dropped = (field for field in old if field["name"] not in meets and field["name"].lower() not in taken)
    return [*joined, *(_nullable(field) for field in dropped if field["name"] in columns)]


def _nullable(field: Type) -> Type:
    return {"name": field["name"], "type": [{"type": "null"}, *values(field["type"])], "default": None}


def _written(type_: Type, known: dict[str, Mapping[str, Any]], numbers: Iterator[int]) -> Type:
    """The type as a schema: each name is defined once; where it would mean two things, the second has another one."""
    if isinstance(type_, list):
        return [_written(member, known, numbers) for member in type_]
    whole = dict(type_)
    if whole["type"] in NAMED:
        full = f"{whole['namespace']}.{whole['name']}".removeprefix(".")
        # Records need not have the name that they were written under; enums and fixed need.
        if known.get(full) == type_ or (full in known and whole["type"] not in RECORDS):
            return full
        if full in known:
            whole |= {"namespace": f"part{next(numbers)}", "aliases": []}
        else:
            known[full] = type_
    for part in ("items", "values"):
        if part in whole:
            whole[part] = _written(whole[part], known, numbers)
    if whole["type"] in RECORDS:
        whole["fields"] = [{**field, "type": _written(field["type"], known, numbers)} for field in whole["fields"]]
    return whole
