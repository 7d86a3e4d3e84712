"""Gates on published benchmarks, asked of a server that replays the recorded answers of real models.

``python benchmarks/replayed_answers.py`` takes the questions of the published files of GSM8K, MMLU-Pro and IFEval
(strict and loose) for which answers of a model are recorded, imports them with their presets, serves the answers on the
loopback interface, and lets ``pytest --adaptive-eval`` ask all of them. A line for each model: the accuracy by the
publisher's labels, the gate's on the whole bank, and the items on which the two disagree, which ``--show`` prints with
the end of the answer, to be read by a person. Most recorded answers to MMLU-Pro are to questions that the published
file in the data folder lacks: these are imported from the rows that the answers carry. Data: ``ADAPTIVE_EVAL_DATA``
(../shared/data).
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("ADAPTIVE_EVAL_DATA", ROOT.parent / "shared" / "data"))
EVALUATION = """\
[[eval]]
bank = "questions.bank"
budget = "100%"
stop = "budget"
[[eval.gate]]
at_least = 0.5
"""


@dataclass(frozen=True)
class Recorded:
    """A model's answers and the publisher's labels, by question."""

    answers: dict[str, str] = field(default_factory=dict)
    labels: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Benchmark:
    """Rows of a published file in its own form, the preset that reads them with its options, and recorded models."""

    name: str
    preset: str
    rows: Sequence[Mapping[str, Any]]
    models: Mapping[str, Recorded]
    options: Sequence[str] = ()


def lines(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


def gsm8k() -> Benchmark:
    """The lines of the test file whose place is the id of a recorded answer."""
    models: dict[str, Recorded] = {}
    rows = lines(DATA / "benchmarks" / "gsm8k" / "test.jsonl.gz")
    asked = set()
    for row in lines(DATA / "answers" / "gsm8k_openai.jsonl.gz"):
        question = rows[int(row["id"])]["question"]
        assert question.strip()[:100] == row["question"].strip()[:100], row["id"]
        asked.add(int(row["id"]))
        model = models.setdefault(row["model"], Recorded())
        model.answers[question], model.labels[question] = row["answer"], float(row["label"])
    return Benchmark("GSM8K", "gsm8k", [rows[place] for place in sorted(asked)], models)


def mmlu_pro_file() -> Benchmark:
    """The rows of the published parquet file that the maker's outputs answer."""
    import pyarrow.parquet as pq

    outputs = json.loads((DATA / "logs" / "mmlu_pro" / "model_outputs_Llama-2-7b-hf_5shots.json").read_text("utf-8"))
    table = pq.read_table(DATA / "benchmarks" / "mmlu_pro" / "test-first300.parquet").to_pylist()
    answered = {row["question_id"]: row for row in outputs}
    rows = [row for row in table if row["question_id"] in answered]
    model = Recorded()
    for row in rows:
        output = answered[row["question_id"]]
        model.answers[row["question"]] = output["generated_text"]
        model.labels[row["question"]] = float(output["pred"] == output["answer"])
    return Benchmark("MMLU-Pro, published file", "mmlu-pro", rows, {"Llama-2-7b-hf": model})


def mmlu_pro_answers() -> Benchmark:
    """The questions that recorded answers carry, in the schema of MMLU-Pro."""
    rows: dict[str, dict[str, Any]] = {}
    models: dict[str, Recorded] = {}
    for row in lines(DATA / "answers" / "mmlu_pro.jsonl.gz"):
        question, choices = row["question"], row["choices"]
        rows[row["id"]] = {
            "question_id": int(row["id"]),
            "question": question,
            "options": list(choices.values()),
            "answer": row["gold"],
            "answer_index": list(choices).index(row["gold"]),
            "category": row["category"],
        }
        model = models.setdefault(row["model"], Recorded())
        model.answers[question], model.labels[question] = row["answer"], float(row["label"])
    return Benchmark("MMLU-Pro, recorded rows", "mmlu-pro", list(rows.values()), models)


