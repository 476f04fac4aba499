"""Judging: hold what a workshop's tables show against the oracle."""

import json
from collections.abc import Mapping, Sequence

from workshop import Workshop

from demo.feed import Feed as OracleFeed
from demo.oracle import Told, judged
from demo.record import Meaning, Tombstone, Version

BECAME = ("duplicates", "superseded", "inserted", "updated", "deleted")


def oracle(shop: Workshop) -> OracleFeed:
    """The feed as the oracle knows it."""
    declared = shop.feed.declaration
    return OracleFeed(
        name=shop.feed.name,
        example=shop.feed.name,
        form="avro",
        schema={},
        fields=tuple(field.name for field in shop.feed.fields),
        personal=frozenset(),
        key=tuple(declared.key),
        order=tuple(declared.order),
        merge=declared.merge,
        partitions=declared.topic.partitions,
        warehouses={},
        deletes=(declared.delete.field, tuple(declared.delete.one_of)) if declared.delete else None,
    )


def compare(shop: Workshop, told: Sequence[Told]) -> None:
    """Raises with the lives of the keys that differ."""
    expected, quarantine = judged(oracle(shop), told)
    found = {row["id"]: row for row in shop.clean()}
    wanted = {str(row["id"]): row for row in expected}
    differing = sorted(key for key in {*found, *wanted} if found.get(key) != wanted.get(key))
    said = [{"found": found.get(key), "wanted": wanted.get(key), "life": _life(told, key)} for key in differing[:3]]
    assert not differing, json.dumps(said, indent=1, default=str)
    assert shop.quarantine() == {tuple(place): reason for place, reason in quarantine.items()}


def _life(told: Sequence[Told], key: str) -> list[str]:
    return [f"{tuple(place)} {meaning}" for place, meaning in told if _key(meaning) == key]


def _key(meaning: Meaning) -> object:
    match meaning:
        case Version(row):
            return row["id"]
        case Tombstone(key):
            return key
    return None


def assert_adds_up(accounts: Mapping[str, int]) -> None:
    """Each record that was read is accounted for once."""
    assert accounts["read"] == accounts["decoded"] + accounts["quarantined"] + accounts.get("forgotten", 0), accounts
    assert accounts["decoded"] == sum(accounts[name] for name in BECAME), accounts
    assert all(count >= 0 for count in accounts.values()), accounts
