"""How fast a topic gets into the archive, beside Kafka Connect with the Apache Iceberg sink, on the same machine.

    .venv/bin/python -m bench.extract [--rounds 3] [--small 8000000] [--large 2000000] [--only sink task spark consumer]

Starts a stack of its own (Kafka, S3, Postgres, Spark), fills one topic with records of 100 bytes and one with records
of 1 kB, each with a key and a header, and lets every contender read each of them in turn, round after round:

    sink      Kafka Connect, standalone, with the Iceberg sink: value, partition, offset and timestamp
    task      our extract in a process of its own: whole envelopes, keys and headers too
    spark     our extract by Spark's Kafka source, through a Connect server that is already warm
    consumer  Kafka's own ConsumerPerformance, which keeps nothing: what the machine can read at all

The clock runs from the start of the process until a reader of the Iceberg table finds the last record. Afterwards every
row is read, and each offset must be there once. The figures go to bench/results/extract.md (--page for another place);
everything else is removed again. HEADRACE_STATE=FOLDER uses the stack that runs there, and leaves it running.
"""

import argparse
import importlib.metadata
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console

from bench import connect, figures, meter, records, table
from bench.archiving import extracting, told
from bench.figures import Run, Steady
from bench.ground import ground, pids
from bench.meter import Meter
from bench.records import LARGE, SMALL, Load
from stack import java
from stack.parts.part import Stack
from stack.settings import HOST, JARS, REPOSITORY

STATE = REPOSITORY / ".headrace" / "bench-extract"
PAGE = REPOSITORY / "bench" / "results" / "extract.md"
SERVICES = ("kafka", "s3", "postgres")
NAMES = {
    "sink": "Kafka Connect, Iceberg sink",
    "task": "ours, in the task",
    "spark": "ours, by Spark",
    "consumer": "bare Java consumer (keeps nothing)",
}
OURS = {"task": "in the task", "spark": "by Spark"}
SLOWEST_RATE = 10_000
"""Records/s below which something is broken."""
WARM_RECORDS = 300_000
CONSUMER_HEAP = "-Xmx512M"
"""As bin/kafka-consumer-perf-test.sh of Kafka's own distribution sets it."""

console = Console(highlight=False, log_path=False)


@dataclass
class Bench:
    """The stack, and what was measured on it."""

    stack: Stack
    lake: Any
    kafka: Mapping[str, Any]
    services: Sequence[int]
    runs: dict[str, dict[str, list[Run]]] = field(default_factory=dict)
    """By topic and contender."""
    number: int = 0
    heap: str = connect.HEAP
    """Of the sink's worker."""

    def name(self) -> str:
        """A name that nothing had before: for a feed, a table, a group."""
        self.number += 1
        return f"bench_{os.getpid()}_{self.number}"


def patience(load: Load) -> float:
    return 120 + load.count / SLOWEST_RATE


def by_sink(bench: Bench, load: Load, ends: Mapping[int, int]) -> Run:
    from headrace.lake import spark_properties

    name = bench.name()
    target = ("bench", name)
    catalog = connect.catalog_properties(bench.lake.name, spark_properties(bench.lake))
    used, began = meter.read(bench.services).cpu, time.time()
    try:
        with (
            connect.worker(
                bench.stack, name, topic=load.topic, table=".".join(target), catalog=catalog, heap=bench.heap
            ) as pid,
            Meter(pid) as metered,
        ):
            marks = table.watch(
                bench.lake, target, until=load.count, alive=lambda: psutil.pid_exists(pid), patience=patience(load)
            )
            used = meter.read(bench.services).cpu - used
        check(bench, target, ends)
        readings, steady = metered.readings, None
        if pair := figures.between(marks):
            first, last = pair
            cpu = meter.cpu_at(readings, last.at) - meter.cpu_at(readings, first.at)
            steady = Steady(last.rows - first.rows, last.at - first.at, cpu)
        spent = meter.cpu_at(readings, marks[-1].at) - readings[0].cpu
        return Run("sink", load.count, marks[-1].at - began, spent, meter.peak(readings), used, steady)
    finally:
        table.drop(bench.lake, target, f"bench/{name}/")


def by_task(bench: Bench, load: Load, ends: Mapping[int, int]) -> Run:
    return by_us(bench, load, ends, way="task", beside=[])


def by_spark(bench: Bench, load: Load, ends: Mapping[int, int]) -> Run:
    server = list(pids(bench.stack, ["spark"]).values())
    before = meter.read(server).cpu
    run = by_us(bench, load, ends, way="spark", beside=server)
    # Where Spark cannot be had, an extract reads in the task, and says so in its log only.
    if meter.read(server).cpu - before < run.cpu / 4:
        raise SystemExit("Spark did next to nothing: the extract must have read in the task")
    return run


