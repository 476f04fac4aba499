"""What goes over the wire: content types, requests that cannot be read, and what the server tells of itself."""

from typing import Any

import pytest
from registry_desk import Desk, Step, avro

from headrace.registry.bodies import MOST_BYTES

V1, ANY, JSON = "application/vnd.schemaregistry.v1+json", "application/vnd.schemaregistry+json", "application/json"
A = avro("R", "a")

CASES: dict[str, list[Step]] = {
    "that it is there": [("GET /", None, 200, {}), ("POST /", {}, 200, {})],
    "what it is": [
        ("GET /v1/metadata/version", None, 200, {"version": "8.0.0", "commitId": ...}),
        ("GET /v1/metadata/deployment", None, 200, {"attributes": []}),
        ("GET /v1/metadata/id", None, 200, {"scope": {"path": [], "clusters": {"schema-registry-cluster": ...}}}),
    ],
    "paths that are none": [
        ("GET /nonsense", None, 404, (404, "HTTP 404 Not Found")),
        ("GET /subjects/s/versions/1/nonsense", None, 404, (404, "HTTP 404 Not Found")),
        ("PATCH /subjects", None, 405, (405, "HTTP 405 Method Not Allowed")),
        ("DELETE /schemas/ids/1", None, 405, 405),
        ("GET /subjects?offset=x", None, 404, 404),
        ("GET /schemas?offset=99999999999999999999", None, 404, 404),
        ("GET /subjects//versions", None, 404, (404, "HTTP 404 Not Found")),
        ("GET " + "/contexts/c" * 3000, None, 405, 405),
        ("GET /schemas/ids/99999999999", None, 404, 40403),
    ],
    "a slash at the end changes nothing": [
        ("POST /subjects/s/versions/", A, 200, {"id": 1}),
        ("GET /subjects/", None, 200, ["s"]),
        ("GET /subjects/s/versions/1/", None, 200, {"id": 1}),
    ],
    "bodies that are none": [
        ("POST /subjects/s/versions", [], 400, 400),
        ("POST /subjects/s/versions", {"schema": 1.5, "references": 3}, 400, 400),
        ("POST /subjects/s/versions", {"schema": {"type": "string"}}, 400, 400),
        ("POST /subjects/s/versions", {"version": "x"}, 400, 400),
        ("POST /subjects/s/versions", None, 422, 422),
        ("PUT /config", None, 422, 422),
        ("PUT /mode", {"mode": []}, 400, 400),
    ],
    "what is not known in a body is left aside": [
        ("POST /subjects/s/versions", {**A, "unknown": 1, "schemaTagsToAdd": None}, 200, {"id": 1}),
    ],
    "characters that cannot be kept": [
        ("POST /subjects/s/versions", {**A, "metadata": {"properties": {"a": "\0"}}}, 422, 42201),
        ("GET /subjects/%00/versions", None, 422, 42201),
    ],
    "characters of every kind": [
        (
            "POST /subjects/s/versions",
            avro("R", {"name": "f", "type": "string", "doc": "žluťoučký \U0001f40e \"'\\ % %s %d {}"}),
            200,
            {"id": 1},
        ),
        ("GET /subjects/s/versions/1", None, 200, ...),
        ("POST /subjects/s/versions", avro("R", "f", {"name": "g", "type": "string"}), 409, 40901),
    ],
    "what can be got can be asked about": [
        ("POST /subjects/s/versions", A, 200, {"id": 1}),
        ("HEAD /subjects/s/versions/1", None, 200, ...),
        ("HEAD /subjects/t/versions/1", None, 404, ...),
        ("HEAD /compatibility/subjects/s/versions", None, 405, ...),
    ],
    "its own description": [("GET /openapi.json", None, 200, {"openapi": ...})],
}


@pytest.mark.parametrize("steps", CASES.values(), ids=CASES.keys())
def test_wire(desk: Desk, steps: list[Step]) -> None:
    desk.walk(steps)


