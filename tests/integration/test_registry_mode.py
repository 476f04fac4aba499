"""Modes: what may be changed, and imports that bring their ids and versions."""

import pytest
from registry_desk import ABSENT, Desk, Step, avro, optional

V = "/subjects/s/versions"
A, B, C = avro("R", "a"), avro("R", "a", optional("b")), avro("R", "z")
INVALID = "Invalid mode. Valid values are READWRITE, READONLY, IMPORT and FORWARD."
READ_ONLY = "Subject s in context  is in read-only mode"

CASES: dict[str, list[Step]] = {
    "read-write is the default": [
        ("GET /mode", None, 200, {"mode": "READWRITE"}),
        ("GET /mode/s", None, 404, (40409, "Subject 's' does not have subject-level mode configured")),
        ("GET /mode/s?defaultToGlobal=true", None, 200, {"mode": "READWRITE"}),
    ],
    "every mode can be set": [
        *[
            step
            for mode in ("READONLY", "READONLY_OVERRIDE", "IMPORT", "READWRITE")
            for step in [
                ("PUT /mode", {"mode": mode}, 200, {"mode": mode}),
                ("GET /mode", None, 200, {"mode": mode}),
            ]
        ],
        ("PUT /mode/s", {"mode": "readonly"}, 200, {"mode": "readonly"}),
        ("GET /mode/s", None, 200, {"mode": "READONLY"}),
    ],
    "a mode that is none is refused": [
        ("PUT /mode", {"mode": "SIDEWAYS"}, 422, (42204, INVALID)),
        ("PUT /mode/s", {"mode": "FORWARD"}, 422, (42204, "Forward mode only supported on global level")),
        ("PUT /mode", {"mode": "FORWARD"}, 422, 42204),
        ("PUT /mode/:.__GLOBAL:", {"mode": "FORWARD"}, 200, {"mode": "FORWARD"}),
        ("PUT /mode/bad%0Aname", {"mode": "READONLY"}, 422, 42208),
    ],
    "null clears a mode": [
        ("PUT /mode", {"mode": "READONLY"}, 200, ...),
        ("PUT /mode", {"mode": None}, 200, {"mode": ABSENT}),
        ("GET /mode", None, 200, {"mode": "READWRITE"}),
    ],
    "what is deleted is told": [
        ("PUT /mode/s", {"mode": "READONLY"}, 200, ...),
        ("DELETE /mode/s", None, 200, {"mode": "READONLY"}),
        ("DELETE /mode/s", None, 404, (40401, "Subject 's' not found.")),
        ("PUT /mode", {"mode": "READONLY"}, 200, ...),
        ("DELETE /mode", None, 200, {"mode": "READONLY"}),
        ("GET /mode", None, 200, {"mode": "READWRITE"}),
        ("DELETE /mode", None, 200, {"mode": "READWRITE"}),
    ],
    "nothing is changed in read-only mode, and everything can be read": [
        (f"POST {V}", A, 200, ...),
        ("PUT /mode", {"mode": "READONLY"}, 200, ...),
        (f"POST {V}", B, 422, (42205, READ_ONLY)),
        (f"POST {V}", A, 200, {"id": 1}),
        (f"DELETE {V}/1", None, 422, (42205, READ_ONLY)),
        ("DELETE /subjects/s", None, 422, (42205, READ_ONLY)),
        ("PUT /config/s", {"compatibility": "NONE"}, 422, (42205, READ_ONLY)),
        ("PUT /config", {"compatibility": "NONE"}, 422, (42205, "Subject null in context  is in read-only mode")),
        (f"GET {V}/1", None, 200, {"id": 1}),
        (f"POST /compatibility{V}", B, 200, {"is_compatible": True}),
        ("PUT /mode", {"mode": "READWRITE"}, 200, ...),
        (f"POST {V}", B, 200, {"id": 2}),
    ],
    "a subject's mode wins over the global one": [
        ("PUT /mode", {"mode": "READONLY"}, 200, ...),
        ("PUT /mode/s", {"mode": "READWRITE"}, 200, ...),
        (f"POST {V}", A, 200, {"id": 1}),
        ("POST /subjects/t/versions", A, 422, (42205, "Subject t in context  is in read-only mode")),
        ("DELETE /mode/s", None, 200, ...),
        (f"POST {V}", B, 422, 42205),
    ],
    "a context's mode holds for its subjects": [
        ("PUT /mode/:.c:", {"mode": "READONLY"}, 200, ...),
        ("POST /subjects/:.c:s/versions", A, 422, (42205, "Subject :.c:s in context :.c: is in read-only mode")),
        (f"POST {V}", A, 200, ...),
        ("GET /mode/:.c:s?defaultToGlobal=true", None, 200, {"mode": "READONLY"}),
        ("GET /mode/:.c:s", None, 404, 40409),
    ],
    "one mode for all contexts": [
        ("PUT /mode/:.__GLOBAL:", {"mode": "READONLY"}, 200, ...),
        ("GET /mode?defaultToGlobal=true", None, 200, {"mode": "READONLY"}),
        (f"POST {V}", A, 422, 42205),
        ("POST /subjects/:.c:s/versions", A, 422, 42205),
    ],
    "a context's modes can be deleted with those of its subjects": [
        ("PUT /mode/:.c:", {"mode": "READONLY"}, 200, ...),
        ("PUT /mode/:.c:a", {"mode": "READONLY"}, 200, ...),
        ("PUT /mode/:.d:a", {"mode": "READONLY"}, 200, ...),
        ("DELETE /mode/:.c:?recursive=true", None, 200, {"mode": "READONLY"}),
        ("GET /mode/:.c:a", None, 404, 40409),
        ("GET /mode/:.d:a", None, 200, {"mode": "READONLY"}),
        ("DELETE /mode/:.c:?recursive=true", None, 200, {"mode": ABSENT}),
    ],
    "an id is refused outside an import": [
        (f"POST {V}", {**A, "id": 7, "version": 1}, 422, (42205, "Subject s in context  is not in import mode")),
    ],
    "an import brings ids and versions, and others count on from there": [
        ("PUT /mode/s", {"mode": "IMPORT"}, 200, ...),
        (f"POST {V}", {**A, "id": 100, "version": 5}, 200, {"id": 100, "version": 5}),
        (f"GET {V}", None, 200, [5]),
        ("GET /schemas/ids/100", None, 200, {"schema": A["schema"]}),
        ("POST /subjects/t/versions", C, 200, {"id": 101, "version": 1}),
    ],
    "where the last id or version is taken, there is no next one": [
        ("PUT /mode/s", {"mode": "IMPORT"}, 200, ...),
        (f"POST {V}", {**A, "id": 2**31 - 1, "version": 2**31 - 1}, 200, ...),
        (f"POST {V}", {**B, "id": 1}, 422, 42205),
        ("POST /subjects/t/versions", B, 422, 42205),
        ("POST /subjects/:.c:t/versions", B, 200, {"id": 1}),
    ],
    "an import without an id only gets what is there": [
        ("PUT /mode", {"mode": "IMPORT"}, 200, ...),
        (f"POST {V}", A, 422, (42205, "Subject s in context  is not in read-write mode")),
        (f"POST {V}", {**A, "id": 1, "version": 1}, 200, {"id": 1}),
        (f"POST {V}", A, 200, {"id": 1, "version": 1}),
        (f"POST {V}", {**A, "id": 1, "version": 1}, 200, {"id": 1, "version": 1}),
    ],
    "an import is not compared and not normalized": [
        ("PUT /mode", {"mode": "IMPORT"}, 200, ...),
        (f"POST {V}", {**A, "id": 1, "version": 1}, 200, ...),
        (f"POST {V}", {**C, "id": 2, "version": 2}, 200, {"version": 2}),
        (
            f"POST {V}?normalize=true",
            avro("R", {"name": "f", "type": "int", "z": 1, "a": 1}, id=3, version=3),
            200,
            {"schema": avro("R", {"name": "f", "type": "int", "z": 1, "a": 1})["schema"]},
        ),
    ],
    "an id is not given to a second schema": [
        ("PUT /mode", {"mode": "IMPORT"}, 200, ...),
        (f"POST {V}", {**A, "id": 1, "version": 1}, 200, ...),
        (
            f"POST {V}",
            {**B, "id": 1, "version": 2},
            422,
            (42205, "Overwrite new schema with id 1 in context  is not permitted."),
        ),
        ("POST /subjects/t/versions", {**B, "id": 1, "version": 1}, 422, 42205),
        ("POST /subjects/t/versions", {**A, "id": 1, "version": 1}, 200, {"id": 1}),
        ("POST /subjects/t/versions", {**A, "id": 1, "version": 2}, 200, {"id": 1, "version": 2}),
    ],
    "a version is not given to a second schema": [
        ("PUT /mode", {"mode": "IMPORT"}, 200, ...),
        (f"POST {V}", {**A, "id": 1, "version": 1}, 200, ...),
        (f"POST {V}", {**B, "id": 2, "version": 1}, 422, 42205),
        (f"GET {V}/1", None, 200, {"id": 1, "schema": A["schema"]}),
    ],
    "a second id of the same schema can be imported, and the first is given out": [
        ("PUT /mode", {"mode": "IMPORT"}, 200, ...),
        (f"POST {V}", {**A, "id": 100, "version": 1}, 200, {"id": 100}),
        ("POST /subjects/t/versions", {**A, "id": 200, "version": 1}, 200, {"id": 200}),
        ("GET /schemas/ids/100", None, 200, {"schema": A["schema"]}),
        ("GET /schemas/ids/200", None, 200, {"schema": A["schema"]}),
        ("POST /subjects/t", A, 200, {"version": 1, "id": 200}),
        ("PUT /mode", {"mode": "READWRITE"}, 200, ...),
        ("POST /subjects/u/versions", A, 200, {"id": 100}),
    ],
    "importing begins with nothing, unless forced": [
        (f"POST {V}", A, 200, ...),
        ("PUT /mode", {"mode": "IMPORT"}, 422, (42205, "Cannot import since found existing subjects")),
        ("PUT /mode/s", {"mode": "IMPORT"}, 422, 42205),
        ("PUT /mode/t", {"mode": "IMPORT"}, 200, ...),
        ("PUT /mode/s?force=true", {"mode": "IMPORT"}, 200, {"mode": "IMPORT"}),
        ("PUT /mode?force=true", {"mode": "IMPORT"}, 200, {"mode": "IMPORT"}),
    ],
    "importing forgets what was deleted softly": [
        (f"POST {V}", A, 200, {"id": 1}),
        ("DELETE /subjects/s", None, 200, ...),
        ("PUT /mode", {"mode": "IMPORT"}, 200, ...),
        (f"GET {V}?deleted=true", None, 404, 40401),
        (f"POST {V}", {**A, "id": 1, "version": 1, "metadata": {"properties": {"a": "b"}}}, 200, {"id": 1}),
        ("DELETE /subjects/s", None, 200, ...),
        (f"POST {V}", {**A, "id": 1, "version": 1, "metadata": {"properties": {"a": "b"}}}, 200, {"id": 1}),
        (f"GET {V}/1", None, 200, {"deleted": False}),
    ],
}


@pytest.mark.parametrize("steps", CASES.values(), ids=CASES.keys())
def test_mode(desk: Desk, steps: list[Step]) -> None:
    desk.walk(steps)
