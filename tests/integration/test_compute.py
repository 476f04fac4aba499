"""A team's own job: its rows become a feed's records, only differences are published, and nothing is done twice."""

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.logger import PySparkLogger
from workshop import Record, Workshop

from headrace.errors import JobError
from headrace.stages.compute import Computed
from spark_jobs.failure import LOGGERS

Make = Callable[..., Workshop]

FIELDS = [
    {"name": "id", "type": "string"},
    {"name": "team", "type": "string"},
    {"name": "points", "type": "int"},
    {"name": "email", "type": ["null", "string"], "default": None, "pii": "email"},
]
SUMS = [
    {"name": "team", "type": "string"},
    {"name": "hour", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "points", "type": "long"},
]
SUM = """
from pyspark.sql import functions as F

def {output}({input}):
    hour = F.lit("2026-03-01T12:00:00Z").cast("timestamp")
    return {input}.groupBy("team").agg(F.sum("points").alias("points")).withColumn("hour", hour)
"""


class Bench:
    """A feed, one that a job makes of it, and the folder of jobs."""

    def __init__(self, workshop: Make, folder: Path, *, job: str = SUM, **given: Any) -> None:
        self.source = workshop({"key": ["id"]}, fields=FIELDS)
        declared = {"file": "sums.py", "inputs": {self.source.feed.name: given}}
        self.sums = workshop({"key": ["team", "hour"], "job": declared}, fields=SUMS)
        self.folder = folder
        self.write(job)

    def write(self, job: str) -> None:
        names = {"input": self.source.feed.name, "output": self.sums.feed.name}
        (self.folder / "sums.py").write_text(job.format(**names))

    def score(self, **points: int | None) -> None:
        """Who has how many points by now; None for nobody any more."""
        rows = {
            name: {"id": name, "team": name[0], "points": found, "email": f"{name}@x"} if found is not None else None
            for name, found in points.items()
        }
        self.source.merge(*(Record(row, key=name) for name, row in rows.items()))

    def compute(self) -> Computed | None:
        from headrace.airflow.spark import Spark
        from headrace.stages import compute

        shop = self.sums
        return compute.compute(
            shop.feed,
            lake=shop.lake,
            kafka=shop.kafka,
            jobs=self.folder,
            schema_id=shop.schema_id,
            run=partial(Spark.of(shop.feed, shop.lake).run, "compute"),
        )

    def teams(self) -> dict[str, int]:
        return {row["team"]: row["points"] for row in self.sums.clean()}


def test_only_what_is_other_than_before_is_published_and_what_is_gone_is_deleted(
    workshop: Make, tmp_path: Path
) -> None:
    bench = Bench(workshop, tmp_path)
    assert bench.compute() is None, "its input has nothing yet"
    bench.score(a1=1, a2=2, b1=3, c1=4)
    assert bench.compute() == Computed(rows=3, changed=3, gone=0)
    assert bench.compute() is None, "nothing has changed since"
    bench.sums.run()
    assert bench.teams() == {"a": 3, "b": 3, "c": 4}
    bench.score(a1=5, b1=None)
    assert bench.compute() == Computed(rows=2, changed=1, gone=1)
    bench.sums.run()
    assert bench.teams() == {"a": 7, "c": 4}
    bench.write(SUM.replace('F.sum("points")', '(2 * F.sum("points"))'))
    assert bench.compute() == Computed(rows=2, changed=2, gone=0), "another job, other rows"
    bench.sums.run()
    assert bench.teams() == {"a": 14, "c": 8}
    bench.write(SUM.replace('F.sum("points")', '(2 * F.sum("points") + F.lit(0.9))'))
    assert bench.compute() == Computed(rows=2, changed=0, gone=0), "the column has no room for a fraction"


def test_what_was_published_and_is_not_merged_yet_is_superseded_too(workshop: Make, tmp_path: Path) -> None:
    bench = Bench(workshop, tmp_path)
    bench.score(a1=1, b1=1)
    bench.compute()
    bench.sums.run()
    bench.score(a1=2, b1=2, c1=2)
    bench.compute()  # its records wait in the topic, as after a check that stopped the run
    bench.score(a1=1, b1=1, c1=None)
    assert bench.compute() == Computed(rows=2, changed=2, gone=0)
    bench.sums.run()
    assert bench.teams() == {"a": 1, "b": 1}


