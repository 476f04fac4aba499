"""Spark: one Connect server, which keeps a warm JVM for every task."""

import asyncio
import sys
from pathlib import Path

import grpc

from headrace import avro_limits
from stack import stamps
from stack.parts.part import NotReady, Part, Stack
from stack.settings import HOST, JARS, Settings
from stack.supervision import Program, Supervisor

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"

LOGGING = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %c{1} %m%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
logger.conf.name = org.apache.spark.SparkConf
logger.conf.level = error
logger.hadoop.name = org.apache.iceberg.hadoop.HadoopTableOperations
logger.hadoop.level = error
"""


def properties(settings: Settings) -> dict[str, object]:
    """The server's configuration; which catalogs a session sees, the session says itself."""
    home = settings.state / "spark"
    options = [
        *avro_limits.OPTIONS,
        # A run is short and a core is dear: compile to the last degree only what stays hot ten times longer than
        # usual, and collect garbage without threads that run beside the program.
        "-XX:+UseParallelGC",
        "-XX:Tier4InvocationThreshold=50000",
        "-XX:Tier4MinInvocationThreshold=6000",
        "-XX:Tier4CompileThreshold=150000",
        "-XX:Tier4BackEdgeThreshold=400000",
        f"-Dderby.system.home={home}",
        f"-Djava.io.tmpdir={settings.state / 'tmp'}",
        f"-Dlog4j2.configurationFile=file:{home / 'log4j2.properties'}",
    ]
    return {
        "spark.master": "local[2]",
        "spark.driver.memory": "4g",
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        # Not spark.jars: that copies 150 MB to a temporary folder at every start.
        "spark.driver.extraClassPath": f"{JARS / 'spark'}/*",
        "spark.driver.extraJavaOptions": " ".join(f'"{option}"' for option in options),
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": settings.ports["spark"],
        # A killed task's session keeps its cached rows until then; by default an hour, by which they fill the heap.
        "spark.connect.session.manager.defaultSessionTimeout": "15m",
        "spark.local.dir": home / "local",
        # A daemon per session would stay for ever; plain Python workers end when they are idle for a minute.
        "spark.python.use.daemon": "false",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": 4,
        "spark.sql.warehouse.dir": home / "warehouse",
        # No page shows what has run, but the server would remember a thousand queries for one.
        "spark.ui.enabled": "false",
        "spark.ui.retainedJobs": 50,
        "spark.ui.retainedStages": 50,
        "spark.ui.retainedTasks": 1000,
        "spark.sql.ui.retainedExecutions": 20,
        "spark.connect.ui.retainedSessions": 20,
        "spark.connect.ui.retainedStatements": 20,
    }


def program(stack: Stack) -> Program:
    """The Connect server from the pyspark package."""
    config = stack.settings.state / "spark" / "spark.conf"
    submit = Path(sys.executable).parent / "spark-submit"
    command = [str(submit), "--properties-file", str(config), "--class", SERVER, "spark-internal"]
    return Program("spark", command, stop_signal="TERM", stop_seconds=15)


async def prepare(stack: Stack) -> None:
    """Write the configuration."""
    home = stack.settings.state / "spark"
    stamps.write(home / "spark.conf", "".join(f"{key} {value}\n" for key, value in properties(stack.settings).items()))
    stamps.write(home / "log4j2.properties", LOGGING)


def answers(stack: Stack, _: int) -> None:
    """Open a gRPC channel."""
    with grpc.insecure_channel(f"{HOST}:{stack.settings.ports['spark']}") as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=2)
        except grpc.FutureTimeoutError as error:
            raise NotReady("no gRPC answer yet") from error


async def settle(stack: Stack) -> None:
    """Start the first query, which costs seconds, in the background, before a person asks one."""
    await asyncio.to_thread(Supervisor(stack.settings).start_part, WARMING.name)


WARMING = Program(
    "spark-warming", [sys.executable, "-m", "stack.warming"], stop_signal="TERM", stop_seconds=5, restart=False
)
PART = Part("spark", program, answers, ports=("spark",), prepare=prepare, settle=settle)
