"""The extract job: what its session hides from whoever looks at Spark."""

import re

from google.protobuf import text_format
from pyspark.sql.connect.proto import Relation

from spark_jobs.extract import HIDING


def test_what_logs_in_to_kafka_is_hidden_in_a_plan_and_nothing_else_is() -> None:
    relation = Relation()
    options = relation.read.data_source.options
    options["kafka.sasl.jaas.config"] = 'ScramLoginModule required username="u" password="a \\"secret\\"";'
    options["kafka.ssl.keystore.key"] = "-----BEGIN PRIVATE KEY-----\na secret"
    options["kafka.bootstrap.servers"] = "b:9092"
    (hidden,) = HIDING.values()
    shown = re.sub(hidden, "", text_format.MessageToString(relation))
    assert "secret" not in shown
    assert "b:9092" in shown
