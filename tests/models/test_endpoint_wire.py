"""When a server is asked again, how soon, how many at once, and by which way."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import shutil
import socket
import ssl
import subprocess
import threading
import time
from concurrent.futures import Future
from pathlib import Path

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

from faulty_server import FaultyServer, completion, read_request, replies, says, send, serving
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.models.endpoint.limits import Backoff, OpenTime, Pace, Window
from pytest_adaptive_eval.models.endpoint.settings import key_from_environment
from pytest_adaptive_eval.models.endpoint.wire import Wire

CHAT = "/chat/completions"


def body(text: str = "x") -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": text}]}).encode()


def failing(times: int, code: int = 503, **more: str):
    """Fail so many times, and then answer."""
    left = [times]

    def handle(connection, request):
        left[0] -= 1
        if left[0] >= 0:
            says(code, **more)(connection, request)
        else:
            send(connection, completion())

    return handle


@given(st.integers(1, 2000), st.integers(0, 100))
def test_backoff_doubles_up_to_a_limit_and_is_jittered_by_the_seed(done: int, seed: int) -> None:
    wait = Backoff(seed).seconds(done)
    assert wait == Backoff(seed).seconds(done)
    assert min(8.0, 0.5 * 2.0 ** min(done - 1, 9)) / 2 <= wait <= min(8.0, 0.5 * 2.0 ** min(done - 1, 9))


def spaced(pace: Pace, count: int, now: float) -> list[float]:
    """Begin requests as soon as the pace allows and return their times."""
    times = []
    for _ in range(count):
        now += pace.wait(now)
        pace.begin(now)
        times.append(now)
    return times


def test_a_pace_is_even() -> None:
    assert spaced(Pace(10.0), 4, 100.0) == pytest.approx([100.0, 100.1, 100.2, 100.3])
    assert spaced(Pace(None), 4, 100.0) == [100.0] * 4


def windows(window: Window, throughput, seconds: float, until: float, now: float = 0.0) -> list[int]:
    """Keep a window filled with requests of equal length; return its sizes, one per second."""
    sizes: list[int] = []
    open_requests: list[tuple[float, float]] = []
    while now < until:
        while len(open_requests) < window.limit:
            open_requests.append((now, now + max(seconds, window.limit / throughput)))
            window.begin(now, len(open_requests))
        begun, now = open_requests.pop(0)
        window.accept(begun, now)
        if len(sizes) <= now:
            sizes.append(window.limit)
    return sizes


def test_a_window_grows_while_throughput_grows() -> None:
    assert windows(Window(8, 64), throughput=1e9, seconds=0.5, until=10.0)[-1] == 64
    assert windows(Window(16, 16), throughput=1e9, seconds=0.5, until=10.0)[-1] == 16


def test_a_window_returns_to_the_size_from_which_on_throughput_did_not_grow() -> None:
    sizes = windows(Window(8, 64), throughput=16.0, seconds=0.5, until=60.0)
    assert max(sizes) <= 32
    assert sum(size <= 16 for size in sizes) > 0.7 * len(sizes)


def test_a_window_that_is_not_filled_does_not_grow() -> None:
    window = Window(8, 64)
    for n in range(200):
        window.begin(float(n), 1)
        window.accept(float(n), n + 0.5)
    assert window.limit == 8


def test_a_timeout_halves_a_window_once_and_it_grows_back() -> None:
    window = Window(16, 16)
    for _ in range(16):
        window.begin(0.0, 16)
    for _ in range(16):
        window.shrink(0.0, 5.0)
    assert window.limit == 8
    assert windows(window, throughput=1e9, seconds=0.5, until=40.0, now=5.0)[-1] == 16


def answered(window: Window, rate: float, seconds: float, until: float) -> tuple[int, int]:
    """Keep a window filled at a server that takes one request every 1 / `rate` seconds; return answers and refusals."""
    pace, now, free = Pace(None), 0.0, 0.0
    taken, refused, open_until = 0, 0, list[tuple[float, float]]()
    while now < until:
        for begun, end in [pair for pair in open_until if pair[1] <= now]:
            open_until.remove((begun, end))
            window.accept(begun, end)
            taken += 1
        if len(open_until) < window.limit and pace.wait(now) == 0.0:
            pace.begin(now, window.gap)
            window.begin(now, len(open_until) + 1)
            if now >= free:
                free = now + 1.0 / rate
                open_until.append((now, now + seconds))
            else:
                refused += 1
                window.shrink(now, now)
        now += 0.001
    return taken, refused


@pytest.mark.parametrize(("rate", "seconds"), [(20.0, 0.5), (20.0, 0.01), (3.0, 0.02)])
def test_a_window_comes_near_the_rate_that_a_server_accepts(rate: float, seconds: float) -> None:
    taken, refused = answered(Window(8, 64), rate, seconds, 60.0)
    assert taken > 0.45 * rate * 60.0
    assert refused < 0.18 * taken


def test_a_window_recovers_soon_from_refusals_that_end() -> None:
    window, now, answers = Window(8, 64), 0.0, 0
    for _ in range(10):
        window.begin(now, 1)
        window.shrink(now, now)
        now += 1.0
    ended = now
    while answers < 24:
        window.begin(now, 1)
        now += 0.1
        window.accept(now - 0.1, now)
        answers += 1
        now += max(0.0, window.gap - 0.1)
    assert window.gap < 0.1
    assert now - ended < 14.0


def test_refused_requests_of_one_window_halve_it_once() -> None:
    window = Window(8, 64)
    for _ in range(8):
        window.begin(0.0, 8)
        window.shrink(0.0, 1.0)
    assert window.limit == 4


def test_open_time_counts_no_second_twice_and_no_idle_one() -> None:
    time_open = OpenTime()
    for begun in (0.0, 1.0):
        time_open.begin(begun)
    shares = [time_open.end(3.0), time_open.end(4.0)]
    time_open.begin(10.0)
    assert [*shares, time_open.end(12.0)] == [3.0, 1.0, 2.0]


def test_the_seconds_of_requests_at_once_add_up_to_the_time_that_they_took() -> None:
    with serving(seconds=0.1) as server:
        wire = Wire(server.url, concurrency=8)
        begun = time.monotonic()
        deliveries = wire.post(CHAT, [body() for _ in range(16)])
        took = time.monotonic() - begun
        assert 0.2 <= sum(delivery.seconds for delivery in deliveries) <= took
        wire.close()


def test_what_may_pass_is_tried_again() -> None:
    with serving(handle=failing(2)) as server:
        wire = Wire(server.url, timeout=5.0, backoff=0.01)
        (delivery,) = wire.post(CHAT, [body()])
        assert (delivery.status, delivery.code, len(server.chats)) == (Status.OK, 200, 3)
        assert delivery.seconds > 0.01
        wire.close()


@pytest.mark.parametrize("code", [400, 401, 404, 422])
def test_what_cannot_pass_is_not(code: int) -> None:
    with serving(handle=failing(1, code)) as server:
        wire = Wire(server.url, timeout=5.0, backoff=0.01)
        assert wire.post(CHAT, [body()])[0].code == code
        assert len(server.chats) == 1
        wire.close()


def test_a_server_that_says_when_is_asked_then() -> None:
    with serving(handle=failing(1, 429, Retry_After="0.3")) as server:
        wire = Wire(server.url, timeout=5.0, backoff=0.01)
        (delivery,) = wire.post(CHAT, [body()])
        assert delivery.status is Status.OK
        assert 0.3 <= delivery.seconds < 5.0
        wire.close()


def test_no_waiting_beyond_the_deadline() -> None:
    with serving(handle=failing(9, 429, Retry_After="3600")) as server:
        wire = Wire(server.url, timeout=60.0)
        start = time.monotonic()
        (delivery,) = wire.post(CHAT, [body()])
        assert time.monotonic() - start < 30.0
        assert (delivery.status, delivery.code) == (Status.ERROR, 429)
        assert "the server asks to wait 3.6e+03 s, longer than the timeout" in delivery.detail
        wire.close()


def test_time_in_the_queue_does_not_count() -> None:
    with serving(seconds=0.15) as server:
        wire = Wire(server.url, timeout=0.4, concurrency=2)
        deliveries = wire.post(CHAT, [body(str(n)) for n in range(8)])
        assert {d.status for d in deliveries} == {Status.OK}
        assert server.most == 2
        said = [d.data["choices"][0]["message"]["content"] for d in deliveries]
        assert said == [f"echo {n}" for n in range(8)]
        wire.close()


def test_sixteen_at_once() -> None:
    with serving(seconds=0.2) as server:
        wire = Wire(server.url, concurrency=16)
        wire.post(CHAT, [body() for _ in range(32)])
        assert server.most == 16
        wire.close()


def test_a_rate_holds_for_first_tries_and_others() -> None:
    with serving(handle=failing(2)) as server:
        wire = Wire(server.url, rate=20.0, backoff=0.001)
        start = time.monotonic()
        wire.post(CHAT, [body() for _ in range(5)])
        assert time.monotonic() - start >= 6 / 20.0
        assert len(server.chats) == 7
        wire.close()


def test_a_fault_of_one_request_is_its_own_while_the_server_answers_others() -> None:
    def handle(connection, request):
        if request.prompt == "bad":
            says(500)(connection, request)
        else:
            send(connection, completion())

    with serving(handle=handle) as server:
        wire = Wire(server.url, retries=2, backoff=0.01, concurrency=4)
        deliveries = wire.post(CHAT, [body("bad" if n % 2 else "good") for n in range(40)])
        assert [d.status for d in deliveries] == [Status.OK, Status.ERROR] * 20
        assert {d.detail.rpartition(" after ")[2] for d in deliveries[1::2]} <= {"3 tries", "4 tries"}
        (delivery,) = wire.post(CHAT, [body("bad")])  # no other is under way: one that was answered is sent again
        assert delivery.code == 500
        assert [request.prompt for request in server.chats[-5:]] == ["bad", "bad", "bad", "good", "bad"]
        wire.close()


def test_a_server_that_fails_for_all_is_waited_for() -> None:
    failing_now = [False]

    def handle(connection, request):
        says(500)(connection, request) if failing_now[0] else send(connection, completion())

    with serving(handle=handle) as server:
        wire = Wire(server.url, retries=1, backoff=0.01, timeout=20.0)
        assert wire.post(CHAT, [body()])[0].status is Status.OK
        failing_now[0] = True
        timer = threading.Timer(0.5, failing_now.__setitem__, (0, False))
        timer.start()
        deliveries = wire.post(CHAT, [body(str(n)) for n in range(40)])
        timer.join()
        assert {d.status for d in deliveries} == {Status.OK}
        wire.close()


@pytest.mark.slow
def test_requests_wait_for_a_server_that_went_away() -> None:
    with serving() as server:
        wire = Wire(server.url, timeout=20.0, retries=0)
        assert wire.post(CHAT, [body()])[0].status is Status.OK
        port = server.port
    back = FaultyServer(port=port)
    timer = threading.Timer(0.5, back.__enter__)
    timer.start()
    deliveries = wire.post(CHAT, [body(str(n)) for n in range(100)])
    timer.join()
    back.__exit__()
    assert {d.status for d in deliveries} == {Status.OK}
    wire.close()


def test_requests_held_back_by_a_dead_server_end_at_their_deadline_together() -> None:
    with serving() as server:
        wire = Wire(server.url, timeout=0.6, concurrency=2)
        assert wire.post(CHAT, [body()])[0].status is Status.OK
    start = time.monotonic()
    deliveries = wire.post(CHAT, [body(str(n)) for n in range(400)])
    assert time.monotonic() - start < 60.0  # 120 s if each pair of requests waited anew
    assert {d.status for d in deliveries} == {Status.ERROR}
    assert all("refused" in d.detail and "within 0.6 s" in d.detail for d in deliveries)
    wire.close()


def test_one_request_that_is_told_to_wait_holds_no_other_back() -> None:
    refused: list[str] = []

    def handle(connection, request):
        if request.prompt == "refused" and not refused:
            refused.append(request.prompt)
            says(429, Retry_After="1")(connection, request)
        else:
            send(connection, completion())

    order: list[int] = []
    with serving(handle=handle) as server:
        wire = Wire(server.url, concurrency=1)
        wire.post(CHAT, [body("refused"), *(body(str(n)) for n in range(3))], lambda index, _: order.append(index))
        assert order == [1, 2, 3, 0]
        wire.close()


def test_concurrency_counts_the_requests_that_rest() -> None:
    with serving(handle=failing(2, 429, Retry_After="0.3")) as server:
        wire = Wire(server.url, concurrency=4)
        assert wire.concurrency == 4
        done = wire.begin(CHAT, [body()], lambda *_: None)
        while len(server.chats) < 1 or wire._resting < 1:
            time.sleep(0.01)
        assert wire.concurrency == wire._window.limit + 1
        assert done.result()[0].status is Status.OK
        wire.close()


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("more", [{}, {"Retry_After": "0.2"}])
@pytest.mark.parametrize("code", [429, 503])
def test_a_rate_limit_of_the_server_is_no_error(code: int, more: dict[str, str]) -> None:
    taken = [0.0]

    def handle(connection, request):
        if time.monotonic() - taken[0] < 0.02:
            says(code, **more)(connection, request)
        else:
            taken[0] = time.monotonic()
            send(connection, completion())

    with serving(handle=handle) as server:
        wire = Wire(server.url, timeout=60.0, retries=0)
        deliveries = wire.post(CHAT, [body(str(n)) for n in range(20)])
        assert {d.status for d in deliveries} == {Status.OK}
        wire.close()


def test_a_server_that_starts_is_waited_for_and_that_is_told_once() -> None:
    with serving() as server:
        port, url = server.port, server.url
    back = FaultyServer(port=port)
    timer = threading.Timer(0.5, back.__enter__)
    timer.start()
    told: list[str] = []
    wire = Wire(url)
    assert wire.get("/models", start_timeout=30.0, tell=told.append).status is Status.OK
    timer.join()
    back.__exit__()
    assert len(told) == 1
    assert f"waiting up to 30 s for {url} to start: ConnectError: 'Connection refused'" in told[0]
    wire.close()


def test_a_dead_proxy_is_named_and_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    wire = Wire("http://model.invalid/v1", proxy=f"http://me:hunter2-hunter2@127.0.0.1:{port}", retries=0)
    delivery = wire.get("/models", start_timeout=600.0)
    assert f"the proxy 127.0.0.1:{port} (option proxy) does not give a connection" in delivery.detail
    assert "hunter2" not in delivery.detail
    wire.close()


def test_a_loop_of_the_caller_is_not_in_the_way() -> None:
    async def caller(wire: Wire) -> Status:
        return wire.post(CHAT, [body()])[0].status

    with serving() as server:
        wire = Wire(server.url)
        assert asyncio.run(caller(wire)) is Status.OK
        assert asyncio.run(caller(wire)) is Status.OK
        wire.close()


def test_several_threads_share_a_wire() -> None:
    with serving(seconds=0.02) as server:
        wire = Wire(server.url, concurrency=3)
        out: list[Status] = []
        work = [
            threading.Thread(target=lambda: out.extend(d.status for d in wire.post(CHAT, [body()] * 4)))
            for _ in range(4)
        ]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
        assert out == [Status.OK] * 16
        assert server.most <= 3
        wire.close()


def test_a_closed_wire_says_so_and_leaves_nothing_behind() -> None:
    with serving() as server:
        wire = Wire(server.url)
        assert wire.get("/models").status is Status.OK
        thread = wire._thread
        wire.close()
        wire.close()
        assert not thread.is_alive()
        with pytest.raises(ConfigError, match="was closed; load the model again"):
            wire.get("/models")


def test_a_request_that_another_thread_makes_while_the_wire_closes_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as server:
        wire = Wire(server.url)

        def too_late(work, loop):
            monkeypatch.undo()
            wire.close()
            work.close()  # the loop does not come to it
            return Future()

        monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", too_late)
        assert wire.begin(CHAT, [body()], lambda *_: None).cancelled()


def test_a_forgotten_wire_ends_by_itself() -> None:
    with serving() as server:
        wire = Wire(server.url)
        wire.get("/models")
        thread = wire._thread
        del wire
        gc.collect()
        thread.join(2.0)
        assert not thread.is_alive()


def test_an_interrupt_ends_the_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    import concurrent.futures

    with serving(seconds=0.3) as server:
        wire = Wire(server.url)
        result = concurrent.futures.Future.result

        def interrupted(self, timeout=None):
            time.sleep(0.1)
            raise KeyboardInterrupt

        monkeypatch.setattr(concurrent.futures.Future, "result", interrupted)
        with pytest.raises(KeyboardInterrupt):
            wire.post(CHAT, [body()])
        monkeypatch.setattr(concurrent.futures.Future, "result", result)
        assert wire.post(CHAT, [body("again")])[0].status is Status.OK
        wire.close()


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
def test_proxies_of_the_environment_are_not_used(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with serving() as server:
        wire = Wire(server.url)
        assert wire.post(CHAT, [body()])[0].status is Status.OK
        wire.close()


def test_a_proxy_that_is_given_is_used_and_its_password_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    seen: list[str] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def proxy() -> None:
        for reply in (completion("by proxy"), None):
            connection, _ = listener.accept()
            with connection:
                request = read_request(connection)
                assert request is not None
                seen.append(f"{request.path} {request.headers['proxy-authorization']}")
                if reply:
                    send(connection, reply)
                else:
                    send(connection, {"error": "hunter2-hunter2 is wrong"}, 407)

    thread = threading.Thread(target=proxy, daemon=True)
    thread.start()
    port = listener.getsockname()[1]
    wire = Wire("http://model.invalid/v1", proxy=f"http://me:hunter2%2Dhunter2@127.0.0.1:{port}", retries=0)
    (delivery,) = wire.post(CHAT, [body()])
    assert delivery.data["choices"][0]["message"]["content"] == "by proxy"
    (delivery,) = wire.post(CHAT, [body()])
    assert "[key] is wrong" in delivery.detail
    assert seen[0] == "http://model.invalid/v1/chat/completions Basic bWU6aHVudGVyMi1odW50ZXIy"
    assert "hunter2" not in caplog.text
    wire.close()
    thread.join()
    listener.close()


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for 127.0.0.1 and its key, in one file."""
    openssl = shutil.which("openssl") or pytest.skip("certificates are made by openssl")
    file = tmp_path / "both.pem"
    command = f"{openssl} req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test"
    made = [*command.split(), "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(made, cwd=tmp_path, check=True, capture_output=True)
    file.write_text((tmp_path / "key.pem").read_text() + (tmp_path / "cert.pem").read_text())
    return file


class Secured:
    """A TLS server in front of a plain one."""

    def __init__(self, certificate: Path, port: int) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    plain, _ = self.listener.accept()
                    with contextlib.suppress(OSError), context.wrap_socket(plain, server_side=True) as connection:
                        raw = connection.recv(65536)
                        with socket.create_connection(("127.0.0.1", port)) as behind:
                            behind.sendall(raw)
                            while data := behind.recv(65536):
                                connection.sendall(data)

        self.thread = threading.Thread(target=serve, daemon=True)
        self.thread.start()


def test_tls_is_verified(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as server:
        secured = Secured(certificate, server.port)
        url = f"https://127.0.0.1:{secured.port}/v1"
        stranger = Wire(url, timeout=60.0)
        (delivery,) = stranger.post(CHAT, [body()])
        assert delivery.status is Status.ERROR
        assert "CERTIFICATE_VERIFY_FAILED" in delivery.detail
        assert delivery.seconds < 30.0  # and not tried again
        stranger.close()
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        wire = Wire(url, timeout=5.0)
        for n in range(3):
            (delivery,) = wire.post(CHAT, [body(f"question {n}")])
            assert delivery.data["choices"][0]["message"]["content"] == f"echo question {n}"
        wire.close()
        secured.listener.close()


@pytest.mark.parametrize(
    "reply",
    [
        {"detail": "quota used up"},
        {"object": "error", "message": "quota used up", "code": 42901},
        {"base_resp": {"status_code": 1008, "status_msg": "quota used up"}, "choices": None},
        {"errors": [{"message": "quota used up"}]},
        {"success": False, "msg": "quota used up"},
        {"error": {"error": {"message": "quota used up"}}, "choices": []},
    ],
)
def test_a_reply_without_choices_is_shown(reply: dict[str, object]) -> None:
    def handle(connection, request):
        send(connection, reply)

    with serving(handle=handle) as server:
        wire = Wire(server.url, timeout=5.0, backoff=0.01)
        (delivery,) = wire.post(CHAT, [body()])
        wire.close()
    assert delivery.status is Status.ERROR
    assert "quota used up" in delivery.detail


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        ({"message": "slow down", "code": "rate_limit_exceeded"}, 2),
        ({"message": "slow down", "code": 503}, 2),
        ({"message": "slow down", "type": "server_error"}, 2),
        ({"message": "slow down", "code": "invalid_request"}, 1),
    ],
)
def test_an_error_with_status_200_is_tried_again_as_its_code_would_be(error: dict[str, str], tries: int) -> None:
    left = [{"error": error}]

    def handle(connection, request):
        send(connection, left.pop() if left else completion())

    with serving(handle=handle) as server:
        wire = Wire(server.url, timeout=5.0, backoff=0.01)
        (delivery,) = wire.post(CHAT, [body()])
        assert len(server.chats) == tries
        assert delivery.status is (Status.OK if tries == 2 else Status.ERROR)
        assert tries == 2 or delivery.detail == "an error came as a success: 'slow down'"
        wire.close()


