"""Headrace in Airflow's API server: the schema registry under /registry, the pages about feeds under names of theirs.

Airflow imports this file in each of its programs, tasks included; only the API server asks for the application.
"""

from typing import Any

from airflow.plugins_manager import AirflowPlugin


class HeadracePlugin(AirflowPlugin):
    """Found by Airflow in its plugins folder."""

    name = "headrace"

    @property
    def fastapi_apps(self) -> list[dict[str, Any]]:
        from headrace.airflow import checks_page, mount, reconcile_page

        return [
            {"app": mount.registry(), "url_prefix": "/registry", "name": "Schema registry"},
            {"app": checks_page.pages(), "url_prefix": "/checks", "name": "Checks"},
            {"app": reconcile_page.pages(), "url_prefix": "/reconcile", "name": "Reconcile"},
        ]

    @property
    def external_views(self) -> list[dict[str, Any]]:
        """Tabs beside those of every DAG and every run; of what is no feed they say so."""
        from headrace.airflow.feed_pages import base_url

        of_dag, of_run = "dag_id={DAG_ID}", "dag_id={DAG_ID}&run_id={RUN_ID}"
        tabs = [("Checks", "dag", of_dag), ("Checks", "dag_run", of_run), ("Reconcile", "dag", of_dag)]
        return [
            {
                "name": name,
                "href": f"{base_url()}/{name.lower()}/?{query}",
                "destination": destination,
                "url_route": f"{name.lower()}-{destination.replace('_', '-')}",
            }
            for name, destination, query in tabs
        ]
