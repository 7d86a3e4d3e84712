"""The same small task in seven tools: a model on a server, 50 questions, at least 60 % of the answers right.

``python benchmarks/side_by_side_tools.py --environments FOLDER`` makes an environment for each tool in the folder (from
PyPI, promptfoo from npm), or takes those that are there, and runs each tool as its documents say against a server of
this machine that takes 100 ms for an answer. The table has what was written (lines without the questions), seconds and
calls of a first and a second run, most calls at once, exit codes, reports, and what a kill, HTTP 429 and a misspelt key
did. ``--seeds 20`` adds, for tools with a gate, the verdicts of as many runs in which each answer is right with a
probability of 60 %, the threshold itself. Telemetry of the tools is off; nothing but this machine is asked.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
QUESTIONS, RIGHT, THRESHOLD = 50, 41, 0.6
SECONDS = 0.1
LIMIT = 240
QUIET = {
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "DEEPEVAL_UPDATE_WARNING_OPT_IN": "0",
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
    "PYDANTIC_DISABLE_PLUGINS": "1",
    "PYTEST_ADDOPTS": "",
    "COLUMNS": "120",
    "NO_COLOR": "1",
    "OPENAI_API_KEY": "none",
    "LOCAL_API_KEY": "none",
}


def answer_of(number: int) -> str:
    return f"word{number}"


class Server(ThreadingHTTPServer):
    """A chat server that is right on the first `RIGHT` questions, or by a seed as often as the threshold."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.lock = threading.Lock()
        self.calls = self.busy = self.most = 0
        self.refusals = 0
        self.seed: int | None = None
        self.seconds = SECONDS
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_: object) -> None:
        """Say nothing of a tool that was killed."""

    @property
    def url(self) -> str:
        """Address of the API."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def forget(self, refusals: int = 0) -> None:
        """Count anew, and refuse the next requests."""
        with self.lock:
            self.calls = self.most = 0
            self.refusals = refusals

    def says(self, text: str) -> str:
        """Return the answer to a question."""
        found = re.search(r"number (\d+)", text)
        if found is None:
            return "Hello"
        number = int(found[1])
        right = number < RIGHT
        if self.seed is not None:
            digest = hashlib.sha256(f"{self.seed} {number}".encode()).digest()
            right = int.from_bytes(digest[:4]) < THRESHOLD * 2**32
        return answer_of(number) if right else "something else"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Write no log."""

    def do_GET(self) -> None:
        self._send(200, {"object": "list", "data": [{"id": "tiny", "object": "model"}]})

    def do_POST(self) -> None:
        server: Any = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            refuse = server.refusals > 0
            server.refusals -= refuse
            server.calls += 1
            server.busy += 1
            server.most = max(server.most, server.busy)
        try:
            if refuse:
                self._send(429, {"error": {"message": "slow down", "code": "rate_limit"}}, {"Retry-After": "1"})
                return
            time.sleep(server.seconds)
            content = body["messages"][-1]["content"]
            text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
            self._send(200, _completion(server.says(text)))
        finally:
            with server.lock:
                server.busy -= 1

    def _send(self, status: int, data: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        raw = json.dumps(data).encode()
        with contextlib.suppress(OSError):  # a tool that was killed
            self.send_response(status)
            own = {"Content-Type": "application/json", "Content-Length": str(len(raw))}
            for name, value in {**own, **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(raw)


def _completion(text: str) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}
    return {"id": "a", "object": "chat.completion", "created": 1, "model": "tiny", "choices": [choice], "usage": usage}


ASK = """
def ask(question):
    body = {"model": "tiny", "messages": [{"role": "user", "content": question}]}
    reply = httpx.post("URL/chat/completions", json=body, timeout=60).raise_for_status()
    return reply.json()["choices"][0]["message"]["content"]
"""


@dataclass(frozen=True)
class Tool:
    """How a tool does the task.

    Args:
        packages: What the environment is made of.
        files: What is written, by file; ``URL`` is the server's.
        commands: Commands one after the other; the exit code is the last one's.
        again: Commands that go on after a kill; `commands` if empty.
        junit, page: Reports that the commands write, as a pattern of files; empty if the tool has none.
        misspelt: What is misspelt in the files, and how.
        cost: Pattern of the cost in what is printed.
        gate: Whether the task has a threshold that sets the exit code.
        note: What had to be written by hand.
    """

    name: str
    packages: tuple[str, ...]
    files: Mapping[str, str]
    commands: Sequence[Sequence[str]]
    misspelt: tuple[str, str]
    again: Sequence[Sequence[str]] = ()
    junit: str = ""
    page: str = ""
    cost: str = ""
    gate: bool = True
    note: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)


