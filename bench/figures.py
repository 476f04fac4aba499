"""Figures of runs that were measured side by side: rates, medians and ratios, and the page that shows them."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bench.table import Mark

MILLION = 1_000_000


@dataclass(frozen=True)
class Steady:
    """What happened between two snapshots, neither of which is the last."""

    records: int
    seconds: float
    cpu: float

    @property
    def rate(self) -> float:
        return self.records / self.seconds


@dataclass(frozen=True)
class Run:
    """One contender's way through one topic."""

    contender: str
    records: int
    seconds: float
    """From the start of its process until the last record could be read."""
    cpu: float
    memory: int
    services: float
    """CPU seconds of Kafka, S3 and Postgres meanwhile."""
    steady: Steady | None = None
    extract: float | None = None
    """Of the seconds, those after Python and Airflow were imported, which a task of Airflow finds done."""

    @property
    def rate(self) -> float:
        return self.records / self.seconds


def between(marks: Sequence[Mark]) -> tuple[Mark, Mark] | None:
    """The first snapshot and the last that came while there was still more to read, else the very last."""
    if len(marks) < 2:
        return None
    return (marks[0], marks[-2]) if len(marks) > 2 else (marks[0], marks[1])


def median(runs: Sequence[Run], figure: Callable[[Run], float | None]) -> float | None:
    """Of the runs that have the figure."""
    known = [value for run in runs if (value := figure(run)) is not None]
    return statistics.median(known) if known else None


def ratio(above: float | None, below: float | None) -> str:
    return f"{above / below:.2f}" if above is not None and below else "–"


def percent(above: float | None, below: float | None) -> str:
    return f"{above / below:.0%}" if above is not None and below else "–"


def thousands(rate: float | None) -> str:
    return f"{rate / 1000:,.0f}k" if rate is not None else "–"


def gigabytes(count: float | None) -> str:
    return f"{count / 2**30:.2f} GB" if count is not None else "–"


def per_million(run: Run) -> float:
    return run.cpu / run.records * MILLION


def steady_rate(run: Run) -> float | None:
    return run.steady.rate if run.steady else None


def decimal(value: float | None) -> str:
    return f"{value:.1f}" if value is not None else "–"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table."""
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return lines + [f"| {' | '.join(row)} |" for row in rows]


def command(name: str, **arguments: Sequence[object] | int) -> str:
    """How a bench was started, so that anybody can do it again."""
    words = (
        f"--{each} {' '.join(map(str, values)) if isinstance(values, Sequence) else values}"
        for each, values in arguments.items()
    )
    return " ".join([f"python -m bench.{name}", *words])


HEAD = (
    "", "records/s to the last one readable", "between snapshots", "seconds", "CPU s per million", "peak memory",
    "Kafka, S3, Postgres: CPU s per million",
)  # fmt: skip


def medians(runs: Mapping[str, Sequence[Run]], names: Mapping[str, str]) -> list[str]:
    """One line for each contender."""
    rows = []
    for contender, its in runs.items():
        rows.append(
            [
                names[contender],
                thousands(median(its, lambda run: run.rate)),
                thousands(median(its, steady_rate)),
                decimal(median(its, lambda run: run.seconds)),
                decimal(median(its, per_million)),
                gigabytes(median(its, lambda run: run.memory)),
                decimal(median(its, lambda run: run.services / run.records * MILLION)),
            ]
        )
    return markdown(HEAD, rows)


def each(runs: Mapping[str, Sequence[Run]], names: Mapping[str, str]) -> list[str]:
    """One line for each run."""
    rows = []
    for contender, its in runs.items():
        for number, run in enumerate(its, start=1):
            steady = "–"
            if run.steady:
                cpu = run.steady.cpu / run.steady.records * MILLION
                steady = f"{thousands(run.steady.rate)} over {run.steady.seconds:.0f} s, {cpu:.1f} CPU s per million"
            seconds = f"{run.seconds:.1f}" + (f", {run.extract:.1f} without Airflow's imports" if run.extract else "")
            rows.append(
                [
                    f"{names[contender]}, {number}",
                    thousands(run.rate),
                    steady,
                    seconds,
                    decimal(per_million(run)),
                    gigabytes(run.memory),
                    decimal(run.services / run.records * MILLION),
                ]
            )
    return markdown(HEAD, rows)


def ratios(by_topic: Mapping[str, Mapping[str, Sequence[Run]]], ours: Mapping[str, str]) -> list[str]:
    """Ours beside the sink and the bare consumer, one column for each topic."""
    rows = []
    for contender, name in ours.items():
        for told, figure in _COMPARED.items():
            cells = [figure(runs[contender], runs) if runs.get(contender) else "–" for runs in by_topic.values()]
            rows.append([f"{name}: {told}", *cells])
    return markdown(["", *by_topic], rows)


Runs = Mapping[str, Sequence[Run]]


def _rate(runs: Sequence[Run]) -> float | None:
    return median(runs, lambda run: run.rate)


_COMPARED: Mapping[str, Callable[[Sequence[Run], Runs], str]] = {
    "speed ÷ the sink's between snapshots": lambda its, runs: ratio(
        _rate(its), median(runs.get("sink", ()), steady_rate)
    ),
    "the same without Airflow's own imports": lambda its, runs: ratio(
        median(its, lambda run: run.records / run.extract if run.extract else None),
        median(runs.get("sink", ()), steady_rate),
    ),
    "speed ÷ the sink's to the last record": lambda its, runs: ratio(_rate(its), _rate(runs.get("sink", ()))),
    "share of the bare Java consumer's speed": lambda its, runs: percent(_rate(its), _rate(runs.get("consumer", ()))),
    "CPU ÷ the sink's": lambda its, runs: ratio(median(its, per_million), median(runs.get("sink", ()), per_million)),
    "peak memory ÷ the sink's": lambda its, runs: ratio(
        median(its, lambda run: run.memory), median(runs.get("sink", ()), lambda run: run.memory)
    ),
}
