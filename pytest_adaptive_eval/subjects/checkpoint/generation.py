"""A loaded checkpoint that writes: prompts in, completions and their costs out.

What subjects and agents in this process share: the batch that goes to the
model, the decoding, and how an end, a cut and a fault become a status.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import transformers

from pytest_adaptive_eval.errors import BankError, CheckpointError
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.subjects.base import Completion, SubjectIdentity
from pytest_adaptive_eval.subjects.checkpoint.decoding import Chooser, end_tokens, own_generation_config
from pytest_adaptive_eval.subjects.checkpoint.folder import CheckpointInfo, preflight
from pytest_adaptive_eval.subjects.checkpoint.loading import Loaded, load_checkpoint
from pytest_adaptive_eval.subjects.checkpoint.prompting import TEMPLATE_DATE, Prompter
from pytest_adaptive_eval.subjects.images import open_image
from pytest_adaptive_eval.subjects.reasoning import split_reasoning

__all__ = ["NON_FINITE", "THINKING", "Generated", "Generator", "Prompt", "answered", "fault"]

#: What the chat templates of some models end with.
THINKING = "<think>"

NON_FINITE = "non-finite logits"


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model reads for one answer.

    Parameters
    ----------
    name : str
        For error messages, such as ``item 'a'``.
    text : str
        With the chat template and placeholders of images.
    special : bool
        Whether the tokenizer still adds its special tokens.
    cap : int
        Tokens that the answer may have.
    images : tuple of (str, str)
        Image files, each with the folder that it must lie in.
    sample : int
        Which draw it is, at a temperature above 0.
    """

    name: str
    text: str
    special: bool
    cap: int
    images: tuple[tuple[str, str], ...] = ()
    sample: int = 0

    @property
    def group(self) -> tuple[int, bool, int]:
        """What a batch must agree on."""
        return len(self.images), self.special, self.cap


@dataclass(frozen=True, slots=True)
class Generated:
    """A completion, the tokens read for it and those written."""

    completion: Completion
    read: int
    written: int


def answered(prompt: Prompt, made: Generated) -> tuple[Completion, str]:
    """The completion without what the model thought aloud, and that.

    An answer of nothing else is ``empty``; one that was cut off stays what it is.
    """
    opened = prompt.text.rstrip().endswith(THINKING)  # by the chat template
    text, reasoning, _ = split_reasoning(THINKING * opened + made.completion.text)
    done = replace(made.completion, text=text)
    if reasoning and done.status is Status.OK and not text.strip():
        done = replace(done, status=Status.EMPTY, detail="nothing besides its reasoning")
    return done, reasoning


