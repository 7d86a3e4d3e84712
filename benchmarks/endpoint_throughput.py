"""Requests per second to a server on loopback with 16 at once: a subject of this package beside wrk.

``python benchmarks/endpoint_throughput.py [--seconds 5] [--milliseconds 50]`` starts a server that answers each chat
after a fixed time, as many at once as are asked, and lets wrk (``apt-get install wrk``) and the subject send it the
same 16 bodies in turns.  Printed are three such pairs and the median of their ratios: only within a pair had both the
same machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pytest_adaptive_eval.core.item import Item, Status
from pytest_adaptive_eval.models.endpoint import EndpointSubject

AT_ONCE = 16
PAIRS = 3
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


class Chat(asyncio.Protocol):
    """HTTP/1.1 with kept connections; each request is answered after `seconds`."""

    seconds = 0.05

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
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
        body = json.dumps(REPLY if chat else {"data": [{"id": "fixed"}]}).encode()
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


async def serve(seconds: float) -> None:
    Chat.seconds = seconds
    server = await asyncio.get_running_loop().create_server(Chat, "127.0.0.1", 0, backlog=256)
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
    return float(re.search(r"Requests/sec:\s*([\d.]+)", told)[1])


def by_subject(subject: EndpointSubject, count: int) -> float:
    items = [Item(f"{item.id}-{n}", item.prompt) for n in range(count // AT_ONCE) for item in prompts()]
    start = time.perf_counter()
    completions = subject.answer(items)
    taken = time.perf_counter() - start
    if any(completion.status is not Status.OK for completion in completions):
        raise SystemExit(next(c for c in completions if c.status is not Status.OK))
    return len(items) / taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--milliseconds", type=float, default=50.0)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(options.milliseconds / 1000))
        return
    command = [sys.executable, __file__, "--serve", "--milliseconds", str(options.milliseconds)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        subject = EndpointSubject.load(url, "fixed", concurrency=AT_ONCE)
        most = AT_ONCE / (options.milliseconds / 1000)
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors; the server allows {most:.0f} requests/s")
        present = shutil.which("wrk") is not None
        if not present:
            print("wrk is not installed (apt-get install wrk): the subject alone")
        ratios = []
        for _ in range(PAIRS):
            bodies = [subject._write(item) for item in prompts()]
            ours = by_subject(subject, int(most * options.seconds))
            if not present:
                print(f"subject {ours:7.1f} requests/s")
                continue
            theirs = by_wrk(url, bodies, options.seconds)
            ratios.append(ours / theirs)
            print(f"subject {ours:7.1f} requests/s   wrk {theirs:7.1f}   ratio {ratios[-1]:.3f}")
        if ratios:
            print(f"median of the ratios {statistics.median(ratios):.3f}")
        subject.close()
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
