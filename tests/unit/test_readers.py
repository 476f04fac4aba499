"""What a reader asks for, told from the call alone: literals, predicates, sight of personal columns, moments."""

import json
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual, IsNull, NotIn, NotNull
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

from headrace import feed as feeds
from headrace import personal
from headrace.errors import PersonalRefused, ReadError
from headrace.readers import literal, predicate, published, sight
from headrace.readers.sight import Allowance

SCHEMA = Schema(
    NestedField(1, "id", StringType()),
    NestedField(2, "price", DecimalType(12, 2)),
    NestedField(3, "at", TimestamptzType()),
    NestedField(4, "email", StringType()),
    NestedField(5, "address", StructType(NestedField(6, "city", StringType()))),
    NestedField(7, "_hidden", BooleanType()),
)
FIELDS = [{"name": "id", "type": "string", "doc": "Who."}, {"name": "email", "type": "string", "pii": "email"}]
FEED = feeds.parse(
    "rows.avsc", json.dumps({"type": "record", "name": "Row", "fields": FIELDS, "feed": {"key": ["id"]}})
)


def asked(where: predicate.Where) -> Any:
    return predicate.typed(predicate.parsed(where), SCHEMA)


@pytest.mark.parametrize(
    ("value", "type_", "read"),
    [
        ("2026-01-31", TimestamptzType(), datetime(2026, 1, 31, tzinfo=UTC)),
        ("2026-01-31T08:00+02:00", TimestamptzType(), datetime(2026, 1, 31, 6, tzinfo=UTC)),
        (date(2026, 1, 31), TimestamptzType(), datetime(2026, 1, 31, tzinfo=UTC)),
        ("2026-01-31T08:00", TimestampType(), datetime(2026, 1, 31, 8)),  # noqa: DTZ001
        ("2026-01-31", DateType(), date(2026, 1, 31)),
        (1, DecimalType(12, 2), Decimal("1.00")),
        (1.1, DecimalType(12, 2), Decimal("1.10")),
        (Decimal("2.0"), LongType(), 2),
        ("7", DoubleType(), 7.0),
        (0.1, FloatType(), 0.10000000149011612),
        (1e300, FloatType(), 1e300),
        (True, BooleanType(), True),
    ],
)
def test_a_value_is_read_as_the_column_has_it(value: Any, type_: IcebergType, read: Any) -> None:
    found = literal.of_type(value, type_, column="c")
    assert (found, type(found)) == (read, type(read))


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        ("secret", TimestamptzType()),
        ("2026-01-31T08:00Z", TimestampType()),
        (datetime(2026, 1, 31, tzinfo=UTC), DateType()),
        ("1.005", DecimalType(12, 2)),
        (1.5, LongType()),
        (True, LongType()),
        ("true", BooleanType()),
        (5, StringType()),
        ("x", StructType()),
        (UUID("12345678123456781234567812345678"), UUIDType()),
    ],
)
def test_a_value_that_does_not_fit_is_told_without_it(value: Any, type_: IcebergType) -> None:
    with pytest.raises(ReadError, match="where: c ") as told:
        literal.of_type(value, type_, column="c")
    assert "secret" not in str(told.value)


def test_a_text_and_a_list_of_conditions_mean_the_same() -> None:
    text = asked("at >= '2026-01-31' and email is null")
    assert text == asked([("at", ">=", date(2026, 1, 31)), ("email", "=", None)])
    assert text == And(GreaterThanOrEqual("at", datetime(2026, 1, 31, tzinfo=UTC)), IsNull("email"))


def test_a_negation_leaves_out_nulls_as_sql_does() -> None:
    assert asked("id not in ('a', 'b')") == And(NotNull("id"), NotIn("id", ["a", "b"]))
    assert asked("not (id = 'a')") == asked("id != 'a'")


def test_an_expression_of_pyiceberg_is_taken_as_it_is() -> None:
    aware = datetime(2026, 1, 31, 2, tzinfo=timezone(timedelta(hours=2)))
    assert asked(EqualTo("at", aware)) == EqualTo("at", datetime(2026, 1, 31, tzinfo=UTC))


def test_the_columns_of_a_predicate_are_told_with_those_inside_them() -> None:
    assert predicate.columns_of(predicate.parsed("address.city = 'x' or not (id = 'a' and price > 1)")) == {
        "address",
        "id",
        "price",
    }


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("id == ", "cannot be read from character"),
        ("id like '%a'", "LIKE"),
        ([("id", "~", "a")], "'~' is no comparison"),
        ([("id", "a")], "three parts"),
        ("address.town = 'a'", "there is no address.town"),
    ],
)
def test_a_predicate_that_cannot_be_read_says_why(where: Any, told: str) -> None:
    with pytest.raises(ReadError, match=told):
        asked(where)


def test_the_platforms_own_columns_are_not_known_and_docs_come_from_the_feed() -> None:
    known = sight.columns(SCHEMA, feed=FEED, noted=None)
    assert [*known] == ["id", "price", "at", "email", "address"]
    assert (known["id"].doc, known["id"].pii, known["email"].pii) == ("Who.", None, "email")


def test_a_table_remembers_what_was_personal_in_columns_that_the_feed_dropped() -> None:
    before = json.dumps({"phone": "phone", "id": "name", "price": None})
    noted = personal.note(FEED, before)
    assert json.loads(noted) == {"email": "email", "id": None, "phone": "phone", "price": None}
    assert personal.kinds(["id", "phone", "price", "at"], feed=None, noted=noted) == {
        "id": None,
        "phone": "phone",
        "price": None,
        "at": personal.UNKNOWN,
    }


@pytest.mark.parametrize(
    ("text", "may"),
    [("", []), ("email , phone", ["email", "phone"]), ("*", ["email", "phone", "unknown"])],
)
def test_what_may_be_read_stands_in_one_line(text: str, may: list[str]) -> None:
    allowance = Allowance.parse(text)
    assert [kind for kind in ("email", "phone", "unknown") if kind in allowance] == may
    assert None in allowance, "what is not personal may be read by everybody"


def test_a_refusal_names_the_columns_their_kinds_and_what_to_do() -> None:
    known = sight.columns(SCHEMA, feed=FEED, noted=None)
    with pytest.raises(PersonalRefused, match=r"email \(email\), at \(unknown\).*as_warehouse.*HEADRACE_SCHEMAS"):
        sight.refuse("rows", [known["id"], known["email"], known["at"]], allowance=Allowance.parse("phone"))


def test_a_time_without_a_zone_is_utc() -> None:
    assert published.moment("2026-01-31T08:00") == datetime(2026, 1, 31, 8, tzinfo=UTC)
    assert published.moment(date(2026, 1, 31)) == datetime(2026, 1, 31, tzinfo=UTC)
    with pytest.raises(ReadError, match="'yesterday' is no time"):
        published.moment("yesterday")


def test_importing_headrace_imports_nothing_heavy() -> None:
    script = (
        "import sys, headrace; print([each for each in ('airflow', 'pyiceberg', 'pyarrow') if each in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
