"""What a suite of Great Expectations costs beside one hand-written aggregate over the same cached rows.

    .venv/bin/python -m bench.checks [--rows 10000 100000 1000000 5000000] [--rounds 9]

Starts a Spark server of its own and makes rows in it, cached before anything is measured. In turns, in one process that
has everything imported: the suite of a feed, what its schema implies and six declared checks, as the check task asks
it; the same questions as one aggregate, written by hand; and the suite as Great Expectations' own engine asks it. The
figures go to bench/results/checks.md (--page for another place). HEADRACE_STATE=FOLDER uses the stack that runs there.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.figures import command, markdown
from bench.ground import ground
from stack.settings import REPOSITORY

STATE = REPOSITORY / ".headrace" / "bench-checks"
PAGE = REPOSITORY / "bench" / "results" / "checks.md"
ROWS = (10_000, 100_000, 1_000_000, 5_000_000)
TITLE = "# Checks: a suite beside one aggregate"
COUNTRIES = ("DE", "FR", "US")
FIELDS = [
    {"name": "id", "type": "string"},
    {"name": "revision", "type": "long"},
    {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["placed", "paid"]}},
    {"name": "price", "type": "double"},
    {"name": "country", "type": "string"},
]
CHECKS = [
    {"column": "price", "between": [0, 100_000]},
    {"column": "revision", "between": [0, 1000]},
    {"column": "country", "one_of": list(COUNTRIES)},
    {"column": "country", "matches": "^[A-Z]{2}$"},
    {"column": "id", "length": [1, 20]},
    {"row_count": [1, None]},
]
CONTENDERS = {
    "suite": "the suite, as the check task asks it",
    "aggregate": "one aggregate by hand",
    "plain": "the suite by Great Expectations' own engine",
}

console = Console(highlight=False, log_path=False)


@dataclass(frozen=True)
class Run:
    """One time that everything was asked."""

    rows: int
    contender: str
    seconds: float


def suite() -> list[Any]:
    """The expectations of a feed like `orders`."""
    from headrace import feed as feeds
    from headrace.stages import check

    schema = {"type": "record", "name": "Row", "fields": FIELDS, "feed": {"key": ["id"], "checks": CHECKS}}
    return check.suite(feeds.parse("rows.avsc", json.dumps(schema)))


def made(spark: Any, count: int) -> Any:
    """Rows that meet everything, cached."""
    from pyspark.sql import functions as F

    number = F.col("id")
    countries = F.array(*map(F.lit, COUNTRIES))
    rows = spark.range(count).select(
        F.format_string("order-%012d", number).alias("id"),
        (number % 100).alias("revision"),
        F.when(number % 2 == 0, "placed").otherwise("paid").alias("status"),
        (number % 1000).cast("double").alias("price"),
        F.element_at(countries, (number % len(COUNTRIES) + 1).cast("int")).alias("country"),
    )
    cached = rows.persist()
    cached.count()
    return cached


def aggregate(rows: Any) -> None:
    """The same questions as one query: a count of rows for each, and of different keys."""
    from pyspark.sql import functions as F

    column = F.col
    names = [field["name"] for field in FIELDS]
    found = rows.agg(
        F.count("*"),
        F.count_distinct("id"),
        *(F.count_if(column(str(name)).isNull()) for name in names),
        F.count_if(~column("status").isin("placed", "paid")),
        F.count_if(~column("price").between(0, 100_000)),
        F.count_if(~column("revision").between(0, 1000)),
        F.count_if(~column("country").isin(*COUNTRIES)),
        F.count_if(~column("country").rlike("^[A-Z]{2}$")),
        F.count_if(~F.length("id").between(1, 20)),
    ).collect()[0]
    assert found[0] == found[1]
    assert not any(found[2:])


def ours(rows: Any) -> None:
    from spark_jobs.check import validate

    assert all(outcome.success for outcome in validate(rows, suite()))


def plain(rows: Any) -> None:
    """As its own documentation has it."""
    import great_expectations as gx
    from great_expectations.expectations.registry import get_expectation_impl

    from spark_jobs.check import IN_MEMORY

    context = gx.get_context(mode="ephemeral", project_config=IN_MEMORY)
    asset = context.data_sources.add_spark("clean").add_dataframe_asset("rows")
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": rows})
    expectations = [get_expectation_impl(each.name)(**each.arguments) for each in suite()]
    assert batch.validate(gx.ExpectationSuite("suite", expectations=expectations)).success


ASKED: Mapping[str, Callable[[Any], None]] = {"suite": ours, "aggregate": aggregate, "plain": plain}


def measure(spark: Any, sizes: Sequence[int], *, rounds: int) -> list[Run]:
    runs = []
    for size in sizes:
        rows = made(spark, size)
        # The first time of each warms Spark up, and does not count.
        for number in range(rounds + 1):
            for contender, ask in ASKED.items():
                begin = time.perf_counter()
                ask(rows)
                run = Run(size, contender, time.perf_counter() - begin)
                if number:
                    runs.append(run)
                    console.log(f"{size:,} rows, {contender}: {run.seconds:.2f} s")
        rows.unpersist()
    return runs


def page(runs: Sequence[Run], *, rounds: int) -> str:
    load, sizes = os.getloadavg()[0], sorted({run.rows for run in runs})
    how = (
        f"`{command('checks', rows=sizes, rounds=rounds)}`, {datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, "
        f"load {load:.1f} at the end. Median (best) seconds of {rounds} rounds in turns over the same cached rows, "
        f"over Spark Connect; {len(suite())} expectations, of which {len(FIELDS)} are about types and cost no query."
    )
    head = ("rows", *CONTENDERS.values(), "suite ÷ aggregate")
    lines = []
    for size in sizes:
        taken = {name: [run.seconds for run in runs if (run.rows, run.contender) == (size, name)] for name in ASKED}
        middle = {name: statistics.median(seconds) for name, seconds in taken.items()}
        cells = [f"{middle[name]:.2f} ({min(taken[name]):.2f})" for name in CONTENDERS]
        lines.append([f"{size:,}", *cells, f"{middle['suite'] / middle['aggregate']:.2f}"])
    return "\n".join([TITLE, "", how, "", *markdown(head, lines), ""])


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.checks", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS, help="rows that are checked")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--page", type=Path, default=PAGE)
    asked = parser.parse_args()
    with ground(STATE, parts=("kafka", "s3", "postgres", "spark")):
        from headrace.airflow import connections
        from spark_jobs.session import session

        with session(connections.spark_remote(), properties={}) as spark:
            runs = measure(spark, asked.rows, rounds=asked.rounds)
    asked.page.write_text(page(runs, rounds=asked.rounds))
    console.print(asked.page.read_text(), markup=False)


if __name__ == "__main__":
    main()
