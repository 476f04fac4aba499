"""Lint: everything that is wrong in feed files, told at once, alone and as changes, without any server."""

import json
import re
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)
from typer.testing import CliRunner

from headrace import change, feed, lint, position
from headrace.cli import app
from headrace.columns import columns
from headrace.expectations import expectations
from headrace.fault import Fault, nearest
from headrace.feed import Feed
from headrace.registry import json_schema

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "lint.md").read_text(encoding="utf-8")
ID = {"name": "order_id", "type": "string"}
REVISION = {"name": "revision", "type": "long"}
DRAINS = {"drains": {"topic": "old_orders"}}
DURATION = {"type": "fixed", "name": "Lasts", "size": 12, "logicalType": "duration"}
PRICE = {"name": "price", "type": "long"}
DECIMAL = {"name": "paid", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}}
AT = {"name": "created_at", "type": {"type": "long", "logicalType": "timestamp-millis"}}
GOOD = {"owner": "shop", "key": ["order_id"], "order": ["revision"]}


CLOSED = {"required": ["id"], "additionalProperties": False}


def avro(*fields: Any, name: str = "Order", **declared: Any) -> str:
    schema = {"type": "record", "name": name, "feed": {**GOOD, **declared}, "fields": [ID, REVISION, *fields]}
    return json.dumps(schema, indent=1)


def told(text: str, file: str = "orders.avsc") -> list[str]:
    return [f"{each.severity} {each.path} {each.message} {each.fix}" for each in lint.check(feed.read(file, text))]


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["lint", *arguments])
    return done.exit_code, done.output


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schemas").mkdir()
    return tmp_path / "schemas"


def test_the_examples_are_clean_even_to_the_strict() -> None:
    assert run(str(ROOT / "schemas"), "--strict") == (0, "4 files, 0 errors, 0 warnings\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (avro(), []),
        (avro(owner="shop", order=["created_at"]), ["error feed.order names"]),
        (avro(AT, order=["created_at"]), ['warning feed.order names "created_at", a wall clock']),
        (
            avro({"name": "updated_at", "type": "long"}, order=["updated_at"]),
            ['warning feed.order names "updated_at", a wall clock'],
        ),
        (avro(order=[]), ["warning feed.order is missing"]),
        (avro(order=[], topic={"partitions": 1}), []),
        (avro(order=[], merge="append"), []),
        (
            avro(AT, partition={"field": "created_at"}),
            ['warning feed.partition.field is "created_at", which may change'],
        ),
        (avro(AT, partition={"field": "created_at", "immutable": True}), []),
        (avro(AT, key=["order_id", "created_at"], partition={"field": "created_at"}), []),
        (avro(PRICE, partition={"field": "price"}), ["error feed.partition.field names"]),
        (avro({"name": "email", "type": "string"}), ['warning fields.2 the field "email" sounds personal']),
        (avro({"name": "customer_phone_number", "type": "string"}), ["warning fields.2"]),
        (avro({"name": "email", "type": "string", "pii": False}), []),
        (avro({"name": "email", "type": "string", "pii": "email"}), []),
        (avro({"name": "emailed", "type": "boolean"}), []),
        (avro({"name": "iban", "type": "string", "pii": "account"}, key=["iban"]), ["warning feed.key"]),
        (
            avro({"name": "no", "type": ["null", "long"]}, key=["no"]),
            ['warning feed.key names "no", which may be null'],
        ),
        (avro({**PRICE, "defualt": 0}), ['warning fields.2 the field "price" has "defualt"']),
        (avro({"name": "price", "type": "lnog"}), ["error fields.2.type"]),
        (avro({"name": "price", "type": "long", "default": "a"}), ["error fields.2.default"]),
        (avro(DECIMAL, checks=[{"column": "paid", "between": ["9.50", "100.00"]}]), []),
        (avro(DECIMAL, checks=[{"column": "paid", "between": [10, "9.5"]}]), ["error feed.checks.0.between has its"]),
        (avro(DECIMAL, checks=[{"column": "paid", "between": ["9,5", 1]}]), ['error feed.checks.0.between has "9,5"']),
        (avro(PRICE, checks=[{"expect": "expect_colum_to_exist"}]), ['error feed.checks.0.expect is "expect_colum']),
        (avro(PRICE, checks=[{"expect": "expect_column_to_exist", "column": "price"}]), []),
        (avro(owner=5), ["error feed.owner is 5"]),
        (avro(order="revision"), ["error feed.order is"]),
        (
            avro({"name": "lasts", "type": DURATION}, key=["lasts"]),
            ['error feed.key names "lasts", a field of kind'],
        ),
    ],
)
def test_a_file_by_itself(text: str, expected: list[str]) -> None:
    found = told(text)
    assert len(found) == len(expected), found
    assert all(each.startswith(start) for each, start in zip(found, expected, strict=True)), found


