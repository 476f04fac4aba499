"""Decoding: archive envelopes to typed rows, each by the schema whose id it carries; what fails gets a reason."""

import json
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from pyiceberg.types import IcebergType, ListType, MapType, StructType, UUIDType
from pyspark import cloudpickle
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headrace import json_text
from headrace.columns import JsonText, field_types
from headrace.columns.avro_names import resolved
from headrace.columns.union import version_types
from headrace.quarantine import Reason
from headrace.stages.transform import TransformPlan, spark_type
from spark_jobs import avro_rows, json_rows
from spark_jobs.conditions import any_of
from spark_jobs.fitness import unfit
from spark_jobs.framing import framed, known
from spark_jobs.json_rows import Shape, narrowed, rows
from spark_jobs.projection import lost, projected

JSON_RECORDS_PER_WORKER = 50_000
"""A Python worker takes a second to start: fewer records than this are not worth another one."""

ENDLESS = r"[eE][-+]?\d{4,}"
"""An exponent at which Spark fails, or writes all the digits out, where it reads a decimal from a text."""

Types = Mapping[str, IcebergType]
UNDECODABLE = Reason.UNDECODABLE.value

# Spark's workers have none of our code: what they run of it is sent to them.
for module in (json_rows, json_text):
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def decoded(records: DataFrame, plan: TransformPlan) -> DataFrame:
    """The records with `schema_id`, the struct `row` (null for a tombstone) and, where one is rejected, `reason`."""
    types = field_types(plan.schema_type, json.loads(plan.reader))
    named = framed(records, plan)
    read = _avro(named, plan, types) if plan.schema_type == "AVRO" else _json(named, plan, types)
    for id_, writer in plan.drained.items():
        read = _drained(read, plan, types, writer=(id_, writer))
    keyed = read.withColumn("row", F.when(F.col("value").isNull(), tombstone_row(plan, types)).otherwise(F.col("row")))
    return keyed.withColumn("reason", reason(plan, types)).drop("payload", "mark", "fault")


def _avro(named: DataFrame, plan: TransformPlan, types: Types) -> DataFrame:
    """One pass whatever number of versions is mixed: each record meets only the branch of its own id."""
    read = _by_id(plan.writers, lambda writer: avro_rows.read(F.col("payload"), writer=writer, reader=plan.reader))
    fields = _avro_fields(F.col("read"), plan.reader)
    return (
        named.withColumn("read", read)
        .withColumns(
            {"row": _struct(fields, types), "fault": F.when(_is_empty(F.col("read"), types), F.lit(UNDECODABLE))}
        )
        .drop("read")
    )


def _avro_fields(read: Column, schema: str) -> dict[str, Column]:
    """The fields of a record that Spark has read, in their columns' types."""
    fields = resolved(json.loads(schema), [])["fields"]
    return {field["name"]: avro_rows.typed(read[field["name"]], field["type"]) for field in fields}


def _is_empty(read: Column, types: Types) -> Column:
    """A record that does not decode comes back as a row of nulls."""
    return F.coalesce(*(read[name].cast("string") for name in types)).isNull()