def test_a_computation_that_died_half_way_is_done_again_and_an_older_one_is_shut_out(
    workshop: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headrace.errors import DeliveryFenced
    from headrace.stages import compute

    bench = Bench(workshop, tmp_path)
    bench.score(a1=1, b1=1)
    published = compute._published

    def meanwhile(*given: Any, **more: Any) -> Any:
        """Another one starts, and ends, before the first has published anything."""
        monkeypatch.setattr(compute, "_published", published)
        bench.score(a1=9)
        assert bench.compute() == Computed(rows=2, changed=2, gone=0)
        return published(*given, **more)

    monkeypatch.setattr(compute, "_published", meanwhile)
    with pytest.raises(DeliveryFenced):
        bench.compute()
    bench.sums.run()
    assert bench.teams() == {"a": 9, "b": 1}
    assert bench.compute() is None


def test_what_another_published_before_it_was_shut_out_is_not_taken_back(
    workshop: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headrace.kafka import limits

    bench = Bench(workshop, tmp_path)
    bench.score(a1=1, b1=1)
    asked = limits.limits

    def meanwhile(*given: Any) -> Any:
        """Another one starts, and ends, while this one has not shut it out yet."""
        monkeypatch.setattr(limits, "limits", asked)
        bench.score(a1=9)
        assert bench.compute() == Computed(rows=2, changed=2, gone=0)
        return asked(*given)

    monkeypatch.setattr(limits, "limits", meanwhile)
    assert bench.compute() is None, "it sees the inputs that the other saw, and that they were published"
    bench.sums.run()
    assert bench.teams() == {"a": 9, "b": 1}


def test_a_job_sees_personal_columns_only_where_its_feed_keeps_them(workshop: Make, tmp_path: Path) -> None:
    told = "def {output}({input}):\n    raise ValueError(','.join({input}.columns))\n"
    for keep, columns in (([], "id,team,points"), (["email"], "id,team,points,email")):
        folder = tmp_path / columns
        folder.mkdir()
        bench = Bench(workshop, folder, job=told, keep=keep)
        bench.score(a1=1)
        with pytest.raises(ValueError, match=f"^{columns}$"):
            bench.compute()


FAULTS = {
    "def other():\n    pass\n": r"sums\.py: it has no function t_\w+.* Define t_\w+\(t_\w+: DataFrame\)",
    "def {output}(orders):\n    pass\n": r"takes orders, but its feed names the inputs t_\w+",
    SUM.replace('alias("points")', 'alias("point")'): r"lack points and have point .*Did you mean \"point\"\?",
    SUM.replace('"team"', '"id", "team"').replace("return ", "return (").replace("hour)", 'hour)).drop("id")'): (
        r"2 rows have only 1 different keys \(team, hour\)"
    ),
    SUM.replace('F.sum("points")', 'F.sum("nothing")'): "nothing",
    SUM.replace('F.sum("points")', 'F.first("id")'): r"Spark gave up: \w+ CAST_INVALID_INPUT$",
    SUM.replace('F.sum("points")', "F.lit(None)"): r"points: null where the schema has none \(1 rows\)",
}  # fmt: skip


def test_a_job_that_does_not_fit_its_feed_is_told_what_to_mend(
    workshop: Make,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(workshop, tmp_path)
    bench.score(a1=1, a2=2)
    for name in LOGGERS:  # as in a task's process, where no other job has run
        monkeypatch.setattr(PySparkLogger.getLogger(name), "disabled", False)
        monkeypatch.setattr(PySparkLogger.getLogger(name), "handlers", [logging.StreamHandler()])
    for job, told in FAULTS.items():
        bench.write(job)
        with pytest.raises(JobError, match=told):
            bench.compute()
    assert "CAST_INVALID_INPUT" not in "".join(capfd.readouterr()), "PySpark's own line quotes the value"
    (tmp_path / "sums.py").unlink()
    with pytest.raises(JobError, match=r"sums\.py is not in the folder of jobs"):
        bench.compute()
