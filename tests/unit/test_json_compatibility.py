"""JSON Schema: a reader is refused when, and only when, something that the writer may write would be refused by it."""

import json
import random
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from json_schema_pairs import CAUTIOUS, DRAFTS, Pair, closed, each, open_
from json_schema_samples import SchemaMaker, refused
from jsonschema_specifications import REGISTRY

from headrace.registry.json_compatibility.comparison import Comparison
from headrace.registry.json_compatibility.draft import DRAFTS as EDITIONS
from headrace.registry.json_compatibility.reason import LENIENT, OURS, TEXTS
from headrace.registry.json_compatibility.rules import PARTS, RULES
from headrace.registry.json_schema import JsonSchema, parse
from headrace.registry.schema import InvalidSchema

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"
PAIRS = [pytest.param(name, pair, id=name) for name, pair in each()]
SINCE = {"4": 4, "6": 6, "7": 7, "2019-09": 2019, "2020-12": 2020}


def schema(document: Any) -> JsonSchema:
    return parse(json.dumps(document))


def reasons(writer: Any, reader: Any, **policy: Any) -> set[str]:
    return {f"{each.type} {each.path}" for each in schema(reader).incompatibilities(schema(writer), **policy)}


def second_opinion(writer: Any, reader: Any, draft: str) -> str:
    """Whether jsonschema-rs proves or refutes it; of recursions and much else it knows nothing."""
    options = {"draft": int(draft[2:4]) if len(draft) > 1 else int(draft), "validate_formats": SINCE[draft] < 2019}
    try:
        before, after = (jsonschema_rs.canonicalize(one, **options) for one in (writer, reader))
        return str(after.covers(before))
    except jsonschema_rs.canonical.CanonicalizationError:
        return "unknown"


@pytest.mark.parametrize(("name", "pair"), PAIRS)
def test_a_reader_is_refused_for_just_these_reasons(name: str, pair: Pair) -> None:
    assert {draft: reasons(*pair.dated(draft)) for draft in pair.drafts} == dict.fromkeys(pair.drafts, pair.reasons)


def test_there_are_pairs_enough_and_no_two_have_one_name() -> None:
    names = [name for name, _ in each()]
    assert len(names) >= 150
    assert len(names) == len(set(names))
    assert {draft for _, pair in each() for draft in pair.drafts} == set(DRAFTS)


@pytest.mark.parametrize(("name", "pair"), PAIRS)
def test_every_schema_reads_what_it_wrote_itself(name: str, pair: Pair) -> None:
    for document in pair.dated(pair.drafts[-1]):
        assert reasons(document, document) == set()


@pytest.mark.parametrize(("name", "pair"), [one for one in PAIRS if one.values[1].is_compatible])
def test_no_value_of_a_compatible_writer_is_refused(name: str, pair: Pair) -> None:
    for draft in pair.drafts:
        assert refused(*pair.dated(draft), count=60, chance=random.Random(name)) == []


@pytest.mark.parametrize(("name", "pair"), [one for one in PAIRS if not one.values[1].is_compatible])
def test_a_refused_reader_does_refuse_some_value(name: str, pair: Pair) -> None:
    found = refused(*pair.dated(pair.drafts[-1]), count=3_000, chance=random.Random(name))
    assert bool(found) != (name in CAUTIOUS)


@pytest.mark.parametrize("draft", DRAFTS)
@pytest.mark.parametrize("seed", range(8))
def test_no_value_is_refused_whatever_the_schemas(draft: str, seed: int) -> None:
    chance = random.Random(f"{draft} {seed}")
    maker = SchemaMaker(chance, url=DRAFTS[draft], since=SINCE[draft])
    for _ in range(15):
        writer = maker.document()
        reader = maker.changed(writer) if chance.random() < 0.8 else maker.document()
        try:
            found = schema(reader).incompatibilities(schema(writer))
        except InvalidSchema:
            continue
        assert reasons(writer, writer) == set()
        if not found:
            assert refused(writer, reader, count=60, chance=chance) == [], (writer, reader)
            assert second_opinion(writer, reader, draft) != "no"


@pytest.mark.parametrize("draft", DRAFTS)
def test_a_library_that_compares_schemas_refuses_nothing_that_we_let_pass(draft: str) -> None:
    for name, pair in each():
        if draft in pair.drafts and pair.is_compatible and "default" not in name:
            assert second_opinion(*pair.dated(draft), draft) != "no", name


