"""Requests per second to a server on loopback with 16 at once: a subject of this package, and whole runs, beside wrk.

``python benchmarks/endpoint_throughput.py [--seconds 5] [--milliseconds 50] [--tls]`` starts a server that answers each
chat after a fixed time, as many at once as are asked. wrk (``apt-get install wrk``) and the subject send it the same 16
bodies in turns: the subject with the package's own transport, which uses connections again, and with that of httpcore2
whose keep-alive is off. Printed are three such rounds and the medians of the ratios to wrk: only within a round had all
the same machine. ``--tls`` encrypts, with a certificate that ``openssl`` makes.

With ``--runs``, wrk takes turns with whole pytest runs: one interview of 320 questions, four of 160, and these in
two workers of xdist. The rate of a run is that of the replies from the first to the last.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import re
import shutil
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar
from urllib.request import urlopen

import httpcore2
import numpy as np

from pytest_adaptive_eval.banks.writer import write_bank
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.models.endpoint.model import EndpointModel

AT_ONCE = 16
ROUNDS = 3
REPLY = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 0,
    "model": "fixed",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "The answer is B."}}],
    "usage": {"prompt_tokens": 120, "completion_tokens": 6, "total_tokens": 126},
}
SCRIPT = """
local bodies = {{{bodies}}}
local at = 0
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
function request()
  at = at % #bodies + 1
  return wrk.format(nil, nil, nil, bodies[at])
