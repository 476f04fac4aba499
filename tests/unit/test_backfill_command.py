"""`airflow dags backfill`: the words of Airflow 2, translated; every other command as it was."""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from airflow.cli.cli_config import core_commands

from headrace.airflow import backfill
from headrace.airflow.provider import get_provider_info

AIRFLOW = Path(sys.executable).with_name("airflow")


@pytest.fixture
def airflow(tmp_path: Path) -> Any:
    """Airflow's own program, with a home that has nothing in it."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "AIRFLOW_HOME": str(tmp_path), "COLUMNS": "200"}
        return subprocess.run([AIRFLOW, *words], env=environment, capture_output=True, text=True, check=False)

    return run


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for argument in backfill.ARGUMENTS:
        argument.add_to_parser(parser)
    return backfill.translated(parser.parse_args(words))


def names(commands: Any) -> dict[str, list[str]]:
    return {each.name: [sub.name for sub in getattr(each, "subcommands", ())] for each in commands}


def test_the_group_dags_gets_backfill_and_nothing_else_changes() -> None:
    before, after = names(core_commands), names(backfill.grafted(core_commands))
    assert after.pop("dags") == [*before.pop("dags"), "backfill"]
    assert after == before


def test_an_airflow_that_has_the_command_keeps_its_own() -> None:
    once = backfill.grafted(core_commands)
    assert backfill.grafted(once) == once


def test_airflow_asks_our_provider_for_the_command() -> None:
    assert get_provider_info()["cli"] == ["headrace.airflow.backfill.cli_commands"]


def test_airflow_has_the_command_and_all_that_it_had(airflow: Any) -> None:
    shown = airflow("dags", "--help")
    assert shown.returncode == 0, shown.stderr
    listed = {line.split()[0] for line in shown.stdout.splitlines() if line.startswith("    ") and line.strip()}
    assert {*names(core_commands)["dags"], "backfill"} <= listed
    assert "defined more than once" not in shown.stderr


def test_a_flag_that_is_gone_says_what_to_use(airflow: Any) -> None:
    answer = airflow("dags", "backfill", "-s", "2026-03-01", "-e", "2026-03-02", "-t", "check", "orders")
    assert answer.returncode == 2
    assert "-t went with Airflow 2: use airflow tasks clear -t" in answer.stderr


@pytest.mark.parametrize(
    ("flags", "behavior"),
    [
        ([], "none"),
        (["--rerun-failed-tasks"], "failed"),
        (["--reset-dagruns"], "completed"),
        (["--reset-dagruns", "--rerun-failed-tasks", "-y"], "completed"),
        (["--reprocess-behavior", "failed"], "failed"),
        (["--reprocess-behavior", "completed", "--reset-dagruns"], "completed"),
    ],
)
def test_what_ran_already_runs_again_as_the_flags_say(flags: list[str], behavior: str) -> None:
    assert parsed("-s", "2026-03-01", "-e", "2026-03-02", *flags, "orders").reprocess_behavior == behavior


def test_the_known_flags_become_those_of_backfill_create() -> None:
    asked = parsed(
        "-s", "2026-03-01", "-e", "2026-03-02T12:00:00", "-B", "-n",
        "--max-active-runs", "3", "-c", '{"a": 1}', "orders",
    )  # fmt: skip
    assert (asked.dag_id, asked.from_date.isoformat(), asked.to_date.isoformat()) == (
        "orders", "2026-03-01T00:00:00+00:00", "2026-03-02T12:00:00+00:00",
    )  # fmt: skip
    assert (asked.run_backwards, asked.dry_run, asked.max_active_runs) == (True, True, 3)
    assert asked.dag_run_conf == '{"a": 1}'


def test_one_date_alone_is_one_window() -> None:
    asked = parsed("-e", "2026-03-01", "orders")
    assert asked.from_date == asked.to_date


def test_without_dates_it_asks_for_them() -> None:
    with pytest.raises(ValueError, match="-s START -e END"):
        parsed("orders")


def test_flags_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="contradicts"):
        parsed("-s", "2026-03-01", "--reset-dagruns", "--reprocess-behavior", "none", "orders")


def test_it_asks_for_everything_that_backfill_create_reads() -> None:
    create = next(
        sub for each in core_commands if each.name == "backfill" for sub in each.subcommands if sub.name == "create"
    )
    wanted = {argument.flags[0].removeprefix("--").replace("-", "_") for argument in create.args}
    assert wanted <= set(vars(parsed("-s", "2026-03-01", "orders")))


def test_windows_that_are_left_out_are_told() -> None:
    told = backfill.sentence("orders", runs=2, left={"already exists": 3})
    assert told == "orders: 2 windows will run. 3 ran already: add --reset-dagruns to run them again."
