"""Local Hugging Face checkpoints as subjects."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from pytest_adaptive_eval.checks import check_count, check_decoding
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.subjects.base import Completion, Subject, SubjectIdentity, Usage, sample_of
from pytest_adaptive_eval.subjects.caps import Cap, cap_of
from pytest_adaptive_eval.subjects.checkpoint.generation import Generated, Generator, Prompt, answered, fault
from pytest_adaptive_eval.subjects.checkpoint.likelihood import LikelihoodScorer

__all__ = ["TransformersSubject"]


class TransformersSubject(Subject):
    """A text, or image-and-text, model that runs in this process.

    Created by `load`.  Answers are greedy at temperature 0, in batches padded on
    the left.  An answer does not depend on the rest of its batch, except for
    floating-point rounding.

    `cap` says how long an answer may be, and an item's ``meta["sample"]`` is
    the index of a repeated draw at a temperature above 0.
    """

    rates_texts = True

    cap: Cap

    def __init__(self, generator: Generator, identity: SubjectIdentity, *, cap: Cap, batch_size: int) -> None:
        super().__init__(identity)
        self._generator: Generator | None = generator
        self._prompter = generator.prompter
        self.cap = cap
        self._batch_size = batch_size
        self._parameters = int(generator.loaded.model.num_parameters())
        self._usage = Usage()
        self._scorer: LikelihoodScorer | None = LikelihoodScorer(generator, batch_size)

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        *,
        device: str = "auto",
        dtype: str = "auto",
        max_tokens: int | None = None,
        reasoning: bool | None = None,
        batch_size: int = 16,
        temperature: float = 0.0,
        seed: int = 0,
        cache: Path | None = None,
    ) -> TransformersSubject:
        """Examine and load a checkpoint.

        Parameters
        ----------
        folder : path
            A local folder in Hugging Face format, or one of the hub cache.
        device : str
            ``auto`` is CUDA if available, otherwise the CPU.
        dtype : str
            ``auto``, ``float32``, ``float16`` or ``bfloat16``; ``auto`` is
            float32 on a CPU and the checkpoint's own type elsewhere.
        max_tokens : int, optional
            Cap on the tokens of an answer, reasoning included.  1024 by default, and 16384 for a model that reasons.
        reasoning : bool, optional
            Whether the model reasons before it answers; by default whether its chat template has think tags.
        batch_size : int
            Number of items in a batch.
        temperature : float
            0 is greedy.
        seed : int
            Seed of the sampling; without effect at temperature 0.
        cache : Path, optional
            Folder for file hashes, shared by runs.

        Raises
        ------
        CheckpointError
            The folder is missing, unsafe, incomplete or does not load in full.
        ConfigError
            A setting is out of its range.
        """
        cap_of(max_tokens, reasons=False)
        check_count("batch_size", batch_size)
        check_decoding(temperature, seed)
        generator = Generator.load(
            folder,
            device=device,
            dtype=dtype,
            temperature=float(temperature),
            seed=seed,
            cache=cache,
        )
        cap = cap_of(max_tokens, reasons=generator.reasons if reasoning is None else reasoning)
        decoding = {
            "max_tokens": cap.tokens,
            "temperature": float(temperature),
            "seed": seed if temperature else None,
        }
        identity = generator.identity(decoding, {"batch_size": batch_size})
        return cls(generator, identity, cap=cap, batch_size=batch_size)

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        """Return one completion per item, in order."""
        if self._generator is None or self._scorer is None:
            raise ConfigError(f"subject {self.identity.name!r} was closed; load it again")
        done: dict[int, Completion] = {}
        questions: list[tuple[int, Prompt]] = []
        rated: list[tuple[int, Item, Prompt]] = []
        for index, item in enumerate(items):
            try:
                prompt = self._prompt(item)
            except BaseException as error:
                done[index] = fault(error)
                continue
            if item.likelihood is None:
                questions.append((index, prompt))
            else:
                rated.append((index, item, prompt))
        questions.sort(key=lambda question: (question[1].group, len(question[1].text), question[0]))
        begun = time.perf_counter()
        for index, completion, cost in self._scorer.answer(rated):
            done[index] = completion
            self._usage += cost
        for batch in self._batches(questions):
            answers = self._attempt(self._generator, [prompt for _, prompt in batch])
            done.update(zip((index for index, _ in batch), answers, strict=True))
        self._usage += Usage(seconds=time.perf_counter() - begun)
        return [done[index] for index in range(len(items))]

    @property
    def usage(self) -> Usage:
        """Cost so far: calls, tokens, seconds and estimated FLOPs."""
        return self._usage

    def close(self) -> None:
        """Release memory and devices."""
        super().close()
        self._generator = self._scorer = None
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _prompt(self, item: Item) -> Prompt:
        text = self._prompter.text(item)
        special = self._prompter.adds_special_tokens(text)
        images = tuple((image, item.root) for image in item.images)
        return Prompt(f"item {item.id!r}", text, special, self.cap.of(item), images, sample_of(item))

    def _batches(self, questions: Sequence[tuple[int, Prompt]]) -> list[list[tuple[int, Prompt]]]:
        batches: list[list[tuple[int, Prompt]]] = []
        for question in questions:
            if batches and batches[-1][0][1].group == question[1].group and len(batches[-1]) < self._batch_size:
                batches[-1].append(question)
            else:
                batches.append([question])
        return batches

    def _attempt(self, generator: Generator, batch: Sequence[Prompt]) -> list[Completion]:
        """Return the answers to a batch; if it fails, answer its items one by one, so that a fault affects one item."""
        try:
            generated = generator.generate(batch)
        except BaseException as error:
            failed = fault(error)
            if len(batch) == 1:
                return [failed]
        else:
            return [self._counted(prompt, answer) for prompt, answer in zip(batch, generated, strict=True)]
        return [completion for prompt in batch for completion in self._attempt(generator, [prompt])]

    def _counted(self, prompt: Prompt, generated: Generated) -> Completion:
        """Return the answer without its reasoning, and add its cost to the usage."""
        done, reasoning = answered(prompt, generated)
        assert self._generator is not None
        tokenizer = self._generator.loaded.tokenizer
        thought = len(tokenizer(reasoning, add_special_tokens=False).input_ids) if reasoning else 0
        flops = 2.0 * self._parameters * (generated.read + generated.written)
        self._usage += Usage(1, generated.read, generated.written, thought, 0.0, flops)
        return done
