"""Whether data written with one Avro schema can be read with another: every reason why not, each with its path.

The rules, the names of the reasons and their texts are those of Avro's Java library and Confluent's registry. Where
those accept what their own readers then cannot read, or read as something else, these refuse:

- A logical type is part of a type. Confluent looks only at the bytes, so a decimal of another scale, milliseconds for
  microseconds or days for an instant are read without a word and are wrong. Adding or removing an annotation is fine,
  for the bytes stay; not together with a promotion, which would take the text "12.50" for the bytes of a decimal. A
  decimal of the same scale may gain digits.
- A union is read by the branch that a reader takes, not by any that would do: the one of that name or alias, else (a
  record) of that name in another namespace; the type itself, else one that it is promoted to. An enum or fixed of
  another namespace is none of a union's branches to the Java library; outside of unions only the last part of a name
  counts, as the specification has it.
- A field's alias counts only in a record of the same full name or alias: in others the Java library does not see it.
- Two reader fields that take the same writer field, by name and alias, or one that could take two, are ambiguous:
  libraries differ in which they fill.
- A recursive type is judged by what it holds at last, not by what was assumed of it on the way.

A pair of named types that does not fit is told once, where it is first met.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from headrace.registry.avro.logical import logical
from headrace.registry.avro.types import (
    Array,
    ByName,
    Definition,
    Enum,
    Fixed,
    Kind,
    Map,
    Named,
    Record,
    Schema,
    Type,
    Union,
    simple_name,
)
from headrace.registry.schema import Incompatibility


class Reason(StrEnum):
    """Why two types do not fit; all but the last in Confluent's words."""

    NAME_MISMATCH = "NAME_MISMATCH"
    FIXED_SIZE_MISMATCH = "FIXED_SIZE_MISMATCH"
    MISSING_ENUM_SYMBOLS = "MISSING_ENUM_SYMBOLS"
    READER_FIELD_MISSING_DEFAULT_VALUE = "READER_FIELD_MISSING_DEFAULT_VALUE"
    TYPE_MISMATCH = "TYPE_MISMATCH"
    MISSING_UNION_BRANCH = "MISSING_UNION_BRANCH"
    AMBIGUOUS_FIELD_ALIAS = "AMBIGUOUS_FIELD_ALIAS"


# `%s` is the reader, then the writer: a registry calls them new and old, by the direction that it checks.
DESCRIPTIONS: Mapping[Reason, str] = {
    Reason.NAME_MISMATCH: "The name of the schema has changed (path '{path}')",
    Reason.FIXED_SIZE_MISMATCH: "The size of FIXED type field at path '{path}' in the %s schema does not match with the"
    " %s schema",
    Reason.MISSING_ENUM_SYMBOLS: "The %s schema is missing enum symbols '{info}' at path '{path}' in the %s schema",
    Reason.READER_FIELD_MISSING_DEFAULT_VALUE: "The field '{info}' at path '{path}' in the %s schema has no default "
    "value and is missing in the %s schema",
    Reason.TYPE_MISMATCH: "The type (path '{path}') of a field in the %s schema does not match with the %s schema",
    Reason.MISSING_UNION_BRANCH: "The %s schema is missing a type inside a union field at path '{path}' in the %s "
    "schema",
    Reason.AMBIGUOUS_FIELD_ALIAS: "The names and aliases at path '{path}' in the %s schema do not say which field of "
    "the %s schema is meant",
}

PROMOTIONS: Mapping[Kind, frozenset[Kind]] = {
    Kind.INT: frozenset({Kind.LONG, Kind.FLOAT, Kind.DOUBLE}),
    Kind.LONG: frozenset({Kind.FLOAT, Kind.DOUBLE}),
    Kind.FLOAT: frozenset({Kind.DOUBLE}),
    Kind.STRING: frozenset({Kind.BYTES}),
    Kind.BYTES: frozenset({Kind.STRING}),
}
"""What each of a writer's types may be read as."""


class Difference(NamedTuple):
    """One reason, where it is and what it is about."""

    reason: Reason
    path: str
    info: str

    def incompatibility(self) -> Incompatibility:
        description = DESCRIPTIONS[self.reason].format(path=self.path, info=self.info)
        message = f"{{errorType:'{self.reason}', description:'{description}', additionalInfo:'{self.info}'}}"
        return Incompatibility(self.reason, self.path, message)


