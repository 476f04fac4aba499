"""S3 from an AWS connection, as boto3, PyIceberg and Spark are told of it."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs

import boto3
import pytest
from botocore.config import Config

from headrace.airflow import connections
from headrace.database import Database
from headrace.errors import ServiceAway, SettingsError
from headrace.lake import Lake, catalog_properties, spark_properties
from headrace.storage import Encryption, Role, Storage, botocore_settings, iceberg_properties, pyiceberg_properties

ROLE = "arn:aws:iam::123456789012:role/headrace"
KEYS = {"login": "AKIAEXAMPLE", "password": "not-a-secret"}
Read = Callable[..., Storage]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Read:
    """Reads an AWS connection as Airflow keeps it."""

    def storage(extra: dict[str, Any] | None = None, **connection: str) -> Storage:
        made = json.dumps({"conn_type": "aws", **connection, "extra": extra or {}})
        monkeypatch.setenv("AIRFLOW_CONN_HEADRACE_S3", made)
        return connections.storage()

    return storage


def test_keys_endpoint_and_region_reach_everybody(read: Read) -> None:
    storage = read({"endpoint_url": "http://s3.local:9000", "region_name": "eu-west-1"}, **KEYS)
    python, java = pyiceberg_properties(storage), iceberg_properties(storage)
    for told in (python, java):
        assert told["s3.endpoint"] == "http://s3.local:9000"
        assert (told["s3.access-key-id"], told["s3.secret-access-key"]) == ("AKIAEXAMPLE", "not-a-secret")
    assert (python["s3.region"], java["client.region"]) == ("eu-west-1", "eu-west-1")
    assert java["s3.path-style-access"] == "true"
    client = storage.client()
    assert (client.meta.endpoint_url, client.meta.region_name) == ("http://s3.local:9000", "eu-west-1")


def test_the_endpoint_of_s3_alone_comes_before_the_one_of_all_services(read: Read) -> None:
    extra = {"endpoint_url": "http://all.local", "service_config": {"s3": {"endpoint_url": "http://s3.local"}}}
    assert read(extra, **KEYS).endpoint == "http://s3.local"


def test_without_keys_the_machines_own_role_is_used(read: Read) -> None:
    storage = read({"region_name": "eu-west-1"})
    assert pyiceberg_properties(storage).keys() == {"s3.region", "s3.connect-timeout", "s3.request-timeout"}
    assert iceberg_properties(storage) == {"client.region": "eu-west-1"}


def test_a_session_token_reaches_everybody(read: Read) -> None:
    storage = read({"aws_session_token": "lent"}, **KEYS)
    assert pyiceberg_properties(storage)["s3.session-token"] == "lent"
    assert iceberg_properties(storage)["s3.session-token"] == "lent"


def test_a_role_is_assumed_by_each_with_the_machines_own_credentials(read: Read) -> None:
    kwargs = {"RoleSessionName": "orders", "DurationSeconds": 7200}
    storage = read({"role_arn": ROLE, "assume_role_kwargs": kwargs, "region_name": "eu-west-1"})
    assert storage.role == Role(ROLE, "orders", 7200)
    python, java = pyiceberg_properties(storage), iceberg_properties(storage)
    assert (python["s3.role-arn"], python["s3.role-session-name"]) == (ROLE, "orders")
    assert java["client.factory"].endswith("AssumeRoleAwsClientFactory")
    assert java["client.assume-role.arn"] == ROLE
    assert java["client.assume-role.timeout-sec"] == "7200"
    assert storage.session is not None, "boto3 renews through Airflow's own session"


def test_a_profile_is_read_for_those_who_know_none(read: Read, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "credentials").write_text("[lake]\naws_access_key_id = AKIALAKE\naws_secret_access_key = of-the-lake\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    storage = read({"profile_name": "lake"})
    assert (storage.access_key, storage.secret_key) == ("AKIALAKE", "of-the-lake")


STS = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
<AccessKeyId>ASIALENT</AccessKeyId><SecretAccessKey>lent-secret</SecretAccessKey><SessionToken>lent-token</SessionToken>
<Expiration>2100-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"""


