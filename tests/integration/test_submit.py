"""Jobs by spark-submit, on a standalone cluster: the same jobs, the same rows, the same errors as over Connect."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from merging_examples import FIELDS as KINDS
from merging_examples import Example, examples
from spark_cluster import Cluster, cluster, surroundings
from workshop import Record, Workshop

from headrace.errors import JobError, QuarantineFull, SettingsError, SparkFailed

Make = Callable[..., Workshop]

CONNECTION = "spark_cluster"
FIELDS = [
    {"name": "id", "type": "string"},
    {"name": "revision", "type": "long"},
    {"name": "state", "type": ["null", "string"], "default": None},
]
BROKEN = Record(b"broken", key="x")


@pytest.fixture(scope="module")
def submitting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster, and an Airflow connection to it."""
    with pytest.MonkeyPatch.context() as patch, cluster(tmp_path_factory.mktemp("spark")) as started:
        for name, value in surroundings().items():
            patch.setenv(name, value)
        connect(patch, started.master)
        yield started


def connect(patch: pytest.MonkeyPatch, master: str, **extra: Any) -> None:
    connection = {"conn_type": "spark", "host": master, "extra": extra}
    patch.setenv(f"AIRFLOW_CONN_{CONNECTION.upper()}", json.dumps(connection))


def declared(cluster_: Cluster, **more: Any) -> dict[str, Any]:
    spark = {"connection": CONNECTION, "conf": cluster_.conf}
    return {"key": ["id"], "order": ["revision"], "spark": spark, **more}


def one_of_each_rule() -> list[Example]:
    """The first example of each, but `latest`, by which the other tests merge."""
    found = {each.declared["merge"]: each for each in reversed(list(examples()))}
    return [each for merge, each in found.items() if merge != "latest"]


def row(key: str, revision: int, state: str | None) -> Record:
    return Record({"id": key, "revision": revision, "state": state}, key=key)


def test_rows_are_merged_and_checked_as_over_connect(
    workshop: Make, submitting: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")  # as in a process that has asked a Connect server before
    checks = [{"column": "state", "one_of": ["here"]}]
    shop = workshop(declared(submitting, checks=checks), fields=FIELDS)
    endless = b"\0" + shop.schema_id.to_bytes(4, "big") + b"\xfe\xff\xff\xff\x0b" + b"id"
    shop.publish(row("a", 2, "here"), row("a", 1, "late"), row("b", 1, "here"), Record(None, key="b"), BROKEN)
    shop.publish(Record(endless, key="x"))
    shop.extract()
    accounts: Mapping[str, int] = shop.transform("run")
    assert (accounts["read"], accounts["quarantined"], accounts["inserted"]) == (6, 2, 1)
    assert shop.check("run") == []
    shop.publish_run("run")
    assert shop.clean() == [{"id": "a", "revision": 2, "state": "here"}]
    assert shop.quarantine() == {(0, 4): "unframed", (0, 5): "undecodable"}


@pytest.mark.parametrize("example", one_of_each_rule(), ids=lambda example: example.title)
def test_the_examples_of_the_merge_rules_make_the_same_rows(
    workshop: Make, submitting: Cluster, example: Example
) -> None:
    asked = {**example.declared, "spark": declared(submitting)["spark"], "topic": {"partitions": 1}}
    shop = workshop(asked, fields=KINDS)
    shop.merge(*example.sent)
    assert shop.clean() == example.rows
    assert shop.quarantine() == example.quarantine


def test_json_is_validated_by_the_clusters_own_workers(workshop: Make, submitting: Cluster) -> None:
    schema = {"type": "object", "properties": {"id": {"type": "string"}, "n": {"type": "integer", "minimum": 0}}}
    shop = workshop({"key": ["id"], "spark": declared(submitting)["spark"]}, json_schema=schema)
    shop.merge(Record({"id": "a", "n": 1}), Record({"id": "b", "n": -1}))
    assert shop.clean() == [{"id": "a", "n": 1}]
    assert shop.quarantine() == {(0, 1): "invalid"}


STATES = """
from pyspark.sql import functions as F

def {output}({input}):
    return {input}.groupBy("state").agg({counted}.alias("rows"))
"""


def test_a_job_of_a_teams_own_computes_there_and_quotes_no_value(
    workshop: Make, submitting: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: Any
) -> None:
    from headrace.airflow.spark import Spark
    from headrace.stages import compute

    source = workshop({"key": ["id"]}, fields=FIELDS)
    source.merge(row("ada", 1, "here"), row("bob", 1, "here"), row("eve", 1, "gone"))
    job = {"file": "states.py", "inputs": {source.feed.name: {}}}
    fields = [{"name": "state", "type": "string"}, {"name": "rows", "type": "long"}]
    asked = {"key": ["state"], "job": job, "spark": declared(submitting)["spark"]}
    shop = workshop(asked, fields=fields)

    def computed(counted: str) -> Any:
        names = {"input": source.feed.name, "output": shop.feed.name}
        (tmp_path / "states.py").write_text(STATES.format(**names, counted=counted))
        run = partial(Spark.of(shop.feed, shop.lake).run, "compute")
        return compute.compute(
            shop.feed, lake=shop.lake, kafka=shop.kafka, jobs=tmp_path, schema_id=shop.schema_id, run=run
        )

    with pytest.raises(JobError, match=r"Spark gave up: \w+ CAST_INVALID_INPUT$"):
        computed('F.first("id")')
    written = caplog.text + "".join(capfd.readouterr())
    assert "Spark-Submit cmd" in written
    assert "The value '" not in written
    assert computed('F.count("*")') == compute.Computed(rows=2, changed=2, gone=0)
    shop.redeclared(spark={}).run()
    assert shop.clean() == [{"state": "gone", "rows": 1}, {"state": "here", "rows": 2}]


def test_an_error_of_the_job_is_raised_as_it_was_there(workshop: Make, submitting: Cluster) -> None:
    shop = workshop(declared(submitting, quarantine={"count": 0}), fields=FIELDS)
    shop.publish(row("a", 1, "here"), BROKEN)
    shop.extract()
    with pytest.raises(QuarantineFull, match="unframed"):
        shop.transform("run")
    assert shop.quarantine() == {}


def test_a_driver_on_the_cluster_is_refused(
    workshop: Make, submitting: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = workshop(declared(submitting), fields=FIELDS)
    shop.publish(row("a", 1, "here"))
    shop.extract()
    connect(monkeypatch, submitting.master, **{"deploy-mode": "cluster"})
    with pytest.raises(SettingsError, match="deploy-mode is cluster"):
        shop.transform("run")


def test_what_spark_submit_cannot_do_is_told_and_may_be_tried_again(
    workshop: Make, submitting: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = workshop(declared(submitting), fields=FIELDS)
    shop.publish(row("a", 1, "here"))
    shop.extract()
    connect(monkeypatch, "nonsense")
    with pytest.raises(SparkFailed, match=f"did not bring the job transform to its end on {CONNECTION}") as raised:
        shop.transform("run")
    assert raised.value.retry
