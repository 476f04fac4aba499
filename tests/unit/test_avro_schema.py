"""Avro schemas: the texts they are told in, what they refer to, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from avro_pairs import pairs
from hypothesis import HealthCheck, given, settings

from headrace.registry import avro
from headrace.registry.schema import InvalidSchema

EXAMPLES = sorted(Path("schemas").glob("*.avsc"))


def record(*fields: Any, name: str = "R", **attributes: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **attributes}


def field(name: str, type_: Any, **attributes: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, **attributes}


def of_field(**attributes: Any) -> str:
    return json.dumps(record({"name": "f", **attributes}))


# Every expected text here and below was compared with what Avro's Java library and Confluent's registry write.
@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        pytest.param('{"type": "string"}', '"string"', id="an object around a primitive is dropped"),
        pytest.param('{"type": "string", "doc": "x", "name": "y"}', '"string"', id="with what says nothing of it"),
        pytest.param(
            '{"pii": "email", "type": "string"}', '{"type":"string","pii":"email"}', id="an attribute of ours is kept"
        ),
        pytest.param(
            '{"fields": [{"type": {"type": "int"}, "name": "a"}], "name": "R", "feed": {"key": ["a"]},'
            ' "type": "record"}',
            '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}],"feed":{"key":["a"]}}',
            id="attributes come in one order",
        ),
        pytest.param(
            '{"type": "record", "name": "shop.R", "fields": [{"name": "e", "type": {"type": "enum", "name": "E",'
            ' "namespace": "shop", "symbols": ["A"]}}, {"name": "f", "type": "shop.E"}]}',
            '{"type":"record","name":"R","namespace":"shop","fields":[{"name":"e","type":{"type":"enum","name":"E",'
            '"symbols":["A"]}},{"name":"f","type":"E"}]}',
            id="a namespace is written where it changes",
        ),
        pytest.param(
            '{"type": "record", "name": "shop.R", "fields": [{"name": "e", "type": {"type": "record", "namespace": "",'
            ' "name": "E", "fields": []}}, {"name": "f", "type": "E"}]}',
            '{"type":"record","name":"R","namespace":"shop","fields":[{"name":"e","type":{"type":"record","name":"E",'
            '"namespace":"","fields":[]}},{"name":"f","type":"E"}]}',
            id="also where it ends",
        ),
        pytest.param(
            '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "E"}, {"name": "b", "type":'
            ' {"type": "fixed", "name": "E", "size": 2}}]}',
            '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"fixed","name":"E","size":2}},'
            '{"name":"b","type":"E"}]}',
            id="a type is defined where it is first used",
        ),
        pytest.param(
            '[{"type": "fixed", "name": "F", "size": 2}, {"type": "record", "name": "R", "fields": [{"name": "f",'
            ' "type": {"type": "fixed", "name": "F", "size": 2, "doc": "again"}}]}]',
            '[{"type":"fixed","name":"F","size":2},{"type":"record","name":"R","fields":[{"name":"f","type":"F"}]}]',
            id="a type that is written out twice is told once",
        ),
        pytest.param(
            '{"type": "record", "name": "a.R", "aliases": ["Old", "a.Older", "b.Oldest"], "doc": "d", "fields": ['
            '{"name": "f", "type": "int", "order": "IGNORE", "aliases": ["g", "g"], "default": 1, "doc": "e",'
            ' "x": null}, {"name": "h", "type": "int", "order": "ascending"}]}',
            '{"type":"record","name":"R","namespace":"a","doc":"d","fields":[{"name":"f","type":"int","doc":"e",'
            '"default":1,"order":"ignore","aliases":["g"],"x":null},{"name":"h","type":"int"}],'
            '"aliases":["Old","Older","b.Oldest"]}',
            id="docs, aliases, orders and defaults",
        ),
        pytest.param(
            '{"type": "enum", "name": "E", "default": "A", "symbols": ["A"], "z": 1, "aliases": ["D"]}',
            '{"type":"enum","name":"E","symbols":["A"],"default":"A","z":1,"aliases":["D"]}',
            id="an enum's default",
        ),
        pytest.param(
            '{"type": "array", "default": [], "items": {"type": "map", "values": ["null", "int"], "b": 1, "a": 2}}',
            '{"type":"array","items":{"type":"map","values":["null","int"],"b":1,"a":2},"default":[]}',
            id="attributes of our own stay in their order",
        ),
        pytest.param('{"name":"E","type":"error","fields":[]}', '{"type":"error","name":"E","fields":[]}', id="error"),
        pytest.param('// why\n{"type": /* a */ "string"}', '"string"', id="comments are allowed, and dropped"),
        pytest.param(
            '{"type":"record","name":"L","fields":[{"name":"next","type":["null","L"]}]}',
            '{"type":"record","name":"L","fields":[{"name":"next","type":["null","L"]}]}',
            id="a record may hold itself",
        ),
    ],
)  # fmt: skip
def test_a_schema_has_one_canonical_text(text: str, canonical: str) -> None:
    assert avro.parse(text).canonical == canonical
    assert avro.parse(canonical).canonical == canonical


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("3", "3"), ("3.0", "3.0"), ("1e3", "1000.0"), ("12.30", "12.3"), ("1e7", "1.0E7"), ("9999999.5", "9999999.5"),
        ("0.001", "0.001"), ("0.00012", "1.2E-4"), ("1e21", "1.0E21"), ("-0.0", "-0.0"),
        ("123456789.125", "1.23456789125E8"),
        ('"NaN"', '"NaN"'), ('"-Infinity"', '"-Infinity"'), ('"1.5"', "1.5"), ("4000000000", "4000000000"),
    ],
)  # fmt: skip
def test_a_number_is_written_as_java_writes_it(value: str, told: str) -> None:
    text = '{"type":"record","name":"R","fields":[{"name":"f","type":"double","default":%s}]}'
    assert avro.parse(text % value).canonical == text % told


@pytest.mark.parametrize(
    ("doc", "told"),
    [("é€😀/", "é€😀/"), ('a"b\\c', 'a\\"b\\\\c'), ("\t\n\r\b\f\x1f\x7f", "\\t\\n\\r\\b\\f\\u001F\x7f")],
)
def test_text_is_escaped_as_java_escapes_it(doc: str, told: str) -> None:
    text = json.dumps(record(doc=doc))
    assert avro.parse(text).canonical == f'{{"type":"record","name":"R","doc":"{told}","fields":[]}}'


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_keeps_what_its_feed_declares(path: Path) -> None:
    text = path.read_text()
    canonical = avro.parse(text).canonical
    assert json.loads(canonical)["feed"] == json.loads(text)["feed"]
    assert avro.parse(canonical).canonical == canonical


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(pairs())
def test_a_canonical_text_is_its_own(pair: tuple[Any, Any, list[Any]]) -> None:
    parsed = avro.parse(json.dumps(pair[0]))
    assert avro.parse(parsed.canonical) == parsed
    assert avro.parse(parsed.normalized).normalized == parsed.normalized


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        pytest.param(
            '{"type":"bytes","z":1,"a":{"y":1,"x":[{"d":0,"c":1}]},"scale":2,"precision":10,"logicalType":"decimal"}',
            '{"type":"bytes","logicalType":"decimal","precision":10,"scale":2,"a":{"x":[{"c":1,"d":0}],"y":1},"z":1}',
            id="attributes are sorted after the logical type",
        ),
        pytest.param(
            '{"type":"bytes","scale":0,"a":1,"precision":4,"logicalType":"decimal"}',
            '{"type":"bytes","logicalType":"decimal","precision":4,"a":1,"scale":0}',
            id="a scale of zero says nothing",
        ),
        pytest.param(
            '{"type":"int","logicalType":"mine","a":1}', '{"type":"int","a":1,"logicalType":"mine"}',
            id="an unknown logical type is an attribute",
        ),
        pytest.param(
            '{"type":"record","name":"a.R","doc":"","aliases":["Z","b.Y","X"],"fields":['
            '{"name":"f","type":"float","doc":"","aliases":["z","y"],"default":1,"b":1,"a":2},'
            '{"name":"g","type":{"type":"map","values":"double"},"default":{"l":2,"k":1}}]}',
            '{"type":"record","name":"R","namespace":"a","fields":['
            '{"name":"f","type":"float","doc":"","default":1.0,"aliases":["y","z"],"a":2,"b":1},'
            '{"name":"g","type":{"type":"map","values":"double"},"default":{"k":1.0,"l":2.0}}],'
            '"aliases":["X","Z","b.Y"]}',
            id="docs, aliases and defaults",
        ),
        pytest.param(
            '{"type":"record","name":"R","fields":[{"name":"f","type":"float","default":0.123456789}]}',
            '{"type":"record","name":"R","fields":[{"name":"f","type":"float","default":0.12345679}]}',
            id="a float has the digits of a float",
        ),
    ],
)  # fmt: skip
def test_a_normalized_text_sorts_what_may_be_sorted(text: str, normalized: str) -> None:
    assert avro.parse(text).normalized == normalized


CURRENCY = '{"type":"enum","name":"shop.Currency","symbols":["EUR"]}'
MONEY = '{"type":"record","name":"shop.Money","fields":[{"name":"in","type":"Currency"}]}'
ORDER = '{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"paid","type":"shop.Money"}]}'


def test_what_a_schema_refers_to_stands_by_name_and_can_be_written_out() -> None:
    parsed = avro.parse(ORDER, {"shop.Currency": CURRENCY, "shop.Money": MONEY})
    assert parsed.canonical == (
        '{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"paid","type":"Money"}]}'
    )
    assert parsed.normalized == parsed.canonical
    assert parsed.resolved == (
        '{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"paid","type":{"type":"record",'
        '"name":"Money","fields":[{"name":"in","type":{"type":"enum","name":"Currency","symbols":["EUR"]}}]}}]}'
    )


def test_what_lies_inside_a_reference_is_written_out_where_it_is_used_by_itself() -> None:
    money = '{"type":"record","name":"Money","fields":[{"name":"in","type":{"type":"fixed","name":"Code","size":3}}]}'
    parsed = avro.parse('{"type":"record","name":"R","fields":[{"name":"c","type":"Code"}]}', {"Money": money})
    assert parsed.canonical == (
        '{"type":"record","name":"R","fields":[{"name":"c","type":{"type":"fixed","name":"Code","size":3}}]}'
    )


def test_a_schema_that_refers_to_another_is_judged_with_it() -> None:
    wider = CURRENCY.replace('["EUR"]', '["EUR","USD"]')
    old = avro.parse(ORDER, {"shop.Currency": CURRENCY, "shop.Money": MONEY})
    new = avro.parse(ORDER, {"shop.Currency": wider, "shop.Money": MONEY})
    assert not new.incompatibilities(old)
    [found] = old.incompatibilities(new)
    assert found.path == "/fields/0/type/fields/0/type/symbols"


def test_a_reference_that_is_wrong_is_named() -> None:
    with pytest.raises(InvalidSchema, match=r'reference "shop\.Money": /fields/0/type: "Currency" is no type here'):
        avro.parse(ORDER, {"shop.Money": MONEY})


def test_a_record_tells_its_full_name() -> None:
    assert avro.parse(ORDER, {"a": CURRENCY, "b": MONEY}).name == "shop.Order"
    assert avro.parse('"string"').name is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON: Expecting value: line 1 column 1"),
        ("string", "not JSON"),
        ('"string" /* never closed', "not JSON: Extra data"),
        ('"' + '\\"' * 1_000_000, "not JSON: Unterminated string"),
        ('"string" "again"', "not JSON: Extra data"),
        ('{"type": "int", "x": NaN}', "not JSON: NaN is no number of JSON"),
        ("1", "/: 1 is no type"),
        ("{}", '/: it has no "type"'),
        ('{"type": {"type": "string"}}', '/: its "type" is no name'),
        (of_field(type="strng"), '/fields/0/type: "strng" is no type here. Did you mean "string"?'),
        (of_field(type=["null", {"type": "array", "items": "X"}]), '/fields/0/type/1/items: "X" is no type here'),
        ('{"type": "record", "fields": []}', '/: the record has no "name"'),
        ('{"type": "record", "name": "R"}', '/: the record R has no list of "fields"'),
        ('{"type": "record", "name": "R", "fields": ["f"]}', '/fields/0: a field is an object with a "name"'),
        (of_field(), '/fields/0: the field "f" has no "type"'),
        (json.dumps(record(field("a-b", "int"))), '/fields/0: "a-b" is no name: letters, digits and _'),
        (json.dumps(record(field("1a", "int"))), '/fields/0: "1a" is no name'),
        (json.dumps(record(field("é", "int"))), '/fields/0: "é" is no name'),
        (json.dumps(record(name="a-b")), '/name: "a-b" is no name'),
        (json.dumps(record(namespace="a-b.c")), '/namespace: "a-b" is no name'),
        (json.dumps(record(namespace="a..c")), '/namespace: "" is no name'),
        (json.dumps(record(aliases=["a-b"])), '/aliases: "a-b" is no name'),
        (json.dumps(record(aliases="a")), '/aliases: "a" is no list of names'),
        (json.dumps(record(name="int")), '/name: "int" is the name of a primitive type'),
        (json.dumps(record(field("a", "int"), field("a", "int"))), '/fields/1: the record R has the field "a" twice'),
        (
            json.dumps(record(field("a", record(field("b", "int"))))),
            '/fields/0/type/name: "R" is defined inside itself',
        ),
        (
            json.dumps([record(field("a", "int"), name="A"), {"type": "map", "values": record(name="A")}]),
            '/1/values/name: "A" is defined twice, and differently',
        ),
        ('{"type": "enum", "name": "E"}', '/: the enum E has no list of "symbols"'),
        ('{"type": "enum", "name": "E", "symbols": ["A", "A"]}', '/symbols: the enum E has "A" twice'),
        ('{"type": "enum", "name": "E", "symbols": ["A B"]}', '/symbols/0: "A B" is no name'),
        ('{"type": "enum", "name": "E", "symbols": [1]}', "/symbols/0: 1 is no name"),
        ('{"type": "enum", "name": "E", "symbols": ["A"], "default": "B"}', '/default: "B" is no symbol of the enum E'),
        ('{"type": "fixed", "name": "F"}', "/size: null is no size of the fixed F"),
        ('{"type": "fixed", "name": "F", "size": -1}', "/size: -1 is no size"),
        ('{"type": "fixed", "name": "F", "size": true}', "/size: true is no size"),
        ('{"type": "array"}', '/: the array has no "items"'),
        ('{"type": "map"}', '/: the map has no "values"'),
        ("[]", "/: the union is empty"),
        ('["null", ["int"]]', "/1: a union stands right inside a union"),
        ('["int", "string", {"type": "int"}]', '/2: the union has "int" twice'),
        ('[{"type": "map", "values": "int"}, {"type": "map", "values": "long"}]', '/1: the union has "map" twice'),
        (of_field(type="int", order="up"), '/fields/0/order: "up" is no order'),
        (of_field(type="double", default="much"), '/fields/0/default: "much" is no double'),
        ("[" * 100_000, "its types nest too deeply"),
        ('{"type": "array", "items":' * 2000 + '"int"' + "}" * 2000, "its types nest too deeply"),
        (json.dumps(record(field("r", "R", default={}))), "its types nest too deeply"),
        (json.dumps(record(name="\ud800")), "half a surrogate pair"),
    ],
)
def test_what_is_no_schema_is_refused_with_its_place(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchema) as refused:
        avro.parse(text)
    assert reason in str(refused.value)


POINT = record(field("x", "int"), field("y", "int", default=0), name="P")


@pytest.mark.parametrize(
    ("type_", "value", "why"),
    [
        ("null", None, None),
        ("null", "null", '"null" is no null'),
        ("string", None, "null is no string"),
        ("boolean", True, None),
        ("boolean", 1, "1 is no boolean"),
        ("int", True, "true is no int"),
        ("int", 2**31, "2147483648 is no int"),
        ("int", 1.0, "1.0 is no int"),
        ("long", 2**63 - 1, None),
        ("long", 2**63, "9223372036854775808 is no long"),
        ("float", 1, None),
        ("double", "NaN", None),
        ("bytes", "ÿ", None),
        ("bytes", "€", '"€" is no bytes'),
        ({"type": "fixed", "name": "F", "size": 2}, "ab", None),
        ({"type": "fixed", "name": "F", "size": 2}, "a", '"a" has 1 bytes and the fixed 2'),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "A", None),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "B", '"B" is no symbol of the enum E'),
        ({"type": "array", "items": "int"}, [1, "2"], '"2" is no int'),
        ({"type": "array", "items": "int"}, {}, "{} is no array"),
        ({"type": "map", "values": "int"}, {"k": 1}, None),
        ({"type": "map", "values": "int"}, {"k": None}, "null is no int"),
        (["null", "string"], "null", None),
        (["null", "string"], 1, "1 fits no branch of the union"),
        (POINT, {"x": 1}, None),
        (POINT, {"y": 1}, 'it lacks the field "x" of the record P'),
        (POINT, {"x": 1, "z": 1}, 'the record P has no field "z"'),
        (POINT, {"x": "1"}, 'x: "1" is no int'),
        (POINT, [], "[] is no record"),
    ],
)
def test_a_default_has_to_be_a_value_of_its_field(type_: Any, value: Any, why: str | None) -> None:
    text = of_field(type=type_, default=value)
    if why is None:
        assert avro.parse(text)
        return
    with pytest.raises(InvalidSchema) as refused:
        avro.parse(text)
    assert str(refused.value) == f'/fields/0/default: the default of "f" does not fit its type: {why}.'
    assert avro.parse_known(text), "what is registered already is taken as it is"


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        (json.dumps(record(namespace="a-b.c")), True),
        (json.dumps(record(field("naïve", "int"), name="Café")), True),
        (json.dumps(record(field("a-b", "int"))), False),
        (json.dumps(record(name="a-b")), False),
    ],
)
def test_what_is_registered_already_may_be_named_more_freely(text: str, taken: bool) -> None:
    with pytest.raises(InvalidSchema):
        avro.parse(text)
    if taken:
        assert avro.parse_known(text)
        return
    with pytest.raises(InvalidSchema):
        avro.parse_known(text)
