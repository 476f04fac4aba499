"""References: to other subjects' versions, nested, in other contexts; and what may be deleted."""

import json

import pytest
from registry_desk import ABSENT, Desk, Step, avro, refers

LEAF = {"schema": '{"type":"record","name":"Leaf","namespace":"n","fields":[{"name":"x","type":"string"}]}'}
LEAF_2 = {
    "schema": '{"type":"record","name":"Leaf","namespace":"n","fields":'
    '[{"name":"x","type":"string"},{"name":"y","type":"string","default":""}]}'
}
TWIG = avro("Twig", {"name": "leaf", "type": "n.Leaf"}, references=[refers("n.Leaf", "leaf")])
TREE = avro("Tree", {"name": "twig", "type": "Twig"}, references=[refers("Twig", "twig")])
NESTED: list[Step] = [
    ("POST /subjects/leaf/versions", LEAF, 200, {"id": 1}),
    ("POST /subjects/twig/versions", TWIG, 200, {"id": 2}),
    ("POST /subjects/tree/versions", TREE, 200, {"id": 3}),
]
KEPT = "One or more references exist to the schema {magic=1,keytype=SCHEMA,subject=leaf,version=1}."


def missing(subject: str, version: int) -> tuple[int, str]:
    told = f'No schema reference found for subject "{subject}" and version {version}'
    return (42201, f"Invalid schema of type AVRO, details: {told}")


def json_schema(document: object, *references: object) -> dict[str, object]:
    return {"schema": json.dumps(document), "schemaType": "JSON", "references": list(references)}


