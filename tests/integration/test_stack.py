"""The local stack's promises, each with a small stack of its own."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import psutil
import psycopg
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from stack import processes, settings, terminal, trial
from stack.environment import BUCKET
from stack.parts import s3
from stack.parts.part import Stack
from stack.up import build

HOME = settings.REPOSITORY / ".headrace"


class Small:
    """A stack of a few parts in a state folder of its own."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.around = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "HEADRACE_"))},
            **trial.variables(state),
        }

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return trial.run(*arguments, around=self.around)

    def up(self, only: str) -> None:
        done = self.run("up", "--only", only)
        assert done.returncode == 0, done.stdout + done.stderr

    @property
    def made(self) -> Stack:
        return build(settings.load(self.around), self.around)[0]

    def port(self, name: str) -> int:
        return settings.load(self.around).ports[name]


@pytest.fixture
def small(request: pytest.FixtureRequest) -> Iterator[Small]:
    state = HOME / f"test-{sha256(request.node.name.encode()).hexdigest()[:8]}"
    stack = Small(state)
    trial.remove(state, around=stack.around)
    yield stack
    trial.remove(state, around=stack.around)


@pytest.fixture(scope="module")
def s3_only() -> Iterator[Small]:
    stack = Small(HOME / "test-s3")
    trial.remove(stack.state, around=stack.around)
    stack.up("s3")
    yield stack
    trial.remove(stack.state, around=stack.around)


def await_that(condition: Callable[[], bool], *, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.1)


def produce(small: Small, value: bytes) -> None:
    kafka = {"bootstrap.servers": f"127.0.0.1:{small.port('kafka')}"}
    admin = AdminClient(kafka)
    admin.create_topics([NewTopic("kept", 1)])["kept"].result(20)
    producer = Producer(kafka | {"acks": "all"})
    producer.produce("kept", value)
    assert producer.flush(20) == 0


def consume(small: Small) -> bytes | None:
    kafka = {"bootstrap.servers": f"127.0.0.1:{small.port('kafka')}", "group.id": "test"}
    consumer = Consumer(kafka)
    try:
        consumer.assign([TopicPartition("kept", 0, 0)])
        message = consumer.poll(20)
        return message.value() if message is not None else None
    finally:
        consumer.close()


def database(small: Small, team: str = "finance") -> str:
    return terminal.parse((small.state / "stack.env").read_text())[f"HEADRACE_READER_{team.upper()}"]


def owner_url(small: Small) -> str:
    passwords = small.made.passwords
    return f"postgresql://headrace_finance:{passwords.finance}@127.0.0.1:{small.port('postgres')}/finance"


def test_nothing_is_left_running_after_down_and_nothing_is_lost_after_the_next_up(small: Small) -> None:
    small.up("kafka,s3,postgres")
    produce(small, b"a record")
    s3.client(small.made).put_object(Bucket=BUCKET, Key="an/object", Body=b"its bytes")
    with psycopg.connect(owner_url(small)) as connection:
        connection.execute("CREATE TABLE kept (word text)")
        connection.execute("INSERT INTO kept VALUES ('a row')")
    assert processes.marked(small.state)

    assert small.run("down").returncode == 0
    assert processes.marked(small.state) == []
    assert all(processes.port_is_free(small.port(name)) for name in ("kafka", "s3", "postgres"))

    small.up("kafka,s3,postgres")
    assert consume(small) == b"a record"
    assert s3.client(small.made).get_object(Bucket=BUCKET, Key="an/object")["Body"].read() == b"its bytes"
    with psycopg.connect(owner_url(small)) as connection:
        assert connection.execute("SELECT word FROM kept").fetchall() == [("a row",)]


def test_up_again_finds_everything_up(s3_only: Small) -> None:
    again = s3_only.run("up", "--only", "s3")
    assert again.returncode == 0
    assert "was already up" in again.stdout


def test_the_ports_of_the_first_up_are_kept(s3_only: Small) -> None:
    port = s3_only.port("s3")
    without_ports = {key: value for key, value in s3_only.around.items() if not key.endswith("_PORT")}
    assert "was already up" in trial.run("up", "--only", "s3", around=without_ports).stdout
    assert settings.load(without_ports).ports["s3"] == port


