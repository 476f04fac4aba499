"""Errands: work in a process of its own, one at a time."""

import gc
import signal
import time
from pathlib import Path

import pytest

from headrace.airflow import errand
from headrace.airflow.errand import Messenger
from headrace.errors import RegistryError


def test_an_errand_does_its_work_elsewhere_and_comes_back(tmp_path: Path) -> None:
    messenger = Messenger()
    messenger.send((tmp_path / "done").touch, patience=60)
    assert (tmp_path / "done").exists()
    assert messenger.is_free()
    assert not messenger.has_failed


def test_nobody_waits_for_an_errand_longer_than_they_said() -> None:
    messenger = Messenger()
    began = time.monotonic()
    messenger.send(signal.pause, patience=0.1)
    assert time.monotonic() - began < 5
    assert not messenger.is_free()
    messenger._errand.kill()


def test_after_an_errand_that_failed_there_is_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RegistryError("no answer")

    messenger = Messenger()
    messenger.send(fail, patience=60)
    assert not messenger.is_free()
    assert messenger.has_failed
    monkeypatch.setattr(errand, "REST_S", 0.0)
    messenger.rest()
    assert messenger.is_free()


def test_an_errand_that_hangs_is_called_off(monkeypatch: pytest.MonkeyPatch) -> None:
    messenger = Messenger()
    messenger.send(signal.pause)
    monkeypatch.setattr(errand, "LONGEST_S", 0.0)
    monkeypatch.setattr(errand, "REST_S", 0.0)
    assert messenger.is_free()
    assert messenger.has_failed


def test_an_errand_does_not_collect_what_its_parent_left(tmp_path: Path) -> None:
    class Client:
        """As Kafka's are: in a cycle, with a finalizer that means threads which only the parent has."""

        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            (tmp_path / "finalized").touch()

    gc.disable()
    try:
        Client()
        Messenger().send(gc.collect, patience=60)
        assert not (tmp_path / "finalized").exists()
        gc.collect()
        assert (tmp_path / "finalized").exists()
    finally:
        gc.enable()
