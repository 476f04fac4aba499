"""The oracle's rules, each by a small example that a person can check by hand."""

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pytest

from demo.feed import Feed, read_feed
from demo.generator import meanings
from demo.masks import columns, masked, shared
from demo.oracle import Told, expected, judged
from demo.record import Coordinates, Corrupt, Meaning, Tombstone, Version

LATEST = replace(
    read_feed("customers"), fields=("customer_id", "revision", "name"), personal=frozenset(), warehouses={}
)
APPEND = replace(read_feed("calls"), fields=("call_id", "duration_seconds"), personal=frozenset(), warehouses={})
GONE = Tombstone("ann")


def version(revision: int | None, name: str = "") -> Version:
    return Version({"customer_id": "ann", "revision": revision, "name": name or f"Ann {revision}"})


def call(seconds: int) -> Version:
    return Version({"call_id": "c", "duration_seconds": seconds})


def told(*meanings: Meaning, partition: int = 0) -> list[tuple[Coordinates, Meaning]]:
    return [(Coordinates(partition, offset), meaning) for offset, meaning in enumerate(meanings)]


def names(*meanings: Meaning) -> list[Any]:
    return [row["name"] for row in judged(LATEST, told(*meanings))[0]]


def test_the_highest_revision_wins_whatever_came_last() -> None:
    assert names(version(1), version(3), version(2)) == ["Ann 3"]


def test_a_redelivered_version_changes_nothing() -> None:
    assert names(version(1), version(2), version(1), version(2)) == ["Ann 2"]


def test_of_two_contents_with_one_revision_the_later_offset_wins() -> None:
    assert names(version(1, "Ann"), version(1, "Anne")) == ["Anne"]


def test_of_two_contents_with_one_revision_the_higher_partition_wins_before_the_offset() -> None:
    low: list[Told] = [(Coordinates(0, 9), version(1, "low"))]
    high: list[Told] = [(Coordinates(1, 0), version(1, "high"))]
    assert judged(LATEST, low + high)[0] == judged(LATEST, high + low)[0] == [version(1, "high").row]


def test_a_version_without_a_revision_ranks_lowest() -> None:
    assert names(version(0), version(None, "unknown")) == ["Ann 0"]


def test_a_tombstone_hides_the_row() -> None:
    assert names(version(1), version(2), GONE) == []


def test_a_late_older_version_does_not_bring_a_deleted_row_back() -> None:
    assert names(version(1), version(3), GONE, version(2)) == []


def test_a_newer_version_brings_a_deleted_row_back() -> None:
    assert names(version(1), GONE, version(2)) == ["Ann 2"]


def test_a_redelivery_of_the_deleted_revision_brings_the_row_back() -> None:
    assert names(version(1), GONE, version(1)) == ["Ann 1"]


def test_a_redelivery_of_a_revision_below_the_deleted_one_does_not() -> None:
    assert names(version(1), version(2), GONE, version(1)) == []


def test_a_tombstone_for_a_key_never_seen_hides_nothing_that_comes_later() -> None:
    assert names(GONE) == []
    assert names(GONE, version(1)) == ["Ann 1"]


def test_a_tombstone_without_a_version_before_it_still_beats_an_earlier_version_without_a_revision() -> None:
    earlier: list[Told] = [(Coordinates(0, 4), version(None, "unknown"))]
    later: list[Told] = [(Coordinates(1, 0), GONE)]
    assert judged(LATEST, earlier + later)[0] == []


def test_a_tombstone_ranks_by_the_versions_of_its_own_partition_only() -> None:
    high: list[Told] = [(Coordinates(0, 0), version(5))]
    low: list[Told] = [(Coordinates(1, 0), version(2)), (Coordinates(1, 1), GONE)]
    assert judged(LATEST, high + low)[0] == [version(5).row]
    assert judged(LATEST, low)[0] == []


def test_a_record_in_quarantine_takes_no_part() -> None:
    rows, quarantine = judged(LATEST, told(version(1), Corrupt("undecodable"), Corrupt("keyless")))
    assert rows == [version(1).row]
    assert quarantine == {Coordinates(0, 1): "undecodable", Coordinates(0, 2): "keyless"}


def test_in_append_the_first_content_stands_and_the_same_again_is_dropped() -> None:
    assert judged(APPEND, told(call(5), call(5))) == ([call(5).row], {})


