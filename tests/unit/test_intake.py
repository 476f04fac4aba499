"""The intake: what becomes of feed files and offered feeds, whoever is silent, killed or at it at the same time."""

import json
import os
import time
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from headrace.airflow.authority import Alone, Judgement, Offer
from headrace.airflow.intake import BATCH, Intake
from headrace.airflow.plan import WAIT_S, Plan
from headrace.airflow.stubs import Stubs
from headrace.feed import Feed
from headrace.registry.origins import Heading


def avro(name: str = "Order", **declared: Any) -> str:
    fields = [{"name": "id", "type": "string"}]
    return json.dumps({"type": "record", "name": name, "feed": {"key": ["id"], **declared}, "fields": fields})


BAD = avro(key=["idd"])


@dataclass
class Book:
    """A registry's part, played by the test: what it would refuse, what it offers, whether the broker answers."""

    registers: bool = True
    opens: bool = True
    number: int = 1
    refused: dict[str, str] = field(default_factory=dict)
    offered: dict[str, tuple[str, bool]] = field(default_factory=dict)
    """The text of a topic's schema, and whether it came from a file."""
    recent: set[str] = field(default_factory=set)
    silence: str = ""
    asked: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)

    def mark(self) -> str:
        return str(self.number)

    def judge(self, feeds: Sequence[Feed]) -> Iterable[Judgement]:
        for feed in feeds:
            self.asked.append(feed.name)
            reasons = (self.refused[feed.name],) if feed.name in self.refused else ()
            yield Judgement(feed.name, reasons, silence=self.silence)

    def headings(self) -> Sequence[Heading]:
        return [
            Heading(f"{topic}-value", 1, zlib.crc32(text.encode()), from_file, is_recent=topic in self.recent)
            for topic, (text, from_file) in self.offered.items()
        ]

    def offers(self, subjects: Sequence[str]) -> Sequence[Offer]:
        self.read += subjects
        topics = (subject.removesuffix("-value") for subject in subjects)
        texts = {topic: self.offered[topic][0] for topic in topics if topic in self.offered}
        return [Offer(each, f"{each}-value", each, ".avsc", text) for each, text in texts.items() if "feed" in text]

    def open(self, feeds: Sequence[Feed]) -> Iterable[Judgement]:
        return [Judgement(feed.name, silence=self.silence) for feed in feeds]

    def tell(self) -> None:
        pass


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class House:
    """The folders, the clock and the registry of one test."""

    schemas: Path
    stubs: Stubs
    clock: Clock = field(default_factory=Clock)
    book: Book = field(default_factory=Book)

    @property
    def intake(self) -> Intake:
        return Intake(self.schemas, self.stubs, self.clock)

    def file(self, name: str, text: str) -> None:
        (self.schemas / name).write_text(text)

    def plan(self) -> Plan:
        return self.intake.plan(self.intake.journal(), self.book, mark=self.book.mark())

    def refresh(self, *, silent: bool = False) -> frozenset[str]:
        self.intake.take_in(self.book, mark=None if silent else self.book.mark())
        return self.stubs.names()

    def text(self, name: str) -> str:
        copy = self.stubs.accepted(name)
        assert copy is not None
        return copy.read_text()


@pytest.fixture
def house(tmp_path: Path) -> House:
    (tmp_path / "schemas").mkdir()
    return House(tmp_path / "schemas", Stubs(tmp_path / "bundle"))


def test_a_good_file_is_a_feed_and_other_files_are_not(house: House) -> None:
    house.file("orders.avsc", avro())
    house.file("notes.txt", "")
    house.file(".#calls.json", "")
    assert house.refresh() == {"orders_feed.py"}
    assert house.plan() == Plan()


def test_a_bad_file_is_a_fault_of_its_own(house: House) -> None:
    house.file("orders.avsc", avro())
    house.file("broken.avsc", "{")
    assert house.refresh() == {"orders_feed.py", "broken_fault.py"}
    assert not house.plan()


