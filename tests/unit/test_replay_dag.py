"""The replay DAG and the request behind it: parsed without anything heavy, told without a key."""

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headrace.airflow.replay import LINE_S, Request, keys_in, lines
from headrace.errors import SettingsError, SliceError
from headrace.kafka.pace import Rate

FILE = Path(__file__).parents[2] / "dags" / "replay.py"
HEAVY = ("pyspark", "pyarrow", "pyiceberg", "confluent_kafka", "psycopg", "adbc_driver_manager", "great_expectations")


@pytest.fixture(scope="module")
def dag() -> Any:
    return runpy.run_path(str(FILE))["replay"]()


def test_every_option_of_a_request_is_in_the_form(dag: Any) -> None:
    assert set(dag.params) == {*Request.__dataclass_fields__, "dry_run"}
    assert dag.params["dry_run"], "who only looks at it sends nothing"
    assert dag.schedule is None


def test_parsing_it_imports_nothing_heavy() -> None:
    code = f"import runpy, sys; runpy.run_path({str(FILE)!r}); print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_form_warns_of_keys_and_proposes_the_feeds_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "orders.avsc").write_text("{}")
    monkeypatch.setenv("HEADRACE_SCHEMAS", str(tmp_path))
    made = runpy.run_path(str(FILE))["replay"]()
    assert made.params.get_param("feed").schema["examples"] == ["orders"]
    assert "Airflow's database" in made.params.get_param("keys").description


def test_a_request_is_told_without_its_keys() -> None:
    request = Request("orders", keys=["anna@example.org"])
    assert "example.org" not in repr(request)
    assert request.slice().keys == {b"anna@example.org"}


def test_a_request_that_means_nothing_is_refused() -> None:
    with pytest.raises(SliceError, match="Ask for quarantine too"):
        Request("orders", reason="forged").slice()
    with pytest.raises(SliceError, match="which is not later"):
        Request("orders", since="2026-01-02", until="2026-01-01").slice()


@pytest.mark.parametrize(("text", "told"), [("", "no key"), ("\n", "no key"), ("a\n\nb\n", "line 2 is empty")])
def test_a_file_without_keys_does_not_mean_every_record(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "keys"
    file.write_text(text)
    with pytest.raises(SliceError, match=told):
        keys_in(file)


def test_a_key_is_a_whole_line(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_bytes("\ufeffa b\r\n\u2028x".encode())
    assert keys_in(file) == ["a b", "\u2028x"]
    file.write_bytes(b"\xff")
    with pytest.raises(SliceError, match="not UTF-8"):
        keys_in(file)


def test_a_rate_of_zero_is_refused_and_not_taken_for_none() -> None:
    with pytest.raises(SettingsError, match="never ends"):
        Request("orders", rate=0).limit()
    assert Request("orders").limit() == Rate()


def test_progress_is_a_line_now_and_then() -> None:
    told: list[str] = []
    now = [0.0]
    progress = lines(told.append, clock=lambda: now[0])
    for step in range(5):
        now[0] = step * LINE_S / 2
        progress(step * 1000, 5000)
    assert told == ["2,000 of 5,000 records looked at", "4,000 of 5,000 records looked at"]
