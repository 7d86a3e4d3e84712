"""Score items by the log-likelihoods that a loaded checkpoint gives to texts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.items.likelihood import Continuation
from pytest_adaptive_eval.models.base import Completion, Usage
from pytest_adaptive_eval.models.checkpoint.generation import NON_FINITE, Generator, Prompt, fault
from pytest_adaptive_eval.models.checkpoint.rating import Rater, TokenGroup, log_likelihood, with_tokens


@dataclass(frozen=True, slots=True)
class _Question:
    """An item with the needed texts, and the tokens of texts that follow its prompt."""

    index: int
    item: Item
    prompt: Prompt
    continuations: list[Continuation]
    group: TokenGroup | None


class LikelihoodScorer:
    """Completions of items from the log-likelihoods of their choices or of their text.

    The text of prompt and choice is turned into tokens as a whole, and the choice has the tokens after the prompt's.
    White space at the end of a prompt belongs to the choice. A text without a prompt follows the token that begins a
    document. This is how lm-evaluation-harness 0.4.13 does it.

    Args:
        batch_size: Rows of one call of the model.
    """

    def __init__(self, generator: Generator, batch_size: int) -> None:
        self._generator = generator
        self._tokenizer = generator.loaded.tokenizer
        self._chat = bool(generator.prompter.template)
        self._rater = Rater(generator, batch_size)
        self._parameters = int(generator.loaded.model.num_parameters())
        #: Log-likelihoods of texts without a prompt.
        self._bare: dict[str, float] = {}

    def answer(self, questions: Sequence[tuple[int, Item, Prompt]]) -> Iterator[tuple[int, Completion, Usage]]:
        """Yield index, completion and cost of each item, given its index, itself and its rendered prompt."""
        prepared = []
        for index, item, prompt in questions:
            try:
                prepared.append(self._prepare(index, item, prompt))
            except BaseException as error:
                yield index, fault(error), Usage(1)
        yield from self._attempt(prepared)

    def _attempt(self, questions: Sequence[_Question]) -> Iterator[tuple[int, Completion, Usage]]:
        """Yield the completions of a batch; if it fails, of its items one by one, so a fault affects one item."""
        if not questions:
            return
        before = self._rater.read
        try:
            completions = self._complete(questions)
        except BaseException as error:
            failed = fault(error)
            if len(questions) == 1:
                yield questions[0].index, failed, Usage(1)
                return
            for question in questions:
                yield from self._attempt([question])
            return
        read, remainder = divmod(self._rater.read - before, len(questions))
        for number, (question, completion) in enumerate(zip(questions, completions, strict=True)):
            tokens = read + (remainder if number == 0 else 0)
            yield question.index, completion, Usage(1, tokens, flops=2.0 * self._parameters * tokens)

    def _prepare(self, index: int, item: Item, prompt: Prompt) -> _Question:
        """Return the tokens of an item's texts; raise BankError for one that cannot be scored, or is too long."""
        continuations = item.continuations
        after = []
        for continuation in continuations:
            if continuation.after_prompt:
                after.append(self._text(continuation))
        group = None
        if after and not prompt.images and self._generator.loaded.processor is None:
            group = self._group(prompt, after)
        return _Question(index, item, prompt, continuations, group)

    def _text(self, continuation: Continuation) -> str:
        """Return a text with its delimiter; a reply in a chat begins without one."""
        if self._chat:
            return continuation.text
        return continuation.delimiter + continuation.text

    def _group(self, prompt: Prompt, texts: Sequence[str]) -> TokenGroup:
        head = prompt.text.rstrip()
        moved = prompt.text[len(head) :]
        encoded = self._encode([head, *(head + moved + text for text in texts)], special=prompt.special)
        head_tokens = encoded[0]
        wholes = encoded[1:]
        if not head_tokens:
            head_tokens = [self._begin]
            wholes = [[self._begin, *whole] for whole in wholes]
        group = TokenGroup(tuple(head_tokens), tuple(tuple(whole[len(head_tokens) :]) for whole in wholes))
        if not all(group.texts):
            raise BankError(
                f"{prompt.name} has a choice without tokens of its own; write it so that it differs from the prompt"
            )
        self._generator.remaining_tokens(prompt.name, len(group.head) + max(map(len, group.texts)) - 1)
        return group

    def _encode(self, texts: Sequence[str], *, special: bool) -> list[list[int]]:
        encoded: list[list[int]] = self._tokenizer(list(texts), add_special_tokens=special)["input_ids"]
        return encoded

    @property
    def _begin(self) -> int:
        """The token that begins a document: that of the beginning, else that of the end, of a text."""
        tokenizer = self._tokenizer
        begin = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id
        return int(tokenizer.pad_token_id if begin is None else begin)

    def _complete(self, questions: Sequence[_Question]) -> list[Completion]:
        self._rate_bare(questions)
        groups = [question.group for question in questions if question.group is not None]
        rated = iter(self._rater.rate(groups) if groups else [])
        completions = []
        for question in questions:
            if question.group is not None:
                after = next(rated)
            else:
                after = self._read_pictures(question)
            bare = []
            for text in question.continuations:
                if not text.after_prompt:
                    bare.append(self._bare[self._text(text)])
            logs = [*after, *bare]
            if all(map(math.isfinite, logs)):
                result = question.item.likelihood_result(logs)
                completions.append(Completion(result.text, score=result.score, likelihood=result.facts))
            else:
                completions.append(Completion("", Status.ERROR, detail=f"{NON_FINITE} at a choice or a text"))
        return completions

    def _rate_bare(self, questions: Sequence[_Question]) -> None:
        """Rate all texts without a prompt that were not rated before; a long one in windows."""
        texts = [self._text(text) for question in questions for text in question.continuations if not text.after_prompt]
        if not (new := [text for text in dict.fromkeys(texts) if text not in self._bare]):
            return
        encoded = self._encode(new, special=False)
        groups = []
        owners = []
        for text, tokens in zip(new, encoded, strict=True):
            for group in self._windows(tokens):
                groups.append(group)
                owners.append(text)
        sums = dict.fromkeys(new, 0.0)
        for text, values in zip(owners, self._rater.rate(groups), strict=True):
            sums[text] += values[0]
        self._bare |= sums

    def _windows(self, tokens: Sequence[int]) -> Iterator[TokenGroup]:
        """Yield windows of a text: each token is predicted once, the last ones with as many before them as fit."""
        if not tokens:
            raise BankError("a text without tokens has no likelihood; write one")
        size = self._generator.window or len(tokens)
        document = [self._begin, *tokens]
        done = 1
        while done < len(document):
            end = min(len(document), done + size)
            if done > 1:
                start = max(0, end - 1 - size)
            else:
                start = 0
            yield TokenGroup(tuple(document[start:done]), (tuple(document[done:end]),))
            done = end

    def _read_pictures(self, question: _Question) -> list[float]:
        """Return log-likelihoods after a prompt that a processor turns into inputs, each read as a whole."""
        generator = self._generator
        prompt = question.prompt
        logs = []
        for continuation in question.continuations:
            if not continuation.after_prompt:
                continue
            (tokens,) = self._encode([self._text(continuation)], special=False)
            inputs = with_tokens(generator.encode([prompt]), tokens[:-1])
            length = int(inputs["input_ids"].shape[1])
            generator.remaining_tokens(prompt.name, length - 1)
            self._rater.read += length
            logs.append(log_likelihood(self._rater.last(inputs, len(tokens)), tokens))
        return logs
