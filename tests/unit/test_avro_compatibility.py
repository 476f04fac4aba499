"""Avro compatibility: Avro's own published cases, what they leave out, and whether what is accepted can be read."""

import io
import json
import re
import time
from types import ModuleType
from typing import Any

import avro.compatibility as published_rules
import avro.schema as published_schema
import avro.test.test_compatibility as published
import fastavro
import pytest
from avro_pairs import pairs
from hypothesis import HealthCheck, assume, given, settings

from headrace.registry import avro
from headrace.registry.avro.compatibility import Difference, Reason, differences
from headrace.registry.avro.types import Schema, Union
from headrace.registry.schema import InvalidSchema

Told = list[tuple[str, str, str]]
EMPTY_UNION = Schema(Union(()), {})
"""The published cases have it; no text of it is taken here, for no value could be written."""


def judged(reader: Any, writer: Any) -> Told:
    found = differences(avro.parse(json.dumps(reader)).schema, avro.parse(json.dumps(writer)).schema)
    return [(difference.reason, difference.path, difference.info) for difference in found]


def record(*fields: Any, name: str = "R", **attributes: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **attributes}


def field(name: str, type_: Any, **attributes: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, **attributes}


def enum(*symbols: str, name: str = "E", **attributes: Any) -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": list(symbols), **attributes}


def fixed(size: int, name: str = "F", **attributes: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size, **attributes}


def logical(type_: str, name: str, **attributes: Any) -> dict[str, Any]:
    return {"type": type_, "logicalType": name, **attributes}


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return logical("bytes", "decimal", precision=precision, scale=scale)


class OurRules:
    """Our rules behind the face of the published checker, in the words of its Python edition."""

    asked = 0

    def get_compatibility(
        self, reader: published_schema.Schema, writer: published_schema.Schema
    ) -> published_rules.SchemaCompatibilityResult:
        OurRules.asked += 1
        found = differences(self.ours(reader), self.ours(writer))
        kinds = published_rules.SchemaCompatibilityType
        return published_rules.SchemaCompatibilityResult(
            compatibility=kinds.incompatible if found else kinds.compatible,
            incompatibilities=[published_rules.SchemaIncompatibilityType[one.reason.lower()] for one in found],
            messages={self.message(one) for one in found},
            locations={self.location(one) for one in found},
        )

    def ours(self, schema: published_schema.Schema) -> Schema:
        text = json.dumps(schema.to_json())
        return EMPTY_UNION if text == "[]" else avro.parse(text).schema

    def message(self, one: Difference) -> str:
        if one.reason is Reason.TYPE_MISMATCH:
            return re.sub(r": [A-Z]+", lambda kind: kind[0].lower(), one.info)
        if one.reason is Reason.MISSING_ENUM_SYMBOLS:
            return str({*one.info.strip("[]").split(", ")})
        return one.info

    def location(self, one: Difference) -> str:
        # Which of the writer's branches it is, the Java edition tells and the Python edition does not.
        return (re.sub(r"/\d+$", "", one.path) or "/") if one.reason is Reason.TYPE_MISMATCH else one.path


