"""Approval: on-call may publish a run that its checks stopped, by a form in Airflow's UI that asks for the reason.

The run waits without a worker and without its turn on the tables, so later runs go on archiving meanwhile. One run of
a feed waits at most: more would use up the runs that Airflow lets be active at once.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Param
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from headrace import layout
from headrace.airflow import turns
from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.lease import Leases

log = logging.getLogger(__name__)

TASK = "approve"
STOPPED = "stopped"
"""The XCom by which check tells what there is to approve."""

PUBLISH, LEAVE = "Publish anyway", "Do not publish"
REASON = "reason"
WAITING = ("awaiting_input", "deferred", "running", "queued", "scheduled", "restarting", "up_for_retry")
"""A task in one of these states waits for its answer, or is about to."""


@dataclass(frozen=True)
class Approval:
    """Who lets which failed expectations of a run be published, and why."""

    by: str
    why: str
    at: str
    snapshot: str
    expectations: Sequence[str]

    def __str__(self) -> str:
        return f"approved by {self.by} at {self.at}: {self.why}"


def given(approved: Mapping[str, Any] | None, *, stopped: Mapping[str, Any] | None) -> Approval | None:
    """The approval of what checks stopped in this run; one of an earlier try, before tasks were cleared, is none."""
    if approved is None or stopped is None or approved["snapshot"] != stopped["snapshot"]:
        return None
    return Approval(**approved)


class ApprovalOperator(HITLOperator):
    """Asks whether a run that checks stopped is published anyway; fails when it is not, or nobody answers."""

    def __init__(self, *, feed: str, lasting: timedelta, **options: Any) -> None:
        # Airflow tests a default before anybody sees the form: so an empty answer is refused later, in our words.
        why = Param("", type="string", title="Why", description_md="Needed to publish; kept with the check's result.")
        super().__init__(
            subject=f"{feed}: publish though checks failed?",
            options=[PUBLISH, LEAVE],
            params={REASON: why},
            response_timeout=lasting,
            **options,
        )
        self.feed, self.lasting = feed, lasting

    def execute(self, context: Any) -> None:
        stopped = context["ti"].xcom_pull(task_ids="check", key=STOPPED)
        if stopped is None:
            raise AirflowSkipException(f"feed {self.feed}: no check came out wrong, so there is nothing to approve")
        _wait_alone(self.feed, lasting=self.lasting, ti=context["ti"])
        page = context["ti"].xcom_pull(task_ids="check", key="checks")
        self.body = body(self.feed, stopped, run=context["run_id"], page=page)
        super().execute(context)

    def execute_complete(self, context: Any, event: Mapping[str, Any]) -> dict[str, Any]:
        chosen, who = event.get("chosen_options"), (event.get("responded_by_user") or {}).get("name", "?")
        why = str((event.get("params_input") or {}).get(REASON) or "").strip()
        if chosen == [PUBLISH] and not why:
            log.warning("feed %s: %s gave no reason, so it is asked again", self.feed, who)
            self.execute(context)  # waits again: what follows is the next answer's
        _wait_no_more(self.feed)
        if "error" in event:
            raise AirflowFailException(f"feed {self.feed}: nobody answered: {event['error']} Nothing was published.")
        if chosen != [PUBLISH]:
            raise AirflowFailException(f"feed {self.feed}: {who} left the run unpublished: {why or 'no reason given'}")
        stopped = context["ti"].xcom_pull(task_ids="check", key=STOPPED)
        at = event["responded_at"].isoformat()
        approval = Approval(by=who, why=why, at=at, snapshot=stopped["snapshot"], expectations=stopped["expectations"])
        log.info("feed %s: %s", self.feed, approval)
        return asdict(approval)


def body(feed: str, stopped: Mapping[str, Any], *, run: str, page: str | None) -> str:
    """What the form says, in Markdown; `page` shows every outcome."""
    branch, failed = layout.branch(run), "\n".join(f"- {told}" for told in stopped["told"])
    shown = f"[Every outcome]({page})\n\n" if page else ""
    return (
        f"These checks failed:\n\n{failed}\n\n{shown}Readers still see the rows from before. The run's rows wait on "
        f"branch `{branch}` of `clean.{feed}`.\n\n**{PUBLISH}** lets readers see them; your name and reason are "
        f"kept with the result. If the table moved on since, they are merged and checked again first, and whatever "
        f"fails then beside the above stops the run again. To mend the cause instead, do so and clear the transform "
        f"task."
    )


def _wait_alone(feed: str, *, lasting: timedelta, ti: Any) -> None:
    """Take the feed's one place to wait; a run that has it though it waits no more, marked or cleared, loses it."""
    leases, name = _leases(), layout.approval_lease(feed)
    while not leases.take(name, holder=turns.holder(), doing=TASK, lasting=lasting):
        found = leases.holder(name)
        if found is None:
            continue
        other = found.holder.partition("/")[2]
        states = ti.get_task_states(dag_id=feed, task_ids=[TASK], run_ids=[other])
        if states.get(other, {}).get(TASK) in WAITING:
            raise AirflowFailException(
                f"feed {feed}: run {other} waits for an approval already, so this one does not. Answer that one under "
                f"Required Actions; the next run then takes this one's records along. Nothing was published."
            )
        leases.release(name, holder=found.holder)


def _wait_no_more(feed: str) -> None:
    # The answer must not be lost because the place could not be given back: it is free once the run waits no more.
    with suppress(HeadraceError):
        _leases().release(layout.approval_lease(feed), holder=turns.holder())


def _leases() -> "Leases":
    from headrace.airflow import connections
    from headrace.lease import Leases

    return Leases(connections.database(layout.CATALOG_CONNECTION))
