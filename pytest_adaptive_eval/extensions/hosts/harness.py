"""Ask a model of lm-evaluation-harness, with any of its backends, by generation or by likelihood.

A request has the form in which the harness's own tasks ask: ``generate_until`` with a prompt, ``loglikelihood`` with a
prompt and a continuation, ``loglikelihood_rolling`` with a text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.registry import get_model
from lm_eval.utils import simple_parse_args_string

from pytest_adaptive_eval.errors import BankError, CheckpointError, ConfigError
from pytest_adaptive_eval.extensions.hosts.subjects import model_name
from pytest_adaptive_eval.items.item import Item, Status, items_naming
from pytest_adaptive_eval.items.likelihood import Continuation
from pytest_adaptive_eval.models.base import Completion, Model, SubjectIdentity
from pytest_adaptive_eval.models.caps import Cap, cap_of
from pytest_adaptive_eval.models.checkpoint.folder import checkpoint_hash
from pytest_adaptive_eval.text import shown_command


class HarnessModel(Model):
    """A model of lm-evaluation-harness.

    The harness returns bare texts, so answers cut off at the cap are not recognised.

    Args:
        until: Texts that end an answer.
        chat: Whether prompts go through the model's chat template; messages always do.
    """

    cap: Cap
    rates_texts = True
    varies = False

    def __init__(
        self,
        model: Any,
        identity: SubjectIdentity,
        *,
        cap: Cap | None = None,
        until: Sequence[str] = (),
        chat: bool = False,
    ) -> None:
        super().__init__(identity)
        self.cap = cap_of(None, reasons=False) if cap is None else cap
        self._model, self._until, self._chat = model, list(until), chat

    @classmethod
    def load(
        cls,
        backend: str,
        arguments: str,
        *,
        max_tokens: int | None = None,
        until: Sequence[str] = (),
        chat: bool = False,
    ) -> HarnessModel:
        """Create the harness's model.

        Args:
            backend: As of ``lm_eval --model``, such as ``hf`` or ``vllm``.
            arguments: As of ``--model_args``, such as ``pretrained=FOLDER,dtype=float32``.
            max_tokens: Cap on the tokens of an answer, 1024 by default; without it an item's ``meta.max_tokens`` comes
                first.

        Raises:
            ConfigError: The harness has no such backend, it cannot be created, or an option is malformed.
        """
        cap = cap_of(max_tokens, reasons=False)
        if isinstance(until, str) or not all(isinstance(text, str) and text for text in until):
            raise ConfigError(f'until is {until!r:.80}, expected a list of texts such as until = ["\\n\\n"]')
        if not isinstance(chat, bool):
            raise ConfigError(f"chat is {chat!r:.80}, expected true or false")
        settings = simple_parse_args_string(arguments)
        if settings.get("trust_remote_code"):
            raise ConfigError(f"lm-eval:{backend}: trust_remote_code would run code of the checkpoint; leave it out")
        shown = shown_command([f"{name}={value}" for name, value in settings.items()])
        try:
            model = get_model(backend).create_from_arg_string(arguments)
        except Exception as error:  # every backend has errors of its own
            raise ConfigError(
                f"lm-eval:{backend}#{','.join(shown)} cannot be created ({type(error).__name__}: {error!s:.300}); try "
                "the same --model and --model_args with lm_eval"
            ) from error
        decoding = {
            "backend": backend,
            "arguments": dict(word.partition("=")[::2] for word in shown),
            "max_tokens": cap.tokens,
            "until": list(until),
            "chat": chat,
            "temperature": 0,
        }
        identity = SubjectIdentity(model_name(backend, arguments), _hash(settings.get("pretrained")), decoding)
        return cls(model, identity, cap=cap, until=until, chat=chat)

    def prepare(self, items: Sequence[Item]) -> None:
        """Refuse pictures, which this interface of the harness does not take."""
        if pictured := next((item for item in items_naming(items, "images") if item.images), None):
            raise ConfigError(
                f"item {pictured.id!r} has an image, and models of lm-evaluation-harness are asked by text: leave such "
                "items out"
            )

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        """Return one completion per item, in order."""
        written = [index for index, item in enumerate(items) if item.likelihood is None]
        rated = [index for index, item in enumerate(items) if item.likelihood is not None]
        done = dict(zip(written, _one_by_one(self._write, [items[index] for index in written]), strict=True))
        done.update(zip(rated, _one_by_one(self._rate, [items[index] for index in rated]), strict=True))
        return [done[index] for index in range(len(items))]

    def _write(self, items: Sequence[Item]) -> list[Completion]:
        requests = []
        for index, item in enumerate(items):
            cap = self.cap.of(item)
            settings = {"until": list(self._until), "max_gen_toks": cap, "do_sample": False, "temperature": 0.0}
            requests.append(Instance("generate_until", {}, (self._prompt(item), settings), index))
        return [Completion(str(text)) for text in self._model.generate_until(requests)]

    def _rate(self, items: Sequence[Item]) -> list[Completion]:
        """Return the completions of items that are scored by likelihood; all texts are rated in two calls."""
        texts = [(item, text) for item in items for text in item.continuations]
        logs = iter(self._log_likelihoods(texts))
        completions = []
        for item in items:
            rated = [next(logs) for _ in item.continuations]
            if all(map(math.isfinite, rated)):
                result = item.likelihood_result(rated)
                completions.append(Completion(result.text, score=result.score, likelihood=result.facts))
            else:
                detail = "the log-likelihood of a choice or a text is not finite"
                completions.append(Completion("", Status.ERROR, detail=detail))
        return completions

    def _log_likelihoods(self, texts: Sequence[tuple[Item, Continuation]]) -> list[float]:
        """Return the log-likelihood of each text: an item's own is rated in windows, others after their prompt."""
        after, whole = [], []
        for n, (item, text) in enumerate(texts):
            if not text.after_prompt and text.text == item.prompt:
                whole.append(Instance("loglikelihood_rolling", {}, (text.text,), n))
            else:
                joined = text.text if text.after_prompt and self._in_chat(item) else f"{text.delimiter}{text.text}"
                prompt = self._prompt(item) if text.after_prompt else ""
                after.append(Instance("loglikelihood", {}, (prompt, joined), n))
        logs = [math.nan] * len(texts)
        if after:
            for request, (log, _) in zip(after, self._model.loglikelihood(after), strict=True):
                logs[request.idx] = float(log)
        if whole:
            for request, log in zip(whole, self._model.loglikelihood_rolling(whole), strict=True):
                logs[request.idx] = float(log[0] if isinstance(log, tuple) else log)
        return logs

    def _in_chat(self, item: Item) -> bool:
        return self._chat or bool(item.messages)

    def _prompt(self, item: Item) -> str:
        if not self._in_chat(item):
            return item.prompt
        messages = [dict(message) for message in item.messages] or [{"role": "user", "content": item.prompt}]
        return str(self._model.apply_chat_template(messages))


def _hash(folder: object) -> str:
    """Return the hash of a checkpoint folder; empty for a model whose weights cannot be seen."""
    if not isinstance(folder, str) or not Path(folder).is_dir():
        return ""
    try:
        return checkpoint_hash(folder)
    except CheckpointError:
        return ""


def _one_by_one(answer: Callable[[Sequence[Item]], list[Completion]], items: Sequence[Item]) -> list[Completion]:
    """Answer all items. If that fails, answer them one by one, which limits a fault to one item."""
    if not items:
        return []
    try:
        return answer(items)
    except (BankError, ConfigError):
        raise
    except Exception as error:  # of any backend
        if len(items) == 1:
            return [Completion("", Status.ERROR, detail=f"{type(error).__name__}: {error}")]
    return [completion for item in items for completion in _one_by_one(answer, [item])]