@pytest.mark.parametrize("kind", ["text/plain; charset=utf-8", "application/json"])
def test_json_is_read_behind_a_byte_order_mark_and_as_plain_text(kind: str) -> None:
    with serving(handle=replies(b"\xef\xbb\xbf" + json.dumps(completion()).encode(), kind=kind)) as server:
        wire = Wire(server.url)
        assert wire.post(CHAT, [body()])[0].status is Status.OK
        wire.close()


def test_cookies_are_not_kept() -> None:
    with serving(handle=replies(completion(), Set_Cookie="a=b; Path=/")) as server:
        wire = Wire(server.url)
        wire.post(CHAT, [body()])
        wire.post(CHAT, [body()])
        assert all("cookie" not in request.headers for request in server.chats)
        assert all(request.headers["accept-encoding"] == "identity" for request in server.chats)
        wire.close()


def test_gzip_is_taken_where_it_comes_unasked() -> None:
    import gzip

    packed = gzip.compress(json.dumps(completion()).encode())
    with serving(handle=replies(packed, Content_Encoding="gzip")) as server:
        wire = Wire(server.url)
        assert wire.post(CHAT, [body()])[0].status is Status.OK
        wire.close()


def test_a_body_that_cannot_be_made_is_the_error_of_its_request() -> None:
    def broken() -> bytes:
        raise ValueError("no such picture")

    with serving() as server:
        wire = Wire(server.url)
        first, second = wire.post(CHAT, [broken, lambda: body("x")])
        assert (first.status, first.detail) == (Status.ERROR, "ValueError: no such picture")
        assert second.status is Status.OK
        wire.close()


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (None, "is not set"),
        ("", "is not set"),
        ("  ", "is not set"),
        ("sk-0123456789\nX-Header: y", "no header can carry"),
        ("sk-0123456789 abc", "no header can carry"),
        ("schlüssel-0123456789", "no header can carry"),
    ],
)
def test_a_key_that_cannot_be_one(value: str | None, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("A_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("A_KEY", value)
    with pytest.raises(ConfigError, match=problem) as caught:
        key_from_environment("A_KEY")
    assert "0123456789" not in str(caught.value)
    assert "'A_KEY'" in str(caught.value)


def test_no_key_without_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    assert key_from_environment("") is None
    with serving() as server:
        wire = Wire(server.url)
        wire.post(CHAT, [body()])
        assert "authorization" not in server.chats[0].headers
        wire.close()


def test_a_retry_comes_although_a_project_froze_time_and_set_a_loop_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise AssertionError("a loop of the project, such as uvloop's")

    for name in ("time", "monotonic", "perf_counter", "sleep"):
        monkeypatch.setattr(time, name, lambda *_: 0.0)
    monkeypatch.setattr(asyncio, "new_event_loop", refuse)
    with serving(handle=failing(2)) as server:
        wire = Wire(server.url, timeout=5.0, backoff=0.1)
        (delivery,) = wire.post(CHAT, [body()])
        wire.close()
    assert (delivery.status, len(server.chats)) == (Status.OK, 3)
