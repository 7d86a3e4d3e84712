"""A pretrained chat model through both doors: its checkpoint folder, and llama.cpp with the same weights.

``python benchmarks/checkpoint_doors.py FOLDER BENCHMARK [--items 200] [--name smollm2]`` takes FOLDER/NAME-hf and
FOLDER/NAME.gguf, imports BENCHMARK with ``adaptive-eval import``, and asks its first items, greedily, through each
door, in a pytest process of its own. Printed are accuracy and seconds of each, how many answers are equal as texts and
as scores, and the first that are not. Both doors have the same request (chat template, prompt, cap); the arithmetic of
the two programs differs in the last digits, so that an answer may part where two tokens are nearly as likely.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CAP = 24

EVALUATION = """
[[eval]]
name = "doors"
bank = "bank.jsonl"
model = "{model}"
model_options = {options}
budget = "100%"
stop = "budget"
max_tokens = {cap}
[[eval.gate]]
at_least = 0.5
"""


def import_items(benchmark: Path, count: int, folder: Path) -> list[dict[str, Any]]:
    """Write the first items of a benchmark as ``bank.jsonl`` of a project in a folder, and return them."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = ["import", str(benchmark.resolve()), "-o", "all.bank", "--yes", "--partial"]
    subprocess.run(
        [sys.executable, "-m", "pytest_adaptive_eval", *command], cwd=folder, check=True, capture_output=True
    )
    lines = (folder / "all.bank" / "items.jsonl").read_text().splitlines()[:count]
    (folder / "bank.jsonl").write_text("\n".join(lines) + "\n")
    return [json.loads(line) for line in lines]


def serve(gguf: Path, name: str) -> Any:
    """Start llama.cpp in this process; the requests ask for greedy decoding."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path, params.model_alias, params.n_gpu_layers = str(gguf), {name}, 0
    params.n_ctx, params.n_parallel = 8192, 4
    params.cpuparams.n_threads = 2
    return xllamacpp.Server(params)


def run(folder: Path, model: str, options: str) -> tuple[dict[str, dict[str, Any]], float]:
    """Return the administrations by item, and the seconds of a run."""
    (folder / "adaptive-eval.toml").write_text(EVALUATION.format(model=model, options=options, cap=CAP))
    begin = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "--adaptive-eval", "--adaptive-eval-fresh"]
    done = subprocess.run([*command, "--adaptive-eval-record=r.json"], cwd=folder, capture_output=True, text=True)
    seconds = time.monotonic() - begin
    if not (folder / "r.json").exists():
        raise SystemExit(done.stdout + done.stderr)
    (interview,) = json.loads((folder / "r.json").read_text())["interviews"]
    if interview.get("error"):
        raise SystemExit(interview["error"])
    return {entry["item"]: entry for entry in interview["administrations"]}, seconds


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("benchmark", type=Path)
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--name", default="smollm2")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        import_items(options.benchmark, options.items, folder)
        ours, seconds = run(folder, str((options.folder / f"{options.name}-hf").resolve()), "{ batch_size = 8 }")
        server = serve(options.folder / f"{options.name}.gguf", options.name)
        address = f"{server.listening_address}/v1#{options.name}"
        # llama.cpp puts a chat template of its own around the prompts of a model that has none
        tokenizer = json.loads((options.folder / f"{options.name}-hf" / "tokenizer_config.json").read_text())
        api = "chat" if tokenizer.get("chat_template") else "completions"
        theirs, served = run(folder, address, f'{{ concurrency = 4, api = "{api}" }}')
    for door, answers, took in (("folder", ours, seconds), ("llama.cpp", theirs, served)):
        scores = [entry["score"] or 0.0 for entry in answers.values()]
        print(f"{door:10} accuracy {sum(scores) / len(scores):.3f} of {len(scores)} items, {took:.0f} s")
    texts = sum(ours[item]["text"] == theirs[item]["text"] for item in ours)
    other = [item for item in ours if ours[item]["score"] != theirs[item]["score"]]
    print(f"{texts} of {len(ours)} texts are equal, {len(ours) - len(other)} of {len(ours)} scores")
    for item in other[:3]:
        print(f"  {item}: {ours[item]['text']!r} and {theirs[item]['text']!r}")


if __name__ == "__main__":
    main()
