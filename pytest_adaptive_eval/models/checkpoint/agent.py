"""Local Hugging Face checkpoints as agents, which reply to chats and rate continuations by likelihood."""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.checks import check_decoding
from pytest_adaptive_eval.errors import CheckpointError, ConfigError
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.models.base import Message, Preference, Reply, SubjectIdentity, Usage, added
from pytest_adaptive_eval.models.caps import Cap, cap_of
from pytest_adaptive_eval.models.checkpoint.generation import NON_FINITE, THINKING, Generator, Prompt, answered, fault
from pytest_adaptive_eval.models.checkpoint.placement import Placement
from pytest_adaptive_eval.models.checkpoint.rating import (
    PrefixCache,
    common_prefix,
    last_logits,
    log_likelihood,
    with_tokens,
)

#: For error messages.
NAME = "a request to the agent"


class TransformersAgent:
    """A chat model that runs in this process.

    Created by `load`. Replies are greedy at temperature 0. Ratings read each candidate with its own copy of the cache
    of the shared prefix, so that candidates do not affect each other. A prefix that two calls share is read once.
    """

    def __init__(self, generator: Generator, identity: SubjectIdentity, cap: Cap) -> None:
        self._identity, self._cap = identity, cap
        self._generator: Generator | None = generator
        self._parameters = int(generator.loaded.model.num_parameters())
        self._prefix = PrefixCache()

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        *,
        device: str = "auto",
        dtype: str = "auto",
        device_map: str | Mapping[str, Any] | None = None,
        attention: str | None = None,
        compile: bool = False,
        max_tokens: int | None = None,
        reasoning: bool | None = None,
        temperature: float = 0.0,
        top_p: float = 1.0,
        seed: int = 0,
        cache: Path | None = None,
    ) -> TransformersAgent:
        """Examine and load a checkpoint.

        Args:
            folder, device, dtype, device_map, attention, compile, max_tokens, reasoning, temperature, seed, cache: As
                for `pytest_adaptive_eval.models.checkpoint.subject.TransformersSubject.load`.
            top_p: Share of the probability that sampling is limited to; without effect at temperature 0.

        Raises:
            CheckpointError: The folder is missing, unsafe, incomplete, does not load in full, or has no chat template.
            ConfigError: The device or the type is not known here, or a setting is out of its range.
        """
        check_decoding(temperature, seed, top_p)
        cap_of(max_tokens, reasons=False)
        generator = Generator.load(
            folder,
            Placement(device, dtype, device_map, attention, compile),
            temperature=float(temperature),
            seed=seed,
            top_p=float(top_p),
            cache=cache,
        )
        cap = cap_of(max_tokens, reasons=generator.reasons if reasoning is None else reasoning)
        sampling = {"temperature": float(temperature), "seed": seed, "top_p": float(top_p)}
        if not generator.prompter.template:
            raise CheckpointError(
                f"{generator.info.folder} has no chat template, which an agent needs; save a chat model's tokenizer"
            )
        decoding = {"max_tokens": cap.tokens, **(sampling if temperature else {"temperature": 0.0})}
        return cls(generator, generator.identity(decoding, {}), cap)

    @property
    def identity(self) -> SubjectIdentity:
        """Identity of the model."""
        return self._identity

    @property
    def rates(self) -> bool:
        """True: likelihoods are always available."""
        return True

    def ask(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        schema: Mapping[str, Any] | None = None,  # noqa: ARG002
        draw: int = 0,
    ) -> Reply:
        """Return the reply to a chat.

        Args:
            max_tokens: Cap on the reply, reasoning included; the model's by default.
            schema: Ignored: nothing constrains the tokens.
            draw: Number of the draw, for a seed of its own; without effect at temperature 0.
        """
        generator, begun = self._open(), clock.elapsed()
        try:
            prompt = self._prompt(generator, messages, self._cap.tokens if max_tokens is None else max_tokens)
            (generated,) = generator.generate([replace(prompt, sample=draw)])
        except BaseException as error:
            failed = fault(error)
            return Reply("", failed.status, failed.detail, usage=Usage(1, seconds=clock.elapsed() - begun))
        done, reasoning = answered(prompt, generated)
        usage = Usage(
            1,
            generated.read,
            generated.written,
            len(self._tokens(generator, reasoning, False)) if reasoning else 0,
            clock.elapsed() - begun,
            2.0 * self._parameters * (generated.read + generated.written),
        )
        return Reply(done.text, done.status, done.detail, reasoning, usage)

    def prefer(self, messages: Sequence[Message], candidates: Sequence[str], label: str) -> Preference:
        """Return the log-likelihood of `label` as the reply to the chat, with each candidate added on its own.

        A candidate is added to the last message if that is the user's, and otherwise is a message of its own.
        """
        generator, begun = self._open(), clock.elapsed()
        unknown = (float("nan"),) * len(candidates)
        if not candidates:
            return Preference(())
        try:
            prompts = [self._prompt(generator, added(messages, candidate), 1) for candidate in candidates]
            if generator.loaded.processor is not None:
                scores, read = self._score_whole(generator, prompts, label)
            else:
                scores, read = self._score_with_prefix(generator, prompts, label)
        except BaseException as error:
            self._prefix.forget()
            failed = fault(error)
            return Preference(unknown, failed.status, failed.detail, Usage(1, seconds=clock.elapsed() - begun))
        usage = Usage(1, read, seconds=clock.elapsed() - begun, flops=2.0 * self._parameters * read)
        if not all(torch.isfinite(torch.tensor(scores))):
            self._prefix.forget()
            return Preference(unknown, Status.ERROR, f"{NON_FINITE} behind a candidate", usage)
        return Preference(scores, usage=usage)

    def close(self) -> None:
        """Release memory and devices."""
        self._generator = None
        self._prefix.forget()
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _open(self) -> Generator:
        if self._generator is None:
            raise ConfigError(f"agent {self._identity.name!r} was closed; load it again")
        return self._generator

    def _prompt(self, generator: Generator, messages: Sequence[Message], cap: int) -> Prompt:
        prompter = generator.prompter
        images = tuple((image, message.root) for message in messages for image in message.images)
        if images and prompter.image_token is None:
            raise ConfigError(f"agent {self._identity.name!r} reads text only; leave the images out")
        chat: list[dict[str, Any]] = []
        for message in messages:
            parts: Any = message.text
            if prompter.image_token is not None:
                parts = [{"type": "image"} for _ in message.images] + [{"type": "text", "text": message.text}]
            chat.append({"role": message.role, "content": parts})
        text = prompter.render(chat)
        return Prompt(NAME, text, prompter.adds_special_tokens(text), cap, images)

    @staticmethod
    def _tokens(generator: Generator, text: str, special: bool) -> list[int]:
        return [int(token) for token in generator.loaded.tokenizer(text, add_special_tokens=special)["input_ids"]]

    def _labelled(self, generator: Generator, prompt: Prompt, label: str) -> tuple[list[int], int]:
        """Return the tokens of a prompt with the label as its reply, and the number of label tokens."""
        text = prompt.text
        if text.rstrip().endswith(THINKING):
            text += "\n</think>\n\n"  # the label follows an empty reasoning
        head = self._tokens(generator, text, prompt.special)
        whole = self._tokens(generator, text + label, prompt.special)
        if whole[: len(head)] != head or len(whole) == len(head):
            whole = head + self._tokens(generator, label, False)
        if len(whole) == len(head):
            raise ConfigError(f"label {label!r} has no token; use a word")
        generator.remaining_tokens(NAME, len(whole) - 1)
        return whole, len(whole) - len(head)

    def _score_with_prefix(
        self, generator: Generator, prompts: Sequence[Prompt], label: str
    ) -> tuple[tuple[float, ...], int]:
        """Return scores and the number of tokens read, reading the shared prefix of all prompts once."""
        rows = [self._labelled(generator, prompt, label) for prompt in prompts]
        # the last token of a prompt predicts the label, so it is read after the prefix
        prefix = min(len(ids) - count - 1 for ids, count in rows)
        for ids, _ in rows:
            prefix = common_prefix(rows[0][0][:prefix], ids)
        read = self._prefix.hold(generator, rows[0][0][:prefix])
        scores = []
        for ids, count in rows:
            tail = ids[prefix:-1]
            scores.append(self._score(generator, {"input_ids": tail}, ids[-count:], self._prefix.copy()))
            read += len(tail)
        return tuple(scores), read

    def _score_whole(
        self, generator: Generator, prompts: Sequence[Prompt], label: str
    ) -> tuple[tuple[float, ...], int]:
        """Return scores and the number of tokens read, reading each prompt as a whole, as pictures require."""
        scores, read = [], 0
        for prompt in prompts:
            whole, count = self._labelled(generator, prompt, label)
            inputs = with_tokens(generator.encode([prompt]), whole[-count:-1])
            generator.remaining_tokens(NAME, int(inputs["input_ids"].shape[1]))
            scores.append(self._score(generator, inputs, whole[-count:], None))
            read += int(inputs["input_ids"].shape[1])
        return tuple(scores), read

    @staticmethod
    def _score(generator: Generator, inputs: Mapping[str, Any], label: Sequence[int], cache: Any) -> float:
        """Return the log-likelihood of the label as the last tokens of the inputs."""
        model = generator.loaded.model
        arguments = dict(inputs)
        if isinstance(arguments["input_ids"], list):
            arguments["input_ids"] = torch.tensor([arguments["input_ids"]], device=model.device)
        if cache is not None:
            arguments[generator.cache_name] = cache
        with torch.inference_mode():
            logits = model(**arguments, **last_logits(generator, len(label))).logits[0, -len(label) :]
            return log_likelihood(logits, label)