def by_us(bench: Bench, load: Load, ends: Mapping[int, int], *, way: str, beside: Sequence[int]) -> Run:
    """Our extract on a feed of its own over the topic; `beside` are processes that work for it."""
    name = bench.name()
    target = ("archive", name)
    path = bench.stack.settings.state / "bench" / f"{name}.avsc"
    path.parent.mkdir(exist_ok=True)
    path.write_text(records.feed_text(load.topic, way=way))
    used, began = meter.read(bench.services).cpu, time.time()
    try:
        log = bench.stack.settings.logs / f"bench-{way}.log"
        with extracting(path, log=log) as process, Meter(process.pid, *beside) as metered:
            marks = table.watch(
                bench.lake, target, until=load.count, alive=lambda: process.poll() is None, patience=patience(load)
            )
            start = told(process).get("start", 0.0)
            used = meter.read(bench.services).cpu - used
        check(bench, target, ends)
        seconds = marks[-1].at - began
        return Run(way, load.count, seconds, metered.cpu, meter.peak(metered.readings), used, extract=seconds - start)
    finally:
        table.drop(bench.lake, target, f"archive/{name}/", f"archive/{load.topic}/")
        path.unlink()


def by_consumer(bench: Bench, load: Load, _: Mapping[int, int]) -> Run:
    """Kafka's consumer as its distribution starts it; the rate is its own, without the joining of the group."""
    settings = bench.stack.settings
    command = [str(bench.stack.java), CONSUMER_HEAP, *connect.JAVA_OPTIONS]
    command += [f"-Dlog4j2.configurationFile=file:{settings.state / 'kafka' / 'log4j2.properties'}"]
    command += ["-cp", f"{JARS / 'kafka'}/*", "org.apache.kafka.tools.ConsumerPerformance"]
    command += ["--bootstrap-server", bench.kafka["bootstrap.servers"], "--topic", load.topic]
    command += ["--num-records", str(load.count), "--group", bench.name(), "--timeout", "60000"]
    used = meter.read(bench.services).cpu
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    with Meter(process.pid) as metered:
        said, _ = process.communicate(timeout=patience(load))
    used = meter.read(bench.services).cpu - used
    count, seconds = consumed(said)
    if count < load.count:
        raise SystemExit(f"the bare consumer read {count} of {load.count} records:\n{said}")
    return Run("consumer", count, seconds, metered.cpu, meter.peak(metered.readings), used)


def consumed(said: str) -> tuple[int, float]:
    """Records and seconds of fetching, from the table that ConsumerPerformance prints."""
    head, values = (line.split(", ") for line in said.strip().splitlines()[-2:])
    row = dict(zip(head, values, strict=True))
    return int(row["data.consumed.in.nMsg"]), int(row["fetch.time.ms"]) / 1000


CONTENDERS: Mapping[str, Callable[[Bench, Load, Mapping[int, int]], Run]] = {
    "sink": by_sink,
    "task": by_task,
    "spark": by_spark,
    "consumer": by_consumer,
}


def check(bench: Bench, target: tuple[str, str], ends: Mapping[int, int]) -> None:
    from headrace.lake import Lake

    lake = bench.lake
    fresh = Lake(lake.name, lake.location, lake.database, lake.storage)
    if found := table.faults(fresh, target, ends=ends):
        raise SystemExit(f"{'.'.join(target)} does not hold what the topic holds: {'; '.join(found)}")


def warm(bench: Bench) -> None:
    """Spark's first query after its start is slow, whoever asks it."""
    load = Load("bench-warm", SMALL, WARM_RECORDS)
    with records.topic(bench.kafka, load) as ends:
        for _ in range(2):
            run = by_spark(bench, load, ends)
            console.log(f"warming Spark: {run.rate:,.0f} records/s")


def measure(bench: Bench, loads: Mapping[str, Load], *, rounds: int, only: Sequence[str]) -> None:
    if "spark" in only:
        warm(bench)
    for title, load in loads.items():
        console.log(f"producing {title} to {load.topic}")
        began = time.time()
        with records.topic(bench.kafka, load) as ends:
            console.log(f"produced in {time.time() - began:.0f} s; partitions end at {list(ends.values())}")
            runs = bench.runs.setdefault(title, {contender: [] for contender in only})
            for round_ in range(rounds):
                # Each round begins with another contender, so that none always follows the same one.
                for contender in [*only[round_ % len(only) :], *only[: round_ % len(only)]]:
                    run = CONTENDERS[contender](bench, load, ends)
                    runs[contender].append(run)
                    console.log(f"round {round_ + 1} of {rounds}: {line(run)}")


def line(run: Run) -> str:
    steady = f", {figures.thousands(run.steady.rate)}/s between snapshots" if run.steady else ""
    return (
        f"{NAMES[run.contender]:34} {run.seconds:6.1f} s  {figures.thousands(run.rate):>6}/s{steady}  "
        f"{figures.per_million(run):.1f} CPU s per million  {figures.gigabytes(run.memory)}"
    )


