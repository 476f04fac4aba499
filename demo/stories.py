"""What can happen to a key, told as short stories: the generator's hazards, each by name.

A story is told once per key. Its steps come in this order in the topic, with other keys' steps in between; a step
under `later` comes in the next round, so that every round goes back to keys of the one before.
"""

from dataclasses import dataclass

from demo.damage import damages
from demo.feed import Feed


@dataclass(frozen=True)
class Send:
    """A version. The same step told twice gives the same bytes: that is a redelivery.

    `other` is another content under the same revision, `spelling` another text of the same content (JSON only).
    """

    revision: int = 1
    other: int = 0
    spelling: int = 0


@dataclass(frozen=True)
class Delete:
    """A tombstone."""


@dataclass(frozen=True)
class DeleteNobody:
    """A tombstone without a Kafka key: it deletes nobody."""


@dataclass(frozen=True)
class Damage:
    """A record that must end in quarantine."""

    kind: str


Step = Send | Delete | DeleteNobody | Damage


@dataclass(frozen=True)
class Story:
    """Steps of this round and of the next, and how often the story is told: `weight` parts of the sum."""

    name: str
    weight: int
    now: tuple[Step, ...]
    later: tuple[Step, ...] = ()


LATEST = (
    Story("one version", 500, now=(Send(1),)),
    Story("updated at once", 120, now=(Send(1), Send(2))),
    Story("updated later", 100, now=(Send(1),), later=(Send(2), Send(3))),
    Story("exact duplicate", 40, now=(Send(1), Send(1))),
    Story("older version redelivered later", 20, now=(Send(1), Send(2)), later=(Send(1),)),
    Story("out of order", 40, now=(Send(1), Send(3), Send(2))),
    Story("late older version", 30, now=(Send(1), Send(3)), later=(Send(2),)),
    Story("same revision, other content", 20, now=(Send(1), Send(1, other=1))),
    Story("same revision, other content later", 20, now=(Send(2),), later=(Send(2, other=1), Send(1))),
    Story("same revision, the first content again", 10, now=(Send(1), Send(1, other=1), Send(1))),
)

DELETES = (
    Story("deleted", 40, now=(Send(1), Delete())),
    Story("deleted later", 30, now=(Send(1), Send(2)), later=(Delete(),)),
    Story("deleted twice", 10, now=(Send(1), Delete(), Delete())),
    Story("late older version after delete", 20, now=(Send(1), Send(3), Delete(), Send(2))),
    Story("late older version a round after delete", 20, now=(Send(3), Delete()), later=(Send(2),)),
    Story("revived by a newer revision", 20, now=(Send(1), Delete(), Send(2))),
    Story("revived a round later", 20, now=(Send(1), Delete()), later=(Send(2),)),
    Story("deleted, revived, deleted", 10, now=(Send(1), Delete(), Send(2)), later=(Delete(), Send(1))),
    Story("redelivered after delete", 10, now=(Send(1), Delete(), Send(1))),
    Story("redelivered a round after delete", 10, now=(Send(2), Delete()), later=(Send(2),)),
    Story("older version redelivered after delete", 10, now=(Send(1), Send(2), Delete(), Send(1))),
    Story("deleted but never seen", 10, now=(Delete(),)),
    Story("deleted before it was seen", 10, now=(Delete(), Send(1))),
    Story("deleted a round before it was seen", 10, now=(Delete(),), later=(Send(1),)),
    Story("tombstone without key", 5, now=(Send(1), DeleteNobody())),
)

APPEND = (
    Story("one version", 9_000, now=(Send(),)),
    Story("redelivered", 300, now=(Send(), Send())),
    Story("redelivered later", 200, now=(Send(),), later=(Send(),)),
    Story("redelivered in other words", 100, now=(Send(), Send(spelling=1), Send(spelling=2))),
    Story("redelivered in other words later", 100, now=(Send(spelling=2),), later=(Send(), Send(spelling=1))),
    Story("conflict", 10, now=(Send(), Send(other=1))),
    Story("conflict later", 10, now=(Send(other=1),), later=(Send(), Send(other=1, spelling=1))),
    Story("conflict redelivered", 10, now=(Send(), Send(other=1), Send(other=1), Send())),
)


def stories(feed: Feed) -> tuple[Story, ...]:
    """All that can happen to a key of this feed."""
    told = LATEST if feed.merge == "latest" else APPEND
    # Deletes are told for one feed only, so that a reader finds them in one place.
    deletes = DELETES if feed.example == "customers" else ()
    return told + deletes + _damaged(feed)


def _damaged(feed: Feed) -> tuple[Story, ...]:
    kinds = damages(feed)
    alone = tuple(Story(f"damaged: {kind}", 1, now=(Damage(kind),)) for kind in kinds)
    between = tuple(Story(f"damaged update: {kind}", 1, now=(Send(1), Damage(kind))) for kind in kinds)
    before = tuple(Story(f"damaged, then sent: {kind}", 1, now=(Damage(kind),), later=(Send(1),)) for kind in kinds)
    return alone + between + before
