"""Alerts: what is sent, to whom, how often, and that the webhook's URL stays secret."""

from __future__ import annotations

import json
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_adaptive_eval.errors import AdaptiveEvalError, AlertError
from pytest_adaptive_eval.records import alerts
from pytest_adaptive_eval.records.alerts import payload, send
from pytest_adaptive_eval.records.drift import Alarm, Point, Series
from pytest_adaptive_eval.records.run_record import GateRecord, InterviewRecord, RunRecord

SECRET = "T0SECRET/B0SECRET/xyzzy"
Answer = Callable[[BaseHTTPRequestHandler], None]


class Receiver:
    """A webhook on this machine: answers in order, the last one for ever."""

    def __init__(self, *answers: Answer) -> None:
        self.got: list[tuple[str, dict[str, str], Any]] = []
        receiver, left = self, list(answers)

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.got.append((self.path, dict(self.headers), json.loads(body)))
                answer = left.pop(0) if len(left) > 1 else left[0]
                try:
                    answer(self)
                except OSError:  # the sender hung up
                    self.close_connection = True

            def log_message(self, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/services/{SECRET}?token=q0SECRET"

    def __enter__(self) -> Receiver:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def status(code: int, body: bytes = b"", **headers: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


@contextmanager
def refused() -> Iterator[list[str]]:
    """Expects an `AlertError` that gives nothing away, and collects its message."""
    messages: list[str] = []
    with pytest.raises(AlertError) as caught:
        yield messages
    told = "".join(traceback.format_exception_only(caught.value)) + repr(caught.value) + repr(vars(caught.value))
    assert "SECRET" not in told
    assert "xyzzy" not in told
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    messages.append(str(caught.value))


def test_a_payload_is_delivered_once() -> None:
    with Receiver(status(200, b"ok")) as receiver:
        send(receiver.url, {"text": "a drop, 1 €", "blocks": [float("nan")]})
    [(path, headers, body)] = receiver.got
    assert path == f"/services/{SECRET}?token=q0SECRET"
    assert headers["Content-Type"] == "application/json"
    assert body == {"text": "a drop, 1 €", "blocks": [None]}


def test_it_is_tried_again_when_the_receiver_is_in_trouble() -> None:
    waits: list[float] = []
    with Receiver(status(503), status(429, Retry_After="0.5"), status(500), status(204)) as receiver:
        send(receiver.url, {"text": "x"}, sleep=waits.append)
    assert len(receiver.got) == 4
    assert 0.5 <= waits[0] <= 1.5
    assert waits[1] == 0.5
    assert 2.0 <= waits[2] <= 6.0


def test_it_gives_up_after_its_attempts() -> None:
    with Receiver(status(502)) as receiver, refused() as told:
        send(receiver.url, {}, attempts=3, sleep=lambda _: None)
    assert len(receiver.got) == 3
    assert told == [
        "the webhook at http://127.0.0.1 did not take the alert: it answered 502 after 3 attempts. Try again later"
    ]


def test_a_wait_beyond_the_deadline_is_not_waited() -> None:
    waits: list[float] = []
    with Receiver(status(429, Retry_After="60")) as receiver, refused() as told:
        send(receiver.url, {}, deadline=5.0, sleep=waits.append)
    assert len(receiver.got) == 1
    assert not waits
    assert "it answered 429 after 1 attempt, and the deadline of 5 s leaves no time" in told[0]


def test_a_refusal_is_final_and_tells_the_receivers_word() -> None:
    with Receiver(status(404, b"no_service")) as receiver, refused() as told:
        send(receiver.url, {})
    assert len(receiver.got) == 1
    assert "it answered 404 no_service" in told[0]
    for echo in (SECRET.encode(), b"xyzzy", b"<html>", b"\xff"):
        with Receiver(status(400, echo)) as receiver, refused() as told:
            send(receiver.url, {})
        assert "it answered 400 after" in told[0]


def test_redirects_are_refused() -> None:
    with Receiver(status(200)) as elsewhere:
        for code in (301, 302, 307, 308):
            with Receiver(status(code, Location=elsewhere.url)) as receiver, refused() as told:
                send(receiver.url, {})
            assert "Redirects are not followed" in told[0]
        assert not elsewhere.got


def test_a_dripping_answer_hits_the_deadline() -> None:
    def drip(handler: BaseHTTPRequestHandler) -> None:
        for byte in b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100:
            handler.wfile.write(bytes([byte]))
            time.sleep(0.02)

    with Receiver(drip) as receiver, refused() as told:
        began = time.monotonic()
        send(receiver.url, {}, deadline=0.4)
        pytest.fail("the answer never ended")
    assert time.monotonic() - began < 10.0  # the whole answer takes 14 s
    assert "no answer in 0.4 s after 1 attempt" in told[0]
    assert sum(thread.daemon and "post" in thread.name for thread in threading.enumerate()) <= 1


def test_a_silent_receiver_is_left_for_another_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerts, "_ANSWER", 0.2)
    with Receiver(lambda handler: time.sleep(0.6), status(200)) as receiver:
        send(receiver.url, {}, sleep=lambda _: None)
    assert len(receiver.got) == 2


def test_a_giant_refusal_is_not_read() -> None:
    sent = 0

    def flood(handler: BaseHTTPRequestHandler) -> None:
        nonlocal sent
        handler.send_response(403)
        handler.end_headers()
        for _ in range(2_000):
            handler.wfile.write(bytes(65_536))
            sent += 65_536

    with Receiver(flood) as receiver, refused() as told:
        send(receiver.url, {})
    assert "403" in told[0]
    assert sent < 2_000 * 65_536


def test_a_receiver_out_of_reach_is_told_as_such() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with refused() as told:
        send(f"http://127.0.0.1:{port}/{SECRET}", {}, attempts=2, sleep=lambda _: None)
    assert "Connection refused after 2 attempts" in told[0]
    with Receiver(lambda handler: handler.wfile.write(b"SECRET\r\n\r\n")) as receiver, refused() as told:
        send(receiver.url, {}, attempts=1)
    assert "BadStatusLine" in told[0]


@pytest.mark.parametrize(
    "url",
    [
        f"http://hooks.example.com/{SECRET}",
        f"ftp://hooks.example.com/{SECRET}",
        f"https:///{SECRET}",
        f"https://user:{SECRET}@hooks.example.com/",
        f"https://hooks.example.com:port/{SECRET}",
        f"https://hooks.example.com/ {SECRET}",
        f"https://hooks.example.com/{SECRET}\r\nHost: evil",
        f"https://[::1/{SECRET}",
        f"https://hooks.example.com/é{SECRET}",
        SECRET,
        "",
    ],
)
def test_a_url_that_would_give_the_secret_away_or_cannot_be_used_is_refused(url: str) -> None:
    with refused() as told:
        send(url, {}, attempts=1)
    assert "https:// URL" in told[0]


def test_no_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with Receiver(status(200)) as proxy, Receiver(status(200)) as receiver:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "https_proxy"):
            monkeypatch.setenv(name, proxy.url)
        send(receiver.url, {})
    assert not proxy.got
    assert len(receiver.got) == 1