def ifeval(metric: str, *options: str) -> Benchmark:
    """The lines of the published file that reviews of evalscope have scores of; it runs IFEval's published checks."""
    models: dict[str, Recorded] = {}
    asked = set()
    for file in sorted((DATA / "logs" / "evalscope").rglob("reviews/*/ifeval_default.jsonl")):
        model = models.setdefault(file.parent.name, Recorded())
        for review in lines(file):
            scored = review["sample_score"]
            question = scored["sample_metadata"]["prompt"]
            asked.add(scored["sample_metadata"]["key"])
            model.answers[question] = scored["score"]["prediction"]
            model.labels[question] = scored["score"]["value"][f"prompt_level_{metric}"]
    rows = [row for row in lines(DATA / "benchmarks" / "ifeval" / "input_data.jsonl.gz") if row["key"] in asked]
    return Benchmark(f"IFEval, {metric}", "ifeval", rows, models, options)


@contextmanager
def served(models: Mapping[str, Recorded]) -> Iterator[str]:
    """Yield the address of a server that replays the answers of all models."""

    class Replaying(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            prompt = str(body["messages"][-1]["content"])
            answers = models[body["model"]].answers
            question = max((text for text in answers if text.strip() in prompt), key=len, default="")
            message = {"role": "assistant", "content": answers.get(question, "ready")}  # before the run it is tried
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            data = json.dumps({"id": "1", "model": body["model"], "choices": [choice], "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Replaying)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def run(folder: Path, *command: str, codes: Sequence[int] = (0,)) -> None:
    words = [str(Path(sys.executable).with_name(command[0])), *command[1:]]
    environment = {**os.environ, "PYTEST_ADDOPTS": ""}
    ended = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    if ended.returncode not in codes:
        raise SystemExit(f"{' '.join(command)}: exit code {ended.returncode}\n{ended.stdout}\n{ended.stderr}")


def ask(folder: Path, model: str) -> tuple[float, dict[str, Mapping[str, Any]]]:
    """Return the gate's accuracy and the administrations by item."""
    run(folder, "pytest", "--adaptive-eval", f"--adaptive-eval-model={model}", "-p", "no:cacheprovider", codes=(0, 1))
    record = json.loads(max((folder / ".adaptive-eval" / "runs").glob("*.json")).read_text("utf-8"))
    interview = record["interviews"][0]
    assert interview["asked"] == interview["size"] == interview["scored"], interview["stop_sentence"]
    return interview["accuracy"]["estimate"], {entry["item"]: entry for entry in interview["administrations"]}


def compare(benchmark: Benchmark, show: bool) -> Iterator[str]:
    """Import, ask every model, and yield a line of the table for each, and what they disagree on."""
    from pytest_adaptive_eval.banks.reader import read_bank

    with tempfile.TemporaryDirectory() as work, served(benchmark.models) as address:
        folder = Path(work)
        (folder / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in benchmark.rows), "utf-8")
        source = ("test.jsonl", "--preset", benchmark.preset, *benchmark.options)
        run(folder, "adaptive-eval", "import", *source, "-o", "questions.bank")
        (folder / "adaptive-eval.toml").write_text(EVALUATION)
        items = {item.id: item for item in read_bank(folder / "questions.bank").items}
        assert len(items) == len(benchmark.rows)
        for name, model in benchmark.models.items():
            accuracy, administrations = ask(folder, f"{address}#{name}")
            differing, labels = [], []
            for name_of_item, entry in administrations.items():
                item = items[name_of_item]
                question = max((text for text in model.labels if text.strip() in item.prompt), key=len)
                labels.append(model.labels[question])
                if entry["score"] != model.labels[question]:
                    differing.append((item, entry, model.labels[question]))
            labelled = sum(labels) / len(labels)
            yield f"| {benchmark.name} | {name} | {len(items)} | {labelled:.4f} | {accuracy:.4f} | {len(differing)} |"
            for item, entry, label in differing if show else ():
                yield f"\n--- {item.id}: label {label:.0f}, expected {item.answer!r} of {item.choices}"
                yield entry["text"][-700:]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="print the answers that label and grader disagree on")
    parser.add_argument("--only", default="", help="names of benchmarks begin with this")
    options = parser.parse_args(arguments)
    loose = ("--set", "grader=instructions_loose")
    benchmarks = (gsm8k(), mmlu_pro_file(), mmlu_pro_answers(), ifeval("strict"), ifeval("loose", *loose))
    print("| benchmark | model | questions | labelled accuracy | gate's accuracy | items that disagree |")
    print("| --- | --- | --- | --- | --- | --- |")
    for benchmark in (benchmark for benchmark in benchmarks if benchmark.name.startswith(options.only)):
        for line in compare(benchmark, options.show):
            print(line, flush=True)


if __name__ == "__main__":
    main()
