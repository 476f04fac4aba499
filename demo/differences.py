"""What differs between the rows that must be there and the rows that are."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["missing", "unexpected", "doubled", "altered"]
Key = tuple[Any, ...]
AnyRow = Mapping[str, Any]


@dataclass(frozen=True)
class Difference:
    """One key whose rows differ, and how. `columns` tells which values differ, with the values that may be shown."""

    kind: Kind
    key: Key
    columns: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = f" in {', '.join(self.columns)}" if self.columns else ""
        return f"{self.kind}: {', '.join(map(str, self.key))}{where}"


def differences(
    expected: Iterable[AnyRow], actual: Iterable[AnyRow], *, key: tuple[str, ...], hide: Collection[str] = ()
) -> list[Difference]:
    """Row by row, typed, by key; empty when both sides are the same. Values of the columns in `hide` are not shown."""
    return sorted(_compared(_by_key(expected, key), _by_key(actual, key), hide), key=lambda found: str(found.key))


def _by_key(rows: Iterable[AnyRow], key: tuple[str, ...]) -> dict[Key, list[AnyRow]]:
    found: dict[Key, list[AnyRow]] = defaultdict(list)
    for row in rows:
        found[tuple(row.get(field) for field in key)].append(row)
    return found


def _compared(
    expected: dict[Key, list[AnyRow]], actual: dict[Key, list[AnyRow]], hide: Collection[str]
) -> Iterator[Difference]:
    for key in expected.keys() - actual.keys():
        yield Difference("missing", key)
    for key in actual.keys() - expected.keys():
        yield Difference("unexpected", key)
    for key in expected.keys() & actual.keys():
        if len(actual[key]) > 1:
            yield Difference("doubled", key)
        if not _same(expected[key][0], actual[key][0]):
            yield Difference("altered", key, tuple(_altered(expected[key][0], actual[key][0], hide)))


def _same(expected: AnyRow, actual: AnyRow) -> bool:
    return expected == actual and all(type(value) is type(actual[column]) for column, value in expected.items())


def _altered(expected: AnyRow, actual: AnyRow, hide: Collection[str]) -> Iterator[str]:
    for column in expected.keys() - actual.keys():
        yield f"{column} (no such column)"
    for column in actual.keys() - expected.keys():
        yield f"{column} (a column that must not be there)"
    for column in expected.keys() & actual.keys():
        want, got = expected[column], actual[column]
        if want != got or type(want) is not type(got):
            yield column if column in hide else f"{column} ({want!r} expected, {got!r} found)"
