"""A checkpoint on a GPU: memory, tokens a second, and the verdicts of the processor.

``python benchmarks/gpu.py`` makes a Llama with random weights of 7B shape and measures, on the first GPU:

- memory: bytes of the weights as told before loading, and as taken;
- throughput: tokens a second of the subject, and on a GPU of transformers' `generate_batch` with the same prompts;
- a gate on its likelihoods of choices, which are as good as chance;
- the gate of a fixture checkpoint here and on the processor: questions, scores and verdict must be equal;
- a small Llama: all questions in the product's batches beside plain batches of 256; likelihoods of four choices beside
  one forward pass over the same texts; a gate's wall time within the run beside one call of 128 questions;
- with ``--compile``, throughput with the model compiled.

Each is a ratio within one run. ``--device cpu --layers 2 --width 64 --small 16`` runs the same small, to try the
command where there is no GPU. Embeddings a second are a benchmark of their own, `embedding_speed.py`.
"""

from __future__ import annotations

import argparse
import gc
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import transformers

from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.likelihood import ChoiceLikelihood
from pytest_adaptive_eval.models.checkpoint.generation import own_generation_config
from pytest_adaptive_eval.models.checkpoint.model import TransformersModel
from pytest_adaptive_eval.models.checkpoint.placement import GIB, weight_bytes

ROOT = Path(__file__).resolve().parent.parent
FIXTURE = ROOT / "fixtures" / "checkpoints" / "text-late"
ROUNDS = 3
PLAIN = 256  #: Questions of a plain batch.
EVALUATION = """
[[eval]]
name = "gpu"
bank = "{bank}"
budget = {budget}
{more}
[[eval.gate]]
at_least = {at_least}
"""


