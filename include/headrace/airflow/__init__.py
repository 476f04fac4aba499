"""Airflow: the bundle that finds feeds, the factory that makes their DAGs, the tasks and their connections."""
