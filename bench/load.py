"""What a load into Postgres costs beside the bare limit, and beside the same load into a table a hundred times larger.

    .venv/bin/python -m bench.load [--rows 2000000] [--changed 200000] [--rounds 5] [--large 10000000]

Starts Postgres and an S3 server of its own. In turns: Headrace's load, which reads the rows from the lake; and by hand,
a binary COPY of the same rows, made beforehand and lying in memory, with the same merge. The figures go to
bench/results/load.md (--page for another place). HEADRACE_STATE=FOLDER uses the stack that runs there.
"""

import argparse
import multiprocessing
import os
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from rich.console import Console

from bench.figures import markdown
from bench.ground import ground
from bench.shop import Shop, spread
from stack.settings import REPOSITORY

STATE = REPOSITORY / ".headrace" / "bench-load"
PAGE = REPOSITORY / "bench" / "results" / "load.md"
TITLE = "# Load: into Postgres, beside a binary COPY by hand"
DAY_ROWS = 100_000
SMALL, FEW = 100_000, 1_000
KEY = b"a key for masks"

console = Console(highlight=False, log_path=False)


@dataclass(frozen=True)
class Bench:
    """A shop and the warehouse that it is loaded into."""

    shop: Shop
    warehouse: Any

    @property
    def table(self) -> sql.Identifier:
        return sql.Identifier(self.warehouse.schema, self.shop.feed.name)

    def load(self) -> Any:
        from headrace.stages import load

        return load.load(self.shop.feed, lake=self.shop.lake, warehouse=self.warehouse, mask_key=KEY)

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(self.warehouse.database.url())

    def forget(self) -> None:
        """As if nothing had been loaded."""
        with self.connect() as connection:
            connection.execute(sql.SQL("drop table if exists {}").format(self.table))
            if connection.execute("select to_regclass('headrace.tables')").fetchone() != (None,):
                connection.execute("delete from headrace.tables where table_name = %s", [self.shop.feed.name])

    def copied(self, where: str) -> bytes:
        """Rows of the table as the bytes of a binary COPY."""
        statement = sql.SQL("copy (select * from {} where {}) to stdout (format binary)")
        with self.connect() as connection, connection.cursor() as cursor:
            asked = statement.format(self.table, sql.SQL(where))  # type: ignore[arg-type]
            with cursor.copy(asked) as copy:
                return b"".join(bytes(each) for each in copy)

    def by_hand(self, content: bytes) -> None:
        """A new table of these rows."""
        from headrace.share import share_of
        from headrace.warehouses import postgres_table

        shared = share_of(self.shop.feed, self.warehouse.name, self.shop.table)
        by_hand = sql.Identifier(self.warehouse.schema, "by_hand")
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(sql.SQL("drop table if exists {}").format(by_hand))
            cursor.execute(postgres_table.definition(by_hand, shared))
            with cursor.copy(sql.SQL("copy {} from stdin (format binary)").format(by_hand)) as copy:
                copy.write(content)
            cursor.execute(sql.SQL("alter table {} add primary key (id)").format(by_hand))
            cursor.execute(sql.SQL("create index on {} (created_at)").format(by_hand))
            cursor.execute(sql.SQL("analyze {}").format(by_hand))

    def merged_by_hand(self, content: bytes) -> None:
        """These rows merged into the table."""
        from headrace.share import share_of
        from headrace.warehouses import postgres_merge

        shared = share_of(self.shop.feed, self.warehouse.name, self.shop.table)
        staged = sql.Identifier("by_hand")
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(postgres_merge.staging("by_hand", shared))
            cursor.execute(sql.SQL("alter table by_hand alter _hidden set default false"))
            columns = sql.SQL(", ").join(map(sql.Identifier, shared.names))
            with cursor.copy(sql.SQL("copy by_hand ({}) from stdin (format binary)").format(columns)) as copy:
                copy.write(content)
            cursor.execute("analyze by_hand")
            cursor.execute(postgres_merge.delete(self.table, staged, shared))
            cursor.execute(postgres_merge.upsert(self.table, staged, shared))


def timed(deed: Callable[[], object]) -> float:
    begin = time.perf_counter()
    deed()
    return time.perf_counter() - begin


def first_loads(bench: Bench, *, rounds: int) -> dict[str, list[float]]:
    bench.forget()
    bench.load()
    content = bench.copied("true")
    taken: dict[str, list[float]] = {"ours": [], "by hand": []}
    for number in range(rounds):
        bench.forget()
        taken["ours"].append(timed(bench.load))
        taken["by hand"].append(timed(lambda: bench.by_hand(content)))
        console.log(f"first load, round {number + 1}: {taken['ours'][-1]:.1f} s, {taken['by hand'][-1]:.1f} s by hand")
    with bench.connect() as connection:
        connection.execute(sql.SQL("drop table {}").format(sql.Identifier(bench.warehouse.schema, "by_hand")))
    return taken


