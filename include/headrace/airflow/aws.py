"""The Amazon provider's connection as our Storage: keys, roles, profiles, endpoints and encryption."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.providers.amazon.aws.hooks.base_aws import AwsBaseHook
from airflow.providers.amazon.aws.utils.connection_wrapper import AwsConnectionWrapper
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
)

from headrace.errors import ServiceAway, SettingsError
from headrace.kinesis.calls import CONFIG
from headrace.storage import Encryption, Role, Storage

if TYPE_CHECKING:
    from mypy_boto3_kinesis import KinesisClient

ALGORITHMS = ("AES256", "aws:kms", "aws:kms:dsse")
ENCRYPTING = {"ServerSideEncryption", "SSEKMSKeyId"}


def storage(id_: str) -> Storage:
    """Read the connection; where PyIceberg and Spark cannot become who it says, they are lent credentials."""
    hook = AwsBaseHook(aws_conn_id=id_, client_type="s3")
    read = hook.conn_config
    role = role_of(read)
    keys: dict[str, Any] = {
        "access_key": read.aws_access_key_id,
        "secret_key": read.aws_secret_access_key,
        "session_token": read.aws_session_token,
    }
    if read.profile_name or (read.role_arn and role is None):
        keys = _lent(hook)
    config = dict(read.extra_config.get("config_kwargs") or {})
    return Storage(
        endpoint=read.get_service_endpoint_url("s3"),
        region=read.region_name or Storage.region,
        role=role,
        encryption=encryption_of(read.get_service_config("s3"), connection=id_),
        addressing=(config.get("s3") or {}).get("addressing_style", "auto"),
        verify=read.verify,
        config=config,
        # Airflow's session renews an assumed role's credentials for as long as a task runs.
        session=hook.get_session if read.role_arn or read.profile_name else None,
        **keys,
    )


def kinesis(id_: str) -> "KinesisClient":
    """A client of the connection; what its `config_kwargs` say goes before our own patience."""
    hook = AwsBaseHook(aws_conn_id=id_, client_type="kinesis")
    config = CONFIG.merge(Config(**hook.conn_config.extra_config.get("config_kwargs", {})))
    try:
        client: KinesisClient = hook.get_client_type(config=config)
    except (BotoCoreError, ClientError) as error:
        raise SettingsError(
            f"Airflow connection {id_}: AWS gives us no client for it: {error} Check its region, keys and role."
        ) from error
    return client


def role_of(read: AwsConnectionWrapper) -> Role | None:
    """The role, where everybody can assume it with the machine's own credentials and nothing else."""
    beyond = read.assume_role_kwargs.keys() - {"RoleSessionName", "DurationSeconds"}
    method = read.assume_role_method or "assume_role"
    own = read.aws_access_key_id or read.profile_name or read.service_config.get("sts")
    if not read.role_arn or method != "assume_role" or beyond or own:
        return None
    asked = read.assume_role_kwargs
    return Role(
        read.role_arn, asked.get("RoleSessionName", Role.session_name), int(asked.get("DurationSeconds", Role.seconds))
    )


def encryption_of(service: Mapping[str, Any], *, connection: str) -> Encryption | None:
    """What `extra_args` asks of every object that we write, as S3Hook names it."""
    asked = dict(service.get("extra_args") or {})
    where = f"Airflow connection {connection}: service_config.s3.extra_args"
    if unknown := sorted(asked.keys() - ENCRYPTING):
        raise SettingsError(f"{where} has {', '.join(unknown)}; only {' and '.join(sorted(ENCRYPTING))} are known.")
    if not asked:
        return None
    algorithm = asked.get("ServerSideEncryption")
    if algorithm not in ALGORITHMS:
        raise SettingsError(f"{where}.ServerSideEncryption is {algorithm!r}; it is one of {', '.join(ALGORITHMS)}.")
    key = asked.get("SSEKMSKeyId")
    if key and algorithm == "AES256":
        raise SettingsError(f"{where} names a KMS key, but AES256 uses none. Set ServerSideEncryption to aws:kms.")
    return Encryption(algorithm, key)


def _lent(hook: AwsBaseHook) -> dict[str, Any]:
    """Credentials of this moment; a role's last as long as its session, an hour unless the connection says more."""
    try:
        lent = hook.get_credentials()
    except (ClientError, NoCredentialsError, PartialCredentialsError, ProfileNotFound) as error:
        raise SettingsError(
            f"Airflow connection {hook.aws_conn_id}: AWS gives us no credentials for it: {error} Check role_arn, the "
            f"role's trust policy, and the keys or the machine's own role."
        ) from error
    except BotoCoreError as error:
        raise ServiceAway(
            f"Airflow connection {hook.aws_conn_id}: AWS, asked for credentials, does not answer: {error} Nothing was "
            f"done. Is the way to AWS open?"
        ) from error
    return {"access_key": lent.access_key, "secret_key": lent.secret_key, "session_token": lent.token}
