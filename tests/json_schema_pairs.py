"""Pairs of JSON Schemas, by keyword: what the writer writes by, what the reader reads by, and why that does not fit."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Schema = dict[str, Any] | bool

DRAFTS: Mapping[str, str] = {
    "4": "http://json-schema.org/draft-04/schema#",
    "6": "http://json-schema.org/draft-06/schema#",
    "7": "http://json-schema.org/draft-07/schema#",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
}
ALL = tuple(DRAFTS)
SINCE_6, SINCE_7, SINCE_2019, OLDER = ALL[1:], ALL[2:], ALL[3:], ALL[:3]


@dataclass(frozen=True)
class Pair:
    """Two schemas and the reasons, as `TYPE #/path`, in the drafts in which they are all the same."""

    name: str
    writer: Schema
    reader: Schema
    reasons: frozenset[str]
    drafts: tuple[str, ...]

    @property
    def is_compatible(self) -> bool:
        return not self.reasons

    def dated(self, draft: str) -> tuple[Schema, Schema]:
        """Both schemas, with the draft named in them."""
        return _dated(self.writer, draft), _dated(self.reader, draft)


def _dated(schema: Schema, draft: str) -> Schema:
    return schema if isinstance(schema, bool) else {"$schema": DRAFTS[draft], **schema}


def pair(name: str, writer: Schema, reader: Schema, *reasons: str, drafts: tuple[str, ...] = ALL) -> Pair:
    return Pair(name, writer, reader, frozenset(reasons), drafts)


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def open_(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def array(**keywords: Any) -> dict[str, Any]:
    return {"type": "array", **keywords}


STRING, NUMBER, INTEGER, NULL = {"type": "string"}, {"type": "number"}, {"type": "integer"}, {"type": "null"}
OBJECT, BOOLEAN = {"type": "object"}, {"type": "boolean"}


def text(**keywords: Any) -> dict[str, Any]:
    return {"type": "string", **keywords}


def number(**keywords: Any) -> dict[str, Any]:
    return {"type": "number", **keywords}


def tagged(tag: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"tag": {"enum": [tag]}, **properties}, "required": ["tag"]}


ANNOTATIONS = (
    pair("nothing changes", closed(a=STRING), closed(a=STRING)),
    pair("nothing demanded, nothing demanded", {}, {}),
    pair("title, description and default change", {"title": "a"}, {"title": "b", "description": "c", "default": 1}),
    pair("a word that no draft knows", text(**{"x-owner": "a"}), text(**{"x-owner": "b", "x-more": {"type": "null"}})),
    pair("a definition that nobody uses", STRING, {**STRING, "definitions": {"unused": {"type": "null"}}}),
    pair("an id changes", {"$id": "a", **STRING}, {"$id": "b", **STRING}, drafts=SINCE_6),
    pair("a comment, examples, readOnly", STRING, text(**{"$comment": "c", "examples": ["d"], "readOnly": True}),
         drafts=SINCE_7),
    pair("everything becomes accepted", closed(a=STRING), True, drafts=SINCE_6),
    pair("nothing was ever written", False, closed(a=STRING), drafts=SINCE_6),
    pair("nothing is accepted any more", STRING, False, "TYPE_CHANGED #/", drafts=SINCE_6),
)  # fmt: skip

TYPES = (
    pair("integer to number", INTEGER, NUMBER),
    pair("number to integer", NUMBER, INTEGER, "TYPE_NARROWED #/"),
    pair("string to number", STRING, NUMBER, "TYPE_CHANGED #/"),
    pair("any to string", {}, STRING, "TYPE_CHANGED #/"),
    pair("string to any", STRING, {}),
    pair("null is allowed too", STRING, {"type": ["string", "null"]}),
    pair("null is not allowed any more", {"type": ["string", "null"]}, STRING, "SUM_TYPE_NARROWED #/"),
    pair("types in another order", {"type": ["string", "null"]}, {"type": ["null", "string"]}),
    pair("one of the types is narrowed", {"type": ["number", "null"]}, {"type": ["integer", "null"]},
         "TYPE_NARROWED #/"),
    pair("one of the types is widened", {"type": ["integer", "null"]}, {"type": ["number", "null"]}),
    pair("types that have nothing in common", {"type": ["string", "null"]}, {"type": ["integer", "boolean"]},
         "TYPE_CHANGED #/"),
    pair("a list of one type", STRING, {"type": ["string"]}),
    pair("a property's type", open_(a=STRING), open_(a=INTEGER), "TYPE_CHANGED #/properties/a"),
    pair("deep inside", open_(a=array(items=open_(b=INTEGER))), open_(a=array(items=open_(b=NUMBER)))),
    pair("deep inside, narrowed", open_(a=array(items=open_(b=NUMBER))), open_(a=array(items=open_(b=INTEGER))),
         "TYPE_NARROWED #/properties/a/items/properties/b"),
    pair("types become an anyOf", {"type": ["string", "null"]}, {"anyOf": [NULL, STRING]}),
    pair("an anyOf becomes types", {"anyOf": [NULL, STRING]}, {"type": ["string", "null"]}),
)  # fmt: skip

VALUES = (
    pair("a value is added", {"enum": ["a"]}, {"enum": ["a", "b"]}),
    pair("a value is removed", {"enum": ["a", "b"]}, {"enum": ["a"]}, "ENUM_ARRAY_NARROWED #/enum"),
    pair("a value is replaced", {"enum": ["a"]}, {"enum": ["b"]}, "ENUM_ARRAY_CHANGED #/enum"),
    pair("values in another order", {"enum": ["a", "b"]}, {"enum": ["b", "a"]}),
    pair("a typed value is removed", text(enum=["a", "b"]), text(enum=["a"]), "ENUM_ARRAY_NARROWED #/enum"),
    pair("a list where there was none", STRING, text(enum=["a"]), "ENUM_ARRAY_NARROWED #/enum"),
    pair("the list is gone", text(enum=["a"]), STRING),
    pair("an enum becomes its type", {"enum": ["a", "b"]}, STRING),
    pair("1 is 1.0", {"enum": [1]}, {"enum": [1.0]}),
    pair("true is not 1", {"enum": [True]}, {"enum": [1]}, "ENUM_ARRAY_CHANGED #/enum"),
    pair("both booleans are all booleans", BOOLEAN, {"enum": [True, False]}),
    pair("one boolean is not all", BOOLEAN, {"enum": [True]}, "ENUM_ARRAY_NARROWED #/enum"),
    pair("values within a length", {"enum": ["a", "bb"]}, text(maxLength=2)),
    pair("values beyond a length", {"enum": ["a", "bbb"]}, text(maxLength=2), "MAX_LENGTH_ADDED #/maxLength"),
    pair("values within bounds", {"enum": [1, 2]}, number(minimum=1, maximum=2)),
    pair("values that match", {"enum": ["ab", "cab"]}, text(pattern="ab")),
    pair("objects as values", {"enum": [{"a": 1, "b": [1]}]}, {"enum": [{"b": [1.0], "a": 1}]}),
    pair("another constant", {"const": "a"}, {"const": "b"}, "ENUM_ARRAY_CHANGED #/const", drafts=SINCE_6),
    pair("a constant becomes a list with it", {"const": "a"}, {"enum": ["a", "b"]}, drafts=SINCE_6),
    pair("a list of one becomes the constant", {"enum": ["a"]}, {"const": "a"}, drafts=SINCE_6),
    pair("a constant where there was none", STRING, text(const="a"), "ENUM_ARRAY_CHANGED #/const", drafts=SINCE_6),
    pair("draft 4 knows no const", STRING, text(const="a"), drafts=("4",)),
)

STRINGS = (
    pair("maxLength raised", text(maxLength=1), text(maxLength=2)),
    pair("maxLength lowered", text(maxLength=2), text(maxLength=1), "MAX_LENGTH_DECREASED #/maxLength"),
    pair("maxLength added", STRING, text(maxLength=2), "MAX_LENGTH_ADDED #/maxLength"),
    pair("maxLength removed", text(maxLength=2), STRING),
    pair("minLength lowered", text(minLength=2), text(minLength=1)),
    pair("minLength raised", text(minLength=1), text(minLength=2), "MIN_LENGTH_INCREASED #/minLength"),
    pair("minLength added", STRING, text(minLength=1), "MIN_LENGTH_ADDED #/minLength"),
    pair("minLength of nothing", STRING, text(minLength=0)),
    pair("a length where no strings are written", NULL, {"type": ["string", "null"], "maxLength": 1}),
    pair("pattern removed", text(pattern="^a"), STRING),
    pair("pattern added", STRING, text(pattern="^a"), "PATTERN_ADDED #/pattern"),
    pair("pattern changed", text(pattern="^a"), text(pattern="^b"), "PATTERN_CHANGED #/pattern"),
    pair("format removed", text(format="date"), STRING),
    pair("format added", STRING, text(format="date"), "FORMAT_ADDED #/format", drafts=OLDER),
    pair("format changed", text(format="date"), text(format="date-time"), "FORMAT_CHANGED #/format", drafts=OLDER),
    pair("format widened", text(format="uri"), text(format="uri-reference"), drafts=OLDER),
    pair("a format that no draft defines", STRING, text(format="money"), drafts=ALL),
    pair("format is an annotation since 2019-09", STRING, text(format="date"), drafts=SINCE_2019),
    pair("encoding added", STRING, text(contentEncoding="base64"), "CONTENT_ADDED #/contentEncoding", drafts=("7",)),
    pair("media type changed", text(contentMediaType="text/html"), text(contentMediaType="application/json"),
         "CONTENT_CHANGED #/contentMediaType", drafts=("7",)),
    pair("content is an annotation since 2019-09", STRING, text(contentEncoding="base64"), drafts=SINCE_2019),
)  # fmt: skip

NUMBERS = (
    pair("maximum raised", number(maximum=1), number(maximum=2)),
    pair("maximum lowered", number(maximum=2), number(maximum=1), "MAXIMUM_DECREASED #/maximum"),
    pair("maximum added", NUMBER, number(maximum=1), "MAXIMUM_ADDED #/maximum"),
    pair("maximum removed", number(maximum=1), NUMBER),
    pair("maximum written otherwise", number(maximum=1.50), number(maximum=1.5)),
    pair("minimum lowered", number(minimum=2), number(minimum=1)),
    pair("minimum raised", number(minimum=1), number(minimum=2), "MINIMUM_INCREASED #/minimum"),
    pair("minimum added", NUMBER, number(minimum=1), "MINIMUM_ADDED #/minimum"),
    pair("exclusive maximum raised", number(exclusiveMaximum=1), number(exclusiveMaximum=2), drafts=SINCE_6),
    pair("exclusive maximum lowered", number(exclusiveMaximum=2), number(exclusiveMaximum=1),
         "EXCLUSIVE_MAXIMUM_DECREASED #/exclusiveMaximum", drafts=SINCE_6),
    pair("maximum made exclusive", number(maximum=2), number(exclusiveMaximum=2),
         "EXCLUSIVE_MAXIMUM_ADDED #/exclusiveMaximum", drafts=SINCE_6),
    pair("maximum made inclusive", number(exclusiveMaximum=2), number(maximum=2), drafts=SINCE_6),
    pair("exclusive maximum beyond the maximum", number(maximum=1), number(exclusiveMaximum=2), drafts=SINCE_6),
    pair("exclusive minimum lowered", number(exclusiveMinimum=2), number(exclusiveMinimum=1), drafts=SINCE_6),
    pair("exclusive minimum raised", number(exclusiveMinimum=1), number(exclusiveMinimum=2),
         "EXCLUSIVE_MINIMUM_INCREASED #/exclusiveMinimum", drafts=SINCE_6),
    pair("exclusive minimum added", NUMBER, number(exclusiveMinimum=1),
         "EXCLUSIVE_MINIMUM_ADDED #/exclusiveMinimum", drafts=SINCE_6),
    pair("exclusive as draft 4 says it", number(maximum=2), number(maximum=2, exclusiveMaximum=True),
         "EXCLUSIVE_MAXIMUM_ADDED #/exclusiveMaximum", drafts=("4",)),
    pair("no longer exclusive as draft 4 says it", number(minimum=2, exclusiveMinimum=True), number(minimum=2),
         drafts=("4",)),
    pair("exclusive is false", number(maximum=2, exclusiveMaximum=False), number(maximum=2), drafts=("4",)),
    pair("multipleOf divided", number(multipleOf=10), number(multipleOf=2.5)),
    pair("multipleOf multiplied", number(multipleOf=2), number(multipleOf=10),
         "MULTIPLE_OF_EXPANDED #/multipleOf"),
    pair("multipleOf changed", number(multipleOf=4), number(multipleOf=6), "MULTIPLE_OF_CHANGED #/multipleOf"),
    pair("multipleOf added", NUMBER, number(multipleOf=2), "MULTIPLE_OF_ADDED #/multipleOf"),
    pair("multipleOf removed", number(multipleOf=2), NUMBER),
    pair("integers are multiples of one", INTEGER, number(multipleOf=0.5)),
    pair("multipleOf written otherwise", number(multipleOf=0.5), number(multipleOf=0.50)),
)  # fmt: skip

REQUIRED = (
    pair("required removed", {**open_(a=STRING), "required": ["a"]}, open_(a=STRING)),
    pair("required added", open_(a=STRING), {**open_(a=STRING), "required": ["a"]},
         "REQUIRED_ATTRIBUTE_ADDED #/required/a"),
    pair("required added with a default", open_(a=STRING), {**open_(a=text(default="")), "required": ["a"]}),
    pair("required in another order", {**open_(), "required": ["a", "b"]}, {**open_(), "required": ["b", "a"]}),
    pair("required, but not listed", OBJECT, {**OBJECT, "required": ["a"]}, "REQUIRED_ATTRIBUTE_ADDED #/required/a"),
    pair("required by an allOf before", {"allOf": [{"required": ["a"]}], **OBJECT}, {**OBJECT, "required": ["a"]}),
    pair("required where no objects are written", STRING, {"required": ["a"]}),
    pair("a new required property, open", open_(), {**open_(a=STRING), "required": ["a"]},
         "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"),
    pair("a new required property that accepts all, open", open_(), {**open_(a={}), "required": ["a"]},
         "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"),
    pair("a new required property with a default, open", open_(), {**open_(a=text(default="")), "required": ["a"]},
         "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"),
    pair("a new required property, closed", closed(), {**closed(a=STRING), "required": ["a"]},
         "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a"),
    pair("a new required property with a default, closed", closed(),
         {**closed(a=text(default="")), "required": ["a"]}),
)  # fmt: skip

PROPERTIES = (
    pair("an optional one added, closed", closed(a=STRING), closed(a=STRING, b=NUMBER)),
    pair("an optional one added, open", open_(a=STRING), open_(a=STRING, b=NUMBER),
         "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/b"),
    pair("one that accepts all added, open", open_(a=STRING), open_(a=STRING, b={})),
    pair("one removed, closed", closed(a=STRING, b=NUMBER), closed(a=STRING),
         "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/b"),
    pair("one removed, open", open_(a=STRING, b=NUMBER), open_(a=STRING)),
    pair("one removed that was never there", closed(a=STRING, b=False), closed(a=STRING), drafts=SINCE_6),
    pair("one removed, covered", closed(a=STRING, b=INTEGER), {**closed(a=STRING), "additionalProperties": NUMBER}),
    pair("one removed, not covered", closed(a=STRING, b=NULL), {**closed(a=STRING), "additionalProperties": NUMBER},
         "TYPE_CHANGED #/properties/b",
         "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/b"),
    pair("one removed, covered by a pattern", closed(i_a=INTEGER), {**closed(), "patternProperties": {"^i_": NUMBER}}),
    pair("one removed, at odds with a pattern", open_(i_a=STRING), {**open_(), "patternProperties": {"^i_": NUMBER}},
         "TYPE_CHANGED #/properties/i_a",
         "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/i_a",
         "PATTERN_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/patternProperties/^i_"),
    pair("one added, covered", {**closed(), "additionalProperties": INTEGER},
         {**closed(b=NUMBER), "additionalProperties": INTEGER}),
    pair("one added, not covered", {**closed(), "additionalProperties": STRING},
         {**closed(b=NUMBER), "additionalProperties": STRING}, "TYPE_CHANGED #/properties/b",
         "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/b"),
    pair("one added, covered, but required", {**closed(), "additionalProperties": STRING},
         {**closed(b=STRING), "additionalProperties": STRING, "required": ["b"]},
         "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/b"),
    pair("one added that a pattern restricts", {**closed(), "patternProperties": {"^i_": INTEGER}},
         {**closed(i_a=NUMBER), "patternProperties": {"^i_": INTEGER}}),
    pair("one added beside a pattern, open", {**OBJECT, "patternProperties": {"^i_": INTEGER}},
         {**open_(a=STRING), "patternProperties": {"^i_": INTEGER}},
         "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"),
    pair("two at once", open_(a=STRING, b=STRING), open_(a=INTEGER, b=NULL), "TYPE_CHANGED #/properties/a",
         "TYPE_CHANGED #/properties/b"),
    pair("a type added to untyped properties", {"properties": {"a": STRING}}, open_(a=STRING), "TYPE_CHANGED #/"),
    pair("additional ones allowed", closed(a=STRING), open_(a=STRING)),
    pair("additional ones forbidden", open_(a=STRING), closed(a=STRING),
         "ADDITIONAL_PROPERTIES_REMOVED #/additionalProperties"),
    pair("additional ones restricted", OBJECT, {**OBJECT, "additionalProperties": NUMBER},
         "ADDITIONAL_PROPERTIES_NARROWED #/additionalProperties"),
    pair("additional ones not restricted any more", {**OBJECT, "additionalProperties": NUMBER}, OBJECT),
    pair("additional ones widened", {**OBJECT, "additionalProperties": INTEGER},
         {**OBJECT, "additionalProperties": NUMBER}),
    pair("additional ones changed", {**OBJECT, "additionalProperties": STRING},
         {**OBJECT, "additionalProperties": NUMBER}, "TYPE_CHANGED #/additionalProperties"),
    pair("maxProperties lowered", {**OBJECT, "maxProperties": 2}, {**OBJECT, "maxProperties": 1},
         "MAX_PROPERTIES_DECREASED #/maxProperties"),
    pair("maxProperties added", OBJECT, {**OBJECT, "maxProperties": 1}, "MAX_PROPERTIES_ADDED #/maxProperties"),
    pair("maxProperties raised", {**OBJECT, "maxProperties": 1}, {**OBJECT, "maxProperties": 2}),
    pair("minProperties raised", {**OBJECT, "minProperties": 1}, {**OBJECT, "minProperties": 2},
         "MIN_PROPERTIES_INCREASED #/minProperties"),
    pair("minProperties added", OBJECT, {**OBJECT, "minProperties": 1}, "MIN_PROPERTIES_ADDED #/minProperties"),
    pair("minProperties removed", {**OBJECT, "minProperties": 1}, OBJECT),
)  # fmt: skip

PATTERN_PROPERTIES = (
    pair("widened", {**OBJECT, "patternProperties": {"^i_": INTEGER}},
         {**OBJECT, "patternProperties": {"^i_": NUMBER}}),
    pair("narrowed", {**OBJECT, "patternProperties": {"^i_": NUMBER}},
         {**OBJECT, "patternProperties": {"^i_": INTEGER}}, "TYPE_NARROWED #/patternProperties/^i_"),
    pair("added, open", OBJECT, {**OBJECT, "patternProperties": {"^i_": INTEGER}},
         "PATTERN_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/patternProperties/^i_"),
    pair("added, closed", closed(a=STRING), {**closed(a=STRING), "patternProperties": {"^i_": INTEGER}}),
    pair("added beside another, closed", {**closed(), "patternProperties": {"^s_": STRING}},
         {**closed(), "patternProperties": {"^s_": STRING, "^i_": INTEGER}}),
    pair("added across another, closed", {**closed(), "patternProperties": {"^s": STRING}},
         {**closed(), "patternProperties": {"^s": STRING, "_n$": INTEGER}},
         "TYPE_CHANGED #/patternProperties/_n$",
         "PATTERN_PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/patternProperties/_n$"),
    pair("removed, open", {**OBJECT, "patternProperties": {"^i_": INTEGER}}, OBJECT),
    pair("removed, closed", {**closed(), "patternProperties": {"^i_": INTEGER}}, closed(),
         "PATTERN_PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL #/patternProperties/^i_"),
    pair("removed, covered", {**closed(), "patternProperties": {"^i_": INTEGER}},
         {**OBJECT, "additionalProperties": NUMBER}),
    pair("removed, not covered", {**closed(), "patternProperties": {"^i_": STRING}},
         {**OBJECT, "additionalProperties": NUMBER}, "TYPE_CHANGED #/patternProperties/^i_",
         "PATTERN_PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/patternProperties/^i_"),
    pair("added across a property", closed(i_a=STRING),
         {**closed(i_a=STRING), "patternProperties": {"^i_": INTEGER}}, "TYPE_CHANGED #/properties/i_a"),
)  # fmt: skip

NAMES_AND_DEPENDENCIES = (
    pair("names restricted", OBJECT, {**OBJECT, "propertyNames": {"maxLength": 3}},
         "PROPERTY_NAMES_ADDED #/propertyNames", drafts=SINCE_6),
    pair("names restricted to those there are", closed(a=STRING, b=STRING),
         {**OBJECT, "propertyNames": {"maxLength": 1}}, drafts=SINCE_6),
    pair("names widened", {**OBJECT, "propertyNames": {"maxLength": 1}}, {**OBJECT, "propertyNames": text(maxLength=2)},
         drafts=SINCE_6),
    pair("names narrowed", {**OBJECT, "propertyNames": {"maxLength": 2}}, {**OBJECT, "propertyNames": {"maxLength": 1}},
         "MAX_LENGTH_DECREASED #/propertyNames/maxLength", drafts=SINCE_6),
    pair("names free again", {**OBJECT, "propertyNames": {"maxLength": 2}}, OBJECT, drafts=SINCE_6),
    *(
        each
        for word, drafts in (("dependencies", OLDER), ("dependentRequired", SINCE_2019))
        for each in (
            pair(f"{word} added", OBJECT, {**OBJECT, word: {"a": ["b"]}}, "DEPENDENCY_ARRAY_ADDED #/dependencies/a",
                 drafts=drafts),
            pair(f"{word} removed", {**OBJECT, word: {"a": ["b"]}}, OBJECT, drafts=drafts),
            pair(f"{word} with more names", {**OBJECT, word: {"a": ["b"]}}, {**OBJECT, word: {"a": ["b", "c"]}},
                 "DEPENDENCY_ARRAY_EXTENDED #/dependencies/a", drafts=drafts),
            pair(f"{word} with fewer names", {**OBJECT, word: {"a": ["b", "c"]}}, {**OBJECT, word: {"a": ["b"]}},
                 drafts=drafts),
            pair(f"{word} with other names", {**OBJECT, word: {"a": ["b"]}}, {**OBJECT, word: {"a": ["c"]}},
                 "DEPENDENCY_ARRAY_CHANGED #/dependencies/a", drafts=drafts),
            pair(f"{word} on what is always there", {**OBJECT, "required": ["b"]}, {**OBJECT, word: {"a": ["b"]}},
                 drafts=drafts),
            pair(f"{word} by what cannot be there", closed(b=STRING), {**closed(b=STRING), word: {"a": ["c"]}},
                 drafts=drafts),
        )
    ),
    *(
        each
        for word, drafts in (("dependencies", OLDER), ("dependentSchemas", SINCE_2019))
        for each in (
            pair(f"{word}: schema added", OBJECT, {**OBJECT, word: {"a": {"required": ["b"]}}},
                 "DEPENDENCY_SCHEMA_ADDED #/dependencies/a", drafts=drafts),
            pair(f"{word}: schema removed", {**OBJECT, word: {"a": {"required": ["b"]}}}, OBJECT, drafts=drafts),
            pair(f"{word}: schema widened", {**OBJECT, word: {"a": {"minProperties": 3}}},
                 {**OBJECT, word: {"a": {"minProperties": 2}}}, drafts=drafts),
            pair(f"{word}: schema narrowed", {**OBJECT, word: {"a": {"minProperties": 1}}},
                 {**OBJECT, word: {"a": {"minProperties": 2}}},
                 "MIN_PROPERTIES_INCREASED #/dependencies/a/minProperties", drafts=drafts),
        )
    ),
    pair("dependencies told in the old way still count", OBJECT, {**OBJECT, "dependencies": {"a": ["b"]}},
         "DEPENDENCY_ARRAY_ADDED #/dependencies/a", drafts=SINCE_2019),
    pair("dependencies told in both ways", {**OBJECT, "dependencies": {"a": ["b"]}, "dependentRequired": {"a": ["c"]}},
         {**OBJECT, "dependentRequired": {"a": ["c", "b"]}}, drafts=SINCE_2019),
)  # fmt: skip

UNEVALUATED = (
    pair("closed, optional one added", {**open_(a=STRING), "unevaluatedProperties": False},
         {**open_(a=STRING, b=NUMBER), "unevaluatedProperties": False}, drafts=SINCE_2019),
    pair("closed over a reference, optional one added",
         {"$defs": {"B": open_(b=STRING)}, "$ref": "#/$defs/B", **open_(a=STRING), "unevaluatedProperties": False},
         {"$defs": {"B": open_(b=STRING)}, "$ref": "#/$defs/B", **open_(a=STRING, c=NULL),
          "unevaluatedProperties": False}, drafts=SINCE_2019),
    pair("closed over an allOf, one removed",
         {"allOf": [open_(b=STRING)], **open_(a=STRING), "unevaluatedProperties": False},
         {"allOf": [open_()], **open_(a=STRING), "unevaluatedProperties": False},
         "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/b", drafts=SINCE_2019),
    pair("closed over an anyOf, unchanged",
         {"anyOf": [open_(b=STRING), open_(c=NULL)], "unevaluatedProperties": False},
         {"anyOf": [open_(b=STRING), open_(c=NULL)], "unevaluatedProperties": False}, drafts=SINCE_2019),
    pair("an anyOf's properties are not those of a closed model",
         {**OBJECT, "anyOf": [open_(b=STRING), {}], "unevaluatedProperties": False}, closed(),
         "ADDITIONAL_PROPERTIES_REMOVED #/additionalProperties", drafts=SINCE_2019),
    pair("closed later", open_(a=STRING), {**open_(a=STRING), "unevaluatedProperties": False},
         "UNEVALUATED_PROPERTIES_REMOVED #/unevaluatedProperties", drafts=SINCE_2019),
    pair("restricted later", open_(a=STRING), {**open_(a=STRING), "unevaluatedProperties": NUMBER},
         "UNEVALUATED_PROPERTIES_NARROWED #/unevaluatedProperties", drafts=SINCE_2019),
    pair("opened", {**open_(a=STRING), "unevaluatedProperties": False}, open_(a=STRING), drafts=SINCE_2019),
    pair("one closing becomes the other", {**open_(a=STRING), "unevaluatedProperties": False}, closed(a=STRING),
         drafts=SINCE_2019),
    pair("draft 7 knows no unevaluatedProperties", OBJECT, {**OBJECT, "unevaluatedProperties": False}, drafts=("7",)),
    pair("items closed later", array(), array(unevaluatedItems=False),
         "UNEVALUATED_ITEMS_REMOVED #/unevaluatedItems", drafts=SINCE_2019),
    pair("items restricted later", array(), array(unevaluatedItems=NUMBER),
         "UNEVALUATED_ITEMS_NARROWED #/unevaluatedItems", drafts=SINCE_2019),
    pair("items closed, one added", array(prefixItems=[STRING], unevaluatedItems=False),
         array(prefixItems=[STRING, NUMBER], unevaluatedItems=False), drafts=("2020-12",)),
    pair("items widened", array(unevaluatedItems=INTEGER), array(unevaluatedItems=NUMBER), drafts=SINCE_2019),
    pair("items that contains may have evaluated", array(contains=NUMBER, unevaluatedItems=STRING), array(items=STRING),
         "SCHEMA_ADDED #/items", drafts=("2020-12",)),
)  # fmt: skip

ARRAYS = (
    pair("items restricted", array(), array(items=STRING), "SCHEMA_ADDED #/items"),
    pair("items free again", array(items=STRING), array()),
    pair("items widened", array(items=INTEGER), array(items=NUMBER)),
    pair("items changed", array(items=STRING), array(items=NUMBER), "TYPE_CHANGED #/items"),
    pair("items forbidden", array(), array(items=False), "ADDITIONAL_ITEMS_REMOVED #/additionalItems", drafts=SINCE_6),
    pair("items restricted where there are none", array(maxItems=0), array(items=STRING)),
    pair("maxItems lowered", array(maxItems=2), array(maxItems=1), "MAX_ITEMS_DECREASED #/maxItems"),
    pair("maxItems added", array(), array(maxItems=1), "MAX_ITEMS_ADDED #/maxItems"),
    pair("maxItems raised", array(maxItems=1), array(maxItems=2)),
    pair("minItems raised", array(minItems=1), array(minItems=2), "MIN_ITEMS_INCREASED #/minItems"),
    pair("minItems added", array(), array(minItems=1), "MIN_ITEMS_ADDED #/minItems"),
    pair("minItems removed", array(minItems=1), array()),
    pair("uniqueItems added", array(), array(uniqueItems=True), "UNIQUE_ITEMS_ADDED #/uniqueItems"),
    pair("uniqueItems removed", array(uniqueItems=True), array()),
    pair("uniqueItems is false", array(), array(uniqueItems=False)),
    pair("one item is always unique", array(maxItems=1), array(uniqueItems=True)),
    *(
        each
        for prefix, rest, drafts in (("items", "additionalItems", ALL[:4]), ("prefixItems", "items", ALL[4:]))
        for each in (
            pair(f"{prefix}: one widened", array(**{prefix: [INTEGER]}), array(**{prefix: [NUMBER]}), drafts=drafts),
            pair(f"{prefix}: one changed", array(**{prefix: [STRING]}), array(**{prefix: [NUMBER]}),
                 "TYPE_CHANGED #/items/0", drafts=drafts),
            pair(f"{prefix}: one added, open", array(**{prefix: [STRING]}), array(**{prefix: [STRING, NUMBER]}),
                 "ITEM_ADDED_TO_OPEN_CONTENT_MODEL #/items/1", drafts=drafts),
            pair(f"{prefix}: one added, closed", array(**{prefix: [STRING], rest: False}),
                 array(**{prefix: [STRING, NUMBER], rest: False}), drafts=drafts),
            pair(f"{prefix}: one added, covered", array(**{prefix: [STRING], rest: INTEGER}),
                 array(**{prefix: [STRING, NUMBER], rest: INTEGER}), drafts=drafts),
            pair(f"{prefix}: one added, not covered", array(**{prefix: [STRING], rest: STRING}),
                 array(**{prefix: [STRING, NUMBER], rest: STRING}), "TYPE_CHANGED #/items/1",
                 "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1", drafts=drafts),
            pair(f"{prefix}: one removed, open", array(**{prefix: [STRING, NUMBER]}), array(**{prefix: [STRING]}),
                 drafts=drafts),
            pair(f"{prefix}: one removed, closed", array(**{prefix: [STRING, NUMBER], rest: False}),
                 array(**{prefix: [STRING], rest: False}), "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL #/items/1",
                 drafts=drafts),
            pair(f"{prefix}: one removed, covered", array(**{prefix: [STRING, INTEGER], rest: False}),
                 array(**{prefix: [STRING], rest: NUMBER}), drafts=drafts),
            pair(f"{prefix}: one removed, not covered", array(**{prefix: [STRING, NULL], rest: False}),
                 array(**{prefix: [STRING], rest: NUMBER}), "TYPE_CHANGED #/items/1",
                 "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1", drafts=drafts),
            pair(f"{prefix}: the rest forbidden", array(**{prefix: [STRING]}), array(**{prefix: [STRING], rest: False}),
                 "ADDITIONAL_ITEMS_REMOVED #/additionalItems", drafts=drafts),
            pair(f"{prefix}: the rest restricted", array(**{prefix: [STRING]}),
                 array(**{prefix: [STRING], rest: NUMBER}), "ADDITIONAL_ITEMS_NARROWED #/additionalItems",
                 drafts=drafts),
            pair(f"{prefix}: a tuple of one kind becomes a list", array(**{prefix: [INTEGER, INTEGER], rest: False}),
                 array(items=NUMBER), drafts=drafts),
        )
    ),
    pair("additionalItems without a tuple says nothing", array(), array(additionalItems=False)),
    pair("contains added", array(), array(contains=NUMBER), "CONTAINS_ADDED #/contains", drafts=SINCE_6),
    pair("contains removed", array(contains=NUMBER), array(), drafts=SINCE_6),
    pair("contains widened", array(contains=INTEGER), array(contains=NUMBER), drafts=SINCE_6),
    pair("contains changed", array(contains=STRING), array(contains=NUMBER), "CONTAINS_CHANGED #/contains",
         drafts=SINCE_6),
    pair("minContains raised", array(contains=NUMBER), array(contains=NUMBER, minContains=2),
         "MIN_CONTAINS_INCREASED #/minContains", drafts=SINCE_2019),
    pair("minContains lowered", array(contains=NUMBER, minContains=2), array(contains=NUMBER), drafts=SINCE_2019),
    pair("minContains of nothing", array(), array(contains=NUMBER, minContains=0), drafts=SINCE_2019),
    pair("maxContains added", array(contains=NUMBER), array(contains=NUMBER, maxContains=2),
         "MAX_CONTAINS_ADDED #/maxContains", drafts=SINCE_2019),
    pair("maxContains lowered", array(contains=NUMBER, maxContains=3), array(contains=NUMBER, maxContains=2),
         "MAX_CONTAINS_DECREASED #/maxContains", drafts=SINCE_2019),
    pair("maxContains of more things", array(contains=INTEGER, maxContains=1), array(contains=NUMBER, maxContains=1),
         "CONTAINS_CHANGED #/contains", drafts=SINCE_2019),
    pair("maxContains beyond maxItems", array(contains=NUMBER, maxItems=2), array(contains=NUMBER, maxContains=2),
         drafts=SINCE_2019),
)  # fmt: skip

COMBINED = (
    pair("allOf: one removed", {"allOf": [STRING, {"maxLength": 2}]}, {"allOf": [STRING]}),
    pair("allOf: one added", {"allOf": [STRING]}, {"allOf": [STRING, {"maxLength": 2}]}, "PRODUCT_TYPE_EXTENDED #/",
         "MAX_LENGTH_ADDED #/allOf/1/maxLength"),
    pair("allOf: one narrowed", {"allOf": [STRING, {"maxLength": 3}]}, {"allOf": [STRING, {"maxLength": 2}]},
         "COMBINED_TYPE_SUBSCHEMAS_CHANGED #/", "MAX_LENGTH_DECREASED #/allOf/1/maxLength"),
    pair("allOf: in another order", {"allOf": [STRING, {"maxLength": 2}]}, {"allOf": [{"maxLength": 2}, STRING]}),
    pair("allOf: written in one", {"allOf": [STRING, {"maxLength": 2}]}, text(maxLength=2)),
    pair("allOf: written apart", text(maxLength=2), {"allOf": [STRING, {"maxLength": 2}]}),
    pair("allOf: nothing fulfils both", {"allOf": [STRING, NUMBER]}, NULL),
    pair("allOf: something else added", STRING, {"allOf": [NUMBER, STRING]}, "TYPE_CHANGED #/",
         "TYPE_CHANGED #/allOf/0"),
    pair("allOf: where there was none", OBJECT, {**OBJECT, "allOf": [{"required": ["a"]}]}, "TYPE_CHANGED #/",
         "REQUIRED_ATTRIBUTE_ADDED #/allOf/0/required/a"),
    pair("anyOf: one added", {"anyOf": [STRING]}, {"anyOf": [STRING, NUMBER]}),
    pair("anyOf: one removed", {"anyOf": [STRING, NUMBER]}, {"anyOf": [STRING]}, "SUM_TYPE_NARROWED #/"),
    pair("anyOf: one widened", {"anyOf": [STRING, INTEGER]}, {"anyOf": [NUMBER, STRING]}),
    pair("anyOf: one narrowed", {"anyOf": [STRING, NUMBER]}, {"anyOf": [STRING, INTEGER]},
         "COMBINED_TYPE_SUBSCHEMAS_CHANGED #/"),
    pair("anyOf: what was alone becomes one of two", STRING, {"anyOf": [NUMBER, STRING]}),
    pair("anyOf: none of them fits", STRING, {"anyOf": [NUMBER, NULL]}, "TYPE_CHANGED #/"),
    pair("anyOf: two covered by one", {"anyOf": [INTEGER, {"type": "number", "maximum": 1}]}, {"anyOf": [NUMBER]}),
    pair("anyOf: all of them covered", {"anyOf": [text(maxLength=1), text(enum=["ab"])]}, text(maxLength=2)),
    pair("oneOf: one added, apart", {"oneOf": [STRING]}, {"oneOf": [NUMBER, STRING]}),
    pair("oneOf: one added, overlapping", {"oneOf": [INTEGER]}, {"oneOf": [INTEGER, NUMBER]}, "ONE_OF_OVERLAPS #/"),
    pair("oneOf: one removed", {"oneOf": [NUMBER, STRING]}, {"oneOf": [STRING]}, "SUM_TYPE_NARROWED #/"),
    pair("oneOf: one widened, apart", {"oneOf": [text(maxLength=1), NULL]}, {"oneOf": [NULL, text(maxLength=2)]}),
    pair("oneOf: one widened into another", {"oneOf": [text(maxLength=1), text(minLength=3)]},
         {"oneOf": [text(maxLength=3), text(minLength=3)]}, "ONE_OF_OVERLAPS #/"),
    pair("oneOf: overlapping, but unchanged", {"oneOf": [INTEGER, NUMBER]}, {"oneOf": [NUMBER, INTEGER]}),
    pair("oneOf: told apart by a tag, one added", {"oneOf": [tagged("a"), tagged("b")]},
         {"oneOf": [tagged("a"), tagged("b"), tagged("c", x=STRING)]}),
    pair("oneOf: told apart by a tag, one widened", {"oneOf": [tagged("a", x=INTEGER), tagged("b")]},
         {"oneOf": [tagged("a", x=NUMBER), tagged("b")]}),
    pair("oneOf: not told apart, one added", {"oneOf": [open_(a=STRING)]}, {"oneOf": [open_(a=STRING), open_(b=NULL)]},
         "ONE_OF_OVERLAPS #/"),
    pair("oneOf: told apart by closed properties", {"oneOf": [{**closed(a=STRING), "required": ["a"]}]},
         {"oneOf": [{**closed(a=STRING), "required": ["a"]}, {**closed(b=NULL), "required": ["b"]}]}),
    pair("oneOf: null is allowed too", STRING, {"oneOf": [NULL, STRING]}),
    pair("oneOf becomes anyOf", {"oneOf": [INTEGER, NUMBER]}, {"anyOf": [INTEGER, NUMBER]}),
    pair("anyOf becomes oneOf, apart", {"anyOf": [STRING, NULL]}, {"oneOf": [STRING, NULL]}),
    pair("anyOf becomes oneOf, overlapping", {"anyOf": [INTEGER, NUMBER]}, {"oneOf": [INTEGER, NUMBER]},
         "ONE_OF_OVERLAPS #/"),
    pair("anyOf becomes a shorter oneOf", {"anyOf": [STRING, NUMBER]}, {"oneOf": [STRING]}, "COMBINED_TYPE_CHANGED #/"),
    pair("anyOf becomes allOf", {"anyOf": [STRING]}, {"allOf": [NUMBER, STRING]}, "COMBINED_TYPE_CHANGED #/",
         "TYPE_CHANGED #/allOf/0"),
    pair("not: less is refused", {"not": NUMBER}, {"not": INTEGER}),
    pair("not: more is refused", {"not": INTEGER}, {"not": NUMBER}, "NOT_TYPE_EXTENDED #/not"),
    pair("not: removed", {"not": INTEGER}, {}),
    pair("not: added", {}, {"not": INTEGER}, "NOT_TYPE_EXTENDED #/not"),
    pair("not: what was never written", STRING, {"not": NUMBER}),
    pair("if: added", OBJECT, {**OBJECT, "if": {"required": ["a"]}, "then": {"required": ["b"]}},
         "CONDITION_ADDED #/if", drafts=SINCE_7),
    pair("if: removed", {**OBJECT, "if": {"required": ["a"]}, "then": {"required": ["b"]}}, OBJECT, drafts=SINCE_7),
    pair("if: then widened", {"if": {"required": ["a"]}, "then": {"minProperties": 3}},
         {"if": {"required": ["a"]}, "then": {"minProperties": 2}}, drafts=SINCE_7),
    pair("if: then narrowed", {"if": {"required": ["a"]}, "then": {"minProperties": 2}},
         {"if": {"required": ["a"]}, "then": {"minProperties": 3}}, "MIN_PROPERTIES_INCREASED #/then/minProperties",
         drafts=SINCE_7),
    pair("if: else added", {"if": {"required": ["a"]}, "then": {"minProperties": 2}},
         {"if": {"required": ["a"]}, "then": {"minProperties": 2}, "else": {"maxProperties": 2}},
         "MAX_PROPERTIES_ADDED #/else/maxProperties", drafts=SINCE_7),
    pair("if: another condition", {"if": {"required": ["a"]}, "then": {"minProperties": 2}},
         {"if": {"required": ["b"]}, "then": {"minProperties": 2}}, "CONDITION_CHANGED #/if", drafts=SINCE_7),
    pair("if: always fulfilled", {**OBJECT, "required": ["b"]},
         {**OBJECT, "if": {"required": ["a"]}, "then": {"required": ["b"]}}, drafts=SINCE_7),
    pair("if: without an outcome", {}, {"if": NUMBER}, drafts=SINCE_7),
    pair("if: draft 6 knows none", OBJECT, {"if": OBJECT, "then": False}, drafts=("6",)),
)  # fmt: skip


def _tree(value: Schema, **keywords: Any) -> dict[str, Any]:
    node = {**open_(value=value, children=array(items={"$ref": "#/definitions/node"})), **keywords}
    return {"$ref": "#/definitions/node", "definitions": {"node": node}}


def _expressions(name: Schema) -> dict[str, Any]:
    """Two definitions that refer to each other, one by a union."""
    term = {"oneOf": [tagged("name", name=name), {"$ref": "#/definitions/sum"}]}
    both = {**tagged("sum", left={"$ref": "#/definitions/term"}, right={"$ref": "#/definitions/term"})}
    return {"$ref": "#/definitions/term", "definitions": {"term": term, "sum": both}}


REFERENCES = (
    pair("a part gets a name", open_(a=STRING), {**open_(a={"$ref": "#/definitions/t"}), "definitions": {"t": STRING}}),
    pair("a name is written out", {**open_(a={"$ref": "#/definitions/t"}), "definitions": {"t": STRING}},
         open_(a=STRING)),
    pair("what is referred to changes", {**open_(a={"$ref": "#/definitions/t"}), "definitions": {"t": STRING}},
         {**open_(a={"$ref": "#/definitions/t"}), "definitions": {"t": NULL}}, "TYPE_CHANGED #/properties/a"),
    pair("what is referred to is widened", {**open_(a={"$ref": "#/definitions/t"}), "definitions": {"t": INTEGER}},
         {**open_(a={"$ref": "#/definitions/t"}), "definitions": {"t": NUMBER}}),
    pair("definitions get another name", {**open_(a={"$ref": "#/definitions/t"}), "definitions": {"t": STRING}},
         {**open_(a={"$ref": "#/$defs/u"}), "$defs": {"u": STRING}}),
    pair("neighbours of a reference are void", {"definitions": {"t": STRING}, "$ref": "#/definitions/t"},
         {"definitions": {"t": STRING}, "$ref": "#/definitions/t", "maxLength": 2}, drafts=OLDER),
    pair("neighbours of a reference count", {"definitions": {"t": STRING}, "$ref": "#/definitions/t"},
         {"definitions": {"t": STRING}, "$ref": "#/definitions/t", "maxLength": 2}, "MAX_LENGTH_ADDED #/maxLength",
         drafts=SINCE_2019),
    pair("by an anchor", {"$ref": "#t", "$defs": {"t": {"$anchor": "t", **INTEGER}}},
         {"$ref": "#t", "$defs": {"t": {"$anchor": "t", **NUMBER}}}, drafts=SINCE_2019),
    pair("by an id", {"$ref": "t", "definitions": {"t": {"$id": "t", **INTEGER}}},
         {"$ref": "t", "definitions": {"t": {"$id": "t", **NUMBER}}}, drafts=SINCE_6),
    pair("by an id, as draft 4 calls it", {"$ref": "#t", "definitions": {"t": {"id": "#t", **INTEGER}}},
         {"$ref": "#t", "definitions": {"t": {"id": "#t", **STRING}}}, "TYPE_CHANGED #/", drafts=("4",)),
    pair("a tree, unchanged", _tree(STRING), _tree(STRING)),
    pair("a tree, widened", _tree(INTEGER), _tree(NUMBER)),
    pair("a tree, narrowed", _tree(NUMBER), _tree(INTEGER), "TYPE_NARROWED #/properties/value"),
    pair("a tree, closed later", _tree(STRING), _tree(STRING, additionalProperties=False),
         "ADDITIONAL_PROPERTIES_REMOVED #/additionalProperties"),
    pair("a tree unrolled once", _tree(STRING),
         {**_tree(STRING)["definitions"]["node"], "definitions": _tree(STRING)["definitions"]}),
    pair("a list through the root", open_(next={"$ref": "#"}, value=INTEGER), open_(next={"$ref": "#"}, value=NUMBER)),
    pair("a list through the root, narrowed", open_(next={"$ref": "#"}, value=NUMBER),
         open_(next={"$ref": "#"}, value=INTEGER), "TYPE_NARROWED #/properties/value"),
    pair("a recursive union, widened", _expressions(text(maxLength=1)), _expressions(STRING)),
    pair("a recursive union, narrowed", _expressions(STRING), _expressions(text(maxLength=1)),
         "COMBINED_TYPE_SUBSCHEMAS_CHANGED #/"),
    pair("a recursive reference, widened", {"$recursiveAnchor": True, **open_(n={"$recursiveRef": "#"}, v=INTEGER)},
         {"$recursiveAnchor": True, **open_(n={"$recursiveRef": "#"}, v=NUMBER)}, drafts=("2019-09",)),
    pair("a dynamic reference, narrowed", {"$dynamicAnchor": "x", **open_(n={"$dynamicRef": "#x"}, v=NUMBER)},
         {"$dynamicAnchor": "x", **open_(n={"$dynamicRef": "#x"}, v=INTEGER)}, "TYPE_NARROWED #/properties/v",
         drafts=("2020-12",)),
    pair("a dynamic reference that may lead to two places, unchanged",
         {"$dynamicAnchor": "x", "$defs": {"o": {"$id": "o", "$dynamicAnchor": "x"}}, **open_(n={"$dynamicRef": "#x"})},
         {"$dynamicAnchor": "x", "$defs": {"o": {"$id": "o", "$dynamicAnchor": "x"}}, **open_(n={"$dynamicRef": "#x"})},
         drafts=("2020-12",)),
    pair("a dynamic reference that may lead to two places, changed",
         {"$dynamicAnchor": "x", "$defs": {"o": {"$id": "o", "$dynamicAnchor": "x"}}, **open_(n={"$dynamicRef": "#x"})},
         {"$dynamicAnchor": "x", "$defs": {"o": {"$id": "o", "$dynamicAnchor": "x"}},
          **open_(n={"$dynamicRef": "#x"}, m={})},
         "REFERENCE_CHANGED #/properties/n/#x", drafts=("2020-12",)),
)  # fmt: skip

PAIRS: Mapping[str, tuple[Pair, ...]] = {
    "annotations": ANNOTATIONS,
    "type": TYPES,
    "values": VALUES,
    "strings": STRINGS,
    "numbers": NUMBERS,
    "required": REQUIRED,
    "properties": PROPERTIES,
    "pattern properties": PATTERN_PROPERTIES,
    "names and dependencies": NAMES_AND_DEPENDENCIES,
    "unevaluated": UNEVALUATED,
    "arrays": ARRAYS,
    "combined": COMBINED,
    "references": REFERENCES,
}


CAUTIOUS = frozenset({"references: a dynamic reference that may lead to two places, changed"})
"""Where no value is refused, but that cannot be told."""


def each() -> Iterator[tuple[str, Pair]]:
    """Every pair, with a name that says what it is about."""
    for group, pairs in PAIRS.items():
        yield from ((f"{group}: {one.name}", one) for one in pairs)
