"""JSON Schema as the registry keeps it: its text, its drafts, what it refers to, and what is no schema at all."""

import json
from typing import Any

import pytest
from json_schema_pairs import DRAFTS

from headrace.registry.json_schema import JsonSchema, parse
from headrace.registry.schema import InvalidSchema, Parsed


def reason(text: str, dependencies: dict[str, str] | None = None) -> str:
    with pytest.raises(InvalidSchema) as caught:
        parse(text, dependencies or {})
    return str(caught.value)


def fits(reader: JsonSchema, writer: JsonSchema) -> bool:
    return not reader.incompatibilities(writer)


class TestText:
    def test_the_canonical_text_has_no_spaces_and_keeps_the_order(self) -> None:
        text = '{ "type": "object",\n "properties": {"b": {}, "a": {"enum": [null, true, "ä\\n"]}} }'
        assert parse(text).canonical == (
            '{"type":"object","properties":{"b":{},"a":{"enum":[null,true,"ä\\n"]}}}'
        )  # fmt: skip

    def test_the_normalized_text_has_its_members_sorted_at_every_depth(self) -> None:
        text = '{"type":"object","required":["b","a"],"properties":{"b":{"type":"null","title":"t"},"a":{}}}'
        assert parse(text).normalized == (
            '{"properties":{"a":{},"b":{"title":"t","type":"null"}},"required":["b","a"],"type":"object"}'
        )

    @pytest.mark.parametrize("number", ["1", "1.0", "0.50", "1E+2", "12345678901234567890.123456789", "1E-7"])
    def test_a_number_is_kept_as_it_was_written(self, number: str) -> None:
        assert parse(f'{{"minimum":{number}}}').canonical == f'{{"minimum":{number}}}'

    def test_a_boolean_is_a_schema(self) -> None:
        assert parse("true").canonical == "true"
        assert parse(" false ").normalized == "false"

    def test_it_is_what_the_registry_expects_of_every_language(self) -> None:
        parsed: Parsed = parse("{}")
        assert parsed.incompatibilities(parse("{}")) == ()

    def test_a_schema_of_another_language_never_fits(self) -> None:
        class Foreign:
            canonical = normalized = '"string"'

            def incompatibilities(self, writer: Parsed) -> tuple[()]:
                return ()

        (found,) = parse("{}").incompatibilities(Foreign())
        assert found.told(reader="new", writer="old") == "Incompatible because of different schema type"


class TestDrafts:
    @pytest.mark.parametrize(
        ("address", "name"),
        [
            ("http://json-schema.org/draft-04/schema#", "draft 4"),
            ("https://json-schema.org/draft-04/schema", "draft 4"),
            ("http://json-schema.org/schema#", "draft 4"),
            ("http://json-schema.org/draft-06/schema", "draft 6"),
            ("http://json-schema.org/draft-07/schema#", "draft 7"),
            ("https://json-schema.org/draft/2019-09/schema", "2019-09"),
            ("http://json-schema.org/draft/2020-12/schema#", "2020-12"),
            ("http://example.com/a-meta-schema-of-our-own", "draft 7"),
        ],
    )
    def test_the_draft_is_the_one_that_the_schema_names(self, address: str, name: str) -> None:
        assert parse(json.dumps({"$schema": address})).draft.name == name

    def test_without_a_name_it_is_draft_7(self) -> None:
        assert parse("{}").draft.name == "draft 7"


class TestReferences:
    def test_names_in_the_same_document(self) -> None:
        inline = parse('{"properties":{"a":{"type":"string"}}}')
        named = parse('{"properties":{"a":{"$ref":"#/definitions/t%20~1"}},"definitions":{"t /":{"type":"string"}}}')
        assert fits(inline, named)
        assert fits(named, inline)

    def test_another_document_by_its_name(self) -> None:
        other = {"address.json": '{"type":"object","properties":{"city":{"type":"string"}}}'}
        named = parse('{"properties":{"home":{"$ref":"address.json"}}}', other)
        city = parse('{"properties":{"home":{"$ref":"address.json#/properties/city"}}}', other)
        assert fits(parse('{"properties":{"home":{"type":"object"}}}'), named)
        assert fits(parse('{"properties":{"home":{"type":"string"}}}'), city)

    @pytest.mark.parametrize("reference", ["t.json", "./t.json"])
    @pytest.mark.parametrize("name", ["t.json", "./t.json"])
    @pytest.mark.parametrize("id_", ["", "http://example.com/schemas/root.json", "root.json"])
    def test_a_relative_name_is_found_whatever_the_id(self, id_: str, name: str, reference: str) -> None:
        document = {"$ref": reference} if not id_ else {"$id": id_, "allOf": [{"$ref": reference}]}
        assert fits(parse('{"type":"string"}'), parse(json.dumps(document), {name: '{"type":"string"}'}))

    def test_an_absolute_name(self) -> None:
        address = "http://example.com/t.json"
        assert fits(parse('{"type":"string"}'), parse(json.dumps({"$ref": address}), {address: '{"type":"string"}'}))

    def test_documents_that_refer_to_each_other(self) -> None:
        parts = {
            "tree.json": '{"type":"object","properties":{"leaf":{"$ref":"leaf.json"},"next":{"$ref":"tree.json"}}}',
            "leaf.json": '{"type":"integer"}',
        }
        wider = {**parts, "leaf.json": '{"type":"number"}'}
        first, second = (parse('{"$ref":"tree.json"}', each) for each in (parts, wider))
        assert fits(second, first)
        (found,) = first.incompatibilities(second)
        assert (found.type, found.path) == ("TYPE_NARROWED", "#/properties/leaf")

    def test_a_document_is_read_by_its_own_draft(self) -> None:
        bound = {"$schema": DRAFTS["4"], "type": "number", "maximum": 3, "exclusiveMaximum": True}
        first = parse(
            json.dumps({"$schema": DRAFTS["2020-12"], "$ref": "bound.json"}), {"bound.json": json.dumps(bound)}
        )
        second = parse(json.dumps({"$schema": DRAFTS["2020-12"], "type": "number", "exclusiveMaximum": 3}))
        assert fits(second, first)
        assert fits(first, second)

    def test_a_meta_schema_is_at_hand_without_a_network(self) -> None:
        meta = parse('{"$ref":"http://json-schema.org/draft-07/schema#"}')
        assert fits(meta, meta)
        assert fits(parse('{"type":["object","boolean"]}'), meta)


