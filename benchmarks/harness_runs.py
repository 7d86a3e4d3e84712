"""Runs of lm-evaluation-harness and Inspect, as they are, to a bank and a gate in two commands.

``python benchmarks/harness_runs.py`` writes 300 questions of the text fixture to a file and has both tools ask three
checkpoints of it. Of the unedited logs of each tool ``adaptive-eval calibrate`` makes a bank, and ``pytest`` asks it:
the table compares the accuracy that the tool printed, the one read from its logs, and the gate's on the whole bank.
Then the same questions come from a folder of ``datasets`` (``save_to_disk``; their prompts without an instruction,
since these models know no other), and ``adaptive-eval gate`` judges logs of two runs of one checkpoint, and of a worse
one. ``--tool`` names one of the tools, where each has an environment of its own, and ``--folder`` leaves both out and
times the two commands from the folder of `datasets`. The first line is the versions. What is asked for must be
importable; nothing is downloaded.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("lm-eval", "inspect")
CHECKPOINTS = ("text-early", "text-mid", "text-late")
TASK = """\
task: tiny
dataset_path: json
dataset_kwargs: {data_files: {test: FILE}}
test_split: test
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{answer}}"
generation_kwargs: {until: ["\\n"], max_gen_toks: 16, do_sample: false}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
"""
INSPECT = """\
from inspect_ai import Task, task
from inspect_ai.dataset import FieldSpec, json_dataset
from inspect_ai.scorer import exact

@task
def tiny():
    return Task(json_dataset("rows.jsonl", FieldSpec(input="question", target="answer", id="id")), scorer=exact())
"""
EVALUATION = """\
[[eval]]
bank = "{bank}"
budget = "100%"
stop = "budget"
[[eval.gate]]
at_least = 0.5
"""


def run(folder: Path, *command: str, codes: Sequence[int] = (0,)) -> tuple[str, float]:
    """Run a module or a script of this Python in a folder; return its output and its seconds of processor time."""
    quiet = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "PYTEST_ADDOPTS": "", "COLUMNS": "120"}
    script = Path(sys.executable).with_name(command[0])
    words = [str(script), *command[1:]] if command[0] == "adaptive-eval" else [sys.executable, "-m", *command]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(words, cwd=folder, env={**os.environ, **quiet}, capture_output=True, text=True)
    if ended.returncode not in codes:
        raise SystemExit(f"{' '.join(command)}: exit code {ended.returncode}\n{ended.stdout}\n{ended.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.stdout + ended.stderr, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def write_rows(folder: Path, count: int) -> list[dict[str, Any]]:
    lines = (ROOT / "fixtures" / "banks" / "text.items.jsonl").read_text("utf-8").splitlines()
    items = random.Random(5).sample([json.loads(line) for line in lines], count)
    rows = [{"id": item["id"], "question": item["prompt"], "answer": item["answer"]} for item in items]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "tasks").mkdir()
    (folder / "tasks" / "tiny.yaml").write_text(TASK.replace("FILE", str(folder / "rows.jsonl")))
    (folder / "tiny.py").write_text(INSPECT)
    return rows


def ask_by_lm_eval(folder: Path, checkpoint: Path) -> float:
    """Return the accuracy that the harness prints."""
    model = ("--model", "hf", "--model_args", f"pretrained={checkpoint},dtype=float32", "--device", "cpu")
    task = ("--tasks", "tiny", "--include_path", "tasks", "--batch_size", "16")
    printed, _ = run(folder, "lm_eval", "run", *model, *task, "--log_samples", "--output_path", "lm-eval-logs")
    return float(re.search(r"exact_match\s*\|[^|]*\|\s*([\d.]+)", printed)[1])  # type: ignore[index]


def ask_by_inspect(folder: Path, checkpoint: Path) -> float:
    """Return the accuracy that Inspect prints; the template passes on the question alone."""
    template = "chat_template='{{ messages[0].content }}'"
    settings = (f"model_path={checkpoint}", "device=cpu", "do_sample=false", template)
    model = ("--model", f"hf/{checkpoint.name}", *(part for setting in settings for part in ("-M", setting)))
    limits = ("--max-tokens", "16", "--max-connections", "32", "--log-dir", "inspect-logs", "--display", "plain")
    printed, _ = run(folder, "inspect_ai", "eval", "tiny.py", *model, *limits)
    return float(re.search(r"\nmean +([\d.]+)", printed)[1])  # type: ignore[index]


def read(folder: Path, checkpoint: str) -> float:
    """Return the accuracy of a checkpoint in the logs, as they are read here."""
    from pytest_adaptive_eval.banks.responses import read_responses

    responses = read_responses(folder, note=lambda _: None)
    return float(responses.scores[responses.subjects.index(named(folder, checkpoint))].mean())


def ask(folder: Path, bank: str, checkpoint: Path) -> tuple[float, str, float]:
    """Return the gate's accuracy on the whole bank, its outcome, and the seconds of the command."""
    (folder / "adaptive-eval.toml").write_text(EVALUATION.format(bank=bank))
    command = ("pytest", "--adaptive-eval", f"--adaptive-eval-model={checkpoint}", "-p", "no:cacheprovider")
    _, seconds = run(folder, *command, codes=(0, 1))
    record = json.loads(max((folder / ".adaptive-eval" / "runs").glob("*.json")).read_text())
    interview = record["interviews"][0]
    assert interview["asked"] == interview["size"], interview["stop_sentence"]
    return interview["accuracy"]["estimate"], record["gates"][0]["verdict"]["outcome"], seconds


