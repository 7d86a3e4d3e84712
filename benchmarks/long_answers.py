"""Time and memory of 30 answers of up to 50 million characters from a server on loopback.

``python benchmarks/long_answers.py [--characters 1000 1000000 50000000]`` serves a model whose answers have that many
characters, all but the first five of them spaces. Each length is asked for twice, in a process of its own each time: by
a subject that is given 30 items, and by a run of pytest on a bank of 30 items with a gate. Printed are statuses with
what is said of them, characters kept, seconds of a processor (those of a run with its start), the peak of the resident
memory with what it has above that of short answers, and how much the server sent.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.items.item import Item, cut_text
from pytest_adaptive_eval.models.endpoint.model import EndpointModel

ITEMS = 30
ANSWER = "right"
MODEL = "long"
#: Spaces that the server writes at a time.
BLOCK = b" " * (1 << 16)
CONFTEST = f"""
def pytest_unconfigure():
    import sys
    sys.path.insert(0, {str(Path(__file__).parent)!r})
    from long_answers import peak
    open("peak.txt", "w").write(str(peak()))
"""
EVALUATION = """
[[eval]]
bank = "long.jsonl"
budget = "100%"
stop = "budget"
model = "{url}#{model}"
[[eval.gate]]
at_least = 0.5
"""


def peak() -> int:
    """Return the largest resident memory of this process so far, in MiB."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) >> 10


class LongAnswers:
    """A server of one model whose answers have a given number of characters.

    Args:
        characters: Length of an answer. A request with a cap of one token gets the first word alone.

    Attributes:
        sent: Bytes of answers that were handed to the network.
    """

    def __init__(self, characters: int) -> None:
        self.characters, self.sent = characters, 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> LongAnswers:
        self._thread.start()
        serving = asyncio.start_server(self._connected, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(serving, self._loop).result()
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _close(self) -> None:
        """End the connections that are still open."""
        self._server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                if head.startswith("get"):
                    await self._reply(writer, json.dumps({"object": "list", "data": [{"id": MODEL}]}), 0)
                    continue
                length = int(head.partition("content-length:")[2].split()[0])
                body = json.loads(await reader.readexactly(length))
                spaces = 0 if body["max_tokens"] == 1 else self.characters - len(ANSWER)
                await self._reply(writer, json.dumps(_completion()), spaces)
        writer.close()

    async def _reply(self, writer: asyncio.StreamWriter, text: str, spaces: int) -> None:
        """Send JSON with more spaces behind the answer in it."""
        before, answer, after = text.encode().partition(ANSWER.encode())
        length = len(text) + spaces
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        writer.write(head.encode() + before + answer)
        while spaces:
            block = BLOCK[:spaces]
            writer.write(block)
            await writer.drain()
            self.sent += len(block)
            spaces -= len(block)
        writer.write(after)
        await writer.drain()


def _completion() -> dict[str, Any]:
    message = {"role": "assistant", "content": ANSWER}
    return {
        "object": "chat.completion",
        "model": MODEL,
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 5},
    }


def items() -> list[dict[str, str]]:
    """Return the items of the bank, as in its file."""
    return [{"id": f"q{n}", "prompt": f"Question {n}?", "answer": ANSWER} for n in range(ITEMS)]


def ask(url: str) -> dict[str, Any]:
    """Ask all items at once, in this process."""
    subject = EndpointModel.load(url, MODEL)
    start = time.process_time()
    completions = subject.answer([Item(**item) for item in items()])  # type: ignore[arg-type]  # texts only
    seconds = time.process_time() - start
    subject.close()
    return {
        "statuses": Counter(completion.status.value for completion in completions),
        "said": sorted({completion.detail for completion in completions}),
        "kept": sum(len(cut_text(completion.text)) for completion in completions),
        "seconds": seconds,
        "peak": peak(),
    }


def run(url: str) -> dict[str, Any]:
    """Run pytest on the bank."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        (project / "long.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items()))
        (project / "adaptive-eval.toml").write_text(EVALUATION.format(url=url, model=MODEL))
        (project / "conftest.py").write_text(CONFTEST)
        command = [sys.executable, "-m", "pytest", "-q", "--adaptive-eval"]
        subprocess.run(command, cwd=project, stdout=subprocess.PIPE, check=False)
        seconds = os.times().children_user + os.times().children_system
        (record,) = [json.loads(path.read_text()) for path in project.glob(".adaptive-eval/runs/*.json")]
        written = sum(path.stat().st_size for path in project.glob(".adaptive-eval/**/*") if path.is_file())
        (interview,) = record["interviews"]
        answers = interview["administrations"]
        outcome = record["gates"][0]["verdict"]["outcome"]
        said = {interview["error"], *(answer["detail"] for answer in answers)}
        return {
            "statuses": Counter(answer["status"] for answer in answers),
            "said": [f"gate {outcome}", *sorted(said - {""})],
            "kept": sum(len(answer["text"]) for answer in answers),
            "seconds": seconds,
            "peak": int((project / "peak.txt").read_text()),
            "written": written,
        }


def measure(how: str, characters: int) -> dict[str, Any]:
    """Return what a process of its own found, and the bytes that the server sent."""
    with LongAnswers(characters) as server:
        command = [sys.executable, __file__, "--url", server.url, "--how", how]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {**json.loads(output.splitlines()[-1]), "sent": server.sent}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--characters", type=int, nargs="+", default=[1_000, 1_000_000, 50_000_000])
    parser.add_argument("--url", help=argparse.SUPPRESS)  # of the child process
    parser.add_argument("--how", choices=["subject", "run"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.url:
        print(json.dumps(ask(options.url) if options.how == "subject" else run(options.url)))
        return
    for how in ("subject", "run"):
        short = measure(how, 1_000)["peak"]
        for characters in options.characters:
            found = measure(how, characters)
            print(
                f"{how}, {characters} characters: {found['statuses']} in {found['seconds']:.2f} s of a processor, "
                f"{found['kept']} characters kept, peak {found['peak']} MiB ({found['peak'] - short:+} MiB), "
                f"{found['sent'] / 1e6:.1f} MB sent"
                + (f", {found['written'] / 1e3:.0f} kB written" if "written" in found else "")
            )
            for sentence in filter(None, found["said"]):
                print(f"    {sentence}", flush=True)


if __name__ == "__main__":
    main()