OURS = """
[[eval]]
bank = "questions.jsonl"
model = "URL#tiny"
[[eval.gate]]
at_least = 0.6
"""
PROMPTFOO = """
prompts: ["{{question}}"]
providers:
  - id: openai:chat:tiny
    config:
      apiBaseUrl: URL
defaultTest:
  threshold: 0.5
tests: questions.csv
"""
INSPECT = """
from inspect_ai import Task, task
from inspect_ai.dataset import FieldSpec, json_dataset
from inspect_ai.scorer import exact

@task
def words():
    fields = FieldSpec(input="prompt", target="answer", id="id")
    return Task(dataset=json_dataset("questions.jsonl", fields), scorer=exact())
"""
LM_EVAL = """
task: words
dataset_path: json
dataset_kwargs: {data_files: {test: questions.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: "{{prompt}}"
doc_to_target: "{{answer}}"
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
"""
DEEPEVAL = (
    """
import json, httpx
from deepeval.metrics import ExactMatchMetric
from deepeval.test_case import LLMTestCase
from deepeval import evaluate
"""
    + ASK
    + """
def test_words():
    rows = [json.loads(line) for line in open("questions.jsonl")]
    cases = [LLMTestCase(input=r["prompt"], actual_output=ask(r["prompt"]), expected_output=r["answer"]) for r in rows]
    results = evaluate(test_cases=cases, metrics=[ExactMatchMetric(threshold=1)]).test_results
    assert sum(result.success for result in results) >= 0.6 * len(results)
"""
)
PYTEST_EVALS = (
    """
import json, httpx, pytest
ROWS = [json.loads(line) for line in open("questions.jsonl")]
"""
    + ASK
    + """
@pytest.mark.eval(name="words")
@pytest.mark.parametrize("case", ROWS)
def test_case(case, eval_bag):
    eval_bag.right = ask(case["prompt"]) == case["answer"]

@pytest.mark.eval_analysis(name="words")
def test_analysis(eval_results):
    assert sum(case.result.right for case in eval_results) >= 0.6 * len(eval_results)
"""
)
EVALTRACK = (
    """
import json, httpx, evaltrack, pytest
from dataclasses import dataclass
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Evaluator
"""
    + ASK
    + """
@dataclass
class Right(Evaluator):
    def evaluate(self, ctx):
        return float(ctx.output == ctx.expected_output)

@pytest.mark.evaltrack(score_bars={"Right": 0.0})
def test_words():
    rows = [json.loads(line) for line in open("questions.jsonl")]
    cases = [Case(name=r["id"], inputs=r["prompt"], expected_output=r["answer"]) for r in rows]
    reports = []
    def evaluate():
        reports.append(Dataset(name="words", cases=cases, evaluators=[Right()]).evaluate_sync(ask, progress=False))
        return reports[-1]
    evaltrack.run(evaluate)
    assert reports[-1].averages().scores["Right"] >= 0.6
"""
)
TOOLS = (
    Tool(
        "pytest-adaptive-eval",
        (f"{ROOT}[endpoint,html]",),
        {"adaptive-eval.toml": OURS},
        [["pytest", "--adaptive-eval", "--adaptive-eval-junit=junit.xml", "--adaptive-eval-html=page.html"]],
        ("at_least", "at_leest"),
        junit="junit.xml",
        page="page.html",
        cost=r"cost: .*",
    ),
    Tool(
        "promptfoo",
        ("npm:promptfoo",),
        {"promptfooconfig.yaml": PROMPTFOO},
        [["promptfoo", "eval", "--no-progress-bar", "-o", "out.junit.xml", "-o", "page.html"]],
        ("threshold:", "treshold:"),
        again=[["promptfoo", "eval", "--no-progress-bar", "--resume"]],
        junit="*.xml",
        page="page.html",
        cost=r"(?i)(total tokens|tokens|cost)\W.*\d.*",
        environment={"PROMPTFOO_PASS_RATE_THRESHOLD": "60", "PROMPTFOO_CONFIG_DIR": ".promptfoo"},
        note="the threshold is an environment variable",
    ),
    Tool(
        "Inspect",
        ("inspect-ai", "openai"),
        {"words.py": INSPECT},
        [["inspect", "eval", "words.py", "--model", "openai-api/local/tiny", "--display", "plain"]],
        ("scorer=", "scorrer="),
        again=[["inspect", "eval-retry", "logs/*.eval", "--display", "plain"]],
        cost=r"tokens.*\d+.*",
        gate=False,
        note="no threshold",
    ),
    Tool(
        "lm-evaluation-harness",
        ("lm_eval[api]", "datasets"),
        {"words.yaml": LM_EVAL},
        [
            [
                *("lm_eval", "run", "--model", "local-chat-completions", "--model_args"),
                *(
                    "model=tiny,base_url=URL/chat/completions,num_concurrent=8,tokenizer_backend=None",
                    "--tasks",
                    "words",
                ),
                *("--include_path", ".", "--apply_chat_template", "--use_cache", "kept", "--output_path", "out"),
            ]
        ],
        ("metric_list", "metric_lst"),
        gate=False,
        note="no threshold",
    ),
    Tool(
        "deepeval",
        ("deepeval", "httpx"),
        {"test_words.py": DEEPEVAL},
        [["deepeval", "test", "run", "test_words.py", "--", "--junitxml=junit.xml"]],
        ("threshold=", "treshold="),
        junit="junit.xml",
        cost=r"(?i)token cost: *[$0-9]",
        note="the share is asserted in the test",
    ),
    Tool(
        "pytest-evals",
        ("pytest-evals", "httpx"),
        {"test_words.py": PYTEST_EVALS},
        [["pytest", "-q", "--run-eval", "--junitxml=junit.xml"], ["pytest", "-q", "--run-eval-analysis"]],
        ("eval_analysis(name", "eval_analysis(nmae"),
        junit="junit.xml",
        note="the share is asserted in the test",
    ),
    Tool(
        "evaltrack",
        ("evaltrack[pydantic-evals]", "httpx"),
        {"test_words.py": EVALTRACK},
        [
            ["pytest", "-q", "--junitxml=junit.xml", "--evaltrack-run-file=run.json"],
            ["evaltrack", "report", "--run-file", "run.json", "--output", "page.html"],
        ],
        ("score_bars", "score_barz"),
        junit="junit.xml",
        page="page.html",
        cost=r"(?i)cost.*\d",
        note="the share is asserted in the test",
    ),
)


