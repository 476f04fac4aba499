"""The forget job: find a person's records by their keys, and take the rows out of the clean table and quarantine.

A record that decodes tells its key. Of one that does not, the Kafka key may tell it, as a tombstone's does; or it is a
key that only the person's other records have; or the value holds the key's own bytes. Keys come in tables, never as
literals: a query's plan is shown and logged in many places, and shows what a literal holds.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from pyiceberg.types import UUIDType
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from headrace import shown
from headrace.columns import TimeText, field_types
from headrace.errors import SettingsError
from headrace.record import AFTER
from headrace.stages.locating import SHORTEST, ForgetPlan, How, Located, Place
from headrace.stages.transform import TransformPlan
from spark_jobs import decoding, envelopes, holding, origins
from spark_jobs.envelopes import AGAIN
from spark_jobs.failure import translated
from spark_jobs.holding import DIGEST, KEY
from spark_jobs.merging import same_key
from spark_jobs.session import session
from spark_jobs.transform import SNAPSHOT_PROPERTY, Transform

# Columns of our own begin as no field may, so that none takes the place of a feed's.
LIES_PARTITION, LIES_OFFSET = "_lies_partition", "_lies_offset"
WHICH, READABLE, SAYS, HOLDS, NEEDLES, NEEDLE = (
    "_which", "_readable", "_says", "_holds", "_needles", "_needle",
)  # fmt: skip
ASKED = "_key_"
TIME = r"^([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?$"
"""A time of day, as people type it."""


def run(plan: str, *, remote: str | None, properties: Mapping[str, str]) -> str:
    """The job's shell: a plan in, what was found or done out, both as JSON."""
    planned = ForgetPlan.model_validate_json(plan)
    with (
        translated(f"on forgetting keys of {planned.transform.feed}"),
        session(remote, properties=properties, small=planned.transform.small) as spark,
        ExitStack() as kept,
    ):
        return Forget(spark, planned, Transform(spark, planned.transform, kept)).run()


