"""A record's Kafka key, as producers of the feed make it: live records and imported ones meet in one partition."""

import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from headrace.history.avro_key import Octets
from headrace.history.target import Target


def key_writer(keys: Sequence[Target]) -> Callable[[Mapping[str, Any]], bytes]:
    """A record's Kafka key: the text of its key field, or a JSON object of several, in the feed's order."""
    if len(keys) > 1:
        return lambda row: _json_key({target.name: target.key(row[target.name]) for target in keys})
    name, key = keys[0].name, keys[0].key
    return lambda row: _text_key(key(row[name]))


def _text_key(value: Any) -> bytes:
    if isinstance(value, bytes):
        return bytes(value)
    if isinstance(value, bool):
        return b"true" if value else b"false"
    return (format(value, "f") if isinstance(value, Decimal) else str(value)).encode()


def _json_key(values: Mapping[str, Any]) -> bytes:
    members = (f"{json.dumps(name)}:{_json_member(value)}" for name, value in values.items())
    return ("{" + ",".join(members) + "}").encode()


def _json_member(value: Any) -> str:
    if isinstance(value, Octets):
        return json.dumps(value.base64())
    return format(value, "f") if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)
