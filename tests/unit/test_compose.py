"""docker-compose.yaml: valid by the Compose specification's schema, and true to our own rules.

No Docker engine takes part: this proves the file's form, not that the containers run.
"""

import re
import subprocess
import sys
from dataclasses import fields
from typing import Any

import pytest
import yaml

from stack import compose, parts
from stack.parts.airflow import MIGRATION
from stack.passwords import Passwords
from stack.settings import REPOSITORY
from stack.terminal import parse

FILE = REPOSITORY / "docker-compose.yaml"
ONCE = {MIGRATION, "register"}
ONLY_IN_DOCKER = {"spark-master", "spark-worker"}


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load(FILE.read_text())["services"]
    return found


def test_the_file_fits_the_compose_specification() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(FILE)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_it_has_the_parts_of_the_local_stack(services: dict[str, dict[str, Any]]) -> None:
    assert set(services) - ONLY_IN_DOCKER == {part.name for part in parts.ALL}


def test_every_lasting_service_has_a_health_check(services: dict[str, dict[str, Any]]) -> None:
    assert [name for name, service in services.items() if name not in ONCE and "healthcheck" not in service] == []


def test_a_service_waits_for_what_it_needs(services: dict[str, dict[str, Any]]) -> None:
    for service in services.values():
        for need, how in service.get("depends_on", {}).items():
            expected = "service_completed_successfully" if need in ONCE else "service_healthy"
            assert how["condition"] == expected


def test_two_workers_serve_one_spark_master(services: dict[str, dict[str, Any]]) -> None:
    assert services["spark-worker"]["deploy"]["replicas"] == 2


def test_ports_are_open_to_this_machine_only(services: dict[str, dict[str, Any]]) -> None:
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert ports
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []


def test_no_secret_stands_in_the_file() -> None:
    text = re.sub(r"\$\{[^}]*\}", "$", FILE.read_text())
    said = re.findall(r"(?i)(?:password\"?|secret\w*|credential|_key|:\w+@)\s*[:=]\s*[\"']?([^\s\"'].*)", text)
    assert [value for value in said if not value.startswith(("$", ">-", "/", "%", "["))] == []


def test_every_variable_is_required_and_printed_by_the_env_command() -> None:
    asked = set(re.findall(r"\$\{(\w+):\?", FILE.read_text()))
    assert re.findall(r"(?<!\$)\$(?:\{\w+\}|\w)", FILE.read_text()) == []
    printed = parse(compose.render_env())
    assert asked <= set(printed)
    assert len(printed) == len(fields(Passwords))
    assert all(printed.values())
