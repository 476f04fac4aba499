"""An example of a DAG of your own on top of a feed: it runs whenever finance's orders have changed.

It waits for the asset that the feed's load emits, finds the table by the feed's Variable, and asks the schema registry
what the feed's key is. Turn it on, run the feed `orders`, and look at the log of `count`.
"""

import logging
from datetime import UTC, datetime

from airflow.sdk import dag, task

from headrace.airflow import assets

log = logging.getLogger(__name__)


@task
def key() -> list[str]:
    """What identifies an order, as the schema registry knows it."""
    from headrace.airflow.hooks import RegistryHook

    return list(RegistryHook().feed("orders").key)


@task
def count(key: list[str], table: str, connection: str) -> dict[str, int]:
    """How many orders there are, by status: counts only, for a log is no place for anybody's data."""
    from contextlib import closing

    from airflow.providers.postgres.hooks.postgres import PostgresHook
    from psycopg import sql

    query = sql.SQL("select status, count(distinct ({key})) from {table} group by status order by status").format(
        key=sql.SQL(", ").join(map(sql.Identifier, key)), table=sql.Identifier(table)
    )
    with closing(PostgresHook(connection).get_conn()) as session, session.cursor() as cursor:
        cursor.execute(query)
        counts = dict(cursor.fetchall())
    log.info("orders by status: %s", counts)
    return counts


@dag(
    schedule=[assets.warehouse("finance", feed="orders")],
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    is_paused_upon_creation=True,
    tags=["example"],
    doc_md=__doc__,
)
def example_orders_report() -> None:
    """Count finance's orders whenever they have changed."""
    place = "var.json.feed_orders.warehouses.finance"
    count(key(), table=f"{{{{ {place}.table }}}}", connection=f"{{{{ {place}.connection }}}}")


example_orders_report()
