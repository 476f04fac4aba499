"""Thirty mixed batches, one in three killed at a random point and run again: the clean table is the oracle's.

The points come from a run that was watched: a stage is drawn, and then one of the calls that leave the process in it.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

import pytest
from judging import assert_adds_up, compare
from mixed_story import DAMAGE, PARTITIONS, VERSIONS, Line, Teller, placed
from nursery import Nursery, Outcome, Point, errand
from whole_run import STAGES, WholeRun
from workshop import Workshop

from headrace import layout
from headrace.clean import ACCOUNTS
from headrace.errors import BranchMoved, SparkFailed
from headrace.lake import ancestors
from headrace.stages import verify

Make = Callable[..., Workshop]

BATCHES = 30
WATCHED = 1
"""The first run makes the tables; the second is one like those to come."""
ORDERED = {"order": ["revision"], "delete": {"field": "left", "one_of": [True]}}
OVERTAKEN = ("an earlier try of this run", "ValidationException", "CommitFailedException")
RULES: Mapping[str, Mapping[str, Any]] = {"latest": ORDERED, "first": ORDERED, "patch": ORDERED, "append": {}}


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    modules = ["whole_run", "headrace.airflow.connections", "spark_jobs.transform", "spark_jobs.check"]
    with Nursery([*modules, "pyspark.sql.connect.session"]) as opened:
        yield opened


class Deaths:
    """When runs are killed, and where: one in three, in every stage as often as in any other, and anywhere in it."""

    def __init__(self, seed: str) -> None:
        self.chance = Random(seed)
        thirds = range(0, BATCHES, 3)
        # None is killed before one was watched.
        self.batches = {third + self.chance.randrange(0 if third else WATCHED + 1, 3) for third in thirds}
        self.stages = self.chance.sample([*STAGES] * 3, len(thirds))
        self.points: Mapping[str, Sequence[Point]] = {}

    def watch(self, outcome: Outcome) -> None:
        """Know the calls of every stage, by name and number."""
        spans = {name.removeprefix("stage."): (start, end) for name, start, end in outcome.calls if "stage." in name}
        found: dict[str, list[Point]] = {stage: [] for stage in spans}
        numbers = Counter[str]()
        for name, start, _ in outcome.calls:
            stage = next(stage for stage, (first, last) in spans.items() if first <= start <= last)
            found[stage] += [(name, numbers[name], when) for when in ("before", "after")]
            numbers[name] += 1
        self.points = found

    def next(self) -> tuple[Point, Point]:
        """Where the next run dies, and where it does so at the latest."""
        stage = self.stages.pop()
        return self.chance.choice(self.points[stage]), (f"stage.{stage}", 0, "after")


@pytest.mark.long
@pytest.mark.parametrize("merge", RULES)
def test_after_mixed_batches_with_kills_the_table_is_the_oracles(workshop: Make, nursery: Nursery, merge: str) -> None:
    live(workshop, nursery, merge)


def live(workshop: Make, nursery: Nursery, merge: str) -> None:
    declared = {"key": ["id"], "merge": merge, "topic": {"partitions": PARTITIONS}, **RULES[merge]}
    shops = [workshop(declared, fields=VERSIONS[0])]
    teller, deaths, lines = Teller(merge, Random(merge)), Deaths(merge), list[Line]()
    for number in range(BATCHES):
        version = number * len(VERSIONS) // BATCHES
        if version == len(shops):
            shops.append(shops[-1].changed(*VERSIONS[version]))
        batch = teller.batch(keys=6 + number, version=version, records=teller.chance.randint(8, 14))
        shops[-1].publish(*(line.record(shops) for line in batch))
        lines += batch
        run = WholeRun(shops[-1], f"run {number}", checks=number % 10 == 0)
        if number == WATCHED:
            deaths.watch(watched(nursery, run))
        elif number in deaths.batches:
            kill(nursery, run, *deaths.next())
        finish(run)
        assert shops[-1].prove(full=False).agrees
    assert_is_rich(lines, merge)
    assert not deaths.stages
    compare(shops[-1], list(placed(lines)))
    assert_accounted(shops[-1], len(lines))
    assert_archived(shops[-1], len(lines))
    assert shops[-1].prove().agrees


def watched(nursery: Nursery, run: WholeRun) -> Outcome:
    outcome = nursery.run(errand(run.shop, work=WholeRun(run.shop, run.run).sent()))
    assert (outcome.records > 0, outcome.error) == (True, "")
    return outcome


def kill(nursery: Nursery, run: WholeRun, point: Point, at_latest: Point) -> None:
    print(f"{run.shop.feed.declaration.merge}, {run.run} dies at {point}, at the latest at {at_latest}")
    checks = at_latest[0] in ("stage.check", "stage.publish")
    work = WholeRun(run.shop, run.run, checks=checks).sent()
    outcome = nursery.run(errand(run.shop, work=work, point=point, at_latest=at_latest))
    assert outcome.signal, (point, outcome.error)


def finish(run: WholeRun) -> None:
    """Do a run to its end; what Spark still does for a dead try may stand in the way, and then a retry goes on."""
    try:
        run.go()
    except (BranchMoved, SparkFailed) as error:
        if not any(told in str(error) for told in OVERTAKEN):
            raise
        run.go()


def assert_is_rich(lines: Sequence[Line], merge: str) -> None:
    """Everything that the rule may meet happened, and every version wrote to the end."""
    kinds = Counter(line.kind for line in lines)
    wanted = {"new", "doubled", *(f"corrupt: {reason}" for reason in DAMAGE)}
    wanted |= {"conflict"} if merge == "append" else {"late", "left", "tombstone"}
    assert kinds.keys() == wanted
    assert min(kinds.values()) >= 3, kinds
    assert {line.version for line in lines[-50:]} == set(range(len(VERSIONS)))


def assert_accounted(shop: Workshop, records: int) -> None:
    """Whatever was killed when, the runs that were published have read every record once."""
    table = shop.lake.find(layout.clean_table(shop.feed.name))
    summaries = [each.summary.additional_properties for each in ancestors(table, table.current_snapshot().snapshot_id)]
    accounts = [json.loads(each[ACCOUNTS]) for each in summaries if ACCOUNTS in each]
    assert len(accounts) == BATCHES
    for each in accounts:
        assert_adds_up(each)
    assert sum(each["read"] for each in accounts) == records


def assert_archived(shop: Workshop, records: int) -> None:
    done = verify.verify(shop.feed, lake=shop.lake, kafka=shop.kafka)
    assert done.is_equal, [str(each) for account in done.accounts for each in account.findings]
    assert [account.lag for account in done.accounts] == [0] * PARTITIONS
    assert sum(account.equal for account in done.accounts) == records
