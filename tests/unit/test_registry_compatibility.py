"""The seven levels: which direction each looks, how far back, and what it tells."""

import json

import pytest

from headrace.registry import avro
from headrace.registry.compatibility import Candidate, Level, Policy, reasons


def record(*fields: str, version: int | None = None, group: str | None = None) -> Candidate:
    """A record of string fields; one with a question mark has a default."""
    made = [
        {"name": name.rstrip("?"), "type": "string", **({"default": ""} if name.endswith("?") else {})}
        for name in fields
    ]
    text = json.dumps({"type": "record", "name": "R", "fields": made})
    metadata = {"properties": {"group": group}} if group else None
    return Candidate("AVRO", avro.parse(text), metadata, version)


BASE, MORE, LESS, BOTH = record("a", version=1), record("a", "b"), record(), record("a", "b?")


@pytest.mark.parametrize(
    ("level", "adds", "drops", "adds_optional"),
    [
        (Level.NONE, True, True, True),
        (Level.BACKWARD, False, True, True),
        (Level.FORWARD, True, False, True),
        (Level.FULL, False, False, True),
    ],
)
def test_each_level_looks_in_its_direction(level: Level, adds: bool, drops: bool, adds_optional: bool) -> None:
    found = [not reasons(Policy(level), new, old=[BASE]) for new in (MORE, LESS, BOTH)]
    assert found == [adds, drops, adds_optional]


@pytest.mark.parametrize("level", [Level.BACKWARD, Level.FORWARD, Level.FULL])
def test_only_a_transitive_level_looks_past_the_last_version(level: Level) -> None:
    middle = record("a?", version=2)
    first = Candidate("AVRO", avro.parse('{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'), None, 1)
    assert reasons(Policy(level), record("a?"), old=[first, middle]) == []
    assert reasons(Policy(Level(f"{level}_TRANSITIVE")), record("a?"), old=[first, middle])


def test_reasons_end_with_the_old_version_its_text_and_the_level() -> None:
    *found, version, schema, level = reasons(Policy(Level.BACKWARD), MORE, old=[BASE])
    assert len(found) == 1
    assert "in the new schema has no default value and is missing in the old schema" in found[0]
    assert version == "{oldSchemaVersion: 1}"
    assert schema == f"{{oldSchema: '{BASE.parsed.canonical}'}}"
    assert level == "{validateFields: 'false', compatibility: 'BACKWARD'}"


def test_forward_reasons_call_the_old_schema_the_reader() -> None:
    found = reasons(Policy(Level.FORWARD), LESS, old=[BASE])
    assert "in the old schema has no default value and is missing in the new schema" in found[0]


def test_a_full_level_shows_the_old_schema_only_when_the_new_one_cannot_read_it() -> None:
    assert not any("oldSchema" in each for each in reasons(Policy(Level.FULL), LESS, old=[BASE]))
    assert any("oldSchema" in each for each in reasons(Policy(Level.FULL), MORE, old=[BASE]))


def test_a_long_old_schema_is_cut() -> None:
    old = record(*(f"a_very_long_name_of_a_field_{number}" for number in range(400)), version=1)
    shown = next(each for each in reasons(Policy(), MORE, old=[old]) if each.startswith("{oldSchema:"))
    assert shown.startswith("{oldSchema: <truncated> '")
    assert shown.endswith("...'}")
    assert len(shown) < 10_500


def test_schemas_of_two_types_never_fit() -> None:
    other = Candidate("JSON", BASE.parsed)
    assert reasons(Policy(), other, old=[BASE])[0] == "Incompatible because of different schema type"
    assert reasons(Policy(Level.NONE), other, old=[BASE]) == []


def test_only_versions_of_the_same_group_count() -> None:
    old = [record("a", version=1, group="1"), record("b", version=2, group="2")]
    policy = Policy(Level.BACKWARD, group="group")
    assert reasons(policy, record("a", "x?", group="1"), old=old) == []
    assert reasons(policy, record("a", group="2"), old=old)
    assert reasons(policy, record("z"), old=old) == []


def test_nothing_old_fits_everything() -> None:
    assert reasons(Policy(Level.FULL_TRANSITIVE), MORE, old=[]) == []
