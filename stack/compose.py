"""What docker-compose.yaml needs beside itself: a .env file of generated passwords, and the lake's bucket."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict

import boto3

from stack.passwords import Passwords


def render_env() -> str:
    """Freshly generated passwords as KEY=VALUE lines, under Compose's names."""
    return "".join(f"HEADRACE_{name.upper()}={value}\n" for name, value in asdict(Passwords()).items())


def create_bucket(environment: Mapping[str, str]) -> None:
    """Create the lake's bucket where it is missing."""
    connection = json.loads(environment["AIRFLOW_CONN_HEADRACE_S3"])
    s3 = boto3.client(
        "s3",
        endpoint_url=connection["extra"]["endpoint_url"],
        region_name=connection["extra"]["region_name"],
        aws_access_key_id=connection["login"],
        aws_secret_access_key=connection["password"],
    )
    bucket = environment["HEADRACE_LAKE"].removeprefix("s3://")
    if bucket not in {known["Name"] for known in s3.list_buckets()["Buckets"]}:
        s3.create_bucket(Bucket=bucket)


if __name__ == "__main__":
    create_bucket(os.environ)
    sys.exit(0)
