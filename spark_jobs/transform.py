"""The transform job: decode what is new in the archive, quarantine what is bad, merge the rest on the run's branch."""

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from uuid import uuid4

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from headrace import heads, record
from headrace.quarantine import SCHEMA as QUARANTINE
from headrace.stages.transform import REPLAYED, TransformPlan
from spark_jobs import decoding, merging, origins
from spark_jobs.conditions import any_of
from spark_jobs.session import session

SNAPSHOT_PROPERTY = "spark.sql.iceberg.snapshot-property."
ACCOUNTS = "headrace.accounts"
RARE = ("replayed", "imported")
"""Accounts that are told only where there is something to tell."""


def run(plan: str, *, remote: str | None, properties: Mapping[str, str]) -> str:
    """The job's shell: a plan in, accounts out, both as JSON."""
    with session(remote, properties=properties) as spark:
        return json.dumps(transform(spark, TransformPlan.model_validate_json(plan)))


def transform(spark: SparkSession, plan: TransformPlan) -> dict[str, int]:
    """Run a plan; its last step is one commit of rows and heads on the branch. Returns the accounts."""
    spark.sql(f"alter table {plan.clean} create or replace branch `{plan.branch}` as of version {plan.base}")
    standing = spark.read.table(plan.clean)
    with ExitStack() as kept:
        placed = _flat(kept, origins.placed(new_records(spark, plan), plan, spark))
        records = _keep(kept, decoding.decoded(placed, plan))
        if plan.merge == "append":
            records = _keep(kept, merging.judge_appends(records, standing, plan))
        seen = survey(records, plan)
        if seen.accounts["quarantined"]:
            quarantine(records, plan)
        good = records.where(F.col("reason").isNull())
        rows = versions = merging.versions(good.where(F.col("value").isNotNull()), plan)
        if seen.accounts["tombstones"]:
            tombstones = merging.versions(good.where(F.col("value").isNull()), plan, merging.after())
            rows = rows.union(merging.ranked_tombstones(tombstones, versions, standing, plan))
        if seen.replayed or seen.elsewhere:
            rows = rows.union(merging.standing_tombstones(versions, standing, plan))
        commit(spark, rows, plan=plan, seen=seen)
    return seen.accounts


def _flat(kept: ExitStack, frame: DataFrame) -> DataFrame:
    """The same frame by a name: Spark Connect refuses queries that are nested too deeply, and a name is one level."""
    spark, name = frame.sparkSession, f"headrace_{uuid4().hex}"
    frame.createOrReplaceTempView(name)
    kept.callback(spark.catalog.dropTempView, name)
    return spark.table(name)


def _keep(kept: ExitStack, frame: DataFrame) -> DataFrame:
    """Keep a frame that several steps read, so that it is computed once; released at the end."""
    kept.callback(frame.persist().unpersist)
    return frame


def new_records(spark: SparkSession, plan: TransformPlan) -> DataFrame:
    """The archive's records in the planned spans; offset statistics leave out files that hold none of them."""
    spans = (
        (F.col("partition") == number) & (F.col("offset") >= first) & (F.col("offset") < next_)
        for number, (first, next_) in plan.spans.items()
    )
    archive = spark.read.option("versionAsOf", plan.archive_snapshot).table(plan.archive)
    # Only an archive of two topics has it, and not in snapshots from before it held the second.
    after = F.col(record.AFTER) if record.AFTER in archive.columns else F.lit(None).cast("map<int, bigint>")
    columns = [F.col(name) for name in ("partition", "offset", "timestamp", "key", "value", "headers")]
    return archive.where(any_of(spans)).select(*columns, after.alias(record.AFTER))


@dataclass(frozen=True)
class Survey:
    """What a batch holds: its accounts, and where its good rows lie by an immutable partition field."""

    accounts: dict[str, int]
    lowest: int | None
    highest: int | None
    replayed: dict[int, tuple[int, int]]
    """The spans of the originals of replayed records: outside the run's own, yet their rows may have changed."""
    elsewhere: bool
    """Whether records were replayed from some other topic, in whatever order."""


