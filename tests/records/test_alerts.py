"""Alerts: their text, their delivery, and that the URL stays secret."""

from __future__ import annotations

import json
import socket
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fake_server import AlertReceiver
from hypothesis import given
from hypothesis import strategies as st
from made import made

from pytest_adaptive_eval.errors import AdaptiveEvalError, AlertError, ConfigError
from pytest_adaptive_eval.records.alerts import Alert, compose_alert, open_service, send, slack_payload
from pytest_adaptive_eval.records.drift import Alarm, Series, SeriesPoint
from pytest_adaptive_eval.records.run_record import EvaluationRecord, GateRecord, RunRecord

SECRET = "T0SECRET/B0SECRET/xyzzy"
MESSAGE = Alert("Adaptive evaluation: 1 drop", "run 7", ("a drop, 1 €",), "")


class Receiver(AlertReceiver):
    """A service whose address holds a secret."""

    @property
    def url(self) -> str:
        return f"json://127.0.0.1:{self.port}/services/{SECRET}?wait=0"


def status(code: int, body: bytes = b"", **headers: str) -> tuple[int, bytes, dict[str, str]]:
    return code, body, headers


@pytest.fixture
def with_apprise() -> None:
    pytest.importorskip("apprise", reason="alerts need apprise (extra alerts)")


delivery = pytest.mark.usefixtures("with_apprise")


@contextmanager
def refused() -> Iterator[list[str]]:
    """Expect an `AlertError` without a part of the secret, and collect its message."""
    messages: list[str] = []
    with pytest.raises(AlertError) as caught:
        yield messages
    shown = "".join(traceback.format_exception_only(caught.value)) + repr(caught.value) + repr(vars(caught.value))
    assert "SECRET" not in shown
    assert "xyzzy" not in shown
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    messages.append(str(caught.value))


@delivery
def test_alert_is_delivered_once() -> None:
    with Receiver(status(200, b"ok")) as receiver:
        send(open_service(receiver.url), MESSAGE)
    [(path, body)] = receiver.requests
    assert path == f"/services/{SECRET}"
    assert body["title"] == "Adaptive evaluation: 1 drop"
    assert body["message"] == "run 7\na drop, 1 €"


@delivery
def test_failing_service_is_tried_again() -> None:
    with Receiver(status(503), status(429), status(500), status(204)) as receiver:
        send(open_service(receiver.url), MESSAGE)
    assert len(receiver.requests) == 4


@delivery
def test_error_after_all_attempts_gives_the_status_and_not_the_body() -> None:
    with Receiver(status(404, SECRET.encode())) as receiver, refused() as messages:
        send(open_service(receiver.url), MESSAGE)
    assert len(receiver.requests) == 4
    assert messages == [
        "JSON did not take the alert: HTTP status 404. Check the URL and that it is still active, or try again later"
    ]


@delivery
def test_redirects_are_not_followed() -> None:
    with Receiver(status(200)) as target:
        for code in (301, 302, 307, 308):
            with Receiver(status(code, Location=target.url)) as receiver, refused() as messages:
                send(open_service(receiver.url), MESSAGE)
            assert f"HTTP status {code}" in messages[0]
        assert not target.requests


@delivery
def test_unreachable_service_gives_no_answer() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with refused() as messages:
        send(open_service(f"json://127.0.0.1:{port}/{SECRET}?retry=0"), MESSAGE)
    assert "no answer" in messages[0]


@delivery
@pytest.mark.parametrize("url", [f"https://hooks.example.com/{SECRET}", f"nonsense://{SECRET}", SECRET, "", "json://"])
def test_url_of_no_service_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(ConfigError, match="expected one of apprise's services") as caught:
        open_service(url)
    assert "--alert-file" in str(caught.value)
    assert "SECRET" not in str(caught.value)
    assert "nonsense" not in str(caught.value)


@delivery
def test_webhook_of_slack_is_a_service() -> None:
    assert len(open_service("https://hooks.slack.com/services/T0AAAAAAA/B0AAAAAAA/aaaaaaaaaaaaaaaaaaaaaaaa"))


def test_alert_errors_are_of_the_tree() -> None:
    assert issubclass(AlertError, AdaptiveEvalError)


