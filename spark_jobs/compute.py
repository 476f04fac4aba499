"""The compute job: calls a team's function with its inputs' clean rows, and leaves what differs from what is there."""

import importlib.util
import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headrace.clean import HIDDEN_ROW
from headrace.errors import JobError
from headrace.fault import nearest
from headrace.stages.compute import CHANGED, GONE, KEYS, ComputePlan, InputPlan
from spark_jobs.failure import silence
from spark_jobs.session import session

Function = Callable[..., DataFrame]


def run(plan: str, *, remote: str | None, properties: Mapping[str, str]) -> str:
    """The job's shell: a plan in, figures out, both as JSON; the rows lie in the plan's folder."""
    silence()
    planned = ComputePlan.model_validate_json(plan)
    try:
        with session(remote, properties=properties, small=planned.small) as spark:
            if not remote:
                _tell_of_no_lost_task(spark)
            return json.dumps(compute(spark, planned))
    except PySparkException as error:
        raise JobError(f"{Path(planned.file).name}: Spark gave up: {told(error)}") from None


def _tell_of_no_lost_task(spark: SparkSession) -> None:
    """A driver of its own writes to the task's log, and of a task that it lost the whole message: what it failed at."""
    log4j = spark._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
    log4j.core.config.Configurator.setLevel("org.apache.spark.scheduler.TaskSetManager", log4j.Level.OFF)


def told(error: PySparkException) -> str:
    """What is wrong with a query is told whole; what went wrong with its rows by its name only: it may quote one."""
    return str(error) if isinstance(error, AnalysisException) else f"{type(error).__name__} {error.getCondition()}"


def compute(spark: SparkSession, plan: ComputePlan) -> dict[str, int]:
    """Compute all rows, and tell how many there are, how many differ and how many are gone."""
    called = function(plan)
    rows = called(**{name: visible(spark, each) for name, each in plan.inputs.items()})
    made = fitted(rows, plan).persist()
    try:
        count = unique(made, plan)
        before = standing(spark, plan)
        # Spark compares no maps; what is published though it is there already changes nothing.
        alike = not plan.whole and not any("map<" in type_ for type_ in plan.columns.values())
        changed = made.exceptAll(before) if alike and before is not None else made
        keys = made.select(*plan.key)
        gone = keys.limit(0) if before is None else before.select(*plan.key).exceptAll(keys)
        folder = Path(plan.folder)
        figures = {"changed": left(changed, folder / CHANGED), "gone": left(gone, folder / GONE)}
        left(keys if plan.whole else keys.limit(0), folder / KEYS)
        return {"rows": count, **figures}
    finally:
        made.unpersist()


def function(plan: ComputePlan) -> Function:
    """The function of the feed's name, whose parameters are its inputs."""
    spec = importlib.util.spec_from_file_location(f"headrace_job_{plan.feed}", plan.file)
    assert spec is not None, "it is a Python file"
    assert spec.loader is not None, "it is a Python file"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = getattr(module, plan.feed, None)
    file = Path(plan.file).name
    if not callable(found):
        raise JobError(f"{file}: it has no function {plan.feed}, as its feed is called. Define {signature(plan)}.")
    takes = list(inspect.signature(found).parameters)
    if sorted(takes) != sorted(plan.inputs):
        raise JobError(
            f"{file}: {plan.feed} takes {', '.join(takes) or 'nothing'}, but its feed names the inputs "
            f"{', '.join(plan.inputs)}. Define {signature(plan)}."
        )
    job: Function = found
    return job


def signature(plan: ComputePlan) -> str:
    return f"{plan.feed}({', '.join(f'{name}: DataFrame' for name in plan.inputs)}) -> DataFrame"


def visible(spark: SparkSession, given: InputPlan) -> DataFrame:
    """An input's rows as readers see them."""
    table = spark.read.option("versionAsOf", given.snapshot).table(given.table)
    return table.where(~F.col(HIDDEN_ROW)).select(*given.columns)


def fitted(rows: DataFrame, plan: ComputePlan) -> DataFrame:
    """The rows in the feed's own columns: numbers lose what digits these have no room for, and what cannot be cast is
    Spark's error."""
    missing = [name for name in plan.columns if name not in rows.columns]
    strange = [name for name in rows.columns if name not in plan.columns]
    if missing or strange:
        hints = " ".join(nearest(name, rows.columns) for name in missing)
        raise JobError(
            f"{Path(plan.file).name}: its rows lack {', '.join(missing) or 'nothing'} and have "
            f"{', '.join(strange) or 'nothing'} besides the fields of {plan.feed}. {hints}".rstrip()
        )
    return rows.select(*(F.col(name).cast(type_).alias(name) for name, type_ in plan.columns.items()))


def unique(rows: DataFrame, plan: ComputePlan) -> int:
    """How many rows there are; each key may come once."""
    found = rows.agg(F.count("*").alias("rows"), F.count_distinct(F.struct(*plan.key)).alias("keys")).first()
    assert found is not None, "an aggregate without groups gives one row"
    if found["rows"] != found["keys"]:
        raise JobError(
            f"{Path(plan.file).name}: {found['rows']} rows have only {found['keys']} different keys "
            f"({', '.join(plan.key)}). Group by the key, or give {plan.feed} a wider one."
        )
    return int(found["rows"])


def standing(spark: SparkSession, plan: ComputePlan) -> DataFrame | None:
    """What the feed's clean table shows now."""
    if plan.clean is None or plan.base is None:
        return None
    given = InputPlan(table=plan.clean, snapshot=plan.base, columns=list(plan.columns))
    return fitted(visible(spark, given), plan)


def left(rows: DataFrame, file: Path) -> int:
    """Leave rows in a file; how many they are."""
    table: pa.Table = rows.toArrow()
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=16_384)
    return int(table.num_rows)