@pytest.fixture
def sts() -> Iterator[tuple[str, list[dict[str, list[str]]]]]:
    """An address that lends credentials as AWS does, and what it was asked for."""
    asked: list[dict[str, list[str]]] = []

    class Lender(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            asked.append(parse_qs(body))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(STS.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Lender)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()


def test_a_role_that_only_airflow_can_assume_is_lent_to_the_others(read: Read, sts: Any) -> None:
    address, asked = sts
    extra = {
        "role_arn": ROLE,
        "assume_role_kwargs": {"ExternalId": "ours"},
        "region_name": "eu-west-1",
        "service_config": {"sts": {"endpoint_url": address}},
    }
    storage = read(extra, **KEYS)
    assert (asked[0]["RoleArn"], asked[0]["ExternalId"]) == ([ROLE], ["ours"])
    for told in (pyiceberg_properties(storage), iceberg_properties(storage)):
        assert (told["s3.access-key-id"], told["s3.session-token"]) == ("ASIALENT", "lent-token")
        assert "s3.role-arn" not in told, "nobody assumes it a second time"
    assert storage.role is None
    signed = storage.client().generate_presigned_url("get_object", Params={"Bucket": "lake", "Key": "k"})
    assert "ASIALENT" in signed
    assert "lent" not in repr(storage).replace("ASIALENT", "")


def test_aws_that_lends_nothing_is_told(read: Read, sts: Any) -> None:
    config = {"retries": {"total_max_attempts": 1}, "connect_timeout": 1}
    away = {"sts": {"endpoint_url": "http://127.0.0.1:1"}}
    with pytest.raises(ServiceAway, match="headrace_s3: AWS, asked for credentials, does not answer"):
        read({"role_arn": ROLE, "service_config": away, "config_kwargs": config, "region_name": "eu-west-1"}, **KEYS)
    with pytest.raises(SettingsError, match="headrace_s3: AWS gives us no credentials"):
        read({"profile_name": "nobody"})


@pytest.mark.parametrize(
    ("asked", "java"),
    [
        ({"ServerSideEncryption": "AES256"}, {"s3.sse.type": "s3"}),
        ({"ServerSideEncryption": "aws:kms"}, {"s3.sse.type": "kms"}),
        ({"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "k-1"}, {"s3.sse.type": "kms", "s3.sse.key": "k-1"}),
        ({"ServerSideEncryption": "aws:kms:dsse", "SSEKMSKeyId": "k"}, {"s3.sse.type": "dsse-kms", "s3.sse.key": "k"}),
    ],
)
def test_encryption_is_told_to_boto3_and_to_spark(read: Read, asked: dict[str, str], java: dict[str, str]) -> None:
    storage = read({"service_config": {"s3": {"extra_args": asked}}}, **KEYS)
    assert storage.encryption is not None
    assert storage.encryption.arguments() == asked
    assert java.items() <= iceberg_properties(storage).items()


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"ServerSideEncryption": "kms"}, "is 'kms'; it is one of AES256, aws:kms, aws:kms:dsse"),
        ({"SSEKMSKeyId": "k-1"}, "is None; it is one of"),
        ({"ServerSideEncryption": "AES256", "SSEKMSKeyId": "k-1"}, "AES256 uses none"),
        ({"ACL": "public-read"}, "has ACL; only SSEKMSKeyId and ServerSideEncryption are known"),
    ],
)
def test_an_encryption_that_is_none_is_refused(read: Read, asked: dict[str, str], told: str) -> None:
    with pytest.raises(SettingsError, match=rf"headrace_s3: service_config\.s3\.extra_args.*{told}"):
        read({"service_config": {"s3": {"extra_args": asked}}}, **KEYS)


def test_silence_is_bounded_unless_the_connection_says_otherwise(read: Read) -> None:
    settings = botocore_settings(read({"config_kwargs": {"read_timeout": 7}}, **KEYS))
    assert (settings["connect_timeout"], settings["read_timeout"]) == (5, 7)
    assert Config(**settings).retries == {"mode": "standard", "total_max_attempts": 4}


def test_a_bucket_is_named_in_the_address_as_the_connection_says(read: Read) -> None:
    extra = {"endpoint_url": "http://s3.local", "config_kwargs": {"s3": {"addressing_style": "virtual"}}}
    storage = read(extra, **KEYS)
    assert pyiceberg_properties(storage)["s3.force-virtual-addressing"] == "true"
    assert "s3.path-style-access" not in iceberg_properties(storage)
    address = storage.client().generate_presigned_url("get_object", Params={"Bucket": "lake", "Key": "k"})
    assert address.startswith("http://lake.s3.local/k?")


def test_another_setting_of_s3_leaves_the_address_as_it_is(read: Read) -> None:
    extra = {"endpoint_url": "http://s3.local", "config_kwargs": {"s3": {"payload_signing_enabled": False}}}
    settings = botocore_settings(read(extra, **KEYS))
    assert settings["s3"] == {"addressing_style": "path", "payload_signing_enabled": False}


def test_certificates_to_trust_reach_boto3(read: Read) -> None:
    assert read({"verify": False}, **KEYS).verify is False
    assert read({"verify": "/etc/ssl/lake.pem"}, **KEYS).verify == "/etc/ssl/lake.pem"


def test_a_connection_that_is_not_there_is_told_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_HEADRACE_KAFKA", json.dumps({"conn_type": "kafka", "extra": {}}))
    with pytest.raises(SettingsError, match=r"headrace_kafka: config\['bootstrap.servers'\] must be provided"):
        connections.kafka()


def test_tls_to_the_catalog_is_told_to_pyiceberg_and_to_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"sslmode": "verify-full", "sslrootcert": "/etc/ca.pem", "another": "setting"}
    told = {"conn_type": "postgres", "host": "db", "schema": "catalog", "login": "user", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_HEADRACE_CATALOG", json.dumps(told))
    lake = Lake("headrace", "s3://lake", connections.database("headrace_catalog"), Storage())
    for uri in (catalog_properties(lake)["uri"], spark_properties(lake)["spark.sql.catalog.headrace.uri"]):
        assert "sslmode=verify-full" in uri
        assert "another" not in uri


def test_no_secret_is_shown() -> None:
    storage = Storage("http://s3", "AKIAEXAMPLE", "the-secret", session_token="the-token", session=boto3.Session)
    lake = Lake("headrace", "s3://lake", Database("db", 5432, "catalog", "user", "the-password"), storage)
    for secret in ("the-secret", "the-token", "the-password"):
        assert secret not in repr(lake)


def test_the_catalog_gives_up_in_a_bounded_time() -> None:
    lake = Lake("headrace", "s3://lake", Database("db", 5432, "catalog", "user", "p/w"), Storage())
    uri = catalog_properties(lake)["uri"]
    assert uri.startswith("postgresql+psycopg2://user:p%2Fw@db:5432/catalog?connect_timeout=10&tcp_user_timeout=30000")
    assert spark_properties(lake)["spark.sql.catalog.headrace.client.region"] == "us-east-1"


def test_encryption_is_part_of_what_a_storage_is() -> None:
    assert Storage(encryption=Encryption("AES256")) != Storage()