CASES: dict[str, list[Step]] = {
    "references are kept and given back": [
        *NESTED,
        (
            "GET /subjects/twig/versions/1",
            None,
            200,
            {"schema": TWIG["schema"], "references": [{"name": "n.Leaf", "subject": "leaf", "version": 1}]},
        ),
        ("GET /schemas/ids/3", None, 200, {"references": [{"name": "Twig", "subject": "twig", "version": 1}]}),
        ("POST /subjects/tree", TREE, 200, {"id": 3, "version": 1}),
        ("POST /subjects/tree/versions", TREE, 200, {"id": 3, "version": 1}),
    ],
    "a reference to nothing is refused": [
        ("POST /subjects/twig/versions", TWIG, 422, missing("leaf", 1)),
        ("POST /subjects/leaf/versions", LEAF, 200, ...),
        (
            "POST /subjects/twig/versions",
            {**TWIG, "references": [refers("n.Leaf", "leaf", 9)]},
            422,
            missing("leaf", 9),
        ),
        ("POST /subjects/twig/versions", {**TWIG, "references": []}, 422, 42201),
        ("POST /subjects/twig/versions", {**TWIG, "references": [{"name": "n.Leaf", "subject": "leaf"}]}, 422, 42201),
        ("POST /compatibility/subjects/twig/versions", {**TWIG, "references": [refers("n.Leaf", "no")]}, 422, 42201),
    ],
    "a reference to the latest version is one to its number": [
        ("POST /subjects/leaf/versions", LEAF, 200, ...),
        ("POST /subjects/leaf/versions", LEAF_2, 200, ...),
        (
            "POST /subjects/twig/versions",
            {**TWIG, "references": [refers("n.Leaf", "leaf", -1)]},
            200,
            {"references": [{"name": "n.Leaf", "subject": "leaf", "version": 2}]},
        ),
        ("POST /subjects/twig", {**TWIG, "references": [refers("n.Leaf", "leaf", -1)]}, 200, {"version": 1}),
        ("POST /subjects/twig", {**TWIG, "references": [refers("n.Leaf", "leaf", 2)]}, 200, {"version": 1}),
        ("POST /subjects/twig", TWIG, 404, 40403),
    ],
    "another version of a reference is another schema": [
        *NESTED,
        ("POST /subjects/leaf/versions", LEAF_2, 200, {"id": 4}),
        (
            "POST /subjects/twig/versions",
            {**TWIG, "references": [refers("n.Leaf", "leaf", 2)]},
            200,
            {"id": 5, "version": 2},
        ),
    ],
    "the versions that are referred to count when schemas are compared": [
        *NESTED,
        ("PUT /config/leaf", {"compatibility": "NONE"}, 200, ...),
        ("POST /subjects/leaf/versions", {"schema": LEAF["schema"].replace("string", "int")}, 200, {"version": 2}),
        ("POST /subjects/twig/versions", {**TWIG, "references": [refers("n.Leaf", "leaf", 2)]}, 409, 40901),
    ],
    "who refers to a version": [
        *NESTED,
        ("GET /subjects/leaf/versions/1/referencedby", None, 200, [2]),
        ("GET /subjects/twig/versions/latest/referencedby", None, 200, [3]),
        ("GET /subjects/tree/versions/1/referencedby", None, 200, []),
        ("GET /subjects/leaf/versions/2/referencedby", None, 404, 40402),
        ("GET /subjects/none/versions/1/referencedby", None, 404, 40401),
        ("POST /subjects/other/versions", {**TWIG, "metadata": {"properties": {"a": "b"}}}, 200, {"id": 4}),
        ("GET /subjects/leaf/versions/1/referencedby", None, 200, [2, 4]),
        ("GET /subjects/leaf/versions/1/referencedby?offset=1&limit=1", None, 200, [4]),
    ],
    "what is referred to cannot be deleted": [
        *NESTED,
        ("DELETE /subjects/leaf/versions/1", None, 422, (42206, KEPT)),
        ("DELETE /subjects/leaf", None, 422, (42206, KEPT)),
        ("DELETE /subjects/twig", None, 422, 42206),
        ("GET /subjects/leaf/versions", None, 200, [1]),
    ],
    "softly deleted referrers free a soft delete, not one for good": [
        *NESTED,
        ("DELETE /subjects/tree", None, 200, [1]),
        ("DELETE /subjects/twig/versions/1", None, 200, 1),
        ("GET /subjects/leaf/versions/1/referencedby", None, 200, []),
        ("GET /subjects/leaf/versions/1/referencedby?deleted=true", None, 200, [2]),
        ("DELETE /subjects/leaf/versions/1", None, 200, 1),
        ("DELETE /subjects/leaf/versions/1?permanent=true", None, 422, (42206, KEPT)),
        ("DELETE /subjects/tree?permanent=true", None, 200, [1]),
        ("DELETE /subjects/twig?permanent=true", None, 200, [1]),
        ("DELETE /subjects/leaf?permanent=true", None, 200, [1]),
    ],
    "a deleted version cannot be referred to anew, and can still be read through": [
        *NESTED,
        ("DELETE /subjects/tree", None, 200, ...),
        ("DELETE /subjects/twig", None, 200, ...),
        ("DELETE /subjects/leaf", None, 200, ...),
        ("POST /subjects/twig/versions", TWIG, 422, missing("leaf", 1)),
        ("GET /schemas/ids/3?format=resolved", None, 200, ...),
        ("POST /subjects/twig?deleted=true", TWIG, 200, {"version": 1, "deleted": True}),
    ],
    "a subject that refers to itself can be deleted whole": [
        ("POST /subjects/s/versions", LEAF, 200, ...),
        ("PUT /config/s", {"compatibility": "NONE"}, 200, ...),
        ("POST /subjects/s/versions", {**TWIG, "references": [refers("n.Leaf", "s")]}, 200, {"version": 2}),
        ("DELETE /subjects/s/versions/1", None, 422, 42206),
        ("DELETE /subjects/s", None, 200, [1, 2]),
        ("DELETE /subjects/s?permanent=true", None, 200, [1, 2]),
    ],
    "a deleted version that others refer to stays when its schema comes back": [
        ("POST /subjects/leaf/versions", LEAF, 200, {"id": 1}),
        ("POST /subjects/leaf/versions", LEAF_2, 200, {"id": 2}),
        ("POST /subjects/twig/versions", {**TWIG, "references": [refers("n.Leaf", "leaf", 2)]}, 200, {"id": 3}),
        ("DELETE /subjects/twig", None, 200, ...),
        ("DELETE /subjects/leaf/versions/2", None, 200, 2),
        ("POST /subjects/leaf/versions", LEAF_2, 200, {"id": 2, "version": 3}),
        ("GET /subjects/leaf/versions/2?deleted=true", None, 200, {"id": 2}),
    ],
    "references stay in their context, unless they name another": [
        ("POST /subjects/:.c:leaf/versions", LEAF, 200, {"id": 1}),
        ("POST /subjects/:.c:twig/versions", TWIG, 200, {"id": 2}),
        ("POST /subjects/twig/versions", TWIG, 422, missing("leaf", 1)),
        ("POST /subjects/twig/versions", {**TWIG, "references": [refers("n.Leaf", ":.c:leaf")]}, 200, {"id": 1}),
        ("GET /subjects/:.c:leaf/versions/1/referencedby", None, 200, [1, 2]),
        ("DELETE /subjects/:.c:twig", None, 200, ...),
        ("DELETE /subjects/:.c:leaf", None, 422, 42206),
    ],
    "references with their context written out": [
        ("POST /subjects/:.c:leaf/versions", LEAF, 200, ...),
        ("POST /subjects/:.c:twig/versions", TWIG, 200, ...),
        ("GET /subjects/:.c:twig/versions/1", None, 200, {"references": [{"subject": "leaf"}]}),
        (
            "GET /subjects/:.c:twig/versions/1?referenceFormat=qualified",
            None,
            200,
            {"references": [{"subject": ":.c:leaf"}]},
        ),
        (
            "GET /schemas/ids/2?subject=:.c:twig&referenceFormat=qualified",
            None,
            200,
            {"references": [{"subject": ":.c:leaf"}]},
        ),
    ],
    "references in another order are the same when normalized": [
        ("POST /subjects/a/versions", {"schema": '{"type":"record","name":"A","fields":[]}'}, 200, ...),
        ("POST /subjects/b/versions", {"schema": '{"type":"record","name":"B","fields":[]}'}, 200, ...),
        (
            "POST /subjects/s/versions?normalize=true",
            avro(
                "R",
                {"name": "a", "type": "A"},
                {"name": "b", "type": "B"},
                references=[refers("B", "b"), refers("A", "a")],
            ),
            200,
            {"id": 3, "references": [{"name": "A"}, {"name": "B"}]},
        ),
        (
            "POST /subjects/s?normalize=true",
            avro(
                "R",
                {"name": "a", "type": "A"},
                {"name": "b", "type": "B"},
                references=[refers("A", "a"), refers("B", "b")],
            ),
            200,
            {"id": 3},
        ),
    ],
    "JSON Schemas refer to each other too": [
        (
            "POST /subjects/leaf/versions",
            json_schema({"type": "object", "properties": {"x": {"type": "string"}}}),
            200,
            ...,
        ),
        (
            "POST /subjects/twig/versions",
            json_schema({"type": "object", "properties": {"leaf": {"$ref": "leaf.json"}}}, refers("leaf.json", "leaf")),
            200,
            {"id": 2, "references": [{"name": "leaf.json", "subject": "leaf", "version": 1}]},
        ),
        (
            "POST /subjects/tree/versions",
            json_schema({"type": "object", "properties": {"twig": {"$ref": "twig.json"}}}, refers("twig.json", "twig")),
            200,
            {"id": 3},
        ),
        ("GET /subjects/leaf/versions/1/referencedby", None, 200, [2]),
        ("DELETE /subjects/leaf", None, 422, 42206),
        (
            "POST /subjects/bad/versions",
            json_schema({"type": "object", "properties": {"leaf": {"$ref": "unknown.json"}}}),
            422,
            42201,
        ),
    ],
    "a reference by a subject's other name, which may change, is refused": [
        ("POST /subjects/leaf/versions", LEAF, 200, ...),
        ("PUT /config/blatt", {"alias": "leaf"}, 200, ...),
        ("POST /subjects/twig/versions", {**TWIG, "references": [refers("n.Leaf", "blatt")]}, 422, 42201),
    ],
    "a look-up goes through other contexts, which may lack what the schema refers to": [
        ("POST /subjects/leaf/versions", LEAF, 200, ...),
        ("POST /subjects/:.c:other/versions", avro("R"), 200, ...),
        ("POST /subjects/leaf", TWIG, 404, (40403, "Schema not found")),
        ("POST /subjects/leaf", {**TWIG, "references": [refers("n.Leaf", "missing")]}, 422, 42201),
    ],
    "a schema without references has none in its answer": [
        ("POST /subjects/leaf/versions", {**LEAF, "references": []}, 200, {"references": ABSENT}),
        ("GET /subjects/leaf/versions/1", None, 200, {"references": ABSENT, "metadata": ABSENT, "ruleSet": ABSENT}),
    ],
}


@pytest.mark.parametrize("steps", CASES.values(), ids=CASES.keys())
def test_references(desk: Desk, steps: list[Step]) -> None:
    desk.walk(steps)
