"""The authority: who decides whether a feed's version may be taken, and which feeds there are besides the files'."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from headrace.feed import Feed
from headrace.registry.origins import Heading


@dataclass(frozen=True)
class Judgement:
    """What became of one feed's version: nothing against it, reasons to refuse it, or a service that is silent."""

    feed: str
    reasons: tuple[str, ...] = ()
    silence: str = ""


@dataclass(frozen=True)
class Offer:
    """A feed as the latest version of a registered subject declares it."""

    name: str
    subject: str
    topic: str
    suffix: str
    text: str


class Authority(Protocol):
    """Each call raises an error whose `retry` is set when nobody can tell at the moment."""

    @property
    def registers(self) -> bool:
        """Whether a version that is taken is registered too, and not only compared."""

    @property
    def opens(self) -> bool:
        """Whether feeds that are registered already get what they need."""

    def mark(self) -> str:
        """Changes whenever anything that is registered does."""

    def judge(self, feeds: Sequence[Feed]) -> Iterable[Judgement]:
        """Judge versions, each on its own."""

    def headings(self) -> Sequence[Heading]:
        """The last version of every subject that may declare a feed, without its schema."""

    def offers(self, subjects: Sequence[str]) -> Sequence[Offer]:
        """The feeds that the last versions of these subjects declare."""

    def open(self, feeds: Sequence[Feed]) -> Iterable[Judgement]:
        """Make what feeds need that are registered already: their topics."""

    def tell(self) -> None:
        """Make known what is registered."""


class Alone:
    """The authority where there is no registry to ask: a version that is right in itself is taken."""

    registers = True
    opens = True

    def mark(self) -> str:
        return "none"

    def judge(self, feeds: Sequence[Feed]) -> Iterable[Judgement]:
        return [Judgement(feed.name) for feed in feeds]

    def headings(self) -> Sequence[Heading]:
        return ()

    def offers(self, subjects: Sequence[str]) -> Sequence[Offer]:  # noqa: ARG002
        return ()

    def open(self, feeds: Sequence[Feed]) -> Iterable[Judgement]:
        return self.judge(feeds)

    def tell(self) -> None:
        """There is nobody to tell."""
