"""Registration: the one way in which feed files come into the schema registry, and their topics onto the broker."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TypeVar

import psycopg

from headrace import change, layout, lint
from headrace.airflow.authority import Judgement, Offer
from headrace.change import Earlier
from headrace.errors import FeedError, RegistryError
from headrace.fault import Fault
from headrace.feed import ENDINGS, Feed, Read
from headrace.kafka import topic
from headrace.kafka.drift import Drift
from headrace.kafka.topic import Config, Ensured
from headrace.registry import feeds as known
from headrace.registry import origins
from headrace.registry.errors import Code, RegistryFault
from headrace.registry.origins import Heading
from headrace.registry.registered import Registered
from headrace.registry.registration import Asked
from headrace.registry.registry import Registry
from headrace.registry.schema import SchemaText
from headrace.registry.store import Store
from headrace.settings import Settings

T = TypeVar("T")

REGISTRY = "the registry"


@dataclass(frozen=True)
class Registration:
    """What became of one feed: a version that is registered, or every reason why not."""

    feed: str
    subject: str
    topic: str
    version: int | None = None
    id: int | None = None
    is_new: bool = False
    """Whether the version was, or would be, registered just now."""
    reasons: tuple[str, ...] = ()
    """Why it was refused."""
    silence: str = ""
    """Which service gave no answer; then nothing was decided, and trying again may help."""
    drifts: tuple[Drift, ...] = ()
    """Where the broker's topic differs from what is declared."""

    @property
    def is_good(self) -> bool:
        return not (self.reasons or self.silence)


def compare(feeds: Iterable[Feed], *, store: Store) -> list[Registration]:
    """What would become of feeds if they were registered; nothing is changed."""
    with _answering(store):
        return [_compared(feed, Registry(store)) for feed in feeds]


def register(feeds: Iterable[Feed], *, store: Store, kafka: Config) -> list[Registration]:
    """Register feeds, each on its own: one that is refused keeps no other back.

    The topic is there before the version is: who sees the version may publish. Doing so again changes nothing.
    """
    wanted = list(feeds)
    with _answering(store):
        store.prepare()
    judged = {each.feed: each for each in compare(wanted, store=store)}
    good = [feed for feed in wanted if judged[feed.name].is_good]
    topics = _topics(good, kafka=kafka)
    with _answering(store):
        for feed in good:
            ensured = topics.get(feed.name, Ensured(feed.topic))
            judged[feed.name] = _registered(feed, judged[feed.name], ensured, registry=Registry(store))
        _note(store, (judged[feed.name] for feed in good))
    return [judged[feed.name] for feed in wanted]


def brokers(feeds: Sequence[Feed], kafka: Callable[[], Config]) -> Config:
    """Kafka's settings if a feed has a topic: where all read from streams, there need be no Kafka."""
    return {} if all(feed.declaration.kinesis for feed in feeds) else kafka()


def _topics(feeds: Sequence[Feed], *, kafka: Config) -> dict[str, Ensured]:
    """The topics of those feeds that have one: a stream is made by whoever owns it."""
    wanted = [feed for feed in feeds if not feed.declaration.kinesis]
    return topic.ensure_all(kafka, wanted) if wanted else {}


def _compared(feed: Feed, registry: Registry) -> Registration:
    found = Registration(feed.name, feed.subject, feed.topic)
    if same := _same(feed, registry):
        return replace(found, version=same.version, id=same.id)
    faults = [fault for fault in _faults(feed, registry) if fault.severity == "error"]
    return replace(found, is_new=not faults, reasons=tuple(str(replace(fault, file=feed.file)) for fault in faults))


def _same(feed: Feed, registry: Registry) -> Registered | None:
    try:
        return registry.look_up(feed.subject, schema(feed))
    except RegistryFault:
        return None


def _faults(feed: Feed, registry: Registry) -> list[Fault]:
    """Why a feed may not follow what is registered: its schema, its columns, or what it declares."""
    try:
        messages = registry.incompatibilities(feed.subject, schema(feed))
    except RegistryFault as fault:
        return [] if fault.code == Code.SUBJECT_NOT_FOUND else [Fault("", "", fault.message)]
    refused = change.answered_faults(feed, messages, origin=REGISTRY)
    before = _declared(feed.subject, registry)
    return lint.changes(Read(feed, ()), Earlier(REGISTRY, before), refused=refused) if before else refused


def _declared(subject: str, registry: Registry) -> Feed | None:
    """The feed as the registry knows it."""
    with registry.store.reading() as tables, suppress(FeedError):
        for version in tables.declaring(subject):
            return known.feed_of(subject, version.schema)
    return None


