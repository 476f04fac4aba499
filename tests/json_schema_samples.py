"""Values to try on two JSON Schemas, and schemas made at random: what a verdict on compatibility is judged by."""

import copy
import random
import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs

NAMES = ["a", "b", "c", "s_1", "i_1", "si"]
PATTERNS = ["^s_", "^i_", "^s", "b", "^[a-c]$", "_1$"]
VALUES: list[Any] = [None, True, False, -1, 0, 1, 1.0, 1.5, 2, 3, "", "a", "ab", "abcd", "s_1", [], [1], {}, {"a": 1}]


class Sampler:
    """Draws values near the edges of what a writer says, with what a reader says in mind."""

    def __init__(self, writer: Any, reader: Any, *, chance: random.Random) -> None:
        self.writer, self.chance = writer, chance
        self.names, self.leaves = set(NAMES), list(VALUES)
        for word, held in (*_words(writer), *_words(reader)):
            match held:
                case bool():
                    continue
                case int() | float():
                    self.leaves += [held, held - 1, held + 1, held / 2]
                    self.leaves += ["x" * min(max(int(held) + more, 0), 9) for more in (-1, 0, 1)]
                case dict() if word in ("properties", "dependencies", "dependentRequired", "dependentSchemas"):
                    self.names |= set(held)
                case list() if word == "required":
                    self.names |= set(held)
                case list() if word == "enum":
                    self.leaves += held * 3
                case str() if word == "const":
                    self.leaves += [held] * 3
        self.leaves += ["2020-01-01", "abcdef"]

    def values(self, count: int) -> Iterator[Any]:
        yield from self.leaves
        for index in range(count):
            yield self.like(self.writer, depth=5) if index % 3 else self.any(depth=3)

    def any(self, *, depth: int) -> Any:
        kind = self.chance.random()
        if depth == 0 or kind < 0.35:
            return self.chance.choice(self.leaves)
        if kind < 0.8:
            chosen = self.chance.sample(sorted(self.names), self.chance.randint(0, 4))
            return {name: self.any(depth=depth - 1) for name in chosen}
        return [self.any(depth=depth - 1) for _ in range(self.chance.randint(0, 4))]

    def like(self, schema: Any, *, depth: int) -> Any:
        """A value that the schema may well accept."""
        if not isinstance(schema, dict) or depth == 0 or self.chance.random() < 0.05:
            return self.any(depth=min(depth, 1))
        if str(schema.get("$ref", "")).startswith("#/"):
            return self.like(_found(self.writer, schema["$ref"]), depth=depth)
        branches = [each for word in ("anyOf", "oneOf", "allOf") for each in schema.get(word, ())]
        if branches and self.chance.random() < 0.8:
            chosen = self.like(self.chance.choice(branches), depth=depth)
            rest = self.like({word: schema[word] for word in schema if word not in BRANCHES}, depth=depth)
            return {**rest, **chosen} if isinstance(chosen, dict) and isinstance(rest, dict) else chosen
        if "enum" in schema or "const" in schema:
            return self.chance.choice(schema.get("enum") or [schema.get("const")])
        kinds = schema.get("type") or ["object", "array", "string", "number"]
        match kinds if isinstance(kinds, str) else self.chance.choice(kinds):
            case "object":
                return self._object(schema, depth=depth - 1)
            case "array":
                return self._array(schema, depth=depth - 1)
            case "string":
                return self.chance.choice([each for each in self.leaves if isinstance(each, str)])
            case "null":
                return None
            case "boolean":
                return self.chance.choice([True, False])
            case kind:
                numbers = [each for each in self.leaves if isinstance(each, int | float) and each is not True]
                number = self.chance.choice(numbers)
                return int(number) if kind == "integer" else number

    def _object(self, schema: dict[str, Any], *, depth: int) -> dict[str, Any]:
        listed, demanded = schema.get("properties", {}), schema.get("required", [])
        names = [name for name in listed if name in demanded or self.chance.random() < 0.6]
        made = {name: self.like(listed[name], depth=depth) for name in names}
        for pattern, held in schema.get("patternProperties", {}).items():
            name = next(each for each in ("i_9", "s_n", *NAMES) if re.search(pattern, each))
            made |= {name: self.like(held, depth=depth)} if self.chance.random() < 0.5 else {}
        for name in {*demanded, self.chance.choice([*sorted(self.names), "longer"])} - made.keys():
            if name in demanded or self.chance.random() < 0.4:
                made[name] = self.like(schema.get("additionalProperties", {}), depth=depth)
        return made

    def _array(self, schema: dict[str, Any], *, depth: int) -> list[Any]:
        items = schema.get("items", {})
        prefix = schema.get("prefixItems") or (items if isinstance(items, list) else [])
        rest = schema.get("additionalItems", {}) if isinstance(items, list) else items
        made = [self.like(each, depth=depth) for each in prefix][: self.chance.choice([9, 9, 1, 0])]
        more = (
            [self.like(rest, depth=depth) for _ in range(self.chance.randint(0, 3))] if len(made) >= len(prefix) else []
        )
        must = [self.like(schema["contains"], depth=depth) for _ in range(3)] if "contains" in schema else []
        same = more[:1] if self.chance.random() < 0.2 else []
        return [*made, *more, *same, *must[: self.chance.randint(0, 3)]]


