"""stack.env: everything that `airflow` and `headrace` need to know about a running stack."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from stack import java
from stack.passwords import Passwords
from stack.settings import HOST, REPOSITORY, Settings

BUCKET = "headrace"
WAREHOUSES = ("finance", "engineering")
USERS = {"admin": "admin", "op": "op", "user": "user", "viewer": "viewer", "headrace": "viewer"}
"""Airflow's users and their roles: one of each role, and the one that DAGs ask the schema registry as."""
MARK = "HEADRACE_STACK"
# Settings of a person's shell that would change what the parts do or where they write.
_FOREIGN = ("AIRFLOW", "AWS_", "GX_", "HEADRACE", "KAFKA", "PG", "PYSPARK", "PYTHON", "SPARK")


def render(settings: Settings, passwords: Passwords) -> dict[str, str]:
    """All variables of stack.env."""
    return {
        "HEADRACE_STATE": str(settings.state),
        "HEADRACE_SCHEMAS": str(settings.schemas),
        "HEADRACE_WAREHOUSES": str(settings.warehouses),
        "HEADRACE_JOBS": str(REPOSITORY / "jobs"),
        "HEADRACE_LAKE": f"s3://{BUCKET}",
        "GX_ANALYTICS_ENABLED": "false",
        # The parts talk to each other directly, whatever proxy the machine has.
        "NO_PROXY": f"{HOST},localhost",
        "no_proxy": f"{HOST},localhost",
        **_airflow(settings, passwords),
        **_connections(settings, passwords),
        **{f"HEADRACE_READER_{team.upper()}": _reader(team, settings, passwords) for team in WAREHOUSES},
    }


def as_text(variables: Mapping[str, str]) -> str:
    """KEY=VALUE lines."""
    return "".join(f"{key}={value}\n" for key, value in variables.items())


def of_parts(
    variables: Mapping[str, str], *, settings: Settings, java_command: Path, own: Mapping[str, str]
) -> dict[str, str]:
    """The environment the parts run in: the machine's without settings that would leak in, then the stack's."""
    inherited = {key: value for key, value in own.items() if not key.startswith(_FOREIGN)}
    programs = Path(sys.executable).parent
    return {
        **inherited,
        **variables,
        MARK: str(settings.state),
        "PATH": f"{programs}{os.pathsep}{own.get('PATH', os.defpath)}",
        "JAVA_HOME": str(java.home_of(java_command)),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": HOST,
        "PYTHONUNBUFFERED": "1",
        # Airflow renames its processes; without this, that overwrites the mark which `down` looks for.
        "SPT_NOENV": "1",
    }


def database_url(settings: Settings, *, user: str, password: str, database: str, scheme: str = "postgresql") -> str:
    """A URL of one of the stack's databases."""
    return f"{scheme}://{user}:{quote(password, safe='')}@{HOST}:{settings.ports['postgres']}/{database}"


def _reader(team: str, settings: Settings, passwords: Passwords) -> str:
    password = getattr(passwords, f"{team}_reader")
    return database_url(settings, user=f"{team}_reader", password=password, database=team)