def _registered(feed: Feed, judged: Registration, ensured: Ensured, *, registry: Registry) -> Registration:
    if ensured.refusal is not None:
        told = str(ensured.refusal)
        return replace(judged, silence=told) if ensured.refusal.retry else replace(judged, reasons=(told,))
    try:
        registered = registry.register(feed.subject, Asked(schema(feed)))
    except RegistryFault as fault:
        # Somebody else was quicker, or the registry takes nothing at the moment.
        return replace(judged, is_new=False, reasons=(f"{feed.file}: {fault.message}",))
    return replace(judged, version=registered.version, id=registered.id, drifts=tuple(ensured.drifts))


def _note(store: Store, done: Iterable[Registration]) -> None:
    """Remember which versions are the files'. Were we killed before, doing it all again would mend it."""
    origins.note(store, {(each.subject, each.version, each.id) for each in done if each.version and each.id})


def schema(feed: Feed) -> SchemaText:
    """A feed as the registry keeps it; one that is not named like its topic says its name there too."""
    metadata = {"properties": {known.NAME_PROPERTY: feed.name}} if feed.name != feed.topic else None
    return SchemaText(feed.schema_type, json.dumps(feed.schema, ensure_ascii=False), metadata=metadata)


@contextmanager
def _answering(store: Store) -> Iterator[None]:
    try:
        yield
    except psycopg.OperationalError as error:
        where = f"{store.database.host}:{store.database.port}"
        raise RegistryError(f"the registry's database at {where} gives no answer: {error}") from error


@dataclass(frozen=True)
class Registrar:
    """The authority over feeds where there is a registry: it registers versions, or only compares them."""

    store: Store
    kafka: Callable[[], Config]
    registers: bool
    """Whether a version that is taken is registered, and not only compared."""
    opens: bool
    """Whether topics are made, and Variables written."""

    def mark(self) -> str:
        return str(self._asked(self.store.mark))

    def judge(self, feeds: Sequence[Feed]) -> Iterable[Judgement]:
        if self.registers:
            done = register(feeds, store=self.store, kafka=brokers(feeds, self.kafka))
        else:
            done = compare(feeds, store=self.store)
        return [Judgement(each.feed, each.reasons, each.silence) for each in done]

    def headings(self) -> Sequence[Heading]:
        return [each for each in self._asked(self._headings) if known.is_of_values(each.subject)]

    def offers(self, subjects: Sequence[str]) -> Sequence[Offer]:
        with _answering(self.store), self.store.reading() as tables:
            declaring = [version for subject in subjects for version in tables.declaring(subject)]
        offers = map(_offer, declaring)
        return [offer for offer in offers if offer is not None]

    def _headings(self) -> list[Heading]:
        with self.store.reading() as tables:
            return origins.headings(tables)

    def _asked(self, question: Callable[[], T]) -> T:
        """An answer of the store, whose tables nobody may have made yet."""
        with _answering(self.store):
            try:
                return question()
            except psycopg.errors.UndefinedTable:
                self.store.prepare()
                return question()

    def open(self, feeds: Sequence[Feed]) -> Iterable[Judgement]:
        topics = _topics(feeds, kafka=brokers(feeds, self.kafka)) if self.opens else {}
        return [_opened(feed, topics.get(feed.name)) for feed in feeds]

    def tell(self) -> None:
        from headrace.airflow import variables

        if self.opens:
            with _answering(self.store):
                variables.sync(self.store)


def _offer(version: Registered) -> Offer | None:
    """The feed that a version declares; one that is wrong is offered too, for people to see what is wrong with it."""
    topic = name = version.subject.removesuffix(layout.subject(""))
    try:
        feed = known.feed_of(version.subject, version.schema)
    except FeedError:
        pass
    else:
        if feed is None:
            return None
        name = feed.name
    return Offer(name, version.subject, topic, ENDINGS[version.type], version.text)


def _opened(feed: Feed, ensured: Ensured | None) -> Judgement:
    refusal = ensured.refusal if ensured else None
    if refusal is None:
        return Judgement(feed.name)
    return Judgement(feed.name, silence=str(refusal)) if refusal.retry else Judgement(feed.name, (str(refusal),))


def authority(*, registers: bool, opens: bool) -> Registrar:
    """The authority that Airflow's connections lead to."""
    from headrace.airflow import connections

    return Registrar(connections.registry(), connections.kafka, registers, opens)


def schema_id(feed: Feed) -> int:
    """The id of the very schema that the feed's file has."""
    from headrace.airflow import connections

    (found,) = compare([feed], store=connections.registry())
    if found.id is None:
        raise RegistryError(
            f"feed {feed.name}: the registry does not have its schema as {feed.file} has it, so no record can name it. "
            f"Register it: headrace register {Settings().schemas / feed.file}"
        )
    return found.id
