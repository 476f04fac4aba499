"""The hour that a record is filed under, by its timestamp."""

from datetime import UTC, datetime

HOUR_MS = 3_600_000

# A producer's clock may say anything. Outside these years an hour names no real hour, and one folder each for such
# hours would let a single producer flood the archive with tiny files: they are filed together as unknown.
PLAUSIBLE_MS = range(
    int(datetime(2000, 1, 1, tzinfo=UTC).timestamp() * 1000), int(datetime(2100, 1, 1, tzinfo=UTC).timestamp() * 1000)
)


def filed_hour(timestamp: int | None) -> int | None:
    """The hour since 1970 that a record is filed under, or None when its timestamp is implausible."""
    return timestamp // HOUR_MS if timestamp is not None and timestamp in PLAUSIBLE_MS else None


def hour_start(hour: int) -> datetime:
    return datetime.fromtimestamp(hour * 3600, UTC)
