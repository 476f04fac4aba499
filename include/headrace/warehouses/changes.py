"""Changes: how a warehouse's table that is there becomes the one that is wanted, and what would lose values."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headrace.share import Share

WIDER = {("integer", "bigint"), ("real", "double precision")}
DECIMAL = re.compile(r"(?:numeric|decimal)\((\d+), (\d+)\)")


@dataclass(frozen=True)
class Standing:
    """The table that is there."""

    columns: Mapping[str, str]
    """Its columns' types, as we spell them."""
    key: tuple[str, ...]
    masks: Mapping[str, str]


@dataclass(frozen=True)
class Changes:
    """What a table needs to become another one; what cannot be done without a loss is not among it."""

    renamed: Mapping[str, str]
    added: tuple[str, ...]
    widened: tuple[str, ...]
    """Columns whose values all fit their new type."""
    remade: tuple[str, ...]
    """Columns whose mask is another one, and with it their type: their values come anew."""
    emptied: tuple[str, ...]
    lossy: tuple[tuple[str, str, str], ...]
    """Columns, with the type that they have and the one that they would have."""


def changes_of(standing: Standing, share: Share, wanted: Mapping[str, str]) -> Changes:
    """How a table becomes the share's, given the types that its columns have in this warehouse.

    A column that is not shared stays, empty, so that views on it live on.
    """
    renamed = dict(_renamed(standing, share))
    now = {renamed.get(name, name): type_ for name, type_ in standing.columns.items()}
    masks = {renamed.get(name, name): mask for name, mask in standing.masks.items()}
    other = [name for name in wanted if name in now and now[name] != wanted[name]]
    widened = [name for name in other if widens(now[name], wanted[name])]
    remade = [name for name in other if name not in widened and masks.get(name) != share.masks.get(name)]
    lossy = [name for name in other if name not in widened and name not in remade]
    return Changes(
        renamed,
        added=tuple(name for name in wanted if name not in now),
        widened=tuple(widened),
        remade=tuple(remade),
        emptied=tuple(name for name in now if name not in wanted),
        lossy=tuple((name, now[name], wanted[name]) for name in lossy),
    )


def _renamed(standing: Standing, share: Share) -> Iterator[tuple[str, str]]:
    """What an alias says is only renamed."""
    free = set(standing.columns) - set(share.names)
    for column in share.columns:
        former = next((alias for alias in column.aliases if alias in free), None)
        if column.name not in standing.columns and former is not None:
            free.discard(former)
            yield former, column.name


def widens(old: str, new: str) -> bool:
    """Whether every value of one type is one of the other."""
    then, now = DECIMAL.fullmatch(old), DECIMAL.fullmatch(new)
    if then and now:
        return then[2] == now[2] and int(then[1]) <= int(now[1])
    return (old, new) in WIDER
