"""Where a feed's Spark jobs run: the type of an Airflow connection decides, and the jobs cannot tell.

Of type Spark Connect, a job runs in this process and asks the server, which has a warm JVM: right for short batches. Of
type Spark, it is submitted to that master by the provider's own operator, and is a driver of its own.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headrace import layout
from headrace.airflow import connections
from headrace.feed import Feed

if TYPE_CHECKING:
    from headrace.lake import Lake

CONNECT = "spark_connect"


@dataclass(frozen=True)
class Spark:
    """One connection, and the lake that the jobs work on."""

    lake: "Lake"
    connection: str = layout.SPARK_CONNECTION
    conf: Mapping[str, str] = field(default_factory=dict)
    """More of Spark's settings, for jobs that are submitted: a Connect server has its own."""
    feed: str = ""

    @classmethod
    def of(cls, feed: Feed, lake: "Lake") -> "Spark":
        """As the feed declares it."""
        declared = feed.declaration.spark
        return cls(lake, declared.connection or layout.SPARK_CONNECTION, declared.conf, feed.name)

    @property
    def connects(self) -> bool:
        """Whether jobs run over Spark Connect."""
        return bool(connections.named(self.connection).conn_type == CONNECT)

    def run(self, job: str, plan: str, **given: Any) -> str:
        """Run a job by its name; it gets a plan and gives its result back, both as JSON."""
        from headrace.lake import spark_properties

        properties = spark_properties(self.lake)
        if self.connects:
            module = importlib.import_module(layout.job_module(job))
            done: str = module.run(
                plan, remote=connections.spark_remote(self.connection), properties=properties, **given
            )
            return done
        from headrace.airflow.submission import Submission

        return Submission(self.connection, self.conf, self.feed).run(job, plan, properties=properties)
