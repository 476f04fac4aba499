"""Who may do what in the registry: what changes it, whose page asked, and how long a password is believed."""

import asyncio
import base64

import pytest

from headrace.registry import access
from headrace.registry.access import TRUSTED_SECONDS, Tokens, Unauthorized

OURS = frozenset({"airflow.example.com"})


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/subjects", None),
        ("HEAD", "/subjects", None),
        ("OPTIONS", "/subjects/a/versions", None),
        ("POST", "/subjects/a", None),
        ("POST", "/subjects/a/", None),
        ("POST", "/compatibility/subjects/a/versions", None),
        ("POST", "/compatibility/subjects/a/versions/latest", None),
        ("POST", "/subjects/a/versions", "POST"),
        ("POST", "/subjects/a/versions/", "POST"),
        ("POST", "/subjects/a/b", "POST"),
        ("POST", "/anything", "POST"),
        ("POST", "/", None),
        ("PUT", "/config", "PUT"),
        ("PUT", "/mode/a", "PUT"),
        ("PATCH", "/config", "PUT"),
        ("DELETE", "/subjects/a", "DELETE"),
        ("DELETE", "/compatibility/subjects/a/versions", "DELETE"),
        ("BREW", "/subjects/a", "PUT"),
    ],
)
def test_only_what_is_known_to_read_takes_no_permission(method: str, path: str, expected: str | None) -> None:
    assert access.change(method, path) == expected


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, False),
        ({"sec-fetch-site": "same-origin"}, False),
        ({"sec-fetch-site": "none"}, False),
        ({"sec-fetch-site": "same-site"}, True),
        ({"sec-fetch-site": "cross-site"}, True),
        ({"sec-fetch-site": "cross-site", "origin": "https://airflow.example.com"}, True),
        ({"origin": "https://airflow.example.com"}, False),
        ({"origin": "https://evil.example.com"}, True),
        ({"origin": "https://airflow.example.com.evil.com"}, True),
        ({"origin": "null"}, True),
    ],
)
def test_a_browser_tells_whose_page_asked(headers: dict[str, str], expected: bool) -> None:
    assert access.is_foreign(headers, hosts=OURS) is expected


def test_a_password_may_hold_colons() -> None:
    encoded = base64.b64encode("zoë:p:q:".encode()).decode()
    assert access.name_and_password(encoded) == ("zoë", "p:q:")


@pytest.mark.parametrize("credentials", ["", "%%%", base64.b64encode(b"nobody").decode(), "//79", "OnB3"])
def test_half_of_the_credentials_is_none(credentials: str) -> None:
    with pytest.raises(Unauthorized):
        access.name_and_password(credentials)


class Exchanges:
    """A stand-in for the network: an auth manager that knows one password."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.now = 0.0

    async def __call__(self, name: str, password: str) -> str:
        self.asked.append((name, password))
        if password != "right":
            raise Unauthorized("wrong")
        return f"token {len(self.asked)}"


def test_a_verified_password_is_believed_for_a_minute_and_then_asked_about_again() -> None:
    exchanges = Exchanges()
    tokens = Tokens(exchanges, clock=lambda: exchanges.now)
    assert asyncio.run(tokens.get("ada", "right")) == asyncio.run(tokens.get("ada", "right")) == "token 1"
    assert asyncio.run(tokens.get("bob", "right")) == "token 2"
    exchanges.now = TRUSTED_SECONDS
    assert asyncio.run(tokens.get("ada", "right")) == "token 3"


def test_a_wrong_password_is_refused_each_time_also_beside_a_right_one() -> None:
    exchanges = Exchanges()
    tokens = Tokens(exchanges)
    asyncio.run(tokens.get("ada", "right"))
    for _ in range(2):
        with pytest.raises(Unauthorized):
            asyncio.run(tokens.get("ada", "wrong"))
    assert len(exchanges.asked) == 3


def test_no_password_is_kept() -> None:
    tokens = Tokens(Exchanges())
    asyncio.run(tokens.get("ada", "right"))
    assert "right" not in repr(vars(tokens))
