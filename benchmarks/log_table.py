"""Reads every published log in the data folder and compares the accuracies with what the logs state.

    python benchmarks/log_table.py [--items] [--gates]

For each folder: the command that reads it, responses read of those that the files hold, what was left out or refused
and why, the accuracy as read and as the log states it, and one item in full. The numbers to compare with are counted
here from the raw files, without the readers.

With ``--gates``, ``adaptive-eval gate`` judges the logs: each subject against itself, against accuracies .006 below and
above what the log states, and against the subject before it with a margin of .02. Beside each verdict stands that which
follows from the stated accuracies.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shlex
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pytest_adaptive_eval.banks.responses import read_responses
from pytest_adaptive_eval.banks.responses.ids import with_item_ids
from pytest_adaptive_eval.banks.responses.questions import items_of
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.mappings import ResponseMapping

DATA = Path(os.environ.get("ADAPTIVE_EVAL_DATA", Path(__file__).parents[2] / "shared" / "data")) / "logs"


class Case(NamedTuple):
    """One log or folder: its path, the options that read it, the responses in it, and the accuracy that it states."""

    path: str
    options: str
    held: Callable[[Path], int]
    stated: Callable[[Path], dict[str, float]]


def data(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def lines(path: Path) -> Iterator[dict[str, Any]]:
    return (json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip())


def nothing(_: Path) -> dict[str, float]:
    return {}


def helm_split(instance: dict[str, Any]) -> str:
    return str(next(s["name"]["split"] for s in instance["stats"] if s["name"]["name"] == "exact_match"))


def helm_held(folder: Path) -> int:
    """Return the number of instances of the split test, or of the only split."""
    held = 0
    for file in folder.rglob("per_instance_stats.json"):
        splits = [helm_split(instance) for instance in data(file)]
        held += splits.count("test") or len(splits)
    return held


def helm_stated(folder: Path) -> dict[str, float]:
    """Return exact_match of each run's own sums, of the split test where it has one."""
    stated = {}
    for file in folder.rglob("stats.json"):
        sums = {
            stat["name"]["split"]: stat["mean"]
            for stat in data(file)
            if stat["name"]["name"] == "exact_match" and "perturbation" not in stat["name"] and stat["count"]
        }
        model = data(file.with_name("run_spec.json"))["adapter_spec"]["model"]
        stated[model] = sums.get("test", next(iter(sums.values())))
    return stated


def reviews(folder: Path) -> int:
    return sum(1 for file in folder.rglob("reviews/*/*.jsonl") for _ in lines(file))


def reports(folder: Path) -> dict[str, float]:
    """Return each model's mean of its reports' scores, weighted by their numbers of samples."""
    stated = {}
    for model in sorted({file.parent for file in folder.rglob("reports/*/*.json")}):
        whole = [metric for file in model.glob("*.json") for metric in data(file)["metrics"][:1]]
        stated[model.name] = sum(m["score"] * m["num"] for m in whole) / sum(m["num"] for m in whole)
    return stated


def vision(path: Path) -> dict[str, float]:
    right, _, total = data(path.with_name(f"{path.stem}_result.json"))["-all"].partition("=")[0].partition("/")
    return {next(lines(path))["model"]: int(right) / int(total)}


def samples_of_inspect(folder: Path) -> Iterator[tuple[Path, dict[str, Any], list[dict[str, Any]]]]:
    """Yield path, header and samples of each log."""
    for file in sorted(folder.rglob("*")):
        if file.suffix == ".json":
            header = data(file)
            yield file, header, header.get("samples") or []
        elif file.suffix == ".eval":
            with zipfile.ZipFile(file) as archive:
                yield file, json.loads(archive.read("header.json")), json.loads(archive.read("summaries.json"))


def inspect_held(folder: Path) -> int:
    """Return the number of scored samples of the newest log of each model and task, epochs counted once."""
    newest: dict[tuple[str, str, str], bool] = {}
    for _, header, samples in samples_of_inspect(folder):
        for sample in samples:
            if sample.get("scores") and not sample.get("error"):
                newest[header["eval"]["model"], header["eval"]["task"], str(sample["id"])] = True
    return len(newest)


