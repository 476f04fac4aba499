"""Contexts: rooms with subjects and ids of their own, named in subjects or in paths."""

import pytest
from registry_desk import Desk, Step, avro, optional

A, B, C = avro("R", "a"), avro("R", "a", optional("b")), avro("S", "c")
THREE: list[Step] = [
    ("POST /subjects/s/versions", A, 200, {"id": 1}),
    ("POST /subjects/:.one:s/versions", B, 200, {"id": 1}),
    ("POST /subjects/:.one:t/versions", A, 200, {"id": 2}),
    ("POST /subjects/:.two:s/versions", C, 200, {"id": 1}),
]

CASES: dict[str, list[Step]] = {
    "one context at first": [
        ("GET /contexts", None, 200, ["."]),
        ("GET /contexts?offset=1", None, 200, []),
    ],
    "ids count in each context": [
        *THREE,
        ("GET /contexts", None, 200, [".", ".one", ".two"]),
        ("GET /schemas/ids/1", None, 200, {"schema": A["schema"], "subject": "s"}),
        ("GET /schemas/ids/1?subject=:.one:", None, 200, {"schema": B["schema"], "subject": ":.one:s"}),
        ("GET /schemas/ids/1?subject=:.two:s", None, 200, {"schema": C["schema"]}),
        ("GET /schemas/ids/2", None, 404, 40403),
    ],
    "pages and beginnings of contexts": [
        *THREE,
        ("GET /contexts?limit=2", None, 200, [".", ".one"]),
        ("GET /contexts?offset=2&limit=2", None, 200, [".two"]),
        ("GET /contexts?contextPrefix=.t", None, 200, [".two"]),
        ("GET /contexts?contextPrefix=.", None, 200, [".", ".one", ".two"]),
        ("GET /contexts?contextPrefix=.T", None, 200, []),
    ],
    "subjects of one context, of the default one, of all": [
        *THREE,
        ("GET /subjects", None, 200, [":.one:s", ":.one:t", ":.two:s", "s"]),
        ("GET /subjects?subjectPrefix=:.one:", None, 200, [":.one:s", ":.one:t"]),
        ("GET /subjects?subjectPrefix=:.one:t", None, 200, [":.one:t"]),
        ("GET /subjects?subjectPrefix=", None, 200, ["s"]),
        ("GET /subjects?subjectPrefix=:*:", None, 200, [":.one:s", ":.one:t", ":.two:s", "s"]),
        ("GET /subjects?subjectPrefix=:*:s", None, 200, [":.one:s", ":.two:s", "s"]),
        ("GET /schemas", None, 200, [{"subject": "s"}]),
        ("GET /schemas?subjectPrefix=:.one:", None, 200, [{"subject": ":.one:s"}, {"subject": ":.one:t"}]),
        ("GET /schemas?subjectPrefix=:*:t", None, 200, [{"subject": ":.one:t"}]),
    ],
    "the default context by its name": [
        ("POST /subjects/:.:s/versions", A, 200, {"id": 1}),
        ("GET /subjects", None, 200, ["s"]),
        ("GET /subjects/:.:s/versions/1", None, 200, {"subject": "s"}),
        ("GET /contexts", None, 200, ["."]),
    ],
    "a subject that the default context lacks is looked for in the others": [
        *THREE,
        ("GET /subjects/t/versions/1", None, 200, {"subject": ":.one:t", "version": 1}),
        ("POST /subjects/t", A, 200, {"subject": ":.one:t", "version": 1}),
        ("GET /subjects/:.two:t/versions/1", None, 404, (40401, "Subject ':.two:t' not found.")),
        ("GET /subjects/t/versions", None, 404, 40401),
        ("GET /schemas/ids/2?subject=t", None, 200, {"subject": ":.one:t", "schema": A["schema"]}),
        ("GET /schemas/ids/1?subject=s", None, 200, {"subject": "s", "schema": A["schema"]}),
    ],
    "paths that begin with a context": [
        ("POST /contexts/.one/subjects/s/versions", A, 200, {"id": 1}),
        ("POST /contexts/:.one:/subjects/s/versions", B, 200, {"id": 2}),
        ("POST /contexts/one/subjects/t/versions", A, 200, {"id": 1}),
        ("GET /contexts/.one/subjects", None, 200, [":.one:s", ":.one:t"]),
        ("GET /contexts/.one/subjects?subjectPrefix=t", None, 200, [":.one:t"]),
        ("GET /contexts/.one/subjects/s/versions", None, 200, [1, 2]),
        ("GET /contexts/.one/subjects/s/versions/latest", None, 200, {"subject": ":.one:s", "version": 2}),
        ("GET /contexts/.two/subjects/:.one:s/versions", None, 200, [1, 2]),
        ("POST /contexts/.one/subjects/s", B, 200, {"version": 2}),
        ("POST /contexts/.one/compatibility/subjects/s/versions/latest", C, 200, {"is_compatible": False}),
        ("GET /contexts/.one/schemas", None, 200, [{"version": 1}, {"version": 2}, {"subject": ":.one:t"}]),
        ("GET /contexts/.one/schemas/ids/2", None, 200, {"schema": B["schema"]}),
        ("GET /contexts/.one/schemas/ids/1/subjects", None, 200, [":.one:s", ":.one:t"]),
        ("GET /contexts/.one/schemas/ids/2?subject=s", None, 200, {"subject": ":.one:s"}),
        ("GET /contexts/.two/schemas/ids/2", None, 404, 40403),
        ("GET /contexts/:.:/subjects", None, 200, []),
        ("GET /contexts/.one/contexts", None, 200, [".", ".one"]),
        ("DELETE /contexts/.one/subjects/t", None, 200, [1]),
        ("GET /contexts/.one/schemas/types", None, 200, ["JSON", "AVRO"]),
    ],
    "configs and modes of a context, by its path": [
        ("PUT /contexts/.one/config", {"compatibility": "NONE"}, 200, ...),
        ("GET /config/:.one:", None, 200, {"compatibilityLevel": "NONE"}),
        ("GET /contexts/.one/config/s?defaultToGlobal=true", None, 200, {"compatibilityLevel": "NONE"}),
        ("PUT /contexts/.one/config/s", {"compatibility": "FULL"}, 200, ...),
        ("GET /config/:.one:s", None, 200, {"compatibilityLevel": "FULL"}),
        ("PUT /contexts/.one/mode", {"mode": "READONLY"}, 200, ...),
        ("GET /mode/:.one:", None, 200, {"mode": "READONLY"}),
        ("PUT /contexts/:.:/config", {"compatibility": "FORWARD"}, 200, ...),
        ("GET /config", None, 200, {"compatibilityLevel": "FORWARD"}),
    ],
    "a context whose name has a colon is none": [
        ("GET /contexts/a:b/subjects", None, 400, (400, "Context name 'a:b' cannot contain a colon")),
    ],
    "an empty context can be deleted": [
        *THREE,
        ("DELETE /contexts/.one", None, 422, (42211, "The specified context ':.one:' is not empty.")),
        ("DELETE /subjects/:.two:s", None, 200, ...),
        ("DELETE /contexts/.two", None, 422, 42211),
        ("DELETE /subjects/:.two:s?permanent=true", None, 200, ...),
        ("DELETE /contexts/.two", None, 204, ...),
        ("GET /contexts", None, 200, [".", ".one"]),
        ("POST /subjects/:.two:s/versions", A, 200, {"id": 2}),
        ("GET /contexts", None, 200, [".", ".one", ".two"]),
    ],
    "a feed's attribute means nothing outside the default context": [
        (
            "POST /subjects/:.one:orders-value/versions",
            {"schema": '{"type":"record","name":"O","fields":[],"feed":{"key":["missing"]}}'},
            200,
            {"id": 1},
        ),
    ],
}


@pytest.mark.parametrize("steps", CASES.values(), ids=CASES.keys())
def test_contexts(desk: Desk, steps: list[Step]) -> None:
    desk.walk(steps)
