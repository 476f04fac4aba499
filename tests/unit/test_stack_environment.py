"""stack.env: what it holds, and how a terminal takes it over."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stack import environment, passwords, settings, stamps, terminal
from stack.passwords import Passwords
from stack.settings import Settings


@pytest.fixture
def chosen(tmp_path: Path) -> Settings:
    return settings.choose({"HEADRACE_STATE": str(tmp_path), "HEADRACE_PORT_OFFSET": "100"})


@pytest.fixture
def variables(chosen: Settings) -> dict[str, str]:
    return environment.render(chosen, Passwords())


def test_what_is_written_is_what_is_read(variables: dict[str, str]) -> None:
    assert terminal.parse(environment.as_text(variables)) == variables


def test_every_connection_is_a_json_object_with_the_chosen_port(variables: dict[str, str]) -> None:
    connections = {
        name.removeprefix("AIRFLOW_CONN_HEADRACE_"): json.loads(value)
        for name, value in variables.items()
        if name.startswith("AIRFLOW_CONN_")
    }
    assert set(connections) == {
        "KAFKA", "S3", "SPARK", "MASKS", "SIGNING", "CATALOG", "REGISTRY", "REGISTRY_STORE", "WAREHOUSE_FINANCE",
        "WAREHOUSE_ENGINEERING", "WAREHOUSES",
    }  # fmt: skip
    assert connections["KAFKA"]["extra"]["bootstrap.servers"] == "127.0.0.1:9192"
    assert connections["S3"]["extra"]["endpoint_url"] == "http://127.0.0.1:9100"
    assert (connections["SPARK"]["host"], connections["SPARK"]["port"]) == ("sc://127.0.0.1", 15102)
    assert connections["CATALOG"]["port"] == 5533
    assert connections["REGISTRY"]["host"] == "http://127.0.0.1:8180/registry"


def test_nothing_of_the_stack_calls_home(variables: dict[str, str]) -> None:
    assert variables["AIRFLOW__USAGE_DATA_COLLECTION__ENABLED"] == "False"
    assert variables["GX_ANALYTICS_ENABLED"] == "false"


def test_the_feeds_come_from_the_chosen_folder(chosen: Settings, variables: dict[str, str]) -> None:
    bundles = {
        bundle["name"]: bundle for bundle in json.loads(variables["AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST"])
    }
    assert bundles["feeds"]["kwargs"]["schemas"] == variables["HEADRACE_SCHEMAS"] == str(chosen.schemas)


def test_the_token_secret_is_long_enough_for_its_algorithm(variables: dict[str, str]) -> None:
    assert len(variables["AIRFLOW__API_AUTH__JWT_SECRET"]) >= 64


def test_the_parts_do_not_inherit_a_shells_settings(chosen: Settings, variables: dict[str, str]) -> None:
    own = {"AWS_SECRET_ACCESS_KEY": "mine", "PYTHONDONTWRITEBYTECODE": "1", "AIRFLOW_HOME": "/mine", "LANG": "C.UTF-8"}
    around = environment.of_parts(variables, settings=chosen, java_command=Path("/java/bin/java"), own=own)
    assert "AWS_SECRET_ACCESS_KEY" not in around
    assert "PYTHONDONTWRITEBYTECODE" not in around
    assert around["AIRFLOW_HOME"] == variables["AIRFLOW_HOME"]
    assert around["LANG"] == "C.UTF-8"
    assert around[environment.MARK] == str(chosen.state)


def test_passwords_are_generated_once_and_for_their_owner_only(tmp_path: Path) -> None:
    first = passwords.load(tmp_path)
    assert passwords.load(tmp_path) == first
    assert passwords.load(tmp_path / "other") != first
    assert (tmp_path / "passwords.json").stat().st_mode & 0o077 == 0


def test_a_password_added_later_leaves_the_others_as_they_were(tmp_path: Path) -> None:
    first = passwords.load(tmp_path)
    stamps.write(tmp_path / "passwords.json", json.dumps({"postgres": first.postgres}), mode=0o600)
    again = passwords.load(tmp_path)
    assert again.postgres == first.postgres
    assert again.masks != first.masks


def loaded(state: Path, **extra: str) -> str:
    code = "from stack import terminal; terminal.load(); import os; print(os.environ.get('HEADRACE_WORD'))"
    around = {"PATH": os.defpath, "HEADRACE_STATE": str(state), "PYTHONPATH": str(settings.REPOSITORY), **extra}
    done = subprocess.run([sys.executable, "-S", "-c", code], env=around, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.strip()


def test_a_terminal_takes_over_what_the_stack_says(tmp_path: Path) -> None:
    (tmp_path / "stack.env").write_text("# a comment\n\nHEADRACE_WORD=a=b c\n")
    assert loaded(tmp_path) == "a=b c"


def test_what_a_terminal_says_itself_wins(tmp_path: Path) -> None:
    (tmp_path / "stack.env").write_text("HEADRACE_WORD=theirs\n")
    assert loaded(tmp_path, HEADRACE_WORD="mine") == "mine"


def test_a_terminal_without_a_stack_stays_silent(tmp_path: Path) -> None:
    assert loaded(tmp_path / "nowhere") == "None"
