"""The transform job: decode what is new in the archive, quarantine what is bad, merge the rest on the run's branch."""

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import reduce
from uuid import uuid4

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from headrace import heads
from headrace.clean import ACCOUNTS, BRANCH, RULES, WRITTEN
from headrace.quarantine import Reason, refuse_too_many
from headrace.stages.transform import REBUILT, TransformPlan
from spark_jobs import (
    appending,
    deciding,
    decoding,
    envelopes,
    holding,
    merging,
    origins,
    patching,
    places,
    quarantining,
    recomputing,
    row_checks,
    standing,
    stretches,
)
from spark_jobs.deciding import NOTES, REPLACES, STOOD, WRITES
from spark_jobs.envelopes import AGAIN
from spark_jobs.failure import translated
from spark_jobs.holding import FORGOTTEN
from spark_jobs.merging import same_key
from spark_jobs.quarantining import has_judged, quarantine
from spark_jobs.session import session

SNAPSHOT_PROPERTY = "spark.sql.iceberg.snapshot-property."
RARE = ("replayed", "imported", "forgotten", "unblanked", "withdrawn")
"""Accounts that are told only where there is something to tell."""


def run(plan: str, *, remote: str | None, properties: Mapping[str, str]) -> str:
    """The job's shell: a plan in, accounts out, both as JSON."""
    planned = TransformPlan.model_validate_json(plan)
    with (
        translated(f"on transforming {planned.feed}"),
        session(remote, properties=properties, small=planned.small) as spark,
    ):
        return json.dumps(transform(spark, planned))


def transform(spark: SparkSession, plan: TransformPlan) -> dict[str, int]:
    """Run a plan; its last step is one commit of rows and heads on the branch. Returns the accounts."""
    with ExitStack() as kept:
        return Transform(spark, plan, kept).run()


@dataclass(frozen=True)
class Survey:
    """What a batch holds: its accounts so far, and where its good rows lie."""

    accounts: dict[str, int]
    tombstones: int
    again: int
    rejected_again: int
    elsewhere: bool
    """Whether records were replayed from some other topic, in whatever order."""
    places: list[int]
    """The partitions of its rows, where versions of a key never change theirs."""

    @property
    def new(self) -> int:
        """How many records are judged for the first time."""
        return self.accounts["read"] - self.again

    @property
    def rejected_new(self) -> int:
        return self.accounts["quarantined"] - self.rejected_again