def _airflow(settings: Settings, passwords: Passwords) -> dict[str, str]:
    home = settings.state / "airflow"
    url = f"http://{HOST}:{settings.ports['airflow']}"
    # psycopg2: Airflow's own default driver for the synchronous engine.
    database = database_url(
        settings, user="airflow", password=passwords.airflow_database, database="airflow", scheme="postgresql+psycopg2"
    )
    sections: dict[str, dict[str, object]] = {
        "api": {
            "base_url": url,
            "host": HOST,
            "port": settings.ports["airflow"],
            "workers": 1,
            "secret_key": passwords.airflow_session,
        },
        "api_auth": {"jwt_secret": passwords.airflow_jwt},
        "core": {
            "auth_manager": "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager",
            # Every file in our bundles is a DAG: none needs to be opened to find out, each time they are listed.
            "dag_discovery_safe_mode": False,
            "dags_are_paused_at_creation": False,
            "dags_folder": REPOSITORY / "dags",
            "execution_api_server_url": f"{url}/execution/",
            "executor": "LocalExecutor",
            "fernet_key": passwords.airflow_fernet,
            "load_examples": False,
            # Within so many seconds of a DAG's last change, another one would not be written down at all.
            "min_serialized_dag_update_interval": 0,
            "parallelism": 4,
            "plugins_folder": REPOSITORY / "plugins",
            "simple_auth_manager_passwords_file": home / "passwords.json",
            "simple_auth_manager_users": ",".join(f"{user}:{role}" for user, role in USERS.items()),
            "test_connection": "Enabled",
        },
        "dag_processor": {
            "dag_bundle_config_list": json.dumps(_bundles(settings)),
            # The default lies outside the state folder, where another stack would write over our stubs.
            "dag_bundle_storage_path": home / "bundles",
            "bundle_refresh_check_interval": 1,
            # A stub's time moves whenever its feed changes; parsing a thousand unchanged ones would hold up that one.
            "min_file_process_interval": 6 * 60 * 60,
            "refresh_interval": 5,
            # A table of every file, each half minute.
            "print_stats_interval": 0,
        },
        "database": {"sql_alchemy_conn": database},
        "logging": {"base_log_folder": settings.logs / "airflow"},
        "scheduler": {"scheduler_idle_sleep_time": 0.1},
        "usage_data_collection": {"enabled": False},
        # On a cold start five seconds, the default, are too few.
        "workers": {"execution_api_timeout": 30},
    }
    named = {
        f"AIRFLOW__{section.upper()}__{option.upper()}": str(value)
        for section, options in sections.items()
        for option, value in options.items()
    }
    return {"AIRFLOW_HOME": str(home), **named}


def _bundles(settings: Settings) -> list[dict[str, object]]:
    return [
        {
            "name": "headrace",
            "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle",
            "kwargs": {"path": str(REPOSITORY / "dags"), "refresh_interval": 5},
        },
        {
            "name": "feeds",
            "classpath": "headrace.airflow.bundle.FeedBundle",
            # A feed file that changes here is registered by itself; elsewhere `headrace register` is part of deploying.
            "kwargs": {"schemas": str(settings.schemas), "register": True, "refresh_interval": 2},
        },
    ]


def _connections(settings: Settings, passwords: Passwords) -> dict[str, str]:
    s3 = {
        "endpoint_url": f"http://{HOST}:{settings.ports['s3']}",
        "region_name": "us-east-1",
        # To check a signed body S3Proxy holds all of it in memory; checksums guard what is put here.
        "config_kwargs": {"s3": {"addressing_style": "path", "payload_signing_enabled": False}},
    }
    connections: dict[str, dict[str, object]] = {
        "KAFKA": {"conn_type": "kafka", "extra": {"bootstrap.servers": f"{HOST}:{settings.ports['kafka']}"}},
        "S3": {"conn_type": "aws", "login": passwords.s3_access_key, "password": passwords.s3_secret_key, "extra": s3},
        "SPARK": {"conn_type": "spark_connect", "host": f"sc://{HOST}", "port": settings.ports["spark"]},
        "MASKS": {"conn_type": "generic", "password": passwords.masks},
        "SIGNING": {"conn_type": "generic", "password": passwords.signing},
        "CATALOG": _postgres(settings, user="catalog", password=passwords.catalog, database="catalog"),
        "REGISTRY": {
            "conn_type": "schema_registry",
            "host": f"http://{HOST}:{settings.ports['airflow']}/registry",
            "login": "headrace",
            "password": passwords.airflow_headrace,
        },
        "REGISTRY_STORE": _postgres(settings, user="registry", password=passwords.registry, database="registry"),
    }
    connections["WAREHOUSES"] = _postgres(settings, user="headrace_teams", password=passwords.teams, database="teams")
    for team in WAREHOUSES:
        connections[f"WAREHOUSE_{team.upper()}"] = _postgres(
            settings, user=f"headrace_{team}", password=getattr(passwords, team), database=team
        )
    return {f"AIRFLOW_CONN_HEADRACE_{name}": json.dumps(connection) for name, connection in connections.items()}


def _postgres(settings: Settings, *, user: str, password: str, database: str) -> dict[str, object]:
    port = settings.ports["postgres"]
    return {
        "conn_type": "postgres",
        "host": HOST,
        "port": port,
        "login": user,
        "password": password,
        "schema": database,
    }