end
"""


EVALUATION = """
[[eval]]
name = "part-{number}"
bank = "part-{number}.bank"
model = "{url}#fixed"
model_options = {{ concurrency = {at_once} }}
budget = {questions}
"""


class Chat(asyncio.Protocol):
    """HTTP/1.1 with kept connections; each chat is answered after `seconds`, and its time is added to `times`."""

    seconds = 0.05
    times: ClassVar[list[float]] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.raw = b""

    def data_received(self, data: bytes) -> None:
        """Read a request, and answer it later."""
        self.raw += data
        head, found, rest = self.raw.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        size = int(length[1]) if length else 0
        if not found or len(rest) < size:
            return
        self.raw = rest[size:]
        chat = head.startswith(b"POST")
        body = json.dumps(REPLY if chat else {"data": [{"id": "fixed"}], "times": self.times}).encode()
        if chat:
            self.times.append(asyncio.get_running_loop().time() + self.seconds)
        elif b"/times" in head.partition(b"\r\n")[0]:
            self.times.clear()
        asyncio.get_running_loop().call_later(
            self.seconds if chat else 0, self.answer, body, b"connection: close" in head.lower()
        )

    def answer(self, body: bytes, close: bool) -> None:
        """Answer."""
        if not self.transport.is_closing():
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            self.transport.write(head.encode() + body)
            if close:
                self.transport.close()


async def serve(seconds: float, certificate: str | None) -> None:
    Chat.seconds = seconds
    context = None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
    server = await asyncio.get_running_loop().create_server(Chat, "127.0.0.1", 0, backlog=256, ssl=context)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def prompts() -> list[Item]:
    return [
        Item(f"{n}", f"Question {n}: {'what holds of this and that, ' * 10}? Answer A, B, C or D.")
        for n in range(AT_ONCE)
    ]


def by_wrk(url: str, bodies: list[bytes], seconds: float) -> float:
    quoted = ",".join(f"[==[{body.decode()}]==]" for body in bodies)
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "bodies.lua"
        script.write_text(SCRIPT.format(bodies=quoted))
        command = ["wrk", "-t1", f"-c{AT_ONCE}", f"-d{seconds:g}s", "-s", str(script), f"{url}/chat/completions"]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in told or "Socket errors" in told:
        raise SystemExit(told)
    rate = re.search(r"Requests/sec:\s*([\d.]+)", told)
    assert rate is not None, told
    return float(rate[1])


def make_certificate(path: Path) -> None:
    """Write a key and a certificate for 127.0.0.1 into one file."""
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test"
    made = subprocess.run(
        [*command.split(), "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "-", "-out", "-"],
        capture_output=True,
        check=True,
    )
    path.write_bytes(made.stdout)


def turn_keepalive_off(subject: EndpointModel) -> None:
    """Replace the pool of connections by one of httpcore2 with its own transport."""
    wire = subject._endpoint.wire
    context = httpcore2.default_ssl_context() if wire.url.startswith("https:") else None
    wire._pool = httpcore2.AsyncConnectionPool(context, max_connections=None, max_keepalive_connections=0)


def by_subject(subject: EndpointModel, count: int) -> tuple[float, float]:
    """Requests per second, and milliseconds of a processor for each."""
    items = [Item(f"{item.id}-{n}", item.prompt) for n in range(count // AT_ONCE) for item in prompts()]
    start, processor = time.perf_counter(), time.process_time()
    completions = subject.answer(items)
    taken, processor = time.perf_counter() - start, time.process_time() - processor
    if any(completion.status is not Status.OK for completion in completions):
        raise SystemExit(next(c for c in completions if c.status is not Status.OK))
    return len(items) / taken, 1000 * processor / len(items)


def by_run(url: str, interviews: int, questions: int, *flags: str) -> float:
    """Replies per second of a run of pytest, between the first and the last."""
    with tempfile.TemporaryDirectory() as folder:
        text = ""
        for number in range(interviews):
            prompt = f"Of {number}, what holds: {'this and that, ' * 10}"
            items = [Item(f"{n}", f"{prompt}{n}?", choices=tuple("abcd"), answer="B") for n in range(2 * questions)]
            bank, alike = Path(folder) / f"part-{number}.bank", np.ones(len(items))
            write_bank(bank, items, discrimination=alike, intercept=alike)
            text += EVALUATION.format(number=number, url=url, at_once=AT_ONCE, questions=questions)
        (Path(folder) / "adaptive-eval.toml").write_text(text)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--adaptive-eval", *flags]
        _times(url)
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    times = _times(url)[-interviews * questions :]  # before them come those of the connection
    return (len(times) - 1) / (times[-1] - times[0])


def _times(url: str) -> list[float]:
    """Times of the chats since the latest call, in seconds."""
    with urlopen(f"{url}/times") as reply:
        times: list[float] = json.load(reply)["times"]
    return times


def compare_runs(url: str, seconds: float) -> None:
    ways: dict[str, tuple[int, int, Sequence[str]]] = {
        "one interview": (1, 320, ()),
        "four interviews": (4, 160, ()),
        "four in two workers": (4, 160, ("-n2",)),
    }
    ratios: dict[str, list[float]] = {way: [] for way in ways}
    bodies = [
        json.dumps({"model": "fixed", "messages": [{"role": "user", "content": item.prompt}]}).encode()
        for item in prompts()
    ]
    for _ in range(ROUNDS):
        theirs = by_wrk(url, bodies, seconds)
        line = [f"wrk {theirs:6.1f} requests/s"]
        for way, (interviews, questions, flags) in ways.items():
            ours = by_run(url, interviews, questions, *flags)
            ratios[way].append(ours / theirs)
            line.append(f"{way} {ours:6.1f} (ratio {ours / theirs:.2f})")
        print(", ".join(line), flush=True)
    print("medians of the ratios:", ", ".join(f"{way} {statistics.median(ratios[way]):.2f}" for way in ways))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--milliseconds", type=float, default=50.0)
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--runs", action="store_true", help="whole runs of pytest, in place of the subject alone")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--certificate", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(options.milliseconds / 1000, options.certificate))
        return
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--serve", "--milliseconds", str(options.milliseconds)]
        if options.tls:
            certificate = Path(folder) / "test.pem"
            make_certificate(certificate)
            command += ["--certificate", str(certificate)]
            os.environ["SSL_CERT_FILE"] = str(certificate)
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            url = f"http{'s' if options.tls else ''}://127.0.0.1:{port}/v1"
            if options.runs:
                compare_runs(url, options.seconds)
            else:
                compare(url, options.milliseconds, options.seconds)
        finally:
            server.terminate()
            server.wait()


def compare(url: str, milliseconds: float, seconds: float) -> None:
    most = AT_ONCE / (milliseconds / 1000)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors; the server allows {most:.0f} requests/s")
    wrk = shutil.which("wrk") is not None
    if not wrk:
        print("wrk is not installed (apt-get install wrk): the subject alone")
    subjects = {
        name: EndpointModel.load(url, "fixed", concurrency=AT_ONCE) for name in ("own transport", "no keep-alive")
    }
    turn_keepalive_off(subjects["no keep-alive"])
    one = subjects["own transport"]
    bodies = [one.request(item) for item in prompts()]
    ratios: dict[str, list[float]] = {name: [] for name in subjects}
    for _ in range(ROUNDS):
        theirs = by_wrk(url, bodies, seconds) if wrk else math.nan
        line = [f"wrk {theirs:6.1f} requests/s"]
        for name, subject in subjects.items():
            ours, processor = by_subject(subject, int(most * seconds))
            ratios[name].append(ours / theirs)
            line.append(f"{name} {ours:6.1f} (ratio {ours / theirs:.2f}, {processor:.2f} ms of a processor each)")
        print(", ".join(line), flush=True)
    print("medians of the ratios:", ", ".join(f"{name} {statistics.median(ratios[name]):.2f}" for name in ratios))
    for subject in subjects.values():
        subject.close()


if __name__ == "__main__":
    main()
