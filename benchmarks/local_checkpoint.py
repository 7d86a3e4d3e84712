"""What a run costs beside the model: all questions of a bank with a local checkpoint, against transformers alone.

``python benchmarks/local_checkpoint.py CHECKPOINT BENCHMARK [--items 300] [--rounds 3]`` imports BENCHMARK with
``adaptive-eval import`` and asks its first items of CHECKPOINT, a folder of transformers with a chat template: in a
whole pytest run whose gate asks all, and in a script that loads the same model, writes the same chats, generates in
batches of the same size and in the same order, and decodes. Both are processes of their own, in turns. Printed are CPU
seconds and wall seconds of each round, the medians of the ratios, and whether the answers are equal.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from checkpoint_doors import CAP, EVALUATION, import_items

BATCH = 8

ALONE = """
import json, sys
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

folder, size, cap = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
model = AutoModelForCausalLM.from_pretrained(folder, dtype="auto").eval()
tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
prompts, texts = json.load(open("prompts.json")), {}
with torch.inference_mode():
    for start in range(0, len(prompts), size):
        batch = prompts[start : start + size]
        chats = [[{"role": "user", "content": prompt}] for _, prompt in batch]
        chats = [tokenizer.apply_chat_template(c, tokenize=False, add_generation_prompt=True) for c in chats]
        inputs = tokenizer(chats, return_tensors="pt", padding=True, add_special_tokens=False)
        out = model.generate(**inputs, max_new_tokens=cap, do_sample=False, temperature=None, top_p=None, top_k=None)
        answers = tokenizer.batch_decode(out[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
        texts |= {item: answer.strip() for (item, _), answer in zip(batch, answers)}
json.dump(texts, open("alone.json", "w"))
"""


def timed(folder: Path, command: list[str]) -> tuple[float, float]:
    """Return the CPU and the wall seconds of a process that may fail a gate."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    wall, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stdout + done.stderr)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("benchmark", type=Path)
    parser.add_argument("--items", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    checkpoint = str(options.checkpoint.resolve())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        items = import_items(options.benchmark, options.items, folder)
        asked = EVALUATION.format(model=checkpoint, options=f"{{ batch_size = {BATCH} }}", cap=CAP)
        (folder / "adaptive-eval.toml").write_text(asked)
        (folder / "alone.py").write_text(ALONE)
        ours = [sys.executable, "-m", "pytest", "-q", "--adaptive-eval", "--adaptive-eval-fresh"]
        alone = [sys.executable, "alone.py", checkpoint, str(BATCH), str(CAP)]
        prompts, ratios = {item["id"]: item["prompt"] for item in items}, []
        for number in range(options.rounds):
            cpu, wall = timed(folder, [*ours, "--adaptive-eval-record=r.json"])
            (interview,) = json.loads((folder / "r.json").read_text())["interviews"]
            answers = {entry["item"]: entry["text"] for entry in interview["administrations"]}
            if number == 0:  # in the order of the run, which makes the same batches
                (folder / "prompts.json").write_text(json.dumps([(item, prompts[item]) for item in answers]))
            their_cpu, their_wall = timed(folder, alone)
            ratios.append((cpu / their_cpu, wall / their_wall))
            print(f"pytest {cpu:.1f} s CPU, {wall:.1f} s; alone {their_cpu:.1f} s CPU, {their_wall:.1f} s", flush=True)
        theirs = json.loads((folder / "alone.json").read_text())
        equal = sum(answers[item].strip() == theirs[item] for item in answers)
    cpu, wall = (statistics.median(values) for values in zip(*ratios, strict=True))
    print(f"{cpu:.2f}x the CPU and {wall:.2f}x the wall time of transformers alone (bar: 1.05x)")
    print(f"{equal} of {len(answers)} answers are equal")


if __name__ == "__main__":
    main()