def test_a_feed_goes_on_with_its_last_good_version_until_its_file_is_mended(house: House) -> None:
    house.file("orders.avsc", avro())
    house.refresh()
    house.file("orders.avsc", BAD)
    assert house.refresh() == {"orders_feed.py", "orders_fault.py"}
    assert house.text("orders") == avro()
    assert "idd" in (house.stubs.path / "orders_fault.py").read_text()
    house.file("orders.avsc", avro(owner="shop"))
    assert house.refresh() == {"orders_feed.py"}
    assert house.text("orders") == avro(owner="shop")


def test_a_version_that_the_registry_refuses_is_a_fault_and_the_feed_goes_on(house: House) -> None:
    house.file("orders.avsc", avro())
    house.refresh()
    house.book.refused["orders"] = "orders.avsc: /fields/0: the type changed"
    house.file("orders.avsc", avro(owner="shop"))
    assert house.refresh() == {"orders_feed.py", "orders_fault.py"}
    assert house.text("orders") == avro()
    assert "the type changed" in (house.stubs.path / "orders_fault.py").read_text()


def test_a_refused_version_is_judged_again_when_the_registry_moved_and_not_before(house: House) -> None:
    house.book.refused["orders"] = "no"
    house.file("orders.avsc", avro())
    house.refresh()
    assert not house.plan()
    house.book.refused.clear()
    house.book.number += 1
    assert house.refresh() == {"orders_feed.py"}


def test_a_deleted_file_takes_dag_fault_and_copy_with_it(house: House) -> None:
    house.file("orders.avsc", avro())
    house.refresh()
    house.file("orders.avsc", BAD)
    house.refresh()
    (house.schemas / "orders.avsc").unlink()
    assert house.refresh() == frozenset()
    assert house.stubs.accepted("orders") is None


def test_a_file_that_comes_back_with_an_older_time_is_noticed(house: House) -> None:
    house.file("orders.avsc", avro())
    house.refresh()
    house.file("orders.avsc", avro(owner="shop"))
    os.utime(house.schemas / "orders.avsc", (1, 1))
    house.refresh()
    assert house.text("orders") == avro(owner="shop")


def test_two_files_of_one_name_are_a_fault_that_says_so(house: House) -> None:
    house.file("orders.avsc", avro())
    house.refresh()
    house.file("orders.json", "{}")
    assert house.refresh() == {"orders_feed.py", "orders_fault.py"}
    assert "orders.avsc and orders.json both name" in (house.stubs.path / "orders_fault.py").read_text()


def test_a_file_that_is_no_text_is_a_fault(house: House) -> None:
    (house.schemas / "orders.avsc").write_bytes(b'{"doc": "\xff"}')
    assert house.refresh() == {"orders_fault.py"}


def test_two_feeds_of_one_topic_are_a_fault_of_the_later_one_while_both_are_there(house: House) -> None:
    house.file("orders.avsc", avro(topic={"name": "shop.orders"}))
    house.refresh()
    house.file("sales.avsc", avro(topic={"name": "shop_orders"}))
    assert house.refresh() == {"orders_feed.py", "sales_fault.py"}
    assert "also the topic of the feed orders" in (house.stubs.path / "sales_fault.py").read_text()
    (house.schemas / "orders.avsc").unlink()
    house.clock.now += WAIT_S + 1
    assert house.refresh() == {"sales_feed.py"}


def test_a_subject_whose_topic_a_file_claims_is_no_feed_of_its_own(house: House) -> None:
    house.file("orders.avsc", avro(topic={"name": "shop"}))
    house.book.offered["shop"] = avro(), False
    assert house.refresh() == {"orders_feed.py"}


def test_a_silent_registry_changes_nothing_and_its_return_everything(house: House) -> None:
    house.file("orders.avsc", avro())
    house.refresh()
    house.file("orders.avsc", avro(owner="shop"))
    house.file("calls.avsc", avro())
    assert house.refresh(silent=True) == {"orders_feed.py"}
    assert house.text("orders") == avro()
    house.clock.now += WAIT_S + 1
    assert house.refresh() == {"orders_feed.py", "calls_feed.py"}
    assert house.text("orders") == avro(owner="shop")


