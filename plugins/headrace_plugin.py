"""Headrace in Airflow's API server: the schema registry under /registry.

Airflow imports this file in each of its programs, tasks included; only the API server asks for the application.
"""

from typing import Any

from airflow.plugins_manager import AirflowPlugin


class HeadracePlugin(AirflowPlugin):
    """Found by Airflow in its plugins folder."""

    name = "headrace"

    @property
    def fastapi_apps(self) -> list[dict[str, Any]]:
        from headrace.airflow import mount

        return [{"app": mount.registry(), "url_prefix": "/registry", "name": "Schema registry"}]
