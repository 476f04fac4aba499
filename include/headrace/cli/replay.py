"""`headrace replay`: a slice of a feed's archive back to Kafka."""

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from headrace.airflow import replay as replays
from headrace.airflow.replay import Request
from headrace.errors import SettingsError, SliceError
from headrace.record import hour_start

if TYPE_CHECKING:
    from headrace.stages.replay import Replay, Tally


def replay(  # noqa: PLR0917 - typer calls it by names
    feed: Annotated[str, typer.Argument(help="The feed's name.", metavar="FEED")],
    since: Annotated[str | None, typer.Option(metavar="TIME", help="Kafka timestamps from here on, UTC.")] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Kafka timestamps before this.")] = None,
    offsets: Annotated[
        list[str] | None, typer.Option(metavar="P:FIRST-LAST", help="Offsets of a partition; again for more.")
    ] = None,
    partition: Annotated[list[int] | None, typer.Option(help="A partition; again for more.", min=0)] = None,
    key: Annotated[list[str] | None, typer.Option(help="A Kafka key, as text or as hex:00ff; again for more.")] = None,
    keys_file: Annotated[
        Path | None, typer.Option(help="A file with one key a line.", exists=True, dir_okay=False)
    ] = None,
    quarantine: Annotated[bool, typer.Option("--quarantine", help="Only what lies in quarantine.")] = False,
    reason: Annotated[str | None, typer.Option(help="Only what lies there for this reason.")] = None,
    drained: Annotated[
        bool, typer.Option("--drained", help="The drained topic's records instead of the own topic's.")
    ] = False,
    to: Annotated[str | None, typer.Option(metavar="TOPIC", help="Another topic; its own if not given.")] = None,
    same_partitions: Annotated[
        bool, typer.Option("--same-partitions", help="Keep partitions in another topic too; else keys decide.")
    ] = False,
    rate: Annotated[float | None, typer.Option(metavar="RECORDS", help="At most so many records a second.")] = None,
    bytes_rate: Annotated[float | None, typer.Option(metavar="BYTES", help="At most so many bytes a second.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count, by partition and hour.")] = False,
    again: Annotated[bool, typer.Option("--again", help="From the beginning, though some of it was sent.")] = False,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Send though the own topic is compacted or deletes records this old.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Send a slice of a feed's archive back to its topic, or to another one.

    Records keep key, value, headers and timestamp, and go out in the order of
    their offsets. A signed header carries where they came from: in the clean
    table a replayed record ranks as its original, so a replay revives and
    overwrites nothing, and may be repeated. The same command, after a stop, goes
    on where it stopped; after its end, only with what is new in the slice.

    \b
    Exit code 0: sent, or nothing is left to send. 1: it failed, or a server does
    not answer. 2: a wrong option.
    \b
    an hour:     headrace replay orders --since 2026-11-17T08:00 --until 2026-11-17T09:00
    offsets:     headrace replay orders --offsets 0:100-199 --offsets 2:0-50
    after a mend: headrace replay orders --quarantine --reason unknown_id
    a copy:      headrace replay orders --to orders_copy --same-partitions --rate 5000
    """
    try:
        request = Request(
            feed=feed,
            since=since,
            until=until,
            offsets=offsets or (),
            partitions=partition or (),
            keys=[*(key or ()), *(replays.keys_in(keys_file) if keys_file else ())],
            quarantine=quarantine,
            reason=reason,
            drained=drained,
            to=to,
            same_partitions=same_partitions,
            rate=rate,
            bytes_rate=bytes_rate,
            again=again,
            anyway=anyway,
        )
        request.slice()
        request.limit()
    except (SettingsError, SliceError) as error:
        raise typer.BadParameter(str(error)) from error
    # Airflow logs to standard output, which belongs to our own answer.
    with contextlib.redirect_stdout(sys.stderr):
        planned = replays.plan(request)
        _warn(planned)
        tally = replays.survey(planned) if dry_run else _run(planned, request)
    if json_:
        print(json.dumps({**replays.told(planned, tally), "dry_run": dry_run, "hours": _hours(tally)}))
    else:
        _show(planned, tally, dry_run=dry_run)


def _warn(planned: "Replay") -> None:
    """Beside our answer, and before anything is sent."""
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    for caution in replays.cautions(planned):
        console.print(caution, markup=False)


def _run(planned: "Replay", request: Request) -> "Tally":
    with _bar(planned) as progress:
        return replays.run(planned, request, progress=progress)


@contextlib.contextmanager
def _bar(planned: "Replay") -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal, else a line now and then; both beside our answer."""
    console, said = (
        Console(stderr=True, soft_wrap=True, highlight=False),
        f"{planned.feed.name} to {planned.target.name}",
    )
    if not console.is_terminal:
        yield replays.lines(lambda line: console.print(f"{said}: {line}", markup=False))
        return
    columns = (TextColumn(said), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(planned.feed.name, total=None)
        yield lambda done, of: bar.update(task, completed=done, total=max(done, of))


def _hours(tally: "Tally") -> list[dict[str, object]]:
    return [
        {"partition": number, "hour": _named(hour), "records": records, "bytes": size}
        for (number, hour), (records, size) in sorted(
            tally.hours.items(), key=lambda each: (each[0][0], each[0][1] or 0)
        )
    ]


def _named(hour: int | None) -> str:
    return hour_start(hour).strftime("%Y-%m-%d %H:00") if hour is not None else "unknown"


def _show(planned: "Replay", tally: "Tally", *, dry_run: bool) -> None:
    console = Console(soft_wrap=True, highlight=False)
    if dry_run and tally.hours:
        table = Table("partition", "hour", box=None)
        table.add_column("records", justify="right")
        table.add_column("bytes", justify="right")
        for row in _hours(tally):
            table.add_row(str(row["partition"]), str(row["hour"]), f"{row['records']:,}", f"{row['bytes']:,}")
        console.print(table)
    verb = "would go" if dry_run else "went"
    console.print(
        f"{tally.records:,} records, {tally.bytes:,} bytes {verb} to topic {planned.target.name}", markup=False
    )
    for remark in replays.remarks(planned, tally):
        console.print(remark, markup=False)
