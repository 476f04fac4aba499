"""The DAG bundle with a real registry and a real broker: what a DAG processor and a task make of the same folder."""

import json
import shutil
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import RegistryError

SECONDS = 60


def avro(id_type: str = "string") -> str:
    feed = {"key": ["id"], "schedule": "0 0 1 1 *", "topic": {"partitions": 1}}
    return json.dumps({"type": "record", "name": "Row", "feed": feed, "fields": [{"name": "id", "type": id_type}]})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / f"t_{uuid.uuid4().hex[:10]}.avsc"


@pytest.fixture
def bundle(stack: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Makes bundles over one folder of feed files and one folder of stubs, as processes of one host would."""
    from headrace.airflow.bundle import FeedBundle

    made: list[FeedBundle] = []

    def make(*, register: bool = True) -> FeedBundle:
        name = made[0].name if made else f"test_{uuid.uuid4().hex[:8]}"
        made.append(FeedBundle(name=name, schemas=str(tmp_path), register=register))
        return made[-1]

    yield make
    shutil.rmtree(made[0].base_dir)


@pytest.fixture
def store(stack: Any) -> Any:
    from headrace.airflow import connections

    return connections.registry()


@pytest.fixture
def silence(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Has the registry's database answer nobody from now on."""

    def fall_silent() -> None:
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            port = closed.getsockname()[1]
        nowhere = {"conn_type": "postgres", "host": "127.0.0.1", "port": port, "login": "x", "schema": "x"}
        monkeypatch.setenv("AIRFLOW_CONN_HEADRACE_REGISTRY_STORE", json.dumps(nowhere))

    return fall_silent


def until(is_so: Callable[[], Any]) -> None:
    deadline = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def refreshed(bundle: Any, is_so: Callable[[], Any]) -> None:
    """Refresh as the DAG processor does, until its errands have come to something."""
    until(lambda: (bundle.refresh(), is_so())[1])


def names(bundle: Any, file: Path) -> set[str]:
    """The stubs of one feed; the registry may offer others."""
    return {path.name for path in bundle.path.glob(f"{file.stem}_*.py")}


def test_the_dag_processor_registers_a_file_and_makes_its_topic(bundle: Any, store: Any, file: Path) -> None:
    from headrace.airflow import connections
    from headrace.kafka import topic

    processor = bundle()
    processor.initialize()
    file.write_text(avro())
    refreshed(processor, lambda: names(processor, file))
    assert names(processor, file) == {f"{file.stem}_feed.py"}
    assert len(store.writers(f"{file.stem}-value")) == 1
    assert len(topic.describe(connections.kafka(), file.stem).partitions) == 1


def test_an_incompatible_file_is_a_fault_and_is_not_registered(bundle: Any, store: Any, file: Path) -> None:
    processor = bundle()
    processor.initialize()
    file.write_text(avro())
    refreshed(processor, lambda: names(processor, file))
    file.write_text(avro("long"))
    refreshed(processor, lambda: len(names(processor, file)) == 2)
    assert "fields.0.type" in (processor.path / f"{file.stem}_fault.py").read_text()
    assert len(store.writers(f"{file.stem}-value")) == 1


def test_where_registering_is_part_of_deploying_a_file_is_only_compared(bundle: Any, store: Any, file: Path) -> None:
    processor = bundle(register=False)
    processor.initialize()
    file.write_text(avro())
    refreshed(processor, lambda: names(processor, file))
    assert store.writers(f"{file.stem}-value") == {}


def test_a_task_never_registers(bundle: Any, store: Any, file: Path) -> None:
    file.write_text(avro())
    task = bundle()
    task.initialize()
    assert names(task, file) == {f"{file.stem}_feed.py"}
    assert store.writers(f"{file.stem}-value") == {}
    # The DAG processor does, when it comes by.
    refreshed(bundle(), lambda: store.writers(f"{file.stem}-value"))


def test_a_task_beside_a_dag_processor_asks_nobody(bundle: Any, file: Path, silence: Callable[[], None]) -> None:
    file.write_text(avro())
    processor = bundle()
    processor.initialize()
    processor.refresh()
    silence()
    began = time.process_time()
    bundle().initialize()
    assert time.process_time() - began < 0.05


def test_a_silent_registry_leaves_every_feed_as_it_is(bundle: Any, file: Path, silence: Callable[[], None]) -> None:
    file.write_text(avro())
    bundle().initialize()
    silence()
    processor, task = bundle(), bundle()
    file.with_name("t_later.avsc").write_text(avro())
    for _ in range(3):
        processor.refresh()
    (processor.base_dir / "refreshed").unlink()
    task.initialize()
    assert names(processor, file) == {f"{file.stem}_feed.py"}
    assert not list(processor.path.glob("t_later_*.py"))


def test_a_folder_that_was_never_filled_is_not_taken_for_an_empty_one(
    bundle: Any, file: Path, silence: Callable[[], None]
) -> None:
    file.write_text(avro())
    silence()
    processor = bundle()
    processor.intake.stubs.prepare()
    with pytest.raises(RegistryError, match="gives no answer"):
        processor.refresh()