def incompatibilities(reader: Schema, writer: Schema) -> Sequence[Incompatibility]:
    """Why data of the writer cannot be read with the reader; nothing when all of it can."""
    return [difference.incompatibility() for difference in differences(reader, writer)]


def differences(reader: Schema, writer: Schema) -> Sequence[Difference]:
    """The same, before it is put into words."""
    comparison = _Comparison(reader, writer)
    comparison.settle()
    return list(comparison.tell())


class _Pair(NamedTuple):
    """A reader's and a writer's named type, by full name."""

    reader: str
    writer: str


class _Owed(NamedTuple):
    """A pair that has to fit in its turn."""

    pair: _Pair
    path: str


_Found = Iterator[Difference | _Owed]


class _Branches(NamedTuple):
    """A union's branches: by kind, by name and alias, and by the last part of their names."""

    of_kind: dict[Kind, list[Type]]
    named: dict[tuple[Kind, str], list[Type]]
    ending: dict[tuple[Kind, str], list[Type]]


class _Comparison:
    """Two schemas side by side.

    Every pair of named types is taken to fit until it is refuted. Rules look no further than the next named pair; when
    that one is refuted, those that asked for it are judged again. What is left at the end fits, however recursive.
    """

    def __init__(self, reader: Schema, writer: Schema) -> None:
        self._reader = reader
        self._writer = writer
        self._refuted: set[_Pair] = set()
        self._asking: dict[_Pair, set[_Pair]] = {}
        self._judging: _Pair | None = None
        self._waiting: list[_Pair] = []
        self._branches: dict[int, _Branches] = {}

    def settle(self) -> None:
        self._fits(self._types(self._reader.root, self._writer.root, ""))
        while self._waiting:
            self._judging = pair = self._waiting.pop()
            if pair not in self._refuted and not self._fits(self._pair(pair, "")):
                self._refuted.add(pair)
                self._waiting.extend(self._asking[pair])

    def tell(self) -> Iterator[Difference]:
        open_: list[_Found] = [self._types(self._reader.root, self._writer.root, "")]
        while open_:
            match next(open_[-1], None):
                case None:
                    open_.pop()
                case Difference() as difference:
                    yield difference._replace(path=difference.path or "/")
                case _Owed(pair, path) if pair in self._refuted:
                    # Told once: whatever else fails only because of it needs no mending of its own.
                    self._refuted.remove(pair)
                    open_.append(self._pair(pair, path))

    def _fits(self, found: _Found) -> bool:
        # To the end, so that every pair is met.
        every = list(found)
        owed = {one.pair for one in every if isinstance(one, _Owed)}
        for pair in owed:
            if pair not in self._asking:
                self._asking[pair] = set()
                self._waiting.append(pair)
        if self._judging:
            for pair in owed:
                self._asking[pair].add(self._judging)
        return all(isinstance(one, _Owed) for one in every) and self._refuted.isdisjoint(owed)

    def _types(self, reader: Type, writer: Type, path: str) -> _Found:
        if isinstance(writer, Union):
            yield from self._writer_union(reader, writer, path)
        elif isinstance(reader, Union):
            if not self._readable(reader, writer):
                yield self._missing_branch(writer, path)
        elif isinstance(reader, ByName) and isinstance(writer, ByName):
            yield _Owed(_Pair(reader.name, writer.name), path)
        elif isinstance(reader, Array) and isinstance(writer, Array):
            yield from self._types(reader.items, writer.items, f"{path}/items")
        elif isinstance(reader, Map) and isinstance(writer, Map):
            yield from self._types(reader.values, writer.values, f"{path}/values")
        else:
            yield from _kinds(self._reader.definition(reader), self._writer.definition(writer), path)

    def _writer_union(self, reader: Type, writer: Union, path: str) -> _Found:
        for index, branch in enumerate(writer.branches):
            if not isinstance(reader, Union):
                yield from self._types(reader, branch, f"{path}/{index}")
            elif not self._readable(reader, branch):
                yield self._missing_branch(branch, f"{path}/{index}")

    def _missing_branch(self, writer: Type, path: str) -> Difference:
        kind = self._writer.definition(writer).kind.name
        return Difference(Reason.MISSING_UNION_BRANCH, path, f"reader union lacking writer type: {kind}")

    def _readable(self, reader: Union, writer: Type) -> bool:
        taken = self._taken(reader, writer)
        return bool(taken) and all(self._fits(self._types(branch, writer, "")) for branch in taken)

    def _taken(self, reader: Union, writer: Type) -> Sequence[Type]:
        """The branches that a reader may take for the writer's type."""
        kind, branches = self._writer.definition(writer).kind, self._branches_of(reader)
        if not isinstance(writer, ByName):
            promoted = [branch for each in PROMOTIONS.get(kind, ()) for branch in branches.of_kind.get(each, ())]
            return branches.of_kind.get(kind) or promoted
        exact = branches.named.get((kind, writer.name), [])
        if exact or kind is not Kind.RECORD:
            return exact
        return branches.ending.get((kind, simple_name(writer.name)), [])

    def _branches_of(self, union: Union) -> _Branches:
        # A union of thousands of types is asked for as many: it is looked through only once.
        if id(union) not in self._branches:
            found = self._branches[id(union)] = _Branches({}, {}, {})
            for branch in union.branches:
                kind = self._reader.definition(branch).kind
                found.of_kind.setdefault(kind, []).append(branch)
                if isinstance(branch, ByName):
                    for name in dict.fromkeys((branch.name, *self._reader.named[branch.name].aliases)):
                        found.named.setdefault((kind, name), []).append(branch)
                    found.ending.setdefault((kind, simple_name(branch.name)), []).append(branch)
        return self._branches[id(union)]

    def _pair(self, pair: _Pair, path: str) -> _Found:
        reader, writer = self._reader.named[pair.reader], self._writer.named[pair.writer]
        if reader.kind is writer.kind:
            yield from _names(reader, writer, path)
        match reader, writer:
            case Record(), Record():
                yield from self._fields(reader, writer, path)
            case Enum(), Enum():
                yield from _symbols(reader, writer, path)
            case Fixed(), Fixed() if reader.size != writer.size:
                info = f"expected: {writer.size}, found: {reader.size}"
                yield Difference(Reason.FIXED_SIZE_MISMATCH, f"{path}/size", info)
            case _:
                yield from _kinds(reader, writer, path)

    def _fields(self, reader: Record, writer: Record, path: str) -> _Found:
        written = {field.name: field for field in writer.fields}
        aliased = writer.name in (reader.name, *reader.aliases)
        sources = [
            [name for name in dict.fromkeys((field.name, *(field.aliases if aliased else ()))) if name in written]
            for field in reader.fields
        ]
        takers = Counter(name for names in sources for name in names)
        for index, (field, names) in enumerate(zip(reader.fields, sources, strict=True)):
            at = f"{path}/fields/{index}"
            if not names and field.default is None:
                yield Difference(Reason.READER_FIELD_MISSING_DEFAULT_VALUE, at, field.name)
            elif len(names) > 1:
                info = f"reader field {field.name} may be writer field {' or '.join(names)}"
                yield Difference(Reason.AMBIGUOUS_FIELD_ALIAS, at, info)
            elif names and takers[names[0]] > 1:
                info = f"several reader fields may be writer field {names[0]}"
                yield Difference(Reason.AMBIGUOUS_FIELD_ALIAS, at, info)
            elif names:
                yield from self._types(field.type, written[names[0]].type, f"{at}/type")


