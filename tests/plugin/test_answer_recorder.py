"""Which answers the recorder of an interview stores for later runs, without a run of pytest."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from pytest_adaptive_eval import Item
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.items.likelihood import ChoiceLikelihood
from pytest_adaptive_eval.models.base import Completion, RequestLog, SubjectIdentity
from pytest_adaptive_eval.models.caps import Cap
from pytest_adaptive_eval.models.store import CompletionStore
from pytest_adaptive_eval.plugin.ask.answer_recorder import AnswerRecorder
from pytest_adaptive_eval.plugin.ask.question import AskedItem
from pytest_adaptive_eval.plugin.ask.random_states import GeneratorStates
from pytest_adaptive_eval.records.run_record import Administration


def asked(item: Item, *, sample: int = 0) -> Any:
    """What the recorder reads of a question that has run."""
    value = AskedItem(item, sample)
    administration = Administration(1, item.id, item.content_hash, item.formats[0], sample)
    return SimpleNamespace(asked=value, administration=administration, fault="", request=None, requests=RequestLog())


SUBJECT = SimpleNamespace(identity=SubjectIdentity("m", "checkpoint"), cap=None)


def keeping(path: Path) -> AnswerRecorder:
    recorder = AnswerRecorder()
    recorder.subject, recorder.journal = cast(Any, SUBJECT), CompletionStore(path)
    return recorder


def found(recorder: AnswerRecorder, test: Any) -> Completion | None:
    return recorder.lookup(test, recorder.request(test))


def store(recorder: AnswerRecorder, test: Any, completion: Completion) -> None:
    recorder.store(test, recorder.request(test), completion)


def kept_again(path: Path, item: Item, completion: Completion) -> tuple[Completion | None, Any]:
    """What a later run finds of a completion, and its question."""
    earlier, test = keeping(path), asked(item)
    store(earlier, test, completion)
    earlier.close()
    later = keeping(path)
    again = found(later, test)
    later.close()
    return again, test


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
    again, test = kept_again(tmp_path / "journal.sqlite", Item("a", "?", "7"), completion)
    assert again == (completion if kept else None)
    assert (again is not None and again.reused) is completion.reused
    assert test.administration.resumed is kept


def test_the_score_of_likelihoods_is_computed_again_and_they_are_recorded(tmp_path: Path) -> None:
    item = Item("c", "Sky?", "blue", "choice", choices=("red", "blue"), likelihood=ChoiceLikelihood("pmi"))
    result = item.likelihood_result([-2.0, -1.0, -1.0, -1.0])
    whole = Completion(result.text, score=result.score, likelihood=result.facts)
    again, test = kept_again(tmp_path / "journal.sqlite", item, whole)
    assert again == whole
    recorder = AnswerRecorder()
    recorder.current = test
    assert recorder.complete(cast(Any, SimpleNamespace(pop_completion=lambda _: whole)), item) == whole
    assert test.administration.likelihood == result.facts


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"answer": "8", "grader": "numeric", "category": ("sums",)}, True),
        ({"prompt": "Which?"}, False),
        ({"messages": ({"role": "user", "content": "?"},)}, False),
        ({"turns": ("And then?",)}, False),
        ({"choices": ("7", "8")}, False),
        ({"meta": {"max_tokens": 9}}, False),
    ],
)
def test_a_completion_is_kept_by_what_is_asked_and_not_by_how_it_is_graded(
    change: dict[str, Any], same: bool, tmp_path: Path
) -> None:
    recorder, item = keeping(tmp_path / "journal.sqlite"), Item("a", "?", "7")
    store(recorder, asked(item), Completion("7"))
    assert (found(recorder, asked(replace(item, **change))) is not None) is same
    assert found(recorder, asked(item, sample=1)) is None
    assert found(recorder, asked(replace(item, id="b"))) is None
    recorder.close()


def test_another_decoding_or_cap_is_another_request(tmp_path: Path) -> None:
    recorder, item = keeping(tmp_path / "journal.sqlite"), Item("a", "?", "7")
    store(recorder, asked(item), Completion("7"))
    identity = SUBJECT.identity
    for other in (
        SimpleNamespace(identity=replace(identity, checkpoint="other"), cap=None),
        SimpleNamespace(identity=replace(identity, decoding={"temperature": 1}), cap=None),
        SimpleNamespace(identity=identity, cap=Cap(9, chosen=True)),
    ):
        recorder.subject = cast(Any, other)
        assert found(recorder, asked(item)) is None
    recorder.close()


def test_without_a_journal_nothing_is_kept_and_nothing_is_found() -> None:
    recorder, test = AnswerRecorder(), asked(Item("a", "?", "7"))
    recorder.subject = cast(Any, SUBJECT)
    store(recorder, test, Completion("7"))
    assert found(recorder, test) is None
    assert not recorder.restore(test)
    recorder.close()


def test_a_later_run_asks_only_what_an_earlier_one_has_no_completion_of(tmp_path: Path) -> None:
    def restore(item: Item, _sample: int, completion: Completion) -> None:
        restored[item.id] = completion.text

    tests = [asked(Item(name, f"{name}?", "7")) for name in ("kept", "failed", "new")]
    earlier, restored = keeping(tmp_path / "journal.sqlite"), dict[str, str]()
    store(earlier, tests[0], Completion("seven"))
    store(earlier, tests[1], Completion("", Status.ERROR))
    earlier.close()
    later = keeping(tmp_path / "journal.sqlite")
    later.subject = cast(Any, SimpleNamespace(**vars(SUBJECT), restore=restore))
    assert [later.restore(test) for test in tests] == [True, False, False]
    assert restored == {"kept": "seven"}
    later.close()


def test_a_resumed_run_has_the_random_states_of_the_run_that_began(tmp_path: Path) -> None:
    draws = []
    for _ in range(3):
        recorder, states = keeping(tmp_path / "journal.sqlite"), GeneratorStates("interview")
        with states.in_use():
            own = states.seed
            recorder.share_seed(states)
            states.begin("q1", 0, "call")
            draws.append((states.seed == own, random.random(), np.random.random()))
        recorder.close()
        random.random()  # else the next run would have the same seed
    assert [first for first, *_ in draws] == [True, False, False]
    assert draws[0][1:] == draws[1][1:] == draws[2][1:]


def test_a_run_that_keeps_nothing_has_its_own_random_states() -> None:
    states = GeneratorStates("interview")
    with states.in_use():
        random.random()
        before = random.getstate()
        AnswerRecorder().share_seed(states)
        assert random.getstate() == before


class Own:
    """A model that is no `Model`, and counts what it is asked."""

    def __init__(self) -> None:
        self.count = 0

    def generate(self, prompt: Any, **_options: Any) -> Any:
        self.count += 1
        return {"no": "text"} if prompt == "object" else f"{self.count}"


def watching(path: Path, item: str = "a") -> tuple[AnswerRecorder, Own]:
    recorder, model = keeping(path), Own()
    recorder.current = asked(Item(item, "?", "7"))
    assert recorder.watch(model, SubjectIdentity("own", "checkpoint"))
    return recorder, model


def test_texts_of_a_models_own_generate_are_kept_for_equal_calls_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    for counts in (3, 0):
        recorder, model = watching(path)
        said = [model.generate("one"), model.generate("one"), model.generate(Item("i", "one"), seed=3)]
        assert (said, model.count) == (["1", "2", "3"], counts)
        recorder.close()
    recorder, model = watching(path, "b")
    assert (model.generate("one"), model.count) == ("1", 1), "another question has answers of its own"
    recorder.close()
    assert model.generate("one") == "2"
    assert "generate" not in vars(model)


@pytest.mark.parametrize("argument", ["object", object()])
def test_what_is_no_text_or_no_data_is_asked_again(argument: Any, tmp_path: Path) -> None:
    for _ in range(2):
        recorder, model = watching(tmp_path / "journal.sqlite")
        model.generate(argument)
        assert model.count == 1
        recorder.close()


@pytest.mark.parametrize("model", [lambda prompt: prompt, type("Closed", (), {"__slots__": (), "generate": str})()])
def test_a_model_that_cannot_be_watched_says_so(model: Any) -> None:
    recorder = AnswerRecorder()
    assert not recorder.watch(model, SubjectIdentity("own", "checkpoint"))
    assert "answers of 'own' are not kept for a later run" in recorder.unkept
