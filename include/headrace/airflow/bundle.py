"""The DAG bundle of the feeds: a folder of stubs that follows the feed files and the registry.

The DAG processor refreshes it every second or two; with nothing changed that is a listing of each folder and one small
question to the registry. What there is to do is done by an errand. A task only makes sure that the folder is there.
"""

import logging
import time
from pathlib import Path
from typing import Any

from airflow.dag_processing.bundles.base import BaseDagBundle

from headrace.airflow.authority import Authority
from headrace.airflow.errand import Errand
from headrace.airflow.intake import Intake
from headrace.airflow.journal import Journal
from headrace.airflow.plan import WAIT_S
from headrace.airflow.reminder import Reminder
from headrace.airflow.stubs import Stubs
from headrace.errors import RegistryError

log = logging.getLogger(__name__)

PATIENCE_S = 1.5
"""How long a refresh waits for its errand: most are back by then, and their stubs are parsed at once."""

ERRAND_S = 300.0
"""How long an errand may take: each of its questions has a time limit of its own."""

TIDY_S = 300.0
"""How often an errand is sent though nothing changed, to mend what others changed behind our back."""

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
        self._reminder = Reminder(self.intake.stubs)
        self._errand: Errand | None = None
        self._sent = time.monotonic()
        self._rests_until = 0.0
        self._is_silent = False
        self._authorities: dict[bool, Authority] = {}

    @property
    def path(self) -> Path:
        return self.intake.stubs.path

    def get_current_version(self) -> None:
        return None

    def initialize(self) -> None:
        """Make the folder usable: by a task too, which never registers, and relies on a DAG processor beside it."""
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
        elif self._is_idle():
            self._send(journal)
        self._reminder.remind()
        self._stamp.touch()

    def _send(self, journal: Journal) -> None:
        """Send an errand if there is something to do, and wait a little for it."""
        mark, authority = self._mark(), self._authority(acts=True)
        plan = self.intake.plan(journal, authority, mark=mark)
        is_untidy = mark is not None and time.monotonic() - self._sent > TIDY_S
        if plan or is_untidy:
            self._sent = time.monotonic()
            self._errand = Errand(lambda: self.intake.take_in(authority, mark=mark))
            self._errand.is_back(patience=PATIENCE_S)

    def _is_idle(self) -> bool:
        """Whether no errand is on its way; after one that failed there is a pause."""
        if self._errand is not None:
            if not self._errand.is_back():
                if time.monotonic() - self._sent < ERRAND_S:
                    return False
                log.warning("Judging feeds takes more than %d s; it is begun anew.", ERRAND_S)
                self._errand.call_off()
            if self._errand.failed:
                self._rests_until = time.monotonic() + WAIT_S
            self._errand = None
        return time.monotonic() >= self._rests_until

    def _mark(self) -> str | None:
        """How far the registry is; None, told once, while it gives no answer."""
        try:
            mark = self._authority(acts=True).mark()
        except RegistryError as error:
            if not self._is_silent:
                log.warning("The feeds stay as they are, and changed ones wait: %s", error)
            self._is_silent, self._rests_until = True, time.monotonic() + WAIT_S
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
        self._stamp.touch()

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
