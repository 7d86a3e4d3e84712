"""Two pretrained models on four published benchmarks: gates against the whole bank, and against lm-evaluation-harness.

``python benchmarks/real_models.py MODELS DATA RESULTS [--cells smollm2-arc ...]``, with lm_eval 0.4.13 installed.
MODELS has the folders ``smollm2-hf`` (SmolLM2-135M-Instruct) and ``gemma-hf`` (Gemma 3 270M, base), DATA the published
benchmarks. Each cell, a model and a benchmark, has a folder in RESULTS with a JSON file for each of its three steps; a
step whose file is there is not run again.

The first step asks all items. The second has lm-evaluation-harness ask the same prompts and choices, by a task file
written here. The third runs gates 5 and 10 points below and above the whole bank's score, with 20 seeds each. A greedy
answer does not depend on the seed, so these take the answers from the store of the first step. Printed is the table of
all finished cells. Seconds are CPU seconds; those of a gate are its questions times the seconds per question of the
first step.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

SEEDS = 20
DISTANCES = (-0.10, -0.05, 0.05, 0.10)
BATCH = 8
#: Longest written answer in tokens.
CAP = 80
MODELS = {"smollm2": "SmolLM2-135M-Instruct", "gemma": "Gemma 3 270M"}


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A published benchmark, and how it is asked.

    Args:
        path: Below the folder of published benchmarks.
        count: The first so many items are the bank.
        by_likelihood: Whether the likelihoods of the choices are compared, or an answer is written.
    """

    title: str
    path: str
    preset: str
    count: int
    template: str
    by_likelihood: bool = True


BENCHMARKS = {
    "arc": Benchmark("ARC-Challenge", "arc/ARC-Challenge-Test.jsonl.gz", "arc", 300, "Question: {prompt}\nAnswer:"),
    "openbookqa": Benchmark("OpenBookQA", "openbookqa", "openbookqa", 200, "{prompt}"),
    "boolq": Benchmark("BoolQ", "boolq_hf_arrow", "boolq", 120, "{prompt}?\nAnswer:"),
    "gsm8k": Benchmark("GSM8K", "gsm8k/test.jsonl.gz", "gsm8k", 24, "{prompt}", by_likelihood=False),
}

HARNESS_TASK = {
    "task": "bank",
    "dataset_path": "json",
    "test_split": "test",
    "doc_to_text": "prompt",
    "doc_to_target": "target",
}
BY_LIKELIHOOD = {"output_type": "multiple_choice", "doc_to_choice": "choices", "metric_list": [{"metric": "acc_norm"}]}
#: The number after "Answer:", else the last one, as the harness's task gsm8k reads answers.
BY_TEXT = {
    "output_type": "generate_until",
    "generation_kwargs": {"until": [], "do_sample": False, "max_gen_toks": CAP},
    "metric_list": [{"metric": "exact_match", "regexes_to_ignore": [",", "\\$", "\\.$"]}],
    "filter_list": [
        {
            "name": "last-number",
            "filter": [
                {"function": "regex", "group_select": -1, "regex_pattern": "(-?[$0-9.,]{2,})|(-?[0-9]+)"},
                {"function": "take_first"},
            ],
        }
    ],
}


def evaluation(name: str, checkpoint: Path, benchmark: Benchmark, seed: int, threshold: float, stop: str) -> str:
    """Return one evaluation of a TOML file."""
    asked = 'ask = "likelihood-characters"' if benchmark.by_likelihood else f"max_tokens = {CAP}"
    return f"""
[[eval]]
name = {json.dumps(name)}
bank = "bank.jsonl"
model = {json.dumps(str(checkpoint))}
model_options = {{ batch_size = {BATCH}, dtype = "float32" }}
template = {json.dumps(benchmark.template)}
{asked}
seed = {seed}
budget = "100%"
stop = "{stop}"
[[eval.gate]]
at_least = {threshold:.6f}
"""


