"""A warehouse: a database that a team reads, declared once, in a file of its own; feeds name it.

A file may also name feeds itself: so a team gets rows without a change of feeds that others own, for a while if it says
until when. What it gets of a feed that names the warehouse too, the feed's own file says.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator

from headrace import layout, reading, rules
from headrace.declaration import Declared, Sharing
from headrace.errors import SettingsError
from headrace.fault import Fault, nearest
from headrace.feed import Feed

Kind = Literal["postgres", "redshift"]
ARN = r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=.@/-]+"
ROLE = re.compile(rf"default|{ARN}(,{ARN})*")
"""As Redshift takes it: its default role, or one or a chain of them by ARN."""
STAGING = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[\w!.*()-]+)*/?")


class Warehouse(Declared):
    """A database that a team reads."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    kind: Kind = Field(default="postgres", description="What kind of database it is.")
    connection: str | None = Field(
        default=None, description="The Airflow connection that loads it; `headrace_warehouse_NAME` if not given."
    )
    schema_name: str = Field(default="public", alias="schema", description="The schema in it that holds the tables.")
    readers: list[str] | None = Field(default=None, description="The roles that may read; `NAME_reader` if not given.")
    feeds: dict[str, Sharing] = Field(
        default_factory=dict, description="By name, feeds that go there though their files do not name it."
    )
    until: date | None = Field(
        default=None, description="The last day on which it is loaded; then upkeep removes its tables and this file."
    )
    iam_role: str | None = Field(
        default=None,
        description="Redshift: the IAM role by which it reads and writes what is staged; `default` if not given.",
    )
    staging: str | None = Field(
        default=None,
        description="Redshift: the bucket, and prefix, in whose `staging/` rows wait; the lake's if not given.",
    )

    @field_validator("iam_role")
    @classmethod
    def _role(cls, role: str | None) -> str | None:
        if role is not None and not ROLE.fullmatch(role):
            raise ValueError("it is default, or a role such as arn:aws:iam::123456789012:role/headrace")
        return role

    @field_validator("staging")
    @classmethod
    def _location(cls, location: str | None) -> str | None:
        if location is not None and not STAGING.fullmatch(location):
            raise ValueError("it is a bucket, and a prefix if need be, such as s3://shop-staging/headrace")
        return location

    @model_validator(mode="after")
    def _fits_its_kind(self) -> "Warehouse":
        given = [name for name in ("iam_role", "staging") if getattr(self, name) is not None]
        if given and self.kind != "redshift":
            raise ValueError(f"{' and '.join(given)} goes with kind redshift, and this is {self.kind}")
        return self

    def place(self, name: str) -> tuple[str, str]:
        """The connection and the schema where a warehouse of this name has its tables."""
        return self.connection or layout.warehouse_connection(name), self.schema_name

    def ended(self, today: date) -> bool:
        """Whether its last day is over."""
        return self.until is not None and self.until < today


Warehouses = Mapping[str, Warehouse]


def files(folder: Path) -> list[Path]:
    """The files of a folder, by name."""
    return sorted(path for path in folder.glob("*.json") if not path.name.startswith(".")) if folder.is_dir() else []


def read(path: Path) -> Warehouse:
    """One file; every fault of it is told at once."""
    try:
        text = path.read_text(encoding="utf-8")
        declared = json.loads(text)
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise SettingsError(f"{path.name}: it cannot be read as JSON: {error}.") from error
    try:
        found = Warehouse.model_validate_json(json.dumps(declared), strict=True)
    except ValidationError as error:
        faults = [reading.fault(path.name, each, root=Warehouse) for each in error.errors()]
        raise SettingsError("\n".join(map(str, faults))) from error
    if not layout.is_warehouse(path.stem):
        raise SettingsError(
            f"{path.name}: a warehouse is named by its file, in lower-case letters, digits and _, and is called none "
            f"of {', '.join(layout.STORES)}."
        )
    return found


