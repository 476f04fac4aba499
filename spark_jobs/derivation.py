"""The derivation job: all rows of a clean table made once more from its archive, left in a file and in no table."""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headrace.clean import FROM_OFFSET, FROM_PARTITION, HIDDEN_ROW
from headrace.quarantine import Reason
from headrace.stages.derivation import EXPECTED, DerivationPlan
from spark_jobs import appending, envelopes, standing
from spark_jobs.conditions import lies_in
from spark_jobs.deciding import WRITES
from spark_jobs.failure import translated
from spark_jobs.session import session
from spark_jobs.transform import Transform, survey

AT_ONCE = 500_000
"""So many rows are fetched at a time, and held in memory."""
BATCH = 16_384
HELD, WELL = "_held", "_well"
COORDINATES = ["partition", "offset"]


def run(plan: str, *, remote: str | None, properties: Mapping[str, str]) -> str:
    """The job's shell: a plan in, the number of rows out; they lie in the plan's folder."""
    planned = DerivationPlan.model_validate_json(plan)
    with (
        translated(f"on making {planned.made.feed} once more"),
        session(remote, properties=properties, small=planned.made.small) as spark,
        ExitStack() as kept,
    ):
        rows = derived(Transform(spark, planned.made, kept), planned)
        return json.dumps({"rows": left(rows, Path(planned.folder) / EXPECTED, key=planned.made.key)})


def derived(work: Transform, plan: DerivationPlan) -> DataFrame:
    """Each key as all its records together make it; of a deleted one, nothing but that."""
    made, clean = plan.made, standing.table(work.spark, plan.made)
    admitted, _ = work.admitted(work.judged(envelopes.asked(work.spark, made)))
    batch = work.keep(work.flat(recorded(work, plan, admitted)))
    seen = survey(batch, made)
    met = work.met(clean, batch.where(_good()), seen)
    if made.merge == "append":
        batch = work.keep(work.flat(appending.judged(batch, met, made)))
        seen = survey(batch, made)
    rows = work.merged(batch.where(_good()), met, seen).where(WRITES)
    bare = (
        F.col(name) if name in made.key else F.when(~F.col(HIDDEN_ROW), F.col(name)).alias(name)
        for name in made.columns
    )
    shown = rows.select(*bare, HIDDEN_ROW)
    if plan.dropped:
        shown = shown.join(_untold(work, plan), made.key, "left_anti")
    return work.keep(work.flat(shown))


def recorded(work: Transform, plan: DerivationPlan, judged: DataFrame) -> DataFrame:
    """The records with the verdicts that runs have come to, which rules of today might not."""
    if plan.made.quarantine_snapshot is None:
        return judged
    rows = work.spark.read.option("versionAsOf", plan.made.quarantine_snapshot).table(plan.made.quarantine)
    if "rejected_by" in rows.columns:
        rows = rows.where(F.col("rejected_by").isNull())
    held = rows.select(*COORDINATES, F.lit(True).alias(HELD))
    joined = judged.join(held, COORDINATES, "left")
    rejected = F.coalesce(F.col("reason"), F.lit(Reason.CHECK.value))
    reason = F.when(F.col(HELD), rejected).otherwise(F.col("reason"))
    told = joined.withColumn("reason", reason)
    if not (plan.verdicts_kept and plan.made.checks):
        return told.select(judged.columns)
    # What breaks a check and is not in quarantine was merged before there was that check; unless somebody mended it,
    # and it is the good copy that was merged.
    well = judged.where(_good()).select(*COORDINATES).distinct().withColumn(WELL, F.lit(True))
    forgiven = (F.col("reason") == Reason.CHECK.value) & F.col(HELD).isNull() & F.col(WELL).isNull()
    mended = work.flat(told).join(well, COORDINATES, "left")
    return mended.withColumn("reason", F.when(~forgiven, F.col("reason"))).select(judged.columns)


def _untold(work: Transform, plan: DerivationPlan) -> DataFrame:
    """The keys whose rows cannot be made once more: records are gone that made them, or that deleted them."""
    made = plan.made
    gone = lies_in(F.col(FROM_PARTITION), F.col(FROM_OFFSET), plan.dropped)
    table = work.spark.read.option("versionAsOf", made.base).table(made.clean)
    return table.where(F.col(HIDDEN_ROW) | gone).select(*made.key)


def left(rows: DataFrame, file: Path, *, key: list[str]) -> int:
    """Leave rows in a file, so many at a time that they fit into memory; how many they are."""
    count = rows.count()
    with pa.OSFile(str(file), "wb") as sink, ExitStack() as opened:
        writer: pa.ipc.RecordBatchStreamWriter | None = None
        for part in _parts(rows, 1 + count // AT_ONCE, key=key):
            table: pa.Table = part.toArrow()
            if writer is None:
                options = pa.ipc.IpcWriteOptions(compression="zstd")
                writer = opened.enter_context(pa.ipc.new_stream(sink, table.schema, options=options))
            writer.write_table(table, max_chunksize=BATCH)
    return count


def _parts(rows: DataFrame, parts: int, *, key: list[str]) -> Iterator[DataFrame]:
    if parts == 1:
        yield rows
        return
    for number in range(parts):
        yield rows.where(F.pmod(F.xxhash64(*key), F.lit(parts)) == number)


def _good() -> Column:
    return F.col("reason").isNull()
