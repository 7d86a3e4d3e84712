"""Generate completions of prompts with a loaded checkpoint.

Subjects and agents in this process share this code: batches, decoding, and the status of an end, a cut or a fault.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
import transformers

from pytest_adaptive_eval.errors import BankError, CheckpointError
from pytest_adaptive_eval.inputs import StrPath
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.items.reading.cleaning import split_reasoning
from pytest_adaptive_eval.models.base import Completion, SubjectIdentity
from pytest_adaptive_eval.models.checkpoint.folder import CheckpointInfo, preflight
from pytest_adaptive_eval.models.checkpoint.loading import Loaded, load_checkpoint
from pytest_adaptive_eval.models.checkpoint.placement import CheckpointSettings
from pytest_adaptive_eval.models.checkpoint.prompting import TEMPLATE_DATE, Prompter
from pytest_adaptive_eval.models.images import open_image

#: End of some chat templates, which opens a reasoning span.
THINKING = "<think>"
#: End of a reasoning span, which templates take out of earlier answers.
_THOUGHT = "</think>"

NON_FINITE = "non-finite logits"


@dataclass(frozen=True, slots=True)
class Prompt:
    """Input of a model for one answer.

    Args:
        name: Name for error messages, such as ``item 'a'``.
        text: Prompt with the chat template and placeholders of images.
        special: Whether the tokenizer adds its special tokens.
        images: Image files, each with the folder that must contain it.
        sample: Index of the draw, at a temperature above 0.
    """

    name: str
    text: str
    special: bool
    cap: int
    images: tuple[tuple[str, str], ...] = ()
    sample: int = 0

    @property
    def group(self) -> tuple[int, bool, int]:
        """Properties that all prompts of a batch share."""
        return len(self.images), self.special, self.cap


@dataclass(frozen=True, slots=True)
class Generated:
    """A completion, and the numbers of tokens read and written."""

    completion: Completion
    read: int
    written: int


@dataclass(slots=True, eq=False)
class PendingAnswer:
    """An answer that is being written, over one or more batches.

    Args:
        random: Random numbers of a sample; each token takes some, whatever batch it is written in.
        written: Tokens of the answer so far, the token that ends it included.
        read: Number of tokens of the prompt.
        cap: Number of tokens at which it is cut.
        broken: First of `written` with non-finite logits.
    """

    prompt: Prompt
    random: torch.Generator
    written: list[int] = field(default_factory=list)
    read: int = 0
    cap: int = 0
    broken: int | None = None
    ended: bool = False


def answered(prompt: Prompt, generated: Generated) -> tuple[Completion, str]:
    """Return the completion without its reasoning, and the reasoning; an ok one of reasoning alone is ``empty``."""
    opened = prompt.text.rstrip().endswith(THINKING)
    text, reasoning, _ = split_reasoning(THINKING * opened + generated.completion.text)
    completion = replace(generated.completion, text=text)
    if reasoning and completion.status is Status.OK and not text.strip():
        completion = replace(completion, status=Status.EMPTY, detail="nothing besides its reasoning")
    return completion, reasoning


class Generator:
    """A model in this process that generates greedily or by seeded sampling.

    Args:
        temperature: 0 is greedy.
        top_p: See `Chooser`.
    """

    def __init__(self, info: CheckpointInfo, loaded: Loaded, *, temperature: float, seed: int, top_p: float) -> None:
        self.info = info
        self.loaded = loaded
        self.prompter = _prompter(info, loaded)
        self._temperature = temperature
        self._seed = seed
        self._top_p = top_p
        self._ends = end_tokens(loaded.model, loaded.tokenizer)
        self._pad = int(loaded.tokenizer.pad_token_id)
        self._reads = frozenset(inspect.signature(loaded.model.forward).parameters)
        self._window = _window(loaded.model)
        # `generate` reads settings that a call does not give from the model
        loaded.model.generation_config = own_generation_config(
            self._ends, self._pad, 1
        )  # each call has a cap of its own

    @property
    def reasons(self) -> bool:
        """Whether the chat template has think tags, as for models that reason before they answer."""
        template = self.prompter.template or ""
        return THINKING in template or _THOUGHT in template

    @property
    def can_keep_logits(self) -> bool:
        """Whether the model can compute the last logits alone."""
        return "logits_to_keep" in self._reads

    @property
    def takes_positions(self) -> bool:
        """Whether the model takes the position of each token."""
        return "position_ids" in self._reads

    @property
    def window(self) -> int | None:
        """Number of tokens that the model reads at most; None if unknown."""
        return self._window

    @property
    def cache_name(self) -> str:
        """Name of the model's cache, as an argument and in its output; transformers renamed it in 5.24."""
        if "cache" in self._reads:
            return "cache"
        return "past_key_values"

    @classmethod
    def load(
        cls,
        folder: StrPath,
        settings: CheckpointSettings,
        *,
        cache: Path | None = None,
    ) -> Generator:
        """Examine and load a checkpoint; errors as of `preflight` and `load_checkpoint`.

        Raises:
            CheckpointError: The folder is missing, unsafe, incomplete or does not load in full.
            ConfigError: The device or the type is not known here.
        """
        info = preflight(folder, cache=cache)
        loaded = load_checkpoint(info, settings)
        return cls(info, loaded, temperature=settings.temperature, seed=settings.seed, top_p=settings.top_p)

    def identity(self, decoding: dict[str, Any], environment: dict[str, Any]) -> SubjectIdentity:
        """Return the identity, with the given settings and the settings of prompts."""
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
            hashes_files=True,
        )

    def pending(self, prompt: Prompt) -> PendingAnswer:
        """Return an answer without any text yet."""
        return PendingAnswer(prompt, torch.Generator().manual_seed(_seed(self._seed, prompt.sample, prompt.text)))

    def generate(self, batch: Sequence[PendingAnswer]) -> None:
        """Write answers to prompts of one group, until all have ended or a new batch is cheaper.

        Raises:
            BankError: One of the prompts cannot be asked.
        """
        inputs = self._inputs(batch)
        width = int(inputs["input_ids"].shape[1])
        lengths = inputs["attention_mask"].sum(1)
        for answer, length in zip(batch, lengths.tolist(), strict=True):
            if not answer.written:
                answer.read = length
                answer.cap = min(answer.prompt.cap, self.remaining_tokens(answer.prompt.name, length))
        remaining = [answer.cap - len(answer.written) for answer in batch]
        chooser = Chooser([answer.random for answer in batch], self._temperature, self._top_p)
        # pictures are not read again
        if self.loaded.processor is not None:
            criteria = []
        else:
            criteria = [IdleRows(self._ends, lengths, remaining)]
        with torch.inference_mode():
            output = self.loaded.model.generate(
                **inputs,
                generation_config=own_generation_config(self._ends, self._pad, max(remaining)),
                logits_processor=transformers.LogitsProcessorList([chooser]),
                stopping_criteria=transformers.StoppingCriteriaList(criteria),
            )
        rows = output[:, width:].tolist()
        for answer, tokens, most, broken in zip(batch, rows, remaining, chooser.faults(), strict=True):
            self._add(answer, tokens[:most], broken)

    def _inputs(self, batch: Sequence[PendingAnswer]) -> dict[str, Any]:
        """Return tensors of the prompts and of what is written of their answers, padded on the left."""
        inputs = self.encode([answer.prompt for answer in batch])
        if not any(answer.written for answer in batch):
            return inputs
        tokens = inputs["input_ids"]
        mask = inputs["attention_mask"].bool()
        rows = []
        for row, row_mask, answer in zip(tokens, mask, batch, strict=True):
            rows.append([*row[row_mask].tolist(), *answer.written])
        longer, longer_mask = padded(rows, max(map(len, rows)), self._pad, on_left=True)
        return {**inputs, "input_ids": longer.to(tokens.device), "attention_mask": longer_mask.to(tokens.device)}

    def _add(self, answer: PendingAnswer, tokens: list[int], broken: int | None) -> None:
        """Add tokens of a batch to an answer, up to one that ends it."""
        end = next((index for index, token in enumerate(tokens) if token in self._ends), None)
        if answer.broken is None and broken is not None:
            answer.broken = len(answer.written) + broken
        answer.written += tokens if end is None else tokens[: end + 1]
        answer.ended = end is not None or len(answer.written) >= answer.cap

    def encode(self, batch: Sequence[Prompt]) -> dict[str, Any]:
        """Return tensors of prompts of one group, padded on the left, on the model's device."""
        loaded = self.loaded
        texts = [prompt.text for prompt in batch]
        special = batch[0].special
        if loaded.processor is None:
            encoded = loaded.tokenizer(texts, padding=True, add_special_tokens=special, return_tensors="pt")
            keep = frozenset({"input_ids", "attention_mask"})
        else:
            images = []
            for prompt in batch:
                images.append([open_image(name, root) for name, root in prompt.images])
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

    def remaining_tokens(self, name: str, length: int) -> int:
        """Return the number of tokens that fit into the model's window after `length` tokens; raise BankError for 0."""
        if self._window is not None and length >= self._window:
            raise BankError(
                f"{name} has a prompt of {length} tokens, and the model reads at most {self._window} with its answer; "
                "shorten it"
            )
        if self._window is None:
            return 2**31
        return self._window - length

    def generated(self, answer: PendingAnswer) -> Generated:
        """Return the completion of an answer that has ended."""
        tokens, broken = answer.written, answer.broken
        is_cut = not tokens or tokens[-1] not in self._ends
        text = str(self.loaded.tokenizer.decode(tokens if is_cut else tokens[:-1], skip_special_tokens=True))
        if broken is not None and broken < len(tokens):
            completion = Completion(text, Status.ERROR, detail=f"{NON_FINITE} at token {broken + 1} of the answer")
        elif is_cut:
            completion = Completion(text, Status.TRUNCATED, detail=f"not finished after {answer.cap} tokens")
        elif not text.strip():
            completion = Completion(text, Status.EMPTY, detail="nothing but white space")
        else:
            completion = Completion(text)
        return Generated(completion, answer.read, len(tokens))


