"""The intake: feed files, and feeds that the registry offers, into the folder of stubs; work only for what changed."""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from headrace import feed as feeds
from headrace import layout
from headrace.airflow import journal as journals
from headrace.airflow.authority import Authority, Judgement, Offer
from headrace.airflow.journal import Entry, Journal, Known, Verdict, claim
from headrace.airflow.plan import Plan, Seen, plan, scan
from headrace.airflow.stubs import Stubs, fault_stub, feed_stub
from headrace.errors import FeedError, MovedError
from headrace.fault import Fault
from headrace.feed import Feed
from headrace.registry.origins import Heading

log = logging.getLogger(__name__)

PATIENCE_S = 300.0
"""How long catching up may take."""

BATCH = 50
"""How many files are judged at a time: one that changes meanwhile waits for no more than these."""


@dataclass(frozen=True)
class Intake:
    """From a folder of feed files into a folder of stubs."""

    schemas: Path
    stubs: Stubs
    clock: Callable[[], float] = time.time

    @property
    def _file(self) -> Path:
        return self.stubs.folder / "journal.json"

    def journal(self) -> Journal:
        return journals.read(self._file)

    def plan(self, journal: Journal, authority: Authority, *, mark: str | None) -> Plan:
        """What changed since the journal was written."""
        return plan(
            scan(self.schemas),
            journal,
            stubs=self.stubs.names(),
            mark=mark,
            authority=authority,
            now=self.clock(),
        )

    def take_in(self, authority: Authority, *, mark: str | None) -> bool:
        """One round of bringing the stubs up to date; False when another process of this host is at it.

        Whoever is killed whenever: what was not done is in the next plan. A mark of None says that the registry gives
        no answer: feeds then stay as they are.
        """
        self.stubs.prepare()
        with self.stubs.lock() as is_ours:
            if is_ours:
                journal = self.journal()
                todo = self.plan(journal, authority, mark=mark)
                done = _Round(self, authority, mark).carry_out(todo, journal)
                journals.write(self._file, done)
                if done.whole:
                    self.stubs.sweep(done.feeds.keys())
        return is_ours

    def catch_up(self, authority: Authority, *, mark: str | None) -> Journal:
        """Bring the stubs up to date, however many rounds it takes, waiting for another process that is at it."""
        deadline, has_followed = time.monotonic() + PATIENCE_S, False
        while todo := self.plan(journal := self.journal(), authority, mark=mark):
            # Offers that are too recent to be told from files would be due for seconds.
            if has_followed and not (todo.judge or todo.gone or todo.orphans):
                break
            if time.monotonic() > deadline:
                raise MovedError(f"{self.stubs.folder}: not caught up after {PATIENCE_S:.0f} s. Try again.")
            if self.take_in(authority, mark=mark):
                has_followed = True
            else:
                time.sleep(0.05)
        return journal


