"""Transform, planned: what a Spark job needs to turn new archive records into rows on a branch of the clean table.

The plan is all that the job gets, so the same job runs over Spark Connect, by spark-submit, and in tests.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field
from pyiceberg.schema import index_by_name
from pyiceberg.table import Table
from pyiceberg.types import (
    BooleanType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

from headrace import away, clean, effort, forgotten, layout, quarantine
from headrace.columns import field_types, union
from headrace.declaration import Check, Delete, Drain, Merge, Partition, Quarantine, Version
from headrace.dropped import Span, dropped_of
from headrace.errors import RebuildNeeded, RebuildRefused, RegistryError
from headrace.feed import Feed, SchemaType
from headrace.forgotten import HeldKey
from headrace.heads import Heads
from headrace.lake import Lake, heads_of, noted
from headrace.layout import Identifier
from headrace.provenance import SigningKey
from headrace.registry.writers import Writers

REBUILT = "headrace.rebuilt"
"""The key in the summary of a snapshot whose rows were made anew, so that any of them may have changed."""

Spans = dict[int, tuple[int, int]]
"""By partition, offsets from the first up to, and without, the next."""


class TransformPlan(BaseModel):
    """One transform: which records, how they decode and merge, and where the rows go."""

    model_config = ConfigDict(frozen=True)

    feed: str
    schema_type: SchemaType
    reader: str
    """The feed's schema, with the fields that it dropped and the clean table still has."""
    own: str | None = None
    """In JSON the feed's schema without them: a dropped field counts only in records whose version has it."""
    writers: dict[int, str]
    drained: dict[int, str] = {}
    """The writers of the drained topic's records, which are those of partitions below zero."""
    guids: dict[str, int] = {}
    """The ids of all these schemas by guid, as a record's header may name them: in hex, in capitals."""
    unframed: int | None = None
    drained_unframed: int | None = None
    """The ids by which values are read that name no schema, in the feed's own topic and in the drained one."""
    aliases: dict[str, list[str]] = {}
    """The names that the key's fields had in earlier versions, by which older tombstones may tell them."""
    renames: dict[str, str] = {}
    """What drained records call a field: new name to old name."""
    columns: dict[str, str]
    numbers: dict[str, int]
    """The clean table's own numbers of these columns, and of what is nested in them, by full names."""
    defaults: dict[str, str] = {}
    """What rows hold in columns that were added after them."""
    dropped: dict[str, str] = {}
    """Columns of the clean table that the feed no longer has; new rows have nulls there."""
    key: list[str]
    order: list[str]
    merge: Merge
    delete: Delete | None = None
    leaves: dict[int, list[str]] = {}
    """Where a patch may set a value, by the number of the clean table's column: the path of names to it."""
    checks: list[Check] = []
    """What each record must meet by itself, or is rejected."""
    limit: Quarantine = Quarantine()
    partition: Partition | None = None
    archive: str
    archive_snapshot: int
    spans: Spans
    """What the clean table lacks."""
    released: Spans = {}
    """Where the records lie that are to be judged again."""
    window: tuple[int, int] | None = None
    """Kafka timestamps, in milliseconds, of the records that are all judged again."""
    anew: bool = False
    """Whether the table is made from nothing but the archive."""
    gone: dict[int, list[Span]] = {}
    """Where records lay that the archive no longer has: what the table has of them cannot be made once more."""
    clean: str
    base: int
    change: int
    """The number of this change; every row that readers will see otherwise than before gets it."""
    bytes: int = 0
    """How large the table's files are."""
    branch: str
    quarantine: str
    quarantine_snapshot: int | None = None
    judged: bool = False
    """Whether quarantine has some of what is new: a run that was not published has judged it."""
    heads: str
    rules: str = ""
    """By which the rows are made, noted with them."""
    small: bool = False
    """Whether so little is read that its queries are not worth compiling."""
    held: list[HeldKey] = []
    """The keys that are forgotten; without any, no archived record was blanked."""
    signing: list[str] = Field(default=[], repr=False)
    """The keys whose signatures are believed, as hex. A secret: a plan is never logged."""


