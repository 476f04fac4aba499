"""Schemas by id and guid, and all of them: the requests and answers of `/schemas`."""

import hashlib
import uuid

import pytest
from registry_desk import ABSENT, Desk, Step, avro, optional, refers

A, B, C = avro("R", "a"), avro("R", "a", optional("b")), avro("R", "a", optional("b"), optional("c"))
FILLED: list[Step] = [
    ("POST /subjects/s/versions", A, 200, {"id": 1}),
    ("POST /subjects/s/versions", B, 200, {"id": 2}),
    ("POST /subjects/t/versions", A, 200, {"id": 1}),
]
GUID = str(uuid.UUID(bytes=hashlib.md5(A["schema"].encode()).digest()))

CASES: dict[str, list[Step]] = {
    "two types": [("GET /schemas/types", None, 200, ["JSON", "AVRO"])],
    "a schema by its id": [
        *FILLED,
        ("GET /schemas/ids/1", None, 200, {"schema": A["schema"], "schemaType": "AVRO", "guid": GUID, "id": ABSENT}),
        ("GET /schemas/ids/2", None, 200, {"schema": B["schema"], "subject": "s", "version": 2, "maxId": ABSENT}),
    ],
    "a schema by its id, of a subject": [
        *FILLED,
        ("GET /schemas/ids/1?subject=t", None, 200, {"subject": "t", "version": 1}),
        ("GET /schemas/ids/1?subject=s", None, 200, {"subject": "s", "version": 1}),
        ("GET /schemas/ids/2?subject=t", None, 200, {"subject": "s", "version": 2}),
        ("GET /schemas/ids/2?subject=unknown", None, 200, {"subject": "s", "version": 2}),
        ("GET /schemas/ids/2?subject=:.other:t", None, 404, (40403, "Schema 2 not found")),
    ],
    "an id that is not there": [
        ("GET /schemas/ids/100", None, 404, (40403, "Schema 100 not found")),
        ("GET /schemas/ids/100/schema", None, 404, (40403, "Schema 100 not found")),
        ("GET /schemas/ids/100/subjects", None, 404, (40403, "Schema not found")),
        ("GET /schemas/ids/100/versions", None, 404, (40403, "Schema not found")),
        ("GET /schemas/ids/one", None, 404, (404, "HTTP 404 Not Found")),
    ],
    "the highest id": [
        *FILLED,
        ("GET /schemas/ids/1?fetchMaxId=true", None, 200, {"maxId": 2}),
    ],
    "a schema alone": [
        ("POST /subjects/s/versions", {"schema": '{"type":"int"}'}, 200, ...),
        ("GET /schemas/ids/1/schema", None, 200, "int"),
        ("GET /schemas/ids/1/schema?subject=s", None, 200, "int"),
    ],
    "the subjects of an id": [
        *FILLED,
        ("GET /schemas/ids/1/subjects", None, 200, ["s", "t"]),
        ("GET /schemas/ids/1/subjects?offset=1&limit=1", None, 200, ["t"]),
        ("GET /schemas/ids/2/subjects", None, 200, ["s"]),
        ("DELETE /subjects/t", None, 200, ...),
        ("GET /schemas/ids/1/subjects", None, 200, ["s"]),
        ("GET /schemas/ids/1/subjects?deleted=true", None, 200, ["s", "t"]),
    ],
    "the versions of an id": [
        *FILLED,
        ("GET /schemas/ids/1/versions", None, 200, [{"subject": "s", "version": 1}, {"subject": "t", "version": 1}]),
        ("GET /schemas/ids/1/versions?limit=1", None, 200, [{"subject": "s", "version": 1}]),
        ("DELETE /subjects/s/versions/1", None, 200, ...),
        ("GET /schemas/ids/1/versions", None, 200, [{"subject": "t", "version": 1}]),
        ("GET /schemas/ids/1/versions?deleted=true", None, 200, [{"subject": "s", "version": 1}, ...]),
    ],
    "all schemas": [
        *FILLED,
        (
            "GET /schemas",
            None,
            200,
            [{"subject": "s", "version": 1}, {"subject": "s", "version": 2}, {"subject": "t", "version": 1}],
        ),
        ("GET /schemas?latestOnly=true", None, 200, [{"subject": "s", "version": 2}, {"subject": "t", "version": 1}]),
        ("GET /schemas?subjectPrefix=t", None, 200, [{"subject": "t", "schema": A["schema"], "id": 1}]),
        ("GET /schemas?subjectPrefix=x", None, 200, []),
        ("GET /schemas?offset=1&limit=1", None, 200, [{"subject": "s", "version": 2}]),
    ],
    "all schemas, by their subjects' other names too": [
        *FILLED,
        ("PUT /config/nick-2", {"alias": "s"}, 200, ...),
        ("PUT /config/nick-1", {"alias": "s"}, 200, ...),
        ("GET /schemas?subjectPrefix=nick", None, 200, []),
        (
            "GET /schemas?subjectPrefix=nick&aliases=true",
            None,
            200,
            [{"subject": "s", "version": 1, "aliases": ["nick-1", "nick-2"]}, {"subject": "s", "version": 2}],
        ),
        ("GET /schemas?subjectPrefix=nick-1&aliases=true&latestOnly=true", None, 200, [{"aliases": ["nick-1"]}]),
        ("GET /schemas?subjectPrefix=t&aliases=true", None, 200, [{"subject": "t", "aliases": ABSENT}]),
        ("GET /schemas?subjectPrefix=s&aliases=true&limit=1", None, 200, [{"subject": "s", "aliases": ABSENT}]),
        ("GET /schemas?subjectPrefix=:*:&aliases=true&offset=2", None, 200, [{"subject": "t"}]),
    ],
    "all schemas, deleted ones too": [
        *FILLED,
        ("DELETE /subjects/s/versions/2", None, 200, 2),
        ("GET /schemas", None, 200, [{"version": 1}, {"subject": "t"}]),
        ("GET /schemas?latestOnly=true", None, 200, [{"subject": "s", "version": 1}, {"subject": "t"}]),
        ("GET /schemas?deleted=true", None, 200, [{"version": 1}, {"version": 2, "deleted": True}, {"subject": "t"}]),
        ("GET /schemas?deleted=true&latestOnly=true", None, 200, [{"version": 2, "deleted": True}, {"subject": "t"}]),
    ],
    "schemas by the type of their rules": [
        *FILLED,
        (
            "POST /subjects/u/versions",
            {**C, "ruleSet": {"domainRules": [{"name": "r", "type": "CEL", "mode": "WRITE"}]}},
            200,
            ...,
        ),
        ("GET /schemas?ruleType=CEL", None, 200, [{"subject": "u"}]),
        ("GET /schemas?ruleType=ENCRYPT", None, 200, []),
    ],
    "a guid is the same wherever a schema is": [
        *FILLED,
        ("POST /subjects/:.c:s/versions", A, 200, {"id": 1, "guid": GUID}),
        ("GET /subjects/t/versions/1", None, 200, {"guid": GUID}),
        (
            f"GET /schemas/guids/{GUID}",
            None,
            200,
            {"schema": A["schema"], "guid": GUID, "subject": ABSENT, "version": ABSENT, "id": ABSENT},
        ),
        (f"GET /schemas/guids/{GUID.replace('-', '')}", None, 200, {"guid": GUID}),
        (f"GET /schemas/guids/{GUID}/ids", None, 200, [{"context": ".", "id": 1}, {"context": ".c", "id": 1}]),
    ],
    "a guid that is not there": [
        (f"GET /schemas/guids/{GUID}", None, 404, (40403, f"Schema {GUID} not found")),
        ("GET /schemas/guids/nonsense", None, 404, (40403, "Schema nonsense not found")),
        (f"GET /schemas/guids/{GUID}/ids", None, 200, []),
    ],
    "metadata and rules are part of the guid and of the id": [
        ("POST /subjects/s/versions", A, 200, {"id": 1, "guid": GUID}),
        (
            "POST /subjects/t/versions",
            {**A, "metadata": {"properties": {"k": "v"}}},
            200,
            {"id": 2, "guid": str(uuid.UUID(bytes=hashlib.md5(A["schema"].encode() + b"\x01kv").digest()))},
        ),
    ],
    "a schema with its references written out": [
        ("POST /subjects/ref/versions", {"schema": '{"type":"fixed","name":"F","size":2}'}, 200, ...),
        ("POST /subjects/s/versions", avro("R", {"name": "f", "type": "F"}, references=[refers("F", "ref")]), 200, ...),
        (
            "GET /subjects/s/versions/1?format=resolved",
            None,
            200,
            {"schema": avro("R", {"name": "f", "type": {"type": "fixed", "name": "F", "size": 2}})["schema"]},
        ),
        (
            "GET /schemas/ids/2?format=resolved",
            None,
            200,
            {"schema": avro("R", {"name": "f", "type": {"type": "fixed", "name": "F", "size": 2}})["schema"]},
        ),
        ("GET /schemas/ids/2?format=unknown", None, 200, {"schema": avro("R", {"name": "f", "type": "F"})["schema"]}),
        ("GET /schemas/ids/2", None, 200, {"references": [{"name": "F", "subject": "ref", "version": 1}]}),
    ],
    "a JSON Schema": [
        ("POST /subjects/j/versions", {"schema": '{ "type": "object" }', "schemaType": "JSON"}, 200, {"id": 1}),
        ("GET /schemas/ids/1", None, 200, {"schema": '{"type":"object"}', "schemaType": "JSON"}),
        ("POST /subjects/j", {"schema": '{"type":"object"}', "schemaType": "JSON"}, 200, {"version": 1}),
        ("POST /subjects/j/versions", {"schema": "[", "schemaType": "JSON"}, 422, 42201),
        ("POST /subjects/k/versions", {"schema": '{"type":"nonsense"}', "schemaType": "JSON"}, 422, 42201),
    ],
}


@pytest.mark.parametrize("steps", CASES.values(), ids=CASES.keys())
def test_schemas(desk: Desk, steps: list[Step]) -> None:
    desk.walk(steps)
