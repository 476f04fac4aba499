"""What a request to the registry does, who sends it, and whether it may be trusted; knows no web framework."""

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from headrace.errors import HeadraceError

Change = Literal["POST", "PUT", "DELETE"]
"""A change of the registry: something is created, edited or deleted."""

TRUSTED_SECONDS = 60
"""How long a verified password is good for without asking again: clients send it with each request."""

Exchange = Callable[[str, str], Awaitable[str]]
"""Gives a token for a name and a password, or raises Unauthorized."""


class Unauthorized(HeadraceError):
    """Nobody is signed in, or not with these credentials."""


def change(method: str, path: str) -> Change | None:
    """The change that a request makes; None if it only reads, as look-ups and compatibility checks do though posted."""
    if method in ("GET", "HEAD", "OPTIONS"):
        return None
    if method == "POST":
        match path.strip("/").split("/"):
            case [""] | ["subjects", _] | ["compatibility", *_]:
                return None
        return "POST"
    return "DELETE" if method == "DELETE" else "PUT"


def is_foreign(headers: Mapping[str, str], *, hosts: frozenset[str]) -> bool:
    """Whether another site's page sent this request: browsers tell, and a page cannot change what they tell."""
    if site := headers.get("sec-fetch-site"):
        return site not in ("same-origin", "none")
    # Over plain HTTP browsers tell the origin only; what is no browser tells nothing.
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc not in hosts


def name_and_password(credentials: str) -> tuple[str, str]:
    """The two that an `Authorization: Basic` header holds."""
    try:
        name, colon, password = base64.b64decode(credentials, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise Unauthorized("The Basic credentials are not a name and a password in Base64.") from error
    if not (name and colon):
        raise Unauthorized("The Basic credentials lack a name or a password.")
    return name, password


@dataclass
class Tokens:
    """Tokens got for names and passwords, kept briefly under a salted digest; no password is ever kept."""

    exchange: Exchange
    clock: Callable[[], float] = time.monotonic
    _salt: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    _kept: dict[bytes, tuple[str, float]] = field(default_factory=dict, repr=False)

    async def get(self, name: str, password: str) -> str:
        """The token of a name and a password; only verified ones are kept, so a wrong one is asked about each time."""
        now = self.clock()
        self._kept = {digest: kept for digest, kept in self._kept.items() if kept[1] > now}
        digest = hmac.digest(self._salt, f"{name}\0{password}".encode(), hashlib.sha256)
        if digest not in self._kept:
            token = await self.exchange(name, password)
            self._kept[digest] = (token, now + TRUSTED_SECONDS)
            return token
        return self._kept[digest][0]
