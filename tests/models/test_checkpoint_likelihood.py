"""A checkpoint's log-likelihoods of choices and texts equal those computed directly from its logits."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.items.likelihood import BitsPerByte, ChoiceLikelihood
from pytest_adaptive_eval.models import load_model

CHOICES = ("seven", "five plus two", "a picture", "9")
PROMPTS = (
    "how many circles are there",
    "the question was",
    "the answer is seven and the question was two plus five and",
)
#: A prefix of more tokens than `rating.SHARED_TOKENS`.
EXAMPLES = "the answer is seven and the question was two plus five\n\n" * 2


def items(prompts: Sequence[str], normalization: str = "pmi") -> list[Item]:
    scoring = ChoiceLikelihood(normalization)
    return [
        Item(f"i{n}", prompt, "seven", "choice", choices=CHOICES, likelihood=scoring)
        for n, prompt in enumerate(prompts)
    ]


def log_likelihood(model: Any, before: Sequence[int], text: Sequence[int]) -> float:
    """The summed log-probability of the tokens of a text, one row, without padding and without a cache."""
    import torch

    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([[*before, *text]])).logits[0].double().log_softmax(-1)
    return float(sum(logits[len(before) + n - 1, token] for n, token in enumerate(text)))


def direct(folder: Path, item: Item) -> list[float]:
    """Log-likelihoods of an item's choices after the prompt, and alone after the first token of a text."""
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="float32").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    head = item.prompt.rstrip()
    before = tokenizer(head)["input_ids"]
    delimiter = "" if item.prompt != head else " "
    found = []
    for choice in item.choices:
        whole = tokenizer(item.prompt + delimiter + choice)["input_ids"]
        found.append(log_likelihood(model, before, whole[len(before) :]))
    for choice in item.choices:
        found.append(log_likelihood(model, [2], tokenizer(" " + choice, add_special_tokens=False)["input_ids"]))
    return found


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize("family", ["llama", "gemma2", "mistral"])  # the last two keep a window of tokens
@pytest.mark.parametrize("prefix", ["", EXAMPLES])
def test_choices_have_the_log_likelihoods_of_the_logits(checkpoints: Any, family: str, prefix: str) -> None:
    folder = checkpoints.text(family)
    asked = items([prefix + prompt for prompt in (*PROMPTS, PROMPTS[0] + " \n")])
    completions = load_model(str(folder), batch_size=2).answer(asked)
    for item, completion in zip(asked, completions, strict=True):
        expected = direct(folder, item)
        facts = completion.likelihood
        assert [*facts["log_likelihoods"], *facts["unconditional"]] == pytest.approx(expected, abs=1e-4)
        scores = [given - bare for given, bare in zip(expected[:4], expected[4:], strict=True)]
        assert completion.text == CHOICES[scores.index(max(scores))]
        assert (completion.status, completion.score) == (Status.OK, None)


def test_a_shared_prefix_is_read_once(checkpoints: Any) -> None:
    subject = load_model(str(checkpoints.text("llama")), batch_size=2)
    asked = items([EXAMPLES + prompt for prompt in PROMPTS], "raw")
    read = []
    for one in (*asked, asked[0]):  # the second shows that there is a prefix, which is then kept
        before = subject.usage.prompt_tokens
        subject.answer([one])
        read.append(subject.usage.prompt_tokens - before)
    assert read[3] < read[0] / 2
    assert subject.usage.calls == 4
    together = load_model(str(checkpoints.text("llama")), batch_size=2)
    together.answer(asked)
    assert together.usage.prompt_tokens < sum(read[:3])


@pytest.mark.parametrize("window", [16, 40, 512])
def test_a_prompt_is_read_once_within_a_sliding_window(checkpoints: Any, tmp_path: Path, window: int) -> None:
    folder = shutil.copytree(checkpoints.text("mistral"), tmp_path / "windowed")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "sliding_window": window}))
    asked = items([EXAMPLES + PROMPTS[0], *PROMPTS[1:], EXAMPLES + PROMPTS[1], EXAMPLES + PROMPTS[2]], "raw")
    windowed, unlimited = (load_model(str(at), batch_size=2) for at in (folder, checkpoints.text("llama")))
    for item, completion in zip(asked, windowed.answer(asked), strict=True):
        assert completion.likelihood["log_likelihoods"] == pytest.approx(direct(folder, item)[:4], abs=1e-4)
    unlimited.answer(asked)
    assert (windowed.usage.prompt_tokens == unlimited.usage.prompt_tokens) == (window == 512)


def test_a_chat_model_is_asked_by_its_template(checkpoints: Any) -> None:
    """The choice begins the reply, without a delimiter."""
    import transformers

    folder = checkpoints.text("qwen3")
    (item,) = items(PROMPTS[:1], "raw")
    (completion,) = load_model(str(folder)).answer([item])
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="float32").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    head = f"<|user|>{item.prompt}<|assistant|>"
    before = tokenizer(head, add_special_tokens=False)["input_ids"]
    expected = [
        log_likelihood(model, before, tokenizer(head + choice, add_special_tokens=False)["input_ids"][len(before) :])
        for choice in CHOICES
    ]
    assert completion.likelihood["log_likelihoods"] == pytest.approx(expected, abs=1e-4)


def test_a_text_beyond_the_window_is_read_in_windows(checkpoints: Any) -> None:
    """Each token is predicted once; the last window has as many tokens before them as fit."""
    import transformers

    folder = checkpoints.text("llama")
    text = " ".join(PROMPTS) * 8
    item = Item("t", text, grader="bits_per_byte", likelihood=BitsPerByte())
    (completion,) = load_model(str(folder)).answer([item])
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="float32").eval()
    tokens = transformers.AutoTokenizer.from_pretrained(folder)(text, add_special_tokens=False)["input_ids"]
    size, total = 128, 0.0
    assert len(tokens) > 2 * size + 10
    document = [2, *tokens]
    for end in [*range(size + 1, len(document), size), len(document)]:
        done = end - size if end < len(document) else 1 + (len(tokens) - 1) // size * size
        begin = 0 if done == 1 else end - 1 - size
        total += log_likelihood(model, document[begin:done], document[done:end])
    bits = -total / math.log(2) / len(text.encode())
    assert completion.likelihood["bits_per_byte"] == pytest.approx(bits, abs=1e-6)
    assert completion.score == pytest.approx(1 - bits / 8)


def test_a_faulty_item_is_an_error_of_its_own(checkpoints: Any) -> None:
    subject = load_model(str(checkpoints.text("llama")), max_tokens=5)
    fine, alone, long, plain = (
        *items(PROMPTS[:1]),
        replace(items(PROMPTS[:1])[0], id="alone", choices=("seven",)),
        replace(items([EXAMPLES * 20])[0], id="long"),
        Item("plain", PROMPTS[0], "seven"),
    )
    answers = subject.answer([fine, alone, long, plain])
    assert [answer.status for answer in answers[:3]] == [Status.OK, Status.ERROR, Status.ERROR]
    assert "'alone' has 1 choices" in answers[1].detail
    assert "'long' has a prompt of" in answers[2].detail
    assert answers[3].likelihood == {}
    assert answers[3].status in (Status.OK, Status.TRUNCATED)
