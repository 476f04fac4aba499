"""The constructs of Avro and JSON Schema that a field may be declared with, and those that are refused."""

from dataclasses import dataclass
from typing import Any

from headrace.feed import SchemaType


@dataclass(frozen=True)
class Construct:
    """One row: what a field may be declared as."""

    name: str
    schema: Any
    remark: str = ""

    @property
    def field(self) -> str:
        """What a field that is declared so is called in the examples."""
        return "".join(letter if letter.isalnum() else "_" for letter in f"x {self.name}")


GEO = {
    "type": "record",
    "name": "Geo",
    "namespace": "places",
    "fields": [{"name": "lat", "type": "double"}, {"name": "lon", "type": "double"}],
}
NANOS = (
    "cut to microseconds, towards the past, as Iceberg's tables and Spark have no more; so it is refused as key and "
    "order. The archive keeps every digit, and a plain `long` would here"
)
LONGEST = "more than 38 digits are refused"

AVRO = (
    Construct("null", "null", "always null"),
    Construct("boolean", "boolean"),
    Construct("int", "int"),
    Construct("long", "long"),
    Construct("float", "float", "NaN and infinities too"),
    Construct("double", "double", "NaN and infinities too"),
    Construct("bytes", "bytes"),
    Construct("string", "string", "without NUL, which Postgres refuses"),
    Construct("enum", {"type": "enum", "name": "Colour", "symbols": ["red", "green"]}, "its symbols are checked"),
    Construct("fixed", {"type": "fixed", "name": "Md5", "size": 4}),
    Construct("record", GEO, "in a warehouse one JSON object"),
    Construct("reference to a named type", "places.Geo", "as the type that it names"),
    Construct("array", {"type": "array", "items": "string"}, "in a warehouse a JSON array"),
    Construct("map", {"type": "map", "values": "long"}, "in a warehouse a JSON object"),
    Construct(
        "array of records",
        {"type": "array", "items": {"type": "map", "values": ["null", "places.Geo"]}},
        "nested as deep as you like",
    ),
    Construct("union with null", ["null", "string"], "the other type; the column may be null"),
    Construct("union of int and long", ["int", "long"], "the wider one"),
    Construct("union of float and double", ["null", "float", "double"], "the wider one"),
    Construct(
        "union of several types",
        ["null", "string", "long", "places.Geo"],
        "a member per type, named by it as in Avro's JSON, one of them filled",
    ),
    Construct("decimal over bytes", {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 10}, LONGEST),
    Construct(
        "decimal over fixed",
        {"type": "fixed", "name": "Money", "size": 8, "logicalType": "decimal", "precision": 12, "scale": 2},
        LONGEST,
    ),
    Construct(
        "big-decimal",
        {"type": "bytes", "logicalType": "big-decimal"},
        "the bytes as they came: without a scale it is no number to a table. Use `decimal`",
    ),
    Construct("date", {"type": "int", "logicalType": "date"}, "years 1 to 9999"),
    Construct(
        "time-millis",
        {"type": "int", "logicalType": "time-millis"},
        "as text `HH:MM:SS.ffffff` in the lake: Spark cannot read Iceberg's `time`",
    ),
    Construct("time-micros", {"type": "long", "logicalType": "time-micros"}, "as `time-millis`"),
    Construct("timestamp-millis", {"type": "long", "logicalType": "timestamp-millis"}, "years 1 to 9999"),
    Construct("timestamp-micros", {"type": "long", "logicalType": "timestamp-micros"}, "years 1 to 9999"),
    Construct("timestamp-nanos", {"type": "long", "logicalType": "timestamp-nanos"}, NANOS),
    Construct("local-timestamp-millis", {"type": "long", "logicalType": "local-timestamp-millis"}, "years 1 to 9999"),
    Construct("local-timestamp-micros", {"type": "long", "logicalType": "local-timestamp-micros"}, "years 1 to 9999"),
    Construct("local-timestamp-nanos", {"type": "long", "logicalType": "local-timestamp-nanos"}, NANOS),
    Construct("uuid over string", {"type": "string", "logicalType": "uuid"}, "in small letters"),
    Construct(
        "uuid over fixed", {"type": "fixed", "name": "Uuid", "size": 16, "logicalType": "uuid"}, "in small letters"
    ),
    Construct(
        "duration", {"type": "fixed", "name": "Duration", "size": 12, "logicalType": "duration"}, "its three numbers"
    ),
    Construct("unknown logical type", {"type": "long", "logicalType": "fortnights"}, "the type below it, as Avro says"),
)

