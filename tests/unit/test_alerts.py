"""Alerts: they reach a real mail server and a real webhook, and one that is away hides nothing."""

import json
import logging
from email import message_from_string
from typing import Any

import pytest
from listeners import mail_server, webhook

from headrace.airflow import alerts
from headrace.feed import Feed, parse

TEXT = "clean.orders does not agree with archive: lost 1: {{ 7 * 7 }} <b>"


def feed(**alerts_: Any) -> Feed:
    declared = {"key": ["id"], "owner": "Shop team", "alerts": alerts_}
    fields = [{"name": "id", "type": "string"}]
    return parse("orders.avsc", json.dumps({"type": "record", "name": "Row", "feed": declared, "fields": fields}))


def connect(monkeypatch: pytest.MonkeyPatch, id_: str, **connection: Any) -> None:
    monkeypatch.setenv(f"AIRFLOW_CONN_{id_.upper()}", json.dumps({"host": "127.0.0.1", **connection}))


def test_the_owners_channel_is_told_as_a_webhook(monkeypatch: pytest.MonkeyPatch) -> None:
    with webhook() as heard:
        connect(monkeypatch, "headrace_alerts_shop_team", conn_type="http", port=heard.port)
        alerts.tell(feed(), "orders: archive–clean disagree", TEXT)
    assert heard.told == [{"text": f"orders: archive–clean disagree\n{TEXT}"}], "and is no template"


def test_those_whom_the_feed_names_are_told_by_mail(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"disable_ssl": True, "disable_tls": True, "from_email": "headrace@shop.example"}
    with mail_server() as heard:
        connect(monkeypatch, "smtp_default", conn_type="smtp", port=heard.port, extra=extra)
        alerts.tell(feed(to=["a@shop.example", "b@shop.example"]), "orders: archive–clean disagree", TEXT)
    (mail,) = heard.told
    assert mail["to"] == ["a@shop.example", "b@shop.example"]
    (part,) = message_from_string(mail["text"]).get_payload()
    body = part.get_payload(decode=True).decode()  # type: ignore[union-attr]
    assert "lost 1: {{ 7 * 7 }} &lt;b&gt;" in body


def test_a_channel_that_is_away_hides_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with webhook() as heard:
        pass
    connect(monkeypatch, "headrace_alerts_shop_team", conn_type="http", port=heard.port)
    with caplog.at_level(logging.ERROR, "headrace"):
        alerts.tell(feed(), "orders: archive–clean disagree", TEXT)
    assert "its alert could not be sent" in caplog.text