def _names(reader: Named, writer: Named, path: str) -> Iterator[Difference]:
    if simple_name(reader.name) != simple_name(writer.name) and writer.name not in reader.aliases:
        yield Difference(Reason.NAME_MISMATCH, f"{path}/name", f"expected: {writer.name}")


def _symbols(reader: Enum, writer: Enum, path: str) -> Iterator[Difference]:
    missing = sorted({*writer.symbols} - {*reader.symbols})
    if missing and reader.default is None:
        yield Difference(Reason.MISSING_ENUM_SYMBOLS, f"{path}/symbols", f"[{', '.join(missing)}]")


def _kinds(reader: Definition, writer: Definition, path: str) -> Iterator[Difference]:
    if reader.kind is not writer.kind and reader.kind not in PROMOTIONS.get(writer.kind, frozenset()):
        info = f"reader type: {reader.kind.name} not compatible with writer type: {writer.kind.name}"
        yield Difference(Reason.TYPE_MISMATCH, path, info)
        return
    expected, found = logical(reader), logical(writer)
    promoted = reader.kind is not writer.kind
    if expected and (not expected.reads(found) if found else promoted):
        info = f"reader logical type: {expected} not compatible with writer logical type: {found or 'none'}"
        yield Difference(Reason.TYPE_MISMATCH, path, info)
