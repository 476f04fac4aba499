"""From how many new records on Spark reads faster than the task itself: the same topic, both ways, in turns.

    .venv/bin/python -m bench.switch [--sizes 3000 100000 1000000 4000000] [--rounds 3]

Starts a stack of its own, fills one topic per size with 100-byte records, and archives each with a new feed by either
way, in turns, in one process that has everything imported, as a task of Airflow has, and over a Spark server that is
warm. Seconds are those of the extract, from the plan to the commit; CPU is that of this process and of Spark with its
workers. The figures go to bench/results/switch.md (--page for another place). HEADRACE_STATE=FOLDER uses the stack that
runs there.
"""

import argparse
import json
import os
import statistics
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from bench import meter, records
from bench.ground import ground, pids
from bench.records import SMALL, Load
from stack.settings import REPOSITORY

STATE = REPOSITORY / ".headrace" / "bench-switch"
PAGE = REPOSITORY / "bench" / "results" / "switch.md"
SIZES = (3_000, 100_000, 1_000_000, 4_000_000)
WAYS = ("task", "spark")
TITLE = "# In the task or by Spark: where the switch belongs"

console = Console(highlight=False, log_path=False)


@dataclass(frozen=True)
class Run:
    """One extract."""

    size: int
    way: str
    seconds: float
    cpu: float


def extracted(kafka: Any, topic: str, *, way: str, spark_pid: int) -> tuple[float, float]:
    """Archive a topic with a new feed; the seconds and the CPU seconds."""
    from headrace import feed as feeds
    from headrace.airflow import connections, tasks
    from headrace.settings import Settings
    from headrace.stages import extract

    feed = feeds.parse(f"b_{uuid.uuid4().hex[:10]}.avsc", records.feed_text(topic, way=way))
    settings, lake = Settings(), connections.lake(Settings())
    limits = extract.Limits(settings.file_records, settings.file_bytes)
    cluster = tasks._cluster(feed, settings, lake=lake, kafka=kafka)
    # Read twice only: a meter that runs beside it would take the extract's own time.
    counted = [os.getpid(), spark_pid] if way == "spark" else [os.getpid()]
    before, began = meter.read(counted).cpu, time.monotonic()
    extract.extract(feed, lake=lake, kafka=kafka, limits=limits, cluster=cluster)
    seconds = time.monotonic() - began
    return seconds, meter.read(counted).cpu - before


def measure(kafka: Any, sizes: Sequence[int], *, rounds: int, spark_pid: int) -> list[Run]:
    runs: list[Run] = []
    for size in sizes:
        with records.topic(kafka, Load(f"bench_switch_{size}", SMALL, size)):
            for number in range(rounds + 1):
                for way in WAYS if number % 2 else reversed(WAYS):
                    seconds, cpu = extracted(kafka, f"bench_switch_{size}", way=way, spark_pid=spark_pid)
                    console.log(f"{size:,} {way}: {seconds:.1f} s, {cpu:.1f} CPU s{'' if number else ' (to warm up)'}")
                    if number:
                        runs.append(Run(size, way, seconds, cpu))
    return runs


def page(runs: Sequence[Run], *, rounds: int) -> str:
    """The figures as Markdown."""
    now, load = datetime.now(UTC).date(), os.getloadavg()[0]
    how = (
        f"`python -m bench.switch`, {now}, {os.cpu_count()} cores, load {load:.1f} at the end. Median (best) of "
        f"{rounds} rounds, both ways in turns over one topic; 100-byte records with keys and headers, three partitions."
    )
    lines = [
        TITLE,
        "",
        how,
        "",
        "| records | in the task, s | by Spark, s | task ÷ Spark | in the task, CPU s | by Spark, CPU s |",
        "|---|---|---|---|---|---|",
    ]
    for size in sorted({run.size for run in runs}):
        mine = {way: [run for run in runs if (run.size, run.way) == (size, way)] for way in WAYS}
        seconds = {way: statistics.median(run.seconds for run in mine[way]) for way in WAYS}
        best = {way: min(run.seconds for run in mine[way]) for way in WAYS}
        cpu = {way: statistics.median(run.cpu for run in mine[way]) for way in WAYS}
        lines.append(
            f"| {size:,} | {seconds['task']:.1f} ({best['task']:.1f}) | {seconds['spark']:.1f} ({best['spark']:.1f}) | "
            f"{seconds['task'] / seconds['spark']:.2f} | {cpu['task']:.1f} | {cpu['spark']:.1f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.switch", description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="records of the topics")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--page", type=Path, default=PAGE)
    asked = parser.parse_args()
    with ground(STATE, parts=("kafka", "s3", "postgres", "spark")) as stack:
        from headrace.airflow import connections

        runs = measure(connections.kafka(), asked.sizes, rounds=asked.rounds, spark_pid=pids(stack, ["spark"])["spark"])
    asked.page.write_text(page(runs, rounds=asked.rounds))
    console.log(json.dumps([run.__dict__ for run in runs]))


if __name__ == "__main__":
    main()
