"""Registering schemas and getting them by number: the requests and answers of `/subjects/{subject}/versions`."""

import json
from typing import Any

import pytest
from registry_desk import ABSENT, Desk, Step, avro, optional

V = "/subjects/s/versions"
A, B, C = avro("R", "a"), avro("R", "a", optional("b")), avro("R", "a", optional("b"), optional("c"))

NO_VERSION = """The specified version '{}' is not a valid version id. \
Allowed values are between [1, 2^31-1] and the string "latest\""""
NO_DEFAULT = f"""Schema being registered is incompatible with an earlier schema for subject "s", details: \
[{{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'b' at path '/fields/1' in the new schema \
has no default value and is missing in the old schema', additionalInfo:'b'}}, {{oldSchemaVersion: 1}}, \
{{oldSchema: '{A["schema"]}'}}, {{validateFields: 'false', compatibility: 'BACKWARD'}}]"""


def marked(version: int) -> dict[str, Any]:
    return {"metadata": {"properties": {"confluent:version": str(version)}}}


def feed_body(*more: str, **declared: Any) -> dict[str, Any]:
    """The body that registers a feed's schema with an id and some optional fields."""
    body = avro("O", "id", *map(optional, more))
    return {"schema": json.dumps({**json.loads(body["schema"]), "feed": declared})}


REFERS = "whole.avsc: references are not for a feed's schema, which stands alone. Write out Part."

