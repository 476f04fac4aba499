"""What it costs to prove that Postgres holds the clean rows, beside just reading both sides.

    .venv/bin/python -m bench.reconcile [--rows 10000000] [--rounds 3]

Starts Postgres and an S3 server of its own, makes a clean table and loads it. In turns: a full reconcile, all three
depths; and reading both sides into Arrow, as it does, and nothing more. The figures go to bench/results/reconcile.md
(--page for another place). HEADRACE_STATE=FOLDER uses the stack that runs there.
"""

import argparse
import os
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console

from bench.figures import markdown
from bench.ground import ground
from bench.shop import Shop
from stack.settings import REPOSITORY

STATE = REPOSITORY / ".headrace" / "bench-reconcile"
PAGE = REPOSITORY / "bench" / "results" / "reconcile.md"
TITLE = "# Reconcile: a checksum of every row, beside reading both sides"
DAY_ROWS = 100_000
KEY = b"a key for masks"

console = Console(highlight=False, log_path=False)


def timed(deed: Callable[[], object]) -> float:
    begin = time.perf_counter()
    deed()
    return time.perf_counter() - begin


def proven(shop: Shop, warehouse: Any, *, rows: int) -> None:
    from headrace.stages import reconcile

    done = reconcile.reconcile(shop.feed, lake=shop.lake, warehouse=warehouse, mask_key=KEY, full=True)
    assert done.verdict.agrees
    assert done.figures.rows == done.figures.unique == rows


def read(shop: Shop, warehouse: Any, *, rows: int) -> None:
    """Both sides, one after the other, as they come."""
    from headrace import share

    shared = share.share_of(shop.feed, warehouse.name, shop.table)
    snapshot = shop.table.current_snapshot().snapshot_id
    assert count(share.rows(shop.table, shared, snapshot=snapshot, where=share.VISIBLE, mask_key=KEY)) == rows
    with warehouse.reading(shop.feed.name) as session:
        assert count(session.rows(shared)) == rows


def count(batches: Iterator[pa.RecordBatch]) -> int:
    return sum(batch.num_rows for batch in batches)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.reconcile", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--page", type=Path, default=PAGE)
    asked = parser.parse_args()
    lines = []
    with ground(STATE, parts=("s3", "postgres")):
        from headrace.airflow import connections
        from headrace.settings import Settings
        from headrace.stages import load

        lake, warehouse = connections.lake(Settings()), connections.warehouse("finance")
        for nested, told in ((False, "plain columns"), (True, "with a nested column")):
            shop = Shop.made(f"orders_{int(nested)}", lake, rows=asked.rows, day_rows=DAY_ROWS, nested=nested)
            load.load(shop.feed, lake=lake, warehouse=warehouse, mask_key=KEY)
            taken: dict[str, list[float]] = {"proven": [], "read": []}
            for number in range(asked.rounds):
                for name, deed in (("proven", proven), ("read", read)):
                    taken[name].append(timed(partial(deed, shop, warehouse, rows=asked.rows)))
                console.log(
                    f"{told}, round {number + 1}: {taken['proven'][-1]:.1f} s, {taken['read'][-1]:.1f} s to read"
                )
            lines.append(line(f"{asked.rows:,} rows, {told}", taken, rows=asked.rows))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    asked.page.write_text(page(lines, rounds=asked.rounds, memory=memory))
    console.print(asked.page.read_text(), markup=False)


def line(name: str, taken: dict[str, list[float]], *, rows: int) -> list[str]:
    middle = {side: statistics.median(seconds) for side, seconds in taken.items()}
    cells = [f"{middle[side]:.1f} ({min(taken[side]):.1f})" for side in taken]
    rate = f"{rows / middle['proven'] / 1000:,.0f}k"
    return [name, *cells, rate, f"{middle['proven'] / middle['read']:.2f}", "1.5"]


def page(lines: list[list[str]], *, rounds: int, memory: float) -> str:
    how = (
        f"`python -m bench.reconcile`, {datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, load "
        f"{os.getloadavg()[0]:.1f} at the end. Median (best) seconds of {rounds} rounds in turns. *Proven* is a full "
        f"reconcile: rows and different keys counted, two columns summed, every row hashed. *Read* is both sides read "
        f"as Arrow in the same way, and nothing done with it. The process held {memory:,.0f} MiB at most."
    )
    head = ("", "proven", "read", "rows/s proven", "proven ÷ read", "at most")
    return "\n".join([TITLE, "", how, "", *markdown(head, lines), ""])


if __name__ == "__main__":
    main()