def alarm(sentence: str) -> Alarm:
    series = Series("text", "text", "h", "s", "ability", "", (SeriesPoint("r", "t", "s", "c", 0.0, 1.0),))
    return Alarm(series, 0, 0, None, 1, 0, sentence)


def run(gates: list[GateRecord], subject: str = "step-4000") -> RunRecord:
    interview = made(
        EvaluationRecord, "text", "n", {"name": subject}, {}, {}, 1, 1, 1, {}, "BUDGET", "", None, None, None, None
    )
    return RunRecord("20310506T070809000Z-00000000", "2031-05-06T07:08:09Z", evaluations=[interview], gates=gates)


def gate(outcome: str, name: str = "test_promotion", **more: Any) -> GateRecord:
    return made(GateRecord, name, name, "text", {"outcome": outcome, "stated": "accuracy .612", **more})


def test_alert_lists_alarms_and_gates_that_did_not_pass() -> None:
    gates = [
        gate("PASS", "passed"),
        gate("FAIL", "failed"),
        gate("ERROR", "broken"),
        gate("INCONCLUSIVE", "open"),
        gate("INCONCLUSIVE", "waved through", on_inconclusive="warn"),
        gate("INCONCLUSIVE", "first run", notice=True),
    ]
    alert = compose_alert(
        [alarm("ability of text fell")], run=run(gates), report_url="https://ci.example.com/r?a=1&b=2"
    )
    message = slack_payload(alert)
    assert message["text"].splitlines() == [
        "Adaptive evaluation: 1 drop, 3 gates not passed",
        "run 20310506T070809000Z-00000000, 2031-05-06T07:08:09Z, step-4000",
        "<https://ci.example.com/r?a=1&amp;b=2|report>",
        "ability of text fell",
        "failed: FAIL accuracy .612",
        "broken: ERROR accuracy .612",
        "open: INCONCLUSIVE accuracy .612",
    ]
    assert compose_alert([]).title == "Adaptive evaluation: no drop, and no gate that did not pass"


HOSTILE = st.text() | st.sampled_from(
    [
        "<!channel>",
        "@here",
        "<@U123>",
        "&lt;!here&gt;",
        "<https://evil.example|good>",
        "http://evil.example",
        "\ud800",
        "\x1b[31m",
    ]
)


@pytest.mark.slow
@given(st.lists(HOSTILE, max_size=3), HOSTILE, HOSTILE, HOSTILE)
def test_foreign_text_makes_no_mention_and_no_link(sentences: list[str], subject: str, name: str, url: str) -> None:
    alert = compose_alert([alarm(s) for s in sentences], run=run([gate("FAIL", name)], subject), report_url=url)
    message = slack_payload(alert)
    json.dumps(message, ensure_ascii=False).encode("utf-8")
    link = f"<{url}|report>"
    text = message["text"].replace(link, "")
    assert "<" not in text
    assert ">" not in text
    assert "://" not in text
    assert all(text[i + 1 : i + 2] == "\u200b" for i, c in enumerate(text) if c == "@")
    assert "&" not in text.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "")
    plain = alert.text("")
    assert "://" not in plain
    assert all(plain[i + 1 : i + 2] == "\u200b" for i, c in enumerate(plain) if c in "@<")


def test_a_message_keeps_within_slacks_limits() -> None:
    gates = [gate("FAIL", "&" * 10_000, stated="<" * 10_000) for _ in range(100)]
    url = "https://a.example/" + "&" * 900
    found = slack_payload(compose_alert([alarm("@&" * 5_000)] * 100, run=run(gates, "&" * 5_000), report_url=url))
    assert len(found["text"]) <= 4_000


def test_many_alarms_are_counted() -> None:
    assert compose_alert([alarm("a")] * 100).sentences[-1] == "and 80 more"


@pytest.mark.parametrize("url", ["javascript:alert(1)", "https://a.example/\n", "https://", "http://[", "x" * 9_999])
def test_only_an_address_becomes_a_link(url: str) -> None:
    assert "|report>" not in slack_payload(compose_alert([], report_url=url))["text"]


def test_a_link_cannot_be_ended_from_within() -> None:
    message = slack_payload(compose_alert([], report_url="https://a.example/|x><!channel>"))
    assert message["text"].splitlines()[-1] == "<https://a.example/%7Cx%3E%3C!channel%3E|report>"
