"""Deleting: softly first, then for good, and what comes after."""

import pytest
from registry_desk import Desk, Step, avro, optional

V = "/subjects/s/versions"
A, B, C = avro("R", "a"), avro("R", "a", optional("b")), avro("R", "a", optional("b"), optional("c"))
TWO_VERSIONS: list[Step] = [(f"POST {V}", A, 200, {"id": 1}), (f"POST {V}", B, 200, {"id": 2})]
SOFT = "Subject 's' Version 2 was soft deleted.Set permanent=true to delete permanently"
NOT_SOFT = "Subject 's' Version 2 was not deleted first before being permanently deleted"

CASES: dict[str, list[Step]] = {
    "a deleted version is hidden, and shown if asked for": [
        *TWO_VERSIONS,
        (f"DELETE {V}/2", None, 200, 2),
        (f"GET {V}", None, 200, [1]),
        (f"GET {V}?deleted=true", None, 200, [1, 2]),
        (f"GET {V}?deletedOnly=true", None, 200, [2]),
        (f"GET {V}?deletedAsNegative=true", None, 200, [1, -2]),
        (f"GET {V}/2", None, 404, (40402, "Version 2 not found.")),
        (f"GET {V}/2?deleted=true", None, 200, {"version": 2, "deleted": True}),
        (f"GET {V}/latest", None, 200, {"version": 1}),
        (f"GET {V}/latest?deleted=true", None, 200, {"version": 1}),
    ],
    "records written with a deleted version can still be read": [
        *TWO_VERSIONS,
        ("DELETE /subjects/s", None, 200, [1, 2]),
        ("GET /schemas/ids/2", None, 200, {"schema": B["schema"], "deleted": True}),
        ("GET /schemas/ids/2/schema", None, 200, ...),
        ("GET /schemas/ids/2/subjects", None, 200, []),
        ("GET /schemas/ids/2/subjects?deleted=true", None, 200, ["s"]),
        ("GET /schemas/ids/2/versions?deleted=true", None, 200, [{"subject": "s", "version": 2}]),
    ],
    "a version is deleted softly before it is deleted for good": [
        *TWO_VERSIONS,
        (f"DELETE {V}/2?permanent=true", None, 404, (40407, NOT_SOFT)),
        (f"DELETE {V}/2", None, 200, 2),
        (f"DELETE {V}/2", None, 404, (40406, SOFT)),
        (f"DELETE {V}/2?permanent=true", None, 200, 2),
        (f"GET {V}/2?deleted=true", None, 404, 40402),
        (f"DELETE {V}/2?permanent=true", None, 404, (40402, "Version 2 not found.")),
        ("GET /schemas/ids/2", None, 404, (40403, "Schema 2 not found")),
    ],
    "the latest version can be deleted by that name": [
        *TWO_VERSIONS,
        (f"DELETE {V}/latest", None, 200, 2),
        (f"DELETE {V}/-1", None, 200, 1),
        (f"GET {V}", None, 404, 40401),
        (f"DELETE {V}/latest", None, 404, (40402, "Version -1 not found.")),
    ],
    "a subject is deleted softly before it is deleted for good": [
        *TWO_VERSIONS,
        (
            "DELETE /subjects/s?permanent=true",
            None,
            404,
            (40405, "Subject 's' was not deleted first before being permanently deleted"),
        ),
        ("DELETE /subjects/s", None, 200, [1, 2]),
        (
            "DELETE /subjects/s",
            None,
            404,
            (40404, "Subject 's' was soft deleted.Set permanent=true to delete permanently"),
        ),
        (f"GET {V}", None, 404, (40401, "Subject 's' not found.")),
        (f"GET {V}?deleted=true", None, 200, [1, 2]),
        ("DELETE /subjects/s?permanent=true", None, 200, [1, 2]),
        (f"GET {V}?deleted=true", None, 404, 40401),
        ("DELETE /subjects/s?permanent=true", None, 404, (40401, "Subject 's' not found.")),
    ],
    "only live versions count in a soft delete, all of them in one for good": [
        *TWO_VERSIONS,
        (f"DELETE {V}/1", None, 200, 1),
        ("DELETE /subjects/s", None, 200, [2]),
        ("DELETE /subjects/s?permanent=true", None, 200, [1, 2]),
    ],
    "what was never there cannot be deleted": [
        ("DELETE /subjects/s", None, 404, (40401, "Subject 's' not found.")),
        ("DELETE /subjects/s?permanent=true", None, 404, (40401, "Subject 's' not found.")),
        (f"DELETE {V}/1", None, 404, (40401, "Subject 's' not found.")),
    ],
    "a number is not given out again after a soft delete": [
        *TWO_VERSIONS,
        (f"DELETE {V}/2", None, 200, 2),
        (f"POST {V}", C, 200, {"version": 3, "id": 3}),
        (f"GET {V}", None, 200, [1, 3]),
    ],
    "a schema that comes back gets a new number and its old id, and the old number goes": [
        *TWO_VERSIONS,
        (f"DELETE {V}/2", None, 200, 2),
        (f"POST {V}", B, 200, {"version": 3, "id": 2}),
        (f"GET {V}/2?deleted=true", None, 404, 40402),
        (f"GET {V}?deleted=true", None, 200, [1, 3]),
        (f"POST {V}", B, 200, {"version": 3, "id": 2}),
    ],
    "after a delete for good of the last number it is given out again": [
        *TWO_VERSIONS,
        (f"DELETE {V}/2", None, 200, 2),
        (f"DELETE {V}/2?permanent=true", None, 200, 2),
        (f"POST {V}", C, 200, {"version": 2, "id": 3}),
    ],
    "an id is never given out again": [
        *TWO_VERSIONS,
        ("DELETE /subjects/s", None, 200, ...),
        ("DELETE /subjects/s?permanent=true", None, 200, ...),
        (f"POST {V}", A, 200, {"version": 1, "id": 3}),
    ],
    "a schema that another subject has keeps its id when one subject goes": [
        *TWO_VERSIONS,
        ("POST /subjects/t/versions", A, 200, {"id": 1}),
        ("DELETE /subjects/s", None, 200, ...),
        ("DELETE /subjects/s?permanent=true", None, 200, ...),
        ("GET /schemas/ids/1/subjects?deleted=true", None, 200, ["t"]),
        (f"POST {V}", A, 200, {"id": 1, "version": 1}),
    ],
    "a subject's config and mode go with it for good, not before": [
        *TWO_VERSIONS,
        ("PUT /config/s", {"compatibility": "FULL"}, 200, ...),
        ("PUT /mode/s", {"mode": "READWRITE"}, 200, ...),
        ("DELETE /subjects/s", None, 200, ...),
        ("GET /config/s", None, 200, {"compatibilityLevel": "FULL"}),
        ("DELETE /subjects/s?permanent=true", None, 200, ...),
        ("GET /config/s", None, 404, 40408),
        ("GET /mode/s", None, 404, 40409),
    ],
    "a config goes with the last version too": [
        (f"POST {V}", A, 200, ...),
        ("PUT /config/s", {"compatibility": "FULL"}, 200, ...),
        (f"DELETE {V}/1", None, 200, 1),
        (f"DELETE {V}/1?permanent=true", None, 200, 1),
        ("GET /config/s", None, 404, 40408),
    ],
    "deleted versions are not compared with": [
        (f"POST {V}", A, 200, ...),
        (f"POST {V}", avro("R", {"name": "b", "type": "int", "default": 1}), 200, ...),
        (f"POST {V}", avro("R", {"name": "b", "type": "string", "default": ""}), 409, 40901),
        (f"DELETE {V}/latest", None, 200, 2),
        (f"POST {V}", avro("R", {"name": "b", "type": "string", "default": ""}), 200, {"version": 3}),
    ],
}


@pytest.mark.parametrize("steps", CASES.values(), ids=CASES.keys())
def test_deletes(desk: Desk, steps: list[Step]) -> None:
    desk.walk(steps)
