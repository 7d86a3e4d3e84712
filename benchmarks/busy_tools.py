"""Waiting and processor time of a run, beside promptfoo, Inspect and a plain loop of httpx, in turns.

``python benchmarks/busy_tools.py --environments FOLDER [--sizes 50 200 1000] [--means 2 0.5 0.05]`` runs each tool, one
after the other, against the server of `keep_busy.py`: lognormal answers, 80 % right, 16 calls at once; ours has a gate
at .70, and the others ask the whole bank. A row has the seconds from the command to its end, and calls. The folder has
the environments of `side_by_side_tools.py`, which are made where they are not there.

``--loop`` compares CPU seconds instead: 500 questions at 50 ms, 64 at once, all asked, in a whole pytest run and in a
script that sends the same requests by httpx (``pip install httpx``), compares the answers and writes them to a file.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from keep_busy import SHARE_RIGHT, Server, lay_out
from side_by_side_tools import QUIET, TOOLS, prepare

AT_ONCE = 16

PROMPTFOO = """
prompts: ["{{question}}"]
providers:
  - id: openai:chat:m
    config: {apiBaseUrl: URL}
tests: questions.csv
"""
INSPECT = """
from inspect_ai import Task, task
from inspect_ai.dataset import FieldSpec, json_dataset
from inspect_ai.scorer import exact

@task
def words():
    return Task(dataset=json_dataset("bank.jsonl", FieldSpec(input="prompt", target="answer", id="id")), scorer=exact())
"""
LOOP = """
import asyncio, json, sys
import httpx

async def main(url, at_once):
    rows = [json.loads(line) for line in open("bank.jsonl")]
    gate, out = asyncio.Semaphore(at_once), open("out.jsonl", "w")
    limits = httpx.Limits(max_connections=at_once, max_keepalive_connections=at_once)
    async with httpx.AsyncClient(timeout=60, limits=limits) as client:
        async def ask(row):
            body = {"model": "m", "messages": [{"role": "user", "content": row["prompt"]}], "temperature": 0}
            async with gate:
                reply = await client.post(url + "/chat/completions", json=body)
            text = reply.json()["choices"][0]["message"]["content"]
            out.write(json.dumps({"id": row["id"], "text": text, "score": float(text == row["answer"])}) + "\\n")
            return text == row["answer"]
        print(sum(await asyncio.gather(*map(ask, rows))))

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


def commands(environments: Path) -> dict[str, list[str]]:
    """Return the command of each tool, with URL in place of the server's address."""
    found = {tool.name: prepare(tool, environments) for tool in TOOLS if tool.name in ("promptfoo", "Inspect")}
    inspect = [str(found["Inspect"] / "inspect"), "eval", "words.py", "--model", "openai-api/local/m"]
    return {
        "pytest-adaptive-eval": [sys.executable, "-m", "pytest", "-q", "--adaptive-eval", "--adaptive-eval-fresh"],
        "promptfoo": [
            str(found["promptfoo"] / "promptfoo"),
            "eval",
            "--no-progress-bar",
            "--no-cache",
            "-j",
            str(AT_ONCE),
        ],
        "Inspect": [*inspect, "--display", "plain", "--max-connections", str(AT_ONCE)],
    }


def timed(folder: Path, command: list[str], url: str) -> tuple[float, float]:
    """Return the wall and the CPU seconds of a command."""
    homes = {"HOME": str(folder), "LOCAL_BASE_URL": url, "PROMPTFOO_CONFIG_DIR": str(folder / ".promptfoo")}
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    environment = {**os.environ, **QUIET, **homes}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    seconds, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1, 100):  # 1 and 100: wrong answers
        raise SystemExit(f"{command}: {done.stdout}{done.stderr}")
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def in_turns(environments: Path, sizes: list[int], means: list[float], seeds: int) -> None:
    """Print seconds and calls of each tool by size and mean time."""
    for size in sizes:
        for mean in means:
            seen: dict[str, list[tuple[float, int]]] = {}
            for seed in range(seeds):
                right = set(random.Random(f"{size} {seed}").sample(range(size), round(SHARE_RIGHT * size)))
                for name, command in commands(environments).items():
                    server = Server(mean, right, seed)
                    with tempfile.TemporaryDirectory() as place:
                        folder = Path(place)
                        lay_out(folder, server.url, size, AT_ONCE, seed)
                        (folder / "promptfooconfig.yaml").write_text(PROMPTFOO.replace("URL", server.url))
                        (folder / "words.py").write_text(INSPECT)
                        rows = [json.loads(line) for line in (folder / "bank.jsonl").read_text().splitlines()]
                        table = ["question,__expected", *(f"{row['prompt']},equals:{row['answer']}" for row in rows)]
                        (folder / "questions.csv").write_text("\n".join(table) + "\n")
                        seconds, _ = timed(folder, command, server.url)
                        seen.setdefault(name, []).append((seconds, len(server.asked)))
                    server.close()
            cells = [
                f"{name} {statistics.mean(s for s, _ in runs):6.1f} s {statistics.mean(c for _, c in runs):6.1f} calls"
                for name, runs in seen.items()
            ]
            print(f"{size:5} {mean:5g} s   " + "   ".join(cells), flush=True)


def beside_loop(rounds: int, size: int = 500, mean: float = 0.05, at_once: int = 64) -> None:
    """Print the CPU seconds of whole runs over those of a loop that sends the same requests."""
    right, ratios = set(random.Random(0).sample(range(size), round(SHARE_RIGHT * size))), []
    for seed in range(rounds):
        cpu = []
        for command in (
            [sys.executable, "-m", "pytest", "-q", "--adaptive-eval", "--adaptive-eval-fresh"],
            [sys.executable, "loop.py", "URL", str(at_once)],
        ):
            server = Server(mean, right, seed)
            with tempfile.TemporaryDirectory() as place:
                folder = Path(place)
                lay_out(folder, server.url, size, at_once, seed)
                text = (folder / "adaptive-eval.toml").read_text()
                text = text.replace("[[eval.gate]]", 'budget = "100%"\nstop = "budget"\n[[eval.gate]]')
                (folder / "adaptive-eval.toml").write_text(text)
                (folder / "loop.py").write_text(LOOP)
                words = [server.url if word == "URL" else word for word in command]
                cpu.append(timed(folder, words, server.url)[1])
            asked = len(set(server.asked))
            server.close()
            if asked != size:
                raise SystemExit(f"{command[0]} asked {asked} of {size} questions")
        ratios.append(cpu[0] / cpu[1])
        print(f"pytest {cpu[0]:.2f} s of CPU, httpx {cpu[1]:.2f} s", flush=True)
    print(f"{statistics.median(ratios):.2f}x the CPU of the loop")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environments", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 200, 1000])
    parser.add_argument("--means", type=float, nargs="+", default=[2.0, 0.5, 0.05])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--loop", action="store_true")
    options = parser.parse_args()
    if options.loop:
        beside_loop(options.seeds)
    elif options.environments is None:
        parser.error("--environments names the folder of the tools")
    else:
        in_turns(options.environments.resolve(), options.sizes, options.means, options.seeds)


if __name__ == "__main__":
    main()
