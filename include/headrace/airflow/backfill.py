"""`airflow dags backfill`, which Airflow 3 removed: the words people know, in front of `airflow backfill create`.

Airflow imports this for each of its commands; it must stay light.
"""

import argparse
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NoReturn

from airflow.cli import cli_config
from airflow.cli.cli_config import ActionCommand, CLICommand, GroupCommand, lazy_load_command

GROUP, COMMAND = "dags", "backfill"

EPILOG = """
The scheduler runs the windows, not this command: look at them under the DAG's Backfills, or by airflow dags list-runs.
For a feed, what the archive holds of a window is transformed, checked and published again; nothing is read from Kafka.
"""

GONE: Mapping[tuple[str, ...], str] = {
    ("--continue-on-failures",): "a window that fails never keeps the others from running",
    ("--delay-on-limit",): "Airflow's scheduler decides when the next window starts",
    ("--disable-retry",): "set runs.retries in the feed file",
    ("-x", "--donot-pickle"): "Airflow pickles no DAG any more",
    ("-i", "--ignore-dependencies"): "use airflow tasks test for a single task",
    ("-I", "--ignore-first-depends-on-past"): "no task of a feed depends on its past",
    ("-l", "--local"): "windows run where all other runs do",
    ("-m", "--mark-success"): "mark the run in the UI",
    ("--pool",): "set the pool where the DAG is made",
    ("-S", "--subdir"): "DAGs come from the DAG bundles",
    ("-t", "--task-regex"): "use airflow tasks clear -t for some of the tasks of runs that are there",
    ("--treat-dag-id-as-regex", "--treat-dag-as-regex"): "call the command once for each DAG",
}
"""Flags of Airflow 2 that have no counterpart, and what to do instead."""


