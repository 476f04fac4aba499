"""Assets: a feed's tables as other DAGs wait for them.

A DAG that runs whenever finance's orders changed: `DAG(..., schedule=[assets.warehouse("finance", feed="orders")])`.
"""

from airflow.sdk import Asset

from headrace import layout

CLEAN = "clean"


def clean(feed: str) -> Asset:
    """The feed's clean table: an event whenever rows were published."""
    return _asset(CLEAN, feed)


def warehouse(name: str, *, feed: str) -> Asset:
    """The feed's table in a warehouse: an event whenever rows were loaded."""
    return _asset(name, feed)


def _asset(store: str, feed: str) -> Asset:
    name, uri = layout.asset(store, feed)
    return Asset(name=name, uri=uri, group="feeds")