def make_checkpoint(folder: Path, layers: int, width: int, device: str) -> None:
    """Write a Llama with random weights and the tokenizer of a fixture checkpoint."""
    told = json.loads((FIXTURE / "config.json").read_text())
    config = transformers.LlamaConfig(
        vocab_size=told["vocab_size"],
        hidden_size=width,
        intermediate_size=11008 * width // 4096,
        num_hidden_layers=layers,
        num_attention_heads=max(1, width // 128),
        max_position_embeddings=4096,
        bos_token_id=None,
        eos_token_id=told["eos_token_id"],
        pad_token_id=told["pad_token_id"],
    )
    torch.manual_seed(0)
    kinds: Any = transformers.AutoModelForCausalLM
    with torch.device(device):
        model = kinds.from_config(config, dtype=torch.bfloat16)
    model.save_pretrained(folder, max_shard_size="2GB")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(FIXTURE / name, folder)


def taken(device: str) -> int:
    """Bytes of all tensors on a GPU; 0 elsewhere."""
    return torch.cuda.memory_allocated(device) if device.startswith("cuda") else 0


def compare_throughput(folder: Path, device: str, questions: int, tokens: int, *, compiled: bool = False) -> None:
    """Print memory, and tokens a second in turns."""
    files = tuple(path.name for path in folder.glob("*.safetensors"))
    before, told = taken(device), weight_bytes(folder, files, "bfloat16")
    subject = TransformersModel.load(folder, device=device, dtype="bfloat16", max_tokens=tokens, compile=compiled)
    found = taken(device) - before
    line = f"; taken {found / GIB:.2f} GiB, {100 * (found / told - 1):+.1f} %" if found else ""
    print(f"memory of the weights: told {told / GIB:.2f} GiB{line}", flush=True)
    items = [Item(f"q{n}", f"count the letters of the word {n} and write {n} words on it") for n in range(questions)]
    ways = {"subject": by_subject, "generate_batch": by_transformers}
    if device == "cpu":
        del ways["generate_batch"]  # which is made for GPUs, and takes ten GiB of a machine's memory
    rates: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(ROUNDS + 1):
        for way, measure in ways.items():
            begun = time.perf_counter()
            written = measure(subject, items, tokens)
            if turn:  # the first is to warm up
                rates[way].append(written / (time.perf_counter() - begun))
    size = subject.identity.environment["batch_size"]
    medians = {way: statistics.median(values) for way, values in rates.items()}
    print(f"tokens a second, batches of {size}:", ", ".join(f"{way} {rate:.0f}" for way, rate in medians.items()))
    if len(medians) > 1:
        print(f"ratio {medians['subject'] / medians['generate_batch']:.2f} (bar: .85)")
    subject.close()
    gc.collect()


def by_subject(subject: TransformersModel, items: Sequence[Item], _tokens: int) -> int:
    """Number of tokens that the subject wrote."""
    before = subject.usage.completion_tokens
    subject.answer(items)
    return subject.usage.completion_tokens - before


def by_transformers(subject: TransformersModel, items: Sequence[Item], tokens: int) -> int:
    """Number of tokens that continuous batching wrote for the same prompts."""
    generator: Any = subject._generator
    loaded, prompts = generator.loaded, [subject._prompt(item) for item in items]
    settings = own_generation_config(generator._ends, generator._pad, tokens)
    inputs = [loaded.tokenizer(p.text, add_special_tokens=p.special)["input_ids"] for p in prompts]
    replies = loaded.model.generate_batch(inputs=inputs, generation_config=settings, progress_bar=False)
    return sum(len(reply.generated_tokens) for reply in replies.values())


def compare_small(folder: Path, device: str, questions: int, tokens: int) -> None:
    """Print ratios of a small model: of answers to plain batches, and of likelihoods to a forward pass."""
    subject = TransformersModel.load(folder, device=device, dtype="bfloat16", max_tokens=tokens)
    text = "Which of these is a colour of the sky on a clear day, and why do people say so? "
    items = [Item(f"q{n}", f"{text * (1 + n % 3)}({n})") for n in range(questions)]
    _compare(
        "answers to plain batches of 256", lambda: subject.answer(items), lambda: plain_batches(subject, items, tokens)
    )
    choice = ChoiceLikelihood("raw", " ", "text")
    rated = [replace(item, choices=("red", "blue", "green", "black"), likelihood=choice) for item in items[:256]]
    texts = [f"{item.prompt} {name}" for item in rated for name in item.choices]
    _compare("likelihoods to forward passes", lambda: subject.answer(rated), lambda: forward_passes(subject, texts))
    subject.close()


def _compare(what: str, ours: Callable[[], object], plain: Callable[[], object]) -> None:
    """Print the ratio of two medians, measured in turns after one round to warm up."""
    seconds: dict[str, list[float]] = {"ours": [], "plain": []}
    for turn in range(ROUNDS + 1):
        for name, run in (("ours", ours), ("plain", plain)):
            begun = time.perf_counter()
            run()
            if turn:
                seconds[name].append(time.perf_counter() - begun)
    first, second = (statistics.median(values) for values in seconds.values())
    print(f"{what}: {first:.2f} s and {second:.2f} s, ratio {first / second:.2f}", flush=True)


def plain_batches(subject: TransformersModel, items: Sequence[Item], tokens: int) -> None:
    """Answer by transformers' `generate`, in batches of 256 in the order of the items."""
    generator: Any = subject._generator
    loaded = generator.loaded
    for start in range(0, len(items), PLAIN):
        prompts = [subject._prompt(item).text for item in items[start : start + PLAIN]]
        inputs = loaded.tokenizer(prompts, return_tensors="pt", padding=True, padding_side="left")
        settings = own_generation_config(generator._ends, generator._pad, tokens)
        with torch.inference_mode():
            loaded.model.generate(**inputs.to(loaded.model.device), generation_config=settings)


def forward_passes(subject: TransformersModel, texts: Sequence[str]) -> None:
    """Read whole texts, in batches of 256."""
    generator: Any = subject._generator
    loaded = generator.loaded
    for start in range(0, len(texts), PLAIN):
        inputs = loaded.tokenizer(list(texts[start : start + PLAIN]), return_tensors="pt", padding=True)
        with torch.inference_mode():
            loaded.model(**inputs.to(loaded.model.device)).logits.log_softmax(-1).sum().item()


def time_gate(folder: Path, checkpoint: Path, device: str, tokens: int) -> None:
    """Print the wall time of a gate on a small model beside one call of 128 questions."""
    lines = [{"id": f"q{n}", "prompt": f"Write the number after {n}.", "answer": str(n + 1)} for n in range(1200)]
    (folder / "sums.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    subject = TransformersModel.load(checkpoint, device=device, dtype="bfloat16", max_tokens=tokens)
    items = [Item(line["id"], line["prompt"], answer=line["answer"]) for line in lines[:128]]
    subject.answer(items)
    begun = time.perf_counter()
    subject.answer(items)
    call = time.perf_counter() - begun
    subject.close()
    more = f"max_tokens = {tokens}"
    evaluation = EVALUATION.format(bank="sums.jsonl", budget=1200, more=more, at_least=0.05)
    _, asked = run_gate(folder, checkpoint, device, evaluation)
    interview = json.loads((folder / "record.json").read_text())["interviews"][0]
    calls, whole = interview["costs"]["subject"]["seconds"], interview["seconds"]
    print(
        f"gate: {len(asked)} questions in {calls:.1f} s of calls ({whole:.1f} s with loading), "
        f"a call of 128 takes {call:.1f} s, ratio {calls / call:.2f}"
    )


def run_gate(folder: Path, checkpoint: Path, device: str, evaluation: str) -> tuple[list[str], list[Any]]:
    """Run a gate; returns its sentences, and each question with its score."""
    (folder / "adaptive-eval.toml").write_text(evaluation)
    record, options = folder / "record.json", f"device = '{device}'\n dtype = '{_dtype(checkpoint)}'"
    (folder / "pytest.ini").write_text(f"[pytest]\nadaptive_eval_model_options =\n {options}\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--adaptive-eval",
        "--adaptive-eval-fresh",
    ]
    command += [f"--adaptive-eval-model={checkpoint}", f"--adaptive-eval-record={record}"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ended.returncode not in (0, 1):
        raise SystemExit(ended.stdout + ended.stderr)
    data = json.loads(record.read_text())
    asked = [(each["item"], each["score"]) for each in data["interviews"][0]["administrations"]]
    return [gate["verdict"]["sentence"] for gate in data["gates"]], asked


def _dtype(checkpoint: Path) -> str:
    """Type that both devices compute in: that of a large checkpoint, float32 for a fixture."""
    return "float32" if checkpoint == FIXTURE else "bfloat16"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--width", type=int, default=4096, help="of the hidden states, a multiple of 64")
    parser.add_argument("--questions", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=64, help="of each answer")
    parser.add_argument("--small", type=int, default=1149, help="questions to a small model")
    parser.add_argument("--compile", action="store_true", help="measure the large model compiled too")
    options = parser.parse_args()
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        parser.error("there is no GPU; --device cpu --layers 2 --width 64 tries the command without one")
    with tempfile.TemporaryDirectory() as name:
        folder, large = Path(name), Path(name) / "random-llama"
        make_checkpoint(large, options.layers, options.width, options.device)
        compare_throughput(large, options.device, options.questions, options.tokens)
        if options.compile:
            print("compiled:")
            compare_throughput(large, options.device, options.questions, options.tokens, compiled=True)
        small = Path(name) / "small-llama"
        make_checkpoint(small, min(options.layers, 30), min(options.width, 576), options.device)
        compare_small(small, options.device, options.small, options.tokens)
        time_gate(folder, small, options.device, options.tokens)
        choices = ["red", "blue", "green", "black"]
        lines = [
            {"id": f"q{n}", "prompt": f"pick {n}", "choices": choices, "answer": "ABCD"[n % 4]} for n in range(200)
        ]
        (folder / "choices.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        chance = EVALUATION.format(bank="choices.jsonl", budget=200, more='ask = "likelihood"', at_least=0.1)
        print("large checkpoint:", *run_gate(folder, large, options.device, chance)[0])
        bank = ROOT / "fixtures" / "banks" / "text.bank"
        fixture = EVALUATION.format(bank=bank, budget=300, more="", at_least=0.78)
        here, there = (run_gate(folder, FIXTURE, device, fixture) for device in (options.device, "cpu"))
        print("fixture checkpoint:", *here[0])
        same = sum(one == other for one, other in zip(here[1], there[1], strict=False))
        print(f"on the processor: the verdict is {'equal' if here[0] == there[0] else there[0]}, "
              f"{same} of {len(there[1])} questions with their scores are equal")  # fmt: skip


if __name__ == "__main__":
    main()
