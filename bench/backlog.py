"""How much memory an extract takes, however long nobody ran it: a backlog of 5 GB must stay under 1 GB.

    .venv/bin/python -m bench.backlog [--gigabytes 5] [--huge 100] [--way task]

Starts a stack of its own, fills a topic with records of 1 kB that hardly compress, over three partitions and the hours
of a day, and extracts it in a process whose memory is read several times a second; then the same with records of 16 MB
among the others. Every row is read back afterwards. The figures go to bench/results/backlog.md with one curve each
(--page for another place); everything else is removed again. HEADRACE_STATE=FOLDER uses the stack that runs there.
"""

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console

from bench import meter, records, table
from bench.archiving import extracting, told
from bench.curve import curve
from bench.figures import gigabytes, markdown
from bench.ground import ground
from bench.meter import Meter, Reading
from bench.records import DENSE, HUGE, Load
from stack.parts.part import Stack
from stack.settings import HOST, REPOSITORY

STATE = REPOSITORY / ".headrace" / "bench-backlog"
PAGE = REPOSITORY / "bench" / "results" / "backlog.md"
PROMISED = 2**30
HOURS = 24
RECORD = 1_000
SLOWEST_RATE = 2 * 10**6
"""Bytes/s below which something is broken."""

console = Console(highlight=False, log_path=False)


@dataclass(frozen=True)
class Outcome:
    """One backlog, extracted."""

    load: Load
    bytes: int
    seconds: float
    files: int
    cpu: float
    readings: Sequence[Reading]

    @property
    def peak(self) -> int:
        return meter.peak(self.readings)


def loads(size: float, *, huge: int) -> dict[str, Load]:
    """The backlogs: of small records alone, and with huge ones among them in the same number of bytes."""
    now = int(time.time() * 1000)
    total = int(size * 10**9)
    few = max(total - huge * HUGE.note, 0) // RECORD + huge
    found = {"1 kB": Load("bench-backlog", DENSE, total // RECORD, hours=HOURS, now_ms=now)}
    if huge:
        title = f"1 kB, and {huge} of 16 MB"
        found[title] = Load("bench-backlog-huge", DENSE, few, hours=HOURS, now_ms=now, huge=huge)
    return found


def size_of(load: Load) -> int:
    return (load.count - load.huge) * RECORD + load.huge * HUGE.note


def extract(stack: Stack, lake: Any, load: Load, *, ends: Mapping[int, int], way: str) -> Outcome:
    name = f"{load.topic.replace('-', '_')}_{os.getpid()}"
    target, path = ("archive", name), stack.settings.state / "bench" / f"{name}.avsc"
    path.parent.mkdir(exist_ok=True)
    path.write_text(records.feed_text(load.topic, way=way))
    began = time.time()
    try:
        log = stack.settings.logs / "bench-backlog.log"
        with extracting(path, log=log) as process, Meter(process.pid) as metered:
            marks = table.watch(
                lake,
                target,
                until=load.count,
                alive=lambda: process.poll() is None,
                patience=120 + size_of(load) / SLOWEST_RATE,
            )
            told(process)
        if found := table.faults(lake, target, ends=ends):
            raise SystemExit(f"the archive does not hold what the topic holds: {'; '.join(found)}")
        files = table.files_of(lake, target)
        return Outcome(load, size_of(load), marks[-1].at - began, files, metered.cpu, metered.readings)
    finally:
        table.drop(lake, target, f"archive/{name}/", f"archive/{load.topic}/")
        path.unlink()


def page(outcomes: Mapping[str, Outcome], curves: Mapping[str, str], *, way: str, before: float) -> str:
    rows = [
        [
            title,
            f"{done.load.count:,}",
            f"{done.bytes / 10**9:.1f} GB",
            f"{done.seconds:.0f} s",
            f"{done.bytes / 10**6 / done.seconds:.0f} MB/s, {done.load.count / done.seconds:,.0f} records/s",
            f"{done.cpu:.0f} s",
            str(done.files),
            f"**{gigabytes(done.peak)}**",
        ]
        for title, done in outcomes.items()
    ]
    head = ["records of", "records", "size", "time", "speed", "CPU", "archive files", "peak memory"]
    lines = [
        "# A backlog: how much memory an extract takes",
        "",
        f"`python -m bench.backlog`, {datetime.now(UTC):%Y-%m-%d}, {machine()}; load before: {before:.1f}.",
        "",
        f"Promised: under {gigabytes(PROMISED)}, whatever the backlog.",
        f"Three partitions, {HOURS} hours, lz4, values that hardly compress.",
        f"The memory is the resident memory of the extract's own process ({way}), read about seven times a second;",
        "every row was read back afterwards, each offset once.",
        "",
        *markdown(head, rows),
        "",
    ]
    for title, name in curves.items():
        lines += [f"![Memory over time, records of {title}]({name})", ""]
    return "\n".join(lines)


def machine() -> str:
    return f"{psutil.cpu_count()} cores, {psutil.virtual_memory().total / 2**30:.0f} GB"


def options_of(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=5.0, help="the size of each backlog (default 5)")
    parser.add_argument("--huge", type=int, default=100, help="16 MB records in the second backlog (default 100)")
    parser.add_argument("--way", choices=("task", "spark"), default="task", help="how the extract reads (default task)")
    parser.add_argument("--page", type=Path, default=PAGE, help="where the figures go")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> None:
    options = options_of(arguments)
    before = os.getloadavg()[0]
    console.log("starting a stack")
    parts = ("kafka", "s3", "postgres", *(["spark"] if options.way == "spark" else []))
    outcomes: dict[str, Outcome] = {}
    with ground(STATE, parts=parts) as stack:
        from headrace.airflow import connections
        from headrace.settings import Settings

        kafka, lake = {"bootstrap.servers": f"{HOST}:{stack.settings.ports['kafka']}"}, connections.lake(Settings())
        lake.catalog.create_namespace_if_not_exists("archive")
        for title, load in loads(options.gigabytes, huge=options.huge).items():
            console.log(f"producing {load.count:,} records of {title}: {size_of(load) / 10**9:.1f} GB")
            with records.topic(kafka, load) as ends:
                console.log("extracting")
                outcomes[title] = done = extract(stack, lake, load, ends=ends, way=options.way)
                console.log(
                    f"{title}: {done.seconds:.0f} s, {done.bytes / 10**6 / done.seconds:.0f} MB/s, "
                    f"{done.files} files, peak {gigabytes(done.peak)}"
                )
    curves = {}
    for number, (title, done) in enumerate(outcomes.items(), start=1):
        curves[title] = f"{options.page.stem}-{number}.svg"
        points = [(each.at - done.readings[0].at, each.memory / 2**30) for each in done.readings]
        drawn = curve(points, title=f"records of {title}", limit=PROMISED / 2**30, unit="GB")
        options.page.with_name(curves[title]).write_text(drawn)
    options.page.write_text(page(outcomes, curves, way=options.way, before=before))
    console.log(f"written: {options.page}")
    over = [title for title, done in outcomes.items() if done.peak >= PROMISED]
    sys.exit(f"over {gigabytes(PROMISED)}: {', '.join(over)}" if over else 0)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(130)
