"""The page on connections: every example is read as Airflow would, and taken by the client that it is for."""

import inspect
import json
import re
import socket
import time
from pathlib import Path
from typing import Any

import pytest
import redshift_connector
from broker import certificates
from confluent_kafka.admin import AdminClient

from headrace import away, layout
from headrace.airflow import connections
from headrace.errors import SettingsError
from headrace.kafka import span, topic
from headrace.settings import Settings
from headrace.storage import ATTEMPTS, CONNECT_S, READ_S
from headrace.warehouse import Warehouse
from headrace.warehouses import redshift
from headrace.warehouses.load import Load

PAGE = (Path(__file__).parents[2] / "docs" / "connections.md").read_text(encoding="utf-8")
EXAMPLES = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
KAFKA = [each["extra"] for each in EXAMPLES if each["conn_type"] == "kafka"]
AWS = [each for each in EXAMPLES if each["conn_type"] == "aws"]
REDSHIFT = [each for each in EXAMPLES if each["conn_type"] == "redshift"]


@pytest.mark.parametrize("extra", KAFKA, ids=lambda extra: extra["bootstrap.servers"].partition(",")[0])
def test_every_kafka_example_makes_a_client(
    extra: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted, keys = certificates(tmp_path)
    files = {"ssl.ca.location": trusted, "ssl.certificate.location": keys, "ssl.key.location": keys}
    here = {**extra, **{name: str(path) for name, path in files.items() if name in extra}, "log_level": 0}
    monkeypatch.setenv("AIRFLOW_CONN_HEADRACE_KAFKA", json.dumps({"conn_type": "kafka", "extra": here}))
    config = dict(connections.kafka())
    assert here.items() <= config.items(), "every setting reaches the client"
    if extra.get("sasl.mechanism") == "OAUTHBEARER":
        assert callable(config["oauth_cb"]), "the provider signs tokens for it"
        config["oauth_cb"] = lambda _: ("a token", 4102444800.0)
    AdminClient(config)


@pytest.mark.parametrize("connection", AWS, ids=lambda each: ",".join(each["extra"]))
def test_every_aws_example_is_read(connection: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_HEADRACE_S3", json.dumps(connection))
    storage = connections.storage()
    assert storage.region == connection["extra"]["region_name"]
    assert (storage.role is not None) == ("role_arn" in connection["extra"])
    assert (storage.encryption is not None) == ("service_config" in connection["extra"])


@pytest.mark.parametrize("connection", REDSHIFT, ids=lambda each: ",".join(each["extra"]))
def test_every_redshift_example_is_read_and_taken_by_the_driver(
    connection: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_HEADRACE_S3", json.dumps(AWS[0]))
    monkeypatch.setenv("AIRFLOW_CONN_HEADRACE_WAREHOUSE_INSIGHTS", json.dumps(connection))
    client = connections.redshift("insights", Warehouse(kind="redshift"))
    assert client.place == f"{connection['host']}:5439/dev"
    assert (client.iam_role, client.lake, client.readers) == ("default", Settings().lake, ("insights_reader",))
    assert connection["extra"].keys() <= inspect.signature(redshift_connector.connect).parameters.keys()


def test_a_redshift_that_keeps_silent_is_not_waited_for_by_who_only_wants_to_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(redshift, "ASK_S", 1)
    monkeypatch.setenv("AIRFLOW_CONN_HEADRACE_S3", json.dumps(AWS[0]))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = {"conn_type": "redshift", "host": "127.0.0.1", "port": silent.getsockname()[1], "login": "us"}
        said = json.dumps({**where, "password": "x", "schema": "dev"})
        monkeypatch.setenv("AIRFLOW_CONN_HEADRACE_WAREHOUSE_INSIGHTS", said)
        began = time.monotonic()
        assert connections.redshift("insights", Warehouse(kind="redshift")).holds("orders") == Load()
    assert time.monotonic() - began < 5, "one try, a second for each answer"


def test_a_redshift_warehouse_with_another_connection_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_HEADRACE_S3", json.dumps(AWS[0]))
    monkeypatch.setenv("AIRFLOW_CONN_HEADRACE_WAREHOUSE_INSIGHTS", json.dumps({"conn_type": "postgres", "host": "db"}))
    with pytest.raises(SettingsError, match="headrace_warehouse_insights: it is of type postgres"):
        connections.redshift("insights", Warehouse(kind="redshift"))


def test_the_examples_are_all_there() -> None:
    assert (len(KAFKA), len(AWS), len(REDSHIFT)) == (5, 4, 3)


def test_every_connection_is_on_the_page() -> None:
    for name, id_ in vars(layout).items():
        if name.endswith("_CONNECTION"):
            assert f"`{id_}`" in PAGE
    assert f"`{layout.warehouse_connection('<name>')}`" in PAGE


def test_the_time_outs_are_what_the_page_says() -> None:
    assert f"{topic.TIMEOUT_S:.0f} s without an answer" in PAGE
    assert f"{span.STALL_S:.0f} s in which partitions" in PAGE
    assert f"{topic.PROGRESS_S:.0f} s, and the run goes on" in PAGE
    assert f"{CONNECT_S} s to connect, {READ_S} s to answer, {ATTEMPTS} tries by boto3" in PAGE


def test_an_error_that_is_none_of_a_service_passes() -> None:
    with pytest.raises(FileNotFoundError), away.services():
        raise FileNotFoundError("schemas/orders.avsc")


def test_a_callback_that_airflow_does_not_allow_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"bootstrap.servers": "127.0.0.1:9092", "oauth_cb": "os.system"}
    monkeypatch.setenv("AIRFLOW_CONN_HEADRACE_KAFKA", json.dumps({"conn_type": "kafka", "extra": extra}))
    with pytest.raises(SettingsError, match="headrace_kafka: Refusing to resolve Kafka callback"):
        connections.kafka()
