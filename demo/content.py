"""The rows of the three example feeds: each a pure function of the seed, the key, the revision and the variant."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from random import Random
from zlib import crc32

from demo.record import Row

EPOCH = datetime(2025, 1, 6, tzinfo=UTC)
ROUND_DAYS = 5
DAY_MS = 86_400_000
EDGE_KEYS = 200

CURRENCIES = {"DE": "EUR", "ES": "EUR", "FR": "EUR", "GB": "GBP", "JP": "JPY", "PL": "PLN", "US": "USD"}
STATUSES = ("placed", "paid", "paid", "shipped", "shipped", "shipped", "cancelled")
ENDINGS = ("completed", "completed", "completed", "missed", "busy", "failed")
EDGE_PRICES = tuple(map(Decimal, ("0.00", "0.01", "0.10", "1.27", "1.28", "99999.99", "100000.00")))
EDGE_BIRTHS = (date(1900, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(2000, 2, 29), date(2008, 12, 31))
# The short ones have fewer than four characters, which a mask must not turn into the whole number.
EDGE_PHONES = ("", "1", "112", "1234", "+1 555 0100", "０１２３４５")
NOTES = (
    "leave at the door",
    "quote \" apostrophe ' backslash \\ comma, semicolon;",
    "tab\tnewline\nend",
    "Grüße, señor! Ça va?",
    "お急ぎください 🚚",
    "e\u0301 and é look the same",
    "مرحبا بالعالم",
    "",
    " blanks around ",
    "NULL",
)
NAMES = (
    "Ada Lovelace",
    "Zoë Ångström",
    "Nguyễn Văn An",
    "O'Brien, Sinéad",
    "山田 太郎",
    "Łukasz 🦊",
    "José Ñandú",
    "Al",
)


def seeded(*parts: object) -> Random:
    """Random choices that are the same every time for the same parts."""
    return Random("/".join(map(str, parts)))  # noqa: S311 (they must be foreseeable)


@dataclass(frozen=True)
class Life:
    """One key of one feed: who it is and where its chances come from."""

    seed: int
    example: str
    round: int
    index: int

    @cached_property
    def key(self) -> str:
        return key_text(self.example, self.round, index=self.index)

    @property
    def on_edge(self) -> bool:
        """Some of the first keys of a round take their values from the edges of what is allowed."""
        return self.index % 10 == 5 and self.index < EDGE_KEYS

    def chance(self, *parts: object) -> Random:
        """Random choices that depend on nothing but the seed, the key and these parts."""
        return seeded(self.seed, self.key, *parts)

    @cached_property
    def born(self) -> datetime:
        """Within the days of its round, in whole milliseconds; a round's first keys sit on both sides of midnight."""
        start = EPOCH + timedelta(days=self.round * ROUND_DAYS)
        somewhen = crc32(f"{self.seed}/{self.key}".encode()) % (ROUND_DAYS * DAY_MS)
        return start + timedelta(milliseconds={0: 0, 1: DAY_MS, 2: DAY_MS - 1}.get(self.index, somewhen))


def key_text(example: str, number: int, *, index: int) -> str:
    """The key of the index-th life of a round; now and then with letters outside ASCII."""
    return f"{example.removesuffix('s')}-{number}-{index}{'-é日' if index % 50 == 7 else ''}"


def order_row(life: Life, revision: int, other: int) -> Row:
    same, new = life.chance("order"), life.chance(revision, other)
    customer = key_text("customers", same.randint(0, life.round), index=same.randrange(1_000))
    return {
        "order_id": life.key,
        "customer_id": customer,
        "revision": revision,
        "status": new.choice(STATUSES),
        "price": new.choice(EDGE_PRICES) if life.on_edge else Decimal(new.randint(199, 49_999)) / 100,
        "currency": CURRENCIES[country_of(customer)],
        "email": f"{customer}@example.com",
        "note": None if new.random() < 0.5 else new.choice(NOTES),
        "created_at": life.born,
        "updated_at": life.born + timedelta(hours=revision, microseconds=new.randrange(10**6) * 10 + other),
    }


def call_row(life: Life, revision: int, other: int) -> Row:
    same = life.chance("call")
    seconds = 0 if life.index % 20 == 0 else same.randrange(1, 3_600)
    return {
        "call_id": life.key,
        "account_id": f"account-{same.randrange(500)}",
        "direction": same.choice(("inbound", "outbound")),
        "caller": _phone(life, same),
        "callee": _phone(life, same),
        "duration_seconds": seconds + other,
        "status": same.choice(ENDINGS),
        "started_at": life.born,
    }


def customer_row(life: Life, revision: int, other: int) -> Row:
    same, new = life.chance("customer"), life.chance(revision, other)
    return {
        "customer_id": life.key,
        "revision": revision,
        "name": same.choice(NAMES),
        "email": f"{life.key}.{revision}.{other}@example.com",
        "phone": _phone(life, new),
        "birth_date": new.choice(EDGE_BIRTHS) if life.on_edge else _birth(same),
        "country": country_of(life.key),
        "created_at": life.born,
    }


def country_of(customer_id: str) -> str:
    """Known from the id alone, so that an order's currency fits its customer's country."""
    return tuple(CURRENCIES)[crc32(customer_id.encode()) % len(CURRENCIES)]


def _birth(chance: Random) -> date | None:
    return None if chance.random() < 0.3 else date(1940, 1, 1) + timedelta(days=chance.randrange(25_000))


def _phone(life: Life, chance: Random) -> str | None:
    if life.on_edge:
        return chance.choice(EDGE_PHONES)
    return None if chance.random() < 0.2 else f"+{chance.randrange(10**9, 10**12)}"


CONTENT: Mapping[str, Callable[[Life, int, int], Row]] = {
    "orders": order_row,
    "calls": call_row,
    "customers": customer_row,
}