POINT = {"type": "object", "properties": {"lat": {"type": "number"}, "lon": {"type": "number"}}}
NODE = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "inner": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
}
DEFINITIONS = {"point": POINT, "node": NODE}
SEVERAL = "several kinds of value have no common column"

JSON = (
    Construct("boolean", {"type": "boolean"}),
    Construct("integer", {"type": "integer"}, "more than 64 bits go to quarantine; `1.0` is 1"),
    Construct("number", {"type": "number"}, "as a double; for money use `integer` cents or a string"),
    Construct("string", {"type": "string"}, "without NUL, which Postgres refuses"),
    Construct("type with null", {"type": ["string", "null"]}, "the other type; the column may be null"),
    Construct(
        "anyOf or oneOf with null",
        {"anyOf": [{"type": "null"}, {"type": "integer"}]},
        "the other type; the column may be null",
    ),
    Construct("integer or number", {"type": ["integer", "number"]}, "the wider one"),
    Construct("null", {"type": "null"}, "always null"),
    Construct("enum", {"enum": ["red", "green"]}, "the type of its values; of several types: JSON text"),
    Construct("const", {"const": 7}, "the type of its value"),
    Construct(
        "format date-time",
        {"type": "string", "format": "date-time"},
        "in UTC, cut to microseconds; leap seconds go to quarantine",
    ),
    Construct("format date", {"type": "string", "format": "date"}, "years 1 to 9999"),
    Construct("format uuid", {"type": "string", "format": "uuid"}, "in small letters"),
    Construct("format time", {"type": "string", "format": "time"}, "the text: it has an offset from UTC"),
    Construct("any other format", {"type": "string", "format": "email"}, "the text"),
    Construct("contentEncoding", {"type": "string", "contentEncoding": "base64"}, "the text, still encoded"),
    Construct(
        "object with properties", POINT, "in a warehouse one JSON object; undeclared members stay in the archive"
    ),
    Construct(
        "object with other names",
        {"type": "object", "properties": {"a-b": {"type": "integer"}}},
        "JSON text, for the name cannot be a column's; so are two names that differ only in capitals",
    ),
    Construct(
        "object with additionalProperties",
        {"type": "object", "additionalProperties": {"type": "integer"}},
        "a map, if nothing else is declared",
    ),
    Construct("free object", {"type": "object"}, "JSON text"),
    Construct("anything", {}, "JSON text"),
    Construct("array", {"type": "array", "items": {"type": "string"}}, "in a warehouse a JSON array"),
    Construct("array of anything", {"type": "array"}, "JSON text"),
    Construct(
        "tuple",
        {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
        "JSON text; so is a list of `items`, as older drafts write it",
    ),
    Construct("several types", {"type": ["string", "integer"]}, f"JSON text: {SEVERAL}"),
    Construct("anyOf or oneOf", {"oneOf": [POINT, {"type": "string"}]}, f"JSON text: {SEVERAL}"),
    Construct(
        "allOf",
        {"allOf": [{"$ref": "#/$defs/point"}, {"properties": {"height": {"type": "number"}}}]},
        "all of it at once",
    ),
    Construct("$ref", {"$ref": "#/$defs/point"}, "what it refers to in the same file; to another file it is refused"),
    Construct("recursive $ref", {"$ref": "#/$defs/node"}, "JSON text where it comes back to itself"),
)

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 39}
TREE = {"type": "record", "name": "Tree", "fields": [{"name": "inner", "type": {"type": "array", "items": "Tree"}}]}
TWINS = {"type": "record", "name": "Twins", "fields": [{"name": "a", "type": "int"}, {"name": "A", "type": "int"}]}

REFUSED_AVRO = (
    Construct("recursive reference", TREE),
    Construct("decimal of more than 38 digits", DECIMAL),
    Construct("decimal without precision", {"type": "bytes", "logicalType": "decimal"}),
    Construct("unknown name", {"type": "array", "items": "Nobody"}),
    Construct("names that differ only in capitals", TWINS),
)
REFUSED_JSON = (
    Construct("reference to another file", {"$ref": "https://example.org/point.json"}),
    Construct("unknown type", {"type": "array", "items": {"type": "date"}}),
)

REFUSED: dict[SchemaType, tuple[Construct, ...]] = {"AVRO": REFUSED_AVRO, "JSON": REFUSED_JSON}
CONSTRUCTS: dict[SchemaType, tuple[Construct, ...]] = {"AVRO": AVRO, "JSON": JSON}
