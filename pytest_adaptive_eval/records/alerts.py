"""Alerts: messages on drops of a series and on gates that did not pass, sent by apprise or written to a file.

Nothing is sent without a URL. The URL is a secret: no message of this module contains it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from pytest_adaptive_eval.errors import AlertError, ConfigError, UsageError
from pytest_adaptive_eval.records.drift import Alarm
from pytest_adaptive_eval.records.run_record import RunRecord
from pytest_adaptive_eval.text import clean_terminal, counted

_SENTENCE = 500  #: Characters of a sentence.
_LISTED = 20  #: Alarms, and gates, with a sentence of their own.
_TEXT = 3_500  #: Characters of the whole text.
_LINK = 3_000  #: Longest link.
#: Characters that stay in a link; others, such as those that would end it, are escaped.
_URL = ":/?#[]@!$&'()*+,;=%~"
#: Further attempts after a failure, seconds between two attempts, and seconds for all attempts together.
_RETRIES, _PAUSE, _DEADLINE = 3, 2.0, 30.0


@dataclass(frozen=True, slots=True)
class Alert:
    """One message as plain text without mentions or links: a sentence per alarm, then per gate that did not pass."""

    title: str
    run: str
    sentences: tuple[str, ...]
    report_url: str

    def text(self, link: str) -> str:
        """Return the message without its title, a line per fact, cut after `_TEXT` characters."""
        lines = [line for line in (self.run, link, *self.sentences) if line]
        while sum(len(line) + 1 for line in lines) > _TEXT - len(self.title):
            lines.pop()
        return "\n".join(lines)


def compose_alert(alarms: Sequence[Alarm], *, run: RunRecord | None = None, report_url: str = "") -> Alert:
    """Return the message on alarms and on the gates of a run that did not pass."""
    if run:
        refused = [gate for gate in run.gates if not gate.holds]
    else:
        refused = []
    sentences = [alarm.sentence for alarm in alarms[:_LISTED]]
    for gate in refused[:_LISTED]:
        sentences.append(f"{gate.name}: {gate.verdict.sentence}")
    unlisted = len(alarms) + len(refused) - len(sentences)
    if unlisted:
        sentences.append(f"and {unlisted} more")
    if alarms:
        counts = [counted(len(alarms), "drop")]
    else:
        counts = []
    if refused:
        counts.append(f"{counted(len(refused), 'gate')} not passed")
    if run:
        about = _about(run)
    else:
        about = ""
    title = f"Adaptive evaluation: {', '.join(counts) or 'no drop, and no gate that did not pass'}"
    return Alert(title, about, tuple(map(_inert, sentences)), report_url)


def _about(run: RunRecord) -> str:
    """Return a run's name, its start and some of its subjects."""
    subjects = dict.fromkeys(interview.subject.name or "unnamed" for interview in run.interviews)
    return _inert(", ".join([f"run {run.run}", run.started, *list(subjects)[:5]]))


def _inert(text: str) -> str:
    """Return foreign text as one line in which nothing is a mention, a tag or a link."""
    return clean_terminal(text, _SENTENCE).replace("@", "@\u200b").replace("<", "<\u200b").replace("://", ":\u200b//")


def slack_payload(alert: Alert) -> dict[str, str]:
    """Return the alert as JSON data for an incoming webhook of Slack and of receivers that take its ``text``."""
    escaped = Alert(alert.title, _escaped(alert.run), tuple(map(_escaped, alert.sentences)), alert.report_url)
    text = escaped.text(_slack_link(alert.report_url))
    return {"text": f"{alert.title}\n{text}".rstrip("\n")}


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _slack_link(url: str) -> str:
    """Return a report's address as a Slack link; as text unless it is an HTTP address."""
    with suppress(ValueError):
        parts = urlsplit(url)
        link = f"<{quote(url, safe=_URL).replace('&', '&amp;')}|report>"
        if parts.scheme in ("http", "https") and parts.hostname and url.isprintable() and len(link) <= _LINK:
            return link
    if url:
        return f"report: {_escaped(_inert(url))}"
    return ""


def open_service(url: str) -> Any:
    """Return the ``apprise.Apprise`` for a URL, without sending anything.

    Raises:
        UsageError: apprise is missing.
        ConfigError: No service of apprise has such a URL.
    """
    try:
        import apprise
    except ImportError:
        raise UsageError('alerts need apprise: pip install "pytest-adaptive-eval[alerts]"') from None
    asset = apprise.AppriseAsset(
        app_id="pytest-adaptive-eval",
        async_mode=False,
        default_service_retry=_RETRIES,
        default_service_wait=_PAUSE,
        http_redirects=False,
    )
    service = apprise.Apprise(asset=asset)
    if not service.add(url):
        raise ConfigError(
            "the alert's URL cannot be used: expected one of apprise's services, such as an incoming webhook of Slack "
            "(https://hooks.slack.com/...), mmosts://HOST/TOKEN or jsons://HOST/PATH. For any other receiver write the "
            "alert with --alert-file and send the file with curl"
        )
    return service


def send(service: Any, alert: Alert) -> None:
    """Send an alert, or raise.

    Redirects are not followed. A failure is tried again, as apprise's ``retry`` and ``wait`` in the URL say, by default
    3 times after 2 seconds each.

    Raises:
        AlertError: The service did not take the alert.
    """
    body = alert.text(f"report: {alert.report_url}" if alert.report_url else "")
    outcome = service.notify(
        title=alert.title, body=body or alert.title, body_format="text", tag="all", timeout=_DEADLINE
    )
    if outcome:
        return
    # the log's sentences may repeat parts of the URL, its status codes do not
    codes = re.findall(r"error=(\d{3})\b", " ".join(entry.message for entry in outcome.logs()))
    if codes:
        reason = f"HTTP status {codes[-1]}"
    else:
        reason = "no answer"
    names = ", ".join(result.name for result in outcome) or "the service"
    raise AlertError(
        f"{names} did not take the alert: {reason}. Check the URL and that it is still active, or try again later"
    )
