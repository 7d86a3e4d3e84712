"""Alerts to a webhook that reads what Slack reads: drops of a series, and gates that did not pass.

Nothing is sent unless somebody asks for it.  A webhook's URL is a secret: no
message of this module shows more of it than its scheme and host.
"""

from __future__ import annotations

import http.client
import json
import random
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

from pytest_adaptive_eval.errors import AlertError
from pytest_adaptive_eval.records.drift import Alarm
from pytest_adaptive_eval.records.run_record import RunRecord, plain
from pytest_adaptive_eval.retry_after import retry_after
from pytest_adaptive_eval.text import clean_terminal, counted

__all__ = ["payload", "send"]

#: Characters of a sentence.  Slack takes 3 000 in a block, and a character becomes up to five when it is escaped.
_SENTENCE = 500
#: Alarms, and gates, that are told one by one; Slack takes 50 blocks.
_TOLD = 20
#: Characters of the text for receivers that do not read blocks.
_TEXT = 3_500
#: Longest link.
_LINK = 3_000
#: Bytes of a refusal that are read.
_REFUSAL = 1_024
#: What a URL may hold as it is; the rest is escaped, above all what would end a link.
_URL = ":/?#[]@!$&'()*+,;=%~"
#: Seconds that one attempt may take.
_ANSWER = 10.0
#: Seconds before the second attempt, on average; twice as many before each further one.
_PAUSE = 1.0


def payload(alarms: Sequence[Alarm], *, run: RunRecord | None = None, report_url: str = "") -> dict[str, Any]:
    """What to send: one block an alarm, one a gate of the run that did not pass.

    Names come from elsewhere: nothing in them can mention people or make a link.

    Parameters
    ----------
    alarms : sequence of Alarm
    run : RunRecord, optional
        The newest run.
    report_url : str
        Where people can read more.

    Returns
    -------
    dict
        ``text`` for notifications and receivers that know no more, and ``blocks``.
    """
    refused = [gate for gate in run.gates if not gate.holds] if run else []
    told = [alarm.sentence for alarm in alarms[:_TOLD]]
    told += [
        f"{gate.name}: {gate.verdict.get('sentence') or 'the record holds no verdict for this gate'}"
        for gate in refused[:_TOLD]
    ]
    parts = [counted(len(alarms), "drop")] if alarms else []
    parts += [f"{counted(len(refused), 'gate')} not passed"] if refused else []
    head = f"Adaptive evaluation: {', '.join(parts) or 'nothing to tell'}"
    lines = [_safe(sentence) for sentence in told]
    if left := len(alarms) + len(refused) - len(told):
        lines.append(f"and {left} more")
    about = []
    if run:
        subjects = list(dict.fromkeys(str(i.subject.get("name") or "unnamed") for i in run.interviews))
        about.append(_safe(f"run {run.run}, {run.started}" + (f", {', '.join(subjects[:5])}" if subjects else "")))
    if report_url:
        about.append(_link(report_url))
    blocks: list[dict[str, Any]] = [{"type": "header", "text": {"type": "plain_text", "text": head}}]
    blocks += [{"type": "section", "text": _text(line)} for line in lines]
    blocks += [{"type": "context", "elements": [_text(line)]} for line in about]
    text = head
    for line in [*about, *lines]:
        if len(text) + len(line) < _TEXT:
            text += f"\n{line}"
    return {"text": text, "blocks": blocks}


def _text(line: str) -> dict[str, Any]:
    return {"type": "mrkdwn", "text": line, "verbatim": True}


def _safe(text: str) -> str:
    """Foreign text as one line in which nothing is markup, a mention or a link."""
    text = clean_terminal(text, _SENTENCE)
    text = text.replace("@", "@\u200b").replace("://", ":\u200b//")
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _link(url: str) -> str:
    """The report's address as a link where it is one."""
    with suppress(ValueError):
        parts = urlsplit(url)
        link = f"<{quote(url, safe=_URL).replace('&', '&amp;')}|report>"
        if parts.scheme in ("http", "https") and parts.hostname and url.isprintable() and len(link) <= _LINK:
            return link
    return f"report: {_safe(url)}"


