"""What Airflow asks an installed package for: the schema registry's connection type and its form, and our commands.

Airflow imports this in each of its programs; it must stay light.
"""

from collections.abc import Mapping
from typing import Any

CONNECTION_TYPE = "schema_registry"
HOOK_NAME = "Schema Registry"


def _field(label: str, description: str, *, type_: str = "string", **schema: object) -> dict[str, Any]:
    return {"label": label, "description": description, "schema": {"type": [type_, "null"], **schema}}


FIELDS: Mapping[str, Any] = {
    "token": _field("Token", "In place of user and password: sent as Authorization: Bearer.", format="password"),
    "ca_file": _field("CA file", "Certificates of who may sign the server's; the usual ones if empty."),
    "certificate_file": _field("Certificate file", "Our own certificate, where the server asks for one."),
    "key_file": _field("Key file", "The private key of our certificate."),
    "verify": _field("Verify", "Whether the server's certificate is checked.", type_="boolean", default=True),
    "timeout": _field("Timeout", "Seconds until an answer must be there.", type_="number", default=30),
}
"""What a connection says beside URL, user and password; kept in its Extra."""


def get_provider_info() -> dict[str, Any]:
    """The entry point `apache_airflow_provider`."""
    return {
        "package-name": "headrace",
        "name": "Headrace",
        "description": "One schema file in, a checked and reconciled pipeline out.",
        "cli": ["headrace.airflow.backfill.cli_commands"],
        "connection-types": [
            {
                "connection-type": CONNECTION_TYPE,
                "hook-name": HOOK_NAME,
                "hook-class-name": "headrace.airflow.hooks.RegistryHook",
                "ui-field-behaviour": {
                    # Airflow up to 3.3.2 tests a stored connection only if it has a port (apache/airflow#73298).
                    "hidden-fields": ["schema"],
                    "relabeling": {"host": "URL", "login": "User"},
                    "placeholders": {
                        "host": "https://airflow.example.com/registry",
                        "port": "443",
                        "login": "the user, or the API key of an outside registry",
                        "password": "their password, or the API key's secret",
                    },
                },
                "conn-fields": dict(FIELDS),
            }
        ],
    }
