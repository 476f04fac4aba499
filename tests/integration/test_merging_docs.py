"""The examples of docs/merging.md: each goes through real Kafka and Spark, in one run and split into two."""

from collections.abc import Callable

import pytest
from merging_examples import FIELDS, Example, examples
from workshop import Workshop


def test_the_page_has_an_example_of_every_rule() -> None:
    assert {example.declared["merge"] for example in examples()} == {"latest", "first", "patch", "append"}


@pytest.mark.parametrize("split", [False, True], ids=["one run", "two runs"])
@pytest.mark.parametrize("example", examples(), ids=lambda example: example.title)
def test_the_records_make_the_rows(workshop: Callable[..., Workshop], example: Example, split: bool) -> None:
    assert [cells["record"] for cells in example.records] == [f"0/{place}" for place in range(len(example.records))]
    shop = workshop({**example.declared, "topic": {"partitions": 1}}, fields=FIELDS)
    records = example.sent
    half = len(records) // 2 if split else len(records)
    for batch in (records[:half], records[half:]):
        if batch:
            shop.merge(*batch)
    assert shop.clean() == example.rows
    assert shop.quarantine() == example.quarantine
