"""Score an item by the log-likelihoods that a model gives to texts, instead of grading its answer."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pytest_adaptive_eval.errors import BankError

Texts = Sequence[str]
Logs = Sequence[float]


@dataclass(frozen=True, slots=True)
class Continuation:
    """A text whose log-likelihood is needed.

    Args:
        delimiter: Comes before the text, unless it begins the reply in a chat.
        after_prompt: Whether the text follows the item's prompt; else it begins a document.
    """

    text: str
    delimiter: str = ""
    after_prompt: bool = True


@dataclass(frozen=True, slots=True)
class LikelihoodResult:
    """Result of an item from log-likelihoods.

    Args:
        text: The choice that the model prefers; empty without choices.
        score: In [0, 1]; None where the item's grader scores `text`.
        facts: Log-likelihoods and what was computed from them, for the record; JSON values.
    """

    text: str
    score: float | None
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Normalization:
    """A way to compare the log-likelihoods of choices.

    Args:
        scores: Returns the scores from log-likelihoods, unconditional log-likelihoods, and texts.
        unconditional: Whether the log-likelihoods of the choices without the prompt are needed.
    """

    name: str
    help: str
    scores: Callable[[Logs, Logs, Texts], list[float]]
    unconditional: bool = False


#: Ways to compare choices by name: acc, acc_norm, acc_bytes and acc_mutual_info of lm-evaluation-harness 0.4.13.
NORMALIZATIONS: Mapping[str, Normalization] = MappingProxyType(
    {
        normalization.name: normalization
        for normalization in (
            Normalization("raw", "log-likelihood", lambda logs, _, __: list(logs)),
            Normalization(
                "characters",
                "log-likelihood by the number of characters",
                lambda logs, _, texts: [log / len(text) for log, text in zip(logs, texts, strict=True)],
            ),
            Normalization(
                "bytes",
                "log-likelihood by the length in UTF-8 bytes",
                lambda logs, _, texts: [log / len(text.encode()) for log, text in zip(logs, texts, strict=True)],
            ),
            Normalization(
                "pmi",
                "log-likelihood less that without the prompt",
                lambda logs, bare, _: [log - other for log, other in zip(logs, bare, strict=True)],
                unconditional=True,
            ),
        )
    }
)


def letters(choices: Texts) -> list[str]:
    """Return the letters A, B, C, ... of choices."""
    return [chr(ord("A") + index) for index in range(len(choices))]


#: Texts that stand for choices, by name.
CANDIDATES: Mapping[str, Callable[[Texts], list[str]]] = MappingProxyType({"text": list, "letter": letters})


class LikelihoodScoring(abc.ABC):
    """A way to score an item by log-likelihoods."""

    @abc.abstractmethod
    def check(self, prompt: str, choices: Texts) -> str:
        """Return why an item cannot be scored in this way; empty if it can."""

    @abc.abstractmethod
    def continuations(self, prompt: str, choices: Texts) -> list[Continuation]:
        """Return the texts whose log-likelihoods are needed."""

    @abc.abstractmethod
    def result(self, prompt: str, choices: Texts, logs: Logs) -> LikelihoodResult:
        """Return the result of an item from the log-likelihoods of its continuations, in nats."""

    @abc.abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON data."""


@dataclass(frozen=True, slots=True)
class ChoiceLikelihood(LikelihoodScoring):
    """The choice of highest normalised log-likelihood after the prompt is the answer; the first of equal ones.

    Args:
        normalization: A key of `NORMALIZATIONS`.
        delimiter: Separates prompt and choice, unless the prompt ends with white space.
        candidates: A key of `CANDIDATES`.
    """

    normalization: str = "raw"
    delimiter: str = " "
    candidates: str = "text"

    def check(self, prompt: str, choices: Texts) -> str:  # noqa: ARG002 - a prompt may be a picture
        """Return why an item cannot be scored in this way; empty if it can."""
        if len(choices) < 2:
            return f'{len(choices) or "no"} choices, expected two or more to compare: ask it without ask = "likelihood"'
        if all(choices):
            return ""
        return "an empty choice, which has no likelihood: remove it"

    def continuations(self, prompt: str, choices: Texts) -> list[Continuation]:
        """Return the choices after the prompt and, if the normalization needs them, without it."""
        texts = CANDIDATES[self.candidates](choices)
        if prompt[-1:].isspace():
            delimiter = ""
        else:
            delimiter = self.delimiter
        continuations = [Continuation(text, delimiter) for text in texts]
        if NORMALIZATIONS[self.normalization].unconditional:
            for text in texts:
                continuations.append(Continuation(text, self.delimiter, after_prompt=False))
        return continuations

    def result(self, prompt: str, choices: Texts, logs: Logs) -> LikelihoodResult:  # noqa: ARG002
        """Return the preferred choice; the item's grader scores it."""
        texts = CANDIDATES[self.candidates](choices)
        after_prompt = list(logs[: len(choices)])
        bare = list(logs[len(choices) :])
        scores = NORMALIZATIONS[self.normalization].scores(after_prompt, bare, texts)
        best = max(range(len(scores)), key=scores.__getitem__)
        facts = {"normalization": self.normalization, "log_likelihoods": after_prompt, "scores": scores}
        if bare:
            facts["unconditional"] = bare
        return LikelihoodResult(choices[best], None, facts)

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON data."""
        return {"normalization": self.normalization, "delimiter": self.delimiter, "candidates": self.candidates}


@dataclass(frozen=True, slots=True)
class BitsPerByte(LikelihoodScoring):
    """The prompt is a text, scored by its bits per byte b as ``max(0, 1 - b / 8)``.

    A model that gives each byte the same probability has 8 bits per byte, hence the score 0. The mean score of texts is
    linear in their mean bits per byte, as long as none exceeds 8.
    """

    def check(self, prompt: str, choices: Texts) -> str:  # noqa: ARG002
        """Return why an item cannot be scored in this way; empty if it can."""
        if prompt:
            return ""
        return "no prompt, whose bits per byte are the score: add one"

    def continuations(self, prompt: str, choices: Texts) -> list[Continuation]:  # noqa: ARG002
        """Return the text."""
        return [Continuation(prompt, after_prompt=False)]

    def result(self, prompt: str, choices: Texts, logs: Logs) -> LikelihoodResult:  # noqa: ARG002
        """Return the score."""
        size = len(prompt.encode())
        bits = -logs[0] / math.log(2.0) / size
        facts = {"normalization": "bits_per_byte", "log_likelihoods": [logs[0]], "bytes": size, "bits_per_byte": bits}
        return LikelihoodResult("", min(1.0, max(0.0, 1.0 - bits / 8.0)), facts)

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON data."""
        return {"normalization": "bits_per_byte"}


#: Scorings of texts without an answer, by the grader's name in a bank.
TEXT_SCORINGS: Mapping[str, LikelihoodScoring] = MappingProxyType({"bits_per_byte": BitsPerByte()})


def no_text_grade(item: Any, text: str) -> float:  # noqa: ARG001 - has the form of a grader
    """Refuse to grade a text: the item's score is that of its own text. Always raises BankError."""
    raise BankError(
        f"item {item.id!r} is scored by the likelihood of its text, and no answer is graded: write "
        "item.score(model.score(item))"
    )
