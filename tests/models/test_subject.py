"""What every subject does with requests, texts and scores."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_adaptive_eval.errors import ConfigError, Unscored
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.models import Completion, Model, SubjectIdentity, load_model
from pytest_adaptive_eval.models.base import Message, RequestLog, Usage, asks_alike


class Counted(Model):
    """Answers with the number of the call."""

    def __init__(self, *completions: Completion) -> None:
        super().__init__(SubjectIdentity("counted"))
        self.given = completions
        self.batches: list[list[str]] = []

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        self.batches.append([item.id for item in items])
        return [self.given[int(item.id)] if item.id else Completion("fresh") for item in items]


@pytest.mark.parametrize(
    ("request_item", "alike"),
    [
        (Item("0", "x", answer="7"), True),
        (Item("", "x"), True),
        (Item("0", "x", meta={"sample": 2}), True),
        (Item("1", "x"), False),
        (Item("", "y"), False),
        (Item("", "x", images=("p.png",)), False),
        (Item("", messages=({"role": "user", "content": "x"},)), False),
    ],
)
def test_a_request_is_that_of_an_item_by_its_id_or_as_its_bare_prompt(request_item: Item, alike: bool) -> None:
    assert asks_alike(Item("0", "x"), request_item) is alike


def test_a_picture_is_told_by_its_path() -> None:
    item = Item("0", "x", images=("p.png",), root="bank")
    assert asks_alike(item, Item("", "x", images=("bank/p.png",)))
    assert not asks_alike(item, Item("", "x"))


@pytest.mark.parametrize(
    ("completion", "raised"),
    [
        (Completion("", Status.TRUNCATED, detail="64 tokens"), "truncated: 64 tokens"),
        (Completion(" ", Status.REFUSED, detail="no"), "refused: no"),
        (Completion("\n"), "empty"),
        (Completion("half", Status.ERROR, detail="gone"), "error: gone"),
        (Completion("", Status.TIMEOUT), "timeout"),
    ],
)
def test_a_completion_without_an_answer_is_raised(completion: Completion, raised: str) -> None:
    for ask in ("generate", "score"):
        with pytest.raises(Unscored, match=raised) as caught:
            getattr(Counted(completion), ask)(Item("0", "x"))
        assert caught.value.text == completion.text


def test_a_truncated_answer_is_graded_as_it_is() -> None:
    subject = Counted(Completion("half", Status.TRUNCATED), Completion("half", Status.TRUNCATED))
    log = RequestLog()
    with log.active():
        assert subject.generate(Item("0", "x")) == "half"
        assert subject.score(Item("1", "x", answer="half")) == 1.0
    assert [(source is subject, completion.status) for source, completion in log.taken] == [
        (True, Status.TRUNCATED)
    ] * 2


def test_a_completion_without_text_and_score_is_empty() -> None:
    assert Completion(" \n").status is Status.EMPTY
    assert Completion("", score=0.0).status is Status.OK
    assert Completion("", Status.REFUSED).status is Status.REFUSED


def test_a_recorded_score_is_no_text() -> None:
    subject = Counted(Completion("", score=0.5), Completion("7"))
    with pytest.raises(ConfigError, match=r"model\.score\(item\)"):
        subject.generate(Item("0", "x"))
    assert subject.score(Item("0", "x")) == 0.5
    assert subject.score(Item("1", "x", answer="7")) == 1.0


def test_identity_is_told_by_its_decoding() -> None:
    one, two = SubjectIdentity("m", "c", {"seed": 1}), SubjectIdentity("m", "c", {"seed": 2}, {"device": "cpu"})
    assert one.decoding_hash != two.decoding_hash
    assert json.loads(json.dumps(two.to_json()))["environment"] == {"device": "cpu"}


@pytest.mark.parametrize("spec", ["organisation/model", "gpt-4", "", "scores.csv"])
def test_a_spec_that_names_nothing_says_what_would(spec: str) -> None:
    with pytest.raises(ConfigError, match=r"checkpoint folder \(nothing is downloaded\), http:"):
        load_model(spec)


def test_a_checkpoint_without_its_libraries_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pytest_adaptive_eval.models.checkpoint.model", None)
    with pytest.raises(ConfigError, match=r'install "pytest-adaptive-eval\[hf\]"'):
        load_model(str(tmp_path))


class Echo(Model):
    """Answers with the number of messages that it reads and the last of them; refuses `refused`."""

    def __init__(self, refused: str = "") -> None:
        super().__init__(SubjectIdentity("echo"))
        self.batches: list[list[str]] = []
        self.refused = refused

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        said = [[str(m["content"]) for m in item.messages] or [item.prompt] for item in items]
        self.batches.append([texts[-1] for texts in said])
        return [
            Completion("", Status.REFUSED, detail="no")
            if texts[-1] == self.refused
            else Completion(f"{len(texts)} {texts[-1]}", cost=Usage(calls=1))
            for texts in said
        ]


TURNED = Item("t", "one", "x", turns=("two", "three"))


def test_each_turn_is_a_call_with_the_items_that_still_have_one() -> None:
    subject = Echo()
    arrived: list[tuple[int, str]] = []
    short = Item("s", "alone", "x")
    items = [short, TURNED, Item("u", "eins", turns=("zwei",))]
    subject.begin([(item, 0) for item in items], lambda n, c: arrived.append((n, c.text)))
    assert subject.batches == [["alone", "one", "eins"], ["two", "zwei"], ["three"]]
    assert [n for n, _ in arrived] == [0, 2, 1]
    assert dict(arrived)[1] == TURNED.transcript(["1 one", "3 two", "5 three"])
    assert dict(arrived)[0] == "1 alone"


def test_the_cost_of_an_item_is_that_of_all_its_turns() -> None:
    assert Echo().complete(TURNED).cost == Usage(calls=3)


def test_a_turn_without_an_answer_ends_its_item() -> None:
    subject = Echo(refused="two")
    with pytest.raises(Unscored, match="no"):
        subject.generate(TURNED)
    assert subject.batches == [["one"], ["two"]]


def test_a_recorded_score_stands_for_all_turns() -> None:
    subject = Counted(Completion("", score=0.5))
    assert subject.score(replace(TURNED, id="0")) == 0.5
    assert subject.batches == [["0"]]


def test_a_model_that_answers_messages_holds_chats() -> None:
    model = Echo()
    chat = [Message("system", "be kind"), Message("user", "hello")]
    assert model.ask(chat, max_tokens=5).text == "2 hello"
    shown = model.ask([Message("user", "what?", ("a.png",))])
    assert (shown.status, shown.detail) == (Status.ERROR, "'echo' is shown no pictures in a chat")
    assert not model.rates
    rated = model.prefer(chat, ["a", "b"], "yes")
    assert (len(rated.scores), rated.status) == (2, Status.ERROR)
