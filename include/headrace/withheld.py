"""Withheld columns: from which warehouses a column was dropped or masked, as the clean table itself remembers it.

Declarations tell it of the fields that there are now; of one that the feed has dropped they may say nothing any more,
and its old values are still in the table. So the table has a note of every column since it was there.
"""

import json
from collections.abc import Mapping

from headrace.declaration import Sharing
from headrace.feed import Feed
from headrace.field import Field

PROPERTY = "headrace.withheld"
"""The table property: a JSON object of all columns, each with its warehouses, and whether it was withheld from them."""

Told = Mapping[str, bool]
"""By warehouse, whether a column was withheld from it."""


def note(feed: Feed, before: str | None) -> str:
    """The property's text for a feed as it is now, with what is there already about columns that it dropped."""
    noted = _noted(before)
    return json.dumps({**noted, **{field.name: _told(field, feed, noted) for field in feed.fields}}, sort_keys=True)


def _told(field: Field, feed: Feed, noted: Mapping[str, Told]) -> Told:
    """Of warehouses that are named no more, only those from which it was withheld: others may take their names."""
    before = next((noted[name] for name in (field.name, *field.aliases) if name in noted), {})
    former = {warehouse: True for warehouse, withheld in before.items() if withheld}
    return {**former, **{name: _withholds(share, field) for name, share in feed.declaration.warehouses.items()}}


def _withholds(share: Sharing, field: Field) -> bool:
    left_out = field.name in share.drop or (field.pii is not None and field.name not in share.keep)
    return left_out or field.name in share.mask


def reaches(column: str, warehouse: str, *, noted: str | None) -> bool:
    """Whether a column that the feed has no more goes to a warehouse.

    To one that was not there then it goes if it was withheld from nobody. What nothing is noted about is kept back.
    """
    told = _noted(noted).get(column)
    if told is None:
        return False
    return not told[warehouse] if warehouse in told else not any(told.values())


def _noted(text: str | None) -> Mapping[str, Told]:
    read: Mapping[str, Told] = json.loads(text) if text else {}
    return read
