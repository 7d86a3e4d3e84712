"""Compare log-likelihoods of choices with those of lm-evaluation-harness: figures, choices and time.

``pip install lm_eval`` into an environment that has this package with the extra hf, then ``python
benchmarks/likelihood.py [--items N] [--repeats N]``. Each checkpoint gets items of the fixtures' text bank with four
choices, with a prefix of five examples and without one. Choices are compared by all normalizations, and texts by their
bits per byte. Both sides run in this process, in turns, with the same batch size and number of threads.
"""

from __future__ import annotations

import argparse
import logging
import math
import os
import random
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("TQDM_DISABLE", "1")

import torch

from pytest_adaptive_eval.banks import read_bank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.likelihood import NORMALIZATIONS, BitsPerByte, ChoiceLikelihood
from pytest_adaptive_eval.models import load_model

FIXTURES = Path(__file__).parents[1] / "fixtures"
CHECKPOINTS = ("text-early", "text-mid", "text-late")
#: Names of the normalizations in lm-evaluation-harness.
METRICS = {"raw": "acc", "characters": "acc_norm", "bytes": "acc_bytes", "pmi": "acc_mutual_info"}
BATCH = 16
EXAMPLES = 5


def choice_items(count: int, *, prefixed: bool) -> list[Item]:
    """Return items of the text bank with four choices: the answer, and answers to other items of its category."""
    rng = random.Random(0)
    bank = [item for item in read_bank(FIXTURES / "banks" / "text.bank").items if item.answer and not item.images]
    rng.shuffle(bank)
    answers: dict[str, list[str]] = {}
    for item in bank:
        pool = answers.setdefault(item.category[0], [])
        if item.answer not in pool:
            pool.append(item.answer)
    usable = [item for item in bank if len(answers[item.category[0]]) > 3]
    prefix = "".join(f"{item.prompt} {item.answer}\n\n" for item in usable[-EXAMPLES:]) if prefixed else ""
    items = []
    for item in usable[:count]:
        choices = rng.sample([answer for answer in answers[item.category[0]] if answer != item.answer], 3)
        choices.insert(rng.randrange(4), item.answer)
        items.append(Item(item.id, prefix + item.prompt, item.answer, "choice", choices=tuple(choices)))
    return items


def by_likelihood(items: Sequence[Item], normalization: str) -> list[Item]:
    """Return the items as they are asked by a normalization."""
    return [replace(item, likelihood=ChoiceLikelihood(normalization)) for item in items]


def harness_task(items: Sequence[Item]) -> Any:
    """Return a multiple-choice task of lm-evaluation-harness with the same items."""
    import datasets
    from lm_eval.api.task import ConfigurableTask

    documents = [
        {"prompt": item.prompt, "choices": list(item.choices), "gold": item.choices.index(item.answer)}
        for item in items
    ]
    config = {
        "task": "compared",
        "custom_dataset": lambda **_: {"test": datasets.Dataset.from_list(documents)},
        "test_split": "test",
        "output_type": "multiple_choice",
        "doc_to_text": "{{prompt}}",
        "doc_to_target": "gold",
        "doc_to_choice": "{{choices}}",
        "metric_list": [{"metric": metric} for metric in METRICS.values()],
    }
    return ConfigurableTask(config=config)


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    """Return the value of a function and the processor time that it took, in seconds."""
    begun = time.process_time()
    value = function()
    return value, time.process_time() - begun


def compare(name: str, items: Sequence[Item], harness: Any, subject: Any, repeats: int) -> str:
    """Return a row of the table: largest difference, differing choices by normalization, and times."""
    task = harness_task(items)
    documents = list(task.test_docs())
    requests = [task.construct_requests(doc, task.doc_to_text(doc), metadata=("compared", 0, 1)) for doc in documents]
    flat = [request for group in requests for request in group]
    asked = by_likelihood(items, "pmi")  # both compute the choices with and without their prompt
    ours: list[float] = []
    theirs: list[float] = []
    for turn in range(repeats + 1):
        completions, own_seconds = timed(lambda: subject.answer(asked))
        replies, seconds = timed(lambda: harness.loglikelihood(flat, disable_tqdm=True))
        subject._scorer._bare.clear()
        if turn:  # the first turn warms up
            ours.append(own_seconds)
            theirs.append(seconds)
    iterator = iter(replies)
    difference, same = 0.0, dict.fromkeys(NORMALIZATIONS, 0)
    for item, document, group, completion in zip(items, documents, requests, completions, strict=True):
        results = [next(iterator) for _ in group]
        logs = [log for log, _ in results]
        own = [*completion.likelihood["log_likelihoods"], *completion.likelihood["unconditional"]]
        difference = max(difference, *(abs(a - b) for a, b in zip(own, logs, strict=True)))
        metrics = task.process_results(document, results)
        for normalization, metric in METRICS.items():
            chosen = replace(item, likelihood=ChoiceLikelihood(normalization)).likelihood_result(own).text
            reference = replace(item, likelihood=ChoiceLikelihood(normalization)).likelihood_result(logs).text
            same[normalization] += chosen == reference and float(chosen == item.answer) == float(metrics[metric])
    counts = ", ".join(f"{normalization} {count}" for normalization, count in same.items())
    ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    return (
        f"| {name} | {len(items)} | {difference:.1e} | {counts} | {statistics.median(ours):.2f} | "
        f"{statistics.median(theirs):.2f} | {ratio:.2f} |"
    )


def compare_texts(name: str, items: Sequence[Item], harness: Any, subject: Any) -> str:
    """Return the largest difference in bits per byte of texts, some of them longer than the model's window."""
    from lm_eval.api.instance import Instance

    texts = [item.prompt for item in items[:8]] + ["\n".join(item.prompt for item in items[:60])]
    asked = [Item(f"text-{n}", text, grader="bits_per_byte", likelihood=BitsPerByte()) for n, text in enumerate(texts)]
    requests = [Instance("loglikelihood_rolling", {}, (text,), n) for n, text in enumerate(texts)]
    logs = harness.loglikelihood_rolling(requests, disable_tqdm=True)
    expected = [-log / math.log(2) / len(text.encode()) for log, text in zip(logs, texts, strict=True)]
    own = [completion.likelihood["bits_per_byte"] for completion in subject.answer(asked)]
    difference = max(abs(a - b) for a, b in zip(own, expected, strict=True))
    return (
        f"{name}: bits per byte of {len(texts)} texts differ by at most {difference:.1e} (the longest: {own[-1]:.4f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    from lm_eval.models.huggingface import HFLM

    print("| checkpoint | items | largest difference, nats | same choices | own s | lm_eval s | own / lm_eval |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    lines = []
    for name in CHECKPOINTS:
        folder = str(FIXTURES / "checkpoints" / name)
        harness: Any = HFLM(pretrained=folder, dtype="float32", device="cpu", batch_size=BATCH)
        subject = load_model(folder, batch_size=BATCH, device="cpu")
        for prefixed in (False, True):
            items = choice_items(options.items, prefixed=prefixed)
            label = f"{name}, {EXAMPLES} examples" if prefixed else name
            print(compare(label, items, harness, subject, options.repeats), flush=True)
        lines.append(compare_texts(name, choice_items(options.items, prefixed=False), harness, subject))
        subject.close()
    print("\n" + "\n".join(lines))


if __name__ == "__main__":
    main()