@away.tells
def plan(
    feed: Feed,
    *,
    lake: Lake,
    writers: Mapping[int, str],
    drained: Mapping[int, str],
    signing: SigningKey,
    run: str,
    window: tuple[int, int] | None = None,
    anew: bool = False,
    without_dropped: bool = False,
) -> TransformPlan | None:
    """What the clean table lacks of the archive, or what is to be judged again; None when there is neither.

    `writers` are the schemas of the feed's own subject, `drained` those of the subject of the topic that it drains.
    A `window` of Kafka timestamps asks for its records once more, and for nothing new. `anew` asks for all of them, and
    takes `without_dropped` where the archive no longer has all.
    """
    archive = lake.find(layout.archive_table(feed.name))
    snapshot = archive.current_snapshot() if archive else None
    if archive is None or snapshot is None:
        return None
    _refuse_other_ranks(feed, lake.find(layout.clean_table(feed.name)))
    if anew and not without_dropped:
        _refuse_dropped(feed, archive)
    target, rejected = clean.clean_of(feed, lake), quarantine.quarantine_of(feed, lake)
    quarantine.tidy(feed, rejected, lake=lake, clean=target, branch=layout.branch(run))
    rules = clean.rules(feed, target.schema())
    if not anew:
        _refuse_other_rules(feed, made_by=noted(target, clean.RULES), rules=rules)
    # Where nothing is made anew another sort may be declared, and a rebuild may not have come to be published.
    clean.arrange(target, feed)
    base, reached = target.current_snapshot(), heads_of(target)
    heads = reached if window else heads_of(archive)
    spans = {} if window else missing(heads, Heads() if anew else reached)
    released = {} if window or anew else quarantine.released(rejected)
    if base is None or not (spans or released or window):
        return None
    tables = _Tables(lake, archive, target, rejected)
    return _planned(
        feed, tables, writers, drained, heads=heads, signing=signing,
        branch=layout.branch(run), spans=spans, released=released, window=window, anew=anew,
    )  # fmt: skip


@away.tells
def plan_derivation(
    feed: Feed, *, lake: Lake, writers: Mapping[int, str], drained: Mapping[int, str], signing: SigningKey
) -> TransformPlan | None:
    """All that the clean table has merged, to be made once more; None where it has merged nothing yet.

    Nothing is changed: it names no branch, and the tables are taken as they are.
    """
    # In this order: whatever the clean table has merged by then, the archive has.
    names = (layout.clean_table, layout.quarantine_table, layout.archive_table)
    target, rejected, archive = (lake.find(name(feed.name)) for name in names)
    if archive is None or target is None or rejected is None or archive.current_snapshot() is None:
        return None
    _refuse_other_rules(feed, made_by=noted(target, clean.RULES), rules=clean.rules(feed, target.schema()))
    heads = heads_of(target)
    spans = missing(heads, Heads())
    if not spans or target.current_snapshot() is None:
        return None
    tables = _Tables(lake, archive, target, rejected)
    return _planned(feed, tables, writers, drained, heads=heads, signing=signing, branch="", spans=spans, anew=True)


@dataclass(frozen=True)
class _Tables:
    lake: Lake
    archive: Table
    clean: Table
    quarantine: Table