BRANCHES = ("anyOf", "oneOf", "allOf")


def _found(document: Any, reference: str) -> Any:
    for step in filter(None, reference.removeprefix("#/").split("/")):
        document = document[step]
    return document


def _words(schema: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(schema, dict):
        yield from schema.items()
    for each in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _words(each)


def refused(writer: Any, reader: Any, *, count: int, chance: random.Random) -> Any:
    """A value that the writer may write and the reader refuses, in a list; an empty list if none was found."""
    writes, reads = jsonschema_rs.validator_for(writer), jsonschema_rs.validator_for(reader)
    sampler = Sampler(writer, reader, chance=chance)
    found = (each for each in sampler.values(count) if writes.is_valid(each))
    return next(([each] for each in found if not reads.is_valid(filled(reader, each))), [])


def filled(reader: Any, value: Any) -> Any:
    """The value with the defaults of missing properties: readers are taken to fill them in."""
    if not isinstance(value, dict) or not isinstance(reader, dict):
        return value
    listed = {name: each for name, each in reader.get("properties", {}).items() if isinstance(each, dict)}
    return {name: each["default"] for name, each in listed.items() if "default" in each} | value


class SchemaMaker:
    """Makes schemas of one draft at random, and others that differ from them in something."""

    def __init__(self, chance: random.Random, *, url: str, since: int) -> None:
        self.chance, self.url, self.since = chance, url, since

    def document(self) -> dict[str, Any]:
        root = self.schema(self.chance.choice([1, 2]))
        root = root if isinstance(root, dict) else {"anyOf": [root]}
        definitions = {name: self.schema(1) for name in ("x", "y")}
        return {**root, "definitions": definitions, "$schema": self.url}

    def changed(self, document: dict[str, Any]) -> dict[str, Any]:
        """The same with one thing added, taken away or altered, somewhere."""
        other = copy.deepcopy(document)
        places = [place for place in _places(other) if place.keys() - {"$schema", "definitions"}]
        place = self.chance.choice(places)
        word = self.chance.choice(sorted(place.keys() - {"$schema", "definitions"}))
        match self.chance.choice(["remove", "alter", "alter", "add"]), place[word]:
            case "remove", _:
                del place[word]
            case "alter", bool(held):
                place[word] = not held
            case "alter", int(held) | float(held):
                place[word] = held + self.chance.choice([-1, 1])
            case "alter", list(held) if held:
                held.pop(self.chance.randrange(len(held)))
            case "alter", "integer":
                place[word] = "number"
            case "alter", dict(held) if word == "properties":
                held[self.chance.choice(NAMES)] = self.schema(1)
            case _:
                more = self.schema(1)
                place.update(more if isinstance(more, dict) else {})
        return other

    def schema(self, depth: int) -> Any:
        chance = self.chance
        if depth == 0 or chance.random() < 0.15:
            simple = [{"type": each} for each in ("string", "integer", "number", "null", "boolean")]
            listed = {"enum": chance.sample(VALUES, 2)}
            return chance.choice([*simple, listed, {}, *([True, False] if self.since > 4 else [])])
        if chance.random() < 0.08:
            return {"$ref": chance.choice(["#/definitions/x", "#/definitions/y"])}
        kind = chance.choice(["string", "number", "integer", "object", "object", "array", ["object", "null"], None])
        made: dict[str, Any] = {"type": kind} if kind else {}
        for name, make in (("string", self._text), ("number", self._number), ("object", self._object)):
            if kind is None or name in kind or (name, kind) == ("number", "integer"):
                made |= self._some(make())
        if kind is None or kind == "array":
            made |= self._some(self._array(depth))
        if kind is None or "object" in kind:
            made |= self._some(self._members(depth))
        return made | self._some(self._combined(depth), often=0.1)

    def _some(self, words: dict[str, Any], often: float = 0.35) -> dict[str, Any]:
        return {word: value for word, value in words.items() if self.chance.random() < often}

    def _text(self) -> dict[str, Any]:
        pick = self.chance.randint
        return {"minLength": pick(0, 2), "maxLength": pick(1, 3), "pattern": self.chance.choice(PATTERNS)}

    def _number(self) -> dict[str, Any]:
        pick = self.chance.randint
        exclusive = {"exclusiveMaximum": pick(1, 4), "exclusiveMinimum": pick(-2, 1)} if self.since > 4 else {}
        return {
            "minimum": pick(-1, 2),
            "maximum": pick(1, 3),
            "multipleOf": self.chance.choice([1, 2, 0.5]),
            **exclusive,
        }

    def _object(self) -> dict[str, Any]:
        some = self.chance.sample(NAMES, 2)
        depend = {some[0]: [some[1]]}
        dependent = {"dependentRequired": depend} if self.since > 7 else {"dependencies": depend}
        names = {"propertyNames": self._text()} if self.since > 4 else {}
        return {"required": some, "maxProperties": self.chance.randint(0, 3), **dependent, **names}

    def _members(self, depth: int) -> dict[str, Any]:
        made = {
            "properties": {name: self.schema(depth - 1) for name in self.chance.sample(NAMES, 3)},
            "patternProperties": {name: self.schema(depth - 1) for name in self.chance.sample(PATTERNS, 2)},
            "additionalProperties": self.chance.choice([False, True, {"type": "integer"}]),
        }
        later = {
            "unevaluatedProperties": self.chance.choice([False, {"type": "string"}]),
            "dependentSchemas": {self.chance.choice(NAMES): self.schema(depth - 1)},
        }
        return made | (later if self.since > 7 else {})

    def _array(self, depth: int) -> dict[str, Any]:
        pick, tuple_ = self.chance.randint, [self.schema(depth - 1) for _ in range(2)]
        made: dict[str, Any] = {"minItems": pick(0, 2), "maxItems": pick(1, 3), "uniqueItems": True}
        made["items"] = self.schema(depth - 1)
        if self.since > 2019:
            made["prefixItems"] = tuple_
        elif self.chance.random() < 0.5:
            made |= {"items": tuple_, "additionalItems": self.chance.choice([False, {"type": "string"}])}
        if self.since > 4:
            made["contains"] = self.schema(depth - 1)
        if self.since > 7:
            made |= {"minContains": pick(0, 2), "maxContains": pick(1, 2), "unevaluatedItems": self.schema(depth - 1)}
        return made

    def _combined(self, depth: int) -> dict[str, Any]:
        made = {word: [self.schema(depth - 1) for _ in range(2)] for word in ("allOf", "anyOf", "oneOf")}
        condition = {word: self.schema(depth - 1) for word in ("if", "then", "else")} if self.since > 6 else {}
        return {**made, "not": self.schema(depth - 1), "enum": self.chance.sample(VALUES, 3), **condition}


def _places(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from _places(each)
    elif isinstance(value, list):
        for each in value:
            yield from _places(each)
