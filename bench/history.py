"""What an import of history takes: its rate from a Postgres table to the topic, and what it asks of the source.

    .venv/bin/python -m bench.history [--rows 5000000] [--source-rate 0] [--archive] [--write]

Uses the stack that is up (HEADRACE_STATE, as `make up` leaves it), a table, a feed and a topic of its own, and removes
the table. With --archive it also extracts what it imported. With --write the figures are kept in
bench/results/history.md.
"""

import argparse
import json
import os
import resource
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import psycopg

from stack import environment, passwords, settings
from stack.settings import REPOSITORY

RESULTS = REPOSITORY / "bench" / "results" / "history.md"
CONNECTION = "headrace_warehouse_finance"
BETWEEN_LOOKS_S = 0.2

FIELDS = [
    {"name": "order_id", "type": "string"},
    {"name": "revision", "type": "long"},
    {"name": "customer_id", "type": {"type": "string", "logicalType": "uuid"}},
    {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["placed", "paid", "sent"]}},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
    {"name": "quantity", "type": "int"},
    {"name": "email", "type": ["null", "string"], "default": None, "pii": "email"},
    {"name": "note", "type": ["null", "string"], "default": None},
    {"name": "paid", "type": "boolean"},
    {"name": "created_at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
]

# Filled in no order of the key, as a table is after some years of updates.
TABLE = """
create table {table} as
select 'o' || lpad(n::text, 9, '0') as order_id, (n % 7)::bigint as revision, gen_random_uuid() as customer_id,
       (array['placed', 'paid', 'sent'])[1 + n % 3] as status, (n % 1000000)::numeric(12, 2) / 100 as price,
       (n % 9)::int as quantity, case when n % 3 > 0 then 'person' || n || '@example.org' end as email,
       case when n % 5 = 0 then repeat('note ', 6) end as note, n % 2 = 0 as paid,
       date_trunc('milliseconds', now() - n * interval '1 ms') as created_at
from generate_series(1, {rows}) n order by hashint8(n)
"""
LOAD = """
select heap_blks_read + heap_blks_hit, seq_scan, coalesce(idx_scan, 0)
from pg_statio_user_tables join pg_stat_user_tables using (relid) where relid = '{table}'::regclass
"""
READERS = "select pid from pg_stat_activity where application_name = 'headrace import' and query like %s"