def declared(folder: Path) -> tuple[dict[str, Warehouse], dict[str, str]]:
    """All warehouses of a folder, by name, and what is wrong with those that cannot be read."""
    good, bad = {}, {}
    for path in files(folder):
        try:
            good[path.stem] = read(path)
        except SettingsError as error:
            bad[path.stem] = str(error)
    together = dict(_together(good))
    return {name: each for name, each in good.items() if name not in together}, {**bad, **together}


def _together(found: Warehouses) -> Iterator[tuple[str, str]]:
    """Those that have one schema of one database, where each would take the others' tables for its own."""
    at = defaultdict(list)
    for name, each in found.items():
        at[each.place(name)].append(name)
    for (connection, schema), names in at.items():
        for name in names if len(names) > 1 else ():
            others = ", ".join(f"{other}.json" for other in names if other != name)
            same = f"the schema {schema} of the connection {connection} is that of {others} too"
            yield name, f"{name}.json: {same}. Give each its own; until then none of them is loaded or removed."


def named(name: str, folder: Path) -> Warehouse:
    """One warehouse, as feeds and commands ask for it."""
    good, bad = declared(folder)
    if name in bad:
        raise SettingsError(bad[name])
    if name in good:
        return good[name]
    raise SettingsError(
        f"there is no warehouse {name}: {folder / f'{name}.json'} is not there. {nearest(name, list(good))} "
        f"The least that declares one is an empty object: {{}}."
    )


def sharing(feed: Feed, warehouses: Warehouses, *, today: date) -> Feed:
    """The feed with all warehouses that get it: those that its own file names, and those that name it."""
    own, unfit_ = feed.declaration.warehouses, unfit(feed, warehouses, today=today)
    more = {name: share for name, share in _naming(feed, warehouses, today=today).items() if name not in unfit_}
    over = {name for name in own if name in warehouses and warehouses[name].ended(today)}
    if not more and not over:
        return feed
    kept = {name: share for name, share in own.items() if name not in over}
    return replace(feed, declaration=feed.declaration.model_copy(update={"warehouses": {**kept, **more}}))


def unfit(feed: Feed, warehouses: Warehouses, *, today: date) -> dict[str, list[Fault]]:
    """The warehouses that name the feed and get nothing of it, since what their files say does not fit it any more."""
    found = {name: faults(feed, name, share) for name, share in _naming(feed, warehouses, today=today).items()}
    return {name: each for name, each in found.items() if each}


def _naming(feed: Feed, warehouses: Warehouses, *, today: date) -> dict[str, Sharing]:
    """What warehouses' files say of a feed, of those that its own file does not name."""
    return {
        name: each.feeds[feed.name]
        for name, each in warehouses.items()
        if feed.name in each.feeds and name not in feed.declaration.warehouses and not each.ended(today)
    }


def misfits(name: str, declared: Warehouse, feeds: Mapping[str, Feed | None]) -> dict[str, list[Fault]]:
    """By feed, why it does not go to a warehouse whose file names it; of `feeds`, None cannot be read."""
    return {each: found for each in declared.feeds if (found := _misfits(name, each, declared.feeds[each], feeds))}


def _misfits(name: str, named: str, share: Sharing, feeds: Mapping[str, Feed | None]) -> list[Fault]:
    if named not in feeds:
        return [Fault(f"{name}.json", f"feeds.{named}", "is no feed.", nearest(named, list(feeds)), named)]
    feed = feeds[named]
    return faults(feed, name, share) if feed and name not in feed.declaration.warehouses else []


def faults(feed: Feed, name: str, share: Sharing) -> list[Fault]:
    """What is wrong with what a warehouse's file says of a feed."""
    declared = feed.declaration.model_copy(update={"warehouses": {name: share}})
    fields = {field.name: field for field in feed.fields}
    ours = (fault for fault in rules.faults(declared, fields) if fault.path.startswith("warehouses."))
    return [
        replace(fault, file=f"{name}.json", path=fault.path.replace(f"warehouses.{name}", f"feeds.{feed.name}", 1))
        for fault in ours
    ]