@dataclass(frozen=True)
class Forget:
    """One step for some keys."""

    spark: SparkSession
    asked: ForgetPlan
    frames: Transform = field(repr=False)

    @property
    def plan(self) -> TransformPlan:
        return self.asked.transform

    def run(self) -> str:
        match self.asked.step:
            case "locate":
                return self.locate().model_dump_json()
            case "clean":
                self.delete_rows()
            case "quarantine":
                self.delete_quarantined()
        return "{}"

    def locate(self) -> Located:
        digests, texts = self.digests()
        records = envelopes.before(self.spark, self.plan, self.asked.next)
        lying = records.withColumns({LIES_PARTITION: F.col("partition"), LIES_OFFSET: F.col("offset")})
        decoded = self.decoded(lying.where(~holding.is_blank()))
        archived, told_ = self.found(decoded)
        rows = self.mine(self.clean())
        told_ += [row[0] for row in rows.select(said(self.plan.columns)).collect()]
        values = self.values(told_) | set(self.telling(texts))
        shared = self.shared(values, decoded)
        return Located(
            digests=digests,
            shown=texts,
            archive=archived,
            quarantine=self.quarantined(archived),
            clean=rows.count(),
            values=sorted(values - shared),
            shared=len(shared),
        )

    def keys(self) -> DataFrame:
        """The keys in their columns' types, numbered; one that is not of its type has a null there."""
        plan = self.plan
        texts = self.spark.createDataFrame(
            [(number, *texts) for number, texts in enumerate(self.asked.keys)],
            f"{WHICH} int, " + ", ".join(f"`{name}` string" for name in plan.key),
        )
        return texts.select(WHICH, *(self._typed(name).alias(name) for name in plan.key))

    def _typed(self, name: str) -> Column:
        type_, text = self.plan.columns[name], F.col(f"`{name}`")
        if type_ == "binary":
            return F.unhex(text)
        kind = field_types(self.plan.schema_type, json.loads(self.plan.reader))[name]
        if isinstance(kind, TimeText):
            return in_full(text)
        return (F.lower(text) if isinstance(kind, UUIDType) else text).try_cast(type_)

    def digests(self) -> tuple[list[str], list[list[str]]]:
        """The keyed hash of each key, and its fields as texts; raises where one is another than what was typed."""
        rows = self.keys().select(WHICH, F.struct(*self.plan.key).alias(KEY))
        hashed = holding.digested(rows, self.plan, self.spark, secret=0)
        fields = (in_utc(F.col(KEY)[name], self.plan.columns[name]).alias(name) for name in self.plan.key)
        found, typed = hashed.select(WHICH, DIGEST, *fields).orderBy(WHICH).collect(), self.asked.keys
        right = [all(map(shown.says, typed[row[0]], row[2:])) for row in found]
        if bad := [str(row[0] + 1) for row, is_right in zip(found, right, strict=True) if not is_right]:
            types = ", ".join(f"{name} ({self.plan.columns[name]})" for name in self.plan.key)
            raise SettingsError(f"feed {self.plan.feed}: key number {', '.join(bad)} is not of its type: {types}.")
        return [row[1] for row in found], [[shown.field(value) for value in row[2:]] for row in found]

    def decoded(self, records: DataFrame) -> DataFrame:
        frames = self.frames
        placed = frames.flat(origins.placed(records, self.plan, self.spark))
        return frames.flat(decoding.decoded(placed, self.plan))

    def found(self, decoded: DataFrame) -> tuple[list[Place], list[str]]:
        """The records of the keys, and what those say that decode."""
        narrow = self.frames.keep(self.frames.flat(self.narrow(decoded)))
        places = (LIES_PARTITION, LIES_OFFSET, "partition", "offset")
        mine = narrow.where(F.col(WHICH).isNotNull()).select(*places, READABLE, SAYS).collect()
        strays = narrow.where(F.col(WHICH).isNull() & ~F.col(READABLE))
        of_key = F.col(READABLE) & F.col("key").isNotNull()
        own = narrow.where(of_key & F.col(WHICH).isNotNull()).select("key").distinct()
        others = narrow.where(of_key & F.col(WHICH).isNull()).select("key")
        alone = own.join(others, "key", "left_anti")
        by_bytes = strays.where(HOLDS).select(*places).collect()
        by_key = strays.join(F.broadcast(alone), "key", "left_semi").select(*places).collect()
        told_: dict[Sequence[int], How] = {tuple(row): "bytes" for row in by_bytes}
        told_ |= {tuple(row): "kafka key" for row in by_key}
        told_ |= {tuple(row)[:4]: "key" if row[READABLE] else "kafka key" for row in mine}
        found = [
            Place(partition=lies[0], offset=lies[1], origin=(lies[2], lies[3]), how=how) for lies, how in told_.items()
        ]
        return found, [row[SAYS] for row in mine if row[SAYS]]

    def narrow(self, decoded: DataFrame) -> DataFrame:
        """Of each record where it lies, which key is its own, and what it says if one is."""
        plan = self.plan
        readable = F.coalesce(holding.is_readable(plan), F.lit(False))
        named = decoded.withColumns({READABLE: readable, KEY: holding.key_of(plan)})
        keys = self.keys().select(WHICH, *(F.col(name).alias(f"{ASKED}{name}") for name in plan.key))
        same = reduce(Column.__and__, (F.col(KEY)[name] == F.col(f"{ASKED}{name}") for name in plan.key))
        return (
            named.join(F.broadcast(keys), same, "left")
            .crossJoin(F.broadcast(self.needles()))
            .select(
                LIES_PARTITION, LIES_OFFSET, "partition", "offset", "key", WHICH, READABLE,
                F.when(F.col(WHICH).isNotNull() & F.col(READABLE), said(plan.columns, of=F.col("row"))).alias(SAYS),
                F.coalesce(F.expr(_holds()), F.lit(False)).alias(HOLDS),
            )
        )  # fmt: skip

    def needles(self) -> DataFrame:
        """The keys' own bytes, where they are so many that they are not in everything."""
        types = [self.plan.columns[name] for name in self.plan.key]
        every = [list(map(_octets, texts, types)) for texts in self.asked.keys]
        told_ = [octets for octets in every if max(map(len, octets)) >= SHORTEST]
        return self.spark.createDataFrame([(told_,)], f"{NEEDLES} array<array<binary>>")

    def clean(self) -> DataFrame:
        return self.spark.table(self.plan.clean)

    def mine(self, rows: DataFrame) -> DataFrame:
        return rows.join(F.broadcast(self.keys().drop(WHICH)), list(self.plan.key), "left_semi")

    def values(self, said: list[str]) -> set[str]:
        """What rows say in personal columns, as texts."""
        rows = [json.loads(each, parse_int=str, parse_float=str) for each in said]
        return {
            leaf
            for row in rows
            for name in self.asked.personal
            for leaf in leaves(row.get(name))
            if len(leaf.encode()) >= SHORTEST
        }

    def telling(self, texts: list[list[str]]) -> Iterator[str]:
        """What tells the keys: each as it is listed, and of its fields those that lie as they are shown."""
        types = [self.plan.columns[name] for name in self.plan.key]
        for each in texts:
            lying = (text for text, type_ in zip(each, types, strict=True) if type_ in ("string", "binary"))
            yield from (text for text in (shown.key(each), *lying) if len(text.encode()) >= SHORTEST)

    def shared(self, values: set[str], decoded: DataFrame) -> set[str]:
        """Those of the values that records or rows of other keys hold too, in whatever column."""
        if not values:
            return set()
        needles = {json.dumps(value, ensure_ascii=False)[1:-1]: value for value in values}
        known = F.broadcast(self.spark.createDataFrame([(each,) for each in needles], f"{NEEDLE} string"))
        plan, keys = self.plan, self.keys()
        row = decoded.where(F.col("row").isNotNull() & F.col("value").isNotNull()).select("row.*")
        texts = [
            rows.join(F.broadcast(keys.drop(WHICH)), list(plan.key), "left_anti")
            .select(said(plan.columns).alias(SAYS))
            .crossJoin(known)
            .where(F.contains(F.col(SAYS), F.col(NEEDLE)))
            .select(NEEDLE)
            .distinct()
            for rows in (row, self.clean())
        ]
        return {needles[each] for (each,) in reduce(DataFrame.union, texts).distinct().collect()}

    def quarantined(self, archived: Iterable[Place]) -> list[Place]:
        """The records in quarantine that are of the keys: by themselves, or as the archive tells of them."""
        bare = F.lit(None).cast("array<struct<name: string, value: binary>>")
        rows = (
            self.spark.table(self.plan.quarantine)
            .select("partition", "offset", "timestamp", "key", "value")
            .withColumns({"headers": bare, AFTER: F.lit(None).cast("map<int, bigint>"), AGAIN: F.lit(True)})
            .withColumns({LIES_PARTITION: F.col("partition"), LIES_OFFSET: F.col("offset")})
        )
        found = {each.origin: each for each in self.found(self.decoded(rows))[0]}
        origins_ = {each.origin: each.how for each in archived}
        places = ["partition", "offset"]
        blank = envelopes.before(self.spark, self.plan, self.asked.next).where(holding.is_blank()).select(*places)
        told_ = self.spark.createDataFrame(list(origins_), "partition int, offset bigint")
        known = rows.select(*places).join(blank.union(told_).distinct(), places, "left_semi").collect()
        for at, offset in known:
            how = origins_.get((at, offset), "key")
            found.setdefault((at, offset), Place(partition=at, offset=offset, how=how, origin=(at, offset)))
        return list(found.values())

    def delete_rows(self) -> None:
        """Delete the keys' rows on a branch of the clean table, hidden ones too."""
        plan, branch = self.plan, f"branch_{self.plan.branch}"
        self.spark.sql(f"alter table {plan.clean} create or replace branch `{plan.branch}` as of version {plan.base}")
        self.note()
        target = f"{plan.clean}.`{branch}`"
        on = same_key(plan.key, "s.", f"`{branch}`.")
        self.keys().dropDuplicates(plan.key).alias("s").mergeInto(target, on).whenMatched().delete().merge()

    def delete_quarantined(self) -> None:
        """Delete the records from quarantine that were located there."""
        self.note()
        target = f"`{self.plan.feed}`"  # a merge's condition knows its target by the table's own name
        same = F.expr(f"s.partition = {target}.partition and s.offset = {target}.offset")
        source = self.spark.createDataFrame(self.asked.places, "partition int, offset bigint").alias("s")
        source.mergeInto(self.plan.quarantine, same).whenMatched().delete().merge()

    def note(self) -> None:
        for name, value in self.asked.summary.items():
            self.spark.conf.set(f"{SNAPSHOT_PROPERTY}{name}", value)


