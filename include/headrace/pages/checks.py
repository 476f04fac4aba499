"""The pages about checks: a feed's history as a matrix of expectations by runs, and one run in plain words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from headrace import layout
from headrace.outcome import Expectation, Outcome
from headrace.pages import environment
from headrace.results import Result

SHOWN = 40
"""How many runs a history shows."""

State = Literal["met", "failed", "warned", "approved", "untested", "absent"]
STATES: Mapping[State, tuple[str, str]] = {
    "met": ("✓", "met"),
    "failed": ("✗", "failed: the run stopped"),
    "warned": ("!", "failed: a warning"),
    "approved": ("✗", "failed, and published all the same"),
    "untested": ("?", "could not be tested"),
    "absent": ("", "not asked in this run"),
}
"""What a cell shows, and says; never by its colour alone."""


@dataclass(frozen=True)
class Cell:
    """How one expectation came out in one run."""

    state: State
    title: str

    @property
    def sign(self) -> str:
        return STATES[self.state][0]


@dataclass(frozen=True)
class Line:
    """One expectation through all runs."""

    expectation: Expectation
    cells: tuple[Cell, ...]

    @property
    def has_failed(self) -> bool:
        return any(cell.state not in ("met", "absent") for cell in self.cells)


@dataclass(frozen=True)
class Bar:
    """Failed rows of one run, as part of a picture."""

    x: float
    y: float
    height: float
    title: str
    name: str


def state(outcome: Outcome, result: Result) -> State:
    if outcome.success:
        return "met"
    if outcome.error is not None:
        return "untested"
    if outcome.expectation.severity != "stop":
        return "warned"
    return "approved" if result.approval else "failed"


def history(feed: str, results: Sequence[Result], *, base_url: str) -> str:
    """A feed's page; `results` come with the newest first."""
    lines = _lines(results)
    # What the schema implies seldom fails, and is much: it is shown when it did, or when somebody asks.
    shown = [line for line in lines if line.has_failed or line.expectation.origin == "checks"]
    return _rendered(
        "history.html",
        feed=feed,
        runs=results,
        lines=shown,
        quiet=[line for line in lines if line not in shown],
        bars=_bars(results),
        latest=results[0] if results else None,
        outcomes=_ordered(results[0]) if results else [],
        base_url=base_url,
    )


def single(result: Result, *, base_url: str) -> str:
    """The page of one run."""
    return _rendered(
        "result.html", feed=result.feed, latest=result, outcomes=_ordered(result), base_url=base_url, runs=[]
    )


def _rendered(template: str, **values: object) -> str:
    shared = {"state": state, "states": STATES, "verdict": verdict, "page": layout.checks_page}
    return environment().get_template(template).render(**shared, **values)


def verdict(result: Result) -> tuple[State, str]:
    """What became of the run's rows, as far as its checks decide."""
    count = len(result.outcomes)
    if result.stopped:
        told = f"{len(result.stopped)} of {count} checks failed"
        if result.approval:
            return "approved", f"{told}; approved by {result.approval.by}"
        return "failed", f"{told}; nothing was published"
    if result.failed:
        return "warned", f"{count - len(result.failed)} of {count} checks met, {len(result.failed)} warned"
    return "met", f"all {count} checks met"


def _ordered(result: Result) -> list[Outcome]:
    """What failed first, then what was declared, then what the schema implies."""
    return sorted(result.outcomes, key=lambda each: (each.success, each.expectation.origin))


def _lines(runs: Sequence[Result]) -> list[Line]:
    """Every expectation that any of the runs was asked; those that failed lately first."""
    asked = {_identity(each.expectation): each.expectation for run in runs for each in run.outcomes}
    by_run = [{_identity(each.expectation): each for each in run.outcomes} for run in runs]
    lines = [
        Line(expectation, tuple(_cell(found.get(identity), run) for found, run in zip(by_run, runs, strict=True)))
        for identity, expectation in asked.items()
    ]
    return sorted(lines, key=lambda line: (not line.has_failed, line.expectation.origin))


def _identity(expectation: Expectation) -> tuple[str, str]:
    return expectation.name, str(expectation)


def _cell(outcome: Outcome | None, run: Result) -> Cell:
    found: State = state(outcome, run) if outcome else "absent"
    detail = f" ({outcome.unexpected} of {outcome.rows} rows)" if outcome and outcome.unexpected else ""
    return Cell(found, f"{moment(run)}: {STATES[found][1]}{detail}")


def moment(run: Result) -> str:
    return f"{run.at:%Y-%m-%d %H:%M} UTC"


def _bars(runs: Sequence[Result], *, width: float = 20, height: float = 56) -> list[Bar]:
    """The rows that broke a check, run by run; the highest bar is the worst run."""
    counts = [sum(outcome.unexpected or 0 for outcome in run.failed) for run in runs]
    most = max(counts, default=0) or 1
    bars = []
    for number, (run, count) in enumerate(zip(runs, counts, strict=True)):
        tall = max(height * count / most, 3 if count else 1)
        bars.append(Bar(number * width, height - tall, tall, f"{moment(run)}: {count:,} failed rows", run.name))
    return bars