def test_alert_errors_are_of_the_tree() -> None:
    assert issubclass(AlertError, AdaptiveEvalError)


def alarm(sentence: str) -> Alarm:
    return Alarm(
        Series("text", "text", "h", "s", "ability", "", (Point("r", "t", "s", "c", 0.0, 1.0),)), 0, 0, 1, 0, sentence
    )


def run(gates: list[GateRecord], subject: str = "step-4000") -> RunRecord:
    interview = InterviewRecord(
        "text", "n", {"name": subject}, {}, {}, 1, 1, 1, {}, "BUDGET", "", None, None, None, None
    )
    return RunRecord("20310506T070809000Z-00000000", "2031-05-06T07:08:09Z", interviews=[interview], gates=gates)


def gate(outcome: str, name: str = "test_promotion", **more: Any) -> GateRecord:
    return GateRecord(name, name, "text", {"outcome": outcome, "sentence": f"{outcome} accuracy .612", **more})


def test_the_message_tells_alarms_and_gates_that_did_not_pass() -> None:
    gates = [
        gate("PASS", "passed"),
        gate("FAIL", "failed"),
        gate("ERROR", "broken"),
        gate("INCONCLUSIVE", "open"),
        gate("INCONCLUSIVE", "waved through", on_inconclusive="warn"),
        gate("INCONCLUSIVE", "first run", notice=True),
        GateRecord("odd", "odd", "text", {}),
    ]
    found = payload([alarm("ability of text fell")], run=run(gates), report_url="https://ci.example.com/r?a=1&b=2")
    assert found["text"].splitlines() == [
        "Adaptive evaluation: 1 drop, 4 gates not passed",
        "run 20310506T070809000Z-00000000, 2031-05-06T07:08:09Z, step-4000",
        "<https://ci.example.com/r?a=1&amp;b=2|report>",
        "ability of text fell",
        "failed: FAIL accuracy .612",
        "broken: ERROR accuracy .612",
        "open: INCONCLUSIVE accuracy .612",
        "odd: the record holds no verdict for this gate",
    ]
    assert [block["type"] for block in found["blocks"]] == ["header", *["section"] * 5, *["context"] * 2]
    assert payload([])["text"] == "Adaptive evaluation: nothing to tell"


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