def said(columns: Mapping[str, str], *, of: Column | None = None) -> Column:
    """What a row, or a struct that is one, says in some columns, as JSON; bytes in hex, as they are shown."""

    def column(name: str) -> Column:
        value = F.col(f"`{name}`") if of is None else of[name]
        return F.concat(F.lit(shown.OCTETS), F.lower(F.hex(value))) if columns[name] == "binary" else value

    return F.to_json(F.struct(*(column(name).alias(name) for name in columns)))


def in_full(text: Column) -> Column:
    """A time of day as the clean table has it, whichever of its zeros were left out; null for any other text."""
    whole = F.rpad(F.concat(text, F.when(F.contains(text, F.lit(".")), "").otherwise(".")), 15, "0")
    return F.when(text.rlike(TIME), whole)


def in_utc(value: Column, type_: str) -> Column:
    """A moment without its zone, which Python would take for the machine's own; anything else as it is."""
    return value.cast("timestamp_ntz") if type_ == "timestamp" else value


def _octets(text: str, type_: str) -> bytearray:
    """A field of a key as a record holds it."""
    return bytearray.fromhex(text) if type_ == "binary" else bytearray(text.encode())


def _holds() -> str:
    """Whether a record's value, or its Kafka key, holds all parts of a key."""
    within = "contains(value, part) or coalesce(contains(key, part), false)"
    return f"exists({NEEDLES}, parts -> forall(parts, part -> {within}))"


def leaves(value: Any) -> Iterator[str]:
    """The texts and numbers inside a value."""
    match value:
        case str():
            yield value
        case dict():
            for each in value.values():
                yield from leaves(each)
        case list():
            for each in value:
                yield from leaves(each)
