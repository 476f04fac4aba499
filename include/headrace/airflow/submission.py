"""A submission: one job, run by spark-submit on the master that an Airflow connection of type Spark names.

The driver runs beside the task (deploy mode client): what it needs lies in a folder that only this user may enter, and
nothing of it, neither plan nor password, is on a command line or in a log.
"""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.bases.operator import ExecutorSafeguard
from airflow.sdk.exceptions import AirflowException

from headrace import avro_limits, errors
from headrace.airflow import connections
from headrace.errors import HeadraceError, SettingsError, SparkFailed

SCRIPT = "spark_jobs.submitted"
CONF = {
    # What a cluster or a feed says in extraJavaOptions comes after these.
    "spark.driver.defaultJavaOptions": " ".join(avro_limits.OPTIONS),
    "spark.executor.defaultJavaOptions": " ".join(avro_limits.OPTIONS),
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.adaptive.enabled": "true",
    "spark.log.level": "WARN",
}
"""What every job needs; where Iceberg's jars lie, the cluster's own spark-defaults.conf says, or the feed."""


@dataclass(frozen=True)
class Submission:
    """Where a feed's jobs are submitted."""

    connection: str
    conf: Mapping[str, str]
    feed: str

    def run(self, job: str, plan: str, *, properties: Mapping[str, str]) -> str:
        """Submit a job and wait for its end; its result, or the error that it ended with."""
        if (mode := connections.named(self.connection).extra_dejson.get("deploy-mode")) == "cluster":
            raise SettingsError(
                f"Airflow connection {self.connection}: deploy-mode is {mode}, but a job's driver runs beside its "
                f"task. Set it to client, or leave it out."
            )
        with TemporaryDirectory(prefix="headrace-") as folder:  # made so that nobody else may look into it
            errand, answer = Path(folder, "errand.json"), Path(folder, "answer.json")
            errand.write_text(json.dumps({"job": job, "plan": plan, "properties": dict(properties)}))
            self._submit(job, [str(errand), str(answer)])
            return _answered(json.loads(answer.read_text()))

    def _submit(self, job: str, arguments: list[str]) -> None:
        operator = SparkSubmitOperator(
            task_id=job,
            application=str(script()),
            application_args=arguments,
            conn_id=self.connection,
            conf={**CONF, **self.conf},
            name=f"headrace {self.feed} {job}",
            env_vars={"PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable)},
        )
        # As Airflow's own runner calls it; without this it would warn of an operator within a task.
        called: dict[str, Any] = {f"{type(operator).__name__}__sentinel": ExecutorSafeguard.sentinel_value}
        try:
            operator.execute({}, **called)
        except AirflowException as error:
            raise SparkFailed(
                f"feed {self.feed}: spark-submit did not bring the job {job} to its end on {self.connection}; "
                f"the lines above are what it said."
            ) from error
        except BaseException:  # the task is being stopped: so is what it started
            operator.on_kill()
            raise


def script() -> Path:
    """The file that spark-submit runs; found, not imported, for it imports pyspark."""
    spec = find_spec(SCRIPT)
    assert spec is not None, "spark_jobs is installed with this package"
    assert spec.origin is not None, "it is a file"
    return Path(spec.origin)


def _answered(answer: Mapping[str, Any]) -> str:
    """What the job gave back; an error of ours is raised here as it was there."""
    if failed := answer.get("error"):
        kind = getattr(errors, failed["kind"], HeadraceError)
        raise kind(failed["message"])
    return str(answer["result"])