class _Gone(argparse.Action):
    """A flag that is not there any more: using it says what to use."""

    def __init__(self, *args: Any, advice: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.advice = advice

    def __call__(
        self, parser: argparse.ArgumentParser, _namespace: object, _values: object, flag: str | None = None
    ) -> NoReturn:
        parser.error(f"{flag} went with Airflow 2: {self.advice}")


# Airflow gives these no types.
Arg: Callable[..., Any] = cli_config.Arg
number: Callable[..., Any] = cli_config.positive_int
date: Callable[[str], Any] = cli_config.parsedate  # type: ignore[attr-defined]

ARGUMENTS = (
    Arg(("dag_id",), metavar="FEED", help="The feed, which is the DAG's id."),
    Arg(("-s", "--start-date"), type=date, help="The first window's start; that of -e if left out."),
    Arg(("-e", "--end-date"), type=date, help="The last window's start, itself included; that of -s if left out."),
    Arg(("-n", "--dry-run"), action="store_true", help="Say which windows would run."),
    Arg(("--reset-dagruns",), action="store_true", help="Run windows again that have run already."),
    Arg(("--rerun-failed-tasks",), action="store_true", help="Run windows again that have failed."),
    Arg(
        ("--reprocess-behavior",),
        choices=("none", "completed", "failed"),
        help="The same in the words of airflow backfill create. Default: none, only windows that never ran.",
    ),
    Arg(("-B", "--run-backwards"), action="store_true", help="The latest window first."),
    Arg(
        ("--max-active-runs",),
        type=number(allow_zero=False),
        default=1,
        help="How many windows may run at once. Default: 1. Those of one feed take turns from transform to publish.",
    ),
    Arg(("-c", "--conf"), help="What the runs get as their configuration, as JSON."),
    Arg(("-y", "--yes"), action="store_true", help="Does nothing: there is no question to answer."),
    Arg(("-v", "--verbose"), action="store_true", help="Does nothing: the runs' logs are in the UI."),
    *(
        Arg(flags, action=partial(_Gone, advice=advice), nargs="?", help=argparse.SUPPRESS)
        for flags, advice in GONE.items()
    ),
)


def cli_commands() -> list[CLICommand]:
    """What Airflow asks a provider for while it collects its commands.

    None of our own: a second group `dags` would break every command. The collected one is replaced by one that has
    `backfill` too.
    """
    from airflow.cli import cli_parser

    commands = cli_parser.airflow_commands
    commands[:] = grafted(commands)
    return []


def grafted(commands: Iterable[CLICommand]) -> list[CLICommand]:
    """The commands, with `backfill` in the group `dags`; an Airflow that has it already keeps its own."""
    made = ActionCommand(
        name=COMMAND,
        help="Run the windows between two dates",
        description="Run the windows of a feed, or of any DAG, between two dates.",
        func=lazy_load_command(f"{__name__}.create"),
        args=ARGUMENTS,
        epilog=EPILOG,
    )

    def graft(command: CLICommand) -> CLICommand:
        if not isinstance(command, GroupCommand) or command.name != GROUP:
            return command
        if any(each.name == COMMAND for each in command.subcommands):
            return command
        return command._replace(subcommands=(*command.subcommands, made))

    return [graft(command) for command in commands]


def create(args: argparse.Namespace) -> None:
    """The command itself."""
    from airflow.cli.commands.backfill_command import create_backfill
    from airflow.sdk.exceptions import AirflowException

    try:
        asked = translated(args)
        create_backfill(asked)
    except (AirflowException, ValueError) as error:
        raise SystemExit(f"airflow {GROUP} {COMMAND}: {error}") from error
    if not asked.dry_run:
        print(told(args.dag_id))


def translated(args: argparse.Namespace) -> argparse.Namespace:
    """The same wish as `airflow backfill create` reads it."""
    if args.start_date is None and args.end_date is None:
        raise ValueError("say which windows: -s START -e END, such as -s 2026-03-01 -e 2026-03-07")
    wishes = {
        "completed": args.reset_dagruns,
        "failed": args.rerun_failed_tasks and not args.reset_dagruns,
        args.reprocess_behavior: args.reprocess_behavior is not None,
    }
    asked = [behavior for behavior, is_asked in wishes.items() if is_asked]
    if len(asked) > 1:
        raise ValueError(f"--reprocess-behavior {args.reprocess_behavior} contradicts the other flags: give one only")
    return argparse.Namespace(
        subcommand="create",
        dag_id=args.dag_id,
        from_date=args.start_date or args.end_date,
        to_date=args.end_date or args.start_date,
        dag_run_conf=args.conf,
        run_backwards=args.run_backwards,
        max_active_runs=args.max_active_runs,
        reprocess_behavior=asked[0] if asked else "none",
        run_on_latest_version=None,
        dry_run=args.dry_run,
    )


def told(dag_id: str) -> str:
    """What became of the wish: Airflow itself is silent about windows that it leaves out."""
    from airflow.models.backfill import Backfill, BackfillDagRun
    from airflow.utils.session import create_session
    from sqlalchemy import func, select

    with create_session() as session:
        latest = select(func.max(Backfill.id)).where(Backfill.dag_id == dag_id).scalar_subquery()
        counts = dict(
            session.execute(
                select(BackfillDagRun.exception_reason, func.count())
                .where(BackfillDagRun.backfill_id == latest)
                .group_by(BackfillDagRun.exception_reason)
            )
            .tuples()
            .all()
        )
    return sentence(dag_id, runs=counts.pop(None, 0), left=counts)


def sentence(dag_id: str, *, runs: int, left: Mapping[str | None, int]) -> str:
    """How many windows run, how many do not, and why."""
    advice = {"already exists": "ran already: add --reset-dagruns to run them again", "in flight": "are running now"}
    told = [f"{count} {advice.get(reason or '', reason)}" for reason, count in left.items()]
    return ". ".join([f"{dag_id}: {runs} {'window' if runs == 1 else 'windows'} will run", *told]) + "."
