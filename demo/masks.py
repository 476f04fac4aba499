"""What a warehouse may see of a row: columns dropped, kept or masked, as the feed file declares it."""

import hmac
from datetime import date

from demo.feed import Feed, Share
from demo.record import Row, Value


def shared(feed: Feed, row: Row, *, warehouse: str, mask_key: str) -> dict[str, Value]:
    """The row as this warehouse must hold it."""
    share = feed.warehouses[warehouse]
    return {
        column: masked(share.mask[column], row[column], mask_key=mask_key) if column in share.mask else row[column]
        for column in columns(feed, share)
    }


def columns(feed: Feed, share: Share) -> tuple[str, ...]:
    """A personal field has a column only where it is kept or masked; the order is the schema's."""
    named = share.keep | share.mask.keys()
    return tuple(
        field for field in feed.fields if field not in share.drop and (field not in feed.personal or field in named)
    )


def masked(mask: str, value: Value, *, mask_key: str) -> Value:
    """The value behind a mask; null stays null."""
    match mask, value:
        case ("null", _) | (_, None):
            return None
        case "last4", str():
            return value[-4:] if len(value) > 4 else None  # four or fewer would be shown whole
        case "hash", str():
            return hmac.new(mask_key.encode(), value.encode(), "sha256").hexdigest()
        case "year", date():
            return value.year
    raise ValueError(f"The mask {mask!r} does not fit a value of type {type(value).__name__}.")
