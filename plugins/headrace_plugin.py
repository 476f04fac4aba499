"""Headrace in Airflow's API server: the schema registry under /registry, the pages about checks under /checks.

Airflow imports this file in each of its programs, tasks included; only the API server asks for the application.
"""

from typing import Any

from airflow.plugins_manager import AirflowPlugin


class HeadracePlugin(AirflowPlugin):
    """Found by Airflow in its plugins folder."""

    name = "headrace"

    @property
    def fastapi_apps(self) -> list[dict[str, Any]]:
        from headrace.airflow import checks_page, mount

        return [
            {"app": mount.registry(), "url_prefix": "/registry", "name": "Schema registry"},
            {"app": checks_page.pages(), "url_prefix": "/checks", "name": "Checks"},
        ]

    @property
    def external_views(self) -> list[dict[str, Any]]:
        """Tabs beside those of every DAG and every run; of what is no feed they say so."""
        from headrace.airflow.checks_page import base_url

        tabs = {"dag": "dag_id={DAG_ID}", "dag_run": "dag_id={DAG_ID}&run_id={RUN_ID}"}
        return [
            {
                "name": "Checks",
                "href": f"{base_url()}/checks/?{query}",
                "destination": destination,
                "url_route": f"checks-{destination.replace('_', '-')}",
            }
            for destination, query in tabs.items()
        ]
