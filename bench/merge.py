"""How long a run takes as the clean table grows: the same batch merged into a table and into one ten times larger.

    .venv/bin/python -m bench.merge [--rows 300000] [--rounds 5] [--cases immutable moving ...]

Starts a stack of its own and fills, for each case, one clean table and one with ten times as many days, of equal size.
Then in turns, in one process that has everything imported: a batch of updates and inserts of the last three days is
produced and archived, which does not count, and transformed and published by the same code as the tasks use, which
does. The figures go to bench/results/merge.md (--page for another place). HEADRACE_STATE=FOLDER uses the stack that
runs there.
"""

import argparse
import hashlib
import io
import json
import os
import random
import statistics
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
from confluent_kafka import Producer
from rich.console import Console

from bench import meter
from bench.figures import command, markdown
from bench.filling import DAY_MS, DAY_ROWS, END_MS, FIELDS, fill
from bench.ground import ground, pids
from stack.settings import REPOSITORY

STATE = REPOSITORY / ".headrace" / "bench-merge"
PAGE = REPOSITORY / "bench" / "results" / "merge.md"
TITLE = "# Merging: the same batch, a table ten times larger"
ROWS, TIMES = 300_000, 10
DAYS, UPDATES, INSERTS, SOME = 3, 9_000, 1_000, 100
"""What a batch touches: so many days, rows of theirs, new rows of the last one; and so many moved rows or deletes."""
FIXED = {"partition": {"field": "created_at", "immutable": True}}
FREE: Mapping[str, Any] = {"partition": {"field": "created_at"}}
FREE_PATCH = {**FREE, "merge": "patch"}

console = Console(highlight=False, log_path=False)


@dataclass(frozen=True)
class Case:
    """A way in which keys are looked up."""

    told: str
    declared: Mapping[str, Any]
    is_random: bool = False
    """Whether keys come in no order, as uuids do, or grow with time."""
    moves: int = 0
    deletes: int = 0


CASES = {
    "immutable": Case("partition field immutable; random keys", FIXED, is_random=True),
    "moving": Case("partition field may change; keys that grow", FREE, moves=SOME),
    "moving-random": Case("partition field may change; random keys", FREE, is_random=True, moves=SOME),
    "deletes": Case("tombstones; keys that grow", FIXED, deletes=SOME),
    "deletes-random": Case("tombstones; random keys", FIXED, is_random=True, deletes=SOME),
    "patch": Case("patch, partition field immutable; random keys", {**FIXED, "merge": "patch"}, is_random=True),
    "patch-moving": Case("patch, partition field may change; keys that grow", FREE_PATCH, moves=SOME),
    "patch-moving-random": Case(
        "patch, partition field may change; random keys", FREE_PATCH, is_random=True, moves=SOME
    ),
    "whole": Case("no partitions; keys that grow", {}),
}


@dataclass(frozen=True)
class Run:
    """One batch merged."""

    case: str
    rows: int
    seconds: float
    cpu: float
    """Seconds of this process and of Spark."""