def pyirt_held(path: Path) -> int:
    return sum(len(row["responses"]) for row in lines(path))


def pyirt_stated(path: Path) -> dict[str, float]:
    return {row["subject_id"]: sum(row["responses"].values()) / len(row["responses"]) for row in lines(path)}


CASES = (
    Case("helm", "--metric exact_match --filter test,valid", helm_held, helm_stated),
    Case("evalscope", "", reviews, reports),
    Case("lm_eval", "", lambda _: 0, nothing),
    Case("lm_eval_results_only", "", lambda _: 0, nothing),
    Case("inspect/inspect_ai", "", inspect_held, nothing),
    Case("inspect/every_eval_ever", "", inspect_held, nothing),
    Case("inspect/vivaria", "", inspect_held, nothing),
    Case("swe_bench/gso_responses.jsonl", "", pyirt_held, pyirt_stated),
    Case("mathvision/Gemini-Pro.jsonl", "--score correct", lambda p: len(list(lines(p))), vision),
    Case("mathvision/Random-Chance.jsonl", "--score correct", lambda p: len(list(lines(p))), vision),
    Case(
        "mmlu_pro/model_outputs_Llama-2-7b-hf_5shots.json",
        "--score \"(pred || 'none') == answer\"",
        lambda p: len(data(p)),
        lambda p: {p.stem: sum(r["pred"] == r["answer"] for r in data(p)) / len(data(p))},
    ),
    Case(
        "mmmu/gpt-4o_vision_direct_first100.jsonl",
        "--score if_right",
        lambda p: len(list(lines(p))),
        lambda p: {p.stem: sum(row["if_right"] for row in lines(p)) / 100},
    ),
    Case(
        "mmmu/llava1.5_13b/Music/output.json",
        "--score 'response == answer' --subject '$folder'",
        lambda p: len(data(p)),
        lambda p: {"Music": sum(row["response"] == row["answer"] for row in data(p)) / len(data(p))},
    ),
    Case("mmmu/llava1.5_13b_val.json", "", lambda p: len(data(p)), nothing),
    Case(
        "cruxeval/sample_scored_codellama-7b_temp0.2_output.json",
        "--rows 'raw_scored_generations.*[*]' --item '$key' --score '$value'",
        lambda p: len(data(p)["raw_scored_generations"]),
        lambda p: {p.stem: data(p)["pass_at_1"] / 100},
    ),
    Case(
        "gsm8k_solutions/example_model_solutions_first100.jsonl",
        "--rows '*' --subject '$key' --item 'hash($parent.question)' --score is_correct --answer solution "
        "--question '$parent.question' "
        "--target \"extract($parent.ground_truth, 'A: (.*)')\"",
        lambda p: 4 * len(list(lines(p))),
        lambda p: {
            key: sum(row[key]["is_correct"] for row in lines(p)) / 100
            for key in ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")
        },
    ),
)


class Read(NamedTuple):
    """Outcome of one case."""

    case: Case
    read: int
    held: int
    subjects: int
    texts: int
    accuracies: dict[str, float]
    stated: dict[str, float]
    notes: list[str]
    item: str


def settings_of(options: str) -> dict[str, Any]:
    """Return the settings of `read_responses` that options of the command line stand for."""
    words = shlex.split(options)
    pairs = {name.removeprefix("--"): text for name, text in zip(words[::2], words[1::2], strict=True)}
    settings: dict[str, Any] = {name: pairs.pop(name) for name in ("metric", "filter") if name in pairs}
    return {**settings, "mapping": ResponseMapping(**pairs)} if pairs else settings


def run(case: Case) -> Read:
    """Read one log."""
    path, notes = DATA / case.path, list[str]()
    held, stated = case.held(path), case.stated(path)
    try:
        responses = read_responses(path, note=notes.append, **settings_of(case.options))
    except ResponsesError as error:
        return Read(case, 0, held, 0, 0, {}, stated, [f"refused: {error}"], "")
    with tempfile.TemporaryDirectory() as folder:
        items = items_of(with_item_ids(responses, notes.append), Path(folder), notes.append)
    means = np.nanmean(responses.scores, axis=1).tolist()
    return Read(
        case,
        int((~np.isnan(responses.scores)).sum()),
        held,
        len(responses.subjects),
        len(items),
        dict(zip(responses.subjects, means, strict=True)),
        stated,
        notes,
        json.dumps(items[0].to_json(), ensure_ascii=False) if items else "",
    )


