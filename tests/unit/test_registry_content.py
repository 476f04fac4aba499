"""What makes two schemas one: metadata, rules and digests."""

import hashlib
from dataclasses import replace
from uuid import UUID

import pytest

from headrace.registry.digest import digest_of, guid_of
from headrace.registry.errors import RegistryFault
from headrace.registry.metadata import merge_metadata, sorted_metadata, version_in, with_version, without_version
from headrace.registry.rules import RuleSet, check_rules, has_type, merge_rules, sorted_rules
from headrace.registry.schema import Reference, SchemaText

PLAIN = SchemaText("AVRO", '"string"')


def md5(content: bytes) -> UUID:
    return UUID(bytes=hashlib.md5(content).digest())


@pytest.mark.parametrize(
    ("schema", "content"),
    [
        (PLAIN, b'"string"'),
        (replace(PLAIN, references=(Reference("n", "s", 258),)), b'"string"ns\x00\x00\x01\x02'),
        (replace(PLAIN, metadata={}), b'"string"\x01'),
        (
            replace(
                PLAIN, metadata={"properties": {"b": "2", "a": "1"}, "tags": {"t": ["y", "x"]}, "sensitive": ["s"]}
            ),
            b'"string"\x01txya1b2s',
        ),
        (
            replace(PLAIN, rule_set={"domainRules": [{"name": "r", "type": "CEL", "params": {"k": "v"}, "expr": "e"}]}),
            b'"string"\x01rTRANSFORMWRITEREADCELkve',
        ),
        (
            replace(PLAIN, rule_set={"domainRules": [{"name": "r", "type": "T", "disabled": True}]}),
            b'"string"\x01rTRANSFORMWRITEREADT\x01',
        ),
    ],
)
def test_a_guid_is_the_md5_that_confluent_computes(schema: SchemaText, content: bytes) -> None:
    assert guid_of(schema) == md5(content)


def test_a_guid_does_not_know_the_type_but_a_digest_does() -> None:
    other = replace(PLAIN, type="JSON")
    assert guid_of(other) == guid_of(PLAIN)
    assert digest_of(other) != digest_of(PLAIN)


def test_a_digest_keeps_apart_what_a_guid_runs_together() -> None:
    one, other = (replace(PLAIN, references=(Reference(*names, 1),)) for names in (("ab", "c"), ("a", "bc")))
    assert guid_of(one) == guid_of(other)
    assert digest_of(one) != digest_of(other)


def test_a_digest_does_not_depend_on_order_and_tells_nothing_from_empty() -> None:
    one, other = ({"properties": {"a": "1", "b": "2"}}, {"properties": {"b": "2", "a": "1"}})
    assert digest_of(replace(PLAIN, metadata=one)) == digest_of(replace(PLAIN, metadata=other))
    assert digest_of(replace(PLAIN, metadata={})) != digest_of(PLAIN)


def test_metadata_are_sorted_and_without_what_is_empty() -> None:
    sent = {"tags": {"b": ["y", "x", "x"]}, "properties": {}, "sensitive": None, "unknown": 1}
    assert sorted_metadata(sent) == {"tags": {"b": ["x", "y"]}}


def test_newer_metadata_lie_over_older_ones() -> None:
    older, newer = (
        {"properties": {"a": "1", "b": "1"}, "sensitive": ["x"]},
        {"properties": {"b": "2"}, "sensitive": ["y"]},
    )
    assert merge_metadata(older, newer) == {"properties": {"a": "1", "b": "2"}, "sensitive": ["x", "y"]}
    assert merge_metadata(None, newer) is newer
    assert merge_metadata(older, None) is older
    assert merge_metadata(None, None) is None


def test_a_version_can_stand_in_the_metadata() -> None:
    marked = with_version({"properties": {"a": "1"}}, 3)
    assert marked == {"properties": {"a": "1", "confluent:version": "3"}}
    assert version_in(marked) == 3
    assert without_version(marked) == {"properties": {"a": "1"}}
    for none in ("x", "1_0", "9" * 5000, str(2**31)):
        assert version_in({"properties": {"confluent:version": none}}) is None
    assert version_in(None) is without_version(None) is None


def test_a_newer_rule_takes_the_place_of_the_older_one_of_its_name() -> None:
    older: RuleSet = {"domainRules": [{"name": "a", "type": "1"}, {"name": "b", "type": "1"}], "enableAt": "SERVER"}
    newer: RuleSet = {"domainRules": [{"name": "a", "type": "2"}]}
    merged = merge_rules(older, newer)
    assert merged is not None
    assert [(rule["name"], rule["type"]) for rule in merged["domainRules"]] == [("b", "1"), ("a", "2")]
    assert merged["enableAt"] == "SERVER"


def test_a_rule_is_kept_with_its_defaults_written_out() -> None:
    rule = {"name": "r", "type": "CEL", "tags": ["b", "a"], "doc": None, "expr": ""}
    kept = {"name": "r", "kind": "TRANSFORM", "mode": "WRITEREAD", "type": "CEL", "tags": ["a", "b"], "disabled": False}
    assert sorted_rules({"domainRules": [rule], "migrationRules": []}) == {"domainRules": [kept]}


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ({"domainRules": [{"type": "t"}]}, "Missing rule name"),
        ({"domainRules": [{"name": "", "type": "t"}]}, "Empty rule name"),
        ({"domainRules": [{"name": "x" * 257, "type": "t"}]}, "Rule name too long"),
        ({"domainRules": [{"name": "1a", "type": "t"}]}, "Illegal initial character in rule name: 1a"),
        ({"domainRules": [{"name": "a b", "type": "t"}]}, "Illegal character in rule name: a b"),
        ({"domainRules": [{"name": "a"}]}, "Missing rule type"),
        (
            {"domainRules": [{"name": "a", "type": "t", "mode": "READ", "onFailure": "A,B"}]},
            "Multiple actions only valid with WRITEREAD and UPDOWN",
        ),
        (
            {"encodingRules": [{"name": "a", "type": "t", "mode": "UPDOWN"}]},
            "Encoding rules can only be WRITE, READ, WRITEREAD",
        ),
        (
            {"domainRules": [{"name": "a", "type": "t"}], "encodingRules": [{"name": "a", "type": "t"}]},
            "Found rule with duplicate name 'a'",
        ),
    ],
)
def test_a_rule_that_no_client_could_run_is_refused(rules: RuleSet, why: str) -> None:
    with pytest.raises(RegistryFault) as caught:
        check_rules(rules)
    assert (caught.value.code, caught.value.message) == (42210, why)


def test_good_rules_pass() -> None:
    check_rules(None)
    check_rules({"migrationRules": [{"name": "a-1_b", "type": "t", "mode": "UPDOWN", "onFailure": "A,B"}]})
    assert has_type({"migrationRules": [{"type": "t"}]}, "t")
    assert not has_type(None, "t")
