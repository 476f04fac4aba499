"""Warehouses as people ask for them: one more for a team, for a while if need be, and away with it again."""

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from headrace import feed as feeds
from headrace import layout, warehouse
from headrace.airflow import connections, feed_file
from headrace.declaration import Sharing
from headrace.errors import HeadraceError, SettingsError
from headrace.feed import Feed
from headrace.settings import Settings
from headrace.warehouse import Warehouse

if TYPE_CHECKING:
    from headrace.stages.load import Loaded
    from headrace.warehouses.load import Held

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Listed:
    """A warehouse and what it holds; `fault` tells why that is not known, `misfits` why a feed does not go there."""

    name: str
    declared: Warehouse | None
    feeds: tuple[str, ...] = ()
    held: "tuple[Held, ...]" = ()
    fault: str = ""
    misfits: Mapping[str, str] = field(default_factory=dict)


def declare(name: str, shares: Mapping[str, Sharing], *, until: date | None, connection: str | None) -> Path:
    """Write a new warehouse's file; what it says of a feed has to fit the feed.

    One that is there and says the same is left as it is: whoever was interrupted may ask again.
    """
    folder = Settings().warehouses
    path = folder / f"{name}.json"
    if not layout.is_warehouse(name):
        raise SettingsError(
            f"{name!r} is no name of a warehouse: lower-case letters, digits and _, first a letter, and none of "
            f"{', '.join(layout.STORES)}."
        )
    if until is not None and until < datetime.now(UTC).date():
        raise SettingsError(f"its last day, {until}, is over. Choose a later one.")
    wanted = {feed: _whole(feeds.named(feed, Settings().schemas), share) for feed, share in shares.items()}
    faults = [
        fault
        for feed, share in wanted.items()
        for fault in warehouse.faults(feeds.named(feed, Settings().schemas), name, share)
    ]
    if faults:
        raise SettingsError("\n".join(map(str, faults)))
    declared = Warehouse(
        connection=connection or layout.WAREHOUSES_CONNECTION, schema_name=name, feeds=wanted, until=until
    )
    if path.exists() and warehouse.read(path) != declared:
        raise SettingsError(f"there is a warehouse {name} already: {path}. Choose another name, or change that file.")
    others = {other: each for other, each in warehouse.declared(folder)[0].items() if other != name}
    if clash := [other for other, each in others.items() if each.place(other) == declared.place(name)]:
        raise SettingsError(
            f"the warehouse {clash[0]} has the schema {name} of the connection {declared.place(name)[0]} already. "
            f"Choose another name, or another connection."
        )
    folder.mkdir(exist_ok=True)
    told = declared.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    # Under a name that is not read, until it is whole.
    written = path.with_name(f".{path.name}")
    written.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    written.replace(path)
    return path


def _whole(feed: Feed, share: Sharing) -> Sharing:
    """What a warehouse gets of a feed: a personal key that nothing is said of goes there hashed, for it needs a key."""
    named = {*share.keep, *share.mask, *share.drop}
    hashed = {name: "hash" for name in feed.declaration.key if name in feed.personal and name not in named}
    return share.model_copy(update={"mask": {**share.mask, **hashed}})


def fill(name: str) -> "Iterator[tuple[str, Callable[[], Loaded]]]":
    """A warehouse's feeds, each with what loads it; its schema and roles are made first."""
    from headrace.stages import load

    connections.warehouse(name).open()
    for feed in warehouse.named(name, Settings().warehouses).feeds:
        shared = feed_file.sharing(feeds.named(feed, Settings().schemas))

        def loaded(shared: Feed = shared) -> "Loaded":
            return load.load(
                shared,
                lake=connections.lake(Settings()),
                warehouse=connections.warehouse(name),
                mask_key=connections.mask_key(),
            )

        yield feed, loaded


def remove(name: str) -> list[str]:
    """Take away what a warehouse holds, and its file; a feed's own file may not name it any more."""
    path = Settings().warehouses / f"{name}.json"
    warehouse.named(name, path.parent)
    if named := [feed.name for feed in _feeds() if name in feed.declaration.warehouses]:
        raise SettingsError(
            f"warehouse {name}: the files of {', '.join(named)} name it. Take it out of them; nothing was removed."
        )
    gone = connections.warehouse(name).remove()
    path.unlink()
    return gone


def remove_ended() -> list[str]:
    """Take away the warehouses whose last day is over."""
    declared, _ = warehouse.declared(Settings().warehouses)
    today = datetime.now(UTC).date()
    removed, faults = [], []
    for name, each in declared.items():
        if not each.ended(today):
            continue
        try:
            gone = remove(name)
        except (HeadraceError, OSError) as error:
            faults.append(str(error))
            continue
        removed.append(name)
        log.info("warehouse %s: its last day was %s; removed %s", name, each.until, ", ".join(gone) or "it")
    if faults:
        raise SettingsError("Not every warehouse whose last day is over could be removed: " + "; ".join(faults))
    return removed


def every() -> list[Listed]:
    """All warehouses, with what each of them holds."""
    declared, bad = warehouse.declared(Settings().warehouses)
    read = {path.stem: feeds.read_file(path) for path in feeds.files(Settings().schemas)}
    known = {name: None if each.faults else each.feed for name, each in read.items()}
    found = [_listed(name, each, known) for name, each in declared.items()]
    return sorted(
        [*found, *(Listed(name, None, fault=fault) for name, fault in bad.items())], key=lambda each: each.name
    )


def _listed(name: str, declared: Warehouse, known: Mapping[str, Feed | None]) -> Listed:
    named = {feed for feed, each in known.items() if each and name in each.declaration.warehouses} | set(declared.feeds)
    found = warehouse.misfits(name, declared, known)
    misfits = {feed: " ".join(map(str, faults)) for feed, faults in found.items()}
    try:
        held = tuple(connections.warehouse(name).tables())
    except HeadraceError as error:
        return Listed(name, declared, tuple(sorted(named)), fault=str(error))
    return Listed(name, declared, tuple(sorted(named)), held, misfits=misfits)


def _feeds() -> list[Feed]:
    """The feeds whose files can be read."""
    found = (feeds.read_file(path) for path in feeds.files(Settings().schemas))
    return [each.feed for each in found if each.feed and not each.faults]
