"""The address of a registry: what an Airflow connection says, as the settings of Confluent's client."""

import json
from typing import Any

import pytest
from airflow.sdk import Connection

from headrace.airflow import provider
from headrace.airflow.hooks import read_address
from headrace.errors import SettingsError
from headrace.registry.address import Address


def connection(**values: Any) -> Connection:
    extra = json.dumps(values.pop("extra", {}))
    return Connection(conn_id="c", conn_type=provider.CONNECTION_TYPE, extra=extra, **values)


URL = {"host": "https://registry.example.com/registry"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (URL, {}),
        ({"host": "registry.example.com"}, {"url": "http://registry.example.com"}),
        ({"host": "registry", "port": 8081, "schema": "https"}, {"url": "https://registry:8081"}),
        ({"host": "http://a:1,http://b:2"}, {"url": "http://a:1,http://b:2"}),
        ({"host": "http://a,http://b", "port": 80}, {"url": "http://a,http://b"}),
        (URL | {"port": 8443}, {"url": "https://registry.example.com:8443/registry"}),
        ({"host": "http://registry:8081", "port": 80}, {"url": "http://registry:8081"}),
        (URL | {"login": "ada", "password": "p:w"}, {"basic.auth.user.info": "ada:p:w"}),
        (URL | {"login": "ada"}, {"basic.auth.user.info": "ada:"}),
        (
            URL | {"login": "ada", "password": "p", "extra": {"token": "t"}},
            {
                "bearer.auth.credentials.source": "STATIC_TOKEN",
                "bearer.auth.token": "t",
                "bearer.auth.logical.cluster": "",
            },
        ),
        (
            URL | {"extra": {"ca_file": "ca.pem", "certificate_file": "c.pem", "key_file": "k.pem", "timeout": 5}},
            {
                "ssl.ca.location": "ca.pem",
                "ssl.certificate.location": "c.pem",
                "ssl.key.location": "k.pem",
                "timeout": 5,
            },
        ),
        (URL | {"extra": {"verify": False, "ca_file": "ca.pem"}}, {"ssl.ca.location": False}),
        (URL | {"extra": {"token": None, "ca_file": "", "verify": True, "unknown": 1}}, {}),
        (URL | {"extra": {"cache.capacity": 7}}, {"cache.capacity": 7}),
    ],
)
def test_a_connection_becomes_the_settings_of_confluents_client(given: dict[str, Any], expected: Any) -> None:
    assert read_address(connection(**given)).config() == {"url": URL["host"], "timeout": 30, **expected}


def test_a_connection_without_a_url_says_so() -> None:
    with pytest.raises(SettingsError, match="no URL is set"):
        read_address(connection())


def test_secrets_stay_out_of_what_is_printed() -> None:
    shown = repr(read_address(connection(**URL, login="ada", password="hidden1", extra={"token": "hidden2"})))
    assert "ada" in shown
    assert "hidden" not in shown


def test_the_form_has_a_field_for_every_part_of_an_address() -> None:
    address = read_address(connection(**URL))
    assert set(provider.FIELDS) == set(vars(address)) - {"url", "login", "password", "more"}


def test_a_password_in_a_url_is_not_told() -> None:
    address = Address("https://ada:p@ss:w@a.example.com/registry,https://b.example.com")
    assert address.shown == "https://a.example.com/registry,https://b.example.com"