CASES: dict[str, list[Step]] = {
    "a new schema gets version 1 and id 1": [
        (f"POST {V}", A, 200, {"id": 1, "version": 1, "schemaType": "AVRO", "guid": ..., "schema": A["schema"]}),
        (f"GET {V}/1", None, 200, {"subject": "s", "version": 1, "id": 1, "schema": A["schema"], "deleted": False}),
    ],
    "the same schema again gets the same version and id": [
        (f"POST {V}", A, 200, {"id": 1}),
        (f"POST {V}", A, 200, {"id": 1, "version": 1}),
        (f"GET {V}", None, 200, [1]),
    ],
    "another text of the same schema is the same": [
        (f"POST {V}", {"schema": '{"type": "string"}'}, 200, {"id": 1, "schema": '"string"'}),
        (f"POST {V}", {"schema": ' "string" '}, 200, {"id": 1, "version": 1}),
    ],
    "attributes in another order are the same schema": [
        (f"POST {V}", {"schema": '{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}'}, 200, {"id": 1}),
        (f"POST {V}", {"schema": '{"type":"bytes","logicalType":"decimal","scale":2,"precision":4}'}, 200, {"id": 1}),
        (f"GET {V}", None, 200, [1]),
    ],
    "the same schema has one id under every subject": [
        (f"POST {V}", A, 200, {"id": 1}),
        ("POST /subjects/t/versions", B, 200, {"id": 2, "version": 1}),
        ("POST /subjects/t/versions", C, 200, {"id": 3, "version": 2}),
        ("POST /subjects/u/versions", A, 200, {"id": 1, "version": 1}),
    ],
    "versions are listed in order": [
        (f"POST {V}", A, 200, ...),
        (f"POST {V}", B, 200, ...),
        (f"POST {V}", C, 200, ...),
        (f"GET {V}", None, 200, [1, 2, 3]),
        (f"GET {V}?offset=1", None, 200, [2, 3]),
        (f"GET {V}?offset=1&limit=1", None, 200, [2]),
        (f"GET {V}?limit=0", None, 200, [1, 2, 3]),
        (f"GET {V}?offset=9", None, 200, []),
    ],
    "latest and -1 are the last version": [
        (f"POST {V}", A, 200, ...),
        (f"POST {V}", B, 200, ...),
        (f"GET {V}/latest", None, 200, {"version": 2}),
        (f"GET {V}/LATEST", None, 200, {"version": 2}),
        (f"GET {V}/-1", None, 200, {"version": 2}),
    ],
    "a version that is none is refused": [
        (f"POST {V}", A, 200, ...),
        *[
            (f"GET {V}/{bad}", None, 422, (42202, NO_VERSION.format(bad)))
            for bad in ("0", "-2", "first", "1.5", "9" * 11, "1_0", "9" * 5000)
        ],
        (f"DELETE {V}/0", None, 422, 42202),
        (f"GET {V}/x/schema", None, 422, 42202),
        (f"GET {V}/x/referencedby", None, 422, 42202),
    ],
    "what is not there is not found": [
        (f"GET {V}", None, 404, (40401, "Subject 's' not found.")),
        (f"GET {V}/1", None, 404, (40401, "Subject 's' not found.")),
        (f"GET {V}/latest", None, 404, (40401, "Subject 's' not found.")),
        (f"POST {V}", A, 200, ...),
        (f"GET {V}/200", None, 404, (40402, "Version 200 not found.")),
        (f"GET {V}/200/schema", None, 404, 40402),
        (f"DELETE {V}/200", None, 404, 40402),
    ],
    "a schema alone is its text": [
        (f"POST {V}", {"schema": '{"type":"int"}'}, 200, ...),
        (f"GET {V}/1/schema", None, 200, "int"),
        (f"GET {V}/latest/schema", None, 200, "int"),
    ],
    "a schema that does not parse is refused with the parser's reason": [
        (f"POST {V}", {"schema": '{"type":"str"}'}, 422, 42201),
        (f"POST {V}", {"schema": "not json"}, 422, 42201),
        (f"POST {V}", {"schema": ""}, 422, (42201, "Empty schema")),
        (f"POST {V}", {"schema": None}, 422, (42201, "Empty schema")),
        (f"POST {V}", {}, 422, (42201, "Empty schema")),
        (f"GET {V}", None, 404, 40401),
    ],
    "a default that does not fit is refused, unless told not to look": [
        (f"POST {V}", avro("R", {"name": "f", "type": "string", "default": None}), 422, 42201),
        ("PUT /config/s", {"validateNewSchemas": False}, 200, ...),
        (f"POST {V}", avro("R", {"name": "f", "type": "string", "default": None}), 200, {"id": 1}),
    ],
    "other types are refused in Confluent's words": [
        (f"POST {V}", {"schema": "x", "schemaType": "PROTOBUF"}, 422, (42201, "Invalid schema type PROTOBUF")),
        (f"POST {V}", {"schema": "x", "schemaType": "avro"}, 422, (42201, "Invalid schema type avro")),
    ],
    "an incompatible schema is refused with every reason, and force takes it": [
        (f"POST {V}", A, 200, ...),
        (
            f"POST {V}",
            avro("R", "a", "b"),
            409,
            (40901, NO_DEFAULT),
        ),
        (f"POST {V}?force=true", avro("R", "a", "b"), 200, {"version": 2, "id": 2}),
    ],
    "the type of a subject may only change where nothing is compared": [
        (f"POST {V}", A, 200, ...),
        (f"POST {V}", {"schema": '{"type":"object"}', "schemaType": "JSON"}, 409, 40901),
        ("PUT /config/s", {"compatibility": "NONE"}, 200, ...),
        (f"POST {V}", {"schema": '{"type":"object"}', "schemaType": "JSON"}, 200, {"version": 2, "schemaType": "JSON"}),
    ],
    "normalize sorts what may be sorted, by query or by config": [
        (
            f"POST {V}?normalize=true",
            avro("R", {"name": "f", "type": "string", "zebra": "z", "apple": "a"}),
            200,
            {"schema": avro("R", {"name": "f", "type": "string", "apple": "a", "zebra": "z"})["schema"]},
        ),
        ("PUT /config/t", {"normalize": True}, 200, ...),
        (
            "POST /subjects/t/versions",
            avro("R", {"name": "f", "type": "string", "zebra": "z", "apple": "a"}),
            200,
            {"id": 1},
        ),
    ],
    "a body without a schema registers the latest one again with other metadata": [
        (f"POST {V}", A, 200, {"id": 1}),
        (f"POST {V}", {"metadata": {"properties": {"team": "x"}}}, 200, {"id": 2, "version": 2, "schema": A["schema"]}),
    ],
    "a version that is named must be the next one, and is written into the metadata": [
        (f"POST {V}", A, 200, {"version": 1, "metadata": ABSENT}),
        (f"POST {V}", {**A, "version": -1}, 200, {"version": 1, "id": 1}),
        (
            f"POST {V}",
            {**A, "version": 2},
            200,
            {"version": 2, "id": 2, "metadata": {"properties": {"confluent:version": "2"}}},
        ),
        (f"POST {V}", {**A, "version": -1}, 200, {"version": 2, "id": 2}),
        (f"POST {V}", {**A, "version": 2}, 422, (42201, "Version is not one more than previous version")),
        (f"POST {V}", {**B, "version": 7}, 422, (42201, "Version is not one more than previous version")),
    ],
    "the same schema can be registered again and again with its version in the metadata": [
        (f"POST {V}", A, 200, {"id": 1, "metadata": ABSENT}),
        (f"POST {V}", {**A, "version": 2}, 200, {"id": 2, **marked(2)}),
        ("POST /subjects/s", A, 200, {"version": 1, "metadata": ABSENT}),
        ("POST /subjects/s", {**A, **marked(1)}, 200, {"version": 1, "metadata": ABSENT}),
        ("POST /subjects/s", {**A, **marked(2)}, 200, {"version": 2, **marked(2)}),
        ("POST /subjects/s", {**A, **marked(10**4000)}, 404, 40403),
        (f"DELETE {V}/1", None, 200, 1),
        ("POST /subjects/s", A, 200, {"version": 2, **marked(2)}),
        (f"POST {V}", A, 200, {"id": 2, "version": 2}),
        (f"POST {V}", {**A, "version": 3}, 200, {"id": 3, **marked(3)}),
        (f"POST {V}", {**A, "version": -1}, 200, {"id": 3}),
        (f"POST {V}", {**A, "version": 3}, 422, 42201),
        (f"POST {V}", {**A, "version": 4}, 200, {"id": 4}),
        ("POST /subjects/s", A, 200, {"version": 4}),
        (f"POST {V}", {**A, **marked(-1)}, 200, {"id": 5, "version": 5, **marked(5)}),
        (f"POST {V}", {**A, **marked(2)}, 200, {"id": 2, "version": 2}),
        (f"POST {V}", {**A, **marked(3)}, 200, {"id": 3, "version": 3}),
        (f"POST {V}", {**A, **marked(0)}, 200, {"id": 6, "version": 6, **marked(6)}),
        (f"POST {V}", {**A, "metadata": {}}, 200, {"id": 6, "version": 6}),
        (f"POST {V}", {**A, "metadata": {"properties": {"mine": "x"}}}, 200, {"id": 7, "version": 7}),
        (f"POST {V}", {**A, "version": -1}, 200, {"id": 8, "version": 8, **marked(8)}),
        ("POST /subjects/s", {**A, "metadata": {"properties": {"mine": "x"}}}, 200, {"version": 7}),
        (f"DELETE {V}/7", None, 200, 7),
        ("POST /subjects/s", {**A, "metadata": {"properties": {"mine": "x"}}}, 200, {"version": 8, **marked(8)}),
        ("POST /subjects/s", {**avro("R", {"name": "a", "type": "string", "doc": "d"}), "version": -1}, 404, 40403),
    ],
    "names may hold whatever a URL can encode": [
        *[
            step
            for name in ("a%2Fb", "a%20b", "a%3Fb", "%C3%BC", "a%25b", "a%2Bb", "a+b", "versions", "a.b-c_d~e")
            for step in [
                (f"POST /subjects/{name}/versions", A, 200, {"id": 1, "version": 1}),
                (f"GET /subjects/{name}/versions/1", None, 200, {"version": 1}),
            ]
        ],
        (
            "GET /subjects",
            None,
            200,
            ["a b", "a%b", "a+b", "a.b-c_d~e", "a/b", "a?b", "versions", "ü"],
        ),
    ],
    "a name with control characters, or one that is kept for the server, is refused": [
        ("POST /subjects/bad%0Aname/versions", A, 422, (42208, "The specified subject 'bad\nname' is not a valid.")),
        ("POST /subjects/__GLOBAL/versions", A, 422, 42208),
        ("POST /subjects/__EMPTY/versions", A, 422, 42208),
        ("POST /subjects/:.__GLOBAL:x/versions", A, 422, 42208),
    ],
    "a feed's topic stays as it is, and a producer's own schema without the declaration leaves the feed there": [
        ("POST /subjects/orders-value/versions", feed_body(key=["id"]), 200, ...),
        ("POST /subjects/orders-value/versions", avro("O", "id", optional("x")), 200, ...),
        ("POST /subjects/orders-value/versions", feed_body("y", key=["id"], kinesis={}), 422, 42201),
        ("GET /feeds/orders", None, 200, {"key": ["id"], "version": 1}),
        ("POST /subjects/orders-value/versions", feed_body("y", key=["id"], owner="shop"), 200, ...),
        ("GET /feeds", None, 200, [{"name": "orders", "owner": "shop", "version": 3}]),
    ],
    "a feed that cannot run is refused with its faults, and one that can is taken": [
        (
            "POST /subjects/orders-value/versions",
            {"schema": '{"type":"record","name":"O","fields":[{"name":"id","type":"string"}],"feed":{"key":["idd"]}}'},
            422,
            42201,
        ),
        (
            "POST /subjects/orders-value/versions",
            {"schema": '{"type":"record","name":"O","fields":[{"name":"id","type":"string"}],"feed":{"key":["id"]}}'},
            200,
            {"id": 1},
        ),
        ("POST /subjects/part/versions", avro("Part"), 200, {"id": 2}),
        (
            "POST /subjects/whole-value/versions",
            {
                "schema": '{"type":"record","name":"W","fields":[{"name":"id","type":"string"},'
                '{"name":"part","type":"Part"}],"feed":{"key":["id"]}}',
                "references": [{"name": "Part", "subject": "part", "version": 1}],
            },
            422,
            (42201, f"Invalid schema of type AVRO, details: {REFERS}"),
        ),
    ],
}


@pytest.mark.parametrize("steps", CASES.values(), ids=CASES.keys())
def test_versions(desk: Desk, steps: list[Step]) -> None:
    desk.walk(steps)