def test_a_feed_without_an_owner_is_told() -> None:
    schema = {"type": "record", "name": "Order", "feed": {"key": ["order_id"], "merge": "append"}, "fields": [ID]}
    assert told(json.dumps(schema)) == [
        'warning feed.owner is missing: nobody is asked when it fails. Add "owner": "your-team".'
    ]


def test_a_broken_schema_hides_neither_faults_nor_warnings_elsewhere() -> None:
    found = told(avro({"name": "price", "type": "lnog"}, AT, order=["created_at"], ordr=[]))
    assert [each.split()[:2] for each in found] == [
        ["error", "feed.ordr"], ["error", "fields.2.type"], ["warning", "feed.order"],
    ]  # fmt: skip


def test_every_broken_field_is_told_at_once() -> None:
    wide = {"type": "bytes", "logicalType": "decimal", "precision": 50}
    broken = [
        {"name": "a", "type": "lnog"},
        {"name": "b", "type": "int", "default": "x"},
        {"name": "c"},
        {"type": "int"},
    ]
    found = told(avro(*broken, {"name": "d", "type": wide}))
    assert [each.split()[1] for each in found] == [
        "fields.4",
        "fields.5",
        "fields.2.type",
        "fields.3.default",
        "fields.6",
    ]


def test_what_a_broken_field_defines_is_not_told_to_be_missing() -> None:
    lines = {"type": "record", "name": "Line", "fields": [{"name": "n", "type": "lnog"}]}
    found = told(avro({"name": "first", "type": lines}, {"name": "second", "type": "Line"}))
    assert [each.split()[1] for each in found] == ["fields.2.type.fields.0.type"]


def test_every_broken_property_is_told_at_once_with_the_nearest_type() -> None:
    properties = {"id": {"type": "strin"}, "a": {"minLength": -1}, "b": {"$ref": "other.json"}, "c": {"type": "string"}}
    declared = {"owner": "web", "key": ["id"], "merge": "append"}
    schema = {"type": "object", "properties": properties, "required": ["id"], "x-feed": declared}
    found = told(json.dumps(schema), "clicks.json")
    assert 'error properties.id.type is "strin", which is no type of JSON Schema. Did you mean "string"?' in found
    assert any(each.startswith("error properties.a.minLength is not of JSON Schema draft 7") for each in found), found


@pytest.mark.parametrize(
    ("draft", "known"),
    [
        ("http://json-schema.org/draft-04/schema#", True), ("http://json-schema.org/draft-06/schema", True),
        ("http://json-schema.org/draft-07/schema#", True), ("https://json-schema.org/draft/2019-09/schema", True),
        ("https://json-schema.org/draft/2020-12/schema", True), ("http://json-schema.org/draft-03/schema#", False),
        ("https://example.org/mine", False),
    ],
)  # fmt: skip
def test_a_draft_that_is_not_known_is_told(draft: str, known: bool) -> None:
    declared = {"owner": "web", "key": ["id"], "merge": "append"}
    schema = {"$schema": draft, **CLOSED, "properties": {"id": {"type": "string"}}, "x-feed": declared}
    found = told(json.dumps(schema), "clicks.json")
    assert [each.startswith("warning $schema is") for each in found] == ([] if known else [True])


def test_an_open_schema_is_warned_of() -> None:
    declared = {"owner": "web", "key": ["id"], "merge": "append"}
    schema = {"properties": {"id": {"type": "string"}}, "required": ["id"], "x-feed": declared}
    (found,) = told(json.dumps(schema), "clicks.json")
    assert "no later version can add one" in found
    assert told(json.dumps({**schema, **CLOSED}), "clicks.json") == []


