"""The oracle: which rows must end up where, decided key by key in plain Python from the promises alone.

It shares no code with the package that it judges, and is slow and literal on purpose: every version of every key is
ranked, and the highest wins.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from demo.feed import Feed
from demo.masks import shared
from demo.record import Coordinates, Corrupt, Meaning, Reason, Row, Tombstone, Value, Version

Key = tuple[Value, ...]
Told = tuple[Coordinates, Meaning]
# The order fields, each as (is it there, its value) so that nulls rank lowest; partition; offset; 1 for a tombstone,
# which stands just above the version that it deletes.
Rank = tuple[tuple[tuple[bool, Value], ...], int, int, int]


@dataclass(frozen=True)
class Expected:
    """What must stand in every store once all records went through."""

    published: int
    clean: list[Row]
    quarantine: Mapping[Coordinates, Reason]
    warehouses: Mapping[str, list[Row]]


def expected(feed: Feed, told: Iterable[Told], *, mask_key: str) -> Expected:
    """What must come of these records, which are all that the topic holds."""
    records = list(told)
    clean, quarantine = judged(feed, records)
    warehouses: dict[str, list[Row]] = {
        warehouse: [shared(feed, row, warehouse=warehouse, mask_key=mask_key) for row in clean]
        for warehouse in feed.warehouses
    }
    return Expected(len(records), clean, quarantine, warehouses)


def judged(feed: Feed, told: Iterable[Told]) -> tuple[list[Row], dict[Coordinates, Reason]]:
    """The visible rows and the quarantine. What is in quarantine takes no part in the merge."""
    lives: dict[Key, list[Told]] = defaultdict(list)
    quarantine: dict[Coordinates, Reason] = {}
    for coordinates, meaning in told:
        if isinstance(meaning, Corrupt):
            quarantine[coordinates] = meaning.reason
        else:
            lives[_key(feed, meaning)].append((coordinates, meaning))
    if feed.merge == "append":
        appended = [append(life) for life in lives.values()]
        conflicts: dict[Coordinates, Reason] = {place: "conflict" for _, others in appended for place in others}
        return [row for row, _ in appended], quarantine | conflicts
    rows = (RULES[feed.merge](feed, life) for life in lives.values())
    return [row for row in rows if row is not None], quarantine


def latest(feed: Feed, life: list[Told]) -> Row | None:
    """The highest version of one key, or nothing when a delete is the highest."""
    _, winner = max(life, key=lambda told: _rank(feed, told, life=life))
    return winner.row if isinstance(winner, Version) and not _deletes(feed, winner) else None


def first(feed: Feed, life: list[Told]) -> Row | None:
    """The lowest version of one key, or nothing once it was ever deleted."""
    if any(_deletes(feed, meaning) for _, meaning in life):
        return None
    _, winner = min(life, key=lambda told: _rank(feed, told, life=life))
    return winner.row if isinstance(winner, Version) else None


def patch(feed: Feed, life: list[Told]) -> Row | None:
    """Each field's newest value that is not null, of the versions above the newest delete."""
    ranked = sorted(((_rank(feed, told, life=life), told[1]) for told in life), key=lambda each: each[0])
    deletes = [place for place, (_, meaning) in enumerate(ranked) if _deletes(feed, meaning)]
    alive = [meaning.row for _, meaning in ranked[deletes[-1] + 1 if deletes else 0 :] if isinstance(meaning, Version)]
    return _patched(alive) if alive else None


def _patched(rows: list[Row]) -> Row:
    """Later rows over earlier ones, where they say something; a nested row is patched in turn."""
    names = rows[-1]
    merged: dict[str, Value] = {}
    for name in names:
        said = [row[name] for row in rows if row.get(name) is not None]
        nested = [each for each in said if isinstance(each, Mapping)]
        merged[name] = _or_nothing(_patched(nested)) if nested else said[-1] if said else None
    return merged


def _or_nothing(row: Row) -> Row | None:
    return row if any(value is not None for value in row.values()) else None


def _deletes(feed: Feed, meaning: Version | Tombstone | Corrupt) -> bool:
    if isinstance(meaning, Tombstone):
        return True
    if feed.deletes is None or not isinstance(meaning, Version):
        return False
    field, values = feed.deletes
    return meaning.row[field] in values


def append(life: list[Told]) -> tuple[Row, list[Coordinates]]:
    """The first version of one key, and the coordinates of those that say something else."""
    versions = [(coordinates, meaning.row) for coordinates, meaning in life if isinstance(meaning, Version)]
    if len(versions) < len(life):
        raise ValueError(
            "A tombstone means nothing in a feed that appends: the oracle cannot say what must come of it."
        )
    _, stands = min(versions, key=lambda version: version[0])
    return stands, [coordinates for coordinates, row in versions if row != stands]


def _rank(feed: Feed, told: Told, *, life: list[Told]) -> Rank:
    coordinates, meaning = told
    if isinstance(meaning, Version):
        return _version_rank(feed, coordinates, row=meaning.row)
    before = [
        _version_rank(feed, place, row=other.row)
        for place, other in life
        if isinstance(other, Version) and place.partition == coordinates.partition and place.offset < coordinates.offset
    ]
    nothing = tuple((False, None) for _ in feed.order)
    return (*max(before)[:3], 1) if before else (nothing, *coordinates, 1)


def _version_rank(feed: Feed, coordinates: Coordinates, *, row: Row) -> Rank:
    order = tuple((row[field] is not None, row[field]) for field in feed.order)
    return (order, *coordinates, 0)


def _key(feed: Feed, meaning: Version | Tombstone) -> Key:
    return (meaning.key,) if isinstance(meaning, Tombstone) else tuple(meaning.row[field] for field in feed.key)


RULES: Mapping[str, Callable[[Feed, list[Told]], Row | None]] = {"latest": latest, "first": first, "patch": patch}
