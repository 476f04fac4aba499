"""What differs between environments, read once at the edges; secrets are not here but in Airflow connections."""

from pathlib import Path

from pydantic import NonNegativeInt, PositiveInt
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Read from `HEADRACE_*` environment variables."""

    model_config = SettingsConfigDict(env_prefix="HEADRACE_", frozen=True)

    schemas: Path = Path("schemas")
    """The folder of the feed files."""

    warehouses: Path = Path("warehouses")
    """The folder of the warehouses' files."""

    jobs: Path = Path("jobs")
    """The folder of teams' own jobs, which feeds name by file."""

    lake: str = "s3://headrace"
    """The bucket, and optional prefix, that holds the archive, the clean tables and quarantine."""

    catalog: str = "headrace"
    """The Iceberg catalog's name; Spark and PyIceberg share its tables only under the same name."""

    file_records: PositiveInt = 500_000
    """The largest number of records in one archive file."""

    spark_from: NonNegativeInt = 10_000_000
    """From how many new records on a run is read by Spark instead of in the task; a feed may say otherwise."""

    file_bytes: PositiveInt = 96 * 1024 * 1024
    """The largest number of envelope bytes, before compression, in one archive file; a larger record gets its own."""

    kinesis_records: PositiveInt = 10_000_000
    """About how many records one run reads of a Kinesis stream at most; the next run goes on."""

    personal: str = ""
    """The kinds of personal data, with commas between or `*`, that `headrace.read` shows here; none unless told."""
