"""Ports and folders of a stack: what is chosen, kept and refused."""

from pathlib import Path

import pytest

from stack import settings
from stack.errors import StackError
from stack.settings import PORTS, REPOSITORY


def test_without_any_choice_the_defaults_hold() -> None:
    chosen = settings.choose({})
    assert chosen.ports == PORTS
    assert chosen.state == REPOSITORY / ".headrace"
    assert chosen.schemas == REPOSITORY / "schemas"


def test_an_offset_shifts_every_port() -> None:
    assert settings.choose_ports({"HEADRACE_PORT_OFFSET": "100"}) == {name: port + 100 for name, port in PORTS.items()}


def test_one_named_port_wins_over_the_offset() -> None:
    ports = settings.choose_ports({"HEADRACE_PORT_OFFSET": "100", "HEADRACE_KAFKA_PORT": "7000"})
    assert (ports["kafka"], ports["s3"]) == (7000, PORTS["s3"] + 100)


def test_kept_ports_hold_until_the_environment_says_otherwise() -> None:
    kept = {"kafka": 7000, "s3": 7001}
    assert settings.choose_ports({}, kept)["kafka"] == 7000
    assert settings.choose_ports({"HEADRACE_S3_PORT": "8001"}, kept)["s3"] == 8001
    assert settings.choose_ports({"HEADRACE_PORT_OFFSET": "0"}, kept)["kafka"] == PORTS["kafka"]


@pytest.mark.parametrize(
    ("environment", "line"),
    [
        ({"HEADRACE_KAFKA_PORT": "many"}, 'HEADRACE_KAFKA_PORT="many" is not a number'),
        ({"HEADRACE_KAFKA_PORT": "70000"}, "Port 70000 of kafka is not between 1 and 65535"),
        ({"HEADRACE_PORT_OFFSET": "-9000"}, "Port -920 of airflow"),
        ({"HEADRACE_S3_PORT": "9092"}, "kafka and s3 were both given port 9092"),
    ],
)
def test_a_port_that_cannot_be_is_refused_in_one_line(environment: dict[str, str], line: str) -> None:
    with pytest.raises(StackError, match=line) as caught:
        settings.choose_ports(environment)
    assert "\n" not in str(caught.value)


def test_what_was_kept_is_found_again(tmp_path: Path) -> None:
    environment = {"HEADRACE_STATE": str(tmp_path), "HEADRACE_PORT_OFFSET": "100", "HEADRACE_SCHEMAS": "/feeds"}
    settings.keep(settings.load(environment))
    again = settings.load({"HEADRACE_STATE": str(tmp_path)})
    assert again.ports["kafka"] == PORTS["kafka"] + 100
    assert again.schemas == Path("/feeds")


def test_a_broken_file_of_kept_choices_is_named(tmp_path: Path) -> None:
    (tmp_path / "stack.json").write_text("{")
    with pytest.raises(StackError, match=r"stack\.json: not valid JSON"):
        settings.load({"HEADRACE_STATE": str(tmp_path)})