def test_in_append_other_content_is_a_conflict_each_time_it_comes() -> None:
    rows, quarantine = judged(APPEND, told(call(5), call(6), call(5), call(6)))
    assert rows == [call(5).row]
    assert quarantine == {Coordinates(0, 1): "conflict", Coordinates(0, 3): "conflict"}


def test_in_append_a_damaged_record_does_not_stand() -> None:
    rows, _ = judged(APPEND, told(Corrupt("invalid"), call(6)))
    assert rows == [call(6).row]


def test_in_append_a_tombstone_is_refused_by_the_oracle() -> None:
    with pytest.raises(ValueError, match="tombstone"):
        judged(APPEND, told(call(5), Tombstone("c")))


EXAMPLES_THAT_MATTER: list[tuple[Feed, list[Meaning], set[int]]] = [
    (LATEST, [version(1), version(3), version(2)], {1}),
    (LATEST, [version(1), version(1, "Anne")], {1}),
    (LATEST, [version(1), version(3), GONE, version(2)], {1, 2}),
    (LATEST, [version(1), GONE, version(2), GONE], {3}),
    (LATEST, [version(2), Corrupt("invalid")], {0, 1}),
    (APPEND, [call(5), call(6)], {0, 1}),
]


@pytest.mark.parametrize(("feed", "meanings", "decisive"), EXAMPLES_THAT_MATTER)
def test_losing_a_decisive_record_changes_what_is_expected(
    feed: Feed, meanings: list[Meaning], decisive: set[int]
) -> None:
    whole = told(*meanings)
    changed = {
        lost for lost in range(len(whole)) if judged(feed, whole[:lost] + whole[lost + 1 :]) != judged(feed, whole)
    }
    assert changed == decisive


@pytest.mark.parametrize("example", ["orders", "customers", "calls"])
def test_no_split_into_batches_changes_the_result(example: str) -> None:
    """Only the coordinates count: in whatever order the oracle hears of the records, it says the same."""
    feed = read_feed(example)
    said = list(meanings(feed, rounds=2, size=100))
    assert by_key(feed, judged(feed, said)[0]) == by_key(feed, judged(feed, list(reversed(said)))[0])
    assert judged(feed, said)[1] == judged(feed, list(reversed(said)))[1]


def by_key(feed: Feed, rows: list[Any]) -> dict[Any, Any]:
    return {row[feed.key[0]]: row for row in rows}


@pytest.mark.parametrize(
    ("example", "warehouse", "absent"),
    [
        ("orders", "finance", set()),
        ("orders", "engineering", {"email", "note"}),
        ("calls", "finance", {"callee"}),
        ("calls", "engineering", {"caller", "callee"}),
        ("customers", "finance", set()),
        ("customers", "engineering", {"name", "phone", "birth_date"}),
    ],
)
def test_a_warehouse_has_the_columns_that_its_team_may_see(example: str, warehouse: str, absent: set[str]) -> None:
    feed = read_feed(example)
    seen = columns(feed, feed.warehouses[warehouse])
    assert seen == tuple(field for field in feed.fields if field not in absent)


def test_masks_hide_what_they_promise_to_hide() -> None:
    assert masked("last4", "+49 30 1234", mask_key="k") == "1234"
    assert masked("last4", "1234", mask_key="k") is None
    assert masked("last4", "112", mask_key="k") is None
    assert masked("year", date(1969, 12, 31), mask_key="k") == 1969
    assert masked("year", datetime(2025, 1, 1, tzinfo=UTC), mask_key="k") == 2025
    assert masked("null", "anything", mask_key="k") is None
    assert all(masked(mask, None, mask_key="k") is None for mask in ("last4", "year", "null", "hash"))


def test_a_hash_is_the_hmac_sha256_that_openssl_gives() -> None:
    # printf %s ann@example.com | openssl dgst -sha256 -hmac secret
    assert (
        masked("hash", "ann@example.com", mask_key="secret")
        == "beac5748fe881f214ea8b8f7b35dd2452f728e8939045499f8fbe659da95f40f"
    )


def test_a_mask_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(ValueError, match="year"):
        masked("year", "1969", mask_key="k")


def test_a_warehouse_row_is_the_clean_row_behind_its_masks() -> None:
    feed = read_feed("customers")
    said = list(meanings(feed, rounds=1, size=60))
    found = expected(feed, said, mask_key="k")
    assert found.published == len(said)
    assert found.warehouses["finance"] == [shared(feed, row, warehouse="finance", mask_key="k") for row in found.clean]
    assert all(
        row["email"] != seen["email"] for row, seen in zip(found.clean, found.warehouses["engineering"], strict=True)
    )
