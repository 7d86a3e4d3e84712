"""Items a second of each kind of embeddings, on the fixture banks, and whether CUDA agrees with the CPU.

Each encoder is loaded, embeds a first few items, and is then timed over the whole bank, several times; the median is
shown, and the fastest in brackets. Where there is a GPU the largest difference of any number from the CPU's is shown as
well; where there is none that column says so.

Run as ``python benchmarks/embedding_speed.py [--repeats 5] [--threads 1]``.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.banks.responses import read_responses
from pytest_adaptive_eval.interviewer.embeddings import Embedder, FactorsEmbedder, load_embedder
from pytest_adaptive_eval.items.bank import ItemBank

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
CHECKPOINTS = FIXTURES / "checkpoints"

#: Kind of bank, embedder, and what open_clip reads.
ROWS = (
    ("text", "factors", ""),
    ("text", "parameters", ""),
    ("text", str(CHECKPOINTS / "clip"), "text"),
    ("text", str(CHECKPOINTS / "text-late"), ""),
    ("vision", str(CHECKPOINTS / "clip"), "text"),
    ("vision", str(CHECKPOINTS / "clip"), "image"),
    ("vision", str(CHECKPOINTS / "clip"), "mean"),
    ("vision", str(CHECKPOINTS / "vision-late"), ""),
)


def made(kind: str, spec: str, part: str, device: str) -> Embedder:
    """An embedder of a row."""
    if spec == "parameters":
        return FactorsEmbedder()
    responses = read_responses(FIXTURES / "responses" / f"{kind}.csv.gz") if spec == "factors" else None
    return load_embedder(spec, part=part or "mean", device=device, responses=responses)


def seconds(work: Callable[[], object]) -> float:
    """Elapsed time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    start = os.times()
    import torch

    before = os.times()
    import open_clip

    after = os.times()
    torch.set_num_threads(arguments.threads)
    print(f"open_clip {open_clip.__version__}: {after.user - before.user:.1f} s of CPU to import behind torch, which "
          f"takes {before.user - start.user:.1f} s")  # fmt: skip
    gpu = torch.cuda.is_available()
    print("| bank | items | embeddings | numbers each | items a second (best) | CUDA, items a second | CUDA - CPU |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for kind, spec, part in ROWS:
        bank = read_bank(FIXTURES / "banks" / f"{kind}.bank")
        embedder = made(kind, spec, part, "cpu")
        few = ItemBank.uncalibrated("few", list(bank.items)[:8]) if Path(spec).is_dir() else bank
        embedder.embed(few)
        times = [seconds(partial(embedder.embed, bank)) for _ in range(arguments.repeats)]
        found = embedder.embed(bank)
        fast, same = "no GPU", "no GPU"
        if not Path(spec).is_dir():
            fast = same = "-"
        elif gpu:
            other = made(kind, spec, part, "cuda")
            other.embed(few)
            taken = [seconds(partial(other.embed, bank)) for _ in range(arguments.repeats)]
            fast = f"{len(bank) / statistics.median(taken):.0f}"
            same = f"{np.abs(other.embed(bank) - found).max():.1e}"
        rate = f"{len(bank) / statistics.median(times):.0f} ({len(bank) / min(times):.0f})"
        print(f"| {kind} | {len(bank)} | {embedder.name} | {found.shape[1]} | {rate} | {fast} | {same} |", flush=True)


if __name__ == "__main__":
    main()