def _planned(
    feed: Feed,
    tables: _Tables,
    writers: Mapping[int, str],
    drained: Mapping[int, str],
    *,
    heads: Heads,
    signing: SigningKey,
    branch: str,
    spans: Spans,
    released: Spans | None = None,
    window: tuple[int, int] | None = None,
    anew: bool,
) -> TransformPlan:
    """A plan of what is asked for, from tables that are there."""
    lake, target = tables.lake, tables.clean
    snapshot, base = tables.archive.current_snapshot(), target.current_snapshot()
    assert snapshot is not None, "there is something to read"
    assert base is not None, "there is something to merge with"
    _refuse_unknown(feed, spans=heads.next, writers=writers, drained=drained)
    declared, refused = feed.declaration, tables.quarantine.current_snapshot()
    reader = union.reader(feed, list(writers.values())[::-1], there=clean.shown(feed, target.schema()))
    types = field_types(feed.schema_type, reader)
    wanted = {name: spark_type(type_) for name, type_ in types.items()}
    return TransformPlan(
        feed=feed.name,
        schema_type=feed.schema_type,
        reader=json.dumps(reader),
        own=json.dumps(feed.schema) if feed.schema_type == "JSON" and reader is not feed.schema else None,
        writers=dict(writers),
        drained=dict(drained),
        guids={**_guids(drained), **_guids(writers)},
        unframed=_version(feed.subject, declared.unframed, writers),
        drained_unframed=_drained_version(declared.topic.drains, drained),
        aliases=_aliases(feed),
        renames=dict(declared.topic.drains.fields) if declared.topic.drains else {},
        columns=wanted,
        numbers=index_by_name(target.schema()),
        defaults=_defaults(target, wanted),
        dropped={name: type_ for name, type_ in _types(target).items() if name not in {*wanted, *hidden_types(feed)}},
        key=declared.key,
        order=declared.order,
        merge=declared.merge,
        delete=declared.delete,
        leaves=clean.leaves(types, target.schema()) if declared.merge == "patch" else {},
        checks=[check for check in declared.checks if check.severity == "quarantine"],
        limit=declared.quarantine,
        partition=declared.partition,
        archive=spark_name(lake.name, layout.archive_table(feed.name)),
        archive_snapshot=snapshot.snapshot_id,
        spans=spans,
        released=released or {},
        window=window,
        anew=anew,
        gone={number: list(each) for number, each in dropped_of(tables.archive).spans.items()},
        clean=spark_name(lake.name, layout.clean_table(feed.name)),
        base=base.snapshot_id,
        change=_next_number(target),
        bytes=effort.bytes_of(base),
        branch=branch,
        quarantine=spark_name(lake.name, layout.quarantine_table(feed.name)),
        quarantine_snapshot=refused.snapshot_id if refused else None,
        judged=bool(branch) and quarantine.holds(tables.quarantine, spans),
        heads=heads.to_json(),
        rules=clean.rules(feed, target.schema()),
        small=effort.is_small([base])
        and (effort.is_small([snapshot]) or (not window and effort.is_few(spans.values(), archive=snapshot))),
        held=forgotten.held(
            forgotten.entries(feed.name, lake=lake), feed=feed.name, signing=signing, now=heads_of(tables.archive)
        ),
        signing=[secret.hex() for secret in signing.all],
    )


def _defaults(table: Table, names: Iterable[str]) -> dict[str, str]:
    """The plain ones as texts, which a cast brings back."""
    found = {name: table.schema().find_field(name).initial_default for name in names}
    plain = (StringType, BooleanType, IntegerType, LongType, FloatType, DoubleType, DecimalType)
    return {
        name: str(value)
        for name, value in found.items()
        if value is not None and isinstance(table.schema().find_type(name), plain)
    }


def _aliases(feed: Feed) -> dict[str, list[str]]:
    names, key = {field.name for field in feed.fields}, feed.declaration.key
    return {
        field.name: [each for each in field.aliases if each not in names] for field in feed.fields if field.name in key
    }


def _guids(writers: Mapping[int, str]) -> Mapping[str, int]:
    return writers.guids if isinstance(writers, Writers) else {}


def _drained_version(drains: Drain | None, drained: Mapping[int, str]) -> int | None:
    return _version(layout.subject(drains.topic), drains.unframed, drained) if drains and drained else None


def _version(subject: str, wanted: Version | None, writers: Mapping[int, str]) -> int | None:
    """The id of the version that the feed declares for values without one."""
    if wanted is None or not isinstance(writers, Writers):
        return None
    id_ = writers.latest if wanted == "latest" else writers.versions.get(wanted)
    if id_ is None:
        there = ", ".join(map(str, writers.versions)) or "none"
        raise RegistryError(
            f"subject {subject}: the feed reads values without a schema id by version {wanted}, which is not among its "
            f"versions ({there}). Name one of them as unframed, or register it."
        )
    return id_


def _next_number(table: Table) -> int:
    """Larger than any that a snapshot of the table has, on whatever branch."""
    return 1 + max((each.sequence_number or 0 for each in table.metadata.snapshots), default=0)


