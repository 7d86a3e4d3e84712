"""Which answers an interview keeps for later runs, and which a test finds, without a run of pytest."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from pytest_adaptive_eval import Item
from pytest_adaptive_eval.evaluation.spending import Spending
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.items.likelihood import ChoiceLikelihood
from pytest_adaptive_eval.models.base import Completion, Model, RequestLog, SubjectIdentity
from pytest_adaptive_eval.models.caps import Cap
from pytest_adaptive_eval.models.store import CompletionStore
from pytest_adaptive_eval.plugin.ask.answers import Answers
from pytest_adaptive_eval.plugin.ask.open_questions import OpenQuestion, QuestionState, TestFinding
from pytest_adaptive_eval.plugin.ask.random_states import GeneratorStates
from pytest_adaptive_eval.records.run_record import Administration


class Asked(Model):
    """Answers with the number of the call."""

    def __init__(self, identity: SubjectIdentity) -> None:
        super().__init__(identity)
        self.calls = 0

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        self.calls += len(items)
        return [Completion(f"call {self.calls}") for _ in items]


def question(item: Item, *, sample: int = 0) -> OpenQuestion:
    return OpenQuestion(0, sample, item, Administration(1, item.id, item.content_hash, item.formats[0], sample))


def answers_of(subject: Model | None, path: Path | None = None) -> Answers:
    """Answers of an interview whose tests do nothing but ask their items."""
    evaluation: Any = SimpleNamespace(judge=None, spending=Spending())
    answers = Answers(evaluation, cast(Any, None), TestFinding(), asks_items=True, judged=False)
    answers.subject = subject
    if subject is not None:
        answers.identity = subject.identity
    answers.journal = None if path is None else CompletionStore(path)
    return answers


def subject(**changes: Any) -> Asked:
    return Asked(replace(SubjectIdentity("m", "checkpoint"), **changes))


def keep(answers: Answers, asked: OpenQuestion, completion: Completion) -> None:
    """Let a completion come from a call of this run."""
    answers.keys(asked)
    answers.questions.add(asked)
    answers.questions.send(asked, 0.0)
    answers.arrived(asked, completion)


def kept_again(path: Path, item: Item, completion: Completion) -> tuple[Completion | None, OpenQuestion]:
    """What a later run finds of a completion, and its question."""
    earlier = answers_of(subject(), path)
    keep(earlier, question(item), completion)
    earlier.close()
    later, again = answers_of(subject(), path), question(item)
    later.restore(again)
    later.close()
    return again.completion, again


@pytest.mark.parametrize(
    ("completion", "kept"),
    [
        (Completion("seven \ud800"), True),
        (Completion("no", Status.REFUSED, detail="policy"), True),
        (Completion("half", Status.TRUNCATED), True),
        (Completion("", score=0.25), True),
        (Completion("seven", reused=True), True),
        (Completion("", Status.ERROR), False),
        (Completion("", Status.TIMEOUT), False),
    ],
)
def test_a_completion_is_kept_unless_a_later_run_should_ask_again(
    completion: Completion, kept: bool, tmp_path: Path
) -> None:
    again, asked = kept_again(tmp_path / "journal.sqlite", Item("a", "?", "7"), completion)
    assert again == (completion if kept else None)
    assert (again is not None and again.reused) is completion.reused
    assert asked.administration.resumed is kept
    assert asked.state is (QuestionState.ARRIVED if kept else QuestionState.DRAWN)


def test_the_score_of_likelihoods_is_computed_again_and_they_are_recorded(tmp_path: Path) -> None:
    item = Item("c", "Sky?", "blue", "choice", choices=("red", "blue"), likelihood=ChoiceLikelihood("pmi"))
    result = item.likelihood_result([-2.0, -1.0, -1.0, -1.0])
    whole = Completion(result.text, score=result.score, likelihood=result.facts)
    again, asked = kept_again(tmp_path / "journal.sqlite", item, whole)
    assert again == whole
    model = subject()
    answers = answers_of(model)
    answers.questions.add(asked)
    answers.current = asked
    assert answers.complete(model, item) == whole
    assert asked.administration.likelihood == result.facts


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"answer": "8", "grader": "numeric", "category": ("sums",)}, True),
        ({"prompt": "Which?"}, False),
        ({"messages": ({"role": "user", "content": "?"},)}, False),
        ({"turns": ("And then?",)}, False),
        ({"choices": ("7", "8")}, False),
        ({"meta": {"max_tokens": 9}}, False),
        ({"grader": "schema", "answer": "{}"}, False),
    ],
)
def test_a_completion_is_kept_by_what_is_asked_and_not_by_how_it_is_graded(
    change: dict[str, Any], same: bool, tmp_path: Path
) -> None:
    asked, item = subject(), Item("a", "?", "7")
    asked.cap = Cap(64, chosen=False)
    answers = answers_of(asked, tmp_path / "journal.sqlite")
    keep(answers, question(item), Completion("7"))
    assert answers.restore(question(replace(item, **change))) is same
    assert not answers.restore(question(item, sample=1))
    assert not answers.restore(question(replace(item, id="b")))
    answers.close()


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"checkpoint": "other"}, False),
        ({"decoding": {"temperature": 1}}, False),
        ({"name": "other"}, False),
        ({"environment": {"dtype": "bfloat16"}}, False),
        ({"environment": {"device": "cuda"}}, True),
    ],
)
def test_another_subject_or_decoding_has_answers_of_its_own(
    changes: dict[str, Any], same: bool, tmp_path: Path
) -> None:
    path, item = tmp_path / "journal.sqlite", Item("a", "?", "7")
    earlier = answers_of(subject(), path)
    keep(earlier, question(item), Completion("7"))
    earlier.close()
    later = answers_of(subject(**changes), path)
    assert later.restore(question(item)) is same
    later.close()


def test_a_folder_by_another_name_is_the_same_subject_where_its_files_were_hashed(tmp_path: Path) -> None:
    path, item = tmp_path / "journal.sqlite", Item("a", "?", "7")
    earlier = answers_of(subject(hashes_files=True), path)
    keep(earlier, question(item), Completion("7"))
    earlier.close()
    later = answers_of(subject(hashes_files=True, name="a copy"), path)
    assert later.restore(question(item))
    later.close()


def test_without_a_journal_nothing_is_kept_and_nothing_is_found() -> None:
    answers, asked = answers_of(subject()), question(Item("a", "?", "7"))
    keep(answers, asked, Completion("7"))
    assert not answers.restore(question(asked.item))
    answers.close()


def test_a_test_finds_the_answer_to_its_own_question_by_the_item_or_its_bare_prompt() -> None:
    model = subject()
    answers, asked = answers_of(model), question(Item("a", "How many?", "7"))
    keep(answers, asked, Completion("seven"))
    answers.current = asked
    assert answers.complete(model, asked.item).text == "seven"
    assert answers.complete(model, Item("", "How many?")).text == "seven"
    assert answers.complete(model, Item("b", "How many?")).text == "call 1"
    assert answers.complete(model, Item("", "Think. How many?")).text == "call 2"
    assert answers.complete(subject(), asked.item).text == "call 1"  # another model's answer is its own


def test_a_body_that_asks_otherwise_finds_its_own_requests_again(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    for calls in (2, 0):
        model = subject()
        answers = answers_of(model, path)
        answers.current = question(Item("a", "How many?", "7"))
        texts = [answers.complete(model, Item("", prompt)).text for prompt in ("Think.", "And now?")]
        assert (texts, model.calls) == (["call 1", "call 2"], calls)
        answers.close()


def test_the_record_has_a_hash_of_what_the_model_said_and_not_of_what_the_test_made_of_it() -> None:
    hashes = set()
    for text in ("The answer is 7.", "The answer is 7.", "7"):
        model = subject()
        answers, asked = answers_of(model), question(Item("a", "How many?", "7"))
        keep(answers, asked, Completion(text))
        answers.current = asked
        answers.complete(model, asked.item)
        hashes.add(asked.administration.said)
    assert len(hashes) == 2


def test_a_resumed_run_has_the_random_states_of_the_run_that_began(tmp_path: Path) -> None:
    draws = []
    for _ in range(3):
        answers, states = answers_of(subject(), tmp_path / "journal.sqlite"), GeneratorStates("interview")
        with states.in_use():
            own = states.seed
            answers.share_seed(states)
            states.begin("q1", 0, "call")
            draws.append((states.seed == own, random.random(), np.random.random()))
        answers.close()
        random.random()  # else the next run would have the same seed
    assert [first for first, *_ in draws] == [True, False, False]
    assert draws[0][1:] == draws[1][1:] == draws[2][1:]


def test_a_run_that_keeps_nothing_has_its_own_random_states() -> None:
    states = GeneratorStates("interview")
    with states.in_use():
        random.random()
        before = random.getstate()
        answers_of(subject()).share_seed(states)
        assert random.getstate() == before


class Own:
    """A model that is no `Model`, and counts what it is asked."""

    def __init__(self) -> None:
        self.count = 0

    def generate(self, prompt: Any, **_options: Any) -> Any:
        self.count += 1
        return {"no": "text"} if prompt == "object" else f"{self.count}"


def watching(path: Path, item: str = "a") -> tuple[Answers, Own]:
    answers, model = answers_of(None, path), Own()
    answers.current = question(Item(item, "?", "7"))
    assert answers.watch(model, SubjectIdentity("own", "checkpoint"))
    return answers, model


def test_texts_of_a_models_own_generate_are_kept_for_equal_calls_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    for counts in (3, 0):
        answers, model = watching(path)
        said = [model.generate("one"), model.generate("one"), model.generate(Item("i", "one"), seed=3)]
        assert (said, model.count) == (["1", "2", "3"], counts)
        answers.close()
    answers, model = watching(path, "b")
    with RequestLog().active() as log:
        assert (model.generate("one"), model.count) == ("1", 1), "another question has answers of its own"
    assert log.asks(Item("", "one"))
    answers.close()
    assert model.generate("one") == "2"
    assert "generate" not in vars(model)


@pytest.mark.parametrize("argument", ["object", object()])
def test_what_is_no_text_or_no_data_is_asked_again(argument: Any, tmp_path: Path) -> None:
    for _ in range(2):
        answers, model = watching(tmp_path / "journal.sqlite")
        model.generate(argument)
        assert model.count == 1
        answers.close()


@pytest.mark.parametrize("model", [lambda prompt: prompt, type("Closed", (), {"__slots__": (), "generate": str})()])
def test_a_model_that_cannot_be_watched_says_so(model: Any) -> None:
    answers = answers_of(None)
    assert not answers.watch(model, SubjectIdentity("own", "checkpoint"))
    assert "answers of 'own' are not kept for a later run" in answers.unkept
