"""Who may do what: the table of docs/registry-access.md, walked for every route of the running registry."""

import base64
import http.client
import json
import re
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import registry_users

from stack.settings import REPOSITORY

PAGE = REPOSITORY / "docs" / "registry-access.md"
ROLES = ("anonymous", "viewer", "user", "op", "admin")
BESIDES = ("GET /docs", "GET /openapi.json")
"""Routes that an application's own description leaves out."""
SCHEMA = {
    "schema": json.dumps({"type": "record", "name": "Row", "fields": [{"name": "id", "type": "string"}]}),
    "metadata": {"properties": {"owner": "roles"}},
}
BODIES: dict[str, Any] = {
    "POST": SCHEMA,
    "PUT /config": {"compatibility": "BACKWARD"},
    "PUT /mode": {"mode": "READWRITE"},
}


@dataclass(frozen=True)
class Row:
    """A row of the table: which routes, and each role's status."""

    routes: tuple[str, ...]
    statuses: dict[str, int]

    def holds(self, route: str) -> bool:
        # A wildcard stands for what follows; braces are part of a route's own name.
        return any(fnmatchcase(route, pattern.replace("[", "[[]")) for pattern in self.routes)


def table() -> list[Row]:
    rows = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 1 + len(ROLES) and all(cell.isdecimal() for cell in cells[1:]):
            statuses = dict(zip(ROLES, map(int, cells[1:]), strict=True))
            rows.append(Row(tuple(re.findall(r"`([A-Z]+ /[^`]*)`", cells[0])), statuses))
    return rows


ROWS = table()


def row_of(route: str) -> Row | None:
    """The row of a route; one that names it exactly comes before one with a wildcard."""
    exact = [row for row in ROWS if route in row.routes]
    return next(iter([*exact, *(row for row in ROWS if row.holds(route))]), None)


@pytest.fixture(scope="module")
def clients(stack: Any) -> Iterator[dict[str, httpx.Client]]:
    """The registry as each role sees it."""
    signed_in = {role: (role, registry_users.password(role)) for role in ROLES if role != "anonymous"}
    made = {role: httpx.Client(base_url=registry_users.url(), auth=signed_in.get(role), timeout=30) for role in ROLES}
    yield made
    for each in made.values():
        each.close()


@pytest.fixture(scope="module")
def routes(clients: dict[str, httpx.Client]) -> list[str]:
    """Every route of the application, by its own description."""
    described = clients["admin"].get("/openapi.json").raise_for_status().json()["paths"]
    return [f"{method.upper()} {path}" for path, methods in described.items() for method in methods] + list(BESIDES)


@dataclass(frozen=True)
class Ground:
    """What a request can be about: a subject of its own with a schema, a config and a mode."""

    subject: str
    id: int
    guid: str

    def path(self, template: str) -> str:
        known = {
            "subject": self.subject,
            "version": "1",
            "id_": self.id,
            "guid": self.guid,
            "name": "orders",
            "context": self.subject,
        }
        return template.format(**known)


def prepared(admin: httpx.Client) -> Ground:
    subject = f"roles-{uuid.uuid4()}"
    made = admin.post(f"/subjects/{subject}/versions", json=SCHEMA).raise_for_status().json()
    admin.put(f"/config/{subject}", json=BODIES["PUT /config"]).raise_for_status()
    admin.put(f"/mode/{subject}", json=BODIES["PUT /mode"]).raise_for_status()
    return Ground(subject, made["id"], made.get("guid", ""))


def asked(client: httpx.Client, route: str, ground: Ground) -> int:
    method, _, template = route.partition(" ")
    body = next((body for start, body in BODIES.items() if route.startswith(start)), None)
    params = {"subject": ground.subject} if template.startswith("/v1/metadata") else {}
    return client.request(method, ground.path(template), json=body, params=params).status_code


def test_every_route_has_a_row_and_every_row_a_route(routes: list[str]) -> None:
    assert [route for route in routes if row_of(route) is None] == []
    assert [row.routes for row in ROWS if not any(row_of(route) is row for route in routes)] == []


@pytest.mark.parametrize("role", ROLES)
def test_every_route_answers_each_role_as_the_table_says(
    clients: dict[str, httpx.Client], routes: list[str], role: str
) -> None:
    differing, grounds = {}, [prepared(clients["admin"])]
    for route in routes:
        status, row = asked(clients[role], route, grounds[-1]), row_of(route)
        if row and status != row.statuses[role]:
            differing[route] = (status, row.statuses[role])
        if not route.startswith("GET"):
            grounds.append(prepared(clients["admin"]))
    for ground in grounds:
        clients["admin"].delete(f"/subjects/{ground.subject}")
        clients["admin"].delete(f"/subjects/{ground.subject}", params={"permanent": True})
    assert differing == {}


@pytest.mark.parametrize("path", ["/nothing", "/docs/oauth2-redirect", "/redoc", "/subjects/../feeds"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"])
def test_nobody_learns_anything_unless_signed_in(clients: dict[str, httpx.Client], method: str, path: str) -> None:
    assert clients["anonymous"].request(method, path).status_code == httpx.codes.UNAUTHORIZED


@pytest.mark.parametrize(
    "path",
    [
        "/contexts/x/subjects/s/versions",
        "/contexts/x/contexts/y/subjects/s/versions",
        "/contexts/compatibility/subjects/s/versions",
        "//subjects/s/versions",
        "/subjects/s/versions/",
        "/%73ubjects/s/versions",
        "/subjects/a%2Fb/versions",
    ],
)
def test_a_change_by_another_spelling_of_its_path_takes_permission_too(
    clients: dict[str, httpx.Client], path: str
) -> None:
    assert clients["viewer"].post(path, json=SCHEMA).status_code == httpx.codes.FORBIDDEN


@pytest.mark.parametrize("header", ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"])
def test_a_method_in_a_header_changes_nothing(clients: dict[str, httpx.Client], header: str) -> None:
    asked = clients["viewer"].get("/config", headers={header: "DELETE"})
    assert (asked.status_code, "compatibilityLevel" in asked.json()) == (200, True)
    assert clients["viewer"].put("/config", headers={header: "GET"}, json={}).status_code == httpx.codes.FORBIDDEN


@pytest.mark.parametrize("path", ["/compatibility/../subjects/s/versions", "/compatibility/%2e%2e/subjects/s/versions"])
def test_a_step_back_in_a_path_leads_nowhere(stack: Any, path: str) -> None:
    # httpx would take the step itself.
    base, viewer = urlsplit(registry_users.url()), f"viewer:{registry_users.password('viewer')}"
    headers = {"Authorization": f"Basic {base64.b64encode(viewer.encode()).decode()}"}
    with closing(http.client.HTTPConnection(base.netloc)) as wire:
        wire.request("POST", base.path + path, body=json.dumps(SCHEMA), headers=headers)
        assert wire.getresponse().status == httpx.codes.NOT_FOUND


@pytest.mark.parametrize("path", ["/contexts/x/subjects/s", "/subjects/a%2Fversions"])
def test_a_look_up_in_a_context_or_of_a_name_with_a_slash_takes_none(
    clients: dict[str, httpx.Client], path: str
) -> None:
    assert clients["viewer"].post(path, json=SCHEMA).json()["error_code"] == 40401
