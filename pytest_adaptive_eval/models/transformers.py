"""A local Hugging Face checkpoint as a subject."""

from __future__ import annotations

import gc
import inspect
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

from pytest_adaptive_eval.core.item import Item, Status
from pytest_adaptive_eval.errors import BankError, CheckpointError, ConfigError
from pytest_adaptive_eval.models.base import Completion, Subject, SubjectIdentity
from pytest_adaptive_eval.models.checkpoint import CheckpointInfo, preflight
from pytest_adaptive_eval.models.decoding import Chooser, end_tokens, own_generation_config
from pytest_adaptive_eval.models.images import open_image
from pytest_adaptive_eval.models.loading import Loaded, load_checkpoint
from pytest_adaptive_eval.models.prompting import TEMPLATE_DATE, Prompter

__all__ = ["TransformersSubject"]

NON_FINITE = "non-finite logits"


@dataclass(frozen=True, slots=True)
class _Question:
    """An item made ready: where it goes in the result, what is read, and how long the answer may be."""

    place: int
    item: Item
    text: str
    special: bool
    cap: int
    sample: int

    @property
    def group(self) -> tuple[int, bool, int]:
        """What a batch must agree on."""
        return len(self.item.images), self.special, self.cap


class TransformersSubject(Subject):
    """A text, or image-and-text, model that runs in this process.

    Made by `load`.  Answers are greedy unless a temperature is given, in
    batches padded on the left, and an answer does not depend on the rest of
    its batch as far as floating-point arithmetic allows.

    An item's ``meta["max_tokens"]`` overrides the cap on its answer, and
    ``meta["sample"]`` counts repeated draws at a temperature above 0.
    """

    def __init__(
        self,
        loaded: Loaded,
        identity: SubjectIdentity,
        prompter: Prompter,
        *,
        max_tokens: int,
        batch_size: int,
        temperature: float,
        seed: int,
    ) -> None:
        super().__init__(identity)
        self._loaded: Loaded | None = loaded
        self._prompter = prompter
        self._max_tokens = max_tokens
        self._batch_size = batch_size
        self._temperature = temperature
        self._seed = seed
        self._ends = end_tokens(loaded.model, loaded.tokenizer)
        self._pad = int(loaded.tokenizer.pad_token_id)
        self._reads = frozenset(inspect.signature(loaded.model.forward).parameters)
        self._window = _window(loaded.model)
        # `generate` fills whatever ours leaves open from the model's own settings.
        loaded.model.generation_config = own_generation_config(self._ends, self._pad, max_tokens)

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        *,
        device: str = "auto",
        dtype: str = "auto",
        max_tokens: int = 64,
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
            ``auto`` takes CUDA where there is one.
        dtype : str
            ``auto``, ``float32``, ``float16`` or ``bfloat16``; ``auto`` is
            float32 on a CPU and the checkpoint's own type elsewhere.
        max_tokens : int
            Cap on the tokens of an answer.
        batch_size : int
            Items answered at once.
        temperature : float
            0 is greedy.
        seed : int
            Of the sampling; without effect at temperature 0.
        cache : Path, optional
            Folder in which file hashes are kept between runs.

        Raises
        ------
        CheckpointError
            The folder is missing, unsafe, incomplete or does not load in full.
        ConfigError
            A setting is out of its range.
        """
        for name, number in (("max_tokens", max_tokens), ("batch_size", batch_size)):
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise ConfigError(f"{name} is {number!r}, expected a whole number of at least 1")
        if not 0.0 <= temperature < float("inf"):
            raise ConfigError(f"temperature is {temperature!r}, expected a number of at least 0; 0 is greedy")
        info = preflight(folder, cache=cache)
        loaded = load_checkpoint(info, device=device, dtype=dtype)
        prompter = _prompter(info, loaded)
        decoding = {
            "max_tokens": max_tokens,
            "temperature": float(temperature),
            "seed": seed if temperature else None,
            "template": prompter.style,
            **({"template_date": TEMPLATE_DATE.isoformat()} if prompter.template else {}),
            **({"images": "pil"} if loaded.processor is not None else {}),
        }
        environment = {
            "device": loaded.device,
            "dtype": loaded.dtype,
            "batch_size": batch_size,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        }
        identity = SubjectIdentity(info.name, info.hash, decoding, environment)
        return cls(
            loaded,
            identity,
            prompter,
            max_tokens=max_tokens,
            batch_size=batch_size,
            temperature=float(temperature),
            seed=seed,
        )

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        """One completion an item, in order."""
        if self._loaded is None:
            raise ConfigError(f"subject {self.identity.name!r} was closed; load it again")
        done: dict[int, Completion] = {}
        questions: list[_Question] = []
        for place, item in enumerate(items):
            try:
                questions.append(self._question(place, item))
            except BaseException as error:
                done[place] = _fault(error)
        questions.sort(key=lambda question: (question.group, len(question.text), question.place))
        for batch in self._batches(questions):
            for question, completion in zip(batch, self._attempt(self._loaded, batch), strict=True):
                done[question.place] = completion
        return [done[place] for place in range(len(items))]

    def close(self) -> None:
        """Give back memory and devices."""
        super().close()
        self._loaded = None
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _question(self, place: int, item: Item) -> _Question:
        cap = item.meta.get("max_tokens", self._max_tokens)
        sample = item.meta.get("sample", 0)
        if isinstance(cap, bool) or not isinstance(cap, int) or cap < 1:
            raise BankError(f"item {item.id!r}: meta.max_tokens is {cap!r}, expected a whole number of at least 1")
        if isinstance(sample, bool) or not isinstance(sample, int):
            raise BankError(f"item {item.id!r}: meta.sample is {sample!r}, expected a whole number")
        text = self._prompter.text(item)
        return _Question(place, item, text, self._prompter.adds_special_tokens(text), cap, sample)

    def _batches(self, questions: Sequence[_Question]) -> list[list[_Question]]:
        batches: list[list[_Question]] = []
        for question in questions:
            if batches and batches[-1][0].group == question.group and len(batches[-1]) < self._batch_size:
                batches[-1].append(question)
            else:
                batches.append([question])
        return batches

    def _attempt(self, loaded: Loaded, batch: Sequence[_Question]) -> list[Completion]:
        """Answer a batch; when it fails, answer its items one by one, so that one fault costs one item."""
        try:
            return self._generate(loaded, batch)
        except BaseException as error:
            fault = _fault(error)
            if len(batch) == 1:
                return [fault]
        return [completion for question in batch for completion in self._attempt(loaded, [question])]

    def _generate(self, loaded: Loaded, batch: Sequence[_Question]) -> list[Completion]:
        inputs = self._encode(loaded, batch)
        width = int(inputs["input_ids"].shape[1])
        lengths = inputs["attention_mask"].sum(1).tolist()
        caps = [self._room(question, n) for question, n in zip(batch, lengths, strict=True)]
        chooser = Chooser(
            [question.text for question in batch],
            temperature=self._temperature,
            seed=self._seed,
            samples=[question.sample for question in batch],
        )
        with torch.inference_mode():
            output = loaded.model.generate(
                **inputs,
                generation_config=own_generation_config(self._ends, self._pad, max(caps)),
                logits_processor=transformers.LogitsProcessorList([chooser]),
            )
        rows = output[:, width:].tolist()
        return [
            self._completion(loaded.tokenizer, row[:cap], cap, fault)
            for row, cap, fault in zip(rows, caps, chooser.faults(), strict=True)
        ]

    def _encode(self, loaded: Loaded, batch: Sequence[_Question]) -> dict[str, Any]:
        """Tensors of a batch, padded on the left, on the model's device."""
        texts = [question.text for question in batch]
        special = batch[0].special
        if loaded.processor is None:
            encoded = loaded.tokenizer(texts, padding=True, add_special_tokens=special, return_tensors="pt")
            keep = frozenset({"input_ids", "attention_mask"})
        else:
            images = [[open_image(name, question.item.root) for name in question.item.images] for question in batch]
            encoded = loaded.processor(
                images=images if images[0] else None,
                text=texts,
                padding=True,
                add_special_tokens=special,
                return_tensors="pt",
            )
            keep = self._reads | {"attention_mask"}
        encoded = encoded.to(loaded.model.device)
        kind = loaded.model.dtype
        return {
            name: tensor.to(kind) if torch.is_tensor(tensor) and tensor.is_floating_point() else tensor
            for name, tensor in encoded.items()
            if name in keep
        }

    def _room(self, question: _Question, length: int) -> int:
        """Tokens that the answer may have behind a prompt of `length` tokens."""
        if self._window is not None and length >= self._window:
            raise BankError(
                f"item {question.item.id!r} has a prompt of {length} tokens, and the model reads at most "
                f"{self._window} with its answer; shorten it"
            )
        return question.cap if self._window is None else min(question.cap, self._window - length)

    def _completion(self, tokenizer: Any, tokens: list[int], cap: int, fault: int | None) -> Completion:
        end = next((at for at, token in enumerate(tokens) if token in self._ends), None)
        text = str(tokenizer.decode(tokens[:end], skip_special_tokens=True))
        if fault is not None and fault < (len(tokens) if end is None else end + 1):
            return Completion(text, Status.ERROR, detail=f"{NON_FINITE} at token {fault + 1} of the answer")
        if end is None:
            return Completion(text, Status.TRUNCATED, detail=f"not finished after {cap} tokens")
        if not text.strip():
            return Completion(text, Status.EMPTY, detail="nothing but white space")
        return Completion(text)