@dataclass(frozen=True)
class Transform:
    """One run of a plan, and the frames that it keeps until its end."""

    spark: SparkSession
    plan: TransformPlan
    kept: ExitStack = field(repr=False)

    def run(self) -> dict[str, int]:
        plan, clean = self.plan, standing.table(self.spark, self.plan)
        batch, forgotten = self.admitted(self.judged(envelopes.asked(self.spark, plan)))
        seen = survey(batch, plan)
        met = self.met(clean, batch.where(_good()), seen)
        displaced = appending.displaced(batch, met, plan) if plan.merge == "append" else None
        if plan.merge == "append":
            batch = self.keep(self.flat(appending.judged(batch, met, plan)))
            seen = survey(batch, plan)
        odd = self.odd(batch, clean, seen=seen, displaced=displaced)
        whole = self.all_of(odd) if odd is not None else None
        if plan.merge == "append" and whole is not None:
            batch = self.keep(self.flat(appending.rejudged(batch, whole)))
            seen = survey(batch, plan)
        refuse_too_many(seen.rejected_new, seen.new, feed=plan.feed, limit=plan.limit, reasons=lambda: _reasons(batch))
        if seen.accounts["quarantined"] or seen.again or plan.judged or whole is not None:
            quarantine(self.spark, batch if whole is None else _newest(batch, whole), plan)
        good = batch.where(_good())
        if odd is None or whole is None:
            rows = self.merged(good, met, seen)
        else:
            rows = self.merged(recomputing.but_keys(good, odd, plan), met, seen).unionByName(
                self.recomputed(whole.where(_good()), odd, clean, batch=recomputing.of_keys(good, odd, plan))
            )
        rows = self.keep(self.flat(rows))
        decided = deciding.summary(rows)
        read = seen.accounts["read"] + forgotten["forgotten"]
        accounts = _told({**seen.accounts, "read": read, **forgotten, **decided.accounts})
        self.commit(rows, decided, accounts=accounts, settles=bool(seen.again))
        return accounts

    def judged(self, records: DataFrame) -> DataFrame:
        """The records decoded, each with the reason for which it is rejected, if it is."""
        placed = self.flat(origins.placed(records, self.plan, self.spark))
        if self.plan.held:
            placed = self.flat(holding.blanked(placed, self.plan, self.spark))
        decoded = decoding.decoded(placed, self.plan)
        if self.plan.held:
            decoded = self.flat(holding.marked(self.flat(decoded), self.plan, self.spark))
        broken = F.when(
            _good() & F.col("value").isNotNull() & ~merging.deletes(self.plan), row_checks.detail(self.plan)
        )
        checked = decoded.withColumn("detail", broken).withColumns(
            {
                "reason": F.when(F.col("detail").isNotNull(), F.lit(Reason.CHECK.value)).otherwise(F.col("reason")),
                AGAIN: F.col(AGAIN) | F.col("replayed"),
            }
        )
        return self.keep(self.flat(checked))

    def admitted(self, judged: DataFrame) -> tuple[DataFrame, dict[str, int]]:
        """The records that are not forgotten, and how many are; unblanked ones came back after they had been."""
        if not self.plan.held:
            return judged, {"forgotten": 0}
        says_something = F.col("key").isNotNull() | F.col("value").isNotNull()
        told = {"forgotten": F.count("*"), "unblanked": F.count_if(says_something)}
        row = judged.where(F.col(FORGOTTEN)).agg(*(count.alias(name) for name, count in told.items())).first()
        assert row is not None, "an aggregate without groups gives one row"
        return judged.where(~F.col(FORGOTTEN)).drop(FORGOTTEN), row.asDict()

    def met(self, clean: DataFrame, good: DataFrame, seen: Survey) -> DataFrame:
        """The standing rows of the batch's keys."""
        keys, count = _keys(good, self.plan).distinct(), seen.accounts["decoded"]
        where = self.touched(keys, seen)
        return self.keep(self.flat(standing.met(clean, keys, self.plan, where=where, count=count)))

    def touched(self, keys: DataFrame, seen: Survey) -> Column:
        """Where the batch's keys may lie already, as far as the batch itself can tell."""
        plan, partition = self.plan, self.plan.partition
        # A tombstone knows its key but not its partition, so its row may lie anywhere.
        if partition and partition.immutable and not (seen.tombstones or seen.rejected_again):
            return places.within(F.col(partition.field), seen.places, plan)
        if plan.anew or not plan.bytes:
            return F.lit(True)
        return stretches.within(F.col(plan.key[0]), stretches.of_keys(keys, plan, count=seen.accounts["decoded"]))

    def odd(self, batch: DataFrame, clean: DataFrame, *, seen: Survey, displaced: DataFrame | None) -> DataFrame | None:
        """The keys that have to be recomputed; None when there are none."""
        if self.plan.anew:
            return None
        found = [displaced] if displaced is not None else []
        if seen.rejected_again:
            rejected = batch.where(~_good() & F.col(AGAIN)).select("partition", "offset")
            found.append(standing.made_by(clean, rejected, self.plan))
        if self.plan.merge == "patch" and (seen.again or seen.elsewhere):
            strays = _good() & (F.col(AGAIN) | origins.is_from_elsewhere(F.col("rank_partition")))
            found.append(_keys(batch.where(strays), self.plan))
        if seen.again and recomputing.can_rerank(self.plan):
            found += self.reranked(batch, clean, seen)
        if not found:
            return None
        keys = self.keep(self.flat(reduce(DataFrame.union, found).distinct()))
        return None if keys.isEmpty() else keys

    def reranked(self, batch: DataFrame, clean: DataFrame, seen: Survey) -> list[DataFrame]:
        """The keys of which a tombstone may rank otherwise, for a version before it has another verdict now."""
        names = dict.fromkeys([*self.plan.key, *self.plan.order])
        versions = quarantining.turned(self.spark, batch, self.plan)
        told = versions.select(*(F.col("row")[name].alias(name) for name in names)).dropna(subset=self.plan.key)
        rows = self.keep(self.flat(told))
        if rows.isEmpty():
            return []
        keys = rows.select(*self.plan.key).distinct()
        met = standing.met(clean, keys, self.plan, where=self.touched(keys, seen), count=seen.again)
        return [recomputing.reranked(rows, met, self.plan)]

    def all_of(self, keys: DataFrame) -> DataFrame:
        """Every record of some keys, judged anew; this reads the whole archive."""
        records, _ = self.admitted(self.judged(envelopes.whole(self.spark, self.plan)))
        found = recomputing.of_keys(records, keys, self.plan)
        if self.plan.merge == "append":
            found = appending.judged(found, self.nothing(keys), self.plan)
        return self.keep(self.flat(found))

    def nothing(self, keys: DataFrame) -> DataFrame:
        """No standing rows, in the form that they would have."""
        clean = self.spark.read.option("versionAsOf", self.plan.base).table(self.plan.clean).where(F.lit(False))
        return standing.met(clean, keys, self.plan, where=F.lit(True), count=0)

    def merged(self, good: DataFrame, met: DataFrame, seen: Survey) -> DataFrame:
        """The batch's keys, each beside its standing row."""
        mends = bool(seen.again or seen.elsewhere)
        fresh = self.reduced(good, met, tombstones=bool(seen.tombstones), mends=mends)
        return deciding.decided(self.flat(fresh.withColumn(REPLACES, F.lit(False))), met, self.plan)

    def recomputed(self, good: DataFrame, keys: DataFrame, clean: DataFrame, *, batch: DataFrame) -> DataFrame:
        """Some keys from all their records, whatever stands."""
        stood = self.keep(self.flat(standing.met(clean, keys, self.plan, where=F.lit(True), count=0)))
        mended = self.flat(self.reduced(good, self.nothing(keys), tombstones=True, mends=False))
        whole = recomputing.completed(mended, keys, batch=batch, stood=stood, plan=self.plan)
        return deciding.decided(self.flat(whole.withColumn(REPLACES, F.lit(True))), stood, self.plan)

    def reduced(self, good: DataFrame, met: DataFrame, *, tombstones: bool, mends: bool) -> DataFrame:
        """One row or state per key; `mends` says that versions may have come before tombstones that stand."""
        plan, is_patch = self.plan, self.plan.merge == "patch"
        rows = versions = merging.versions(good.where(F.col("value").isNotNull()), plan)
        if tombstones:
            candidates = patching.standing_orders(met, plan) if is_patch and plan.order else met
            bare = merging.versions(good.where(F.col("value").isNull()), plan, merging.after())
            bare = merging.told_apart(bare, plan) if mends else bare
            rows = rows.union(merging.ranked_tombstones(bare, versions, candidates, plan=plan))
        if mends and not is_patch:
            rows = rows.union(merging.standing_tombstones(versions, met, plan))
        return patching.reduced(rows, plan) if is_patch else merging.reduced(rows, plan)

    def commit(self, rows: DataFrame, decided: deciding.Summary, *, accounts: Mapping[str, int], settles: bool) -> None:
        """Write the rows to the branch, with the heads and accounts in the same snapshot."""
        plan, branch = self.plan, f"branch_{self.plan.branch}"
        if not (decided.written or plan.spans or (settles and has_judged(self.spark, plan))):
            self.spark.sql(f"alter table {plan.clean} drop branch if exists `{plan.branch}`")
            return
        self.spark.sql(f"alter table {plan.clean} create or replace branch `{plan.branch}` as of version {plan.base}")
        self.note(accounts, decided)
        source, target = rows.where(WRITES).drop(*NOTES), f"{plan.clean}.`{branch}`"
        if plan.anew:
            source.writeTo(target).overwrite(F.lit(True))
        elif not decided.stood:
            source.writeTo(target).append()
        else:
            on = same_key(plan.key, "s.", f"`{branch}`.")
            if plan.partition:
                on &= places.within(F.col(f"`{branch}`.`{plan.partition.field}`"), decided.places, plan)
            else:
                stood = rows.where(F.col(WRITES) & F.col(STOOD)).select(*plan.key)
                found = stretches.of_keys(stood, plan, count=decided.stood)
                on &= stretches.within(F.col(f"`{branch}`.`{plan.key[0]}`"), found)
            source.alias("s").mergeInto(target, on).whenMatched().updateAll().whenNotMatched().insertAll().merge()

    def note(self, accounts: Mapping[str, int], decided: deciding.Summary) -> None:
        again = bool(self.plan.released or self.plan.window)
        written = {"rows": decided.written, "stood": decided.stood, "again": again}
        noted = {heads.PROPERTY: self.plan.heads, RULES: self.plan.rules, BRANCH: self.plan.branch}
        noted |= {ACCOUNTS: json.dumps(accounts), WRITTEN: json.dumps(written)}
        for name, value in {**noted, **({REBUILT: "true"} if self.plan.anew else {})}.items():
            self.spark.conf.set(f"{SNAPSHOT_PROPERTY}{name}", value)

    def flat(self, frame: DataFrame) -> DataFrame:
        """The same frame by a name: Spark Connect refuses queries nested too deeply, and a name is one level."""
        name = f"headrace_{uuid4().hex}"
        frame.createOrReplaceTempView(name)
        self.kept.callback(self.spark.catalog.dropTempView, name)
        return self.spark.table(name)

    def keep(self, frame: DataFrame) -> DataFrame:
        """Keep a frame that several steps read, so that it is computed once; released at the end."""
        self.kept.callback(frame.persist().unpersist)
        return frame


