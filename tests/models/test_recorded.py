"""A model whose completions are stored is asked once for each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pytest_adaptive_eval import Item
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.models.base import Completion, Message, Model, Preference, SubjectIdentity, Usage
from pytest_adaptive_eval.models.recorded import RecordedModel
from pytest_adaptive_eval.models.store import CompletionStore

GREEDY = {"temperature": 0.0}


class Talking(Model):
    """A model that holds chats by its number of calls, and rates by length."""

    rates = True
    spent = Usage()

    def __init__(self, checkpoint: str = "hash", decoding: dict[str, Any] = GREEDY) -> None:
        super().__init__(SubjectIdentity("m", checkpoint, decoding))
        self.asked: list[str] = []

    @property
    def usage(self) -> Usage:
        return self.spent

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        self.asked += [item.id for item in items]
        self.spent += Usage(len(items), seconds=2.0)
        return [Completion("yes", cost=Usage(1)) for _ in items]

    def ask(self, messages: Sequence[Message], **_: Any) -> Completion:
        self.asked.append(messages[-1].text)
        status = Status.ERROR if "fail" in messages[-1].text else Status.OK
        return Completion(f"{len(self.asked)}", status, cost=Usage(1))

    def prefer(self, messages: Sequence[Message], candidates: Sequence[str], label: str) -> Preference:
        self.asked.append(label)
        if label == "fail":
            return Preference((float("nan"),) * len(candidates), Status.ERROR, "no likelihoods")
        return Preference(tuple(-float(len(candidate)) for candidate in candidates), usage=Usage(1))


def test_a_chat_is_asked_once_for_each_draw_and_again_after_a_fault() -> None:
    model, store = Talking(), CompletionStore()
    recorded = RecordedModel(model, store, "sue")
    chat = [Message("user", "hello")]
    first = recorded.ask(chat)
    assert (recorded.identity.name, first.reused, first.cost.calls) == ("sue", False, 1)
    for other in (recorded.ask(chat, draw=1), recorded.ask(chat, max_tokens=3), recorded.ask(chat, schema={"a": 1})):
        assert not other.reused
    again = RecordedModel(Talking(), store, "sue").ask(chat)
    assert (again.text, again.reused, again.cost) == ("1", True, first.cost)
    assert len(model.asked) == 4
    for count in (5, 6):
        assert recorded.ask([Message("user", "fail")]).status is Status.ERROR
        assert len(model.asked) == count
    assert not RecordedModel(Talking(checkpoint="other"), store, "sue").ask(chat).reused
    assert not RecordedModel(Talking(), store, "ann").ask(chat).reused


def test_ratings_are_recorded_too() -> None:
    model, store = Talking(), CompletionStore()
    chat = [Message("user", "which?")]
    recorded = RecordedModel(model, store)
    first, again = (recorded.prefer(chat, ["a", "bb"], "yes") for _ in range(2))
    assert (first.scores, first.reused, again.scores, again.reused) == ((-1.0, -2.0), False, (-1.0, -2.0), True)
    assert not recorded.prefer(chat, ["a"], "yes").reused
    for count in (3, 4):
        failed = recorded.prefer(chat, ["a", "bb"], "fail")
        assert (failed.status, failed.detail, len(model.asked)) == (Status.ERROR, "no likelihoods", count)
    assert recorded.rates


def test_items_are_recorded_one_by_one_with_the_cost_of_their_call() -> None:
    model, store = Talking(), CompletionStore()
    items = [Item("a", "A?"), Item("b", "B?")]
    first = RecordedModel(model, store).answer(items[:1])
    both = RecordedModel(model, store).answer(items)
    assert (first[0].cost, model.asked) == (Usage(1, seconds=2.0), ["a", "b"])
    assert [answer.reused for answer in both] == [True, False]
    assert sum((answer.cost for answer in both), Usage()) == model.usage
    asked, again = RecordedModel(model, store).answer([Item("c", "C?"), Item("d", "C?")])
    assert (asked.text, asked.cost, again.text, again.cost) == ("yes", Usage(1, seconds=2.0), "yes", Usage())
    assert model.asked == ["a", "b", "c"]
    drawn = replace(items[0], meta={"sample": 1})
    assert not RecordedModel(model, store).answer([drawn])[0].reused


@pytest.mark.parametrize(
    ("settings", "expected"),
    [({}, (True, 0, 0)), ({"checkpoint": ""}, (False, 1, 1)), ({"decoding": {"temperature": 0.7}}, (False, 1, 1))],
)
def test_replies_of_other_runs_cost_nothing_and_are_taken_of_models_that_may_be_reused(
    settings: dict[str, Any], expected: tuple[bool, int, int]
) -> None:
    shared = CompletionStore(exclusive=False)
    for _ in range(2):
        model = Talking(**settings)
        reply = RecordedModel(model, CompletionStore(shared=shared)).ask([Message("user", "hello")])
    assert (reply.reused, reply.cost.calls, len(model.asked)) == expected
    assert len(shared) == expected[0]


@pytest.mark.parametrize(("checkpoint", "reused"), [("hash", True), ("", False)])
def test_replies_of_a_model_that_nothing_identifies_are_of_one_run(checkpoint: str, reused: bool) -> None:
    store = CompletionStore()
    chat = [Message("user", "who?")]
    first = RecordedModel(Talking(checkpoint=checkpoint), store)
    first.ask(chat)
    assert first.ask(chat).reused  # within the run it is asked once
    assert RecordedModel(Talking(checkpoint=checkpoint), store).ask(chat).reused is reused