def padded(
    rows: Sequence[Sequence[int]], width: int, token: int = 0, *, on_left: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return tokens and attention mask of rows padded to a width with a token, shape (B, width)."""
    tokens = torch.full((len(rows), width), token, dtype=torch.long)
    mask = torch.zeros(len(rows), width, dtype=torch.long)
    for index, row in enumerate(rows):
        if on_left:
            columns = slice(width - len(row), width)
        else:
            columns = slice(0, len(row))
        tokens[index, columns] = torch.tensor(row, dtype=torch.long)
        mask[index, columns] = 1
    return tokens, mask


def _prompter(info: CheckpointInfo, loaded: Loaded) -> Prompter:
    """Return the prompter of a checkpoint, after checking that its template, if any, compiles and ends."""
    image_token = None
    if loaded.processor is not None:
        image_token = getattr(loaded.processor, "image_token", None) or getattr(loaded.tokenizer, "image_token", None)
        if not isinstance(image_token, str):
            raise CheckpointError(f"{info.folder}: its processor names no image token; save the processor again")
    prompter = Prompter(loaded.tokenizer, loaded.template, image_token)
    if prompter.template:
        content = "?" if image_token is None else [{"type": "text", "text": "?"}]
        try:
            prompter.render([{"role": "user", "content": content}])
        except TimeoutError as error:
            raise CheckpointError(f"{info.folder}: {error}; fix chat_template.jinja") from error
        except Exception as error:
            raise CheckpointError(
                f"{info.folder}: its chat template does not render one user message ({error}); fix chat_template.jinja"
            ) from error
    return prompter


def _window(model: Any) -> int | None:
    window = getattr(model.config.get_text_config(decoder=True), "max_position_embeddings", None)
    if isinstance(window, int) and window > 0:
        return window
    return None


def fault(error: BaseException) -> Completion:
    """Return the completion for an exception.

    A panic in a native library is not an `Exception`. An interrupt, and an outcome of pytest, which a time limit
    raises, are not the item's fault and are raised again.
    """
    origins = {base.__module__ for base in type(error).__mro__}
    if isinstance(error, (KeyboardInterrupt, SystemExit)) or "_pytest.outcomes" in origins:
        raise error
    if isinstance(error, TimeoutError):
        status = Status.TIMEOUT
    else:
        status = Status.ERROR
    return Completion("", status, detail=f"{type(error).__name__}: {error}")


#: The library's own type hints are partial.
hf: Any = transformers


def end_tokens(model: Any, tokenizer: Any) -> tuple[int, ...]:
    """Return the tokens that end an answer, by the tokenizer and by the checkpoint's generation settings."""
    listed = model.generation_config.eos_token_id
    ids = {tokenizer.eos_token_id, *(listed if isinstance(listed, (list, tuple)) else [listed])}
    return tuple(sorted(int(token) for token in ids if token is not None))


def own_generation_config(ends: Sequence[int], pad: int, max_new_tokens: int) -> Any:
    """Return generation settings with the checkpoint's end tokens alone; its own may sample, or never stop."""
    return hf.GenerationConfig(
        do_sample=False,
        num_beams=1,
        max_new_tokens=max_new_tokens,
        eos_token_id=list(ends) or None,
        pad_token_id=pad,
        use_cache=True,
    )


class Chooser:
    """A logits processor that detects non-finite logits, and samples.

    Sampling adds Gumbel noise to ``logits / temperature``, whose maximum is then a draw from the softmax (Gumbel 1954).
    Each row has a generator seeded by its prompt, so an answer does not depend on the rest of its batch.

    Args:
        generators: Random numbers of each row.
        temperature: 0 is greedy.
        top_p: Share of the probability that sampling is limited to: the likeliest tokens that together have it.
    """

    def __init__(self, generators: Sequence[torch.Generator], temperature: float, top_p: float = 1.0) -> None:
        self.generators = generators
        self.temperature = temperature
        self.top_p = top_p
        self._faults: list[torch.Tensor] = []

    def __call__(self, _: torch.LongTensor, scores: torch.FloatTensor) -> torch.Tensor:
        """Return scores, shape (rows, vocabulary), whose maximum is the next token."""
        # the maximum shows NaN and infinity; a single -inf only forbids a token
        self._faults.append(~torch.isfinite(scores.amax(dim=-1)))
        chosen = torch.nan_to_num(scores)
        if self.temperature:
            draws = (
                torch.rand(scores.shape[-1], generator=generator, dtype=torch.float64) for generator in self.generators
            )
            noise = -torch.log(-torch.log(torch.stack([*draws]).clamp_min(1e-300)))  # Gumbel
            chosen = _nucleus(chosen / self.temperature, self.top_p) + noise.to(scores.device, scores.dtype)
        return chosen

    def faults(self) -> list[int | None]:
        """Return, for each row, the first step with non-finite logits, or None."""
        if self._faults:
            rows = torch.stack(self._faults, dim=1).tolist()
        else:
            rows = []
        return [row.index(True) if True in row else None for row in rows]


class IdleRows:
    """A stopping criterion that ends a batch once its ended rows have cost as much as a new batch would.

    An ended row idles for one token a step. A new batch without it, with another in its place, reads the tokens of the
    others again. Ending the batch when both are equal costs at most twice the least possible (ski rental problem).

    Args:
        ends: Tokens that end an answer.
        lengths: Shape (B,). Tokens of each row at the beginning.
        remaining: Tokens at most that each row still gets.
    """

    def __init__(self, ends: Sequence[int], lengths: torch.Tensor, remaining: Sequence[int]) -> None:
        self._ends = torch.tensor(ends, device=lengths.device)
        self._lengths = lengths
        self._remaining = torch.tensor(remaining, device=lengths.device)
        self._ended = torch.zeros_like(lengths, dtype=torch.bool)
        self._idle = torch.zeros_like(lengths[0])
        self._steps = 0

    def __call__(self, tokens: torch.Tensor, _scores: torch.Tensor, **_: Any) -> torch.Tensor:
        """Return whether to end each row, shape (B,): all or none."""
        self._steps += 1
        self._idle = self._idle + self._ended.sum()
        self._ended = self._ended | torch.isin(tokens[:, -1], self._ends) | (self._remaining <= self._steps)
        read_again = ((self._lengths + self._steps) * ~self._ended).sum()
        return (self._idle > read_again).expand(len(self._ended))


def _nucleus(logits: torch.Tensor, top_p: float) -> torch.Tensor:
    """Return logits, shape (rows, vocabulary), that are -inf outside the likeliest tokens of a probability `top_p`."""
    if top_p >= 1.0:
        return logits
    ordered, tokens = logits.sort(dim=-1, descending=True)
    shares = ordered.float().softmax(dim=-1)
    outside = shares.cumsum(dim=-1) - shares >= top_p  # the token that reaches the share is inside
    return logits.masked_fill(outside.scatter(-1, tokens, outside), float("-inf"))


def _seed(seed: int, sample: int, prompt: str) -> int:
    text = f"{seed} {sample} {prompt}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 1
