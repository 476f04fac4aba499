"""librdkafka's settings in the Java client's words: nothing that guards a connection is left out in silence."""

from pathlib import Path
from typing import Any

import pytest

from headrace.kafka.java import Untranslatable, java_settings

FILES = {"ca.pem": "-----BEGIN CERTIFICATE-----", "key.pem": "-----BEGIN PRIVATE KEY-----", "own.pem": "own"}


def translated(**config: Any) -> dict[str, str]:
    given = {name.replace("_", "."): value for name, value in config.items()}
    return java_settings({"bootstrap.servers": "b:9092", **given}, read=FILES.__getitem__)


def test_a_plain_broker_needs_its_address_only() -> None:
    assert translated() == {"bootstrap.servers": "b:9092"}


def test_what_is_about_the_client_s_own_workings_is_left_out() -> None:
    found = translated(queued_max_messages_kbytes=1, error_cb=print, socket_timeout_ms=1, client_rack="a")
    assert found == {"bootstrap.servers": "b:9092", "client.rack": "a"}


@pytest.mark.parametrize("name", ["sasl_mechanism", "sasl_mechanisms"])
def test_a_login_becomes_jaas_with_quotes_escaped(name: str) -> None:
    found = translated(security_protocol="sasl_ssl", sasl_username="u", sasl_password='p"\\', **{name: "SCRAM-SHA-512"})
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    assert found == {
        "bootstrap.servers": "b:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{module} required username="u" password="p\\"\\\\";',
    }


def test_files_travel_as_their_contents() -> None:
    found = translated(
        security_protocol="SSL",
        ssl_ca_location="ca.pem",
        ssl_certificate_location="own.pem",
        ssl_key_location="key.pem",
        ssl_key_password="secret",
    )
    assert found == {
        "bootstrap.servers": "b:9092",
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": FILES["ca.pem"],
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": FILES["own.pem"],
        "ssl.keystore.key": FILES["key.pem"],
        "ssl.key.password": "secret",
    }


def test_a_pem_text_is_taken_as_it_is() -> None:
    assert translated(ssl_ca_pem="text")["ssl.truststore.certificates"] == "text"


def test_a_broker_s_name_is_checked_unless_told_otherwise() -> None:
    assert translated(ssl_endpoint_identification_algorithm="none")["ssl.endpoint.identification.algorithm"] == ""
    assert translated(ssl_endpoint_identification_algorithm="https")["ssl.endpoint.identification.algorithm"] == "https"
    assert "enable.ssl.certificate.verification" not in translated(enable_ssl_certificate_verification=True)


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"sasl_mechanism": "OAUTHBEARER", "oauth_cb": print}, "OAUTHBEARER"),
        ({"sasl_mechanism": "GSSAPI"}, "GSSAPI"),
        ({"oauth_cb": print}, "oauth_cb"),
        ({"enable_ssl_certificate_verification": False}, "enable.ssl.certificate.verification"),
        ({"ssl_keystore_location": "k.p12"}, "ssl.keystore.location"),
        ({"ssl_cipher_suites": "ALL"}, "ssl.cipher.suites"),
        ({"ssl_certificate_pem": "c", "ssl_key_pem": "-----BEGIN RSA PRIVATE KEY-----"}, "PKCS #8"),
    ],
)
def test_what_the_java_client_has_no_word_for_is_refused_by_name(config: dict[str, Any], named: str) -> None:
    given = {name if name == "oauth_cb" else name.replace("_", "."): value for name, value in config.items()}
    with pytest.raises(Untranslatable, match=named):
        java_settings({"bootstrap.servers": "b", **given}, read=FILES.__getitem__)


@pytest.mark.parametrize("location", ["folder", "probe"])
def test_certificates_that_are_no_file_are_refused_by_name(location: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(Untranslatable, match=r"ssl\.ca\.location is .*, which is no file"):
        java_settings({"ssl.ca.location": str(tmp_path / location)}, read=lambda path: Path(path).read_text())


def test_a_refusal_tells_no_secret() -> None:
    with pytest.raises(Untranslatable) as raised:
        translated(sasl_mechanism="GSSAPI", sasl_password="hidden", ssl_crl_location="also hidden")
    assert "hidden" not in str(raised.value)