@dataclass
class Bench:
    """One feed with its table, to which batches come."""

    case: Case
    rows: int
    feed: Any
    id: int
    lake: Any
    kafka: Any
    batches: int = 0

    def created(self, number: int) -> int:
        return min(END_MS - (self.rows - number) * DAY_MS // DAY_ROWS, END_MS - 1)

    def batch(self) -> list[tuple[bytes, bytes | None]]:
        """Keys and values; the same ones, counted from the table's end, whatever its size."""
        self.batches += 1
        dice = random.Random(self.batches)
        recent = dice.sample(range(self.rows - DAYS * DAY_ROWS, self.rows), UPDATES)
        moved, gone = set(recent[: self.case.moves]), set(recent[: self.case.deletes])
        fresh = [self.rows + self.batches * INSERTS + number for number in range(INSERTS)]
        return [
            (self.key(each).encode(), None if each in gone else self.value(each, dice, is_moved=each in moved))
            for each in [*recent, *fresh]
        ]

    def key(self, number: int) -> str:
        """As `fill` makes it in Spark."""
        return hashlib.md5(str(number).encode()).hexdigest() if self.case.is_random else f"order-{number:012d}"

    def value(self, number: int, dice: random.Random, *, is_moved: bool) -> bytes:
        row = {
            "id": self.key(number),
            "revision": 1 + self.batches,
            "status": "sent",
            "price": dice.random(),
            "customer": f"customer {dice.randrange(10**6)}",
            "city": None,
            "created_at": self.created(number) - (DAY_MS if is_moved else 0),
            "note": f"note {dice.getrandbits(128):x}",
        }
        body = io.BytesIO()
        fastavro.schemaless_writer(body, fastavro.parse_schema(dict(self.feed.schema)), row)
        return b"\0" + self.id.to_bytes(4, "big") + body.getvalue()

    def archive(self) -> None:
        """Bring one more batch to the archive."""
        from headrace.stages import extract

        producer = Producer({**self.kafka, "enable.idempotence": True})
        for key, value in self.batch():
            producer.produce(self.feed.topic, value, key, partition=0)
        assert producer.flush(60) == 0
        extract.extract(self.feed, lake=self.lake, kafka=self.kafka, limits=extract.Limits(500_000, 2**27))

    def merge(self) -> dict[str, int]:
        """Plan, transform and publish, as the tasks do."""
        from headrace import layout
        from headrace.airflow import connections
        from headrace.lake import spark_properties
        from headrace.stages import publish, transform
        from spark_jobs import transform as job

        run, writers = uuid.uuid4().hex, connections.registry().writers(self.feed.subject)
        signing = connections.signing_key()
        plan = transform.plan(self.feed, lake=self.lake, writers=writers, drained={}, signing=signing, run=run)
        assert plan is not None
        properties = spark_properties(self.lake)
        told = job.run(plan.model_dump_json(), remote=connections.spark_remote(), properties=properties)
        table = self.lake.find(layout.clean_table(self.feed.name))
        tip = table.metadata.refs[layout.branch(run)].snapshot_id
        publish.publish(self.feed, lake=self.lake, run=run, checked=tip)
        accounts: dict[str, int] = json.loads(told)
        return accounts


def opened(case: Case, rows: int) -> Bench:
    """A feed with a topic, and a table that has so many rows."""
    from headrace import feed as feeds
    from headrace.airflow import connections
    from headrace.kafka import topic
    from headrace.settings import Settings

    kafka, lake, store = connections.kafka(), connections.lake(Settings()), connections.registry()
    store.prepare()
    declared = {"key": ["id"], "order": ["revision"], "topic": {"partitions": 1}, **case.declared}
    text = json.dumps({"type": "record", "name": "Row", "fields": FIELDS, "feed": declared})
    feed = feeds.parse(f"b_{uuid.uuid4().hex[:10]}.avsc", text)
    topic.ensure(kafka, feed)
    done = store.register(feed.subject, feed.schema_type, text=json.dumps(feed.schema))
    bench = Bench(case, rows, feed, done.id, lake, kafka)
    fill(feed, lake, rows=rows, is_random=case.is_random)
    return bench


def measure(names: Sequence[str], *, rows: int, rounds: int, spark_pid: int) -> list[Run]:
    runs, counted = [], [os.getpid(), spark_pid]
    for name in names:
        began = time.perf_counter()
        pair = [opened(CASES[name], size) for size in (rows, rows * TIMES)]
        console.log(f"{name}: both tables filled in {time.perf_counter() - began:.0f} s")
        # The first time of each warms Spark up, and does not count.
        for number in range(rounds + 1):
            for bench in pair if number % 2 else reversed(pair):
                bench.archive()
                before, began = meter.read(counted).cpu, time.perf_counter()
                accounts = bench.merge()
                seconds = time.perf_counter() - began
                run = Run(name, bench.rows, seconds, meter.read(counted).cpu - before)
                console.log(f"{name}, {bench.rows:,} rows: {run.seconds:.2f} s, {run.cpu:.2f} CPU s, {accounts}")
                if number:
                    runs.append(run)
    return runs


def spread(runs: Sequence[Run], figure: str) -> float:
    """By what factor rounds of the same case and size differ, where they do most."""
    alike: dict[tuple[str, int], list[float]] = {}
    for run in runs:
        alike.setdefault((run.case, run.rows), []).append(getattr(run, figure))
    return max(max(each) / min(each) for each in alike.values())


def page(runs: Sequence[Run], *, rounds: int) -> str:
    sizes, cases = sorted({run.rows for run in runs}), list(dict.fromkeys(run.case for run in runs))
    asked = command("merge", rows=sizes[:1], rounds=rounds, cases=cases)
    how = (
        f"`{asked}`, {datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, shared, load "
        f"{os.getloadavg()[0]:.1f} at the end. Median (best) of {rounds} rounds in turns, over Spark Connect: plan, "
        f"transform and publish of a batch of {UPDATES + INSERTS:,} records, {INSERTS:,} of them new, in the last "
        f"{DAYS} days of {DAY_ROWS:,} rows each. Where a partition field changes, or tombstones come, {SOME} records "
        f"do so. CPU seconds are those of Spark and of the task. Rounds of one case and size differ by up to "
        f"{spread(runs, 'seconds'):.1f} times in seconds and {spread(runs, 'cpu'):.1f} times in CPU seconds: read the "
        f"ratios with that in mind."
    )
    lines = []
    for name in cases:
        cells = []
        for figure in ("seconds", "cpu"):
            taken = [[getattr(run, figure) for run in runs if (run.case, run.rows) == (name, size)] for size in sizes]
            middle = [statistics.median(each) for each in taken]
            cells += [f"{median:.1f} ({min(each):.1f})" for median, each in zip(middle, taken, strict=True)]
            cells.append(f"{middle[1] / middle[0]:.2f}")
        lines.append([CASES[name].told, *cells])
    head = ["", *(f"{size:,} rows, {unit}" if size else "ratio" for unit in ("s", "CPU s") for size in (*sizes, 0))]
    return "\n".join([TITLE, "", how, "", *markdown(head, lines), ""])


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.merge", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=ROWS, help=f"of the smaller table; the other has {TIMES} times")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--page", type=Path, default=PAGE)
    asked = parser.parse_args()
    with ground(STATE, parts=("kafka", "s3", "postgres", "spark")) as stack:
        spark_pid = pids(stack, ["spark"])["spark"]
        runs = measure(asked.cases, rows=asked.rows, rounds=asked.rounds, spark_pid=spark_pid)
    asked.page.write_text(page(runs, rounds=asked.rounds))
    console.print(asked.page.read_text(), markup=False)


if __name__ == "__main__":
    main()