@dataclass
class _Round:
    """One round of judging; what it finds goes into the stubs at once, and into the journal at its end."""

    intake: Intake
    authority: Authority
    mark: str | None

    def carry_out(self, todo: Plan, journal: Journal) -> Journal:
        seen = scan(self.intake.schemas)
        for name in todo.gone:
            journal = journal if name in seen else journal.without(name)
        batch = {name: seen[name] for name in todo.judge[:BATCH] if name in seen}
        for name, entry in self._judge(batch, claims=journal.claims()):
            # A feed that goes on with its last good version keeps that one's topic.
            known = journal.feeds.get(name)
            if entry.verdict == "waiting" and not (known and known.reason == entry.reason):
                log.warning("feed %s stays as it is: %s", name, entry.reason)
            journal = journal.told(name, replace(entry, topic=entry.topic or (known.topic if known else "")))
        if self.mark is not None and (todo.offers or todo.gone):
            journal = self._follow(journal, files=seen.keys())
        is_whole = journal.mark is not None and seen.keys() <= journal.feeds.keys()
        return replace(journal, whole=journal.whole or is_whole)

    def _judge(self, seen: Mapping[str, Seen], *, claims: dict[str, str]) -> Iterator[tuple[str, Entry]]:
        """Judge files: what is wrong in itself first, then the rest beside each other and what is registered."""
        sound: dict[str, _Version] = {}
        for name, file in seen.items():
            try:
                version = self._read(name, file)
            except FeedError as error:
                # What the file says of its topic cannot be told.
                entry = self._entry(file.signature, "faulty")
                yield name, self._refuse(name, str(error), entry, subject=layout.subject(name))
                continue
            except FileNotFoundError:
                continue  # deleted since it was seen: the next plan tells
            if (owner := claims.setdefault(claim(version.feed.topic), name)) == name:
                sound[name] = version
            else:
                # Not for good: the other one's file may go, or take another topic.
                entry = self._entry(file.signature, "waiting")
                yield name, self._refuse(name, str(_clash(version, owner)), entry, subject=version.feed.subject)
        for judgement in self._judgements([version.feed for version in sound.values()]):
            version = sound[judgement.feed]
            topic = "" if judgement.reasons else version.feed.topic
            yield judgement.feed, replace(self._settle(judgement, version), topic=topic)

    def _judgements(self, candidates: Sequence[Feed]) -> Iterable[Judgement]:
        if self.mark is None:
            return [Judgement(feed.name, silence="the registry gives no answer") for feed in candidates]
        return self.authority.judge(candidates) if candidates else ()

    def _read(self, name: str, seen: Seen) -> "_Version":
        if len(seen.files) > 1:
            raise FeedError(f"{' and '.join(seen.files)} both name the feed {name!r}. Remove or rename one of them.")
        path = self.intake.schemas / seen.files[0]
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise FeedError.of(feeds.read_file(path).faults) from error
        return _Version(sound(path.name, text), path.suffix, text, seen.signature)

    def _settle(self, judgement: Judgement, version: "_Version") -> Entry:
        """Make a judgement come true in the folder."""
        name = judgement.feed
        if judgement.silence:
            return replace(self._entry(version.signature, "waiting"), reason=judgement.silence)
        if judgement.reasons:
            entry = self._entry(version.signature, "refused")
            return self._refuse(name, "\n".join(judgement.reasons), entry, subject=version.feed.subject)
        self.intake.stubs.accept(name, suffix=version.suffix, text=version.text)
        return self._entry(version.signature, "accepted")

    def _refuse(self, name: str, reason: str, entry: Entry, *, subject: str) -> Entry:
        """Show the fault; a feed without a last good version here goes on with the registry's, if that has one."""
        if self.intake.stubs.accepted(name) is None and self.mark is not None:
            for offer in self.authority.offers([subject]):
                with suppress(FeedError):
                    if sound(name + offer.suffix, offer.text) and offer.name == name:
                        self.intake.stubs.accept(name, suffix=offer.suffix, text=offer.text)
        self.intake.stubs.blame(name, reason)
        return replace(entry, reason=reason)

    def _follow(self, journal: Journal, *, files: Collection[str]) -> Journal:
        """Take in the feeds that only the registry declares; drop those that it no longer does."""
        headings = {each.subject: each for each in self.authority.headings() if not each.from_file}
        journal, read = self._read_up(journal, headings)
        claims = journal.claims()
        offered = {
            known.feed: subject
            for subject, known in journal.subjects.items()
            if known.feed and known.feed not in files and claim(known.topic) not in claims
        }
        for name, entry in journal.feeds.items():
            if entry.offered and name not in offered and name not in files:
                journal = journal.without(name)
        unsettled = {name: subject for name, subject in offered.items() if not self._is_settled(name, subject, journal)}
        missing = [subject for subject in unsettled.values() if subject not in read]
        read |= {offer.subject: offer for offer in (self.authority.offers(missing) if missing else ())}
        offers = [read[subject] for subject in unsettled.values() if subject in read]
        for name, entry in self._judge_offers(offers, journal):
            journal = journal.told(name, entry)
        # What is too recent to be told apart is looked at again.
        return replace(journal, mark="" if any(each.is_recent for each in headings.values()) else self.mark)

    def _read_up(self, journal: Journal, headings: Mapping[str, Heading]) -> tuple[Journal, dict[str, Offer]]:
        """Read the versions that nobody has read yet; a subject whose next one is too recent stays what it was."""
        kept = {
            subject: known
            for subject, known in journal.subjects.items()
            if subject in headings and (headings[subject].is_recent or headings[subject].id == known.id)
        }
        unread = [subject for subject, each in headings.items() if subject not in kept and not each.is_recent]
        read = {offer.subject: offer for offer in (self.authority.offers(unread) if unread else ())}
        for subject in unread:
            offer, id_ = read.get(subject), headings[subject].id
            kept[subject] = Known(id_, offer.name, offer.topic) if offer else Known(id_)
        return replace(journal, subjects=kept), read

    def _judge_offers(self, offers: Iterable[Offer], journal: Journal) -> Iterator[tuple[str, Entry]]:
        fresh: dict[str, _Version] = {}
        for offer in offers:
            name, signature = offer.name, _signature(journal.subjects[offer.subject])
            try:
                feed = sound(name + offer.suffix, offer.text)
            except FeedError as error:
                entry = self._entry(signature, "faulty")
                yield name, self._offered(self._refuse(name, str(error), entry, subject=offer.subject))
            else:
                fresh[name] = _Version(feed, offer.suffix, offer.text, signature)
        for judgement in self.authority.open([version.feed for version in fresh.values()]) if fresh else ():
            yield judgement.feed, self._offered(self._settle(judgement, fresh[judgement.feed]))

    def _offered(self, entry: Entry) -> Entry:
        return replace(entry, offered=True, registered=entry.verdict == "accepted" and self.authority.opens)

    def _is_settled(self, name: str, subject: str, journal: Journal) -> bool:
        entry = journal.feeds.get(name)
        if entry is None or entry.signature != _signature(journal.subjects[subject]):
            return False
        if entry.verdict == "faulty":
            return (self.intake.stubs.path / fault_stub(name)).exists()
        is_open = entry.registered or not self.authority.opens
        return entry.verdict == "accepted" and is_open and (self.intake.stubs.path / feed_stub(name)).exists()

    def _entry(self, signature: str, verdict: Verdict) -> Entry:
        registered = verdict == "accepted" and self.authority.registers
        return Entry(signature, verdict, mark=self.mark or "", at=self.intake.clock(), registered=registered)


def sound(file: str, text: str) -> Feed:
    """A feed that lint finds no error in."""
    from headrace import lint  # not before it is needed: tasks import this module, and lint a good deal

    read = feeds.read(file, text)
    faults = [replace(fault, file=file) for fault in lint.check(read) if fault.severity == "error"]
    if faults or read.feed is None:
        raise FeedError.of(faults)
    return read.feed


def _signature(known: Known) -> str:
    return f"id {known.id}"


def _clash(version: "_Version", owner: str) -> Fault:
    feed = version.feed
    message = f'is "{feed.topic}", which is also the topic of the feed {owner}.'
    fix = "Give each feed a topic of its own."
    return Fault(feed.name + version.suffix, f"{feed.attribute}.{feed.source}", message, fix, value=feed.topic)


@dataclass(frozen=True)
class _Version:
    """One version of a feed: what it says, and where that comes from."""

    feed: Feed
    suffix: str
    text: str
    signature: str