def test_a_fault_of_its_own_shows_though_the_registry_is_silent(house: House) -> None:
    house.file("orders.avsc", BAD)
    assert house.refresh(silent=True) == {"orders_fault.py"}


def test_the_folder_is_not_whole_before_the_registry_was_heard(house: House) -> None:
    house.file("orders.avsc", avro())
    house.refresh(silent=True)
    assert not house.intake.journal().whole
    house.clock.now += WAIT_S + 1
    house.refresh()
    assert house.intake.journal().whole


def test_a_silent_broker_is_left_alone_for_a_while(house: House) -> None:
    house.book.silence = "no broker"
    house.file("orders.avsc", avro())
    assert house.refresh() == frozenset()
    assert not house.plan()
    house.clock.now += WAIT_S + 1
    assert house.plan().judge == ("orders",)


def test_a_version_that_was_only_compared_is_registered_later(house: House) -> None:
    house.book.registers = False
    house.file("orders.avsc", avro())
    house.refresh()
    assert not house.plan()
    house.book.registers = True
    assert house.plan().judge == ("orders",)
    house.refresh()
    assert not house.plan()


def test_many_files_are_judged_in_batches_the_newest_first(house: House) -> None:
    for number in range(BATCH + 5):
        house.file(f"feed_{number}.avsc", avro())
        os.utime(house.schemas / f"feed_{number}.avsc", (number, number))
    house.refresh()
    assert house.book.asked[0] == f"feed_{BATCH + 4}"
    assert len(house.stubs.names()) == BATCH
    assert not house.intake.journal().whole
    house.refresh()
    assert len(house.stubs.names()) == BATCH + 5
    assert house.intake.journal().whole


def test_stubs_of_an_older_journal_stay_until_every_feed_was_judged_again(house: House) -> None:
    for number in range(BATCH + 5):
        house.file(f"feed_{number}.avsc", avro())
    house.refresh()
    house.refresh()
    (house.stubs.folder / "journal.json").unlink()
    (house.schemas / "feed_0.avsc").unlink()
    assert len(house.refresh()) == BATCH + 5
    assert len(house.refresh()) == BATCH + 4


def test_what_somebody_removed_from_the_folder_comes_back(house: House) -> None:
    house.file("orders.avsc", avro())
    house.file("broken.avsc", "{")
    house.refresh()
    for stub in house.stubs.names():
        (house.stubs.path / stub).unlink()
    assert house.refresh() == {"orders_feed.py", "broken_fault.py"}


def test_a_stub_of_no_feed_goes(house: House) -> None:
    house.file("orders.avsc", avro())
    house.refresh()
    house.stubs.blame("ghost", "left by somebody who was killed")
    assert house.plan().orphans
    assert house.refresh() == {"orders_feed.py"}


def test_somebody_else_at_work_is_left_to_it(house: House) -> None:
    house.file("orders.avsc", avro())
    house.stubs.prepare()
    with house.stubs.lock():
        assert house.refresh() == frozenset()
    assert house.refresh() == {"orders_feed.py"}


PAYMENTS = {"payments": (avro("Payment"), False)}


def test_a_registered_subject_without_a_file_is_a_feed_until_it_is_deleted(house: House) -> None:
    house.book.offered |= PAYMENTS
    assert house.refresh() == {"payments_feed.py"}
    assert not house.plan()
    house.book.offered.clear()
    house.book.number += 1
    assert house.refresh() == frozenset()


def test_a_version_that_may_yet_be_noted_as_a_files_is_looked_at_again(house: House) -> None:
    house.book.offered |= PAYMENTS
    house.book.recent = {"payments"}
    assert house.refresh() == frozenset()
    assert house.plan().offers
    house.book.recent = set()
    assert house.refresh() == {"payments_feed.py"}
    assert not house.plan()


def test_an_offered_feed_stays_while_its_next_version_is_too_recent(house: House) -> None:
    house.book.offered |= PAYMENTS
    house.refresh()
    house.book.offered["payments"] = avro("Payment", owner="next"), False
    house.book.recent, house.book.number = {"payments"}, 2
    assert house.refresh() == {"payments_feed.py"}
    assert house.text("payments") == avro("Payment")
    house.book.recent = set()
    house.refresh()
    assert house.text("payments") == avro("Payment", owner="next")