def _refuse_other_rules(feed: Feed, *, made_by: str | None, rules: str) -> None:
    """Rows that were told apart, ordered or merged otherwise cannot be merged with: all have to be made anew."""
    if made_by is None or made_by == rules:
        return
    then, now = json.loads(made_by), json.loads(rules)
    changed = ", ".join(name for name in now if now[name] != then.get(name))
    raise RebuildNeeded(
        f"feed {feed.name}: its {changed} changed since clean.{feed.name} was made, so new records cannot be merged "
        f"with the rows that stand. Nothing was changed. Make them anew from the archive: headrace rebuild "
        f"{feed.name}. Or put the declaration back."
    )


def _refuse_other_ranks(feed: Feed, table: Table | None) -> None:
    """What a patched row remembers of its fields' order can be compared with no other order."""
    made_by = json.loads((table and noted(table, clean.RULES)) or "{}")
    if table is None or not (feed.declaration.merge == made_by.get("merge") == "patch"):
        return
    known = {field.name: field.field_id for field in table.schema().fields}
    names = {field.name: (field.name, *field.aliases) for field in feed.fields}
    order = [next((known[each] for each in names[name] if each in known), None) for name in feed.declaration.order]
    if order != made_by["order"]:
        raise RebuildRefused(
            f"feed {feed.name}: its order changed, but it merges by patch, and the rows of clean.{feed.name} remember "
            f"ranks by the old one: neither a run nor a rebuild goes on with them. Nothing was changed. Put the order "
            f"back, or write a new feed with it, which drains this one: headrace new --breaks."
        )


def _refuse_dropped(feed: Feed, archive: Table) -> None:
    dropped = dropped_of(archive)
    if dropped.spans:
        raise RebuildRefused(
            f"feed {feed.name}: its archive dropped the records from before {dropped.before} (retention.archive), so "
            f"clean.{feed.name} made anew would lack the rows that only those made. Nothing was changed. To go on "
            f"without them, say so: headrace rebuild {feed.name} --without-dropped, or in the DAG's form."
        )


def _refuse_unknown(
    feed: Feed, *, spans: Iterable[int], writers: Mapping[int, str], drained: Mapping[int, str]
) -> None:
    """Records whose subject has no schema at all would all be quarantined; once it is registered, they need not be."""
    if not writers:
        raise RegistryError(f"subject {feed.subject}: it has no version, so nothing can be decoded. headrace register")
    drains = feed.declaration.topic.drains
    if drains and not drained and any(partition < 0 for partition in spans):
        raise RegistryError(
            f"subject {layout.subject(drains.topic)}: it has no version, so records of the drained topic "
            f"{drains.topic} cannot be decoded. Register the schema that they were written with."
        )


@away.tells
def drop_branch(feed: Feed, *, lake: Lake, run: str) -> None:
    """Drop what an earlier try of the run left, when another run has published its records since."""
    table, branch = lake.find(layout.clean_table(feed.name)), layout.branch(run)
    if table is not None and branch in table.metadata.refs:
        table.manage_snapshots().remove_branch(branch).commit()


def missing(archived: Heads, reached: Heads) -> Spans:
    """The spans of the archive past another table's heads."""
    return {
        number: (reached.of(number), next_) for number, next_ in archived.next.items() if next_ > reached.of(number)
    }


def spark_name(catalog: str, table: Identifier) -> str:
    return ".".join(f"`{part}`" for part in (catalog, *table))


def spark_type(type_: IcebergType) -> str:
    """An Iceberg type in Spark's DDL."""
    match type_:
        case LongType():
            return "bigint"
        case TimestamptzType():
            return "timestamp"
        case TimestampType():
            return "timestamp_ntz"
        case UUIDType():
            return "string"
        case StructType(fields=fields):
            return f"struct<{', '.join(f'`{field.name}`: {spark_type(field.field_type)}' for field in fields)}>"
        case ListType():
            return f"array<{spark_type(type_.element_type)}>"
        case MapType():
            return f"map<{spark_type(type_.key_type)}, {spark_type(type_.value_type)}>"
    return "binary" if str(type_).startswith("fixed") else str(type_).replace(" ", "")


def _types(table: Table) -> dict[str, str]:
    return {field.name: spark_type(field.field_type) for field in table.schema().fields}


def hidden_types(feed: Feed) -> dict[str, str]:
    """The clean table's hidden columns in Spark's DDL."""
    return {column.name: spark_type(column.type) for column in clean.hidden(feed)}
