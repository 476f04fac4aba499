"""Framing: the id of the schema that each value was written with, and the bytes that it is about."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headrace.stages.transform import TransformPlan

BY_ID, BY_GUID = "00", "01"
"""The first byte says how the schema is named: by its id in four bytes, the highest first, or by its guid in 16."""
ID_BYTES, GUID_BYTES = 4, 16

# As text: Spark Connect refuses queries that are nested too deeply, and a text is one level. Of several headers the
# first counts, as it does for Confluent's deserializers.
MARK = "get(filter(headers, header -> header.name = '__value_schema_id'), 0).value"


def framed(records: DataFrame, plan: TransformPlan) -> DataFrame:
    """The records with `mark` (a header that names the schema), `schema_id` and `payload`, what is to be decoded."""
    value, mark, inside = F.col("value"), F.col("mark"), F.col("inside")
    inner = named_id(value, plan.guids)
    # What no header names and no frame is read by the schema that the feed declares for such values.
    declared = F.when(F.col("drained"), F.lit(plan.drained_unframed)).otherwise(F.lit(plan.unframed))
    is_frame = inside.isNotNull()
    if plan.schema_type == "AVRO":
        # Any bytes may be Avro, also what looks like a frame. No JSON text begins with such a byte.
        is_frame &= declared.isNull() | known(inside, plan)
    start = F.when(_first(value) == BY_GUID, F.lit(2 + GUID_BYTES)).otherwise(F.lit(2 + ID_BYTES))
    return (
        records.withColumn("mark", F.expr(MARK))
        .withColumn("inside", F.when(mark.isNull(), inner))
        .withColumns(
            {
                "schema_id": F.when(mark.isNotNull(), named_id(mark, plan.guids))
                .when(is_frame, inside)
                .when(value.isNotNull(), declared)
                .cast("bigint"),
                "payload": F.when(is_frame, value.substr(start, F.length(value))).otherwise(value),
            }
        )
        .drop("inside", "headers")
    )


def known(id_: Column, plan: TransformPlan) -> Column:
    """Whether an id is one of the subject's whose topic the record came in."""
    return F.when(F.col("drained"), id_.isin(list(plan.drained))).otherwise(id_.isin(list(plan.writers)))


def named_id(frame: Column, guids: Mapping[str, int]) -> Column:
    """The id that some bytes begin with, in either form; null where they name none, or a guid that is not known."""
    by_id = (_first(frame) == BY_ID) & (F.length(frame) > ID_BYTES)
    found = F.when(by_id, F.conv(F.hex(F.substring(frame, 2, ID_BYTES)), 16, 10).cast("bigint"))
    if not guids:
        return found
    ids = F.create_map(*(F.lit(each) for pair in guids.items() for each in pair))
    by_guid = (_first(frame) == BY_GUID) & (F.length(frame) > GUID_BYTES)
    return found.when(by_guid, F.try_element_at(ids, F.hex(F.substring(frame, 2, GUID_BYTES))).cast("bigint"))


def _first(frame: Column) -> Column:
    return F.hex(F.substring(frame, 1, 1))
