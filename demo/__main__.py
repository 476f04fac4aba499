"""The demo: publish a round of every example feed, run their DAGs, and compare every store with the oracle."""

import os
import sys
import time
from collections.abc import Mapping

from rich.console import Console

from demo import airflow, report, runs
from demo.board import board
from demo.comparison import Comparison, compared
from demo.errors import DemoError, FeedError
from demo.feed import EXAMPLES, Feed, read_feed
from demo.generator import ROUND_MS, meanings
from demo.oracle import expected
from demo.publisher import publish, rounds_published
from demo.registration import Registered, register
from demo.settings import Settings, read_settings
from demo.stores import answer, found, open_catalog
from demo.topic import end_offsets

# A pipe has no width; the widest table must still stand on one line.
PIPE_WIDTH = 120
INTERRUPTED = 130


def main() -> int:
    console = _console()
    try:
        return demonstrate(read_settings(os.environ), console=console)
    except DemoError as error:
        console.print(f"[bold red]The demo stopped.[/] {type(error).__name__}:")
        console.print(str(error), markup=False, highlight=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        console.print("Interrupted. What was published stays; the next demo goes on from there.")
        return INTERRUPTED


def demonstrate(settings: Settings, *, console: Console) -> int:
    """The whole story; 0 when every store holds exactly what the oracle expects."""
    feeds = [read_feed(example) for example in EXAMPLES]
    registered = _registered(feeds)
    rounds = {feed.name: _publish_next(feed, registered, settings=settings, console=console) for feed in feeds}
    _run(feeds, settings=settings, console=console)
    console.print("[bold]Comparing[/] every store with the oracle")
    comparisons = [_compare(feed, rounds[feed.name], settings=settings) for feed in feeds]
    console.print(report.counts(comparisons))
    if not all(comparison.reconciled for comparison in comparisons):
        for comparison in comparisons:
            report.explain(console, comparison)
        return 1
    report.query(console, answer(settings.readers["finance"], report.QUERY))
    report.closing(console, settings.airflow)
    return 0


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=PIPE_WIDTH)


def _registered(feeds: list[Feed]) -> dict[str, Registered]:
    registered = register()
    missing = [feed.name for feed in feeds if feed.name not in registered]
    if missing:
        raise FeedError(f"`headrace register` did not register {', '.join(missing)}. Is their file in schemas/?")
    return registered


def _publish_next(feed: Feed, registered: Mapping[str, Registered], *, settings: Settings, console: Console) -> int:
    """Publish the next round, or what an interrupted one left out, and say how many rounds there are now."""
    topic = registered[feed.name].topic
    with console.status(f"Publishing {feed.name}"):
        ends = end_offsets(settings.kafka, topic, partitions=feed.partitions)
        rounds = rounds_published(feed, ends).rounds + 1
        # Timestamps of the last minutes: the broker deletes what looks older than its retention time.
        at = int(time.time() * 1000) - ROUND_MS
        sent = publish(feed, topic=topic, kafka=settings.kafka, rounds=rounds, ids=_ids(registered), at=at)
    console.print(f"[bold]Published[/] round {rounds} of {feed.name}: {sent:,} records to the topic {topic}")
    return rounds


def _run(feeds: list[Feed], *, settings: Settings, console: Console) -> None:
    with airflow.session(settings.airflow) as client:
        with console.status("Waiting until Airflow knows the feeds"):
            started = runs.start(client, [feed.name for feed in feeds])
        console.print(f"[bold]Running[/] {', '.join(run.dag for run in started)} in Airflow, {settings.airflow.url}")
        with board(console) as shown:
            runs.follow(client, started, board=shown, at=settings.airflow)


def _compare(feed: Feed, rounds: int, *, settings: Settings) -> Comparison:
    stands = found(feed, catalog=open_catalog(settings.catalog), readers=settings.readers)
    said = expected(feed, meanings(feed, rounds=rounds), mask_key=settings.mask_key)
    return compared(feed, said, found=stands)


def _ids(registered: Mapping[str, Registered]) -> dict[str, int]:
    return {name: entry.id for name, entry in registered.items()}


if __name__ == "__main__":
    sys.exit(main())
