"""S3: S3Proxy over a folder, with signatures required."""

import asyncio

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from mypy_boto3_s3 import S3Client

from stack import stamps
from stack.environment import BUCKET
from stack.parts.part import NotReady, Part, Stack
from stack.settings import HOST, JARS
from stack.supervision import Program

# At its default level S3Proxy logs every request and crawls.
LOGGING = """\
<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d %p %logger{20} %m%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
"""


def properties(stack: Stack) -> dict[str, object]:
    """S3Proxy's configuration."""
    return {
        "s3proxy.endpoint": f"http://{HOST}:{stack.settings.ports['s3']}",
        "s3proxy.authorization": "aws-v2-or-v4",
        "s3proxy.identity": stack.passwords.s3_access_key,
        "s3proxy.credential": stack.passwords.s3_secret_key,
        "s3proxy.ignore-unknown-headers": "true",
        "jclouds.provider": "filesystem-nio2",
        "jclouds.filesystem.basedir": stack.settings.state / "s3" / "data",
    }


def program(stack: Stack) -> Program:
    """The S3 server."""
    home = stack.settings.state / "s3"
    command = [
        str(stack.java), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
        f"-Djava.io.tmpdir={stack.settings.state / 'tmp'}", f"-Dlogback.configurationFile={home / 'logback.xml'}",
        "-cp", f"{JARS / 's3'}/*", "org.gaul.s3proxy.Main", "--properties", str(home / "s3proxy.properties"),
    ]  # fmt: skip
    return Program("s3", command, stop_signal="TERM", stop_seconds=10)


async def prepare(stack: Stack) -> None:
    """Write the configuration and make the folder of the objects."""
    home = stack.settings.state / "s3"
    (home / "data").mkdir(parents=True, exist_ok=True)
    text = "".join(f"{key}={value}\n" for key, value in properties(stack).items())
    stamps.write(home / "s3proxy.properties", text, mode=0o600)
    stamps.write(home / "logback.xml", LOGGING)


def answers(stack: Stack, _: int) -> None:
    """List the buckets with a signed request."""
    try:
        client(stack).list_buckets()
    except (BotoCoreError, ClientError) as error:
        raise NotReady(str(error)) from error


async def settle(stack: Stack) -> None:
    """Create the lake's bucket."""
    await asyncio.to_thread(_create_bucket, client(stack))


def client(stack: Stack) -> S3Client:
    """A client of this stack's S3."""
    return boto3.client(
        "s3",
        endpoint_url=f"http://{HOST}:{stack.settings.ports['s3']}",
        aws_access_key_id=stack.passwords.s3_access_key,
        aws_secret_access_key=stack.passwords.s3_secret_key,
        region_name="us-east-1",
        config=Config(connect_timeout=2, read_timeout=5, retries={"max_attempts": 0}, proxies={}),
    )


def _create_bucket(s3: S3Client) -> None:
    if BUCKET not in {bucket["Name"] for bucket in s3.list_buckets()["Buckets"]}:
        s3.create_bucket(Bucket=BUCKET)


PART = Part("s3", program, answers, ports=("s3",), prepare=prepare, settle=settle)
