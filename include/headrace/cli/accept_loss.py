"""`headrace accept-loss`: an operator's word that a feed goes on without what its broker deleted."""

import contextlib
import getpass
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from headrace import feed as feeds
from headrace.errors import MovedError
from headrace.feed import Feed
from headrace.settings import Settings

if TYPE_CHECKING:
    from headrace.stages.loss import Lost


def accept_loss(
    feed: Annotated[str, typer.Argument(help="The feed's name.", metavar="FEED")],
    why: Annotated[str, typer.Option(help="What happened; it is kept with the archive for ever.")],
    by: Annotated[str | None, typer.Option(help="Who says so; the user of this machine if not given.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask: what was lost when we looked is accepted.")] = False,
) -> None:
    """Let a feed go on whose broker deleted records before they were archived.

    Shows what is gone and asks. Then the archive's heads move past it, and
    who accepted the loss, when and why stands in the archive for good:
    headrace losses FEED. No record of the archive changes. Where nothing is
    lost, nothing is done.

    \b
    Exit code 0: accepted, or nothing is lost. 1: not accepted, or a server does
    not answer. 2: a wrong option.
    Example: headrace accept-loss orders --why "retention was a day too short"
    """
    if not why.strip():
        raise typer.BadParameter("say what happened", param_hint="--why")
    by = by or _user()
    declared, console = feeds.named(feed, Settings().schemas), Console(soft_wrap=True, highlight=False)
    agreed = None
    # Another who commits to the archive meanwhile makes us look again, and ask again where the loss is another one.
    while lost := _find(declared):
        if lost.places != agreed:
            _show(declared, lost, console=console)
            if not yes and not typer.confirm("Go on without them, for good?"):
                print(f"feed {declared.name}: nothing was accepted, and it stays stopped")
                sys.exit(1)
            agreed = lost.places
        if _accepted(lost, by=by, why=why.strip()):
            print(f"feed {declared.name}: accepted; its next run goes on. See: headrace losses {declared.name}")
            return
    print(f"feed {declared.name}: nothing is lost, and nothing was done")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:  # a container's user may have no name
        raise typer.BadParameter("say who you are: this machine's user has no name", param_hint="--by") from error


def _find(feed: Feed) -> "Lost | None":
    # Airflow logs to standard output, which belongs to our own answer.
    with contextlib.redirect_stdout(sys.stderr):
        from headrace.airflow import connections
        from headrace.stages import loss

        lake = connections.lake(Settings())
        if feed.declaration.kinesis:
            return loss.find_in_stream(feed, lake=lake, kinesis=connections.kinesis())
        return loss.find(feed, lake=lake, kafka=connections.kafka())


def _accepted(lost: "Lost", *, by: str, why: str) -> bool:
    from headrace.stages import loss

    try:
        loss.accept(lost, at=datetime.now(UTC).isoformat(timespec="seconds"), by=by, why=why)
    except MovedError:
        return False
    return True


def _show(feed: Feed, lost: "Lost", *, console: Console) -> None:
    from headrace.stages import loss

    table = Table("topic", "partition", "first lost offset", "last", "count, at most", box=None)
    for number, span in sorted(lost.spans.items()):
        topic, partition = loss.origin(feed, number)
        table.add_row(topic, str(partition), str(span.first), str(span.next - 1), str(len(span)))
    if lost.gaps:
        table = Table("stream", "shard", "records that arrived", "count", box=None)
        for number, gap in lost.gaps.items():
            table.add_row(feed.topic, str(number), str(gap), "unknown")
    console.print(table)
