"""The registry of the running Airflow, as each of its users sees it."""

import json
import os
from pathlib import Path

from confluent_kafka.schema_registry import SchemaRegistryClient


def url() -> str:
    return f"{os.environ['AIRFLOW__API__BASE_URL']}/registry"


def password(user: str) -> str:
    """As the stack generated it."""
    file = Path(os.environ["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"])
    return str(json.loads(file.read_text(encoding="utf-8"))[user])


def client(user: str) -> SchemaRegistryClient:
    """Confluent's own client, with nothing but the URL and `basic.auth.user.info` set."""
    return SchemaRegistryClient({"url": url(), "basic.auth.user.info": f"{user}:{password(user)}"})
