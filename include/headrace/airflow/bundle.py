"""The DAG bundle of the feeds: a folder of stubs that follows the feed files and the registry.

The DAG processor refreshes it every second or two; with nothing changed that is a listing of each folder and one small
question to the registry. What there is to do is done by an errand. A task only makes sure that the folder is there.
"""

import logging
import time
from functools import partial
from pathlib import Path
from typing import Any

from airflow.configuration import conf
from airflow.dag_processing.bundles.base import BaseDagBundle

from headrace.airflow.authority import Authority
from headrace.airflow.errand import Messenger
from headrace.airflow.intake import Intake
from headrace.airflow.journal import Journal
from headrace.airflow.reminder import Reminder, ask_airflow
from headrace.airflow.stubs import Stubs
from headrace.airflow.warehouse_watch import WarehouseWatch
from headrace.errors import RegistryError
from headrace.settings import Settings

log = logging.getLogger(__name__)

PATIENCE_S = 1.5
"""How long a refresh waits for its errand: most are back by then, and their stubs are parsed at once."""

TELL_S = 5.0
"""How often Variables are written at most: with many feeds that takes a while, and changes come in bursts."""

TIDY_S = 60.0
"""How often Variables are compared though nothing changed, which mends what somebody changed by hand."""

FRESH_S = 10.0
"""How old a refresh may be for a task to rely on it."""


class FeedBundle(BaseDagBundle):
    """Configured in `[dag_processor] dag_bundle_config_list`.

    `schemas` is the folder of the feed files. With `register` the DAG processor registers files when they change;
    without, it only compares them with what is registered, and `headrace register` is part of a deployment.
    """

    supports_versioning = False

    def __init__(self, *, schemas: str, register: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.register = register
        self.intake = Intake(Path(schemas), Stubs(Path(self.base_dir)))
        self._warehouses = WarehouseWatch(Settings().warehouses)
        deaf_s = conf.getfloat("core", "min_serialized_dag_update_interval")
        self._reminder = Reminder(self.intake.stubs, partial(ask_airflow, self.name), deaf_s=deaf_s)
        self._judging, self._telling = Messenger(), Messenger()
        self._told: str | None = None
        self._told_at = 0.0
        self._is_silent = False
        self._authorities: dict[bool, Authority] = {}

    @property
    def path(self) -> Path:
        return self.intake.stubs.path

    def get_current_version(self) -> None:
        return None

    def initialize(self) -> None:
        """Make the folder usable: by a task too, which never registers, and relies on a DAG processor of its host.

        Without one, each task looks for itself: what another host's DAG processor knows may be new here.
        """
        if not self._is_fresh():
            self._fill()
        super().initialize()

    def refresh(self) -> None:
        """Follow what changed; Airflow keeps all DAGs as they are when this fails."""
        # Forked with every parse and every errand: none of them imports these again.
        import headrace.airflow.factory
        import headrace.airflow.registration
        import headrace.airflow.variables  # noqa: F401

        journal = self.intake.journal()
        if not journal.whole:
            self._fill()
        elif self._judging.is_free():
            self._follow(journal)
        for name in self._warehouses.changed():
            self.intake.stubs.touch(name)
        self._reminder.remind()
        self._stamp.touch()

    def _follow(self, journal: Journal) -> None:
        """Send an errand if there is something to do, and wait a little for it."""
        mark, authority = self._mark(), self._authority(acts=True)
        if self.intake.plan(journal, authority, mark=mark):
            self._judging.send(lambda: self.intake.take_in(authority, mark=mark), patience=PATIENCE_S)
        if mark is not None and self._telling.is_free() and self._is_time_to_tell(mark):
            self._told, self._told_at = mark, time.monotonic()
            self._telling.send(authority.tell)

    def _is_time_to_tell(self, mark: str) -> bool:
        is_known = mark == self._told and not self._telling.has_failed
        return time.monotonic() - self._told_at > (TIDY_S if is_known else TELL_S)

    def _mark(self) -> str | None:
        """How far the registry is; None, told once, while it gives no answer."""
        try:
            mark = self._authority(acts=True).mark()
        except RegistryError as error:
            if not self._is_silent:
                log.warning("The feeds stay as they are, and changed ones wait: %s", error)
            self._is_silent = True
            self._judging.rest()
            return None
        self._is_silent = False
        return mark

    def _fill(self) -> None:
        """Judge every feed, here and now: Airflow would take a folder that lacks stubs for deleted DAGs."""
        authority, mark = self._authority(acts=False), None
        try:
            mark = authority.mark()
        except RegistryError:
            if not self.intake.journal().whole:
                raise
        self.intake.catch_up(authority, mark=mark)

    def _authority(self, *, acts: bool) -> Authority:
        """The registry, asked by the DAG processor, which acts upon it, or by anybody else, who only looks."""
        if acts not in self._authorities:
            from headrace.airflow import registration

            self._authorities[acts] = registration.authority(registers=acts and self.register, opens=acts)
        return self._authorities[acts]

    @property
    def _stamp(self) -> Path:
        return self.intake.stubs.folder / "refreshed"

    def _is_fresh(self) -> bool:
        try:
            return time.time() - self._stamp.stat().st_mtime < FRESH_S
        except FileNotFoundError:
            return False