def test_what_no_json_schema_could_be_is_told() -> None:
    schema = {"type": "object", "properties": {"id": {"type": "strin"}}, "required": ["id"], "x-feed": {"key": ["id"]}}
    found = told(json.dumps(schema), "clicks.json")
    assert [each.split()[:2] for each in found if each.startswith("error")] == [["error", "properties.id.type"]]


@pytest.mark.parametrize(
    ("name", "is_clock"),
    [
        ("updated_at", True), ("updatedAt", True), ("ts", True), ("ts_ms", True), ("event_timestamp", True),
        ("last_update_time", True), ("lastModified", True), ("revision", False), ("version", False), ("seq", False),
        ("lsn", False), ("updates", False), ("attempts", False),
    ],
)  # fmt: skip
def test_a_clock_is_told_by_its_name_too(name: str, is_clock: bool) -> None:
    found = told(avro({"name": name, "type": "long"}, order=[name])) if name != "revision" else told(avro())
    assert bool(found) is is_clock, found


@pytest.mark.parametrize(
    ("expect", "arguments", "said"),
    [
        ("expect_column_mean_to_be_between", {"column": "revisoin"}, 'arguments.column names "revisoin", which is not'),
        ("expect_column_mean_to_be_between", {"column": "revision", "min": 1}, "arguments.min is not an argument of"),
        ("expect_column_mean_to_be_between", {"column": "revision", "meta": {}}, "arguments.meta is not an argument"),
        ("expect_column_mean_to_be_between", {}, "arguments lacks column"),
        ("expect_column_values_to_be_in_set", {"column": "revision"}, "arguments lacks value_set"),
        ("expect_compound_columns_to_be_unique", {"column_list": ["order_id", "a"]}, 'arguments.column_list names "a"'),
        ("expect_query_results_to_match_comparison", {
            "base_query": "", "comparison_query": "", "comparison_data_source_name": "",
        }, 'expect is "expect_query_results_to_match_comparison", which Great Expectations cannot test on Spark'),
    ],
)  # fmt: skip
def test_what_an_expectation_would_refuse_at_run_time_is_told(expect: str, arguments: Any, said: str) -> None:
    found = told(avro(checks=[{"expect": expect, "arguments": arguments}]))
    assert [each.startswith(f"error feed.checks.0.{said}") for each in found] == [True], found


def test_every_expectation_that_lint_knows_is_one() -> None:
    spec = find_spec("great_expectations")
    assert spec
    assert spec.submodule_search_locations
    exported = (Path(spec.submodule_search_locations[0]) / "expectations" / "core" / "__init__.py").read_text()
    known = expectations()
    assert len(known) > 45
    assert [name for name in known if f"from .{name} import" not in exported] == []


@pytest.mark.parametrize(
    ("property_", "declaration", "said"),
    [
        ({}, {"key": ["field"]}, 'key names "field", a field of kind json'),
        ({}, {"order": ["field"]}, 'order names "field", a field of kind json'),
        ({"enum": ["a", 1]}, {"partition": {"field": "field"}}, "partition.field names"),
        ({"enum": ["a", "b"]}, {"correctness": {"sum": ["field"]}}, "correctness.sum names"),
        ({"const": 7}, {"delete": {"field": "field"}}, "delete.one_of is missing"),
        ({"enum": [1, 2]}, {"checks": [{"column": "field", "one_of": ["a"]}]}, "checks.0.one_of has"),
    ],
)
def test_a_field_that_names_no_type_is_judged_as_the_column_that_it_becomes(
    property_: Any, declaration: Any, said: str
) -> None:
    declared = {"owner": "web", "key": ["id"], "topic": {"partitions": 1}, **declaration}
    properties = {"id": {"type": "string"}, "field": property_}
    schema = {"type": "object", "properties": properties, "required": ["id", "field"], "x-feed": declared}
    errors = [each for each in told(json.dumps(schema), "clicks.json") if each.startswith("error")]
    assert [each.startswith(f"error x-feed.{said}") for each in errors] == [True], errors


def test_of_very_many_known_words_only_the_nearest_are_told() -> None:
    known = [f"subject-{number}" for number in range(300)]
    assert len(nearest("zzz", known)) < 150
    assert nearest("subjct-7", known).startswith("Did you mean")
    assert nearest("zzz", []) == ""


