"""A schema's rule set: migration, domain and encoding rules, checked and kept in one form."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from headrace.registry.errors import Code, RegistryFault

RuleSet = Mapping[str, Any]
Rule = Mapping[str, Any]

DATA_MODES = frozenset({"WRITE", "READ", "WRITEREAD"})
MIGRATION_MODES = frozenset({"UPGRADE", "DOWNGRADE", "UPDOWN"})
# Which modes the rules of each phase may have, and what is said otherwise.
PHASES = {
    "migrationRules": (MIGRATION_MODES, "Migration rules can only be UPGRADE, DOWNGRADE, UPDOWN"),
    "domainRules": (DATA_MODES, "Domain rules can only be WRITE, READ, WRITEREAD"),
    "encodingRules": (DATA_MODES, "Encoding rules can only be WRITE, READ, WRITEREAD"),
}
BOTH_WAYS = ("WRITEREAD", "UPDOWN")
LONGEST_NAME = 256
ATTRIBUTES = ("name", "doc", "kind", "mode", "type", "tags", "params", "expr", "onSuccess", "onFailure", "disabled")


def sorted_rules(rule_set: RuleSet) -> RuleSet:
    """One form for all rule sets that are the same: defaults written out, tags and parameters sorted."""
    kept: dict[str, Any] = {phase: [_sorted(rule) for rule in rule_set.get(phase) or ()] for phase in PHASES}
    return {name: part for name, part in {**kept, "enableAt": rule_set.get("enableAt")}.items() if part}


def merge_rules(older: RuleSet | None, newer: RuleSet | None) -> RuleSet | None:
    """The older rules with the newer ones in place of those of the same name."""
    if older is None or newer is None:
        return newer if older is None else older
    merged: dict[str, Any] = {phase: _merge(older.get(phase) or (), newer.get(phase) or ()) for phase in PHASES}
    return sorted_rules({**merged, "enableAt": newer.get("enableAt") or older.get("enableAt")})


def check_rules(rule_set: RuleSet | None) -> None:
    """Refuse a rule set that no client could run."""
    names: set[str] = set()
    for phase, (modes, advice) in PHASES.items():
        for rule in (rule_set or {}).get(phase) or ():
            if rule.get("name") in names:
                raise _invalid(f"Found rule with duplicate name '{rule['name']}'")
            names.add(_checked_name(rule.get("name")))
            if rule.get("type") is None:
                raise _invalid("Missing rule type")
            mode = rule.get("mode") or "WRITEREAD"
            actions = f"{rule.get('onSuccess') or ''}{rule.get('onFailure') or ''}"
            if mode not in BOTH_WAYS and "," in actions:
                raise _invalid("Multiple actions only valid with WRITEREAD and UPDOWN")
            if mode not in modes:
                raise _invalid(advice)


def has_type(rule_set: RuleSet | None, type_: str) -> bool:
    """Whether any rule is of a type."""
    return any(rule.get("type") == type_ for phase in PHASES for rule in (rule_set or {}).get(phase) or ())


def _sorted(rule: Rule) -> Rule:
    parts = {
        **{name: rule.get(name) for name in ATTRIBUTES},
        "kind": rule.get("kind") or "TRANSFORM",
        "mode": rule.get("mode") or "WRITEREAD",
        "tags": sorted(set(rule.get("tags") or ())),
        "params": dict(sorted((rule.get("params") or {}).items())),
        "disabled": bool(rule.get("disabled")),
    }
    return {name: part for name, part in parts.items() if part not in (None, "", [], {})}


def _merge(older: Sequence[Rule], newer: Sequence[Rule]) -> list[Rule]:
    replaced = {rule.get("name") for rule in newer}
    return [*(rule for rule in older if rule.get("name") not in replaced), *newer]


def _checked_name(name: str | None) -> str:
    if name is None:
        raise _invalid("Missing rule name")
    if not name:
        raise _invalid("Empty rule name")
    if len(name) > LONGEST_NAME:
        raise _invalid("Rule name too long")
    if not (name[0].isalpha() or name[0] == "_"):
        raise _invalid(f"Illegal initial character in rule name: {name}")
    if not re.fullmatch(r"[\w-]*", name):
        raise _invalid(f"Illegal character in rule name: {name}")
    return name


def _invalid(why: str) -> RegistryFault:
    return RegistryFault(Code.INVALID_RULE_SET, why)
