"""The benchmarks' arithmetic: what is taken as steady, medians, ratios, and readings between readings."""

from bench import checks, figures, merge, meter
from bench.backlog import loads, size_of
from bench.checks import Run as Asked
from bench.connect import catalog_properties, sink_properties
from bench.curve import curve, thinned
from bench.extract import consumed
from bench.figures import Run, Steady
from bench.merge import Run as Merged
from bench.meter import Reading
from bench.records import DENSE, LARGE, SMALL, Shape, orders
from bench.table import Mark


def run(contender: str, seconds: float, *, memory: int = 2**30, steady: Steady | None = None) -> Run:
    return Run(contender, 1_000_000, seconds, cpu=4.0, memory=memory, services=1.0, steady=steady)


def test_the_last_partial_interval_is_not_steady() -> None:
    first, second, third, last = (Mark(at, rows) for at, rows in ((14, 100), (24, 300), (34, 500), (44, 510)))
    assert figures.between([first, second, third, last]) == (first, third)


def test_two_snapshots_are_taken_as_they_are_and_one_tells_nothing() -> None:
    first, last = Mark(14, 100), Mark(24, 300)
    assert figures.between([first, last]) == (first, last)
    assert figures.between([last]) is None


def test_the_median_leaves_out_runs_without_the_figure() -> None:
    runs = [run("sink", 1, steady=Steady(300, 1, 1)), run("sink", 1), run("sink", 1, steady=Steady(100, 1, 1))]
    assert figures.median(runs, figures.steady_rate) == 200
    assert figures.median([run("sink", 1)], figures.steady_rate) is None


def test_ours_is_compared_with_the_sink_and_with_the_bare_consumer() -> None:
    sink = [run("sink", 8, steady=Steady(250_000, 1, 1)), run("sink", 10, steady=Steady(250_000, 1, 1))]
    runs = {"sink": sink, "task": [run("task", 2, memory=2**29)], "consumer": [run("consumer", 1)]}
    shown = figures.ratios({"8M": runs, "2M": {"task": runs["task"]}}, {"task": "in the task"})
    assert "| in the task: speed ÷ the sink's between snapshots | 2.00 | – |" in shown
    assert "| in the task: share of the bare Java consumer's speed | 50% | – |" in shown
    assert "| in the task: peak memory ÷ the sink's | 0.50 | – |" in shown


def test_a_page_says_how_its_bench_was_started() -> None:
    runs = [Asked(size, contender, 1.0) for size in (10, 1000) for contender in checks.CONTENDERS]
    assert "`python -m bench.checks --rows 10 1000 --rounds 4`, " in checks.page(runs, rounds=4)
    merged = [Merged("patch-moving", size, 1.0, 1.0) for size in (300, 3000)]
    assert "`python -m bench.merge --rows 300 --rounds 2 --cases patch-moving`, " in merge.page(merged, rounds=2)


def test_every_run_has_its_line() -> None:
    runs = {"sink": [run("sink", 8, steady=Steady(250_000, 1, 1)), run("sink", 10)]}
    lines = figures.each(runs, {"sink": "sink"})
    assert len(lines) == 2 + 2
    assert lines[2].startswith("| sink, 1 | 125k | 250k over 1 s, 4.0 CPU s per million | 8.0 | 4.0 | 1.00 GB |")


def test_cpu_between_two_readings_lies_on_their_line() -> None:
    readings = [Reading(10, 1.0, 5), Reading(12, 3.0, 9), Reading(14, 3.0, 7)]
    assert meter.cpu_at(readings, 11) == 2.0
    assert meter.cpu_at(readings, 9) == 1.0
    assert meter.cpu_at(readings, 99) == 3.0
    assert meter.peak(readings) == 9


def test_the_consumers_own_table_is_read() -> None:
    said = (
        "a warning\n"
        "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, "
        "fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec\n"
        "2026-01-01 00:00:00:000, 2026-01-01 00:00:03:000, 1.0, 1.0, 2000000, 1.0, 500, 2500, 1.0, 800000.0\n"
    )
    assert consumed(said) == (2_000_000, 2.5)


def test_records_have_the_size_they_are_named_by() -> None:
    for shape, size in ((SMALL, 100), (LARGE, 1000), (DENSE, 1000)):
        made = orders(Shape(shape.note, shape.words, orders=500))
        mean = sum(len(value) for _, value, _ in made) / len(made)
        assert abs(mean - size) < size * 0.05
        assert len({key for key, _, _ in made}) == 500


def test_the_sink_gets_the_lakes_own_catalog_under_its_name() -> None:
    spark = {"spark.sql.catalog.lake": "a class", "spark.sql.catalog.lake.uri": "jdbc:postgresql://there"}
    told = sink_properties("s", topic="t", table="n.t", catalog=catalog_properties("lake", spark))
    assert told["iceberg.catalog"] == "lake"
    assert told["iceberg.catalog.uri"] == "jdbc:postgresql://there"


def test_a_curve_keeps_every_peak_and_shows_the_limit() -> None:
    points = [(float(at), 0.5) for at in range(4000)]
    points[1234] = (1234.0, 0.9)
    assert max(value for _, value in thinned(points)) == 0.9
    drawn = curve(points, title="a <b>", limit=1.0, unit="GB")
    assert "1 GB" in drawn
    assert "a &lt;b&gt;" in drawn
    assert len(thinned(points)) <= 400


def test_a_backlog_with_huge_records_is_as_large_as_the_one_without() -> None:
    plain, huge = loads(5, huge=100).values()
    assert size_of(plain) == size_of(huge) == 5 * 10**9
    assert huge.count < plain.count
