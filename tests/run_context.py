"""A run as Airflow's tasks see it, without Airflow's scheduler: who runs, and what its tasks tell each other."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any


@dataclass
class Instance:
    """A task instance as far as our tasks use one."""

    told: dict[str, Any] = field(default_factory=dict)
    try_number: int = 1
    max_tries: int = 0

    def xcom_push(self, key: str, value: Any) -> None:
        self.told[key] = json.loads(json.dumps(value))

    def xcom_pull(self, *, task_ids: str, key: str = "return_value") -> Any:
        return self.told.get(key)


@contextmanager
def run_context(dag: str, run: str = "manual", *, tries: tuple[int, int] = (1, 0), **more: Any) -> Iterator[Instance]:
    """Inside, tasks belong to this run; `tries` are which one it is, and how many may follow the first."""
    from airflow.sdk.execution_time.context import set_current_context

    facts = {"run_type": "manual", "data_interval_start": None, "data_interval_end": None, **more}
    instance = Instance(try_number=tries[0], max_tries=tries[1])
    with set_current_context(
        {"dag_run": SimpleNamespace(dag_id=dag, run_id=run, **facts), "ti": instance, "run_id": run}
    ):
        yield instance
