"""Configs: levels and the rest, for all, a context or a subject; and metadata and rules that they add."""

import pytest
from registry_desk import ABSENT, Desk, Step, avro, optional

A, B = avro("R", "a"), avro("R", "a", optional("b"))
INVALID = (
    "Invalid compatibility level. Valid values are none, backward, forward, full, "
    "backward_transitive, forward_transitive, and full_transitive"
)
NOT_SET = "Subject 's' does not have subject-level compatibility configured"
LEVELS = [f"{way}{far}" for way in ("BACKWARD", "FORWARD", "FULL") for far in ("", "_TRANSITIVE")]

CASES: dict[str, list[Step]] = {
    "backward is the default": [
        ("GET /config", None, 200, {"compatibilityLevel": "BACKWARD", "normalize": ABSENT}),
        ("GET /config/s", None, 404, (40408, NOT_SET)),
        ("GET /config/s?defaultToGlobal=true", None, 200, {"compatibilityLevel": "BACKWARD"}),
    ],
    "every level can be set, in any case": [
        step
        for level in [*LEVELS, "NONE"]
        for step in [
            ("PUT /config", {"compatibility": level.lower()}, 200, {"compatibility": level}),
            ("GET /config", None, 200, {"compatibilityLevel": level}),
        ]
    ],
    "a level by the name that answers have for it": [
        ("PUT /config/s", {"compatibilityLevel": "FULL"}, 200, {"compatibility": "FULL"}),
    ],
    "a subject that is not there yet can be configured": [
        ("PUT /config/s", {"compatibility": "FORWARD"}, 200, {"compatibility": "FORWARD"}),
        ("GET /config/s", None, 200, {"compatibilityLevel": "FORWARD"}),
        ("GET /config", None, 200, {"compatibilityLevel": "BACKWARD"}),
    ],
    "a level that is none is refused": [
        ("PUT /config", {"compatibility": "SIDEWAYS"}, 422, (42203, INVALID)),
        ("PUT /config/s", {"compatibility": ""}, 422, (42203, INVALID)),
        ("GET /config", None, 200, {"compatibilityLevel": "BACKWARD"}),
    ],
    "what is deleted is told, and the default holds again": [
        ("PUT /config", {"compatibility": "NONE"}, 200, ...),
        ("PUT /config/s", {"compatibility": "FULL"}, 200, ...),
        ("DELETE /config/s", None, 200, {"compatibilityLevel": "FULL"}),
        ("GET /config/s?defaultToGlobal=true", None, 200, {"compatibilityLevel": "NONE"}),
        ("DELETE /config/s", None, 404, (40401, "Subject 's' not found.")),
        ("DELETE /config", None, 200, {"compatibilityLevel": "NONE"}),
        ("GET /config", None, 200, {"compatibilityLevel": "BACKWARD"}),
        ("DELETE /config", None, 200, {"compatibilityLevel": "BACKWARD"}),
    ],
    "what an update leaves out stays, and null takes it away": [
        ("PUT /config/s", {"compatibility": "FULL", "normalize": True}, 200, {"normalize": True}),
        ("PUT /config/s", {"compatibilityGroup": "v"}, 200, {"compatibility": "FULL", "normalize": True}),
        ("PUT /config/s", {"normalize": None}, 200, {"normalize": ABSENT, "compatibilityGroup": "v"}),
        ("GET /config/s", None, 200, {"compatibilityLevel": "FULL", "normalize": ABSENT, "compatibilityGroup": "v"}),
    ],
    "everything is kept and given back": [
        (
            "PUT /config/s",
            {
                "alias": "t",
                "normalize": True,
                "validateFields": False,
                "validateNewSchemas": True,
                "validateRules": False,
                "compatibility": "NONE",
                "compatibilityPolicy": "lenient",
                "compatibilityGroup": "app",
                "defaultMetadata": {"properties": {"a": "b"}},
                "overrideMetadata": {"tags": {"x": ["PII"]}},
                "defaultRuleSet": {"domainRules": [{"name": "r", "type": "CEL"}]},
                "unknown": 1,
            },
            200,
            {"compatibility": "NONE", "unknown": ABSENT},
        ),
        (
            "GET /config/s",
            None,
            200,
            {
                "alias": "t",
                "normalize": True,
                "validateFields": False,
                "validateNewSchemas": True,
                "validateRules": False,
                "compatibilityLevel": "NONE",
                "compatibilityPolicy": "LENIENT",
                "compatibilityGroup": "app",
                "defaultMetadata": {"properties": {"a": "b"}},
                "overrideMetadata": {"tags": {"x": ["PII"]}},
                "defaultRuleSet": {"domainRules": [{"name": "r", "type": "CEL"}]},
            },
        ),
    ],
    "a subject's config inherits what it leaves open, but not the level": [
        ("PUT /config", {"compatibility": "FULL", "normalize": True}, 200, ...),
        ("PUT /config/s", {"compatibilityGroup": "g"}, 200, ...),
        (
            "GET /config/s?defaultToGlobal=true",
            None,
            200,
            {"compatibilityLevel": "BACKWARD", "normalize": True, "compatibilityGroup": "g"},
        ),
    ],
    "a context's config holds for its subjects": [
        ("PUT /config/:.c:", {"compatibility": "NONE"}, 200, {"compatibility": "NONE"}),
        ("GET /config/:.c:s?defaultToGlobal=true", None, 200, {"compatibilityLevel": "NONE"}),
        ("GET /config/:.d:s?defaultToGlobal=true", None, 200, {"compatibilityLevel": "BACKWARD"}),
        ("GET /config/:.c:s", None, 404, 40408),
    ],
    "one config for all contexts": [
        ("PUT /config/:.__GLOBAL:", {"compatibility": "FORWARD"}, 200, ...),
        ("GET /config/:.c:s?defaultToGlobal=true", None, 200, {"compatibilityLevel": "FORWARD"}),
        ("GET /config/s?defaultToGlobal=true", None, 200, {"compatibilityLevel": "FORWARD"}),
        ("PUT /config", {"compatibility": "FULL"}, 200, ...),
        ("GET /config/s?defaultToGlobal=true", None, 200, {"compatibilityLevel": "FULL"}),
        ("GET /config/:.c:s?defaultToGlobal=true", None, 200, {"compatibilityLevel": "FORWARD"}),
    ],
    "the default context's config is the global one": [
        ("PUT /config/:.:", {"compatibility": "NONE"}, 200, ...),
        ("GET /config", None, 200, {"compatibilityLevel": "NONE"}),
        ("GET /config/:.:", None, 200, {"compatibilityLevel": "NONE"}),
        ("DELETE /config/:.:", None, 200, {"compatibilityLevel": "NONE"}),
        ("GET /config", None, 200, {"compatibilityLevel": "BACKWARD"}),
    ],
    "a subject in the query means nothing": [
        ("PUT /config?subject=s", {"compatibility": "FULL"}, 200, ...),
        ("GET /config", None, 200, {"compatibilityLevel": "FULL"}),
        ("GET /config/s", None, 404, 40408),
    ],
    "a name that is none cannot be configured": [
        ("PUT /config/bad%0Aname", {"compatibility": "NONE"}, 422, 42208),
        ("PUT /config/__GLOBAL", {"compatibility": "NONE"}, 422, 42208),
    ],
    "metadata that a config adds": [
        ("PUT /config/s", {"defaultMetadata": {"properties": {"a": "default", "b": "default"}}}, 200, ...),
        ("PUT /config/s", {"overrideMetadata": {"properties": {"c": "override"}}}, 200, ...),
        (
            "POST /subjects/s/versions",
            {**A, "metadata": {"properties": {"b": "sent", "c": "sent"}}},
            200,
            {"metadata": {"properties": {"a": "default", "b": "sent", "c": "override"}}},
        ),
        ("POST /subjects/s", A, 200, {"id": 1}),
    ],
    "metadata and rules are kept, sorted, and inherited by the next version": [
        (
            "POST /subjects/s/versions",
            {
                **A,
                "metadata": {"tags": {"R.a": ["PII", "GDPR"]}, "properties": {"z": "1", "a": 2}, "sensitive": ["z"]},
                "ruleSet": {"domainRules": [{"name": "r", "kind": "CONDITION", "type": "CEL", "expr": "true"}]},
            },
            200,
            {
                "metadata": {
                    "tags": {"R.a": ["GDPR", "PII"]},
                    "properties": {"a": "2", "z": "1"},
                    "sensitive": ["z"],
                },
                "ruleSet": {
                    "domainRules": [
                        {"name": "r", "kind": "CONDITION", "mode": "WRITEREAD", "type": "CEL", "disabled": False}
                    ]
                },
            },
        ),
        ("POST /subjects/s/versions", A, 200, {"version": 1}),
        ("POST /subjects/s/versions", B, 200, {"version": 2, "metadata": {"sensitive": ["z"]}, "ruleSet": ...}),
        (
            "GET /subjects/s/versions/2",
            None,
            200,
            {"ruleSet": {"domainRules": [{"name": "r"}], "migrationRules": ABSENT}},
        ),
    ],
    "a rule that is none is refused": [
        (
            "POST /subjects/s/versions",
            {**A, "ruleSet": {"domainRules": [{"type": "CEL"}]}},
            422,
            (42210, "Missing rule name"),
        ),
        (
            "POST /subjects/s/versions",
            {**A, "ruleSet": {"domainRules": [{"name": "r"}]}},
            422,
            (42210, "Missing rule type"),
        ),
        (
            "POST /subjects/s/versions",
            {**A, "ruleSet": {"domainRules": [{"name": ""}]}},
            422,
            (42210, "Empty rule name"),
        ),
        (
            "POST /subjects/s/versions",
            {**A, "ruleSet": {"domainRules": [{"name": "r", "type": "t"}, {"name": "r", "type": "t"}]}},
            422,
            (42210, "Found rule with duplicate name 'r'"),
        ),
        (
            "POST /subjects/s/versions",
            {**A, "ruleSet": {"domainRules": [{"name": "r", "type": "t", "mode": "UPGRADE"}]}},
            422,
            (42210, "Domain rules can only be WRITE, READ, WRITEREAD"),
        ),
        (
            "PUT /config",
            {"defaultRuleSet": {"migrationRules": [{"name": "r", "type": "t", "mode": "READ"}]}},
            422,
            (42210, "Migration rules can only be UPGRADE, DOWNGRADE, UPDOWN"),
        ),
        ("POST /subjects/s/versions", {**A, "ruleSet": {"domainRules": [{"name": "r", "mode": "NEVER"}]}}, 400, 400),
    ],
}


@pytest.mark.parametrize("steps", CASES.values(), ids=CASES.keys())
def test_config(desk: Desk, steps: list[Step]) -> None:
    desk.walk(steps)
