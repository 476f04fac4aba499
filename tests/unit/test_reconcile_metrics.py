"""What reconciling emits as metrics, as a collector hears it from a task."""

import os
import subprocess
import sys

from listeners import collector

MEASURE = """
from datetime import UTC, datetime
from airflow.sdk.observability import stats
from airflow.sdk.observability.metrics import stats_utils
from headrace.airflow import reconciling
from headrace.reconciliation import Reconciliation

# As Airflow's task runner does, before it runs a task.
stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=True)
rows = dict(expected_rows=3, found_rows=2, expected_unique=3, found_unique=2)
told = dict(at=datetime.now(UTC), run="run", expected="clean", found="finance", scope="whole", snapshot=1, seconds=1.5)
late, broken = (None, {"behind": "load first"}), (None, {"failed": "no such column"})
every = {"same": (True, {}), "apart": (False, {}), "late": late, "broken": broken}
for feed, (agrees, differences) in every.items():
    reconciling.measure(feed, Reconciliation(agrees=agrees, differences=differences, **rows, **told))
"""
NAMES = ("rows", "disagrees", "behind", "failed", "duration")


def test_rows_verdict_and_duration_are_emitted_by_feed_and_stores() -> None:
    with collector() as heard:
        environment = {
            **os.environ,
            "AIRFLOW__METRICS__OTEL_ON": "True",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{heard.port}",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        }
        subprocess.run([sys.executable, "-c", MEASURE], check=True, env=environment)
    found = {(tags.pop("feed"), name.removeprefix("airflow.headrace.reconcile.")): value
             for name, tags, value in heard.told}  # fmt: skip
    wanted = {
        "same": (2, 0, 0, 0, 1500.0),
        "apart": (2, 1, 0, 0, 1500.0),
        "late": (None, 0, 1, 0, 1500.0),
        "broken": (None, 0, 0, 1, 1500.0),
    }
    assert found == {
        (feed, name): value
        for feed, values in wanted.items()
        for name, value in zip(NAMES, values, strict=True)
        if value is not None
    }
    assert all(tags == {"expected": "clean", "found": "finance", "scope": "whole"} for _, tags, _ in heard.told)