KINDS = {
    BooleanType: "boolean", IntegerType: "integer", LongType: "integer", FloatType: "float", DoubleType: "float",
    DecimalType: "decimal", StringType: "string", UUIDType: "uuid", BinaryType: "bytes", FixedType: "bytes",
    DateType: "date", TimestampType: "timestamp", TimestamptzType: "timestamp", ListType: "array", MapType: "map",
    StructType: "struct",
}  # fmt: skip


@pytest.mark.parametrize(
    "type_",
    [
        "boolean", "int", "long", "float", "double", "bytes", "string", ["null", "string"],
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        {"type": "fixed", "name": "D", "size": 5, "logicalType": "decimal", "precision": 9, "scale": 2},
        {"type": "string", "logicalType": "uuid"}, {"type": "int", "logicalType": "date"},
        {"type": "long", "logicalType": "date"}, {"type": "long", "logicalType": "timestamp-micros"},
        {"type": "long", "logicalType": "local-timestamp-millis"}, {"type": "fixed", "name": "F", "size": 4},
        {"type": "enum", "name": "E", "symbols": ["a"]}, {"type": "array", "items": "string"},
        {"type": "map", "values": "long"}, {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]},
    ],
    ids=str,
)  # fmt: skip
def test_a_fields_kind_is_that_of_its_column(type_: Any) -> None:
    orders = feed.parse("orders.avsc", avro({"name": "field", "type": type_}))
    assert orders.fields[2].kind == KINDS[type(columns(orders)[2].type)]


@pytest.mark.parametrize(
    "property_",
    [
        {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}, {"type": ["string", "null"]},
        {"type": "string", "format": "date"}, {"type": "string", "format": "date-time"},
        {"type": "string", "format": "uuid"}, {"type": "string", "format": "time"}, {"type": ["integer", "number"]},
        {"type": "array", "items": {"type": "string"}}, {"$ref": "#/$defs/Day"},
        {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/Day"}]},
        {"type": "object", "properties": {"a": {"type": "string"}}},
    ],
    ids=str,
)  # fmt: skip
def test_a_propertys_kind_is_that_of_its_column(property_: Any) -> None:
    schema = {
        "type": "object",
        "properties": {"id": {"type": "string"}, "field": property_},
        "x-feed": {"key": ["id"]},
        "$defs": {"Day": {"type": "string", "format": "date"}},
    }
    rows = feed.parse("rows.json", json.dumps(schema))
    assert rows.fields[1].kind == KINDS[type(columns(rows)[1].type)]


def test_files_that_get_in_each_others_way_are_told_both(folder: Path) -> None:
    (folder / "orders.avsc").write_text(avro())
    (folder / "orders.json").write_text(
        json.dumps({"x-feed": {"key": ["id"]}, "properties": {"id": {"type": "string"}}})
    )
    (folder / "sales.avsc").write_text(avro(topic={"name": "shop.sales"}))
    (folder / "more_sales.avsc").write_text(avro(topic={"name": "shop_sales"}))
    errors = [fault for fault in lint.lint(feed.files(folder)) if fault.severity == "error"]
    assert [(Path(each.file).name, each.path) for each in errors] == [
        ("orders.avsc", ""),
        ("orders.json", ""),
        ("more_sales.avsc", "feed.topic.name"),
        ("sales.avsc", "feed.topic.name"),
    ]
    assert [each.line for each in lint.lint([folder / "sales.avsc"])] == [
        position.lines(avro(topic={"name": ""}))["feed.topic.name"]
    ]


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ({"orders": {"keep": ["email"]}}, []),
        ({"ordres": {}}, ['warning  feed.job.inputs.ordres is no feed of this folder.* Did you mean "orders"']),
        ({"orders": {"keep": ["mail"]}}, ['error    feed.job.inputs.orders.keep names "mail", .* of orders.*"email"']),
        ({"sums": {}, "orders": {}}, ["error    feed.job.inputs.sums is the feed that the job makes"]),
        ({"broken": {"keep": ["mail"]}}, []),
    ],
)
def test_what_a_job_reads_is_looked_for_among_its_neighbours(folder: Path, inputs: Any, expected: list[str]) -> None:
    (folder / "orders.avsc").write_text(avro({"name": "email", "type": "string", "pii": "email"}))
    (folder / "broken.avsc").write_text("{")
    (folder / "sums.avsc").write_text(avro(name="Sum", order=[], job={"file": "sums.py", "inputs": inputs}))
    *found, _ = run("schemas/sums.avsc")[1].splitlines()
    found = [each for each in found if ".job." in each]
    assert len(found) == len(expected), found
    assert all(re.search(each, said) for each, said in zip(expected, found, strict=True)), found


