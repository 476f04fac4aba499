"""Kafka: one KRaft node that is broker and controller."""

import logging

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from stack import commands, stamps
from stack.parts.part import NotReady, Part, Stack
from stack.settings import HOST, JARS, Settings
from stack.supervision import Program

_LARGEST_MESSAGE = 17 * 1024 * 1024
_SILENT = logging.getLogger("stack.kafka")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False

LOGGING = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %c{1} %m%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
logger.server.name = kafka.server.KafkaRaftServer
logger.server.level = info
"""


def properties(settings: Settings) -> dict[str, object]:
    """The broker's configuration: durable, and quick to start because it is alone."""
    broker, controller = (f"{HOST}:{settings.ports[name]}" for name in ("kafka", "kafka_controller"))
    return {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{controller}",
        "listeners": f"PLAINTEXT://{broker},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{broker}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": settings.state / "kafka" / "data",
        "auto.create.topics.enable": "false",
        "default.replication.factor": 1,
        "min.insync.replicas": 1,
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 4,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "share.coordinator.state.topic.num.partitions": 1,
        "group.initial.rebalance.delay.ms": 0,
        "message.max.bytes": _LARGEST_MESSAGE,
        "replica.fetch.max.bytes": _LARGEST_MESSAGE,
    }


def java(stack: Stack, main: str) -> list[str]:
    """A command that runs one of Kafka's classes."""
    home = stack.settings.state / "kafka"
    return [
        str(stack.java), "-Xmx512m", "-XX:+UseSerialGC", "-Djava.awt.headless=true",
        f"-Djava.io.tmpdir={stack.settings.state / 'tmp'}",
        f"-Dlog4j2.configurationFile=file:{home / 'log4j2.properties'}",
        "-cp", f"{JARS / 'kafka'}/*", main,
    ]  # fmt: skip


def program(stack: Stack) -> Program:
    """The broker; SIGTERM makes it flush and close its logs before it ends."""
    command = [*java(stack, "kafka.Kafka"), str(stack.settings.state / "kafka" / "server.properties")]
    return Program("kafka", command, stop_signal="TERM", stop_seconds=30)


async def prepare(stack: Stack) -> None:
    """Write the configuration, and format the storage once."""
    home = stack.settings.state / "kafka"
    config = home / "server.properties"
    stamps.write(config, "".join(f"{key}={value}\n" for key, value in properties(stack.settings).items()))
    stamps.write(home / "log4j2.properties", LOGGING)
    if not (home / "data" / "meta.properties").is_file():
        format_storage = ["format", "--ignore-formatted", "-t", stack.passwords.kafka_cluster_id, "-c", config]
        log = stack.settings.log("kafka")
        await commands.run(
            [*java(stack, "kafka.tools.StorageTool"), *format_storage], log=log, environment=stack.environment
        )


def answers(stack: Stack, _: int) -> None:
    """Ask the broker for its metadata."""
    client = AdminClient({"bootstrap.servers": f"{HOST}:{stack.settings.ports['kafka']}"}, logger=_SILENT)
    try:
        client.list_topics(timeout=2)
    except KafkaException as error:
        raise NotReady(str(error)) from error


PART = Part("kafka", program, answers, ports=("kafka", "kafka_controller"), prepare=prepare)