def texts(blocks: list[dict[str, Any]]) -> list[str]:
    parts = [[block["text"]] if "text" in block else block["elements"] for block in blocks]
    return [part["text"] for some in parts for part in some]


@settings(max_examples=100)
@given(st.lists(HOSTILE, max_size=3), HOSTILE, HOSTILE, HOSTILE)
def test_foreign_text_makes_no_mention_and_no_link(sentences: list[str], subject: str, name: str, url: str) -> None:
    found = payload([alarm(s) for s in sentences], run=run([gate("FAIL", name)], subject), report_url=url)
    json.dumps(found, ensure_ascii=False).encode("utf-8")
    own = f"<{url}|report>"
    for text in [found["text"], *texts(found["blocks"])]:
        text = text.replace(own, "")
        assert "<" not in text
        assert ">" not in text
        assert "://" not in text
        assert all(text[i + 1 : i + 2] == "\u200b" for i, c in enumerate(text) if c == "@")
        assert "&" not in text.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "")


def test_a_message_keeps_within_slacks_limits() -> None:
    gates = [gate("FAIL", "&" * 10_000, sentence="<" * 10_000) for _ in range(100)]
    found = payload(
        [alarm("@&" * 5_000)] * 100, run=run(gates, "&" * 5_000), report_url="https://a.example/" + "&" * 900
    )
    assert len(found["blocks"]) <= 50
    assert "and 160 more" in texts(found["blocks"])
    assert all(0 < len(text) <= 3_000 for text in texts(found["blocks"]))
    assert len(found["text"]) <= 4_000
    assert len(found["blocks"][0]["text"]["text"]) <= 150


@pytest.mark.parametrize("url", ["javascript:alert(1)", "https://a.example/\n", "https://", "http://[", "x" * 9_999])
def test_only_an_address_becomes_a_link(url: str) -> None:
    assert all("|report>" not in text for text in texts(payload([], report_url=url)["blocks"]))


def test_a_link_cannot_be_ended_from_within() -> None:
    found = payload([], report_url="https://a.example/|x><!channel>")
    assert texts(found["blocks"])[-1] == "<https://a.example/%7Cx%3E%3C!channel%3E|report>"
