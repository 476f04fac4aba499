"""How soon Airflow follows the feed files: new, changed, broken, mended and deleted ones, among 1, 100 and 1,000.

    .venv/bin/python -m bench.feeds [--feeds 1 100 1000] [--rounds 3] [--write]

Starts what it needs of a stack of its own (Postgres, Kafka, Airflow's API server and DAG processor), in a folder of its
own, watches Airflow's API, prints the figures and takes everything down again. With --write the figures are kept in
bench/results/feeds.md.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import psutil

from stack import processes, settings, trial
from stack.settings import REPOSITORY, Settings
from stack.supervision import Supervisor

STATE = REPOSITORY / ".headrace" / "bench"
RESULTS = REPOSITORY / "bench" / "results" / "feeds.md"
PARTS = "api-server,dag-processor"
PATIENCE_S = 60.0
BULK_PATIENCE_S = 900.0
BETWEEN_QUESTIONS_S = 0.05
IDLE_S = 20.0

PROMISES_S = {"new": 5, "changed": 10, "broken": 10, "mended": 10, "deleted": 15}
"""What each may take; for a broken file and a mended one the changed file's time holds."""


def feed_file(description: str) -> str:
    """A feed of ten fields, as ordinary as they come."""
    fields = [{"name": "id", "type": "string"}, {"name": "revision", "type": "long"}]
    fields += [{"name": f"field_{number}", "type": ["null", "string"], "default": None} for number in range(8)]
    declared = {"key": ["id"], "order": ["revision"], "topic": {"partitions": 1}, "description": description}
    # No run is ever due: the figures are about the DAG processor.
    declared |= {"schedule": "0 0 1 1 *", "warehouses": {"finance": {}}}
    return json.dumps({"type": "record", "name": "Row", "feed": declared, "fields": fields})


@dataclass
class Airflow:
    """Airflow's API, as far as feeds are concerned."""

    client: httpx.Client

    def dag(self, name: str) -> Mapping[str, Any] | None:
        found = self.client.get("/api/v2/dags", params={"dag_id_pattern": name, "limit": 1}).json()["dags"]
        return found[0] if found and found[0]["dag_id"] == name else None

    def count(self) -> int:
        return int(self.client.get("/api/v2/dags", params={"limit": 1, "tags": "feed"}).json()["total_entries"])

    def faults(self, name: str) -> list[str]:
        errors = self.client.get("/api/v2/importErrors", params={"limit": 100}).json()["import_errors"]
        return [each["stack_trace"] for each in errors if each["filename"].startswith(name)]


@dataclass
class Figures:
    """Seconds by what happened, at one number of feeds."""

    feeds: int
    filled: float = 0.0
    idle: float = 0.0
    """The share of one core that the DAG processor takes when nothing changes."""
    memory: int = 0
    seconds: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in PROMISES_S})


def until(is_so: Callable[[], bool], *, patience: float = PATIENCE_S, between: float = BETWEEN_QUESTIONS_S) -> float:
    """Seconds until something is so."""
    began = time.monotonic()
    while not is_so():
        if time.monotonic() - began > patience:
            raise SystemExit(f"still not so after {patience:.0f} s; look at {STATE / 'logs' / 'dag-processor.log'}")
        time.sleep(between)
    return time.monotonic() - began


def play(airflow: Airflow, schemas: Path, figures: Figures, *, round_: int) -> None:
    """One file's life: new, changed, broken, mended, deleted."""
    name = f"probe_{figures.feeds}_{round_}"
    path, seconds = schemas / f"{name}.avsc", figures.seconds
    path.write_text(feed_file("first"))
    seconds["new"].append(until(lambda: airflow.dag(name) is not None))
    path.write_text(feed_file("second"))
    seconds["changed"].append(until(lambda: (airflow.dag(name) or {}).get("description") == "second"))
    path.write_text(feed_file("third").replace('"key"', '"kee"'))
    seconds["broken"].append(until(lambda: any("kee" in fault for fault in airflow.faults(name))))
    assert (airflow.dag(name) or {})["description"] == "second", "a broken file must leave its DAG alone"
    path.write_text(feed_file("fourth"))
    seconds["mended"].append(
        until(lambda: not airflow.faults(name) and (airflow.dag(name) or {}).get("description") == "fourth")
    )
    path.unlink()
    seconds["deleted"].append(until(lambda: airflow.dag(name) is None))
    assert airflow.count() == figures.feeds, "every other DAG is still there"