def cpu_seconds(folder: Path, command: list[str], environment: dict[str, str] | None = None) -> float:
    """Run Python with arguments and return its CPU seconds; end the program if it fails other than by a gate."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | (environment or {})
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1):
        raise SystemExit(done.stdout + done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run_gates(folder: Path, evaluations: str) -> tuple[dict[str, Any], float]:
    """Return the record of a run, and its CPU seconds."""
    (folder / "adaptive-eval.toml").write_text(evaluations)
    command = ["pytest", "-q", "--adaptive-eval", "--adaptive-eval-reuse=answers.sqlite"]
    seconds = cpu_seconds(folder, [*command, "--adaptive-eval-record=record.json"])
    record: dict[str, Any] = json.loads((folder / "record.json").read_text())
    if problems := [interview["error"] for interview in record["interviews"] if interview["error"]]:
        raise SystemExit(str(problems[0]))
    return record, seconds


def ask_all(folder: Path, checkpoint: Path, benchmark: Benchmark, path: Path) -> dict[str, Any]:
    """Import a benchmark, ask all items of the bank, and return the items, the answers and the CPU seconds."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = ["pytest_adaptive_eval", "import", str(path), "--preset", benchmark.preset, "-o", "all.bank", "--replace"]
    cpu_seconds(folder, [*command, *(["--set", "bare=true"] if benchmark.by_likelihood else [])])
    lines = (folder / "all.bank" / "items.jsonl").read_text().splitlines()[: benchmark.count]
    (folder / "bank.jsonl").write_text("\n".join(lines) + "\n")
    record, seconds = run_gates(folder, evaluation("whole", checkpoint, benchmark, 0, 0.5, "budget"))
    answers = {entry["item"]: entry for entry in record["interviews"][0]["administrations"]}
    return {"items": list(map(json.loads, lines)), "answers": answers, "seconds": seconds}


