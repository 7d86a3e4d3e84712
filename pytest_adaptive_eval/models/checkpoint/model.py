"""Local Hugging Face checkpoints."""

from __future__ import annotations

import gc
import itertools
import logging
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.errors import CheckpointError, ConfigError
from pytest_adaptive_eval.inputs import StrPath
from pytest_adaptive_eval.items.item import Item, Status, canonical_json, items_naming
from pytest_adaptive_eval.models.base import (
    Arrived,
    Chat,
    Completion,
    Message,
    Model,
    Preference,
    SubjectIdentity,
    Usage,
    added,
    picture_hashes,
    sample_of,
    sent_request,
)
from pytest_adaptive_eval.models.caps import Cap, cap_of
from pytest_adaptive_eval.models.checkpoint.generation import (
    NON_FINITE,
    THINKING,
    Generated,
    Generator,
    PendingAnswer,
    Prompt,
    answered,
    fault,
)
from pytest_adaptive_eval.models.checkpoint.likelihood import LikelihoodScorer
from pytest_adaptive_eval.models.checkpoint.placement import CheckpointSettings, free_bytes, out_of_memory
from pytest_adaptive_eval.models.checkpoint.rating import (
    TEXT_ROWS,
    PrefixCache,
    common_prefix,
    last_logits,
    log_likelihood,
    with_tokens,
)
from pytest_adaptive_eval.typed_tables import read_options

_log = logging.getLogger(__name__)


#: Name of a chat in error messages.
NAME = "a request in a chat"