def survey(records: DataFrame, plan: TransformPlan) -> Survey:
    """Look over the batch once."""
    good = F.col("reason").isNull()
    place = number(F.col("row")[plan.immutable_partition], plan) if plan.immutable_partition else F.lit(None)
    row = records.agg(
        F.count("*").alias("read"),
        F.count("reason").alias("quarantined"),
        F.count_if(F.col("value").isNull() & good).alias("tombstones"),
        F.count_if("replayed").alias("replayed"),
        F.count_if("imported").alias("imported"),
        F.min(F.when(good, place)).alias("lowest"),
        F.max(F.when(good, place)).alias("highest"),
        F.coalesce(F.bool_or(origins.is_from_elsewhere(F.col("rank_partition"))), F.lit(False)).alias("elsewhere"),
    ).first()
    assert row is not None, "an aggregate without groups gives one row"
    counts = row.asDict()
    lowest, highest, elsewhere = (counts.pop(name) for name in ("lowest", "highest", "elsewhere"))
    accounts = {name: count for name, count in counts.items() if count or name not in RARE}
    return Survey(accounts, lowest, highest, originals(records) if counts["replayed"] else {}, elsewhere)


def originals(records: DataFrame) -> dict[int, tuple[int, int]]:
    """The span of each partition that the originals of replayed records lie in."""
    spans = records.where("replayed").groupBy("partition").agg(F.min("offset"), F.max("offset"))
    return {number: (first, last + 1) for number, first, last in spans.collect()}


def quarantine(records: DataFrame, plan: TransformPlan) -> None:
    """Add the rejected records that are not there yet: a run that died after this writes none of them twice."""
    rejected = records.where(F.col("reason").isNotNull()).withColumn("quarantined_at", F.current_timestamp())
    rows = rejected.select(*(field.name for field in QUARANTINE.fields))
    # A record and its replayed copies may come in one batch.
    source = rows.dropDuplicates(["partition", "offset"]).alias("s")
    target = f"`{plan.feed}`"  # a merge's condition knows its target by the table's own name
    known = F.expr(f"s.partition = {target}.partition and s.offset = {target}.offset")
    source.mergeInto(plan.quarantine, known).whenNotMatched().insertAll().merge()


def commit(spark: SparkSession, rows: DataFrame, *, plan: TransformPlan, seen: Survey) -> None:
    """Merge the rows into the branch, with the heads and accounts in the same snapshot."""
    branch = f"branch_{plan.branch}"
    dropped = (F.lit(None).cast(type_).alias(name) for name, type_ in plan.dropped.items())
    reduced = merging.winners(rows, plan).select("*", *dropped)
    on = merging.same_key(plan.key, "s.", f"`{branch}`.") & touched(plan, seen, target=branch)
    spark.conf.set(f"{SNAPSHOT_PROPERTY}{heads.PROPERTY}", plan.heads)
    spark.conf.set(f"{SNAPSHOT_PROPERTY}{ACCOUNTS}", json.dumps(seen.accounts))
    if seen.replayed:
        spark.conf.set(f"{SNAPSHOT_PROPERTY}{REPLAYED}", json.dumps(seen.replayed))
    merge = reduced.alias("s").mergeInto(f"{plan.clean}.`{branch}`", on)
    if plan.merge != "append":
        merge = merge.whenMatched(merging.wins(plan, "s.", f"`{branch}`.")).updateAll()
    merge.whenNotMatched().insertAll().merge()


def touched(plan: TransformPlan, seen: Survey, *, target: str) -> Column:
    """Where the batch's keys may lie already, so that the merge leaves all other partitions unread."""
    # A tombstone knows its key but not its partition, so its row may lie anywhere.
    if plan.immutable_partition is None or seen.accounts["tombstones"]:
        return F.lit(True)
    column = F.col(f"`{target}`.`{plan.immutable_partition}`")
    if seen.lowest is None:
        return column.isNull()
    return column.between(moment(seen.lowest, plan), moment(seen.highest, plan)) | column.isNull()


# Bounds travel as numbers: Python's datetimes know no year 10,000 and take an hour twice a year for another one.
def number(place: Column, plan: TransformPlan) -> Column:
    """A date as days, a timestamp as microseconds since 1970."""
    is_date = plan.columns[plan.immutable_partition or ""] == "date"
    return F.unix_date(place) if is_date else F.unix_micros(place.cast("timestamp"))


def moment(value: int | None, plan: TransformPlan) -> Column:
    """The number as the partition field's own type again."""
    type_ = plan.columns[plan.immutable_partition or ""]
    since = F.date_from_unix_date(F.lit(value)) if type_ == "date" else F.timestamp_micros(F.lit(value))
    return since.cast(type_)
