"""Provenance: who signs, what is believed, and what is a forgery."""

import hashlib

import pytest

from headrace import provenance
from headrace.errors import ForgedError, SettingsError
from headrace.provenance import IMPORT, REPLAY, Header, Origin, Provenance, SigningKey

KEY = SigningKey(b"secret")
ORIGIN = Origin("kUO3sbWMQGqz_ab-9A", 2, 77)


def read(*headers: Header, key: bytes | None = b"k", value: bytes | None = b"v", by: SigningKey = KEY) -> Provenance:
    return provenance.read(headers, key=key, value=value, signing=by)


def replay(key: bytes | None = b"k", value: bytes | None = b"v") -> Header:
    return provenance.replayed(ORIGIN, key=key, value=value, signing=KEY)


def test_what_is_signed_is_read_again() -> None:
    imported = provenance.imported("spring.2026", key=b"k", value=b"v", signing=KEY)
    assert read(replay()) == Provenance(ORIGIN)
    assert read(imported) == Provenance(import_id="spring.2026")
    assert read(("trace", b"x"), imported, replay()) == Provenance(ORIGIN, "spring.2026")
    assert read(("trace", None)) == Provenance()


@pytest.mark.parametrize("content", [None, b""])
def test_null_is_not_empty(content: bytes | None) -> None:
    other = b"" if content is None else None
    assert read(replay(value=content), value=content) == Provenance(ORIGIN)
    with pytest.raises(ForgedError, match="headrace-replay is not signed"):
        read(replay(value=content), value=other)
    with pytest.raises(ForgedError):
        read(replay(key=content), key=other)


def test_a_header_moved_to_another_record_is_a_forgery() -> None:
    with pytest.raises(ForgedError):
        read(replay(), value=b"other")
    with pytest.raises(ForgedError):
        read(replay(), key=b"other")


@pytest.mark.parametrize("text", [None, b"", b":", b"x", b"\xff\x00:a/1/2", b"00:a/1/2"])
def test_a_header_that_nobody_signed_is_a_forgery(text: bytes | None) -> None:
    with pytest.raises(ForgedError):
        read((REPLAY, text))


def test_an_import_cannot_be_passed_off_as_a_replay_nor_a_payload_be_changed() -> None:
    name, text = replay()
    assert text is not None
    with pytest.raises(ForgedError):
        read((IMPORT, text))
    with pytest.raises(ForgedError):
        read((name, text[:-2] + b"78"))


def test_a_header_that_stands_there_twice_is_a_forgery() -> None:
    with pytest.raises(ForgedError, match="says twice"):
        read(replay(), replay())


def test_a_former_key_is_believed_and_no_longer_signs() -> None:
    turned = SigningKey.parse("new  secret\n")
    assert (turned.secret, turned.former) == (b"new", (b"secret",))
    assert read(replay(), by=turned) == Provenance(ORIGIN)
    renewed = provenance.replayed(ORIGIN, key=b"k", value=b"v", signing=turned)
    with pytest.raises(ForgedError):
        read(renewed)
    with pytest.raises(SettingsError, match="headrace_signing"):
        SigningKey.parse(" ")


@pytest.mark.parametrize("secret", [b"short", b"x" * 64, b"longer than a block" * 9])
def test_the_pads_make_the_same_signature_out_of_plain_hashes(secret: bytes) -> None:
    inner, outer = provenance.pads(secret)
    signed = provenance.message(REPLAY, str(ORIGIN), key=b"k", value=None)
    made = hashlib.sha256(outer + hashlib.sha256(inner + signed).digest()).hexdigest()
    _, text = provenance.replayed(ORIGIN, key=b"k", value=None, signing=SigningKey(secret))
    assert text == f"{made}:{ORIGIN}".encode()


def test_a_key_is_not_told() -> None:
    assert "secret" not in repr(SigningKey(b"secret", (b"secret",)))