class TransformersModel(Model):
    """A text, or image-and-text, model that runs in this process.

    Created by `load`. Answers are greedy at temperature 0, in batches padded on the left. An answer does not depend on
    the rest of its batch, except for floating-point rounding. Ratings of candidates read each with its own copy of the
    cache of the shared prefix, so candidates do not affect each other; a prefix that two calls share is read once.

    `cap` says how long an answer may be, and an item's ``meta["sample"]`` is the index of a repeated draw at a
    temperature above 0.
    """

    rates_texts = True

    cap: Cap

    def __init__(
        self, generator: Generator, identity: SubjectIdentity, *, cap: Cap, batch_size: int, rated_batch: int
    ) -> None:
        super().__init__(identity)
        self._generator: Generator | None = generator
        self._prompter = generator.prompter
        self.cap = cap
        self._batch_size = batch_size
        self._parameters = int(generator.loaded.model.num_parameters())
        self._usage = Usage()
        self._scorer: LikelihoodScorer | None = LikelihoodScorer(generator, rated_batch)
        self._prefix = PrefixCache()

    @classmethod
    def load(
        cls,
        folder: StrPath,
        *,
        cache: Path | None = None,
        **options: Any,
    ) -> TransformersModel:
        """Examine and load a checkpoint.

        Args:
            folder: A local folder in Hugging Face format, or one of the hub cache.
            cache: Folder for file hashes, shared by runs.
            **options: See `pytest_adaptive_eval.models.checkpoint.placement.CheckpointSettings`.

        Raises:
            CheckpointError: The folder is missing, unsafe, incomplete or does not load in full.
            ConfigError: A setting is out of its range.
        """
        settings = read_options(CheckpointSettings, options, "a checkpoint")
        generator = Generator.load(folder, settings, cache=cache)
        reasons = generator.reasons if settings.reasoning is None else settings.reasoning
        cap = cap_of(settings.max_tokens, reasons=reasons)
        sampled = bool(settings.temperature)
        decoding: dict[str, Any] = {"max_tokens": cap.tokens, "temperature": settings.temperature}
        decoding["seed"] = settings.seed if sampled else None
        if sampled and settings.top_p != 1.0:
            decoding["top_p"] = settings.top_p
        size = settings.batch_size
        if size is None:
            size = find_batch_size(generator.loaded.model, generator.loaded.device.split(", "), cap.tokens)
        identity = generator.identity(decoding, {"batch_size": size})
        # a batch that is rated has rows of its prompts and of several texts each
        measured = settings.batch_size is None and size != ON_PROCESSOR
        if measured:
            rated = max(1, size // (1 + TEXT_ROWS))
        else:
            rated = size
        return cls(generator, identity, cap=cap, batch_size=size, rated_batch=rated)

    def prepare(self, items: Sequence[Item]) -> None:
        """Refuse items of several turns for a checkpoint without a chat template, which marks who says what.

        Raises:
            ConfigError: There is such an item.
        """
        talks = (item for item in items_naming(items, "turns") if item.turns)
        if self._prompter.template is None and (dialogue := next(talks, None)):
            raise ConfigError(
                f"item {dialogue.id!r} has turns, and {self.identity.name} no chat template to write them with: leave "
                "such items out, or name a checkpoint with a chat template"
            )

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        """Return one completion per item, in order."""
        return self.answer_each(items, lambda _index, _completion: None)

    def answer_each(self, items: Sequence[Item], arrived: Arrived) -> list[Completion]:
        """Answer like `answer`, and call `arrived` with index and completion of each item after its batch."""
        generator = self._open()
        assert self._scorer is not None
        done = {}

        def add(index: int, completion: Completion) -> None:
            done[index] = completion
            arrived(index, completion)

        questions: list[tuple[int, Prompt]] = []
        rated: list[tuple[int, Item, Prompt]] = []
        for index, item in enumerate(items):
            try:
                prompt = self._prompt(item)
            except BaseException as error:
                add(index, fault(error))
                continue
            if item.likelihood is None:
                questions.append((index, prompt))
            else:
                rated.append((index, item, prompt))
        questions.sort(key=lambda question: (question[1].group, len(question[1].text), question[0]))
        begun = clock.elapsed()
        try:
            for index, completion, cost in self._scorer.answer(rated):
                self._usage += cost
                add(index, replace(completion, cost=cost))
            for _, group in itertools.groupby(questions, lambda question: question[1].group):
                waiting = [(index, generator.pending(prompt)) for index, prompt in group]
                for index, completion in self._write(generator, waiting):
                    add(index, completion)
        finally:
            self._usage += Usage(seconds=clock.elapsed() - begun)
        return [done[index] for index in range(len(items))]

    @property
    def shared_batch(self) -> int:
        """Number of questions in a batch."""
        return self._batch_size

    @property
    def usage(self) -> Usage:
        """Cost so far: calls, tokens, seconds and estimated FLOPs."""
        return self._usage

    def close(self) -> None:
        """Release memory and devices."""
        super().close()
        self._generator = self._scorer = None
        self._prefix.forget()
        _release()

    @property
    def rates(self) -> bool:
        """True: likelihoods are always available."""
        return True

    def prepare_chats(self) -> None:
        """Raise CheckpointError for a checkpoint without a chat template."""
        if not self._prompter.template:
            raise CheckpointError(
                f"{self._open().info.folder} has no chat template, which a model that works for the run needs; save a "
                "chat model's tokenizer"
            )

    def ask(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        schema: Mapping[str, Any] | None = None,  # noqa: ARG002 - nothing constrains the tokens
        draw: int = 0,
    ) -> Completion:
        """Return the reply to a chat, see the base class; the schema is ignored."""
        generator = self._open()
        begun = clock.elapsed()
        try:
            prompt = self._chat(generator, messages, self.cap.tokens if max_tokens is None else max_tokens)
            answer = generator.pending(replace(prompt, sample=draw))
            generator.generate([answer])
        except BaseException as error:
            return replace(fault(error), cost=Usage(1, seconds=clock.elapsed() - begun))
        reply = self._counted(prompt, generator.generated(answer))
        return replace(reply, cost=replace(reply.cost, seconds=clock.elapsed() - begun))

    def prefer(self, messages: Sequence[Message], candidates: Sequence[str], label: str) -> Preference:
        """Return the log-likelihood of `label` as the reply to the chat, with each candidate added on its own."""
        generator = self._open()
        begun = clock.elapsed()
        unknown = (float("nan"),) * len(candidates)
        if not candidates:
            return Preference(())
        try:
            prompts = []
            for candidate in candidates:
                prompts.append(self._chat(generator, added(messages, candidate), 1))
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

    def _open(self) -> Generator:
        if self._generator is None:
            raise ConfigError(f"model {self.identity.name!r} was closed; load it again")
        return self._generator

    def _chat(self, generator: Generator, messages: Sequence[Message], cap: int) -> Prompt:
        prompter = generator.prompter
        images = tuple((image, message.root) for message in messages for image in message.images)
        if images and prompter.image_token is None:
            raise ConfigError(f"{self.identity.name!r} reads text only; leave the images out")
        chat: Chat = []
        for message in messages:
            parts: Any = message.text
            if prompter.image_token is not None:
                parts = [{"type": "image"} for _ in message.images] + [{"type": "text", "text": message.text}]
            chat.append({"role": message.role, "content": parts})
        text = prompter.render(chat)
        return Prompt(NAME, text, prompter.adds_special_tokens(text), cap, images)

    def request(self, item: Item) -> bytes:
        """Return the rendered prompt with what the tokens of the answer rest on; see the base class.

        An item that cannot be rendered gets no answer, which `answer` reports.
        """
        try:
            prompt = self._prompt(item)
            continuations = item.continuations
        except Exception:  # such as a chat template that does not end
            return super().request(item)
        sent: dict[str, Any] = {"prompt": prompt.text, "special": prompt.special, "images": picture_hashes(item)}
        if item.likelihood is None:
            sent["max_tokens"] = prompt.cap
        else:
            sent["likelihood"] = item.likelihood.to_json()
            sent["continuations"] = [[text.delimiter, text.text, text.after_prompt] for text in continuations]
        return canonical_json(sent).encode("ascii")

    def _prompt(self, item: Item) -> Prompt:
        text = self._prompter.text(item)
        special = self._prompter.adds_special_tokens(text)
        images = tuple((image, item.root) for image in item.images)
        return Prompt(f"item {item.id!r}", text, special, self.cap.of(item), images, sample_of(item))

    def _write(
        self, generator: Generator, waiting: Sequence[tuple[int, PendingAnswer]]
    ) -> Iterator[tuple[int, Completion]]:
        """Yield indices and completions of answers of one group, as they end; others then take their places.

        If a batch fails, its items are answered one by one, so a fault affects one item; where the memory is spent,
        batches become half as large.
        """
        queue = deque(waiting)
        batch: list[tuple[int, PendingAnswer]] = []
        while queue or batch:
            while queue and len(batch) < self._batch_size:
                batch.append(queue.popleft())
            try:
                generator.generate([answer for _, answer in batch])
            except BaseException as error:
                failed = fault(error)
                if len(batch) == 1:
                    yield batch[0][0], failed
                elif out_of_memory(error):
                    self._shrink((len(batch) + 1) // 2)
                    queue.extendleft(reversed(batch))
                else:
                    for pair in batch:
                        yield from self._write(generator, [pair])
                batch = []
            for index, answer in batch:
                if answer.ended:
                    yield index, self._counted(answer.prompt, generator.generated(answer))
            batch = [(index, answer) for index, answer in batch if not answer.ended]

    def _shrink(self, size: int) -> None:
        """Lower the batch size, and say so."""
        _release()
        if size < self._batch_size:
            self._batch_size = size
            self.identity = replace(self.identity, environment={**self.identity.environment, "batch_size": size})
            name = self.identity.name
            _log.warning("%s: out of memory, so its batches are of %d questions from now on", name, size)

    def _counted(self, prompt: Prompt, generated: Generated) -> Completion:
        """Return the answer without its reasoning, and add its cost to the usage."""
        done, reasoning = answered(prompt, generated)
        if reasoning:
            thought = len(self._tokens(self._open(), reasoning, False))
        else:
            thought = 0
        flops = 2.0 * self._parameters * (generated.read + generated.written)
        cost = Usage(1, generated.read, generated.written, thought, 0.0, flops)
        self._usage += cost
        return replace(done, cost=cost, reasoning=reasoning, request=sent_request(prompt.text))

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
        scores = []
        read = 0
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


#: Questions of a batch on a processor, which larger batches keep no busier.
ON_PROCESSOR = 16
#: Most questions of a batch that is found.
MOST = 256
#: Tokens that the prompt of a question is assumed to have.
PROMPT_TOKENS = 1024
#: Share of the free memory that a batch may take; the rest is for what is not counted here.
SHARE = 0.8


def find_batch_size(model: Any, devices: Sequence[str], answer_tokens: int) -> int:
    """Return how many questions the free memory holds beside the loaded weights, at most `MOST`.

    Where it holds fewer, since prompts are longer or pictures large, the batch is halved when the memory is spent.

    Args:
        devices: Devices that hold the model's layers, about as many each.
        answer_tokens: Cap on the tokens of an answer.
    """
    free = []
    for device in devices:
        free.append(free_bytes(device) if device.startswith("cuda") else None)
    counts = [count for count in free if count is not None]
    if len(counts) < len(devices):
        return ON_PROCESSOR
    available = SHARE * len(counts) * min(counts)
    return max(1, min(MOST, int(available / _question_bytes(model, answer_tokens))))


def _question_bytes(model: Any, answer_tokens: int) -> int:
    """Return the bytes of one row: keys and values of all tokens, a layer's work on the prompt, and the logits."""
    config = model.config.get_text_config(decoder=True)
    window = getattr(config, "max_position_embeddings", None) or PROMPT_TOKENS + answer_tokens
    tokens = min(PROMPT_TOKENS + answer_tokens, window)
    heads = config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    keys_and_values = 2 * config.num_hidden_layers * (getattr(config, "num_key_value_heads", None) or heads) * width
    inner = getattr(config, "intermediate_size", None) or 4 * config.hidden_size
    number = int(model.dtype.itemsize)
    each = tokens * keys_and_values + min(tokens, PROMPT_TOKENS) * 3 * inner
    return int(number * each + 3 * 4 * config.vocab_size)


def _release() -> None:
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