def _prompter(info: CheckpointInfo, loaded: Loaded) -> Prompter:
    """Make the prompter of a checkpoint, and see that its template, if any, compiles and ends."""
    image_token = None
    if loaded.processor is not None:
        image_token = getattr(loaded.processor, "image_token", None) or getattr(loaded.tokenizer, "image_token", None)
        if not isinstance(image_token, str):
            raise CheckpointError(f"{info.folder}: its processor names no image token; save the processor again")
    prompter = Prompter(loaded.tokenizer, loaded.template, image_token)
    if prompter.template:
        content: Any = "?" if image_token is None else [{"type": "text", "text": "?"}]
        try:
            prompter.render([{"role": "user", "content": content}])
        except TimeoutError as error:
            raise CheckpointError(
                f"{info.folder}: {error}; its chat template never ends: mend chat_template.jinja"
            ) from error
        except Exception as error:
            raise CheckpointError(
                f"{info.folder}: its chat template does not render one user message ({type(error).__name__}: {error}); "
                "mend chat_template.jinja"
            ) from error
    return prompter


def _window(model: Any) -> int | None:
    window = getattr(model.config.get_text_config(decoder=True), "max_position_embeddings", None)
    return window if isinstance(window, int) and window > 0 else None


def _fault(error: BaseException) -> Completion:
    """Turn an exception into a status.

    A panic in a native library is no `Exception`; what ends a run or a test
    (an interrupt, pytest's own outcomes, which a time limit raises) is no fault
    of the item and passes through.
    """
    origins = {base.__module__ for base in type(error).__mro__}
    if isinstance(error, (KeyboardInterrupt, SystemExit)) or "_pytest.outcomes" in origins:
        raise error
    status = Status.TIMEOUT if isinstance(error, TimeoutError) else Status.ERROR
    return Completion("", status, detail=f"{type(error).__name__}: {error}")
