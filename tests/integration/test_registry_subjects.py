"""Subjects: listing, looking up schemas under them, and finding versions by their metadata."""

import pytest
from registry_desk import ABSENT, Desk, Step, avro, optional, refers

A, B, C = avro("R", "a"), avro("R", "a", optional("b")), avro("R", "a", optional("b"), optional("c"))
TWO_SUBJECTS: list[Step] = [
    ("POST /subjects/t/versions", A, 200, ...),
    ("POST /subjects/s/versions", A, 200, ...),
    ("POST /subjects/s/versions", B, 200, ...),
]

CASES: dict[str, list[Step]] = {
    "no subjects at first": [("GET /subjects", None, 200, [])],
    "subjects come in order": [*TWO_SUBJECTS, ("GET /subjects", None, 200, ["s", "t"])],
    "pages of subjects": [
        *TWO_SUBJECTS,
        ("GET /subjects?limit=1", None, 200, ["s"]),
        ("GET /subjects?offset=1&limit=1", None, 200, ["t"]),
        ("GET /subjects?offset=2", None, 200, []),
        ("GET /subjects?offset=-1&limit=-1", None, 200, ["s", "t"]),
    ],
    "subjects by what they begin with": [
        ("POST /subjects/orders-value/versions", A, 200, ...),
        ("POST /subjects/orders-key/versions", A, 200, ...),
        ("POST /subjects/other/versions", A, 200, ...),
        ("GET /subjects?subjectPrefix=orders", None, 200, ["orders-key", "orders-value"]),
        ("GET /subjects?subjectPrefix=orders-v", None, 200, ["orders-value"]),
        ("GET /subjects?subjectPrefix=", None, 200, ["orders-key", "orders-value", "other"]),
        ("GET /subjects?subjectPrefix=Orders", None, 200, []),
        ("GET /subjects?subjectPrefix=%25", None, 200, []),
    ],
    "a deleted subject is listed only if asked for": [
        *TWO_SUBJECTS,
        ("DELETE /subjects/t", None, 200, [1]),
        ("GET /subjects", None, 200, ["s"]),
        ("GET /subjects?deleted=true", None, 200, ["s", "t"]),
        ("GET /subjects?deletedOnly=true", None, 200, ["t"]),
        ("GET /subjects?deleted=true&deletedOnly=true", None, 200, ["t"]),
        ("GET /subjects?deleted=TRUE", None, 200, ["s", "t"]),
        ("GET /subjects?deleted=yes", None, 200, ["s"]),
    ],
    "a subject of which one version is left is not a deleted one": [
        *TWO_SUBJECTS,
        ("DELETE /subjects/s/versions/1", None, 200, 1),
        ("GET /subjects", None, 200, ["s", "t"]),
        ("GET /subjects?deletedOnly=true", None, 200, []),
    ],
    "a look-up tells subject, version and id": [
        *TWO_SUBJECTS,
        (
            "POST /subjects/s",
            B,
            200,
            {"subject": "s", "version": 2, "id": 2, "schemaType": "AVRO", "references": ABSENT},
        ),
    ],
    "a look-up of another text of the same schema": [
        ("POST /subjects/s/versions", {"schema": '{"type":"record","name":"n.R","fields":[]}'}, 200, {"id": 1}),
        ("POST /subjects/s", {"schema": '{"fields":[],"namespace":"n","name":"R","type":"record"}'}, 200, {"id": 1}),
        ("POST /subjects/s", {"schema": '{"type":"record","name":"R","namespace":"n","fields":[]}'}, 200, {"id": 1}),
        ("POST /subjects/s", {"schema": '{"type":"record","name":"R","fields":[]}'}, 404, (40403, "Schema not found")),
    ],
    "a look-up that finds nothing": [
        ("POST /subjects/s", A, 404, (40401, "Subject 's' not found.")),
        *TWO_SUBJECTS,
        ("POST /subjects/s", C, 404, (40403, "Schema not found")),
        ("POST /subjects/t", B, 404, (40403, "Schema not found")),
        ("POST /subjects/t", {"schema": ""}, 404, (40403, "Schema not found")),
        ("POST /subjects/t", {"schema": "nonsense"}, 422, 42201),
        ("POST /subjects/t", {"schema": "x", "schemaType": "PROTOBUF"}, 422, (42201, "Invalid schema type PROTOBUF")),
    ],
    "a look-up of a deleted version, if asked for": [
        *TWO_SUBJECTS,
        ("DELETE /subjects/s/versions/1", None, 200, 1),
        ("POST /subjects/s", A, 404, 40403),
        ("POST /subjects/s?deleted=true", A, 200, {"version": 1, "deleted": True}),
        ("DELETE /subjects/s", None, 200, [2]),
        ("POST /subjects/s", A, 404, (40401, "Subject 's' not found.")),
        ("POST /subjects/s?deleted=true", B, 200, {"version": 2}),
    ],
    "a look-up that is normalized": [
        ("POST /subjects/s/versions?normalize=true", avro("R", {"name": "f", "type": "int", "z": 1, "a": 1}), 200, ...),
        (
            "POST /subjects/s?normalize=true",
            avro("R", {"name": "f", "type": "int", "a": 1, "z": 1}),
            200,
            {"version": 1},
        ),
    ],
    "a look-up without metadata finds the latest version's": [
        ("POST /subjects/s/versions", {**A, "metadata": {"properties": {"team": "x"}}}, 200, {"id": 1}),
        ("POST /subjects/s", A, 200, {"id": 1, "metadata": {"properties": {"team": "x"}}}),
        ("POST /subjects/s", {**A, "metadata": {"properties": {"team": "y"}}}, 404, 40403),
    ],
    "a look-up with references written out": [
        ("POST /subjects/ref/versions", {"schema": '{"type":"record","name":"n.Ref","fields":[]}'}, 200, ...),
        (
            "POST /subjects/s/versions",
            avro("R", {"name": "f", "type": "n.Ref"}, references=[refers("n.Ref", "ref")]),
            200,
            {"id": 2},
        ),
        (
            "POST /subjects/s",
            avro("R", {"name": "f", "type": {"type": "record", "name": "Ref", "namespace": "n", "fields": []}}),
            200,
            {"id": 2, "references": [{"name": "n.Ref", "subject": "ref", "version": 1}]},
        ),
        (
            "POST /subjects/s/versions",
            avro("R", {"name": "f", "type": {"type": "record", "name": "Ref", "namespace": "n", "fields": []}}),
            200,
            {"id": 2, "version": 1},
        ),
    ],
    "the last version with given metadata": [
        ("POST /subjects/s/versions", {**A, "metadata": {"properties": {"major": "1", "x": "y"}}}, 200, {"version": 1}),
        ("POST /subjects/s/versions", {**B, "metadata": {"properties": {"major": "1"}}}, 200, {"version": 2}),
        ("POST /subjects/s/versions", {**C, "metadata": {"properties": {"major": "2"}}}, 200, {"version": 3}),
        ("GET /subjects/s/metadata?key=major&value=1", None, 200, {"version": 2}),
        ("GET /subjects/s/metadata?key=major&value=1&key=x&value=y", None, 200, {"version": 1}),
        ("GET /subjects/s/metadata?key=major&value=3", None, 404, (40403, "Schema not found")),
        ("GET /subjects/t/metadata?key=major&value=1", None, 404, (40401, "Subject 't' not found.")),
        ("DELETE /subjects/s/versions/2", None, 200, ...),
        ("GET /subjects/s/metadata?key=major&value=1", None, 200, {"version": 1}),
        ("GET /subjects/s/metadata?key=major&value=1&deleted=true", None, 200, {"version": 2}),
    ],
    "a subject that stands for another": [
        *TWO_SUBJECTS,
        ("PUT /config/nick", {"alias": "s"}, 200, {"alias": "s"}),
        ("GET /subjects/nick/versions", None, 200, [1, 2]),
        ("GET /subjects/nick/versions/latest", None, 200, {"subject": "s", "version": 2}),
        ("POST /subjects/nick", B, 200, {"subject": "s", "version": 2}),
        ("POST /subjects/nick/versions", C, 200, {"version": 3}),
        ("GET /subjects", None, 200, ["s", "t"]),
        (
            "GET /schemas?aliases=true&latestOnly=true",
            None,
            200,
            [{"subject": "s", "aliases": ["nick"]}, {"aliases": ABSENT}],
        ),
        ("GET /schemas/ids/1?subject=nick", None, 200, {"subject": "s", "version": 1}),
    ],
}


@pytest.mark.parametrize("steps", CASES.values(), ids=CASES.keys())
def test_subjects(desk: Desk, steps: list[Step]) -> None:
    desk.walk(steps)
