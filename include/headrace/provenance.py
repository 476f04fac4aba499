"""Provenance: the signed header that tells what a replayed or an imported record is, and so how it ranks.

The header's value is `<signature>:<payload>`, all ASCII. The payload is `<topic id>/<partition>/<offset>` of the record
that was replayed, or an import's id. The signature is the hex HMAC-SHA256, under the key in the Airflow connection
`headrace_signing`, of the header's name, the payload and the SHA-256 of key and value, so that no other record can
carry it.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from headrace.errors import ForgedError, SettingsError

REPLAY, IMPORT = "headrace-replay", "headrace-import"
PREFIX = "headrace-"
"""What our headers' names begin with."""

ABSENT = "-"
"""Stands for the hash of a key or value that is null, which is not the same as empty."""

PAYLOADS = {
    REPLAY: re.compile(r"[!-~]{1,400}/[0-9]{1,9}/[0-9]{1,18}"),
    IMPORT: re.compile(r"[A-Za-z0-9_.-]{1,100}"),
}
"""What a header may say, in the words that both Python and Java's expressions know; a topic's id may hold a slash."""
BLOCK = 64
"""SHA-256 works in blocks of so many bytes, and HMAC pads its key to one."""

Header = tuple[str, bytes | None]


@dataclass(frozen=True)
class SigningKey:
    """The key that signs, and former ones, whose signatures stay good."""

    secret: bytes = field(repr=False)
    former: tuple[bytes, ...] = field(default=(), repr=False)

    @classmethod
    def parse(cls, text: str) -> "SigningKey":
        """The keys in one text, the one that signs first, parted by blanks."""
        keys = [bytes(each, "utf-8") for each in text.split()]
        if not keys:
            raise SettingsError("the signing key is blank. Set the password of the connection headrace_signing.")
        return cls(keys[0], tuple(keys[1:]))

    @property
    def all(self) -> tuple[bytes, ...]:
        return (self.secret, *self.former)


@dataclass(frozen=True)
class Origin:
    """The coordinates of the record that was replayed, as its topic numbers them."""

    topic_id: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic_id}/{self.partition}/{self.offset}"

    @classmethod
    def parse(cls, text: str) -> "Origin":
        topic_id, partition, offset = text.rsplit("/", 2)
        return cls(topic_id, int(partition), int(offset))


@dataclass(frozen=True)
class Provenance:
    """What a record's headers prove: neither, one or both, for an imported record may be replayed."""

    origin: Origin | None = None
    import_id: str | None = None


def replayed(origin: Origin, *, key: bytes | None, value: bytes | None, signing: SigningKey) -> Header:
    """The header that a replayed record carries."""
    return _header(REPLAY, str(origin), key=key, value=value, signing=signing)


def imported(import_id: str, *, key: bytes | None, value: bytes | None, signing: SigningKey) -> Header:
    """The header that an imported record carries."""
    return _header(IMPORT, import_id, key=key, value=value, signing=signing)


def read(headers: Iterable[Header], *, key: bytes | None, value: bytes | None, signing: SigningKey) -> Provenance:
    """What the headers prove; one that is not signed, or stands there twice, proves a forgery."""
    payloads = dict(_payloads(headers, key=key, value=value, signing=signing))
    origin = Origin.parse(payloads[REPLAY]) if REPLAY in payloads else None
    return Provenance(origin, payloads.get(IMPORT))


def is_ours(header: Header) -> bool:
    """Whether a header is one that only we may set."""
    return header[0] in PAYLOADS


def message(name: str, payload: str, *, key: bytes | None, value: bytes | None) -> bytes:
    """What is signed."""
    return "\n".join([name, payload, _digest(key), _digest(value)]).encode()


def pads(secret: bytes) -> tuple[bytes, bytes]:
    """The two blocks that HMAC puts before its two hashes, for an engine that has hashes but no HMAC."""
    block = (hashlib.sha256(secret).digest() if len(secret) > BLOCK else secret).ljust(BLOCK, b"\0")
    return bytes(each ^ 0x36 for each in block), bytes(each ^ 0x5C for each in block)


def _header(name: str, payload: str, *, key: bytes | None, value: bytes | None, signing: SigningKey) -> Header:
    assert PAYLOADS[name].fullmatch(payload), f"{payload} is no payload of {name}"
    signature = _signature(signing.secret, message(name, payload, key=key, value=value))
    return name, f"{signature}:{payload}".encode("ascii")


def _payloads(
    headers: Iterable[Header], *, key: bytes | None, value: bytes | None, signing: SigningKey
) -> Iterable[tuple[str, str]]:
    ours: Sequence[Header] = [header for header in headers if is_ours(header)]
    if len({name for name, _ in ours}) < len(ours):
        raise ForgedError("a record says twice where it comes from: only one such header can be ours.")
    for name, text in ours:
        signature, _, payload = (text or b"").decode("ascii", "replace").partition(":")
        signed = message(name, payload, key=key, value=value)
        genuine = any(
            hmac.compare_digest(signature.encode(), _signature(each, signed).encode()) for each in signing.all
        )
        if not PAYLOADS[name].fullmatch(payload) or not genuine:
            raise ForgedError(f"a record's header {name} is not signed with the key in headrace_signing.")
        yield name, payload


def _signature(secret: bytes, signed: bytes) -> str:
    return hmac.new(secret, signed, hashlib.sha256).hexdigest()


def _digest(content: bytes | None) -> str:
    return ABSENT if content is None else hashlib.sha256(content).hexdigest()
