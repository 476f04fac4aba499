"""`headrace verify`: whether an archive holds its topic, every record once and byte for byte."""

import contextlib
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from headrace import feed as feeds
from headrace.feed import Feed
from headrace.findings import DIFFERENCES, NOTES
from headrace.heads import mirrored
from headrace.settings import Settings

if TYPE_CHECKING:
    from headrace.findings import Account
    from headrace.stages.verify import Verification

SHOWN = (*DIFFERENCES, *NOTES)


def verify(
    feed: Annotated[str, typer.Argument(help="The feed's name.", metavar="FEED")],
    archive: Annotated[
        bool,
        typer.Option("--archive", help="Hold the archive against the topic, which is the one thing to verify yet."),
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Compare a feed's archive with its topic, record by record.

    Reads every archived record and all that the broker still holds of them, and
    tells gaps, doubles and altered bytes by partition and offset; never a key or
    a value. Files are held against what their manifests say of them. What the
    broker no longer has is looked over in the archive alone. Nothing is changed,
    and extracts may run meanwhile.

    \b
    Exit code 0: equal. 1: they differ, or a server does not answer. 2: a wrong
    option.
    Example: headrace verify orders --archive
    """
    if not archive:
        raise typer.BadParameter("say what to verify: --archive", param_hint="--archive")
    declared = feeds.named(feed, Settings().schemas)
    # Airflow logs to standard output, which belongs to our own answer.
    with contextlib.redirect_stdout(sys.stderr):
        found = _verify(declared)
    print(json.dumps(as_json(found))) if json_ else _show(found)
    sys.exit(0 if found.is_equal else 1)


def _verify(feed: Feed) -> "Verification":
    from headrace.airflow import connections
    from headrace.stages import verify

    with _bar(feed) as bar:
        task = bar.add_task(feed.name, total=None)
        return verify.verify(
            feed,
            lake=connections.lake(Settings()),
            kafka={} if feed.declaration.kinesis else connections.kafka(),
            progress=lambda done, of: bar.update(task, completed=done, total=of),
        )


@contextlib.contextmanager
def _bar(feed: Feed) -> Iterator[Progress]:
    console = Console(stderr=True)
    columns = (TextColumn(f"{feed.name}: offsets"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        yield bar


def as_json(found: "Verification") -> dict[str, object]:
    return {
        "feed": found.feed,
        "snapshot": str(found.snapshot) if found.snapshot else None,
        "equal": found.is_equal,
        "losses": [asdict(loss) for loss in found.losses],
        "partitions": [_account_as_json(account) for account in found.accounts],
    }


def _account_as_json(account: "Account") -> dict[str, object]:
    # Not asdict of all of it, which cannot copy a Counter.
    plain = {name: value for name, value in vars(account).items() if name not in ("counts", "findings")}
    findings = [asdict(finding) for finding in account.findings]
    return {**plain, "lag": account.lag, "counts": dict(account.counts), "findings": findings}


def _show(found: "Verification") -> None:
    """One line per partition, then the first findings of each kind."""
    console = Console(soft_wrap=True, highlight=False)
    kinds = [kind for kind in SHOWN if kind in SHOWN[:3] or any(each.counts[kind] for each in found.accounts)]
    table = Table("topic", "partition", "on the broker", "archived", "records", "equal", *kinds, "lag", box=None)
    for account in found.accounts:
        table.add_row(*_row(account, kinds))
    console.print(table)
    for finding in (finding for account in found.accounts for finding in account.findings):
        console.print(str(finding), markup=False)
    console.print(_word(found), markup=False)


def _row(account: "Account", kinds: list[str]) -> list[str]:
    spans = ("gone" if account.on_broker is None else _span(account.on_broker), _span(account.archived))
    numbers = (account.records, account.equal, *(account.counts[kind] for kind in kinds), account.lag)
    partition = account.partition if account.partition >= 0 else mirrored(account.partition)
    return [account.topic, str(partition), *spans, *map(str, numbers)]


def _span(span: tuple[int, int] | None) -> str:
    return "nothing" if span is None or span[0] >= span[1] else f"{span[0]}–{span[1] - 1}"


def _word(found: "Verification") -> str:
    counts = {kind: sum(account.counts[kind] for account in found.accounts) for kind in SHOWN}
    told = [f"{kind} {count}: {DIFFERENCES.get(kind) or NOTES[kind]}" for kind, count in counts.items() if count]
    return "\n".join([f"feed {found.feed}: {'equal' if found.is_equal else 'DIFFERENT'}", *told])