class TestAcrossDrafts:
    def test_the_same_schema_in_a_later_draft_is_the_same_schema(self) -> None:
        tuple_ = {"type": "array", "items": [{"type": "string"}], "additionalItems": False}
        later = {"type": "array", "prefixItems": [{"type": "string"}], "items": False}
        assert reasons({"$schema": DRAFTS["7"], **tuple_}, {"$schema": DRAFTS["2020-12"], **later}) == set()
        assert reasons({"$schema": DRAFTS["2020-12"], **later}, {"$schema": DRAFTS["7"], **tuple_}) == set()

    def test_an_exclusive_bound_is_the_same_in_both_forms(self) -> None:
        first = {"$schema": DRAFTS["4"], "maximum": 3, "exclusiveMaximum": True}
        second = {"$schema": DRAFTS["6"], "exclusiveMaximum": 3}
        assert reasons(first, second) == reasons(second, first) == set()

    def test_one_point_zero_was_no_integer_in_draft_4(self) -> None:
        first, second = ({"$schema": DRAFTS[draft], "type": "integer"} for draft in ("4", "6"))
        assert reasons(first, second) == set()
        assert reasons(second, first) == {"TYPE_NARROWED #/"}

    def test_without_a_draft_it_must_fit_as_draft_7_and_as_the_latest(self) -> None:
        text = {"$ref": "#/definitions/t", "definitions": {"t": {"type": "string"}}}
        assert reasons(text, {**text, "maxLength": 2}) == {"MAX_LENGTH_ADDED #/maxLength"}
        assert reasons({"type": "string"}, {"type": "string", "format": "date"}) == {"FORMAT_ADDED #/format"}

    def test_without_a_draft_a_tuple_is_read_as_draft_7_only(self) -> None:
        assert reasons({"type": "array", "items": [{"type": "integer"}]}, {"type": "array", "items": [{}]}) == set()


class TestMessages:
    def test_a_message_is_what_confluents_registry_says(self) -> None:
        (found,) = schema(open_(a={"type": "string"})).incompatibilities(schema(open_(a={"type": "number"})))
        assert (found.type, found.path) == ("TYPE_CHANGED", "#/properties/a")
        assert found.told(reader="new", writer="old") == (
            '{errorType:"TYPE_CHANGED", description:"A type at path \'#/properties/a\' is different between the '
            "new schema and the old schema'}"
        )

    def test_reader_and_writer_are_called_by_the_direction(self) -> None:
        (found,) = schema(closed()).incompatibilities(schema(closed(b={})))
        assert found.told(reader="old", writer="new").endswith(
            "The old has a closed content model and is missing a property or item present at path '#/properties/b' in "
            "the new schema'}"
        )

    def test_a_name_that_looks_like_a_placeholder_is_not_filled_in(self) -> None:
        (found,) = schema(open_(**{"%s": {"type": "null"}})).incompatibilities(schema(open_(**{"%s": True})))
        assert "the new schema and the old schema" in found.told(reader="new", writer="old")

    def test_each_text_names_the_path_once_and_both_schemas(self) -> None:
        for text in TEXTS.values():
            assert (text.count("PATH"), text.count("%s")) == (1, 2)


class TestLeniency:
    def test_a_property_may_be_added_to_an_open_model(self) -> None:
        writer, reader = open_(a={"type": "string"}), open_(a={"type": "string"}, b={"type": "null"})
        assert reasons(writer, reader) == {"OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/b"}
        assert reasons(writer, reader, policy="LENIENT") == set()

    def test_a_model_may_be_closed(self) -> None:
        assert reasons(open_(), closed(), policy="LENIENT") == set()

    def test_a_type_may_not_change_either(self) -> None:
        writer, reader = open_(a={"type": "string"}), open_(a={"type": "null"})
        assert reasons(writer, reader, policy="LENIENT") == {"TYPE_CHANGED #/properties/a"}

    def test_what_one_alternative_lists_is_not_taken_for_new(self) -> None:
        writer, reader = ({"oneOf": [open_(a={"type": kind})]} for kind in ("string", "number"))
        assert reasons(writer, reader, policy="LENIENT") == {"COMBINED_TYPE_SUBSCHEMAS_CHANGED #/"}