NOTES = """\
How it was made fair:

- One topic for all, produced once: lz4, 3 partitions, an Avro value in Confluent's frame, a key and one header each;
  the contenders take turns, and each round begins with another one.
- The sink has what favours it: plugins found by service loading, offsets flushed every second (a minute by default,
  which would delay its last commit), bytes passed through unconverted, the collector of Kafka's own start script, a new
  group, table and control topic for each run, and one task, because more were no faster on two cores. Its heap may grow
  to 1 GB (`--sink-heap`); with the 2 GB of the start script it took 2.2 GB of memory. It commits every 10 s. It stores
  value, partition, offset and timestamp; keys and headers it leaves out. Ours stores whole envelopes, with keys,
  headers and timestamp types.
- All write zstd Parquet to the same S3 server and commit to the same JDBC catalog.
- The sink's speed between snapshots leaves out its start and its last, partial interval (where there were only two
  snapshots, the second is the last). Ours is taken whole: from the start of the process, imports included, until a
  reader finds the last record. A task finds Airflow's own modules imported; "without Airflow's own imports" leaves that
  time out, and nothing else.
- The bare consumer's speed is its own figure for fetching, without the time to join its group; its records go nowhere.
- Memory is the resident memory at its peak, read about seven times a second (of several processes, shared pages counted
  once). By Spark it is that of the task and of the whole Connect server, which serves every feed.
- After each run every row was read back: each offset of each partition was there once.
"""


def page(bench: Bench, *, rounds: int, before: float) -> str:
    """The figures as a page."""
    lines = [
        "# Extract: how fast a topic gets into the archive",
        "",
        f"`python -m bench.extract`, {datetime.now(UTC):%Y-%m-%d}, {machine(bench.stack)}.",
        f"Load of the machine before: {before:.1f} (above the number of cores, other work was going on).",
        "",
        f"Medians of {rounds} rounds, all on this one machine, with Kafka, S3 and Postgres beside.",
        "",
        "## Ours beside the others",
        "",
        *figures.ratios(bench.runs, {name: told for name, told in OURS.items() if name in _contenders(bench)}),
        "",
    ]
    for title, runs in bench.runs.items():
        lines += [f"## {title}", "", *figures.medians(runs, NAMES), "", "Every run:", ""]
        lines += [*figures.each(runs, NAMES), ""]
    return "\n".join([*lines, NOTES])


def _contenders(bench: Bench) -> set[str]:
    return {name for runs in bench.runs.values() for name in runs}


def machine(stack: Stack) -> str:
    versions = {
        name: importlib.metadata.version(name) for name in ("confluent-kafka", "pyarrow", "pyiceberg", "pyspark")
    }
    told = ", ".join(f"{name} {version}" for name, version in versions.items())
    return (
        f"{psutil.cpu_count()} cores, {psutil.virtual_memory().total / 2**30:.0f} GB, "
        f"Java {java.version_of(stack.java)}, Kafka and Kafka Connect 4.3.1, Iceberg sink 1.12.0, "
        f"Python {platform.python_version()}, {told}"
    )


def options_of(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="how often each contender runs (default 3)")
    parser.add_argument("--small", type=int, default=8_000_000, help="100-byte records (default 8 million, 0 for none)")
    parser.add_argument("--large", type=int, default=2_000_000, help="records of 1 kB (default 2 million, 0 for none)")
    parser.add_argument("--only", nargs="+", choices=CONTENDERS, default=list(CONTENDERS), help="these contenders only")
    parser.add_argument("--sink-heap", default=connect.HEAP, help=f"the sink's largest heap (default {connect.HEAP})")
    parser.add_argument("--page", type=Path, default=PAGE, help="where the figures go")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> None:
    options = options_of(arguments)
    before = os.getloadavg()[0]
    titles = {
        f"{options.small:,} records of 100 bytes": Load("bench-small", SMALL, options.small),
        f"{options.large:,} records of 1 kB": Load("bench-large", LARGE, options.large),
    }
    loads = {title: load for title, load in titles.items() if load.count}
    if "sink" in options.only:
        console.log(f"{connect.install()} jars of Kafka Connect and the Iceberg sink are there")
    console.log("starting a stack")
    parts = ["spark", *SERVICES] if "spark" in options.only else SERVICES
    with ground(STATE, parts=parts) as stack:
        from headrace.airflow import connections
        from headrace.settings import Settings

        kafka = {"bootstrap.servers": f"{HOST}:{stack.settings.ports['kafka']}"}
        lake = connections.lake(Settings())
        for namespace in ("archive", "bench"):
            lake.catalog.create_namespace_if_not_exists(namespace)
        bench = Bench(stack, lake, kafka, list(pids(stack, SERVICES).values()), heap=options.sink_heap)
        measure(bench, loads, rounds=options.rounds, only=options.only)
        options.page.write_text(page(bench, rounds=options.rounds, before=before))
        console.log(f"written: {options.page}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(130)