def test_one_file_is_checked_beside_its_neighbours_and_only_itself_told(folder: Path) -> None:
    (folder / "orders.avsc").write_text(avro())
    (folder / "sales.avsc").write_text(avro(topic={"name": "orders"}, ordr=[]))
    assert [(each.file, each.path) for each in lint.lint([Path("schemas/orders.avsc")])] == [
        ("schemas/orders.avsc", "feed.topic.name")
    ]


@pytest.mark.parametrize(
    ("path", "line"),
    [("", 1), ("a", 2), ("a.0", 2), ("a.1.b", 4), ("a.1.b.nothing.here", 4), ("c", 6), ("nowhere", 1)],
)
def test_a_path_stands_in_its_line(path: str, line: int) -> None:
    text = '{\n  "a": [1, {\n\n    "b": "\\n\\"}"\n  }],\n  "c": {}\n}'
    assert position.nearest(position.lines(text), path) == line


def test_text_that_is_not_json_is_told_in_its_own_line(folder: Path) -> None:
    (folder / "orders.avsc").write_text('{"type":\n}')
    code, output = run("schemas/orders.avsc")
    assert (code, output.splitlines()[0]) == (
        1,
        "schemas/orders.avsc:2  error    line 2, column 1: not JSON: Expecting value.",
    )


def test_the_page_shows_what_lint_says(folder: Path) -> None:
    sample = PAGE.partition("<!-- sample: orders.avsc -->\n```json\n")[2].partition("```")[0]
    (folder / "orders.avsc").write_text(sample)
    shown = PAGE.partition("<!-- output -->\n```\n")[2].partition("```")[0]
    assert run("schemas/orders.avsc") == (1, shown)


def test_the_page_explains_every_option_and_every_key_of_its_json() -> None:
    options = set(re.findall(r"--[a-z-]+", run("--help")[1])) - {"--help"}
    assert len(options) == 5
    assert {option for option in options if option not in PAGE} == set()
    assert {key for key in Fault.__dataclass_fields__ if f"`{key}`" not in PAGE} == set()


def test_json_has_the_same_keys_for_every_fault(folder: Path) -> None:
    (folder / "orders.avsc").write_text(avro(AT, order=["created_at"], ordr=[]))
    code, output = run("--json")
    found = json.loads(output)
    assert code == 1
    assert [set(each) for each in found] == [{"file", "line", "path", "severity", "message", "fix", "value"}] * 2
    assert [(each["file"], each["severity"], each["value"]) for each in found] == [
        ("schemas/orders.avsc", "warning", "created_at"),
        ("schemas/orders.avsc", "error", []),
    ]


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        (avro(), (), 0),
        (avro(order=[]), (), 0),
        (avro(order=[]), ("--strict",), 1),
        (avro(ordr=[]), (), 1),
        (avro(), ("--nonsense",), 2),
        (avro(), ("nowhere.avsc",), 2),
        (avro(), ("--against-git", "HEAD"), 2),
        (avro(), ("--level", "SIDEWAYS"), 2),
    ],
)
def test_exit_codes(folder: Path, text: str, options: tuple[str, ...], code: int) -> None:
    (folder / "orders.avsc").write_text(text)
    assert run(*options)[0] == code


def test_a_folder_that_is_not_there_is_not_a_clean_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run()[0] == 2


def git(*arguments: str) -> None:
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(folder: Path) -> Path:
    """A repository whose last commit has one feed."""
    git("init", "-b", "main")
    (folder / "orders.avsc").write_text(avro(PRICE, AT))
    git("add", ".")
    git("commit", "-m", "orders")
    return folder