def gate(case: Case, candidate: str, *conditions: str) -> str:
    """Return the verdict of ``adaptive-eval gate``, by its exit code."""
    from pytest_adaptive_eval.cli import main as command

    words = shlex.split(case.options)
    settings = [
        part for name, text in zip(words[::2], words[1::2], strict=True) for part in ("--set", f"{name[2:]}={text}")
    ]
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        code = command(["gate", f"{DATA / case.path}#{candidate}", "--partial", *conditions, *settings])
    return {0: "PASS", 1: "no pass"}.get(code, "refused")


def gates(result: Read) -> Iterator[tuple[str, str, str]]:
    """Yield the gates on a log, as what is judged, the verdict, and the verdict by hand."""
    case, subjects = result.case, list(result.accuracies)
    for place, name in enumerate(subjects):
        path = f"{DATA / case.path}#{name}"
        yield f"{name} not worse than itself", gate(case, name, "--baseline", path, "--margin", "0.001"), "PASS"
        if name not in result.stated:
            continue
        accuracy = result.stated[name]
        for offset, verdict in ((-0.006, "PASS"), (0.006, "no pass")):
            if 0 < accuracy + offset < 1:
                threshold = f"{accuracy + offset:.4f}"
                yield f"{name} at least {threshold}", gate(case, name, "--at-least", threshold), verdict
        if place and subjects[place - 1] in result.stated:
            other = subjects[place - 1]
            by_hand = "PASS" if accuracy >= result.stated[other] - 0.02 else "no pass"
            by_hand = "refused" if case.path == "helm" else by_hand  # the two runs are of different tasks
            judged = gate(case, name, "--baseline", f"{DATA / case.path}#{other}", "--margin", "0.02")
            about = f"{name} ({accuracy:.4f}) not worse than {other} ({result.stated[other]:.4f}) by .02"
            yield about, judged, by_hand


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; the exit code is 1 if an accuracy differs from the one that a log states."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", action="store_true", help="print one item of each log")
    parser.add_argument("--gates", action="store_true", help="judge the logs, and compare with verdicts by hand")
    options = parser.parse_args(arguments)
    different = 0
    print("| log | options | responses | subjects | items with text | accuracy, read / stated |")
    print("| --- | --- | --- | --- | --- | --- |")
    results = [run(case) for case in CASES]
    for result in results:
        compared = [
            f"{subject} {accuracy:.4f}" + (f" / {result.stated[subject]:.4f}" if subject in result.stated else "")
            for subject, accuracy in result.accuracies.items()
        ]
        # tools round what they state to two or four digits
        wrong = [s for s, a in result.stated.items() if abs(result.accuracies.get(s, -1.0) - a) > 0.00501]
        different += bool(wrong)
        options_text = f"`{result.case.options}`".replace("|", "\\|") if result.case.options else ""
        shown = f"{'; '.join(compared[:4])}{' ..' if len(compared) > 4 else ''}{' DIFFERS' if wrong else ''}"
        print(
            f"| {result.case.path} | {options_text} | {result.read} of {result.held} | {result.subjects} | "
            f"{result.texts} | {shown} |"
        )
    for result in results if options.gates else ():
        judged = list(gates(result))
        same = sum(verdict == by_hand for _, verdict, by_hand in judged)
        different += same < len(judged)
        print(f"{result.case.path}: {same} of {len(judged)} gates as by hand")
        for about, verdict, by_hand in judged:
            if verdict != by_hand or ("not worse than" in about and "itself" not in about):
                print(f"  {about}: {verdict}, by hand {by_hand}")
    for result in results:
        for note in result.notes:
            print(f"{result.case.path}: {note.replace(str(DATA), '..'):.420}")
        if options.items and result.item:
            print(f"{result.case.path}: {result.item:.600}")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
