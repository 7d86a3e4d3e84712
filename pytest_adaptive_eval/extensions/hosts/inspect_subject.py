"""Tasks of Inspect as subjects: solvers, tools, agents and several turns answer the items of a bank."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pytest_adaptive_eval.checks import check_faults
from pytest_adaptive_eval.items.item import Item, Status, items_naming
from pytest_adaptive_eval.models.base import Completion, Model, SubjectIdentity

#: Status of an answer by the reason for which Inspect says that it ended.
_STOPS = {"max_tokens": Status.TRUNCATED, "model_length": Status.TRUNCATED, "content_filter": Status.REFUSED}
#: Status of an answer by the limit of Inspect that ended its sample, which else cut it.
_LIMITS = {"time": Status.TIMEOUT, "working": Status.TIMEOUT, "operator": Status.NOT_RUN}


class InspectModel(Model):
    """A task of Inspect that answers items: its solver, with tools, agents and turns, asks the model.

    An item with the id of one of the task's samples is asked as that sample, with its files, sandbox and metadata;
    other items by their prompt or messages. The last answer is graded as the item says, or by the task's scorer.

    Args:
        model: As of ``inspect_ai.eval``.
        name: Name of the subject in records and reports; the model's by default.
        checkpoint: Hash of everything that determines the answers, without which no answer of an earlier run is reused.
        scorer: Name of the task's scorer whose values count, in place of the items' graders.
        **options: Further options of ``inspect_ai.eval``, such as ``max_connections`` or ``message_limit``.
    """

    def __init__(
        self, task: Any, model: Any, *, name: str = "", checkpoint: str = "", scorer: str = "", **options: Any
    ) -> None:
        decoding = {"task": str(task.name), "scorer": scorer, **{key: str(value) for key, value in options.items()}}
        super().__init__(SubjectIdentity(name or str(model), checkpoint, decoding))
        self._task = task
        self._model = model
        self._scorer = scorer
        self._options = options
        self._samples = {str(sample.id): sample for sample in task.dataset if sample.id is not None}

    def request(self, item: Item) -> bytes:
        """Return the item, or the input of the sample with its id; see the base class."""
        sample = self._samples.get(item.id)
        if sample is None:
            asked = ""
        else:
            asked = f"{item.id}\n{sample.input!r}\n"
        return asked.encode("utf-8", "surrogatepass") + super().request(item)

    def prepare(self, items: Sequence[Item]) -> None:
        """Refuse pictures of items that are not samples of the task, and turns that the task would not ask."""
        check_faults(self._item_faults(items))

    def _item_faults(self, items: Sequence[Item]) -> Iterator[str]:
        for item in items_naming(items, "images"):
            if item.images and item.id not in self._samples:
                yield (
                    f"item {item.id!r} has an image, and the task {self._task.name!r} has no sample of this id: leave "
                    "such items out, or give the samples the ids of the items"
                )
        why, advice = "sample of the same id is", "rename the item"
        if self._scorer:
            why = f"scorer {self._scorer!r} scores"
            advice = "omit scorer"
        for item in items_naming(items, "turns"):
            if item.turns and (self._scorer or item.id in self._samples):
                yield (
                    f"item {item.id!r} has turns, and the task's {why} one turn: remove the item's turns and let the "
                    f"task's solver ask them, or {advice}"
                )

    @property
    def no_reuse(self) -> str:
        """Reason for which agents and tools run again."""
        return "agents and tools of Inspect run again"

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        """Return one completion per item, in order."""
        import inspect_ai
        from inspect_ai.dataset import MemoryDataset

        samples = []
        for position, item in enumerate(items):
            samples.append(self._sample(item, str(position)))
        task = copy.copy(self._task)  # task_with changes the task that it is given
        task = inspect_ai.task_with(task, dataset=MemoryDataset(samples), early_stopping=None, epochs=1)
        options = {"fail_on_error": False, "display": "none", "score": bool(self._scorer), **self._options}
        with tempfile.TemporaryDirectory() as logs:
            (log,) = inspect_ai.eval(task, model=self._model, log_dir=logs, **options)
            done = {str(sample.id): sample for sample in log.samples or ()}  # read from the file
        why = log.error.message if log.error else "the task ended before it was asked"
        return [
            self._completion(done[str(position)])
            if str(position) in done
            else Completion("", Status.ERROR, detail=f"Inspect: {why:.300}")
            for position in range(len(items))
        ]

    def _sample(self, item: Item, name: str) -> Any:
        from inspect_ai.dataset import Sample
        from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser

        if item.id in self._samples:
            return self._samples[item.id].model_copy(update={"id": name})
        kinds = {"system": ChatMessageSystem, "assistant": ChatMessageAssistant}
        chat = []
        for turn in item.messages:
            chat.append(kinds.get(turn["role"], ChatMessageUser)(content=turn["content"]))
        return Sample(id=name, input=chat or item.prompt, target=list(item.answers), choices=list(item.choices) or None)

    def _completion(self, sample: Any) -> Completion:
        if sample.error is not None:
            return Completion("", Status.ERROR, detail=f"Inspect: {sample.error.message:.300}")
        text = sample.output.completion
        status = _STOPS.get(sample.output.stop_reason or "", Status.OK)
        detail = ""
        if sample.limit:
            status = _LIMITS.get(sample.limit.type, Status.TRUNCATED)
            detail = f"Inspect: the sample met its limit of {sample.limit.type}"
        completion = Completion(text, status, detail=detail)
        if completion.status.infrastructure or not self._scorer:
            return completion
        from inspect_ai.scorer import value_to_float

        scores = sample.scores or {}
        if self._scorer not in scores:
            scorers = ", ".join(scores) or "none"
            detail = f"Inspect: no score of {self._scorer!r}; found: {scorers}"
            return replace(completion, status=Status.ERROR, detail=detail)
        return replace(completion, score=min(max(value_to_float()(scores[self._scorer].value), 0.0), 1.0))
