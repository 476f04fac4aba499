"""The page about reconciliations: how each pair of a feed's stores compared last, and every comparison before."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from headrace import layout
from headrace.pages import environment
from headrace.reckoning import Depth
from headrace.reconciliation import Reconciliation

SHOWN = 2_000
"""How many comparisons are looked at: a day of a busy feed, so that the night's are among them."""
LISTED, BARS, TOLD = 40, 60, 20
"""How many the table lists, a picture draws, and how many keys of a kind stand on the page."""

State = Literal["met", "failed", "absent"]
SIGNS: Mapping[State, tuple[str, str]] = {
    "met": ("✓", "the same"),
    "failed": ("✗", "not the same"),
    "absent": ("–", "not looked at"),
}
"""What a depth shows, and says; never by its colour alone."""
DEPTHS: Mapping[Depth, str] = {
    "count": "rows and different keys",
    "sums": "declared sums, to the last digit",
    "checksum": "a hash of every row",
}
VERDICTS: Mapping[State, str] = {"met": "✓ agree", "failed": "✗ differ", "absent": "– behind"}
NOT_COMPARED = "✗ not compared"
SCOPES = {"changes": "what a run changed", "whole": "everything"}


@dataclass(frozen=True)
class Bar:
    """One comparison, as part of a picture."""

    x: float
    y: float
    height: float
    state: State
    is_whole: bool
    title: str


@dataclass(frozen=True)
class Pair:
    """Two stores: the last comparison of each scope, and all of them as a picture."""

    name: str
    last: tuple[Reconciliation, ...]
    bars: tuple[Bar, ...]

    @property
    def agrees(self) -> bool:
        return all(standing(each) != "failed" for each in self.last)


def history(feed: str, done: Sequence[Reconciliation], *, base_url: str) -> str:
    """A feed's page; what was done comes with the newest first."""
    return (
        environment()
        .get_template("reconcile.html")
        .render(
            feed=feed,
            pairs=pairs(done),
            done=done[:LISTED],
            depths=DEPTHS,
            state=state,
            standing=standing,
            verdict=verdict,
            signs=SIGNS,
            scopes=SCOPES,
            told=TOLD,
            width=BARS * WIDTH,
            height=HEIGHT,
            base_url=base_url,
            checks=layout.checks_page(base_url, feed),
        )
    )


def standing(done: Reconciliation) -> State:
    if done.failed:
        return "failed"
    return "absent" if done.agrees is None else "met" if done.agrees else "failed"


def verdict(done: Reconciliation) -> str:
    return NOT_COMPARED if done.failed else VERDICTS[standing(done)]


def state(done: Reconciliation, depth: Depth) -> State:
    known = done.depths.get(depth)
    return "absent" if known is None else "met" if known else "failed"


def pairs(done: Sequence[Reconciliation]) -> list[Pair]:
    """The pairs in the order in which rows pass them, those that disagree first."""
    by_pair: dict[str, list[Reconciliation]] = {}
    for each in done:
        by_pair.setdefault(each.pair, []).append(each)
    made = [Pair(name, _last(every), _bars(every[:BARS])) for name, every in by_pair.items()]
    return sorted(made, key=lambda pair: (pair.agrees, _place(pair.last[0]), pair.name))


def _place(done: Reconciliation) -> int:
    return layout.LAKE_STORES.index(done.found) if done.found in layout.LAKE_STORES else len(layout.LAKE_STORES)


def _last(every: Sequence[Reconciliation]) -> tuple[Reconciliation, ...]:
    """The newest of each scope, that of everything first."""
    newest = {each.scope: each for each in reversed(every)}
    return tuple(newest[scope] for scope in ("whole", "changes") if scope in newest)


WIDTH, HEIGHT = 11.0, 44.0


def _bars(every: Sequence[Reconciliation]) -> tuple[Bar, ...]:
    """The newest on the right; a bar's height tells the rows, each as much again as ten times fewer."""
    most = max((math.log10(1 + each.found_rows) for each in every), default=0) or 1
    bars = []
    for place, each in enumerate(reversed(every)):
        tall = max(HEIGHT * math.log10(1 + each.found_rows) / most, 3)
        rows = "not compared" if each.failed else f"{each.found_rows:,} rows of {each.expected_rows:,}"
        title = f"{moment(each)}: {SCOPES[each.scope]}, {rows}"
        bars.append(Bar(place * WIDTH, HEIGHT - tall, tall, standing(each), each.scope == "whole", title))
    return tuple(bars)


def moment(done: Reconciliation) -> str:
    return f"{done.at:%Y-%m-%d %H:%M} UTC"
