"""The upkeep job: one piece of work, which rewrites small data files or deletes old rows of quarantine."""

from collections.abc import Mapping

from pyspark.sql import SparkSession

from headrace.errors import SparkFailed
from headrace.stages.compaction import Compacted, CompactionPlan
from headrace.stages.transform import spark_name
from spark_jobs.failure import translated
from spark_jobs.session import session
from spark_jobs.transform import SNAPSHOT_PROPERTY


def run(plan: str, *, remote: str | None, properties: Mapping[str, str]) -> str:
    """The job's shell: a plan in, figures out, both as JSON."""
    planned = CompactionPlan.model_validate_json(plan)
    with translated(f"on {'.'.join(planned.table)}"), session(remote, properties=properties) as spark:
        if planned.rows_before is not None:
            delete_rows(spark, planned, before=planned.rows_before)
        done = compact(spark, planned) if planned.files else Compacted()
    return done.model_dump_json()


def compact(spark: SparkSession, plan: CompactionPlan) -> Compacted:
    """Rewrite small files; each group of them is one commit, so that a kill costs the group at hand."""
    options = {
        "min-input-files": plan.inputs,
        "min-file-size-bytes": int(plan.small * plan.target),
        "target-file-size-bytes": plan.target,
        "max-files-to-rewrite": plan.files,
        "partial-progress.enabled": "true",
    }
    listed = ", ".join(f"'{name}', '{value}'" for name, value in options.items())
    call = (
        f"call `{plan.catalog}`.system.rewrite_data_files("
        f"table => :table, strategy => :strategy, options => map({listed}))"
    )
    row = spark.sql(call, args={"table": ".".join(plan.table), "strategy": plan.strategy}).first()
    assert row is not None, "the procedure tells what it did in one row"
    figures = row.asDict()
    if figures["failed_data_files_count"]:
        # Partial progress swallows a group's failure, a commit that came second included.
        raise SparkFailed(
            f"{'.'.join(plan.table)}: {figures['failed_data_files_count']} files were not rewritten, as a group of "
            f"them failed or somebody else committed first. The next upkeep tries again."
        )
    return Compacted(
        files=figures["rewritten_data_files_count"],
        into=figures["added_data_files_count"],
        bytes=figures["rewritten_bytes_count"],
    )


def delete_rows(spark: SparkSession, plan: CompactionPlan, *, before: int) -> None:
    """Delete what was quarantined before."""
    for name, value in plan.summary.items():
        spark.conf.set(f"{SNAPSHOT_PROPERTY}{name}", value)
    names = {"table": spark_name(plan.catalog, plan.table), "before": before}
    spark.sql("delete from identifier(:table) where quarantined_at < timestamp_micros(:before)", args=names)