def measure(airflow: Airflow, chosen: Settings, *, feeds: int, rounds: int) -> Figures:
    figures = Figures(feeds)
    for number in range(feeds):
        path = chosen.schemas / f"feed_{number:04d}.avsc"
        if not path.exists():
            path.write_text(feed_file(f"Feed {number}."))
    figures.filled = until(lambda: airflow.count() == feeds, patience=BULK_PATIENCE_S, between=1.0)
    processor = dag_processor(chosen)
    before = cpu_seconds(processor)
    time.sleep(IDLE_S)
    figures.idle = (cpu_seconds(processor) - before) / IDLE_S
    figures.memory = processes.memory(processor.pid)
    for round_ in range(rounds):
        play(airflow, chosen.schemas, figures, round_=round_)
    return figures


def dag_processor(chosen: Settings) -> psutil.Process:
    return psutil.Process(Supervisor(chosen).processes()["dag-processor"].pid)


def cpu_seconds(process: psutil.Process) -> float:
    """Of a process and of its children, those that ended included."""
    times = process.cpu_times()
    return float(times.user + times.system + times.children_user + times.children_system)


@contextmanager
def stack() -> Iterator[Settings]:
    """What is needed of a stack, in a state folder and on ports of its own."""
    around = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "HEADRACE"))}
    trial.remove(STATE, around={**around, "HEADRACE_STATE": str(STATE)})
    schemas = STATE / "schemas"
    schemas.mkdir(parents=True)
    around |= trial.variables(STATE, schemas=schemas)
    (schemas / "feed_0000.avsc").write_text(feed_file("Feed 0."))
    try:
        started = trial.run("up", "--only", PARTS, around=around)
        if started.returncode != 0:
            raise SystemExit(started.stdout + started.stderr)
        yield settings.load(around)
    finally:
        trial.remove(STATE, around=around)


def api(chosen: Settings) -> httpx.Client:
    base = f"http://{settings.HOST}:{chosen.ports['airflow']}"
    passwords = json.loads((chosen.state / "airflow" / "passwords.json").read_text())
    credentials = {"username": "admin", "password": passwords["admin"]}
    answer = httpx.post(f"{base}/auth/token", json=credentials, timeout=30)
    answer.raise_for_status()
    return httpx.Client(base_url=base, headers={"Authorization": f"Bearer {answer.json()['access_token']}"}, timeout=30)


def report(measured: Sequence[Figures], *, rounds: int) -> str:
    """The figures as a page."""
    where = f"{psutil.cpu_count()} cores, {psutil.virtual_memory().total / 2**30:.0f} GB"
    load = f"load {os.getloadavg()[0]:.1f} at the end (above the number of cores, other work was going on)"
    lines = [
        "# Feed files: how soon Airflow follows",
        "",
        f"`python -m bench.feeds`, {datetime.now(UTC):%Y-%m-%d}, {where}, {load}.",
        "",
        f"Median and worst of {rounds} rounds, in seconds:",
        "",
        "| | promised | " + " | ".join(f"of {each.feeds:,}" for each in measured) + " |",
        "|---|---|" + "---|" * len(measured),
    ]
    for name, promised in PROMISES_S.items():
        cells = [f"{statistics.median(each.seconds[name]):.1f}, {max(each.seconds[name]):.1f}" for each in measured]
        lines.append(f"| {name} | {promised} | " + " | ".join(cells) + " |")
    lines += [
        "| all DAGs there, after all files came at once | | "
        + " | ".join(f"{each.filled:.0f}" for each in measured)
        + " |",
        "| DAG processor when nothing changes, of one core | | "
        + " | ".join(f"{each.idle:.0%}" for each in measured)
        + " |",
        "| DAG processor's memory | | " + " | ".join(f"{each.memory / 2**20:.0f} MB" for each in measured) + " |",
    ]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--feeds", type=int, nargs="+", default=[1, 100, 1000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="keep the figures in bench/results/feeds.md")
    options = parser.parse_args(arguments)
    with stack() as chosen, api(chosen) as client:
        measured = []
        for feeds in sorted(options.feeds):
            measured.append(measure(Airflow(client), chosen, feeds=feeds, rounds=options.rounds))
            print(report(measured, rounds=options.rounds), flush=True)
    if options.write:
        RESULTS.write_text(report(measured, rounds=options.rounds))
    late = [name for each in measured for name, limit in PROMISES_S.items() if max(each.seconds[name]) > limit]
    sys.exit(f"late: {', '.join(sorted(set(late)))}" if late else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
