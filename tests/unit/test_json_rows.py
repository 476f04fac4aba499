"""JSON records to rows: whatever a text says, there is a row or a fault, soon, and the texts beside it go on."""

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.json_rows import INVALID, UNDECODABLE, rows

COLUMNS = {
    "id": "string", "n": "long", "d": "double", "j": "json", "at": "timestamptz", "day": "date", "u": "uuid",
    "tags": ("map", "long"), "list": ("list", ("struct", {"n": "long", "j": "json"})),
}  # fmt: skip
SHAPE = ("struct", COLUMNS)
WRITERS = {
    1: json.dumps({"type": "object"}),
    2: json.dumps({"type": "object", "properties": {"n": {"type": "integer"}, "d": {"multipleOf": 0.1, "minimum": 0}}}),
}
GOOD = b'{"id": "good", "n": 1}'
HUGE, TINY = "1e9999999999999999999999", "1e-9999999999999999999999"


def judged(*texts: bytes, writer: int = 1) -> list[Any]:
    return list(rows([writer] * len(texts), list(texts), writers=WRITERS, shape=SHAPE).to_pylist())


def nested(opening: str, closing: str, levels: int) -> str:
    return opening * levels + "1" + closing * levels


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (f'{{"unknown": {HUGE}}}', UNDECODABLE),
        (f'{{"unknown": {TINY}}}', UNDECODABLE),
        ('{"n": 1e1000000}', INVALID),
        ('{"n": -1e999999999999}', INVALID),
        ('{"list": [{"n": 1e1000000}]}', INVALID),
        ('{"tags": {"a": 1e1000000}}', INVALID),
        ('{"d": 1e999999999999}', INVALID),
        ('{"j": 1e-999999999999}', INVALID),
        (f'{{"n": {"9" * 5000}}}', UNDECODABLE),
        (f'{{"j": {nested("[", "]", 201)}}}', INVALID),
        (f'{{"j": {nested("[", "]", 900)}}}', INVALID),
        (f'{{"j": {nested("""{"a":""", "}", 400)}}}', INVALID),
        (f'{{"unknown": {nested("[", "]", 5000)}}}', UNDECODABLE),
        ('{"id": "\\ud800"}', INVALID),
        ('{"tags": {"\\ud800": 1}}', INVALID),
        ('{"j": {"a": "\\u0000"}}', INVALID),
        ('{"d": NaN}', UNDECODABLE),
        ('{"at": "9999-12-31T23:59:59-12:00"}', INVALID),
    ],
    ids=lambda value: value[:40],
)
def test_a_value_without_measure_is_a_fault_of_its_own_record(text: str, fault: str) -> None:
    started = time.perf_counter()
    for writer in WRITERS:
        bad, good = judged(text.encode(), GOOD, writer=writer)
        assert bad["row"] is None
        assert bad["fault"] in {fault, INVALID}
        assert (good["fault"], good["row"]["id"]) == (None, "good")
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize(
    ("text", "column", "value"),
    [
        ('{"n": 1e18}', "n", 10**18),
        ('{"n": 120e-1}', "n", 12),
        ('{"n": 0e999999999}', "n", 0),
        ('{"j": 0e-999999999999}', "j", "0"),
        ('{"j": -0.0}', "j", "0"),
        ('{"d": 1e-999999999999}', "d", 0.0),
        ('{"n": 1, "n": 2}', "n", 2),
        (f'{{"j": {nested("[", "]", 200)}}}', "j", nested("[", "]", 200)),
    ],
    ids=lambda value: str(value)[:40],
)
def test_an_odd_value_that_fits_its_column_is_read(text: str, column: str, value: Any) -> None:
    (found,) = judged(text.encode())
    assert found["fault"] is None
    assert found["row"][column] == value


exponents = st.integers(-(10**25), 10**25) | st.sampled_from([18, 19, 308, 309, -324, 4300, 10**6])
numbers = st.builds("{}{}e{}".format, st.sampled_from(["", "-"]), st.integers(0, 10**20), exponents)
words = st.sampled_from(["NaN", "-Infinity", '"\\ud800"', '"\\u0000"', '"2026-02-30"', '"9999-12-31T23:59:59-12:00"'])
scalars = numbers | words | st.text(max_size=9).map(json.dumps) | st.integers().map(str)
deep = st.builds(nested, st.sampled_from(["[", '{"a":']), st.just(""), st.integers(1, 2000)) | st.builds(
    lambda levels: nested('{"a":[', "]}", levels), st.integers(1, 600)
)
values = st.recursive(
    scalars | deep,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda each: f"[{','.join(each)}]")
        | st.lists(st.tuples(st.sampled_from(["a", "n", "j", "\\ud800"]), inner), max_size=3).map(
            lambda each: "{" + ",".join(f'"{name}":{value}' for name, value in each) + "}"
        )
    ),
    max_leaves=5,
)
members = st.lists(st.tuples(st.sampled_from([*COLUMNS, "unknown"]), values), max_size=4)
texts = members.map(lambda each: "{" + ",".join(f'"{name}": {value}' for name, value in each) + "}")


@settings(deadline=5000, max_examples=200)
@given(st.lists(texts.map(str.encode) | values.map(str.encode) | st.binary(max_size=30), max_size=4))
def test_whatever_comes_there_is_a_row_or_a_fault_for_each(drawn: list[bytes]) -> None:
    for writer in WRITERS:
        found = judged(*drawn, GOOD, writer=writer)
        assert [each["fault"] is None for each in found] == [each["row"] is not None for each in found]
        assert found[-1]["row"]["id"] == "good"
