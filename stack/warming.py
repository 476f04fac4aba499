"""Warming Spark Connect: one small query through Iceberg, so that the first real one finds loaded classes."""

import json
import os
import sys
from pathlib import Path

from pyspark.sql.connect.session import SparkSession


def main() -> int:
    """Write, read and drop a small table in a catalog of its own."""
    address = json.loads(os.environ["AIRFLOW_CONN_HEADRACE_SPARK"])
    session = SparkSession.builder.remote(f"{address['host']}:{address['port']}").create()
    try:
        session.conf.set("spark.sql.catalog.warming", "org.apache.iceberg.spark.SparkCatalog")
        session.conf.set("spark.sql.catalog.warming.type", "hadoop")
        session.conf.set(
            "spark.sql.catalog.warming.warehouse", str(Path(os.environ["HEADRACE_STATE"], "tmp", "warming"))
        )
        session.sql(
            "CREATE OR REPLACE TABLE warming.once.words USING iceberg AS SELECT id, 'word' AS word FROM range(100)"
        )
        session.sql("SELECT word, count(*), max_by(id, id) FROM warming.once.words GROUP BY word").collect()
        session.sql("DROP TABLE warming.once.words PURGE")
    finally:
        session.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