@pytest.mark.parametrize(
    ("text", "path", "said"),
    [
        (avro(PRICE, AT, {"name": "note", "type": "string"}), "fields.4", "Give the field a default."),
        (avro({**PRICE, "type": "string"}, AT), "fields.2.type", "headrace new --breaks orders"),
        (
            avro({**PRICE, "type": "double"}, AT),
            "fields.2",
            "was long in HEAD and is double now: no table can change that",
        ),
        (avro(PRICE, AT, topic={"name": "other"}), "feed.topic.name", 'was "orders" in HEAD and is "other" now'),
    ],
)
def test_a_change_that_may_not_be_is_told_without_a_server(repository: Path, text: str, path: str, said: str) -> None:
    (repository / "orders.avsc").write_text(text)
    code, output = run("--against-git", "HEAD", "--json")
    assert [each["path"] for each in json.loads(output)] == [path]
    assert said in output.replace("\\", "")
    assert code == 1
    assert run()[0] == 0


@pytest.mark.parametrize(
    ("text", "path", "said"),
    [
        (avro(PRICE, AT, key=["revision"]), "feed.key", 'was ["order_id"] in HEAD and is ["revision"] now'),
        (avro(PRICE, AT, order=["price"]), "feed.order", "decided between the versions"),
        (avro(PRICE, AT, merge="first"), "feed.merge", "it has made the rows"),
        (avro(PRICE, AT, partition={"field": "created_at", "immutable": True}), "feed.partition", "was null in HEAD"),
        (avro(PRICE, AT, delete={"field": "order_id", "one_of": ["none"]}), "feed.delete", "merged already stay"),
    ],
)
def test_a_change_that_takes_a_rebuild_is_a_warning_with_the_command(
    repository: Path, text: str, path: str, said: str
) -> None:
    (repository / "orders.avsc").write_text(text)
    code, output = run("--against-git", "HEAD", "--json")
    assert [(each["path"], each["severity"]) for each in json.loads(output)] == [(path, "warning")]
    assert said in output.replace("\\", "")
    assert "headrace rebuild orders" in output
    assert code == 0


@pytest.mark.parametrize(
    "text",
    [
        avro(PRICE, AT),
        avro(PRICE, AT, {"name": "note", "type": ["null", "string"], "default": None}),
        avro(AT),
        avro(
            PRICE,
            AT,
            owner="others",
            schedule="@daily",
            topic={"partitions": 9},
            checks=[{"column": "price", "not_null": True}],
        ),
        avro(PRICE, AT, name="Order").replace("\n", ""),
    ],
)
def test_a_change_that_may_be_is_let_through(repository: Path, text: str) -> None:
    (repository / "orders.avsc").write_text(text)
    assert run("--against-git", "HEAD") == (0, "1 file, 0 errors, 0 warnings\n")


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ({"topic": DRAINS}, {}, ["error feed.topic.drains", 'named the topic "old_orders" in HEAD']),
        ({"topic": DRAINS}, {"topic": {"drains": {"topic": "others"}}}, ["error feed.topic.drains", "Put it back."]),
        ({}, {"topic": DRAINS}, ["warning feed.topic.drains", "tombstones that are archived already"]),
        (
            {"warehouses": {"finance": {}}},
            {"warehouses": {"finance": {"mask": {"price": "hash"}}}},
            [],
        ),
        ({"warehouses": {"finance": {}}}, {"warehouses": {"finance": {"drop": ["price"]}, "web": {}}}, []),
    ],
)
def test_what_a_declaration_may_not_change_unnoticed(repository: Path, before: Any, now: Any, said: list[str]) -> None:
    (repository / "orders.avsc").write_text(avro(PRICE, AT, **before))
    git("commit", "--allow-empty", "-am", "before")
    (repository / "orders.avsc").write_text(avro(PRICE, AT, **now))
    found = json.loads(run("--against-git", "HEAD", "--json")[1])
    assert [f"{each['severity']} {each['path']}" for each in found] == said[:1]
    assert all(part in f"{each['message']} {each['fix']}" for each in found for part in said[1:]), found


