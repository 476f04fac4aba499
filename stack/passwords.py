"""Passwords and keys of a stack: generated on its first start, kept readable by its owner only."""

import base64
import json
import secrets
import uuid
from dataclasses import asdict, dataclass, field
from pathlib import Path

from stack import stamps
from stack.errors import StackError


def _password() -> str:
    return secrets.token_urlsafe(24)


def _fernet_key() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


def _cluster_id() -> str:
    # Kafka wants a UUID in this form, and reads a leading dash as an option.
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text


@dataclass(frozen=True)
class Passwords:
    """Everything secret in a stack, one field per use."""

    postgres: str = field(default_factory=_password)
    airflow_database: str = field(default_factory=_password)
    airflow_admin: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    airflow_op: str = field(default_factory=_password)
    airflow_user: str = field(default_factory=_password)
    airflow_viewer: str = field(default_factory=_password)
    airflow_headrace: str = field(default_factory=_password)
    airflow_jwt: str = field(default_factory=lambda: secrets.token_hex(64))
    airflow_session: str = field(default_factory=lambda: secrets.token_hex(32))
    airflow_fernet: str = field(default_factory=_fernet_key)
    catalog: str = field(default_factory=_password)
    registry: str = field(default_factory=_password)
    finance: str = field(default_factory=_password)
    finance_reader: str = field(default_factory=_password)
    engineering: str = field(default_factory=_password)
    engineering_reader: str = field(default_factory=_password)
    teams: str = field(default_factory=_password)
    s3_access_key: str = field(default_factory=lambda: f"headrace{secrets.token_hex(6)}")
    s3_secret_key: str = field(default_factory=lambda: secrets.token_hex(20))
    masks: str = field(default_factory=lambda: secrets.token_hex(32))
    signing: str = field(default_factory=lambda: secrets.token_hex(32))
    kafka_cluster_id: str = field(default_factory=_cluster_id)


def load(state: Path) -> Passwords:
    """Read the passwords of a stack, generating those it does not have yet."""
    path = state / "passwords.json"
    kept = {}
    if path.is_file():
        try:
            kept = json.loads(path.read_text())
        except json.JSONDecodeError as error:
            raise StackError(
                f"{path}: not valid JSON ({error}). Restore it, or start afresh with: make clean"
            ) from error
    passwords = Passwords(**{name: value for name, value in kept.items() if name in Passwords.__dataclass_fields__})
    if asdict(passwords) != kept:
        stamps.write(path, json.dumps(asdict(passwords), indent=2) + "\n", mode=0o600)
    return passwords
