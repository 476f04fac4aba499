"""Kafka Connect with the Apache Iceberg sink, set up to its advantage: what extract is measured beside.

.venv/bin/python -m bench.connect --lock     resolve connect.toml into connect.lock anew (for maintainers)
"""

import argparse
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from stack import jars, stamps
from stack.parts.part import Stack
from stack.settings import HOST, REPOSITORY

ROOTS = REPOSITORY / "bench" / "connect.toml"
LOCK = REPOSITORY / "bench" / "connect.lock"
# Not among the stack's jars, where `make setup` drops what its own lock does not name.
FOLDER = REPOSITORY / ".headrace" / "connect"
COMMIT_MS = 10_000
STOP_S = 15
# What bin/kafka-run-class.sh of Kafka's own distribution gives every program.
JAVA_OPTIONS = (
    "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true",
)  # fmt: skip
# Half of what bin/connect-standalone.sh allows, so that its memory is not that of a collector with room to spare.
HEAP = "1G"

LOGGING = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %c{1} %m%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
logger.iceberg.name = org.apache.iceberg.connect
logger.iceberg.level = info
"""


def install() -> int:
    """Fetch the locked jars from Maven Central, each checked by its checksum; how many there are."""
    return sum(1 for _ in jars.install(jars.parse_lock(LOCK.read_text()), FOLDER))


def worker_properties(bootstrap: str, home: Path, *, port: int) -> dict[str, object]:
    return {
        "bootstrap.servers": bootstrap,
        "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "offset.storage.file.filename": home / "offsets",
        # The default, a minute, would delay the last commit.
        "offset.flush.interval.ms": 1000,
        "plugin.path": FOLDER / "plugins",
        "plugin.discovery": "service_load",
        "listeners": f"HTTP://{HOST}:{port}",
    }


def sink_properties(name: str, *, topic: str, table: str, catalog: Mapping[str, str]) -> dict[str, object]:
    """The sink with partition, offset and timestamp beside the value; it has no way to keep keys and headers."""
    transforms = "org.apache.kafka.connect.transforms"
    return {
        "name": name,
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "tasks.max": 1,
        "topics": topic,
        "transforms": "hoist,place",
        "transforms.hoist.type": f"{transforms}.HoistField$Value",
        "transforms.hoist.field": "value",
        "transforms.place.type": f"{transforms}.InsertField$Value",
        "transforms.place.partition.field": "partition",
        "transforms.place.offset.field": "offset",
        "transforms.place.timestamp.field": "timestamp",
        "iceberg.tables": table,
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.control.topic": f"{name}-control",
        "iceberg.control.group-id-prefix": name,
        "iceberg.control.commit.interval-ms": COMMIT_MS,
        **{f"iceberg.catalog{'.' if key else ''}{key}": value for key, value in catalog.items()},
    }


def catalog_properties(name: str, spark: Mapping[str, str]) -> dict[str, str]:
    """The catalog as the sink wants it told, from what a Spark session is told."""
    prefix = f"spark.sql.catalog.{name}."
    return {"": name, **{key.removeprefix(prefix): value for key, value in spark.items() if key.startswith(prefix)}}


@contextmanager
def worker(
    stack: Stack, name: str, *, topic: str, table: str, catalog: Mapping[str, str], heap: str = HEAP
) -> Iterator[int]:
    """A standalone worker with the sink as its one connector, from its start to its end; gives its process id."""
    home = stack.settings.state / "connect" / name
    bootstrap = f"{HOST}:{stack.settings.ports['kafka']}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    control = f"{name}-control"
    admin.create_topics([NewTopic(control, 1, 1)])[control].result(30)
    settings = worker_properties(bootstrap, home, port=_free_port())
    _write(home / "worker.properties", settings)
    _write(home / "sink.properties", sink_properties(name, topic=topic, table=table, catalog=catalog))
    stamps.write(home / "log4j2.properties", LOGGING)
    _arrange()
    command = [
        str(stack.java), "-Xms256M", f"-Xmx{heap}", *JAVA_OPTIONS, f"-Djava.io.tmpdir={stack.settings.state / 'tmp'}",
        f"-Dlog4j2.configurationFile=file:{home / 'log4j2.properties'}", "-cp", f"{FOLDER / 'worker'}/*",
        "org.apache.kafka.connect.cli.ConnectStandalone",
        str(home / "worker.properties"), str(home / "sink.properties"),
    ]  # fmt: skip
    log = stack.settings.logs / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=dict(stack.environment)
        )
    try:
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(home)
        with suppress(KafkaException):
            admin.delete_topics([control])[control].result(30)


def _arrange() -> None:
    """The plugin as a folder in the plugin path, as Connect wants it."""
    link = FOLDER / "plugins" / "iceberg"
    link.parent.mkdir(exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(FOLDER / "plugin", target_is_directory=True)


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _write(path: Path, properties: Mapping[str, object]) -> None:
    stamps.write(path, "".join(f"{key}={value}\n" for key, value in properties.items()), mode=0o600)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lock", action="store_true", required=True)
    parser.parse_args(sys.argv[1:])
    text = jars.lock(ROOTS).replace("jars.toml by `python -m stack.jars", "connect.toml by `python -m bench.connect")
    stamps.write(LOCK, text)