@dataclass
class Watch:
    """What the source's own process for us takes, looked at from outside while it lives."""

    url: str
    table: str
    cpu_s: float = 0.0
    open_s: float = 0.0
    """How long our transaction was open."""
    _stop: threading.Event = field(default_factory=threading.Event)

    def look(self) -> None:
        began: dict[int, float] = {}
        with psycopg.connect(self.url, autocommit=True) as connection:
            while not self._stop.wait(BETWEEN_LOOKS_S):
                for (pid,) in connection.execute(READERS, [f"%{self.table}%"]).fetchall():
                    began.setdefault(pid, time.monotonic())
                    try:
                        used = psutil.Process(pid).cpu_times()
                    except psutil.NoSuchProcess:
                        continue
                    self.cpu_s = max(self.cpu_s, used.user + used.system)
                    self.open_s = time.monotonic() - began[pid]

    @contextmanager
    def looking(self) -> Iterator["Watch"]:
        thread = threading.Thread(target=self.look, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            thread.join()


@dataclass
class Phases:
    """When each part of the work ended; the next one began then."""

    ends: dict[str, float] = field(default_factory=dict)

    def __call__(self, phase: str, *_: int | None) -> None:
        self.ends[phase] = time.monotonic()

    def seconds(self, phase: str, *, since: float) -> float:
        names = list(self.ends)
        before = names[: names.index(phase)]
        return self.ends[phase] - (self.ends[before[-1]] if before else since)


@contextmanager
def dropping(source: psycopg.Connection[Any], table: str) -> Iterator[None]:
    """Leave no table behind, however it ends."""
    try:
        yield
    finally:
        source.execute(f"drop table if exists {table}")  # type: ignore[arg-type]


def measured(rows: int, source_rate: float | None, *, archive: bool) -> dict[str, str]:
    """Import one table, and tell figures by name."""
    from headrace import feed as feeds
    from headrace.airflow import connections, history, registration
    from headrace.settings import Settings

    kafka, lake, store = connections.kafka(), connections.lake(Settings()), connections.registry()
    name = f"bench_history_{uuid.uuid4().hex[:8]}"
    declared = {"key": ["order_id"], "order": ["revision"], "topic": {"partitions": 3}}
    schema = {"type": "record", "name": "Order", "doc": "An order.", "feed": declared, "fields": FIELDS}
    feed = feeds.parse(f"{name}.avsc", json.dumps(schema))
    registration.register([feed], store=store, kafka=kafka)
    url = connections.database(CONNECTION).url()
    with psycopg.connect(url, autocommit=True) as source, dropping(source, name):
        source.execute(TABLE.format(table=name, rows=rows))  # type: ignore[arg-type]
        source.execute(f"vacuum analyze {name}")  # type: ignore[arg-type]
        size = _one(source, f"select pg_table_size('{name}'), pg_table_size('{name}') / 8192")
        load = LOAD.format(table=name)
        source.execute("select pg_stat_force_next_flush()")  # what filling the table took is not the import's
        before, phases, started, cpu = _one(source, load), Phases(), time.monotonic(), time.process_time()
        with Watch(url, name).looking() as watch:
            report = history.run(
                history.Request(feed, f"postgres:{CONNECTION}/public.{name}", source_rate=source_rate), progress=phases
            )
        took, used = time.monotonic() - started, time.process_time() - cpu
        time.sleep(1.5)  # Postgres tells of a session's reads when it has ended.
        after = _one(source, load)
    assert (report.total, report.published, report.proof) == (rows, rows, "topic")
    figures = {
        "rows": f"{rows:,}",
        "the table": f"{size[0] / 2**20:,.0f} MiB, {size[1]:,} blocks",
        "all of it": f"{took:,.1f} s, **{rows / took:,.0f} rows/s**",
        "read and encoded": _rate(rows, phases.seconds("read", since=started)),
        "sorted and staged on S3": _rate(rows, phases.seconds("stage", since=started)),
        "published in transactions": _rate(rows, phases.seconds("publish", since=started)),
        "counted in the topic": _rate(rows, phases.seconds("count", since=started)),
        "our CPU": f"{used:,.1f} s, {rows / used:,.0f} rows per CPU second",
        "our memory at most": f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB",
        "source: rate asked for at most": f"{source_rate:,.0f} rows/s" if source_rate else "no limit",
        "source: snapshot open": f"{watch.open_s:,.1f} s",
        "source: CPU of its process": f"{watch.cpu_s:,.1f} s, {watch.cpu_s / max(watch.open_s, 0.1):.0%} of one core",
        "source: blocks of the table touched": f"{after[0] - before[0]:,} in {after[1] - before[1]} scans from end to "
        f"end (one counts, one reads) and {after[2] - before[2]} of an index",
    }
    if archive:
        figures["extracted to the archive"] = _extracted(feed, lake, kafka)
    return figures


def _extracted(feed: Any, lake: Any, kafka: Mapping[str, Any]) -> str:
    from headrace.settings import Settings
    from headrace.stages import extract

    chosen, started = Settings(), time.monotonic()
    limits = extract.Limits(chosen.file_records, chosen.file_bytes)
    done = extract.extract(feed, lake=lake, kafka=kafka, limits=limits)
    return _rate(done.records, time.monotonic() - started)


def _one(connection: psycopg.Connection[Any], query: str) -> tuple[Any, ...]:
    found = connection.execute(query).fetchone()  # type: ignore[arg-type]
    assert found is not None
    return tuple(found)


def _rate(rows: int, seconds: float) -> str:
    return f"{seconds:,.1f} s, {rows / max(seconds, 0.001):,.0f} rows/s"


def told(figures: Mapping[str, str]) -> str:
    """The figures as a page."""
    lines = [f"| {name} | {value} |" for name, value in figures.items()]
    machine = f"{os.cpu_count()} cores, {psutil.virtual_memory().total / 2**30:.0f} GiB"
    about = (
        "A Postgres table of ten columns, its rows in no order, into a topic of three partitions, everything on "
        f"one machine ({machine}) that also runs Postgres, Kafka, S3Proxy and Airflow. "
        f"Measured {datetime.now(UTC).date().isoformat()} by `python -m bench.history`."
    )
    return "\n".join(
        [
            "# Import of history",
            "",
            about,
            "",
            "| | |",
            "|---|---|",
            *lines,
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--source-rate", type=float, default=0.0, help="rows per second; 0: no limit")
    parser.add_argument("--archive", action="store_true", help="extract it too")
    parser.add_argument("--write", action="store_true", help=f"keep the figures in {RESULTS.relative_to(REPOSITORY)}")
    chosen = parser.parse_args()
    stack = settings.load(os.environ)
    os.environ.update(environment.render(stack, passwords.load(Path(stack.state))))
    page = told(measured(chosen.rows, chosen.source_rate or None, archive=chosen.archive))
    print(page)
    if chosen.write:
        RESULTS.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