def test_a_taken_port_is_one_line_that_names_part_port_and_holder(small: Small) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", small.port("s3")))
        holder.listen()
        refused = small.run("up", "--only", "s3")
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1
    assert f"s3: port {small.port('s3')} is taken by" in refused.stderr
    assert f"pid {os.getpid()}" in refused.stderr
    assert "HEADRACE_S3_PORT=" in refused.stderr
    assert processes.marked(small.state) == []


def test_a_part_that_cannot_start_names_itself_with_the_end_of_its_log(small: Small) -> None:
    small.up("kafka")
    assert small.run("down").returncode == 0
    meta = small.state / "kafka" / "data" / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=1", "node.id=7"))

    refused = small.run("up", "--only", "kafka,s3")
    assert refused.returncode == 1
    assert "kafka did not come up" in refused.stderr
    assert "Stored node id 7 doesn't match" in refused.stderr
    assert "make up" in refused.stderr
    assert processes.marked(small.state) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_up_leaves_nothing_running(small: Small, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "stack", "up", "--only", "kafka,s3"]
    rising = subprocess.Popen(command, cwd=settings.REPOSITORY, env=small.around, stdout=subprocess.PIPE, text=True)
    await_that(lambda: len(processes.marked(small.state)) > 1)
    rising.send_signal(number)
    assert rising.wait(60) == 130
    assert processes.marked(small.state) == []


def test_a_crashed_part_is_started_again(s3_only: Small) -> None:
    before = next(p for p in processes.marked(s3_only.state) if "s3proxy" in " ".join(p.cmdline()))
    before.kill()
    await_that(lambda: any(p.pid != before.pid and p.name() == "java" for p in processes.marked(s3_only.state)))
    await_that(lambda: "was already up" in s3_only.run("up", "--only", "s3").stdout)


def test_after_a_killed_supervisor_the_next_up_starts_afresh(small: Small) -> None:
    small.up("s3")
    supervisor = psutil.Process(int((small.state / "run" / "supervisord.pid").read_text()))
    supervisor.kill()
    await_that(lambda: not supervisor.is_running() or supervisor.status() == psutil.STATUS_ZOMBIE)
    assert processes.marked(small.state)  # the orphan holds the port
    again = small.run("up", "--only", "s3")
    assert again.returncode == 0, again.stderr
    assert "left behind" in again.stdout


def test_a_reader_may_connect_to_its_own_warehouse_and_do_nothing_else(small: Small) -> None:
    small.up("postgres")
    with psycopg.connect(database(small)) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("CREATE TABLE public.mine (word text)")
    with pytest.raises(psycopg.OperationalError, match="permission denied"):
        psycopg.connect(database(small).removesuffix("finance") + "engineering")
    with pytest.raises(psycopg.OperationalError, match="authentication failed"):
        psycopg.connect(f"postgresql://finance_reader:wrong@127.0.0.1:{small.port('postgres')}/finance")


@pytest.mark.skipif(os.getuid() != 0, reason="only root has to run Postgres under another name")
def test_root_can_run_postgres_where_no_other_user_may_enter(small: Small) -> None:
    small.state.mkdir(mode=0o700, parents=True)
    small.up("postgres")
    assert psycopg.connect(database(small)).execute("SELECT 1").fetchone() == (1,)


def test_secrets_are_readable_by_their_owner_only(s3_only: Small) -> None:
    for name in ("passwords.json", "stack.env", "s3/s3proxy.properties"):
        assert (s3_only.state / name).stat().st_mode & 0o077 == 0


def test_status_tells_by_its_exit_code_that_not_all_is_up(s3_only: Small) -> None:
    shown = s3_only.run("status")
    assert shown.returncode == 3
    states = {line.split()[0]: line.split()[1] for line in shown.stdout.splitlines()[1:]}
    assert states["s3"] == "up"
    assert states["kafka"] == "down"
