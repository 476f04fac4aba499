"""Where the local stack answers, read once from the environment that the stack's `stack.env` sets."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from demo.errors import SettingError

WAREHOUSES = ("finance", "engineering")
KAFKA_PREFIXES = ("bootstrap.", "security.", "sasl.", "ssl.")


@dataclass(frozen=True)
class Airflow:
    """The Airflow UI and its REST API."""

    url: str
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class Catalog:
    """The Iceberg catalog's database and the S3 that holds its tables."""

    lake: str
    database: Mapping[str, Any] = field(repr=False)
    s3: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Settings:
    """All that the demo needs to reach the stack."""

    airflow: Airflow
    catalog: Catalog
    kafka: Mapping[str, str] = field(repr=False)
    mask_key: str = field(repr=False)
    readers: Mapping[str, str] = field(repr=False)


def read_settings(environment: Mapping[str, str]) -> Settings:
    """The stack's addresses and passwords; raises SettingError when one is missing."""
    return Settings(
        airflow=_airflow(environment),
        catalog=Catalog(
            lake=_needed(environment, "HEADRACE_LAKE"),
            database=_connection(environment, "CATALOG"),
            s3=_connection(environment, "S3"),
        ),
        kafka=_kafka(_connection(environment, "KAFKA")),
        mask_key=str(_connection(environment, "MASKS")["password"]),
        readers={warehouse: _needed(environment, f"HEADRACE_READER_{warehouse.upper()}") for warehouse in WAREHOUSES},
    )


def _airflow(environment: Mapping[str, str]) -> Airflow:
    passwords = Path(_needed(environment, "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"))
    if not passwords.exists():
        raise SettingError(f"{passwords.name} is not there yet: Airflow has not started. `make up` starts it.")
    (user, password), *_ = json.loads(passwords.read_text(encoding="utf-8")).items()
    return Airflow(_needed(environment, "AIRFLOW__API__BASE_URL").rstrip("/"), user, password)


def _kafka(connection: Mapping[str, Any]) -> dict[str, str]:
    """What a client needs to connect; the connection may hold consumer settings too, which a producer refuses."""
    return {name: str(value) for name, value in connection["extra"].items() if name.startswith(KAFKA_PREFIXES)}


def _connection(environment: Mapping[str, str], name: str) -> dict[str, Any]:
    connection: dict[str, Any] = json.loads(_needed(environment, f"AIRFLOW_CONN_HEADRACE_{name}"))
    extra = connection.get("extra") or {}
    return {**connection, "extra": json.loads(extra) if isinstance(extra, str) else extra}


def _needed(environment: Mapping[str, str], name: str) -> str:
    if not environment.get(name):
        raise SettingError(
            f"{name} is not set. `make up` starts the stack, which sets it for this virtual environment."
        )
    return environment[name]