def _json(named: DataFrame, plan: TransformPlan, types: Types) -> DataFrame:
    """Every record is validated against the schema that it was written with, then read by the feed's own."""
    if not plan.window:  # how many records a window has is not known beforehand
        records = sum(next_ - first for first, next_ in plan.spans.values())
        named = named.coalesce(1 + records // JSON_RECORDS_PER_WORKER)
    read = named.withColumn("read", _json_read(plan.writers, types, own=plan.own))
    return read.withColumns({"row": F.col("read.row"), "fault": F.col("read.fault")}).drop("read")


def _json_read(writers: Mapping[int, str], types: Types, *, own: str | None = None) -> Column:
    """The row and the fault of each record that one of the writers wrote."""
    whole, shapes = shape_of(types), {}
    if own is not None:
        now = shape_of(field_types("JSON", json.loads(own)))
        versions = {id_: shape_of(version_types(text)) for id_, text in writers.items()}
        shapes = {id_: narrowed(whole, now, version) for id_, version in versions.items()}
    fields = ", ".join(f"`{name}`: {spark_type(type_)}" for name, type_ in types.items())

    @F.arrow_udf(f"struct<fault: string, row: struct<{fields}>>")  # type: ignore[attr-defined, untyped-decorator]
    def read(ids: pa.Array, texts: pa.Array) -> pa.Array:
        return rows(ids.to_pylist(), texts.to_pylist(), writers=writers, shape=whole, shapes=shapes)

    return read(F.col("schema_id"), F.col("payload"))  # type: ignore[no-any-return]


def shape_of(types: Types) -> Shape:
    return "struct", {name: shape(type_) for name, type_ in types.items()}


def shape(type_: IcebergType) -> Shape:
    """A type as the workers take it, who know no Iceberg."""
    match type_:
        case StructType(fields=fields):
            return "struct", {field.name: shape(field.field_type) for field in fields}
        case ListType():
            return "list", shape(type_.element_type)
        case MapType():
            return "map", shape(type_.value_type)
        case JsonText():
            return "json"
    return str(type_)


def _drained(read: DataFrame, plan: TransformPlan, types: Types, *, writer: tuple[int, str]) -> DataFrame:
    """Records of a drained topic, decoded by their own schema and projected by name; a cast that loses is no cast."""
    id_, schema = writer
    mine = F.col("drained") & (F.col("schema_id") == id_)
    before = field_types(plan.schema_type, json.loads(schema))
    if plan.schema_type == "AVRO":
        old = F.when(mine, avro_rows.read(F.col("payload"), writer=schema, reader=schema))
        named, fault = _avro_fields(F.col("old"), schema), F.when(_is_empty(F.col("old"), before), F.lit(UNDECODABLE))
        absent = avro_rows.defaults(resolved(json.loads(plan.reader), [])["fields"])
    else:
        old = _json_read({id_: schema}, before)
        named, fault, absent = {name: F.col("old.row")[name] for name in before}, F.col("old.fault"), {}
    sources = {name: plan.renames.get(name, name) for name in types}
    row = {
        name: projected(named[source], before[source], types[name])
        if source in before
        else absent.get(name, F.lit(None))
        for name, source in sources.items()
    }
    loses = any_of(
        lost(named[source], before[source], types[name]) for name, source in sources.items() if source in before
    )
    faulty = F.coalesce(fault, F.when(loses, F.lit(UNDECODABLE)))
    return (
        read.withColumn("old", old)
        .withColumns(
            {
                "row": F.when(mine, _struct(row, types)).otherwise(F.col("row")),
                "fault": F.when(mine, faulty).otherwise(F.col("fault")),
            }
        )
        .drop("old")
    )


def _by_id(writers: Mapping[int, str], branch: Callable[[str], Column]) -> Column:
    """A case expression over the schema ids; null for an id that is not among them."""
    cases = iter(writers.items())
    id_, writer = next(cases)
    chosen = F.when(F.col("schema_id") == id_, branch(writer))
    for id_, writer in cases:
        chosen = chosen.when(F.col("schema_id") == id_, branch(writer))
    return chosen


def _struct(values: Mapping[str, Column], types: Types) -> Column:
    """A row of all columns; null where there is no value."""
    return F.struct(
        *(values.get(name, F.lit(None)).cast(spark_type(type_)).alias(name) for name, type_ in types.items())
    )


def tombstone_row(plan: TransformPlan, types: Types) -> Column:
    """A tombstone has no fields but its key, which the Kafka key tells: its text, or a JSON object for several."""
    text = F.col("key").cast("string")
    if len(plan.key) == 1:
        type_ = plan.columns[plan.key[0]]
        measured = F.when(~text.rlike(ENDLESS), text) if type_.startswith("decimal") else text
        keys = {plan.key[0]: measured.try_cast(type_)}
    else:
        own = _key_fields(text, plan, {name: [name, *plan.aliases.get(name, ())] for name in plan.key})
        older = _key_fields(text, plan, {name: [plan.renames.get(name, name)] for name in plan.key})
        keys = {name: F.when(F.col("drained"), older[name]).otherwise(own[name]) for name in plan.key}
    lowered = {name: F.lower(value) if isinstance(types[name], UUIDType) else value for name, value in keys.items()}
    return _struct(lowered, types)


def _key_fields(text: Column, plan: TransformPlan, names: Mapping[str, Sequence[str]]) -> dict[str, Column]:
    """The fields of a key that is a JSON object, each by the first of its names that is there."""
    types = {source: plan.columns[name] for name, sources in names.items() for source in sources}
    decimals = [source for source, type_ in types.items() if type_.startswith("decimal")]
    if decimals:
        text = F.when(~any_of(text.rlike(rf'"{source}"\s*:\s*"?[-+.\d]*{ENDLESS}') for source in decimals), text)
    parsed = F.from_json(text, ", ".join(f"`{source}` {type_}" for source, type_ in types.items()))
    return {name: F.coalesce(*(parsed[source] for source in sources)) for name, sources in names.items()}


def reason(plan: TransformPlan, types: Types) -> Column:
    """Why a record is rejected, the first reason that applies; null when it is good."""
    tombstone = F.col("value").isNull()
    refused = F.lit(Reason.TOMBSTONE.value if plan.merge == "append" else None)
    keyless = any_of(F.col("row")[name].isNull() for name in plan.key)
    unfit_row = any_of(unfit(F.col("row")[name], type_) for name, type_ in types.items())
    return (
        F.when(F.col("forged"), F.lit(Reason.FORGED.value))
        .when(tombstone & keyless, F.lit(Reason.KEYLESS.value))
        .when(tombstone & unfit_row, F.lit(Reason.KEYLESS.value))
        .when(tombstone, refused)
        .when(F.col("schema_id").isNull() & F.col("mark").isNull(), F.lit(Reason.UNFRAMED.value))
        .when(~F.coalesce(known(F.col("schema_id"), plan), F.lit(False)), F.lit(Reason.UNKNOWN_ID.value))
        .when(F.col("fault").isNotNull(), F.col("fault"))
        .when(unfit_row, F.lit(UNDECODABLE))
        .when(keyless, F.lit(Reason.KEYLESS.value))
    )