def prepare(tool: Tool, environments: Path) -> Path:
    """Return the folder of a tool's programs, which is made if it is not there."""
    folder = environments / tool.name
    if tool.packages[0].startswith("npm:"):
        programs = folder / "node_modules" / ".bin"
        if not programs.is_dir():
            folder.mkdir(parents=True)
            (folder / "package.json").write_text("{}")
            subprocess.run(["npm", "install", "--no-fund", "--no-audit", tool.packages[0][4:]], cwd=folder, check=True)
        return programs
    programs = folder / "bin"
    if not programs.is_dir():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([programs / "python", "-m", "pip", "install", "-q", *tool.packages], check=True)
    return programs


def write(tool: Tool, folder: Path, url: str, change: tuple[str, str] = ("", "")) -> None:
    rows = [{"id": f"q{n}", "prompt": f"Say the word of number {n}.", "answer": answer_of(n)} for n in range(QUESTIONS)]
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = [f"{row['prompt']},equals:{row['answer']}" for row in rows]
    (folder / "questions.csv").write_text("\n".join(["question,__expected", *lines]) + "\n")
    for name, text in tool.files.items():
        text = text.strip().replace("URL", url)
        (folder / name).write_text((text.replace(*change) if change[0] else text) + "\n")


class Runner:
    """Runs of one tool in a folder."""

    def __init__(self, tool: Tool, programs: Path, folder: Path, server: Server) -> None:
        self.tool, self.programs, self.folder, self.server = tool, programs, folder, server
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        homes = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / ".cache"), "LOCAL_BASE_URL": server.url}
        self.environment = {**os.environ, **QUIET, **homes, "PATH": path, **tool.environment}
        for name in ("CI", "VIRTUAL_ENV"):
            self.environment.pop(name, None)

    def start(self, command: Sequence[str]) -> subprocess.Popen[str]:
        """Start a command in a session of its own."""
        words = [word.replace("URL", self.server.url) for word in command]
        files = [sorted(map(str, self.folder.glob(word))) if "*" in word else [word] for word in words[1:]]
        program = self.programs / words[0]
        return subprocess.Popen(
            [str(program), *(word for group in files for word in group)],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def run(self, commands: Sequence[Sequence[str]]) -> tuple[int, float, str]:
        """Return exit code (of the test, not of a report), seconds and output of commands."""
        begun, code, printed = time.perf_counter(), 0, ""
        for command in commands:
            process = self.start(command)
            try:
                printed += process.communicate(timeout=LIMIT)[0]
            except subprocess.TimeoutExpired:
                _end(process)
                return -1, time.perf_counter() - begun, printed + "timed out"
            if command[:2] != ["evaltrack", "report"]:
                code = code or process.returncode
        return code, time.perf_counter() - begun, printed

    def kill(self, calls: int) -> None:
        """Kill the first command with all its processes once the server was called so often."""
        process = self.start(self.tool.commands[0])
        ended = time.perf_counter() + LIMIT
        while self.server.calls < calls and process.poll() is None and time.perf_counter() < ended:
            time.sleep(0.005)
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@contextlib.contextmanager
def _project(tool: Tool, programs: Path, server: Server, *change: str) -> Iterator[Runner]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(tool, folder, server.url, change or ("", ""))  # type: ignore[arg-type]  # two texts
        server.forget()
        yield Runner(tool, programs, folder, server)


def measure(tool: Tool, programs: Path, server: Server, log: Callable[[str, str], None]) -> dict[str, str]:
    """Return the rows of the table for one tool."""
    lines = [line for text in tool.files.values() for line in text.splitlines() if line.strip()]
    rows = {"lines written": str(len(lines) + sum(name.isupper() and "THRESHOLD" in name for name in tool.environment))}
    with _project(tool, programs, server) as runner:
        code, first, printed = runner.run(tool.commands)
        log("first run", printed)
        calls, most = server.calls, server.most
        rows["JUnit"] = "yes" if tool.junit and list(runner.folder.glob(tool.junit)) else "no"
        rows["page"] = "yes" if tool.page and list(runner.folder.glob(tool.page)) else "no"
        rows["cost shown"] = "yes" if tool.cost and re.search(tool.cost, printed) else "no"
        server.forget()
        again, second, printed = runner.run(tool.commands)
        log("second run", printed)
        rows["seconds, first and second run"] = f"{first:.1f}, {second:.1f}"
        rows["calls, first and second run"] = f"{calls}, {server.calls}"
        rows["most calls at once"] = str(most)
        rows["exit codes"] = f"{code}, {again}"
    with _project(tool, programs, server) as runner:
        runner.kill(20)
        time.sleep(2 * SECONDS)
        killed = server.calls
        server.forget()
        code, _, printed = runner.run(tool.again or tool.commands)
        log("after kill -9", printed)
        rows["kill -9 after 20 calls, then again"] = f"{killed} + {server.calls} calls, exit code {code}"
    with _project(tool, programs, server) as runner:
        server.forget(refusals=10)
        code, seconds, printed = runner.run(tool.commands)
        log("HTTP 429", printed)
        rows["10 times HTTP 429"] = f"exit code {code}, {server.calls} calls, {seconds:.1f} s"
    with _project(tool, programs, server, *tool.misspelt) as runner:
        code, _, printed = runner.run(tool.commands)
        log("misspelt", printed)
        rows["a misspelt key"] = f"exit code {code}, {server.calls} calls, {_named(tool.misspelt[1], printed)}"
    rows["by hand"] = tool.note
    return rows


def _named(word: str, printed: str) -> str:
    key = re.sub(r"\W.*", "", word.rpartition("(")[2])
    return "named" if key in printed else "not named"


def verdicts(tool: Tool, programs: Path, server: Server, seeds: int) -> str:
    """Return how many runs at the threshold passed, and how many did not."""
    codes = []
    server.seconds = 0.0
    for seed in range(seeds):
        server.seed = seed
        with _project(tool, programs, server) as runner:
            code, _, printed = runner.run(tool.commands)
            codes.append("undecided" if "INCONCLUSIVE" in printed else "passed" if code == 0 else "failed")
    server.seed, server.seconds = None, SECONDS
    return ", ".join(f"{codes.count(kind)} {kind}" for kind in ("passed", "failed", "undecided") if kind in codes)


def main() -> None:
    """Run the tools and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environments", type=Path, required=True, help="folder with an environment for each tool")
    parser.add_argument("--only", default="", help="names of tools with commas between them")
    parser.add_argument("--seeds", type=int, default=0, help="runs of each tool at the threshold")
    parser.add_argument("--log", type=Path, help="folder for what the tools print")
    options = parser.parse_args()
    server, table = Server(), {}
    tools = [tool for tool in TOOLS if not options.only or tool.name in options.only.split(",")]
    for tool in tools:
        programs = prepare(tool, options.environments.resolve())

        def log(what: str, text: str, tool: Tool = tool) -> None:
            if options.log:
                options.log.mkdir(exist_ok=True)
                (options.log / f"{tool.name}, {what}.txt").write_text(text)

        table[tool.name] = measure(tool, programs, server, log)
        if options.seeds and tool.gate:
            table[tool.name][f"{options.seeds} runs at the threshold"] = verdicts(tool, programs, server, options.seeds)
        print(tool.name, json.dumps(table[tool.name]), file=sys.stderr, flush=True)
    print(f"| | {' | '.join(table)} |")
    print("| --- |" + " --- |" * len(table))
    for row in dict.fromkeys(row for rows in table.values() for row in rows):
        print(f"| {row} | {' | '.join(rows.get(row, 'no gate') for rows in table.values())} |")
    server.shutdown()


if __name__ == "__main__":
    main()