def ask_saved(folder: Path, rows: list[dict[str, Any]]) -> str:
    """Save the questions by `datasets`, run the two commands, and return the row of the table with their times."""
    from datasets import Dataset

    Dataset.from_list(rows).save_to_disk(str(folder / "saved"))
    start = time.perf_counter()
    _, making = run(folder, "adaptive-eval", "import", "saved", "--set", "instruction=", "-o", "saved.bank", "--yes")
    gate, outcome, asking = ask(folder, "saved.bank", ROOT / "fixtures" / "checkpoints" / CHECKPOINTS[-1])
    passed = time.perf_counter() - start
    seconds = f"{making + asking:.0f}, {passed:.0f} on a clock"
    return f"| datasets | {CHECKPOINTS[-1]} | - | - | {gate:.4f} | {outcome} | {seconds} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run both tools, make the banks, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--tool", choices=TOOLS, help="this tool alone, without the folder")
    parser.add_argument("--folder", action="store_true", help="the folder of datasets alone")
    options = parser.parse_args(arguments)
    if options.tool and options.folder:
        parser.error("--tool and --folder exclude each other")
    asks = {"lm-eval": ask_by_lm_eval, "inspect": ask_by_inspect}
    tools = [(tool, asks[tool]) for tool in TOOLS if options.tool in (None, tool) and not options.folder]
    checkpoints = [ROOT / "fixtures" / "checkpoints" / name for name in CHECKPOINTS]
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        rows = write_rows(folder, options.questions)
        print(f"{versions()}\n")
        print("| from | checkpoint | printed | read from the logs | gate, whole bank | verdict | processor seconds |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        printed: dict[str, float] = {}
        for tool, ask_by in tools:
            printed = {path.name: ask_by(folder, path) for path in checkpoints}
            logs = f"{tool}-logs"
            command = ("adaptive-eval", "calibrate", logs, "--uncalibrated", "-o", f"{tool}.bank")
            _, making = run(folder, *command)
            for path in checkpoints:
                gate, outcome, asking = ask(folder, f"{tool}.bank", path)
                cells = [printed[path.name], round(read(folder / logs, path.name), 4), round(gate, 4)]
                print(
                    f"| {tool} | {path.name} | {' | '.join(map(str, cells))} | {outcome} | {making + asking:.0f} |",
                    flush=True,
                )
        if not options.tool:
            print(ask_saved(folder, rows), flush=True)
        for tool, ask_by in tools:
            (folder / f"{tool}-logs").rename(folder / f"{tool}-before")
            ask_by(folder, checkpoints[-1])
            for checkpoint in CHECKPOINTS[1:]:
                new = f"{tool}-logs#{named(folder / f'{tool}-logs', CHECKPOINTS[-1])}"
                old = f"{tool}-before#{named(folder / f'{tool}-before', checkpoint)}"
                pair = (new, old) if checkpoint == CHECKPOINTS[-1] else (old, new)
                said, _ = run(folder, "adaptive-eval", "gate", pair[0], "--baseline", pair[1], codes=(0, 1))
                print(f"\n`adaptive-eval gate`, {checkpoint} of {tool} and another run of {CHECKPOINTS[-1]}:\n\n{said}")


def versions() -> str:
    """Return the versions of Python and of what the run rests on."""
    names = ("lm_eval", "inspect-ai", "datasets", "transformers", "torch", "pytest", "pytest-adaptive-eval")
    found = {dist.metadata["Name"].lower().replace("_", "-"): dist.version for dist in metadata.distributions()}
    known = [(name, found.get(name.replace("_", "-"))) for name in names]
    return ", ".join([f"Python {sys.version.split()[0]}", *(f"{name} {version}" for name, version in known if version)])


def named(logs: Path, checkpoint: str) -> str:
    """Return the name that a checkpoint has in logs."""
    from pytest_adaptive_eval.banks.responses import read_responses

    subjects = read_responses(logs, note=lambda _: None).subjects
    return next(name for name in subjects if name.endswith(checkpoint))


if __name__ == "__main__":
    main()
