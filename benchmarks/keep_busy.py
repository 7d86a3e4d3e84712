"""How busy a run keeps a model on a server, and what it costs to ask ahead.

``python benchmarks/keep_busy.py`` runs pytest, one process a run, against a server of this process whose answers take
lognormal times (sigma .8), on a bank without parameters of which 80 % is answered right, with a gate at .70. A row has,
as means over the seeds: seconds from the command to its end, those of the same run with answers at once (what is not
waiting), questions told to the session, calls, calls over the questions that are needed one by one, and the mean number
of calls in flight as a share of those allowed, until four fifths of the calls had begun. ``--speed right`` (or
``wrong``) makes right (wrong) answers ten times as fast, and prints how many runs at the threshold itself passed.
``--kill 30`` kills as many runs (-9) at random moments, goes on from each, and prints how many answers that the server
had sent were asked again, and how many verdicts are those of an undisturbed run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

SIGMA, SHARE_RIGHT, THRESHOLD = 0.8, 0.8, 0.7
LIMIT = 600  #: Seconds of one run at most.


class Span(NamedTuple):
    """Begin and end of a call, in seconds."""

    begin: float
    end: float


class Server:
    """A chat server on this machine that answers by a seed, after lognormal times."""

    def __init__(self, mean: float, right: set[int], seed: int, speed: str = "") -> None:
        self.mean, self.right, self.seed, self.speed = mean, right, seed, speed
        self.spans: list[Span] = []
        self.asked: list[int] = []
        self.broken_off = 0
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self._server = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=512), self.loop
        ).result()
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    def close(self) -> None:
        """Stop serving."""
        self.loop.call_soon_threadsafe(self._server.close)
        self.loop.call_soon_threadsafe(self.loop.stop)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next(
                    (int(x.split(b":")[1]) for x in head.lower().split(b"\r\n") if x.startswith(b"content-length")), 0
                )
                data = json.loads(await reader.readexactly(length)) if length else {}
                reply = json.dumps(await self._answer(data)).encode()
                head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(reply)
                writer.write(head + reply)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def _answer(self, data: dict[str, Any]) -> dict[str, Any]:
        text = data["messages"][-1]["content"] if "messages" in data else ""
        if not text.startswith("question "):
            listed = {"object": "list", "data": [{"id": "m", "object": "model"}]}
            return listed if not data else _completion("hello")
        number = int(text.split()[1])
        right = number in self.right
        rng = random.Random(f"{self.seed} {number}")
        mean = self.mean / (10 if self.speed == ("right" if right else "wrong") else 1)
        begin = time.monotonic()
        try:
            await asyncio.sleep(mean * rng.lognormvariate(-(SIGMA**2) / 2, SIGMA) if mean else 0.0)
        except asyncio.CancelledError:
            self.broken_off += 1
            raise
        finally:
            self.asked.append(number)
            self.spans.append(Span(begin, time.monotonic()))
        return _completion("right" if right else "wrong")


def _completion(text: str) -> dict[str, Any]:
    return {
        "id": "x", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 8, "completion_tokens": 1, "total_tokens": 9},
    }  # fmt: skip


class Run(NamedTuple):
    """What one run took."""

    seconds: float
    told: int
    calls: int
    busy: float
    code: int


_COMMAND = [
    *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--adaptive-eval"),
    "--adaptive-eval-record=r.json",
]


def lay_out(path: Path, url: str, size: int, concurrency: int, seed: int) -> None:
    """Write a bank and an evaluation with a gate."""
    lines = [json.dumps({"id": f"q{i}", "prompt": f"question {i}", "answer": "right"}) for i in range(size)]
    (path / "bank.jsonl").write_text("\n".join(lines) + "\n")
    (path / "pytest.ini").write_text("[pytest]\n")
    (path / "adaptive-eval.toml").write_text(
        f'[[eval]]\nname = "e"\nbank = "bank.jsonl"\nseed = {seed}\nmodel = "{url}#m"\n'
        f"model_options = {{ concurrency = {concurrency} }}\n[[eval.gate]]\nat_least = {THRESHOLD}\n"
    )


def run(size: int, mean: float, concurrency: int, seed: int, options: argparse.Namespace) -> Run:
    """Run pytest once; `busy` is the mean number of calls in flight until four fifths of them had begun."""
    rng = random.Random(f"{size} {seed}")
    share = THRESHOLD if options.speed else SHARE_RIGHT
    right = set(rng.sample(range(size), round(share * size) - (1 if options.speed else 0)))
    server = Server(mean, right, seed, options.speed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        lay_out(path, server.url, size, concurrency, seed)
        begin = time.monotonic()
        done = subprocess.run(
            _COMMAND,
            cwd=path,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        seconds, code = time.monotonic() - begin, done.returncode
        if not (path / "r.json").exists():
            raise SystemExit(f"the run wrote no record:\n{done.stdout}{done.stderr}")
        record = json.loads((path / "r.json").read_text())["interviews"][0]
    server.close()
    spans = sorted(server.spans)
    until = spans[int(0.8 * len(spans))].begin
    area = sum(max(min(span.end, until) - span.begin, 0.0) for span in spans if span.begin < until)
    return Run(seconds, record["asked"], len(spans), area / max(until - spans[0].begin, 1e-9), code)


def kill(times: int, concurrency: int) -> None:
    """Kill runs at random moments, go on from each, and print what was asked again and whether verdicts are equal."""
    size, equal, again = 200, 0, []
    for seed in range(times):
        right = set(random.Random(seed).sample(range(size), round(0.76 * size)))
        server = Server(0.15, right, seed)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder)
            lay_out(path, server.url, size, concurrency, 1)
            whole = json.loads(_ended(path).read_text())
            moment = random.Random(seed).uniform(1.0, 3.0)
            while (path / "r.json").exists():  # a run with a record has nothing to go on from
                (path / "r.json").unlink()
                server.asked.clear()
                killed = subprocess.Popen(_COMMAND, cwd=path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(moment)
                killed.kill()
                killed.wait()
                moment *= 0.8
            time.sleep(1.0)
            before = set(server.asked)
            server.asked.clear()
            resumed = json.loads(_ended(path).read_text())
            again.append(len(before & set(server.asked)))
            equal += [gate["verdict"]["outcome"] for gate in resumed["gates"]] == [
                gate["verdict"]["outcome"] for gate in whole["gates"]
            ]
        server.close()
    print(f"{times} kills: at most {max(again)} questions asked again ({again}), {equal} verdicts equal")


def _ended(path: Path) -> Path:
    """Run to the end, and return the record."""
    subprocess.run(_COMMAND, cwd=path, capture_output=True, timeout=LIMIT, check=False)
    return path / "r.json"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 200, 1000])
    parser.add_argument("--means", type=float, nargs="+", default=[2.0, 0.5, 0.05])
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--kill", type=int, default=0)
    parser.add_argument("--speed", choices=["right", "wrong"], default="")
    options = parser.parse_args()
    if options.kill:
        kill(options.kill, options.concurrency)
        return
    print(f"{'size':>5} {'mean':>5} {'wall':>6} {'start':>6} {'told':>6} {'calls':>6} {'busy':>5}  passed")
    for size in options.sizes:
        for mean in options.means:
            runs = [run(size, mean, options.concurrency, seed, options) for seed in range(options.seeds)]
            start = _mean([run(size, 0.0, options.concurrency, seed, options).seconds for seed in range(1)])
            print(
                f"{size:5} {mean:5g} {_mean([r.seconds for r in runs]):6.1f} {start:6.1f} "
                f"{_mean([r.told for r in runs]):6.1f} {_mean([r.calls for r in runs]):6.1f} "
                f"{_mean([r.busy for r in runs]) / options.concurrency:5.2f}  {sum(r.code == 0 for r in runs)} of "
                f"{len(runs)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
