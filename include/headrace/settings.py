"""What differs between environments, read once at the edges; secrets are not here but in Airflow connections."""

from pathlib import Path

from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Read from `HEADRACE_*` environment variables."""

    model_config = SettingsConfigDict(env_prefix="HEADRACE_", frozen=True)

    schemas: Path = Path("schemas")
    """The folder of the feed files."""

    lake: str = "s3://headrace"
    """The bucket, and optional prefix, that holds the archive, the clean tables and quarantine."""

    catalog: str = "headrace"
    """The Iceberg catalog's name; Spark and PyIceberg share its tables only under the same name."""

    file_records: int = 500_000
    """The largest number of records in one archive file."""

    file_bytes: int = 128 * 1024 * 1024
    """The number of envelope bytes, before compression, after which an archive file is closed."""