@pytest.mark.parametrize(
    ("accept", "status", "answered"),
    [
        (None, 200, V1),
        ("*/*", 200, V1),
        ("application/*", 200, V1),
        (V1, 200, V1),
        (ANY, 200, ANY),
        (JSON, 200, JSON),
        (f"{V1}, {ANY}, {JSON}", 200, V1),
        (f"{JSON}; q=0.9, {V1}; q=0.1", 200, JSON),
        ("text/html, */*; q=0.1", 200, V1),
        ("text/html", 406, V1),
        (f"{JSON}; q=0", 406, V1),
    ],
)
def test_an_answer_comes_in_the_type_that_was_asked_for(
    desk: Desk, accept: str | None, status: int, answered: str
) -> None:
    answer = desk.ask("GET /subjects", headers={} if accept is None else {"accept": accept})
    assert (answer.status_code, answer.headers["content-type"]) == (status, answered)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (V1, 200),
        (ANY, 200),
        (JSON, 200),
        (f"{JSON}; charset=utf-8", 200),
        ("application/octet-stream", 200),
        (None, 200),
        ("text/plain", 415),
        ("application/xml", 415),
    ],
)
def test_a_body_is_taken_in_the_types_that_are_json(desk: Desk, sent: str | None, status: int) -> None:
    headers: dict[str, Any] = {} if sent is None else {"content-type": sent}
    answer = desk.client.post("/subjects/s/versions", content=b'{"schema": "\\"string\\""}', headers=headers)
    assert answer.status_code == status
    if status == 415:
        assert answer.json() == {"error_code": 415, "message": "HTTP 415 Unsupported Media Type"}


def test_a_body_that_is_not_json_is_a_bad_request(desk: Desk) -> None:
    answer = desk.client.post("/subjects/s/versions", content=b"{", headers={"content-type": JSON})
    assert (answer.status_code, answer.json()["error_code"]) == (400, 400)


@pytest.mark.parametrize("chunks", [[b'{"schema": "' + b" " * MOST_BYTES], [b" " * 2**20] * 5])
def test_a_body_that_is_too_large_is_not_read_to_its_end(desk: Desk, chunks: list[bytes]) -> None:
    answer = desk.client.post("/subjects/s/versions", content=iter(chunks), headers={"content-type": JSON})
    assert (answer.status_code, answer.json()["error_code"]) == (413, 413)


@pytest.mark.parametrize("depth", [100, 400, 700, 100_000])
@pytest.mark.parametrize("query", ["", "?normalize=true"])
@pytest.mark.parametrize(
    ("type_", "begin", "end"),
    [
        ("AVRO", '{"type":"array","items":', "}"),
        ("JSON", '{"properties":{"a":', "}}"),
        ("JSON", '{"x-other":', "}"),
    ],
)
def test_what_is_nested_too_deeply_is_refused_and_no_fault_of_the_server(
    desk: Desk, type_: str, begin: str, end: str, query: str, depth: int
) -> None:
    inner = '"int"' if type_ == "AVRO" else "{}"
    schema = {"schema": begin * depth + inner + end * depth, "schemaType": type_}
    for path in (f"/subjects/s/versions{query}", "/subjects/s", "/compatibility/subjects/s/versions"):
        assert desk.client.post(path, json=schema).status_code in (200, 404, 422), path


def test_the_manual_tells_every_route_and_fetches_nothing_from_elsewhere(desk: Desk) -> None:
    page = desk.client.get("/docs", headers={"accept": "text/html,*/*;q=0.8"})
    assert page.headers["content-type"].startswith("text/html")
    assert "//" not in page.text
    assert all(path in page.text for path in desk.ask("GET /openapi.json").json()["paths"])


def test_every_route_is_described(desk: Desk) -> None:
    paths = desk.ask("GET /openapi.json").json()["paths"]
    assert all(operation.get("summary") for operations in paths.values() for operation in operations.values())
