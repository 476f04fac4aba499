"""S3 as one connection describes it, told to the three who use it: boto3, PyIceberg and Iceberg in Spark."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from botocore.config import Config

if TYPE_CHECKING:
    import boto3
    from mypy_boto3_s3 import S3Client

CONNECT_S, READ_S, ATTEMPTS = 5, 30, 4
"""How long S3 may be silent before it counts as away: about two minutes at worst, a few seconds when it refuses."""

# Every call of boto3 that makes an object takes the encryption; who makes it need not think of it.
WRITES = ("PutObject", "CreateMultipartUpload", "CopyObject")


@dataclass(frozen=True)
class Encryption:
    """How S3 encrypts what we write; without one, the bucket's own default counts."""

    algorithm: Literal["AES256", "aws:kms", "aws:kms:dsse"]
    key: str | None = None
    """The KMS key's id or ARN; without one, the account's own for S3."""

    def arguments(self) -> dict[str, str]:
        """As boto3 takes it."""
        named = {"SSEKMSKeyId": self.key} if self.key else {}
        return {"ServerSideEncryption": self.algorithm, **named}


@dataclass(frozen=True)
class Role:
    """A role that Spark and PyIceberg assume, and renew, by themselves, with the machine's own credentials."""

    arn: str
    session_name: str = "headrace"
    seconds: int = 3600


@dataclass(frozen=True)
class Storage:
    """How to reach S3; without keys, the machine's own role is used."""

    endpoint: str | None = None
    access_key: str | None = None
    secret_key: str | None = field(default=None, repr=False)
    region: str = "us-east-1"
    session_token: str | None = field(default=None, repr=False)
    role: Role | None = None
    encryption: Encryption | None = None
    addressing: Literal["auto", "path", "virtual"] = "auto"
    """How a bucket is named in an address; `auto` is as a path wherever an endpoint is given."""
    verify: bool | str | None = None
    """Whose certificates boto3 takes; the others take what the machine trusts."""
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """More settings of botocore's Config."""
    session: "Callable[[], boto3.Session] | None" = field(default=None, repr=False, compare=False)
    """Gives boto3 a session that renews its credentials, where the keys here are only lent for a while."""

    def client(self) -> "S3Client":
        """A boto3 client whose every write is encrypted as the connection says."""
        session = self.session() if self.session else self._session()
        client = session.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=self.region,
            verify=self.verify,
            config=Config(**botocore_settings(self)),
        )
        if self.encryption:
            arguments = self.encryption.arguments()
            for operation in WRITES:
                client.meta.events.register(
                    f"before-parameter-build.s3.{operation}",
                    lambda params, **_: params.update({**arguments, **params}),
                )
        return client

    def _session(self) -> "boto3.Session":
        import boto3

        return boto3.Session(self.access_key, self.secret_key, self.session_token)

    @property
    def shown(self) -> str:
        """Where it is, for messages."""
        return self.endpoint or f"AWS, region {self.region}"


def botocore_settings(storage: Storage) -> dict[str, Any]:
    """Bounded times, unless the connection says otherwise."""
    ours = {
        "connect_timeout": CONNECT_S,
        "read_timeout": READ_S,
        "retries": {"mode": "standard", "total_max_attempts": ATTEMPTS},
    }
    style = {"addressing_style": "path"} if storage.endpoint and storage.addressing == "auto" else {}
    s3 = {**(storage.config.get("s3") or {}), **style}
    return {**ours, **storage.config, **({"s3": s3} if s3 else {})}


def pyiceberg_properties(storage: Storage) -> dict[str, str]:
    """As PyIceberg's Arrow files take it; they know no encryption, so what they write has the bucket's default."""
    role = storage.role
    return _given(
        {
            "s3.endpoint": storage.endpoint,
            "s3.access-key-id": storage.access_key,
            "s3.secret-access-key": storage.secret_key,
            "s3.session-token": storage.session_token,
            "s3.region": storage.region,
            "s3.role-arn": role.arn if role else None,
            "s3.role-session-name": role.session_name if role else None,
            "s3.force-virtual-addressing": "true" if storage.addressing == "virtual" else None,
            "s3.connect-timeout": str(CONNECT_S),
            "s3.request-timeout": str(READ_S),
        }
    )


def iceberg_properties(storage: Storage) -> dict[str, str]:
    """As Iceberg's S3FileIO in Spark takes it."""
    paths = storage.addressing == "path" or (storage.addressing == "auto" and storage.endpoint is not None)
    keys = {
        "s3.endpoint": storage.endpoint,
        "s3.access-key-id": storage.access_key,
        "s3.secret-access-key": storage.secret_key,
        "s3.session-token": storage.session_token,
        "client.region": storage.region,
        "s3.path-style-access": "true" if paths else None,
    }
    return _given(keys) | _assumed(storage) | _encrypted(storage)


def _assumed(storage: Storage) -> dict[str, str]:
    if (role := storage.role) is None:
        return {}
    return _given(
        {
            "client.factory": "org.apache.iceberg.aws.AssumeRoleAwsClientFactory",
            "client.assume-role.arn": role.arn,
            "client.assume-role.region": storage.region,
            "client.assume-role.session-name": role.session_name,
            "client.assume-role.timeout-sec": str(role.seconds),
        }
    )


TYPES = {"AES256": "s3", "aws:kms": "kms", "aws:kms:dsse": "dsse-kms"}
"""What Iceberg calls S3's ways to encrypt."""


def _encrypted(storage: Storage) -> dict[str, str]:
    if (encryption := storage.encryption) is None:
        return {}
    return _given({"s3.sse.type": TYPES[encryption.algorithm], "s3.sse.key": encryption.key})


def _given(values: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}
