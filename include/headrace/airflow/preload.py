"""What the tasks import, imported once: where tasks are forked from one process, none of them pays for it again.

Airflow's LocalExecutor forks its tasks from the scheduler. Import this module there before it starts its workers, from
`airflow_local_settings.py`, and a task starts its real work a second or two earlier (a check, five). Importing has no
other effect: nothing is opened, read or started.
"""

import importlib
import logging

MODULES = (
    "headrace.airflow.bundle",
    "headrace.airflow.factory",
    "headrace.airflow.aws",
    "headrace.airflow.connections",
    "headrace.lease",
    "headrace.results",
    "headrace.stages.extract",
    "headrace.stages.stream",
    "headrace.stages.transform",
    "headrace.stages.check",
    "headrace.stages.publish",
    "headrace.stages.load",
    "headrace.stages.reconcile",
    "headrace.stages.progress",
    "spark_jobs.transform",
    "spark_jobs.check",
    "pyspark.sql.connect.session",
    "pyspark.sql.connect.functions",
    "pyiceberg.catalog.sql",
    "pyiceberg.io.pyarrow",
    "psycopg2",
    "boto3",
)

# Great Expectations tells of every function it registers.
logging.getLogger("great_expectations").setLevel(logging.WARNING)

for module in MODULES:
    importlib.import_module(module)