def changes(bench: Bench, *, rows: int, changed: int, rounds: int) -> dict[str, list[float]]:
    """Ours loads a change; by hand, the rows as they are after the next one are merged over them."""
    taken: dict[str, list[float]] = {"ours": [], "by hand": []}
    last = min(rows, max(changed, DAY_ROWS) * 2)
    for number in range(rounds):
        numbers = spread(rows, changed, last=last)
        bench.shop.change(numbers)
        taken["ours"].append(timed(bench.load))
        # The same rows once more, each with a revision that is not there yet.
        listed = ", ".join(map(str, numbers.tolist()))
        with bench.connect() as connection:
            update = sql.SQL("update {} set revision = revision + 1 where id in ({})")
            connection.execute(update.format(bench.table, sql.SQL(listed)))  # type: ignore[arg-type]
        content = bench.copied(f"id in ({listed})")
        with bench.connect() as connection:
            update = sql.SQL("update {} set revision = revision - 1 where id in ({})")
            connection.execute(update.format(bench.table, sql.SQL(listed)))  # type: ignore[arg-type]
        with psycopg.connect(bench.warehouse.database.url(), autocommit=True) as connection:
            connection.execute(sql.SQL("vacuum {}").format(bench.table))
        taken["by hand"].append(timed(lambda held=content: bench.merged_by_hand(held)))  # type: ignore[misc]
        with bench.connect() as connection:
            connection.execute(update.format(bench.table, sql.SQL(listed)))  # type: ignore[arg-type]
        console.log(f"changes, round {number + 1}: {taken['ours'][-1]:.2f} s, {taken['by hand'][-1]:.2f} s by hand")
    return taken


def sizes(benches: Sequence[tuple[Bench, int]], *, rounds: int, last: int) -> list[list[float]]:
    """The same small load into tables of several sizes, in turns; the first of each does not count.

    The rows that change are among the `last` ones of each table.
    """
    taken: list[list[float]] = [[] for _ in benches]
    for number in range(rounds + 1):
        for (bench, rows), seconds in zip(benches, taken, strict=True):
            bench.shop.change(spread(rows, FEW, last=min(rows, last)))
            took = timed(bench.load)
            if number:
                seconds.append(took)
                console.log(f"{FEW:,} changed rows in {rows:,}: {took:.2f} s")
    return taken


def held(name: str) -> int:
    """Bytes of memory that a process holds at most that does nothing but load all rows of a shop."""
    with ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("spawn")) as other:
        return other.submit(_loaded_here, name).result()


def _loaded_here(name: str) -> int:
    from headrace.airflow import connections
    from headrace.settings import Settings

    shop = Shop.named(name, connections.lake(Settings()), day_rows=DAY_ROWS)
    bench = Bench(shop, connections.warehouse("finance"))
    bench.forget()
    bench.load()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.load", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows of a first load")
    parser.add_argument("--changed", type=int, default=200_000, help="of these, rows that change")
    parser.add_argument("--large", type=int, default=10_000_000, help="rows of the large table")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--page", type=Path, default=PAGE)
    asked = parser.parse_args()
    with ground(STATE, parts=("s3", "postgres")):
        from headrace.airflow import connections
        from headrace.settings import Settings

        lake, warehouse = connections.lake(Settings()), connections.warehouse("finance")
        lines = []
        for nested, told in ((False, "plain columns"), (True, "with a nested column")):
            shop = Shop.made(f"orders_{int(nested)}", lake, rows=asked.rows, day_rows=DAY_ROWS, nested=nested)
            bench = Bench(shop, warehouse)
            first = first_loads(bench, rounds=asked.rounds)
            lines.append(_line(f"first load, {asked.rows:,} rows, {told}", first, "1.3"))
            some = changes(bench, rows=asked.rows, changed=asked.changed, rounds=asked.rounds)
            lines.append(_line(f"{asked.changed:,} changed rows, {told}", some, "1.3"))
            bench.forget()
        small = Bench(Shop.made("small", lake, rows=SMALL, day_rows=DAY_ROWS), warehouse)
        large = Bench(Shop.made("large", lake, rows=asked.large, day_rows=DAY_ROWS), warehouse)
        for each in (small, large):
            each.load()
        shops = [(small, SMALL), (large, asked.large)]
        few = sizes(shops, rounds=asked.rounds, last=DAY_ROWS)
        everywhere = sizes(shops, rounds=2, last=asked.large)
        memory = held(large.shop.feed.name)
    asked.page.write_text(page(lines, few, everywhere, asked=asked, memory=memory))
    console.print(asked.page.read_text(), markup=False)


def _line(name: str, taken: dict[str, list[float]], most: str) -> list[str]:
    middle = {side: statistics.median(seconds) for side, seconds in taken.items()}
    cells = [f"{middle[side]:.2f} ({min(taken[side]):.2f})" for side in taken]
    return [name, *cells, f"{middle['ours'] / middle['by hand']:.2f}", most]


def page(
    lines: list[list[str]],
    few: list[list[float]],
    everywhere: list[list[float]],
    *,
    asked: argparse.Namespace,
    memory: int,
) -> str:
    how = (
        f"`python -m bench.load`, {datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} "
        f"at the end. Median (best) seconds of {asked.rounds} rounds in turns. *Ours* reads the rows from the lake, "
        f"masks, stages and merges them and records the snapshot. *By hand* has the same rows lying in memory as the "
        f"bytes of a binary COPY, and the same statements to merge them: the least that it can cost."
    )
    head = ("", "ours", "by hand", "ours ÷ by hand", "at most")
    other = ("", f"in {asked.large:,} rows", f"in {SMALL:,} rows", "ratio", "at most")
    small = [
        _line(f"{FEW:,} changed rows{where}", {"ours": large, "by hand": small}, most)
        for where, (small, large), most in (
            (f", in the days of the last {DAY_ROWS:,}", few, "2"),
            (", one in every part of the table, which a merge wrote anew", everywhere, ""),
        )
    ]
    told = f"A process that loaded {asked.large:,} rows and did nothing else held {memory / 2**20:,.0f} MiB at most."
    return "\n".join([TITLE, "", how, "", *markdown(head, lines), "", *markdown(other, small), "", told, ""])


if __name__ == "__main__":
    main()