def test_a_column_that_would_lose_values_in_a_warehouse_is_told_with_the_command_that_does_it(repository: Path) -> None:
    def written(note: Any) -> None:
        declared = {**GOOD, "key": ["id"], "order": [], "merge": "append", "warehouses": {"finance": {}}}
        schema = {"type": "object", "properties": {"id": {"type": "string"}, "note": note}, **CLOSED}
        (repository / "clicks.json").write_text(json.dumps({**schema, "x-feed": declared}))

    written({"type": "string"})
    git("add", ".")
    git("commit", "-m", "before")
    written({})
    told = json.loads(run("--against-git", "HEAD", "--level", "NONE", "--json")[1])
    (found,) = [fault for fault in told if "warehouses" in fault["path"]]
    assert (found["severity"], found["path"]) == ("warning", "x-feed.warehouses.finance")
    assert found["message"] == 'has "note" as text since HEAD, and it is jsonb now: a load refuses that.'
    assert "headrace load clicks finance --anew" in found["fix"]


def test_a_level_asks_in_its_direction(repository: Path) -> None:
    (repository / "orders.avsc").write_text(avro(AT))
    codes = {
        level: run("--against-git", "HEAD", "--level", level)[0] for level in ("NONE", "BACKWARD", "FORWARD", "FULL")
    }
    assert codes == {"NONE": 0, "BACKWARD": 0, "FORWARD": 1, "FULL": 1}


def test_a_new_file_and_a_deleted_one_are_fine(repository: Path) -> None:
    (repository / "orders.avsc").unlink()
    (repository / "sales.avsc").write_text(avro({"name": "note", "type": "string"}))
    assert run("--against-git", "main")[0] == 0


def test_a_file_under_a_new_name_is_compared_by_its_topic(repository: Path) -> None:
    (repository / "orders.avsc").unlink()
    (repository / "sales.avsc").write_text(
        avro({**PRICE, "type": "string"}, AT, topic={"name": "orders"}, key=["revision"])
    )
    assert [each["path"] for each in json.loads(run("--against-git", "HEAD", "--json")[1])] == ["fields.2.type"]


def test_another_language_under_the_same_name_is_told(repository: Path) -> None:
    (repository / "orders.avsc").unlink()
    properties = {"order_id": {"type": "string"}, "revision": {"type": "integer"}}
    schema = {"properties": properties, "required": ["order_id"], "x-feed": GOOD}
    (repository / "orders.json").write_text(json.dumps(schema))
    code, output = run("--against-git", "HEAD")
    assert (code, "is JSON and was AVRO in HEAD" in output) == (1, True)


def test_personal_data_that_would_get_loose_is_told(repository: Path) -> None:
    (repository / "orders.avsc").write_text(avro({**PRICE, "pii": "salary"}, AT))
    git("commit", "-am", "personal")
    (repository / "orders.avsc").write_text(avro(PRICE, AT))
    code, output = run("--against-git", "HEAD")
    assert (code, 'the field "price" was personal in HEAD: now every warehouse gets it' in output) == (0, True)


def test_a_misspelt_key_is_not_told_twice(repository: Path) -> None:
    (repository / "orders.avsc").write_text(avro(PRICE, AT, key=["order_idd"]))
    found = json.loads(run("--against-git", "HEAD", "--json")[1])
    assert [each["path"] for each in found] == ["feed.key"]


def test_what_a_registry_answers_becomes_faults() -> None:
    why = "The field 'b' at path '/fields/1' in the new schema has no default value and is missing in the old schema"
    messages = [
        f"{{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'{why}', additionalInfo:'b'}}",
        "{oldSchemaVersion: 1}",
        "{oldSchema: '{}'}",
        "{validateFields: 'false', compatibility: 'BACKWARD'}",
    ]
    orders: Feed = feed.parse("orders.avsc", avro())
    (found,) = change.answered_faults(orders, messages, origin="the registry")
    assert (found.path, found.fix) == ("fields.1", "Give the field a default.")
    assert found.message == f"does not fit the registry: {why}."


def test_what_a_registry_answers_about_a_json_schema_becomes_faults_too() -> None:
    old, new = (json_schema.parse(json.dumps({"type": kind})) for kind in ("integer", "string"))
    messages = [reason.told(reader="new", writer="old") for reason in new.incompatibilities(old)]
    schema = {"type": "object", "properties": {"id": {"type": "string"}}, "x-feed": {"key": ["id"]}}
    (found,) = change.answered_faults(feed.parse("clicks.json", json.dumps(schema)), messages, origin="the registry")
    assert found.value == "TYPE_CHANGED"
    assert "errorType" not in found.message