class TestLargeSchemas:
    def test_a_union_of_many_that_contain_each_other_is_compared_soon(self) -> None:
        def trades(number: int, *, widest: int) -> dict[str, Any]:
            kinds = [f"t{index}" for index in range(number)]
            union = {"oneOf": [{"$ref": f"#/definitions/{kind}"} for kind in kinds]}
            made = {
                kind: {
                    "type": "object",
                    "properties": {"kind": {"const": kind}, "size": {"maximum": widest}, "of": union, "against": union},
                    "required": ["kind"],
                }
                for kind in kinds
            }
            return {**union, "definitions": made, "$schema": DRAFTS["7"]}

        assert reasons(trades(12, widest=1), trades(12, widest=1)) == set()
        assert reasons(trades(12, widest=1), trades(12, widest=2)) == set()
        assert reasons(trades(12, widest=2), trades(12, widest=1)) == {"COMBINED_TYPE_SUBSCHEMAS_CHANGED #/"}
        assert reasons(trades(8, widest=1), trades(9, widest=1)) == set()

    @pytest.mark.parametrize("word", ["allOf", "anyOf", "oneOf"])
    def test_definitions_that_are_shared_at_each_step_are_compared_soon(self, word: str) -> None:
        def steps(leaf: str) -> dict[str, Any]:
            twice = ({word: [{"$ref": f"#/definitions/d{step}"}] * 2} for step in range(60))
            made = {f"d{step}": each for step, each in enumerate(twice, start=1)}
            return {"$ref": "#/definitions/d60", "definitions": {"d0": {"type": leaf}, **made}, "$schema": DRAFTS["7"]}

        assert reasons(steps("integer"), steps("string"))

    def test_a_change_hidden_behind_a_circle_is_found(self) -> None:
        def circle(first: str, second: str) -> dict[str, Any]:
            def part(kind: str, to: str) -> dict[str, Any]:
                return open_(id={"type": kind}, ref={"oneOf": [{"$ref": f"#/definitions/{to}"}]})

            parts = {"t0": part(first, "t2"), "t1": part(second, "t2"), "t2": part("integer", "t0")}
            both = {"oneOf": [{"$ref": "#/definitions/t0"}, {"$ref": "#/definitions/t1"}]}
            return {**open_(root=both), "definitions": parts}

        assert reasons(circle("integer", "boolean"), circle("boolean", "number")) != set()

    def test_a_long_chain_of_references_is_followed(self) -> None:
        def chain(last: str) -> dict[str, Any]:
            steps = {f"d{index}": open_(next={"$ref": f"#/definitions/d{index + 1}"}) for index in range(500)}
            return {"$ref": "#/definitions/d0", "definitions": {**steps, "d500": {"type": last}}}

        assert reasons(chain("integer"), chain("number")) == set()
        (only,) = reasons(chain("number"), chain("integer"))
        assert only.startswith("TYPE_NARROWED #/properties/next/properties/next/")

    def test_what_takes_too_long_is_refused_and_says_so(self) -> None:
        writer, reader = (schema(open_(a=open_(b={"maximum": limit}))).readings[0] for limit in (1, 2))
        assert {each.type for each in Comparison(effort=2).reasons(reader, writer)} == {"TOO_COMPLEX"}
        assert Comparison().reasons(reader, writer) == ()


def _meta_schema_words(url: str) -> set[str]:
    """Every keyword that a draft's meta-schema, or one of its vocabularies, describes."""
    document = REGISTRY.contents(url.removesuffix("#") if "2020" in url or "2019" in url else url)
    parts = [REGISTRY.contents(re.sub(r"schema$", each["$ref"], url)) for each in document.get("allOf", [])]
    return {word for part in (document, *parts) for word in part.get("properties", {})}


ANNOTATIONS = {
    "title", "description", "default", "examples", "$comment", "readOnly", "writeOnly", "deprecated", "contentSchema",
}  # fmt: skip
PLACES = {
    "$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$defs", "definitions",
}  # fmt: skip
WITHDRAWN = {"$recursiveRef"}  # 2020-12 describes it still, but as no keyword of its own.
ONLY_UNTIL_7 = {"format", "contentEncoding", "contentMediaType"}
BROUGHT_TO_ANOTHER_FORM = {"additionalItems", "dependencies", "$recursiveRef", "minContains", "maxContains"}


class TestEveryKeyword:
    @pytest.mark.parametrize("draft", EDITIONS.values(), ids=EDITIONS.keys())
    def test_every_keyword_of_a_draft_has_a_rule_or_is_an_annotation(self, draft: Any) -> None:
        later = set() if "draft" in draft.name else ONLY_UNTIL_7
        assert _meta_schema_words(draft.url) - draft.keywords <= ANNOTATIONS | PLACES | WITHDRAWN | later
        ruled = {word for rule in RULES for word in rule.keywords} | PARTS | BROUGHT_TO_ANOTHER_FORM
        assert draft.keywords <= ruled

    def test_every_reason_of_a_rule_has_a_text_and_every_text_a_rule(self) -> None:
        given = {reason for rule in RULES for reason in rule.reasons}
        assert given | {"TOO_COMPLEX"} == set(TEXTS)
        assert set(TEXTS) >= OURS | LENIENT

    def test_the_documentation_has_the_table_of_rules(self) -> None:
        assert rules_table() in PAGE.read_text()


def rules_table() -> str:
    lines = ["| keyword of the reader | may be | reasons against it |", "|---|---|---|"]
    for rule in RULES:
        words = (
            ", ".join(f"`{word}`" for word in rule.keywords if word != "unknownRef") or "`$dynamicRef` to many places"
        )
        lines.append(f"| {words} | {rule.widened} | {', '.join(f'`{each}`' for each in rule.reasons)} |")
    return "\n".join(lines)
