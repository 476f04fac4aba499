"""Durations and sizes, as people write them."""

from datetime import timedelta

import pytest

from headrace import duration, size


@pytest.mark.parametrize(
    ("text", "lasts"),
    [
        ("30s", timedelta(seconds=30)),
        ("5m", timedelta(minutes=5)),
        ("12h", timedelta(hours=12)),
        ("7d", timedelta(days=7)),
        ("36500d", timedelta(days=36500)),
    ],
)
def test_a_duration_is_a_number_and_a_unit(text: str, lasts: timedelta) -> None:
    assert duration.parse(text) == duration.lasting(text) == lasts


@pytest.mark.parametrize(
    "text", ["", "7", "d", "0s", "07d", "-1d", "1.5h", "7 d", "7D", "1w", "36501d", "1d\n", "forever"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a duration is"):
        duration.parse(text)


def test_something_may_last_for_ever() -> None:
    assert duration.lasting("forever") is None


@pytest.mark.parametrize(
    ("written", "bytes_"),
    [(1, 1), (1048588, 1048588), ("16 MiB", 16 * 2**20), ("16MiB", 16 * 2**20), ("1 GB", 10**9), ("5 kB", 5000)],
)
def test_a_size_is_a_number_of_bytes_or_has_a_unit(written: object, bytes_: int) -> None:
    assert size.parse(written) == bytes_


@pytest.mark.parametrize("written", [0, -1, True, 1.5, "", "16", "16 mib", "1.5 MiB", "MiB", "16 MiB of mail", None])
def test_what_is_no_size_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="a size is a number of bytes"):
        size.parse(written)
