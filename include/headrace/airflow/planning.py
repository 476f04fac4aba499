"""What a transform is planned from, as Airflow's connections say: the registry's schemas and the signing key."""

from typing import TYPE_CHECKING, Any

from headrace import layout
from headrace.airflow import connections
from headrace.feed import Feed

if TYPE_CHECKING:
    from headrace.lake import Lake
    from headrace.stages.transform import TransformPlan


def transform(feed: Feed, *, lake: "Lake", run: str, **asked: Any) -> "TransformPlan | None":
    """The plan of a run; `asked` is what `stages.transform.plan` takes besides: a window, or everything anew."""
    from headrace.stages import transform

    return transform.plan(feed, lake=lake, run=run, **_known(feed), **asked)


def derivation(feed: Feed, *, lake: "Lake") -> "TransformPlan | None":
    """What the clean table has merged, to be made once more; its columns are those of the feed's newest version."""
    from headrace.stages import transform

    return transform.plan_derivation(feed, lake=lake, **_known(feed))


def _known(feed: Feed) -> dict[str, Any]:
    registry, drains = connections.registry(), feed.declaration.topic.drains
    return {
        "writers": registry.writers(feed.subject),
        "drained": registry.writers(layout.subject(drains.topic)) if drains else {},
        "signing": connections.signing_key(),
    }
