"""The DAG bundle of the feeds: a folder of stubs that follows the folder of feed files."""

from pathlib import Path
from typing import Any

from airflow.dag_processing.bundles.base import BaseDagBundle

from headrace.airflow import stubs


class FeedBundle(BaseDagBundle):
    """Configured in `[dag_processor] dag_bundle_config_list` with the folder of the feed files."""

    supports_versioning = False

    def __init__(self, *, schemas: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.schemas = Path(schemas)

    @property
    def path(self) -> Path:
        return Path(self.base_dir) / "stubs"

    def initialize(self) -> None:
        self.refresh()
        super().initialize()

    def refresh(self) -> None:
        stubs.write(self.schemas, self.path)

    def get_current_version(self) -> None:
        return None
