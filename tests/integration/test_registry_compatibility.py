"""Compatibility: seven levels, against one version and against all, with and without reasons."""

import pytest
from registry_desk import ABSENT, Desk, Step, avro, optional

V = "/subjects/s/versions"
C_ALL, C_ONE, C_LAST = f"POST /compatibility{V}", f"POST /compatibility{V}/1", f"POST /compatibility{V}/latest"
YES, NO = {"is_compatible": True, "messages": ABSENT}, {"is_compatible": False}
A, AB, B = avro("R", "a"), avro("R", "a", optional("b")), avro("R", "b")
MISSING_B = """{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'b' at path '/fields/0' in the \
new schema has no default value and is missing in the old schema', additionalInfo:'b'}"""
MISSING_A = """{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'a' at path '/fields/0' in the \
old schema has no default value and is missing in the new schema', additionalInfo:'a'}"""
OLD = ["{oldSchemaVersion: 1}", f"{{oldSchema: '{A['schema']}'}}"]


def end(level: str) -> str:
    return f"{{validateFields: 'false', compatibility: '{level}'}}"


def level(name: str) -> Step:
    return ("PUT /config/s", {"compatibility": name}, 200, ...)


CASES: dict[str, list[Step]] = {
    "anything fits a subject that is not there": [
        (C_ALL, A, 200, YES),
        (C_LAST, A, 200, YES),
        (C_ONE, A, 404, (40402, "Version 1 not found.")),
    ],
    "a version that is none": [
        (f"POST {V}", A, 200, ...),
        (f"POST /compatibility{V}/100", A, 404, (40402, "Version 100 not found.")),
        (f"POST /compatibility{V}/earliest", A, 422, 42202),
        (f"POST /compatibility{V}/0", A, 422, 42202),
    ],
    "reasons only for who asks": [
        (f"POST {V}", A, 200, ...),
        (C_LAST, B, 200, {"is_compatible": False, "messages": ABSENT}),
        (f"{C_LAST}?verbose=true", AB, 200, {"is_compatible": True, "messages": []}),
        (f"{C_LAST}?verbose=true", B, 200, {"is_compatible": False, "messages": [MISSING_B, *OLD, end("BACKWARD")]}),
    ],
    "backward: the new one reads the old": [
        (f"POST {V}", A, 200, ...),
        level("BACKWARD"),
        (C_LAST, avro("R"), 200, YES),
        (C_LAST, AB, 200, YES),
        (C_LAST, avro("R", "a", "b"), 200, NO),
    ],
    "forward: the old one reads the new": [
        (f"POST {V}", A, 200, ...),
        level("FORWARD"),
        (C_LAST, avro("R", "a", "b"), 200, YES),
        (C_LAST, avro("R"), 200, NO),
        (f"{C_LAST}?verbose=true", B, 200, {"messages": [MISSING_A, *OLD, end("FORWARD")]}),
    ],
    "full: both read each other": [
        (f"POST {V}", A, 200, ...),
        level("FULL"),
        (C_LAST, AB, 200, YES),
        (C_LAST, avro("R", "a", "b"), 200, NO),
        (C_LAST, avro("R"), 200, NO),
        (f"{C_LAST}?verbose=true", B, 200, {"messages": [MISSING_A, MISSING_B, *OLD, end("FULL")]}),
        (f"{C_LAST}?verbose=true", avro("R"), 200, {"messages": [MISSING_A, end("FULL")]}),
    ],
    "none: anything": [
        (f"POST {V}", A, 200, ...),
        level("NONE"),
        (C_LAST, B, 200, YES),
        (C_ALL, {"schema": '"int"'}, 200, YES),
        (C_ALL, {"schema": '{"type":"object"}', "schemaType": "JSON"}, 200, YES),
    ],
    "backward looks at the last version, transitively at all": [
        (f"POST {V}", A, 200, ...),
        (f"POST {V}", avro("R"), 200, ...),
        level("BACKWARD"),
        (C_ALL, avro("R", {"name": "a", "type": "int", "default": 0}), 200, YES),
        level("BACKWARD_TRANSITIVE"),
        (C_ALL, avro("R", {"name": "a", "type": "int", "default": 0}), 200, NO),
        (C_LAST, avro("R", {"name": "a", "type": "int", "default": 0}), 200, YES),
        (C_ONE, avro("R", {"name": "a", "type": "int", "default": 0}), 200, NO),
        (f"POST {V}", avro("R", {"name": "a", "type": "int", "default": 0}), 409, 40901),
    ],
    "forward looks at the last version, transitively at all": [
        (f"POST {V}", avro("R", "a", "b"), 200, ...),
        (f"POST {V}", A, 200, ...),
        level("FORWARD"),
        (C_ALL, avro("R", "a", "c"), 200, YES),
        level("FORWARD_TRANSITIVE"),
        (C_ALL, avro("R", "a", "c"), 200, NO),
        (f"POST {V}", avro("R", "a", "c"), 409, 40901),
    ],
    "full looks at the last version, transitively at all": [
        (f"POST {V}", avro("R", "a", optional("b")), 200, ...),
        (f"POST {V}", A, 200, ...),
        level("FULL"),
        (C_ALL, avro("R", "a", {"name": "b", "type": "int", "default": 0}), 200, YES),
        level("FULL_TRANSITIVE"),
        (C_ALL, avro("R", "a", {"name": "b", "type": "int", "default": 0}), 200, NO),
    ],
    "one version is compared with whatever the level's reach": [
        (f"POST {V}", A, 200, ...),
        (f"POST {V}", AB, 200, ...),
        (f"POST /compatibility{V}/1", avro("R", optional("b")), 200, YES),
        (f"POST /compatibility{V}/2", avro("R", "c"), 200, NO),
    ],
    "deleted versions are not compared with": [
        (f"POST {V}", A, 200, ...),
        (f"POST {V}", AB, 200, ...),
        (f"DELETE {V}/1", None, 200, 1),
        (C_ONE, A, 404, (40402, "Version 1 not found.")),
        ("DELETE /subjects/s", None, 200, ...),
        (C_ALL, B, 200, YES),
        (C_LAST, B, 200, YES),
    ],
    "another type of schema": [
        (f"POST {V}", A, 200, ...),
        (
            f"{C_ALL}?verbose=true",
            {"schema": '{"type":"object"}', "schemaType": "JSON"},
            200,
            {"messages": ["Incompatible because of different schema type", end("BACKWARD")]},
        ),
    ],
    "a schema that is none: a fault, or for who asks a reason": [
        (f"POST {V}", A, 200, ...),
        (C_ALL, {"schema": '"nonsense"'}, 422, 42201),
        (f"{C_ALL}?verbose=true", {"schema": '"nonsense"'}, 200, {"is_compatible": False, "messages": [...]}),
        (
            f"{C_ALL}?verbose=true",
            {"schema": "x", "schemaType": "PROTOBUF"},
            200,
            {"messages": ["Invalid schema type PROTOBUF"]},
        ),
        (C_ALL, {"schema": ""}, 422, (42201, "Empty schema")),
    ],
    "only versions of the same group are compared with": [
        ("PUT /config/s", {"compatibilityGroup": "major"}, 200, ...),
        (f"POST {V}", {**A, "metadata": {"properties": {"major": "1"}}}, 200, ...),
        (f"POST {V}", {**B, "metadata": {"properties": {"major": "1"}}}, 409, 40901),
        (f"POST {V}", {**B, "metadata": {"properties": {"major": "2"}}}, 200, {"version": 2}),
        (f"POST {V}", {**AB, "metadata": {"properties": {"major": "1"}}}, 200, {"version": 3}),
    ],
    "a JSON Schema's reasons": [
        ("POST /subjects/j/versions", {"schema": '{"type":"string","maxLength":5}', "schemaType": "JSON"}, 200, ...),
        (
            "POST /compatibility/subjects/j/versions/latest",
            {"schema": '{"type":"string","maxLength":9}', "schemaType": "JSON"},
            200,
            YES,
        ),
        (
            "POST /compatibility/subjects/j/versions/latest?verbose=true",
            {"schema": '{"type":"string","maxLength":3}', "schemaType": "JSON"},
            200,
            {"is_compatible": False, "messages": [..., "{oldSchemaVersion: 1}", ..., end("BACKWARD")]},
        ),
    ],
    "the global level holds where a subject has none": [
        ("PUT /config", {"compatibility": "NONE"}, 200, ...),
        (f"POST {V}", A, 200, ...),
        (f"POST {V}", B, 200, {"version": 2}),
        level("BACKWARD"),
        (f"POST {V}", avro("R", "c"), 409, 40901),
    ],
}


@pytest.mark.parametrize("steps", CASES.values(), ids=CASES.keys())
def test_compatibility(desk: Desk, steps: list[Step]) -> None:
    desk.walk(steps)
