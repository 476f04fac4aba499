"""Reconcile cries no wolf: random feeds of all types, with random records, agree from their topics to a warehouse."""

from collections.abc import Callable

import pytest
from random_feeds import RandomFeed, random_feed
from workshop import Record, Workshop

from headrace.feed import SchemaType

Make = Callable[..., Workshop]
SEEDS = range(4)
"""A test's name tells its seed: the same one makes the same feed and the same records."""


def shop_of(workshop: Make, language: SchemaType, feed: RandomFeed) -> Workshop:
    declared = {"key": ["id"], "order": ["revision"], "warehouses": {"finance": {"flatten": feed.records}}}
    if language == "JSON":
        fields = {name: each.schema for name, each in feed.fields.items()}
        named = {"id": {"type": "string"}, "revision": {"type": "integer"}, **fields}
        return workshop(declared, json_schema={"type": "object", "required": ["id"], "properties": named})
    listed = [{"name": name, "type": each.schema} for name, each in feed.fields.items()]
    return workshop(declared, fields=[{"name": "id", "type": "string"}, {"name": "revision", "type": "long"}, *listed])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("language", ["AVRO", "JSON"])
def test_a_random_feed_agrees_the_whole_way(workshop: Make, language: SchemaType, seed: int) -> None:
    feed = random_feed(language, seed)
    shop = shop_of(workshop, language, feed)
    for numbers in (range(20), range(12, 24)):
        rows = [Record(feed.row(f"r{number}")) for number in numbers]
        shop.merge(*rows, Record(None, key=f"r{numbers[0]}"))
        assert shop.quarantine() == {}
        shop.load()
    assert shop.reconcile(full=False).figures.rows == 22
    for store in ("archive", "clean"):
        done = shop.prove(store)
        assert done.agrees, done.differences
    assert len(shop.clean()) == 22
