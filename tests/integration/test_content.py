"""Content: rows that differ in nothing but where their nulls stand are told apart."""

from collections.abc import Callable, Mapping
from typing import Any

from workshop import Record, Workshop

TEXT = ["null", "string"]


def field(name: str, type_: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", type_], "default": None}


PLACE = {
    "type": "record",
    "name": "Place",
    "fields": [field("town", "string"), field("street", "string"), field("lines", {"type": "array", "items": TEXT})],
}
FIELDS = [
    {"name": "id", "type": "string"},
    field("home", "string"),
    field("mobile", "string"),
    field("tags", {"type": "array", "items": TEXT}),
    field("marks", {"type": "map", "values": TEXT}),
    field("place", PLACE),
    field("stops", {"type": "array", "items": ["null", "Place"]}),
]
ULM = {"town": "ulm", "street": None, "lines": None}
NOWHERE = {"town": None, "street": None, "lines": None}
PAIRS: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "which column": ({"home": "555"}, {"mobile": "555"}),
    "an empty list": ({"tags": []}, {}),
    "an element that is null": ({"tags": ["x", None]}, {"tags": ["x"]}),
    "where an element is null": ({"tags": [None, "x"]}, {"tags": ["x", None]}),
    "a struct of nulls": ({"place": NOWHERE}, {}),
    "which member": ({"place": ULM}, {"place": {**NOWHERE, "street": "ulm"}}),
    "an empty list inside": ({"place": {**ULM, "lines": []}}, {"place": ULM}),
    "a struct of nulls in a list": ({"stops": [NOWHERE]}, {"stops": [None]}),
    "how members are divided": ({"stops": [ULM, NOWHERE]}, {"stops": [NOWHERE, ULM]}),
    "an empty map": ({"marks": {}}, {}),
    "a key without a value": ({"marks": {"a": "b"}}, {"marks": {"a": None, "b": None}}),
}


def rows(side: int) -> list[Record]:
    nothing = {each["name"]: None for each in FIELDS}
    return [Record({**nothing, "id": name, **pair[side]}) for name, pair in PAIRS.items()]


def test_what_differs_only_in_where_nulls_stand_is_no_duplicate(workshop: Callable[..., Workshop]) -> None:
    shop = workshop({"key": ["id"], "merge": "append"}, fields=FIELDS)
    assert shop.merge(*rows(0), *rows(0))["duplicates"] == len(PAIRS)
    before = shop.clean()
    assert shop.merge(*rows(1), *rows(0))["quarantined"] == len(PAIRS)
    assert shop.quarantine() == {(0, 2 * len(PAIRS) + number): "conflict" for number in range(len(PAIRS))}
    assert shop.clean() == before


def test_a_row_whose_nulls_moved_counts_as_updated(workshop: Callable[..., Workshop]) -> None:
    shop = workshop({"key": ["id"], "topic": {"partitions": 1}}, fields=FIELDS)
    assert shop.merge(*rows(0))["inserted"] == len(PAIRS)
    assert shop.merge(*rows(1))["updated"] == len(PAIRS)
    assert shop.merge(*rows(1))["duplicates"] == len(PAIRS)


def test_the_order_of_a_maps_entries_and_the_columns_of_a_new_version_say_nothing(
    workshop: Callable[..., Workshop],
) -> None:
    said = {"id": "a", **dict.fromkeys(each["name"] for each in FIELDS[1:]), "place": ULM}
    old = workshop({"key": ["id"], "merge": "append"}, fields=FIELDS)
    old.merge(Record({**said, "marks": {"x": "1", "y": "2"}}))
    renamed = {"name": "city", "type": TEXT, "default": None, "aliases": ["town"]}
    place = {**PLACE, "fields": [*PLACE["fields"][1:], renamed, field("floor", "string")]}
    phone = {**field("phone", "string"), "aliases": ["home"]}
    other = [each for each in FIELDS if each["name"] not in ("home", "place")]
    new = old.changed(field("added", "string"), *other[:-1], field("place", place), other[-1], phone)
    there = {**said, "marks": {"y": "2", "x": "1"}, "phone": None, "added": None}
    accounts = new.merge(Record({**there, "place": {"city": "ulm", "street": None, "lines": None, "floor": None}}))
    assert (accounts["duplicates"], new.quarantine()) == (1, {})