def survey(records: DataFrame, plan: TransformPlan) -> Survey:
    """Look over the batch once."""
    good, partition = _good(), plan.partition
    place = F.lit(None).cast("bigint")
    if partition and partition.immutable:
        place = places.unit(F.col("row")[partition.field], plan)
    row = records.agg(
        F.count("*").alias("read"),
        F.count_if(good).alias("decoded"),
        F.count("reason").alias("quarantined"),
        F.count_if("replayed").alias("replayed"),
        F.count_if("imported").alias("imported"),
        F.count_if(F.col("value").isNull() & good).alias("tombstones"),
        F.count_if(AGAIN).alias("again"),
        F.count_if(F.col(AGAIN) & ~good).alias("rejected_again"),
        F.coalesce(F.bool_or(origins.is_from_elsewhere(F.col("rank_partition"))), F.lit(False)).alias("elsewhere"),
        F.collect_set(F.when(good, place)).alias("places"),
    ).first()
    assert row is not None, "an aggregate without groups gives one row"
    found = row.asDict()
    accounts = {name: found[name] for name in ("read", "decoded", "quarantined", "replayed", "imported")}
    others = {name: found[name] for name in ("tombstones", "again", "rejected_again", "elsewhere", "places")}
    return Survey(accounts, **others)


def _good() -> Column:
    return F.col("reason").isNull()


def _keys(records: DataFrame, plan: TransformPlan) -> DataFrame:
    return records.select(*(F.col("row")[name].alias(name) for name in plan.key))


def _newest(batch: DataFrame, whole: DataFrame) -> DataFrame:
    """Every verdict, and of a record that was judged twice the later one."""
    once = batch.join(whole.select("partition", "offset"), ["partition", "offset"], "left_anti")
    return whole.unionByName(once.select(whole.columns))


def _reasons(batch: DataFrame) -> dict[str, int]:
    """What new records are rejected for."""
    return dict(batch.where(~_good() & ~F.col(AGAIN)).groupBy("reason").count().collect())


def _told(accounts: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in accounts.items() if count or name not in RARE}