def ask_by_harness(folder: Path, checkpoint: Path, benchmark: Benchmark, items: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the samples of lm-evaluation-harness by item, and its CPU seconds."""
    documents = []
    for item in items:
        choices, answer = item.get("choices", []), item["answer"]
        gold = choices.index(answer) if answer in choices else "ABCDE".find(answer)
        prompt = benchmark.template.format(prompt=item["prompt"])
        target = gold if benchmark.by_likelihood else answer
        documents.append({"id": item["id"], "prompt": prompt, "choices": choices, "target": target})
    (folder / "documents.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents))
    data = {"dataset_kwargs": {"data_files": {"test": str(folder / "documents.jsonl")}}}
    task = {**HARNESS_TASK, **data, **(BY_LIKELIHOOD if benchmark.by_likelihood else BY_TEXT)}
    (folder / "bank.yaml").write_text(json.dumps(task))  # JSON is YAML
    command = ["lm_eval", "run", "--model", "hf", "--tasks", "bank", "--include_path", ".", "--log_samples"]
    command += ["--model_args", f"pretrained={checkpoint},dtype=float32", "--device", "cpu"]
    command += ["--batch_size", str(BATCH), "--output_path", "harness"]
    command += ["--apply_chat_template"] if (checkpoint / "chat_template.jinja").exists() else []
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder / "cache")}
    seconds = cpu_seconds(folder, command, offline)
    path = max((folder / "harness").rglob("samples_bank_*.jsonl"))
    samples = {sample["doc"]["id"]: sample for sample in map(json.loads, path.read_text().splitlines())}
    return {"samples": samples, "seconds": seconds}


def gate_all(folder: Path, checkpoint: Path, benchmark: Benchmark, score: float) -> dict[str, list[tuple[str, int]]]:
    """Return verdict and number of questions of each gate, by the distance of its threshold from the score."""
    evaluations = "".join(
        evaluation(f"{distance:+.2f} {seed}", checkpoint, benchmark, seed, score + distance, "decision")
        for distance in DISTANCES
        if 0 < score + distance < 1
        for seed in range(SEEDS)
    )
    record, _ = run_gates(folder, evaluations)
    gates: dict[str, list[tuple[str, int]]] = {}
    for gate in record["gates"]:
        verdict = gate["verdict"]
        gates.setdefault(gate["interview"].split()[0], []).append((verdict["outcome"], verdict["asked"]))
    return gates


def compare(ours: dict[str, Any], theirs: dict[str, Any], *, by_likelihood: bool) -> dict[str, Any]:
    """Return the harness's score and how many items agree, with those that do not."""
    metric = "acc_norm" if by_likelihood else "exact_match"
    scores = {item: float(sample[metric]) for item, sample in theirs.items()}
    unequal = [item for item in ours if ours[item]["score"] != scores[item]]
    found = {"score": sum(scores.values()) / len(scores), "equal": len(ours) - len(unequal)}
    if by_likelihood:
        logs = {item: [float(reply[0]) for reply in sample["filtered_resps"]] for item, sample in theirs.items()}
        pairs = [zip(ours[item]["likelihood"]["log_likelihoods"], logs[item], strict=True) for item in ours]
        return {**found, "largest_difference": max(abs(a - b) for pair in pairs for a, b in pair), "unequal": unequal}
    texts = {item: sample["resps"][0][0].strip() for item, sample in theirs.items()}
    other = [(item, ours[item]["text"], texts[item], ours[item]["score"], scores[item]) for item in unequal]
    return {**found, "equal_texts": sum(ours[item]["text"].strip() == texts[item] for item in ours), "unequal": other}


def step(path: Path, function: Callable[[], Any]) -> Any:
    """Return the result in a file; if the file is missing, compute and write it."""
    if not path.exists():
        path.write_text(json.dumps(function()))
    return json.loads(path.read_text())


def run_cell(folder: Path, checkpoint: Path, benchmark: Benchmark, path: Path) -> dict[str, Any]:
    """Return what a cell of the table needs."""
    folder.mkdir(parents=True, exist_ok=True)
    whole = step(folder / "whole.json", lambda: ask_all(folder, checkpoint, benchmark, path))
    answers = whole["answers"]
    score = sum(entry["score"] for entry in answers.values()) / len(answers)
    theirs = step(folder / "harness.json", lambda: ask_by_harness(folder, checkpoint, benchmark, whole["items"]))
    return {
        "items": len(answers),
        "score": score,
        "seconds": whole["seconds"],
        "harness": compare(answers, theirs["samples"], by_likelihood=benchmark.by_likelihood),
        "harness_seconds": theirs["seconds"],
        "gates": step(folder / "gates.json", lambda: gate_all(folder, checkpoint, benchmark, score)),
    }


def row(model: str, key: str, cell: dict[str, Any]) -> str:
    """Return the row of a cell."""
    harness, count, each = cell["harness"], cell["items"], cell["seconds"] / cell["items"]
    wrong = undecided = total = 0
    asked: dict[str, list[int]] = {"0.10": [], "0.05": []}
    for distance, gates in cell["gates"].items():
        right = "PASS" if float(distance) < 0 else "FAIL"
        undecided += sum(verdict == "INCONCLUSIVE" for verdict, _ in gates)
        wrong += sum(verdict not in (right, "INCONCLUSIVE") for verdict, _ in gates)
        total += len(gates)
        asked[distance.lstrip("+-")] += [number for _, number in gates]
    means = [sum(numbers) / len(numbers) for numbers in asked.values()]
    gated = " | ".join(f"{mean:.0f} ({mean * each:.0f} s)" for mean in means)
    difference = harness.get("largest_difference", harness.get("equal_texts"))
    return (
        f"| {MODELS[model]} | {BENCHMARKS[key].title} | {count} | {cell['score']:.3f} | {harness['score']:.3f} "
        f"| {harness['equal']} | {difference:.2g} | {cell['seconds']:.0f} s | {cell['harness_seconds']:.0f} s "
        f"| {gated} | {wrong} of {total} | {undecided} |"
    )


def main() -> None:
    """Run the steps that are missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("results", type=Path)
    cells = [f"{model}-{key}" for key in BENCHMARKS for model in MODELS]
    parser.add_argument("--cells", nargs="+", default=cells, choices=cells)
    parser.add_argument("--items", type=int, help="the first so many items, on a slow machine")
    options = parser.parse_args()
    heads = ["model", "benchmark", "items", "score", "harness", "equal scores", "largest difference, or equal texts"]
    heads += ["seconds", "harness", "10 points", "5 points", "wrong verdicts", "undecided"]
    print(f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}", flush=True)
    for name in options.cells:
        model, key = name.split("-")
        benchmark = BENCHMARKS[key]
        if options.items is not None:
            benchmark = replace(benchmark, count=options.items)
        checkpoint, path = (options.models / f"{model}-hf").resolve(), (options.data / benchmark.path).resolve()
        cell = run_cell(options.results.resolve() / name, checkpoint, benchmark, path)
        print(row(model, key, cell), flush=True)


if __name__ == "__main__":
    main()
