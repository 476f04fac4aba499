"""Checks on real Spark: each catches a fault that nothing else catches, and all of them read the rows once."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest
from wiretap import Wiretap
from workshop import ORDER, ORDER_FIELDS, Record, Workshop

from headrace import feed as feeds
from headrace.errors import SparkFailed

Make = Callable[..., Workshop]
Row = dict[str, Any]

PROPERTIES = {
    "id": {"type": "string"},
    "kind": {"enum": ["a", "b"]},
    "size": {"type": "integer", "minimum": 1, "maximum": 9},
    "share": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "code": {"type": "string", "minLength": 2, "maxLength": 4},
    "word": {"type": ["string", "null"], "pattern": "^[a-z]+$"},
    "note": {"type": "string"},
    "price": {"type": "number"},
    "currency": {"type": "string"},
    "country": {"type": "string"},
    "mail": {"type": "string", "pii": "email"},
    "ref": {"type": "integer"},
    "day": {"type": "string", "format": "date"},
    "seat": {"type": "integer"},
    "title": {"type": "string"},
    "phone": {"type": "string", "pii": "phone"},
    "weight": {"type": "number"},
}
CHECKS = [
    {"column": "price", "between": [0, 100]},
    {"column": "currency", "one_of": ["EUR", "USD"]},
    {"column": "country", "matches": "^[A-Z]{2}$"},
    {"column": "mail", "not_null": True},
    {"column": "ref", "unique": True},
    {"unique": ["day", "seat"]},
    {"column": "title", "length": [1, 5]},
    {"row_count": [1, 4]},
    {"column": "phone", "not_null": True, "mostly": 0.5},
    {"column": "weight", "expect": "expect_column_mean_to_be_between", "arguments": {"max_value": 10}},
]
FEED = feeds.parse(
    "rows.json",
    json.dumps(
        {
            "type": "object",
            "properties": PROPERTIES,
            "required": ["id", "size"],
            "x-feed": {"key": ["id"], "checks": CHECKS},
        }
    ),
)
PAIRS = feeds.parse(
    "pairs.avsc",
    json.dumps(
        {
            "type": "record",
            "name": "Pair",
            "feed": {"key": ["left", "right"]},
            "fields": [
                {"name": "left", "type": "string"},
                {"name": "right", "type": "long"},
                {"name": "side", "type": ["null", {"type": "enum", "name": "Side", "symbols": ["x", "y"]}]},
            ],
        }
    ),
)


def good(number: int) -> Row:
    """A row that meets everything."""
    return {
        "id": f"k{number}", "kind": "ab"[number % 2], "size": 1 + number, "share": 0.5, "code": "abc", "word": "word",
        "note": None, "price": 10.0, "currency": "EUR", "country": "DE", "mail": "a@b.c", "ref": number,
        "day": "2026-01-01", "seat": number, "title": "text", "phone": "1", "weight": 2.0,
    }  # fmt: skip


def pair(number: int) -> Row:
    return {"left": "a", "right": number, "side": None}


@pytest.fixture(scope="module")
def spark(stack: Any) -> Iterator[Any]:
    """One session for all faults."""
    from headrace.airflow import connections
    from spark_jobs.session import session

    # For a handful of rows, what makes a million quick takes the longest.
    small = {"spark.sql.shuffle.partitions": "1", "spark.sql.codegen.wholeStage": "false"}
    with session(connections.spark_remote(), properties=small) as made:
        yield made


def frame(spark: Any, feed: feeds.Feed, rows: list[Row], *, types: Mapping[str, str] | None = None) -> Any:
    """Rows as the clean table has them; `types` are of columns that are planted otherwise, none for a missing one."""
    from pyspark.sql import functions as F

    from headrace.columns import columns
    from headrace.stages.transform import spark_type

    right = {column.name: spark_type(column.type) for column in columns(feed)}
    wanted = {**right, **(types or {})}
    texts = [{name: None if row[name] is None else str(row[name]) for name in right} for row in rows]
    made = spark.createDataFrame(texts, ", ".join(f"{name} string" for name in right))
    return made.select(*(F.col(name).cast(type_).alias(name) for name, type_ in wanted.items() if type_))


Found = tuple[int | None, float | str | None, tuple[str, ...]]
"""How many rows, what was observed, and keys."""


@pytest.mark.parametrize(
    ("told", "planted", "found"),
    [
        ("id: every value once", {1: {"id": "k0"}}, (2, None, ("k0",))),
        ("id: not null", {1: {"id": None}}, (1, None, ("None",))),
        ("size: not null", {1: {"size": None}}, (1, None, ("k1",))),
        ("kind: one of a, b", {0: {"kind": "c"}}, (1, None, ("k0",))),
        ("size: 1 to 9", {0: {"size": 0}, 1: {"size": 10}}, (2, None, ("k0", "k1"))),
        ("share: more than 0 and less than 1", {0: {"share": 0.0}, 1: {"share": 1.0}}, (2, None, ("k0", "k1"))),
        ("code: 2 to 4 characters", {0: {"code": "a"}, 1: {"code": "abcde"}}, (2, None, ("k0", "k1"))),
        (r"word: matches ^[a-z]+\z", {0: {"word": "A"}, 1: {"word": "word\n"}}, (2, None, ("k0", "k1"))),
        ("price: 0 to 100", {0: {"price": -0.01}, 1: {"price": 100.01}}, (2, None, ("k0", "k1"))),
        ("currency: one of EUR, USD", {1: {"currency": "eur"}}, (1, None, ("k1",))),
        ("country: matches ^[A-Z]{2}$", {1: {"country": "DEU"}}, (1, None, ("k1",))),
        ("mail: not null", {1: {"mail": None}}, (1, None, ("k1",))),
        ("ref: every value once", {2: {"ref": 0}}, (2, None, ("k0", "k2"))),
        ("day, seat: every combination once", {2: {"seat": 0}}, (2, None, ("k0", "k2"))),
        ("title: 1 to 5 characters", {0: {"title": ""}, 1: {"title": "longer"}}, (2, None, ("k0", "k1"))),
        ("the rows: 1 to 4 rows", {3: {}, 4: {}}, (None, 5, ())),
        ("phone: not null, in 50 % of the rows", {0: {"phone": None}, 1: {"phone": None}}, (2, None, ("k0", "k1"))),
        ("weight: column mean to be between (max_value 10)", {0: {"weight": 29.0}}, (None, 11.0, ())),
    ],
)
def test_each_check_catches_a_fault_that_no_other_catches(
    spark: Any, told: str, planted: dict[int, Row], found: Found
) -> None:
    rows = [{**good(number), **planted.get(number, {})} for number in range(max(3, *(each + 1 for each in planted)))]
    caught = only_catch(frame(spark, FEED, rows), FEED, told)
    assert (caught.unexpected, caught.observed, tuple(sorted(caught.keys))) == found


@pytest.mark.parametrize(("type_", "error"), [("bigint", None), ("", "there is no such column")])
def test_a_column_of_another_type_or_none_is_caught_by_its_type_alone(
    spark: Any, type_: str, error: str | None
) -> None:
    caught = only_catch(frame(spark, FEED, [good(0)], types={"note": type_}), FEED, "note: of type StringType")
    assert caught.error == error


@pytest.mark.parametrize(
    ("told", "planted"),
    [("left, right: every combination once", {"right": 0}), ("side: one of x, y", {"side": "z"})],
)
def test_a_key_of_two_fields_and_an_enum_in_a_union_are_checked_too(spark: Any, told: str, planted: Row) -> None:
    assert only_catch(frame(spark, PAIRS, [pair(0), {**pair(1), **planted}]), PAIRS, told).unexpected


def test_the_limits_of_a_decimal_may_be_texts(spark: Any) -> None:
    paid = {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}
    fields = [{"name": "id", "type": "string"}, {"name": "paid", "type": paid}]
    checks = [{"column": "paid", "between": ["9.50", "100.00"]}]
    schema = {"type": "record", "name": "Row", "feed": {"key": ["id"], "checks": checks}, "fields": fields}
    feed = feeds.parse("rows.avsc", json.dumps(schema))
    rows = [{"id": value, "paid": value} for value in ("9.49", "9.50", "80.00", "100.00", "100.01")]
    caught = only_catch(frame(spark, feed, rows), feed, "paid: 9.50 to 100.00")
    assert sorted(caught.keys) == ["100.01", "9.49"]


def only_catch(rows: Any, feed: feeds.Feed, told: str) -> Any:
    """The outcome of the one check that fails; without it in the suite everything passes."""
    from headrace.stages.check import shown_key, suite
    from spark_jobs.check import validate

    whole = suite(feed)
    without = [each for each in whole if str(each) != told]
    assert len(without) == len(whole) - 1, f"{told} is not in the suite, or more than once"
    (caught,) = [each for each in validate(rows, whole, key=shown_key(feed)) if not each.success]
    assert str(caught.expectation) == told
    assert all(each.success for each in validate(rows, without)), "without the check something else fails"
    return caught


def failing(rows: Any, feed: feeds.Feed) -> list[str]:
    from headrace.stages.check import suite
    from spark_jobs.check import validate

    return [str(each.expectation) for each in validate(rows, suite(feed)) if not each.success]


def test_good_rows_meet_every_check_and_so_do_those_that_lack_what_they_may(spark: Any) -> None:
    assert failing(frame(spark, FEED, [good(0), good(1)]), FEED) == []
    least = {**dict.fromkeys(good(0)), "id": "a", "size": 1, "mail": "a@b.c", "phone": "1", "weight": 1.0}
    assert failing(frame(spark, FEED, [least]), FEED) == []


def test_a_run_that_only_deletes_fails_no_check_but_one_of_its_size(spark: Any) -> None:
    assert failing(frame(spark, FEED, [good(0)]).where("false"), FEED) == ["the rows: 1 to 4 rows"]


def test_of_personal_values_nothing_is_told_but_their_number(spark: Any) -> None:
    from headrace.stages.check import shown_key, suite
    from spark_jobs.check import validate

    fields = [
        {"name": "mail", "type": "string", "pii": "email"},
        {"name": "born", "type": "long", "pii": "birthday"},
    ]
    checks = [
        {"column": "mail", "matches": "^@"},
        {"column": "born", "expect": "expect_column_max_to_be_between", "arguments": {"max_value": 0}},
        {"column": "mail", "expect": "expect_column_distinct_values_to_be_in_set", "arguments": {"value_set": ["a"]}},
    ]
    schema = {"type": "record", "name": "Row", "fields": fields, "feed": {"key": ["mail"], "checks": checks}}
    feed = feeds.parse("rows.avsc", json.dumps(schema))
    outcomes = validate(
        frame(spark, feed, [{"mail": "jane@shop.example", "born": 19700102}]), suite(feed), key=shown_key(feed)
    )
    assert sum(not each.success for each in outcomes) == 3
    told = json.dumps([each.model_dump() for each in outcomes])
    assert "jane" not in told
    assert "19700102" not in told


def test_an_expectation_that_cannot_be_tested_fails_alone_and_says_what_kind_of_error(spark: Any) -> None:
    from headrace.outcome import Expectation
    from headrace.stages.check import suite
    from spark_jobs.check import validate

    between = "expect_column_values_to_be_between"
    odd = [
        Expectation(name=between, arguments={"column": "nowhere", "min_value": 0}),
        Expectation(name=between, arguments={"column": "size", "min_value": {"a": 1}}),
        Expectation(name=between, arguments={"column": "word", "min_value": 0}),
        Expectation(name="expect_column_values_to_be_in_set", arguments={"column": "code", "value_set": 1}),
    ]
    outcomes = validate(frame(spark, FEED, [good(0)]), [*suite(FEED), *odd], key=["id"])
    failed = [each for each in outcomes if not each.success]
    assert {each.expectation.arguments["column"]: each.error for each in failed} == {
        "nowhere": "InvalidMetricAccessorDomainKwargsKeyError",
        "size": "UNSUPPORTED_DATA_TYPE",
        "word": "InvalidColumnTypeError",
        "code": "Great Expectations does not take its arguments",
    }


def test_a_uniqueness_that_cannot_be_told_fails_alone_and_the_others_are_still_counted(spark: Any) -> None:
    from headrace.outcome import Expectation
    from spark_jobs.check import validate

    unique = "expect_column_values_to_be_unique"
    rows = spark.sql("select id, map('k', 1) as tags from values ('a'), ('a'), ('b') as rows(id)")
    suite = [
        Expectation(name=unique, arguments={"column": "tags"}),
        Expectation(name=unique, arguments={"column": "nowhere"}),
        Expectation(name=unique, arguments={}),
        Expectation(name=unique, arguments={"column": "id"}),
        Expectation(name="expect_table_row_count_to_equal", arguments={"value": 3}),
    ]
    outcomes = {str(each.expectation.arguments): each for each in validate(rows, suite, key=["id"])}
    *untold, doubled, counted = (outcomes[str(each.arguments)] for each in suite)
    assert all(each.error and not each.success for each in untold)
    assert (doubled.unexpected, doubled.keys, doubled.error) == (2, ("a",), None)
    assert counted.success


def order(key: str, revision: int, *, price: str = "9.99") -> Record:
    from datetime import UTC, datetime
    from decimal import Decimal

    at = datetime(2026, 1, 1, tzinfo=UTC)
    row = {"id": key, "revision": revision, "status": "placed", "price": Decimal(price), "email": None}
    return Record({**row, "created_at": at})


def test_the_branch_is_read_once_however_many_checks_there_are(workshop: Make) -> None:
    from headrace.airflow import connections
    from headrace.lake import spark_properties
    from headrace.stages import check
    from spark_jobs import check as job

    shop = workshop({**ORDER, "checks": [{"column": "price", "between": [0, 5]}, {"column": "price", "unique": True}]})
    shop.publish(*(order(f"k{number}", 1) for number in range(20)))
    shop.extract()
    shop.transform("run")
    plan = check.plan(shop.feed, lake=shop.lake, run="run")
    assert plan is not None
    tap = Wiretap(urlsplit(shop.lake.storage.endpoint).port or 0)
    storage = replace(shop.lake.storage, endpoint=f"http://127.0.0.1:{tap.port}")
    properties = spark_properties(replace(shop.lake, storage=storage))

    def reads(suite: list[Any]) -> int:
        tap.sent.clear()
        asked = plan.model_copy(update={"suite": suite})
        outcomes = json.loads(
            job.run(asked.model_dump_json(), remote=connections.spark_remote(), properties=properties)
        )
        assert len(outcomes) == len(suite)
        return sum(b"/data/" in began for _, began in tap.sent)

    try:
        once = reads(plan.suite[:1])
        assert once > 0
        assert len(plan.suite) > 10
        assert reads(plan.suite) == once, "a failed check or a second question read the branch again"
    finally:
        tap.close()


@pytest.mark.parametrize("merge", ["latest", "patch"])
def test_an_expectation_about_the_tables_columns_is_about_those_that_readers_see(workshop: Make, merge: str) -> None:
    seen = [field["name"] for field in ORDER_FIELDS]
    checks = [
        {"expect": "expect_table_columns_to_match_ordered_list", "arguments": {"column_list": seen}},
        {"expect": "expect_table_column_count_to_equal", "arguments": {"value": len(seen) + 1}},
    ]
    shop = workshop({**ORDER, "merge": merge, "checks": checks})
    shop.publish(order("a", 1))
    shop.extract()
    shop.transform("run")
    (failed,) = [each for each in shop.checked("run") if not each.success]
    assert (failed.expectation.name, failed.observed) == (checks[1]["expect"], len(seen))


def test_where_spark_goes_away_among_the_checks_none_of_them_has_failed(
    workshop: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spark_jobs.one_pass import OnePass

    shop = workshop(ORDER)
    shop.publish(order("a", 1))
    shop.extract()
    shop.transform("run")
    asked = OnePass.resolve_metric_bundle

    def without_a_session(engine: Any, **given: Any) -> Any:
        engine.dataframe.sparkSession.client.release_session()
        return asked(engine, **given)

    monkeypatch.setattr(OnePass, "resolve_metric_bundle", without_a_session)
    with pytest.raises(SparkFailed, match=f"on checking {shop.feed.name}") as raised:
        shop.checked("run")
    assert raised.value.retry
