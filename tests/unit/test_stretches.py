"""Stretches: where a batch's keys lie, told in few parts."""

import random

import pytest

from spark_jobs.stretches import Key, stretches


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ([], []),
        ([7], [(7, 7)]),
        (["a"], [("a", "a")]),
        ([1, 2, 3, 1_000_001, 1_000_000], [(1, 3), (1_000_000, 1_000_001)]),
        ([-(2**63), 2**63 - 1], [(-(2**63), -(2**63)), (2**63 - 1, 2**63 - 1)]),
        (["order-0001", "order-9001", "order-9002"], [("order-0001", "order-0001"), ("order-9001", "order-9002")]),
        (["a", "ab", "a\U0001f600"], [("a", "a"), ("ab", "ab"), ("a\U0001f600", "a\U0001f600")]),
        (["\uffff", "\U0001f600"], [("\uffff", "\uffff"), ("\U0001f600", "\U0001f600")]),
    ],
)
def test_the_range_of_keys_without_its_large_gaps(keys: list[Key], told: list[tuple[Key, Key]]) -> None:
    assert stretches(keys) == told


def test_keys_in_no_order_are_one_stretch() -> None:
    dice = random.Random(1)
    keys: list[Key] = [dice.getrandbits(63) for _ in range(10_000)]
    assert stretches(keys) == [(min(keys), max(keys))]  # type: ignore[type-var]


def test_every_key_lies_in_one_and_there_are_few() -> None:
    dice = random.Random(2)
    for _ in range(200):
        length = dice.randint(1, 30)
        keys: list[Key] = ["".join(dice.choices("ab0é\U0001f600", k=dice.randint(0, 12))) for _ in range(length)]
        told = stretches(keys)
        assert all(any(low <= key <= high for low, high in told) for key in keys)  # type: ignore[operator]
        assert len(told) <= 8