class Generator:
    """A model in this process, which writes greedily or by seeded sampling.

    Parameters
    ----------
    info : CheckpointInfo
    loaded : Loaded
    max_tokens : int
        Of the model's own settings, which every call overrides.
    temperature : float
        0 is greedy.
    seed : int
    """

    def __init__(
        self, info: CheckpointInfo, loaded: Loaded, *, max_tokens: int, temperature: float = 0.0, seed: int = 0
    ) -> None:
        self.info = info
        self.loaded = loaded
        self.prompter = _prompter(info, loaded)
        self._temperature = temperature
        self._seed = seed
        self._ends = end_tokens(loaded.model, loaded.tokenizer)
        self._pad = int(loaded.tokenizer.pad_token_id)
        self._reads = frozenset(inspect.signature(loaded.model.forward).parameters)
        self._window = _window(loaded.model)
        # `generate` fills whatever ours leaves open from the model's own settings.
        loaded.model.generation_config = own_generation_config(self._ends, self._pad, max_tokens)

    @property
    def can_keep_logits(self) -> bool:
        """Whether the model computes the last logits alone when told to."""
        return "logits_to_keep" in self._reads

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        *,
        device: str,
        dtype: str,
        max_tokens: int,
        temperature: float = 0.0,
        seed: int = 0,
        cache: Path | None = None,
    ) -> Generator:
        """Examine and load a checkpoint.

        Raises
        ------
        CheckpointError
            The folder is missing, unsafe, incomplete or does not load in full.
        ConfigError
            The device or the type is not known here.
        """
        info = preflight(folder, cache=cache)
        loaded = load_checkpoint(info, device=device, dtype=dtype)
        return cls(info, loaded, max_tokens=max_tokens, temperature=temperature, seed=seed)

    def identity(self, decoding: dict[str, Any], environment: dict[str, Any]) -> SubjectIdentity:
        """Who writes, with settings beyond those of how prompts are made."""
        return SubjectIdentity(
            self.info.name,
            self.info.hash,
            {
                **decoding,
                "template": self.prompter.style,
                **({"template_date": TEMPLATE_DATE.isoformat()} if self.prompter.template else {}),
                **({"images": "pil"} if self.loaded.processor is not None else {}),
            },
            {
                "device": self.loaded.device,
                "dtype": self.loaded.dtype,
                **({"threads": torch.get_num_threads()} if self.loaded.device == "cpu" else {}),
                **environment,
                "torch": torch.__version__,
                "transformers": transformers.__version__,
            },
        )

    def generate(self, batch: Sequence[Prompt]) -> list[Generated]:
        """Answer prompts of one group in one call.

        Raises
        ------
        BankError
            A prompt leaves the model no room to answer, or an image cannot be had.
        """
        inputs = self.encode(batch)
        width = int(inputs["input_ids"].shape[1])
        lengths = [int(n) for n in inputs["attention_mask"].sum(1).tolist()]
        caps = [min(prompt.cap, self.room(prompt.name, n)) for prompt, n in zip(batch, lengths, strict=True)]
        chooser = Chooser(
            [prompt.text for prompt in batch],
            temperature=self._temperature,
            seed=self._seed,
            samples=[prompt.sample for prompt in batch],
        )
        with torch.inference_mode():
            output = self.loaded.model.generate(
                **inputs,
                generation_config=own_generation_config(self._ends, self._pad, max(caps)),
                logits_processor=transformers.LogitsProcessorList([chooser]),
            )
        rows = output[:, width:].tolist()
        return [
            self._generated(row[:cap], length, cap, broken)
            for row, length, cap, broken in zip(rows, lengths, caps, chooser.faults(), strict=True)
        ]

    def encode(self, batch: Sequence[Prompt]) -> dict[str, Any]:
        """Tensors of prompts of one group, padded on the left, on the model's device."""
        loaded, texts, special = self.loaded, [prompt.text for prompt in batch], batch[0].special
        if loaded.processor is None:
            encoded = loaded.tokenizer(texts, padding=True, add_special_tokens=special, return_tensors="pt")
            keep = frozenset({"input_ids", "attention_mask"})
        else:
            images = [[open_image(name, root) for name, root in prompt.images] for prompt in batch]
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

    def room(self, name: str, length: int) -> int:
        """Tokens that the model can read behind `length` of them.

        Raises
        ------
        BankError
            None at all.
        """
        if self._window is not None and length >= self._window:
            raise BankError(
                f"{name} has a prompt of {length} tokens, and the model reads at most {self._window} with its answer; "
                "shorten it"
            )
        return 2**31 if self._window is None else self._window - length

    def _generated(self, tokens: list[int], read: int, cap: int, broken: int | None) -> Generated:
        end = next((at for at, token in enumerate(tokens) if token in self._ends), None)
        written = len(tokens) if end is None else end + 1
        text = str(self.loaded.tokenizer.decode(tokens[:end], skip_special_tokens=True))
        if broken is not None and broken < written:
            done = Completion(text, Status.ERROR, detail=f"{NON_FINITE} at token {broken + 1} of the answer")
        elif end is None:
            done = Completion(text, Status.TRUNCATED, detail=f"not finished after {cap} tokens")
        elif not text.strip():
            done = Completion(text, Status.EMPTY, detail="nothing but white space")
        else:
            done = Completion(text)
        return Generated(done, read, written)


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


def fault(error: BaseException) -> Completion:
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