class TestRefusals:
    @pytest.mark.parametrize("text", ["", "{", "nothing", '{"a":1,}', "NaN", '{"minimum": Infinity}'])
    def test_what_is_no_json(self, text: str) -> None:
        assert reason(text).startswith("this is not JSON: ")

    @pytest.mark.parametrize("text", ["1", "[]", '"string"', "null"])
    def test_what_is_neither_an_object_nor_a_boolean(self, text: str) -> None:
        assert reason(text).startswith("#: a JSON Schema is an object or a boolean, not ")

    @pytest.mark.parametrize(
        ("schema", "where"),
        [
            ({"type": "strin"}, "#/type is not of JSON Schema draft 7"),
            ({"properties": {"a": {"minLength": -1}}}, "#/properties/a/minLength is not of JSON Schema draft 7"),
            ({"required": "a"}, "#/required is not of JSON Schema draft 7"),
            ({"$schema": DRAFTS["2020-12"], "items": [{}]}, "#/items is not of JSON Schema 2020-12"),
            ({"$schema": DRAFTS["6"], "exclusiveMaximum": True}, "#/exclusiveMaximum is not of JSON Schema draft 6"),
            ({"$schema": DRAFTS["4"], "not": True}, "#/not is not of JSON Schema draft 4"),
        ],
    )
    def test_what_is_not_of_its_draft(self, schema: dict[str, Any], where: str) -> None:
        assert reason(json.dumps(schema)).startswith(where)

    @pytest.mark.parametrize(
        "reference",
        [
            "#/definitions/missing",
            "other.json",
            "http://example.com/other.json",
            "#anchor",
            "#/allOf/x",
            "other#/$defs/a",
        ],
    )
    def test_a_reference_to_nowhere_is_named(self, reference: str) -> None:
        schema = {"properties": {"a": {"$ref": reference}}, "allOf": [{}]}
        assert reason(json.dumps(schema)).startswith(f'"$ref": {reference!r} cannot be resolved')

    def test_a_reference_to_what_is_no_schema(self) -> None:
        assert reason('{"title":"t","allOf":[{"$ref":"#/title"}]}').startswith("#/title: a JSON Schema is an object")
        assert reason('{"x":{"type":3},"allOf":[{"$ref":"#/x"}]}').startswith("#/x/type is not of JSON Schema draft 7")

    def test_a_reference_that_leads_back_to_itself(self) -> None:
        text = '{"$ref":"#/definitions/a","definitions":{"a":{"anyOf":[{"$ref":"#/definitions/a"},{"type":"null"}]}}}'
        assert reason(text) == "\"$ref\": '#/definitions/a' leads back to itself about the very same value, without end"

    def test_a_broken_pattern(self) -> None:
        assert reason('{"pattern":"("}') == '#/pattern is not of JSON Schema draft 7: "(" is not a "regex"'
        later = {"$schema": DRAFTS["2020-12"], "patternProperties": {"[": {}}}
        assert reason(json.dumps(later)) == "'[' is no regular expression; mend the pattern"

    def test_a_reference_that_is_broken_itself_is_named(self) -> None:
        assert reason('{"$ref":"a.json"}', {"a.json": "{"}).startswith("reference 'a.json': this is not JSON: ")
        assert reason('{"$ref":"a.json"}', {"a.json": '{"type":3}'}).startswith("a.json/type is not of JSON Schema")

    def test_what_is_nested_too_deeply(self) -> None:
        assert "nested too deeply" in reason('{"items":' * 5_000 + "{}" + "}" * 5_000)
        assert "nested too deeply" in reason("[" * 100_000)