def test_nobody_who_catches_up_waits_for_what_is_too_recent(house: House) -> None:
    house.book.offered |= PAYMENTS
    house.book.recent = {"payments"}
    house.file("orders.avsc", avro())
    assert house.intake.catch_up(house.book, mark="1").whole


def test_no_version_is_read_twice(house: House) -> None:
    house.book.offered |= {**PAYMENTS, "plain": ("{}", False)}
    house.file("orders.avsc", avro())
    for _ in range(3):
        house.refresh()
        house.book.number += 1
    assert sorted(house.book.read) == ["payments-value", "plain-value"]
    house.book.offered["payments"] = avro("Payment", owner="next"), False
    house.refresh()
    assert house.text("payments") == avro("Payment", owner="next")


def test_a_silent_registry_takes_no_feed_away(house: House) -> None:
    house.book.offered |= PAYMENTS
    house.refresh()
    house.book.offered.clear()
    assert house.refresh(silent=True) == {"payments_feed.py"}


def test_a_file_wins_over_a_registered_subject_of_the_same_name(house: House) -> None:
    house.book.offered |= PAYMENTS
    house.refresh()
    house.file("payments.avsc", avro(owner="files"))
    house.refresh()
    assert house.text("payments") == avro(owner="files")
    (house.schemas / "payments.avsc").unlink()
    house.refresh()
    assert house.text("payments") == avro("Payment")


def test_a_subject_that_a_file_registered_does_not_outlive_the_file(house: House) -> None:
    house.file("orders.avsc", avro())
    house.book.offered["orders"] = avro(), True
    house.refresh()
    (house.schemas / "orders.avsc").unlink()
    assert house.refresh() == frozenset()


def test_a_feed_that_was_never_good_here_goes_on_with_what_is_registered(house: House) -> None:
    house.book.offered["orders"] = avro(), True
    house.file("orders.avsc", BAD)
    assert house.refresh() == {"orders_feed.py", "orders_fault.py"}
    assert house.text("orders") == avro()


def test_an_offered_feed_that_is_wrong_is_a_fault(house: House) -> None:
    house.book.offered["shop.orders"] = BAD, False
    (stub,) = house.refresh()
    assert stub.startswith("shop_orders_")


def test_an_offered_feed_waits_for_a_silent_broker(house: House) -> None:
    house.book.offered |= PAYMENTS
    house.book.silence = "no broker"
    assert house.refresh() == frozenset()
    assert not house.plan()
    house.clock.now += WAIT_S + 1
    house.book.silence = ""
    assert house.refresh() == {"payments_feed.py"}


def test_the_topic_of_an_offered_feed_that_a_task_saw_first_is_made_later(house: House) -> None:
    house.book.offered |= PAYMENTS
    house.book.opens = False
    assert house.refresh() == {"payments_feed.py"}
    assert not house.plan()
    house.book.opens = True
    assert house.plan().offers
    house.refresh()
    assert not house.plan()


def test_a_folder_that_cannot_be_read_is_no_empty_folder(house: House) -> None:
    house.file("orders.avsc", avro())
    house.refresh()
    house.schemas.rename(house.schemas.with_name("unmounted"))
    with pytest.raises(FileNotFoundError):
        house.refresh()
    assert house.stubs.names() == {"orders_feed.py"}


def test_a_thousand_unchanged_files_cost_a_listing(tmp_path: Path) -> None:
    (tmp_path / "schemas").mkdir()
    for number in range(1000):
        (tmp_path / "schemas" / f"feed_{number}.avsc").write_text(avro())
    intake = Intake(tmp_path / "schemas", Stubs(tmp_path / "bundle"))
    journal = intake.catch_up(Alone(), mark="none")
    assert journal.whole
    began = time.process_time()
    assert not intake.plan(journal, Alone(), mark="none")
    assert time.process_time() - began < 0.15  # of a core, that is; 20 ms on a quiet machine
