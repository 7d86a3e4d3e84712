"""A local Hugging Face checkpoint as an agent: it replies to chats, and rates continuations by likelihood."""

from __future__ import annotations

import copy
import gc
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from pytest_adaptive_eval.errors import CheckpointError, ConfigError
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.subjects.agent import Message, Preference, Reply, added
from pytest_adaptive_eval.subjects.base import SubjectIdentity, Usage
from pytest_adaptive_eval.subjects.checkpoint.generation import (
    NON_FINITE,
    THINKING,
    Generator,
    Prompt,
    answered,
    fault,
)

__all__ = ["TransformersAgent"]

#: For error messages.
NAME = "a request to the agent"


class TransformersAgent:
    """A chat model that runs in this process.

    Made by `load`.  Replies are greedy.  Ratings feed each candidate on its own
    copy of the cache behind what all share, so that none sees another and their
    order cannot matter; what two calls share at their beginnings is read once.
    """

    def __init__(self, generator: Generator, identity: SubjectIdentity) -> None:
        self._identity = identity
        self._generator: Generator | None = generator
        self._parameters = int(generator.loaded.model.num_parameters())
        self._read: list[int] = []  # the tokens in the cache
        self._cache: Any = None

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        *,
        device: str = "auto",
        dtype: str = "auto",
        cache: Path | None = None,
    ) -> TransformersAgent:
        """Examine and load a checkpoint.

        Parameters
        ----------
        folder, device, dtype, cache
            As for `pytest_adaptive_eval.subjects.checkpoint.subject.TransformersSubject.load`.

        Raises
        ------
        CheckpointError
            The folder is missing, unsafe, incomplete, does not load in full, or has no chat template.
        ConfigError
            The device or the type is not known here.
        """
        generator = Generator.load(folder, device=device, dtype=dtype, max_tokens=512, cache=cache)
        if not generator.prompter.template:
            raise CheckpointError(
                f"{generator.info.folder} has no chat template, which an agent needs; save a chat model's tokenizer"
            )
        return cls(generator, generator.identity({"temperature": 0.0}, {}))

    @property
    def identity(self) -> SubjectIdentity:
        """Who it is."""
        return self._identity

    @property
    def rates(self) -> bool:
        """Likelihoods can always be had here."""
        return True

    def ask(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int = 512,
        schema: Mapping[str, Any] | None = None,  # noqa: ARG002
    ) -> Reply:
        """Reply to a chat.

        Parameters
        ----------
        messages : sequence of Message
        max_tokens : int
            Cap on the reply, reasoning included.
        schema : mapping, optional
            Without effect: nothing constrains the tokens.
        """
        generator, begun = self._open(), time.perf_counter()
        try:
            prompt = self._prompt(generator, messages, max_tokens)
            (made,) = generator.generate([prompt])
        except BaseException as error:
            failed = fault(error)
            return Reply("", failed.status, failed.detail, usage=Usage(1, seconds=time.perf_counter() - begun))
        done, reasoning = answered(prompt, made)
        usage = Usage(
            1,
            made.read,
            made.written,
            len(self._tokens(generator, reasoning, False)) if reasoning else 0,
            time.perf_counter() - begun,
            2.0 * self._parameters * (made.read + made.written),
        )
        return Reply(done.text, done.status, done.detail, reasoning, usage)

    def prefer(self, messages: Sequence[Message], candidates: Sequence[str], label: str) -> Preference:
        """Log-likelihood of `label` as the reply to the chat with each candidate added, the others unseen.

        A candidate is added to the text of the last message where that is the
        user's, and else a message of its own.
        """
        generator, begun = self._open(), time.perf_counter()
        unknown = (float("nan"),) * len(candidates)
        if not candidates:
            return Preference(())
        try:
            prompts = [self._prompt(generator, added(messages, candidate), 1) for candidate in candidates]
            if generator.loaded.processor is not None:
                scores, read = self._apart(generator, prompts, label)
            else:
                scores, read = self._shared(generator, prompts, label)
        except BaseException as error:
            self._forget()
            failed = fault(error)
            return Preference(unknown, failed.status, failed.detail, Usage(1, seconds=time.perf_counter() - begun))
        usage = Usage(1, read, seconds=time.perf_counter() - begun, flops=2.0 * self._parameters * read)
        if not all(torch.isfinite(torch.tensor(scores))):
            self._forget()
            return Preference(unknown, Status.ERROR, f"{NON_FINITE} behind a candidate", usage)
        return Preference(scores, usage=usage)

    def close(self) -> None:
        """Give back memory and devices."""
        self._generator = None
        self._forget()
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _open(self) -> Generator:
        if self._generator is None:
            raise ConfigError(f"agent {self._identity.name!r} was closed; load it again")
        return self._generator

    def _forget(self) -> None:
        self._read, self._cache = [], None

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
        """Tokens of a prompt with the label as its reply, and the number of those that are the label's."""
        text = prompt.text
        if text.rstrip().endswith(THINKING):
            text += "\n</think>\n\n"  # it answers without thinking
        head = self._tokens(generator, text, prompt.special)
        whole = self._tokens(generator, text + label, prompt.special)
        if whole[: len(head)] != head or len(whole) == len(head):
            whole = head + self._tokens(generator, label, False)
        if len(whole) == len(head):
            raise ConfigError(f"label {label!r} has no token; use a word")
        generator.room(NAME, len(whole) - 1)
        return whole, len(whole) - len(head)

    def _shared(self, generator: Generator, prompts: Sequence[Prompt], label: str) -> tuple[tuple[float, ...], int]:
        """Scores, and the tokens read for them, with what all prompts share read once."""
        rows = [self._labelled(generator, prompt, label) for prompt in prompts]
        # The last token of a prompt is read behind the prefix: from it follows the label's first.
        prefix = min(len(ids) - count - 1 for ids, count in rows)
        for ids, _ in rows:
            prefix = _common(rows[0][0][:prefix], ids)
        read = self._recall(generator, rows[0][0][:prefix])
        scores = []
        for ids, count in rows:
            tail = ids[prefix:-1]
            scores.append(self._score(generator, {"input_ids": tail}, ids[-count:], copy.deepcopy(self._cache)))
            read += len(tail)
        return tuple(scores), read

    def _recall(self, generator: Generator, ids: list[int]) -> int:
        """Bring the cache to hold exactly these tokens, keeping what it has of them; the number of tokens read."""
        kept = _common(self._read, ids)
        if kept < len(self._read):
            if self._cache is not None and _can_shrink(self._cache) and kept:
                self._cache.crop(kept - len(self._read))
            else:
                self._forget()
                kept = 0
        if kept < len(ids):
            with torch.inference_mode():
                output = generator.loaded.model(
                    input_ids=torch.tensor([ids[kept:]], device=generator.loaded.model.device),
                    past_key_values=self._cache,
                    use_cache=True,
                    **_last(generator, 1),
                )
            self._cache = output.past_key_values
        self._read = list(ids)
        return len(ids) - kept

    def _apart(self, generator: Generator, prompts: Sequence[Prompt], label: str) -> tuple[tuple[float, ...], int]:
        """Scores where pictures may be among the tokens: each prompt is read as a whole."""
        scores, read = [], 0
        for prompt in prompts:
            whole, count = self._labelled(generator, prompt, label)
            inputs = generator.encode([prompt])
            told = torch.tensor([whole[-count:-1]], dtype=torch.long, device=inputs["input_ids"].device)
            added = {"input_ids": told, "attention_mask": torch.ones_like(told)}
            shape = inputs["input_ids"].shape
            for name, tensor in inputs.items():
                if torch.is_tensor(tensor) and tensor.shape == shape:  # one number a token, such as its type: 0 is text
                    inputs[name] = torch.cat([tensor, added.get(name, torch.zeros_like(told)).to(tensor.dtype)], dim=1)
            generator.room(NAME, int(inputs["input_ids"].shape[1]))
            scores.append(self._score(generator, inputs, whole[-count:], None))
            read += int(inputs["input_ids"].shape[1])
        return tuple(scores), read

    @staticmethod
    def _score(generator: Generator, inputs: Mapping[str, Any], label: Sequence[int], cache: Any) -> float:
        """Log-likelihood of the label at the last places of the inputs."""
        model = generator.loaded.model
        given = dict(inputs)
        if isinstance(given["input_ids"], list):
            given["input_ids"] = torch.tensor([given["input_ids"]], device=model.device)
        if cache is not None:
            given["past_key_values"] = cache
        with torch.inference_mode():
            logits = model(**given, **_last(generator, len(label))).logits[0, -len(label) :]
            words = torch.log_softmax(logits.float(), dim=-1)
            chosen = words[torch.arange(len(label)), torch.tensor(label, device=words.device)]
        return float(chosen.sum())


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """Length of what two lists begin with alike."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _can_shrink(cache: Any) -> bool:
    """Whether tokens can be taken off a cache; windows and recurrent states have forgotten what was before them."""
    layers = getattr(cache, "layers", ())
    return bool(layers) and all(type(layer).__name__ == "DynamicLayer" for layer in layers)


def _last(generator: Generator, count: int) -> dict[str, int]:
    """Have logits computed for the last places only, where the model can."""
    return {"logits_to_keep": count} if generator.can_keep_logits else {}
