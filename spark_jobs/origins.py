"""Origins: which record each archived one is, and where it ranks, by the signed headers of replay and import.

The signature is verified with Spark's own hashes. The keys come in a table of one row, never as a literal: a query's
plan is shown and logged in many places, and shows what a literal holds.
"""

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from headrace import provenance
from headrace.clean import RANK_OFFSET, RANK_PARTITION
from headrace.heads import Heads
from headrace.provenance import ABSENT, IMPORT, PAYLOADS, REPLAY
from headrace.record import AFTER
from headrace.stages.transform import TransformPlan
from spark_jobs.conditions import lies_in

# Partitions below zero are a drained topic's. Farther below, in regions of their own, rank the records that came from
# some other topic, and those that were imported: history, below everything that came live.
DRAINED, ELSEWHERE, IMPORTED = -(2**28), -(2**29), -(2**30)

SIGNATURE = 64
"""Hex digits."""
PADS, SAID = "_pads", "_said"


def is_from_elsewhere(rank_partition: Column) -> Column:
    """Whether a rank is that of a record replayed from a topic that is neither the own nor the drained one."""
    return ((rank_partition <= ELSEWHERE) & (rank_partition > IMPORTED)) | (rank_partition <= IMPORTED + ELSEWHERE)


def is_gone(rank: Column, plan: TransformPlan) -> Column:
    """Whether a rank may be that of a record that the archive no longer has.

    Of one that was replayed from some other topic nothing tells where it lay in the archive.
    """
    places = {number: number for number in plan.gone} | {IMPORTED + _depth(number): number for number in plan.gone}
    spans = {place: plan.gone[number] for place, number in places.items()}
    return lies_in(rank[RANK_PARTITION], rank[RANK_OFFSET], spans) | is_from_elsewhere(rank[RANK_PARTITION])


def _depth(number: int) -> int:
    """How deep in its region a partition lies; those of a drained topic lie below all others."""
    return DRAINED + number + 1 if number < 0 else -number


def placed(records: DataFrame, plan: TransformPlan, spark: SparkSession) -> DataFrame:
    """The records with the coordinates that they come from and rank by, and what else their headers prove of them.

    A record that was replayed to its own topic, or from the drained one, is the original: it takes its coordinates.
    """
    pads = [(provenance.pads(bytes.fromhex(secret)),) for secret in plan.signing]
    keys = spark.createDataFrame([(pads,)], f"{PADS} array<struct<key: struct<inner: binary, outer: binary>>>")
    said = records.crossJoin(F.broadcast(keys)).withColumn(SAID, F.expr(_said()))
    return said.withColumns(_places(plan)).drop(PADS, SAID)


# As text: Spark Connect refuses queries that are nested too deeply, and a text is one level.
def _said() -> str:
    """What the headers say, as far as it is proven; forged is what is not. Null, at once, for a record without them."""
    replay, import_ = _text(REPLAY), _text(IMPORT)
    return f"""
        case when exists(headers, header -> header.name in ('{REPLAY}', '{IMPORT}')) then named_struct(
            'replay', case when {_is_genuine(REPLAY, replay)} then {_payload(replay)} end,
            'import', {_is_genuine(IMPORT, import_)},
            'forged', {_is_forged(REPLAY, replay)} or {_is_forged(IMPORT, import_)}
        ) end"""


def _values(name: str) -> str:
    return f"filter(headers, header -> header.name = '{name}')"


def _text(name: str) -> str:
    """The text of the header; null when there is none, or more than the one that can be ours."""
    return f"if(size({_values(name)}) = 1, cast({_values(name)}[0].value as string), null)"


def _is_forged(name: str, text: str) -> str:
    return f"(size({_values(name)}) > 0 and not {_is_genuine(name, text)})"


def _is_genuine(name: str, text: str) -> str:
    well_formed = f"{text} rlike r'^[0-9a-f]{{{SIGNATURE}}}:{PAYLOADS[name].pattern}\\z'"
    signed = f"concat_ws('\\n', '{name}', {_payload(text)}, {_digest('key')}, {_digest('value')})"
    inner = f"unhex(sha2(concat(pad.key.inner, cast({signed} as binary)), 256))"
    proven = f"exists({PADS}, pad -> sha2(concat(pad.key.outer, {inner}), 256) = substring({text}, 1, {SIGNATURE}))"
    return f"coalesce({well_formed} and {proven}, false)"


def _payload(text: str) -> str:
    return f"substring({text}, {SIGNATURE + 2})"


def _digest(column: str) -> str:
    return f"coalesce(sha2({column}, 256), '{ABSENT}')"


def _places(plan: TransformPlan) -> dict[str, Column]:
    heads = Heads.from_json(plan.heads)
    said = F.col(SAID)
    partition, offset = F.col("partition"), F.col("offset")
    topic, number, place = (F.regexp_extract(said["replay"], r"^(.*)/(\d+)/(\d+)\z", group) for group in (1, 2, 3))
    number, place = number.try_cast("int"), place.try_cast("bigint")
    own = F.coalesce(topic == F.lit(heads.topic_id), F.lit(False))
    of_drained = F.coalesce(topic == F.lit(heads.drained_id), F.lit(False)) if heads.drained_id else F.lit(False)
    replayed = F.coalesce(said["replay"].isNotNull(), F.lit(False))
    elsewhere = replayed & ~own & ~of_drained
    is_copy = own | of_drained
    from_partition = F.when(own, number).when(of_drained, -1 - number).otherwise(partition)
    imported = F.coalesce(said["import"], F.lit(False))
    # An imported record that was replayed is still an imported one.
    live = F.when(elsewhere, F.lit(ELSEWHERE) - number).otherwise(from_partition)
    depth = (
        F.when(elsewhere, F.lit(ELSEWHERE) - number)
        .when(from_partition < 0, F.lit(DRAINED) + from_partition + 1)
        .otherwise(-from_partition)
    )
    return {
        "partition": from_partition.cast("int"),
        "offset": F.when(is_copy, place).otherwise(offset),
        "rank_partition": F.when(imported, F.lit(IMPORTED) + depth).otherwise(live).cast("int"),
        "rank_offset": F.when(replayed, place).otherwise(offset),
        "drained": of_drained | (~own & (partition < 0)),
        "replayed": is_copy,
        "imported": imported,
        "forged": F.coalesce(said["forged"], F.lit(False)),
        # How far the drained topic was when a copy was archived says nothing of the original.
        AFTER: F.when(~replayed, F.col(AFTER)),
    }