@pytest.fixture
def published_cases(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(published, "ReaderWriterCompatibilityChecker", OurRules)
    return published


@pytest.mark.parametrize(
    ("test", "pairs_in_it"),
    [
        ("test_simple_schema_promotion", 2),
        ("test_schema_compatibility", 77),
        ("test_schema_compatibility_fixed_size_mismatch", 4),
        ("test_schema_compatibility_missing_enum_symbols", 3),
        ("test_schema_compatibility_missing_union_branch", 17),
        ("test_schema_compatibility_name_mismatch", 4),
        ("test_schema_compatibility_reader_field_missing_default_value", 2),
        ("test_schema_compatibility_type_mismatch", 28),
    ],
)
def test_every_published_pair_is_judged_as_the_avro_project_judges_it(
    published_cases: ModuleType, test: str, pairs_in_it: int
) -> None:
    before = OurRules.asked
    getattr(published_cases.TestCompatibility(test), test)()
    assert OurRules.asked - before == pairs_in_it


def test_no_published_test_is_left_out() -> None:
    [cases] = test_every_published_pair_is_judged_as_the_avro_project_judges_it.pytestmark
    assert {name for name in vars(published.TestCompatibility) if name.startswith("test")} == {
        name for name, _ in cases.args[1]
    }


def linked(type_: str) -> dict[str, Any]:
    return record(field("head", type_), field("tail", "List"), name="List")


@pytest.mark.parametrize(
    ("reader", "writer", "told"),
    [
        # What the Java edition adds to the published cases.
        pytest.param(linked("long"), linked("int"), [], id="a recursive record whose inside is promoted"),
        pytest.param(
            linked("int"),
            linked("long"),
            [("TYPE_MISMATCH", "/fields/0/type", "reader type: INT not compatible with writer type: LONG")],
            id="a recursive record whose inside is not promoted, told once",
        ),
        pytest.param(
            record(field("age", "int")),
            record(field("age", ["null", "int"])),
            [("TYPE_MISMATCH", "/fields/0/type/0", "reader type: INT not compatible with writer type: NULL")],
            id="a union read as one type tells which branch does not fit",
        ),
        pytest.param(
            ["int", "string"],
            ["int", "string", "long"],
            [("MISSING_UNION_BRANCH", "/2", "reader union lacking writer type: LONG")],
            id="a union that lacks a branch",
        ),
        pytest.param(enum("A", "B"), enum("A", "B", namespace="n"), [], id="namespaces of enums do not count"),
        pytest.param(enum("A", default="A"), enum("A", "C"), [], id="an enum's default stands for unknown symbols"),
        pytest.param(
            record(field("e", enum("A", "B"), default="A")),
            record(field("e", enum("A", "B", "C"))),
            [("MISSING_ENUM_SYMBOLS", "/fields/0/type/symbols", "[C]")],
            id="a field's default does not stand for unknown symbols",
        ),
        pytest.param(
            record(field("new", enum("A", default="A"))),
            record(field("old", enum("A"))),
            [("READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/0", "new")],
            id="an enum's default does not stand for a missing field",
        ),
        pytest.param(
            record(
                field("symbols", enum("A", "C", name="S")),
                field("name", enum("A", name="N")),
                field("type", "string"),
                field(
                    "inner",
                    record(
                        field("same", "long", default=42),
                        field("extra", "long"),
                        field("size", fixed(4)),
                        field("branches", ["boolean"]),
                        field("branch", ["boolean"]),
                        field("moved", record(field("items", {"type": "array", "items": "string"}), name="here.M")),
                        name="Inner",
                    ),
                ),
            ),
            record(
                field("symbols", enum("A", "B", "C", "D", name="S")),
                field("name", enum("A", name="Other")),
                field("type", "long"),
                field(
                    "inner",
                    record(
                        field("same", "long"),
                        field("size", fixed(8)),
                        field("branches", ["boolean", "double", "string"]),
                        field("branch", "long"),
                        field("moved", record(field("items", {"type": "array", "items": "boolean"}), name="there.M")),
                        name="Inner",
                    ),
                ),
            ),
            [
                ("MISSING_ENUM_SYMBOLS", "/fields/0/type/symbols", "[B, D]"),
                ("NAME_MISMATCH", "/fields/1/type/name", "expected: Other"),
                ("TYPE_MISMATCH", "/fields/2/type", "reader type: STRING not compatible with writer type: LONG"),
                ("READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/3/type/fields/1", "extra"),
                ("FIXED_SIZE_MISMATCH", "/fields/3/type/fields/2/type/size", "expected: 8, found: 4"),
                (
                    "MISSING_UNION_BRANCH",
                    "/fields/3/type/fields/3/type/1",
                    "reader union lacking writer type: DOUBLE",
                ),
                (
                    "MISSING_UNION_BRANCH",
                    "/fields/3/type/fields/3/type/2",
                    "reader union lacking writer type: STRING",
                ),
                ("MISSING_UNION_BRANCH", "/fields/3/type/fields/4/type", "reader union lacking writer type: LONG"),
                (
                    "TYPE_MISMATCH",
                    "/fields/3/type/fields/5/type/fields/0/type/items",
                    "reader type: STRING not compatible with writer type: BOOLEAN",
                ),
            ],
            id="every reason at once, each with its path",
        ),
        # Names and aliases.
        pytest.param(record(name="New", aliases=["R"]), record(), [], id="a record's alias"),
        pytest.param(
            record(name="n.New", aliases=["R"]),
            record(),
            [("NAME_MISMATCH", "/name", "expected: R")],
            id="an alias without a dot is one of the reader's own namespace",
        ),
        pytest.param(record(name="n.New", aliases=["m.R"]), record(name="m.R"), [], id="an alias of another namespace"),
        pytest.param(
            [record(field("e", enum("A", name="n.New", aliases=["m.E"])))],
            [record(field("e", enum("A", name="m.E")))],
            [],
            id="an enum's alias",
        ),
        pytest.param(
            enum("A", name="X"), fixed(1, name="X"),
            [("TYPE_MISMATCH", "/", "reader type: ENUM not compatible with writer type: FIXED")],
            id="the same name for two kinds",
        ),
        pytest.param(
            {"type": "array", "items": ["null", record(name="n.R")]},
            {"type": "array", "items": ["null", record(name="m.R")]},
            [],
            id="a record of another namespace in a union",
        ),
        pytest.param(
            [record(field("a", "int"), name="n.R"), record(field("b", "int"), name="m.R")],
            [record(field("a", "int"), name="n.R"), record(field("b", "int"), name="m.R")],
            [],
            id="branches of one name in two namespaces are read each by its own",
        ),
    ],
)  # fmt: skip
def test_a_pair_is_judged_with_every_reason_and_its_path(reader: Any, writer: Any, told: Told) -> None:
    assert judged(reader, writer) == told


ONE = record(field("f1", "string"), name="myrecord")
TWO = record(field("f1", "string"), field("f2", "string", default="foo"), name="myrecord")
THREE = record(field("f1", "string"), field("f2", "string"), name="myrecord")
RENAMED = record(field("f1_new", "string", aliases=["f1"]), name="myrecord")
OPTIONAL = record(field("f1", ["null", "string"], doc="doc of f1"), name="myrecord")
WIDER = record(field("f1", ["null", "string", "int"], doc="doc of f1"), name="myrecord")


@pytest.mark.parametrize(
    ("reader", "writer", "fits"),
    [
        pytest.param(TWO, ONE, True, id="a field is added with a default"),
        pytest.param(THREE, ONE, False, id="a field is added without a default"),
        pytest.param(RENAMED, ONE, True, id="a field is renamed with an alias"),
        pytest.param(OPTIONAL, ONE, True, id="a type becomes a union"),
        pytest.param(ONE, OPTIONAL, False, id="a union becomes a type"),
        pytest.param(WIDER, OPTIONAL, True, id="a branch is added"),
        pytest.param(OPTIONAL, WIDER, False, id="a branch is removed"),
        pytest.param(THREE, TWO, True, id="a default is removed"),
        pytest.param(ONE, THREE, True, id="a field is removed"),
        pytest.param(enum("A", "B"), enum("A", "B", "C"), False, id="a symbol is removed"),
    ],
)
def test_confluents_own_cases_are_judged_as_confluent_does(reader: Any, writer: Any, fits: bool) -> None:
    assert (judged(reader, writer) == []) is fits


@pytest.mark.parametrize(
    ("reader", "writer", "message"),
    [
        (
            fixed(4),
            fixed(8),
            (
                "{errorType:'FIXED_SIZE_MISMATCH', description:'The size of FIXED type field at path '/size' in "
                "the new schema does not match with the old schema', additionalInfo:'expected: 8, found: 4'}"
            ),
        ),
        (
            "int",
            "string",
            (
                "{errorType:'TYPE_MISMATCH', description:'The type (path '/') of a field in the new schema does not "
                "match with the old schema', additionalInfo:'reader type: INT not compatible with writer type: STRING'}"
            ),
        ),
        (
            record(name="A"),
            record(name="n.B"),
            (
                "{errorType:'NAME_MISMATCH', description:'The name of the schema has changed (path '/name')', "
                "additionalInfo:'expected: n.B'}"
            ),
        ),
        (
            enum("A"),
            enum("C", "A", "B"),
            (
                "{errorType:'MISSING_ENUM_SYMBOLS', description:'The new schema is missing enum symbols '[B, C]' at "
                "path '/symbols' in the old schema', additionalInfo:'[B, C]'}"
            ),
        ),
        (
            ["null"],
            ["null", "int"],
            (
                "{errorType:'MISSING_UNION_BRANCH', description:'The new schema is missing a type inside a union field "
                "at path '/1' in the old schema', additionalInfo:'reader union lacking writer type: INT'}"
            ),
        ),
        (
            THREE,
            ONE,
            (
                "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'f2' at path '/fields/1' in "
                "the new schema has no default value and is missing in the old schema', additionalInfo:'f2'}"
            ),
        ),
    ],
)
def test_a_reason_is_told_in_confluents_words(reader: Any, writer: Any, message: str) -> None:
    [found] = avro.parse(json.dumps(reader)).incompatibilities(avro.parse(json.dumps(writer)))
    assert found.told(reader="new", writer="old") == message


def test_looking_forward_the_old_schema_is_the_reader() -> None:
    [found] = avro.parse(json.dumps(THREE)).incompatibilities(avro.parse(json.dumps(ONE)))
    assert "in the old schema has no default value and is missing in the new schema" in found.told(
        reader="old", writer="new"
    )


MILLIS, MICROS = logical("long", "timestamp-millis"), logical("long", "timestamp-micros")


@pytest.mark.parametrize(
    ("reader", "writer", "why"),
    [
        pytest.param(decimal(10, 2), decimal(10, 2), None, id="the same decimal"),
        pytest.param(decimal(12, 2), decimal(10, 2), None, id="a decimal with more digits"),
        pytest.param(decimal(8, 2), decimal(10, 2), "decimal(8, 2) … decimal(10, 2)", id="one with fewer"),
        pytest.param(decimal(10, 3), decimal(10, 2), "decimal(10, 3) … decimal(10, 2)", id="another scale"),
        pytest.param(MICROS, MILLIS, "timestamp-micros … timestamp-millis", id="another unit"),
        pytest.param(MILLIS, "long", None, id="an annotation is added"),
        pytest.param("long", MILLIS, None, id="an annotation is removed"),
        pytest.param(MILLIS, "int", "timestamp-millis … none", id="an annotation is added and the type promoted"),
        pytest.param(MILLIS, logical("int", "date"), "timestamp-millis … date", id="days read as an instant"),
        pytest.param("double", logical("int", "date"), None, id="days read as a plain number"),
        pytest.param(decimal(4, 2), "string", "decimal(4, 2) … none", id="text read as a decimal"),
        pytest.param(logical("string", "uuid"), "string", None, id="text read as a uuid"),
        pytest.param(
            fixed(8, logicalType="decimal", precision=10, scale=1),
            fixed(8, logicalType="decimal", precision=10, scale=2),
            "decimal(10, 1) … decimal(10, 2)",
            id="another scale in a fixed",
        ),
        pytest.param(
            logical("bytes", "decimal", precision=0), decimal(10, 2), None, id="a decimal without digits is none"
        ),
        pytest.param(logical("long", "of-our-own"), MILLIS, None, id="an annotation that Avro does not know"),
    ],
)
def test_what_bytes_mean_is_part_of_a_type(reader: Any, writer: Any, why: str | None) -> None:
    expected, found = why.split(" … ") if why else ("", "")
    info = f"reader logical type: {expected} not compatible with writer logical type: {found}"
    assert judged(reader, writer) == ([("TYPE_MISMATCH", "/", info)] if why else [])


def test_a_unit_is_not_changed_inside_a_union_either() -> None:
    assert judged(["null", MICROS], ["null", MILLIS]) == [
        ("MISSING_UNION_BRANCH", "/1", "reader union lacking writer type: LONG")
    ]


@pytest.mark.parametrize(
    ("reader", "writer", "reasons"),
    [
        pytest.param(
            ["null", enum("A", name="n.E")], ["null", enum("A", name="m.E")],
            [Reason.MISSING_UNION_BRANCH],
            id="an enum of another namespace in a union",
        ),
        pytest.param(
            ["null", enum("A", name="n.E", aliases=["m.E"])], ["null", enum("A", name="m.E")],
            [],
            id="unless an alias names it",
        ),
        pytest.param(
            [record(field("a", "string"), name="n.R"), record(field("a", "int"), name="m.R")],
            record(field("a", "int"), name="n.R"),
            [Reason.MISSING_UNION_BRANCH],
            id="the branch of that name does not fit, though another would",
        ),
        pytest.param(
            ["float", logical("long", "timestamp-millis")], logical("int", "date"),
            [Reason.MISSING_UNION_BRANCH],
            id="one of two promotions would read days as an instant",
        ),
        pytest.param(
            record(field("a", "int"), field("b", "int", aliases=["a"], default=0)), record(field("a", "int")),
            [Reason.AMBIGUOUS_FIELD_ALIAS] * 2,
            id="two fields that take the same one",
        ),
        pytest.param(
            record(field("a", "int", aliases=["b"])), record(field("a", "int"), field("b", "int")),
            [Reason.AMBIGUOUS_FIELD_ALIAS],
            id="one field that could take two",
        ),
        pytest.param(
            record(field("b", "int", aliases=["a"]), name="n.R"), record(field("a", "int"), name="m.R"),
            [Reason.READER_FIELD_MISSING_DEFAULT_VALUE],
            id="a field's alias in a record of another namespace",
        ),
        pytest.param(
            record(field("b", "int", aliases=["a"]), name="n.R", aliases=["m.R"]),
            record(field("a", "int"), name="m.R"),
            [],
            id="unless the record's alias names it",
        ),
        pytest.param(
            # Taken for fitting while A, which holds it, was still being judged, B would go untold.
            record(
                field("first", ["null", record(field("b", record(field("a", ["null", "A"]), name="B")),
                                               field("bad", "int"), name="A")]),
                field("second", "B"),
            ),
            record(
                field("first", ["null", record(field("b", record(field("a", ["null", "A"]), name="B")),
                                               field("bad", "string"), name="A")]),
                field("second", "B"),
            ),
            [Reason.MISSING_UNION_BRANCH] * 2,
            id="a recursive type that was taken for fitting on the way",
        ),
    ],
)  # fmt: skip
def test_what_a_reader_would_stumble_over_is_refused(reader: Any, writer: Any, reasons: list[Reason]) -> None:
    assert [reason for reason, _, _ in judged(reader, writer)] == reasons


def test_a_long_chain_of_types_is_judged_at_once() -> None:
    chain = [record(field("next", ["null", f"R{index}"]), name=f"R{index + 1}") for index in range(300)]
    reader, writer = [record(field("a", "int"), name="R0"), *chain], [record(name="R0"), *chain]
    assert judged(reader, reader) == []
    assert len(judged(reader, writer)) == 301


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(pairs())
def test_whatever_is_accepted_can_be_read(pair: tuple[Any, Any, list[Any]]) -> None:
    writer, reader, values = pair
    try:
        accepted = judged(reader, writer) == []
    except InvalidSchema:
        accepted = False
    assume(accepted)
    for value in values:
        written = io.BytesIO()
        fastavro.schemaless_writer(written, writer, value)
        written.seek(0)
        fastavro.schemaless_reader(written, writer, reader)
        assert not written.read(), "every byte is read"


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(pairs())
def test_every_schema_reads_what_it_wrote(pair: tuple[Any, Any, list[Any]]) -> None:
    assert judged(pair[0], pair[0]) == []


@pytest.mark.parametrize(
    "made",
    [
        lambda last: [record(name=f"R{n}") for n in range(5000)],
        lambda last: enum(*(f"s{n}" for n in range(50_000))),
        # Each of the types that follow one another is refuted by the one before.
        lambda last: record(
            *(
                field(f"f{n}", record(field("z", ["null", f"R{n - 1}" if n else last]), name=f"R{n}"))
                for n in range(1500)
            )
        ),
    ],
    ids=["branches", "symbols", "types"],
)
def test_a_large_schema_costs_what_its_size_is(made: Any) -> None:
    begun = time.monotonic()
    judged(made("int"), made("string"))
    assert time.monotonic() - begun < 20, "anybody who may read could keep the server busy"