def send(
    url: str,
    data: Mapping[str, Any],
    *,
    attempts: int = 4,
    deadline: float = 30.0,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Deliver a payload, or raise.

    Redirects are not followed, and no proxy is used.  When the receiver is
    overloaded, in trouble or out of reach, it is tried again.

    Parameters
    ----------
    url : str
        HTTPS, or HTTP to this machine itself.
    data : mapping
        To be sent as JSON.
    attempts : int
        At most.
    deadline : float
        Seconds for all attempts together.
    sleep : callable
        Waits so many seconds.

    Raises
    ------
    AlertError
        The payload was not taken; nothing of the URL but its scheme and host is told.
    """
    parts = _checked(url)
    place = f"{parts.scheme}://{parts.hostname}"
    body = json.dumps(plain(data)).encode("ascii")
    end = time.monotonic() + deadline
    for attempt in range(1, max(attempts, 1) + 1):
        reply = _attempt(parts, body, min(end - time.monotonic(), _ANSWER))
        if 200 <= reply.status < 300:
            return
        told = reply.told + f" after {counted(attempt, 'attempt')}"
        if attempt >= attempts or not reply.passing:
            break
        wait = _PAUSE * 2 ** (attempt - 1) * random.uniform(0.5, 1.5) if reply.wait is None else reply.wait
        if wait >= end - time.monotonic():
            told += f", and the deadline of {deadline:g} s leaves no time for another"
            break
        sleep(wait)
    raise AlertError(f"the webhook at {place} did not take the alert: {told}. {reply.advice}")


def _checked(url: str) -> SplitResult:
    """The parts of a URL that may be sent to."""
    fault, host = "it is no URL", ""
    with suppress(ValueError):
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
        if parts.scheme not in ("http", "https"):
            fault = "it does not begin with https://"
        elif parts.scheme == "http" and not _here(host):
            fault = f"http://{host} would send it unencrypted"
        elif "@" in parts.netloc:
            fault = "it holds a user or a password"
        elif host and url.isascii() and url.isprintable() and " " not in url:
            return parts
    raise AlertError(f"the webhook's URL cannot be used: {fault}. Give an https:// URL, as the receiver shows it")


def _here(host: str) -> bool:
    """Whether a host is this machine itself."""
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


@dataclass(slots=True)
class _Reply:
    """What an attempt came to.

    Parameters
    ----------
    status : int
        Of HTTP; 0 without an answer.
    wait : float or None
        Seconds that the receiver asks to wait.
    word : str
        The receiver's own word for a refusal, where it is one word and none of the URL's.
    fault : str
        Why there is no answer.
    """

    status: int = 0
    wait: float | None = None
    word: str = ""
    fault: str = ""

    @property
    def passing(self) -> bool:
        """Whether another attempt may succeed."""
        return not self.status or self.status == 429 or self.status >= 500

    @property
    def told(self) -> str:
        """What happened."""
        if not self.status:
            return self.fault
        return f"it answered {self.status}" + (f" {self.word}" if self.word else "")

    @property
    def advice(self) -> str:
        """What to do."""
        if 300 <= self.status < 400:
            return "Redirects are not followed: give the URL that takes the message"
        return "Try again later" if self.passing else "Check the webhook's URL and that it is still active"


def _attempt(parts: SplitResult, body: bytes, seconds: float) -> _Reply:
    """One POST that takes no longer than `seconds`, however slowly the answer drips."""
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    host, port = parts.hostname or "", parts.port
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        connection = http.client.HTTPSConnection(host, port, timeout=seconds, context=ssl.create_default_context())
    else:
        connection = http.client.HTTPConnection(host, port, timeout=seconds)
    reply = _Reply()

    def post() -> None:
        try:
            connection.request("POST", path, body, {"Content-Type": "application/json", "Connection": "close"})
            with connection.getresponse() as response:
                reply.wait = retry_after(response.getheader("Retry-After", ""), datetime.now(UTC))
                reply.status = response.status
                if response.status >= 300:
                    word = response.read(_REFUSAL).decode("ascii", "replace").strip()
                    if re.fullmatch("[a-z_]{1,40}", word) and word not in path:
                        reply.word = word
        except Exception as error:  # its own text may hold the URL
            reply.fault = (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
        finally:
            connection.close()

    thread = threading.Thread(target=post, daemon=True)
    thread.start()
    thread.join(max(seconds, 0.0))
    if not thread.is_alive():
        return reply
    late = _Reply(reply.status, reply.wait, fault=f"no answer in {seconds:.3g} s")
    if (held := connection.sock) is not None:
        with suppress(OSError):
            held.shutdown(socket.SHUT_RDWR)
    return late
