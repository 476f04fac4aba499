"""Whatever is asked in whatever order: an answer that clients can read, and tables that still fit together."""

import json
import random
from typing import Any

import pytest
from registry_desk import Desk

NAMES = (
    "a",
    "b",
    ":.c:a",
    "a",
    "b",
    ":.c:a",
    ":.c:",
    ":.",
    ":*:a",
    "%2F",
    "%00",
    "__GLOBAL",
    "%F0%9F%90%8E",
    "%ED%A0%80",
    "%FF",
)
VERSIONS = ("1", "2", "latest", "1", "2", "latest", "-1", "0", "x", "99999999999", "%31")
AVRO = (
    '"string"',
    '{"type":"record","name":"R","fields":[]}',
    '{"type":"record","name":"R","fields":[{"name":"a","type":"string","default":"x"}]}',
    '{"type":"record","name":"R","fields":[{"name":"a","type":"T"}]}',
    '{"type":"record","name":"T","fields":[]}',
    '{"type":"record","name":"O","fields":[],"feed":7}',
    *("", "{", "null", "1e999", '"\\ud800"'),
)
JSON = ('{"type":"object"}', "{}", "true", '{"$ref":"T"}', '{"type":5}', '{"$schema":"nope"}', '{"pattern":"("}', "[1]")
REFERENCES = (
    [{"name": "T", "subject": "b", "version": 1}],
    [{"name": "T", "subject": ":.c:a", "version": -1}],
    [{"name": "T"}],
    [{"name": "T", "subject": "b\0", "version": 2**40}],
    None,
)
METADATA = (
    {},
    {"properties": {"a": "b"}},
    {"properties": {"confluent:version": "2"}},
    {"properties": 5},
    {"tags": None},
)
CONFIGS = (
    {"compatibility": "NONE"},
    {"compatibility": 5},
    {"alias": "b"},
    {"alias": None},
    {"normalize": True},
    {"overrideMetadata": {"properties": {"z": "1"}}},
    {"overrideMetadata": {"properties": 5}},
    {"defaultRuleSet": {"domainRules": [5]}},
    {"validateNewSchemas": False},
)
MODES = ({"mode": "READWRITE"}, {"mode": "READWRITE"}, {"mode": "READONLY"}, {"mode": "IMPORT"}, {"mode": "x"}, {})
QUERIES = ("normalize=true", "deleted=true", "deletedOnly=true", "permanent=true", "verbose=true", "force=true")
QUERIES += ("format=resolved", "subject=%00", "offset=-1", "limit=x", "latestOnly=true", "defaultToGlobal=true")
ROUTES = (
    *["POST /subjects/{name}/versions"] * 6,
    *["DELETE /subjects/{name}", "DELETE /subjects/{name}/versions/{version}"] * 2,
    *["GET /subjects", "GET /schemas", "GET /contexts", "GET /feeds", "DELETE /contexts/{name}"],
    *["POST /subjects/{name}", "GET /subjects/{name}/versions", "GET /subjects/{name}/metadata"],
    *[f"GET /subjects/{{name}}/versions/{{version}}{rest}" for rest in ("", "/schema", "/referencedby")],
    *[f"GET /schemas/ids/{{version}}{rest}" for rest in ("", "/schema", "/subjects", "/versions")],
    *["POST /compatibility/subjects/{name}/versions", "POST /compatibility/subjects/{name}/versions/{version}"],
    *[f"{method} /{what}/{{name}}" for method in ("GET", "PUT", "DELETE") for what in ("config", "mode")],
)
TWICE = "select 1 from schemas where not is_twin group by context, digest having count(*) > 1"
ORPHANS = "select 1 from schemas where (context, id) not in (select context, id from versions)"
DANGLING = "select 1 from uses where (subject, version) not in (select subject, version from versions)"


def body(line: str, dice: random.Random) -> Any:
    if "/config" in line or "/mode" in line:
        return dice.choice(CONFIGS if "/config" in line else MODES)
    kind = dice.choice(("AVRO", "AVRO", "JSON", "PROTOBUF"))
    made: dict[str, Any] = {"schema": dice.choice(JSON if kind == "JSON" else AVRO), "schemaType": kind}
    for key, values in {
        "references": REFERENCES,
        "metadata": METADATA,
        "id": (1, 7, 2**31, -1),
        "version": (1, 2, -1),
    }.items():
        if dice.random() < 0.25:
            made[key] = dice.choice(values)
    return made


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_asked_is_answered_and_the_tables_still_fit(desk: Desk, seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(400):
        line = dice.choice(ROUTES).format(name=dice.choice(NAMES), version=dice.choice(VERSIONS))
        asked = f"{line}?{'&'.join(dice.sample(QUERIES, dice.randrange(3)))}"
        sent = json.dumps(body(line, dice)).encode() if line.startswith(("POST", "PUT")) else None
        method, path = asked.split(" ", 1)
        answer = desk.client.request(method, path, content=sent)
        assert answer.status_code < 500, f"{asked} {sent!r} → {answer.text}"
        assert answer.status_code < 400 or answer.json()["error_code"] // 100 in (
            answer.status_code,
            answer.status_code // 100,
        )
    with desk.store.reading() as tables:
        for wrong in (TWICE, ORPHANS, DANGLING):
            assert tables.connection.execute(wrong).fetchall() == []
