"""The parts of the stack, their order and how they are supervised."""

import configparser
import os
from pathlib import Path

import pytest

from stack import parts, settings, status, supervision
from stack.down import layers
from stack.errors import StackError
from stack.lock import hold
from stack.parts import kafka
from stack.settings import Settings
from stack.status import Row
from stack.supervision import Program


@pytest.fixture
def chosen(tmp_path: Path) -> Settings:
    return settings.choose({"HEADRACE_STATE": str(tmp_path)})


def test_a_chosen_part_brings_what_it_needs() -> None:
    assert [part.name for part in parts.choose(["scheduler"])] == ["postgres", "airflow-migration", "scheduler"]


def test_no_choice_means_all() -> None:
    assert parts.choose([]) == list(parts.ALL)


def test_an_unknown_part_is_refused_with_the_known_ones() -> None:
    with pytest.raises(StackError, match=r'"kafak" is not a part of the stack\. The parts are: postgres, kafka, s3'):
        parts.choose(["kafak"])


def test_what_needs_others_stops_before_them() -> None:
    stopped = layers({"postgres", "kafka", "scheduler", "spark", "spark-warming"})
    assert stopped == [["scheduler", "spark-warming"], ["spark"], ["kafka"], ["postgres"]]


def test_kafka_loses_nothing_and_creates_nothing_by_itself(chosen: Settings) -> None:
    properties = kafka.properties(chosen)
    assert properties["auto.create.topics.enable"] == "false"
    assert int(str(properties["message.max.bytes"])) > 16 * 2**20
    assert "127.0.0.1" in str(properties["listeners"])


def section(program: Program, chosen: Settings) -> configparser.SectionProxy:
    config = configparser.RawConfigParser()
    config.read_string(supervision.render([program], chosen))
    return config[f"program:{program.name}"]


def test_a_part_is_restarted_when_it_crashes_but_never_started_unasked(chosen: Settings) -> None:
    made = section(Program("kafka", ["java"], stop_signal="TERM", stop_seconds=5), chosen)
    assert (made["autorestart"], made["autostart"]) == ("true", "false")


def test_a_command_keeps_its_spaces_and_percents(chosen: Settings) -> None:
    command = ["java", "-cp", "/a folder/*", "100%"]
    made = section(Program("kafka", command, stop_signal="TERM", stop_seconds=5), chosen)
    assert made["command"] == "java -cp '/a folder/*' 100%%"


def test_a_deep_state_folder_gets_a_socket_that_the_kernel_accepts(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 120)
    assert len(os.fsencode(supervision.socket_path(deep))) < 107
    assert supervision.socket_path(deep) != supervision.socket_path(tmp_path / ("y" * 120))


def test_two_commands_at_once_are_refused_in_one_line(tmp_path: Path) -> None:
    with (
        hold(tmp_path),
        pytest.raises(StackError, match=f"Another stack command .pid {os.getpid()}. is at work"),
        hold(tmp_path),
    ):
        pass


def test_the_lock_is_free_again_afterwards(tmp_path: Path) -> None:
    for _ in range(2):
        with hold(tmp_path):
            pass


def test_the_table_is_aligned() -> None:
    lines = status.table(
        [Row("kafka", "up", "12", "1m 02s", "127.0.0.1:9092", "350 MB"), Row("s3", "down")]
    ).splitlines()
    assert [line.split()[0] for line in lines] == ["PART", "kafka", "s3"]
    assert len({line.index(word) for line, word in zip(lines, ("STATE", "up", "down"), strict=True)}) == 1


def test_one_part_that_is_not_up_is_enough() -> None:
    assert status.all_up([Row("kafka", "up")])
    assert not status.all_up([Row("kafka", "up"), Row("s3", "no answer")])


@pytest.mark.parametrize(("seconds", "text"), [(62, "1m 02s"), (3700, "1h 01m"), (90000, "1d 01h")])
def test_an_uptime_is_shown_in_its_two_largest_units(seconds: int, text: str) -> None:
    assert status.uptime(seconds) == text
