"""Alerts: whoever a feed names is told, through Airflow's own notifiers; what is told holds nothing personal.

By mail to the addresses of its file, or else to the channel of its owner: a webhook that takes `{"text": …}`, as those
of Slack, Mattermost and Teams do.
"""

import logging
from html import escape
from typing import TYPE_CHECKING

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowException, AirflowNotFoundException

from headrace import layout
from headrace.feed import Feed

if TYPE_CHECKING:
    from airflow.sdk import BaseNotifier

log = logging.getLogger(__name__)


def tell(feed: Feed, subject: str, text: str) -> None:
    """Tell of something; that nobody could be told is logged, and hides nothing of what there was to tell."""
    try:
        notifier = _notifier(feed, subject, text)
        if notifier is None:
            ids = f"{layout.alerts_connection(feed.declaration.owner)} or {layout.ALERTS_CONNECTION}"
            log.warning("feed %s: nobody is told: it names no alerts.to, and there is no connection %s", feed.name, ids)
            return
        # Not by calling it: that would render the text as a template, and a key may look like one.
        notifier.notify({})
    except (AirflowException, OSError, ValueError) as error:
        log.error("feed %s: its alert could not be sent: %s: %s", feed.name, type(error).__name__, error)
    else:
        log.info("feed %s: told of it by %s", feed.name, type(notifier).__name__)


def _notifier(feed: Feed, subject: str, text: str) -> "BaseNotifier | None":
    if to := feed.declaration.alerts.to:
        from airflow.providers.smtp.notifications.smtp import SmtpNotifier

        return SmtpNotifier(to=list(to), subject=subject, html_content=f"<p>{escape(text)}</p>")
    channel = _channel(feed)
    if channel is None:
        return None
    from airflow.providers.http.notifications.http import HttpNotifier

    return HttpNotifier(http_conn_id=channel, json={"text": f"{subject}\n{text}"})


def _channel(feed: Feed) -> str | None:
    """The owner's webhook, or else the platform's."""
    for id_ in (layout.alerts_connection(feed.declaration.owner), layout.ALERTS_CONNECTION):
        try:
            return str(BaseHook.get_connection(id_).conn_id)
        except AirflowNotFoundException:
            continue
    return None
