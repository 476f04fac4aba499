"""Random pairs of Avro types, a writer's and a reader's, with values: what a reader may make of older records."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

from hypothesis import strategies as st

Json = Any


@dataclass(frozen=True)
class Pair:
    """A type as it was written and as it is read, and values of the first."""

    writer: Json
    reader: Json
    value: Json


NUMBERS = {
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**53), 2**53),
    "float": st.integers(-1000, 1000).map(lambda eighths: eighths / 8),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    "boolean": st.booleans(),
    "string": st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=5),
    "bytes": st.binary(max_size=5),
}
PROMOTED = [
    *((kind, kind) for kind in NUMBERS),
    ("int", "long"),
    ("int", "double"),
    ("long", "double"),
    ("float", "double"),
]
DEFAULTS = {"int": 7, "long": 7, "float": 0.5, "double": 0.5, "boolean": True, "string": "x", "bytes": "\u00ff"}


def pairs() -> st.SearchStrategy[Callable[[Any], Pair]]:
    """Makers of pairs; each takes a counter for the names of its types."""
    return st.recursive(_plain() | _enums(), _nested, max_leaves=6)


def _plain() -> st.SearchStrategy[Callable[[Any], Pair]]:
    kinds = st.sampled_from(PROMOTED)
    return kinds.flatmap(lambda kind: NUMBERS[kind[0]].map(lambda value: lambda _: Pair(kind[0], kind[1], value)))


def _enums() -> st.SearchStrategy[Callable[[Any], Pair]]:
    """An enum by another name, with fewer symbols and a default for the rest."""

    def make(value: str) -> Callable[[Any], Pair]:
        def made(names: Any) -> Pair:
            old, new = f"E{next(names)}", f"E{next(names)}"
            writer = {"type": "enum", "name": old, "symbols": ["a", "b", "c"]}
            return Pair(writer, {**writer, "name": new, "aliases": [old], "symbols": ["c", "a"], "default": "a"}, value)

        return made

    return st.sampled_from("abc").map(make)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Callable[[Any], Pair]]:
    return st.one_of(_optional(inner), _arrays(inner), _maps(inner), _records(inner))


def _optional(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Callable[[Any], Pair]]:
    """A type that became nullable, or was so already in the other order."""

    def make(drawn: tuple[Any, bool, bool]) -> Callable[[Any], Pair]:
        def made(names: Any) -> Pair:
            each, was_null, is_null = drawn[0](names), drawn[1], drawn[2]
            if isinstance(each.writer, list) or isinstance(each.reader, list):
                return each
            if not was_null:
                return Pair(each.writer, ["null", each.reader], each.value)
            return Pair(["null", each.writer], [each.reader, "null"], None if is_null else each.value)

        return made

    return st.tuples(inner, st.booleans(), st.booleans()).map(make)


def _arrays(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Callable[[Any], Pair]]:
    def make(each: Any) -> Callable[[Any], Pair]:
        def made(names: Any) -> Pair:
            item = each(names)
            types = ({"type": "array", "items": part} for part in (item.writer, item.reader))
            return Pair(*types, [item.value] * 2)

        return made

    return inner.map(make)


def _maps(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Callable[[Any], Pair]]:
    def make(each: Any) -> Callable[[Any], Pair]:
        def made(names: Any) -> Pair:
            held = each(names)
            types = ({"type": "map", "values": part} for part in (held.writer, held.reader))
            return Pair(*types, {"k": held.value})

        return made

    return inner.map(make)


def _records(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Callable[[Any], Pair]]:
    def make(drawn: tuple[list[Any], list[str], bool]) -> Callable[[Any], Pair]:
        members, added, renames = drawn
        return lambda names: record([each(names) for each in members], names, added=added, renames=renames)

    return st.tuples(
        st.lists(inner, min_size=1, max_size=3), st.lists(st.sampled_from(list(DEFAULTS))), st.booleans()
    ).map(make)


def record(members: list[Pair], names: Any, *, added: list[str], renames: bool) -> Pair:
    """A record whose fields change places and names, with some more that have defaults."""
    old, new = f"R{next(names)}", f"R{next(names)}"
    writer = [{"name": f"f{place}", "type": each.writer} for place, each in enumerate(members)]
    reader: list[Json] = [
        {"name": f"g{place}", "type": each.reader, "aliases": ["none", f"f{place}"]}
        if renames
        else {"name": f"f{place}", "type": each.reader}
        for place, each in enumerate(members)
    ]
    more = [{"name": f"d{place}", "type": kind, "default": DEFAULTS[kind]} for place, kind in enumerate(added)]
    return Pair(
        {"type": "record", "name": old, "fields": writer},
        {"type": "record", "name": new, "aliases": [old], "fields": [*more, *reversed(reader)]},
        {f"f{place}": each.value for place, each in enumerate(members)},
    )


def versions() -> st.SearchStrategy[Pair]:
    """Two versions of a whole row, and one of the older."""

    def make(drawn: tuple[list[Any], list[str], bool]) -> Pair:
        members, added, renames = drawn
        names = count()
        key = Pair("string", "string", "k")
        return record([key, *(each(names) for each in members)], names, added=added, renames=renames)

    return st.tuples(
        st.lists(pairs(), min_size=3, max_size=6), st.lists(st.sampled_from(list(DEFAULTS)), max_size=3), st.booleans()
    ).map(make)
