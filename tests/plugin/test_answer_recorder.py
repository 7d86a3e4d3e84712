"""What the recorder of an interview counts, and which answers it keeps for later runs, without a run of pytest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_adaptive_eval import Item
from pytest_adaptive_eval.errors import JournalError
from pytest_adaptive_eval.items.item import Response, Status
from pytest_adaptive_eval.items.likelihood import ChoiceLikelihood
from pytest_adaptive_eval.models.base import Completion, RequestLog, SubjectIdentity
from pytest_adaptive_eval.models.caps import Cap
from pytest_adaptive_eval.plugin.ask.answer_recorder import AnswerRecorder
from pytest_adaptive_eval.plugin.ask.question import AskedItem
from pytest_adaptive_eval.records.journal import Journal
from pytest_adaptive_eval.records.run_record import Administration


def asked(item: Item, *, sample: int = 0, read: bool = False) -> Any:
    """What the recorder reads of a question that has run."""
    value = AskedItem(item, sample)
    value.read = value.read or read
    administration = Administration(1, item.id, item.content_hash, item.formats[0], sample)
    return SimpleNamespace(asked=value, administration=administration, fault="", key="", requests=RequestLog())


def choice(*choices: str) -> Item:
    return Item("c", "Which?", "A", "choice", choices=choices)


def recorded(*tests: tuple[Any, Response]) -> AnswerRecorder:
    recorder = AnswerRecorder()
    for test, response in tests:
        recorder.add(test, response)
    return recorder


def right(text: str = "A") -> Response:
    return Response(Status.OK, 1.0, text)


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([choice("a", "b")], 0.5),
        ([choice("a", "b"), choice("a", "b", "c", "d")], 0.375),
        ([choice("a", "b"), Item("e", "?", "7")], None),
        ([], None),
    ],
)
def test_guessing_is_the_mean_share_of_one_choice(items: list[Item], expected: float | None) -> None:
    assert recorded(*((asked(item), right()) for item in items)).constant.guessing == expected


def test_guessing_counts_an_item_once_however_often_it_is_asked() -> None:
    two, four = choice("a", "b"), choice("a", "b", "c", "d")
    recorder = recorded((asked(two), right()), (asked(four), right()), (asked(four, sample=1), right()))
    assert recorder.constant.guessing == 0.375


@pytest.mark.parametrize(("unreadable", "readable", "ends"), [(2, 1, True), (1, 1, False), (0, 2, False)])
def test_an_interview_ends_when_more_than_half_of_the_answers_have_no_form(
    unreadable: int, readable: int, ends: bool
) -> None:
    item = choice("red", "blue")
    answers = [right("##")] * unreadable + [right("A")] * readable
    said = recorded(*((asked(item, read=True), answer) for answer in answers)).too_many_unreadable()
    assert said.startswith(f"{unreadable} of {unreadable + readable} answers hold no answer" if ends else "")
    assert bool(said) is ends


@pytest.mark.parametrize(("holding", "others", "told"), [(2, 1, True), (2, 2, False), (3, 2, True), (2, 0, False)])
def test_the_expected_answer_in_most_wrong_answers_is_told(holding: int, others: int, told: bool) -> None:
    item = Item("a", "Where?", "Paris", "exact")
    texts = ["It is Paris, I think."] * holding + ["It is Rome."] * others
    said = recorded(*((asked(item), Response(Status.OK, 0.0, text)) for text in texts)).unread_answers()
    found = f"the expected answer is in {holding} of {holding + others} wrong answers: use grader "
    assert said.startswith(found) if told else not said


def test_an_answer_that_the_test_did_not_pass_on_is_not_unreadable() -> None:
    item = choice("red", "blue")
    assert not recorded(*[(asked(item), right(""))] * 3).too_many_unreadable()
    assert recorded(*[(asked(item, read=True), right(""))] * 3).too_many_unreadable()


SUBJECT = SimpleNamespace(identity=SubjectIdentity("m", "checkpoint"), cap=None)


def keeping(path: Path) -> AnswerRecorder:
    recorder = AnswerRecorder()
    recorder.subject, recorder.journal = cast(Any, SUBJECT), Journal(path)
    return recorder


def kept_again(path: Path, item: Item, completion: Completion) -> tuple[Completion | None, Any]:
    """What a later run finds of a completion, and its question."""
    earlier, later, test = keeping(path), None, asked(item)
    earlier.keep_completion(test, completion)
    earlier.close()
    later = keeping(path)
    found = later.recall(test, item, later.key(test))
    later.close()
    return found, test


@pytest.mark.parametrize(
    ("item", "key"),
    [
        (Item("a", "Prompt?", "7"), "ae88843e1f4d10d9"),
        (Item("a", "", "7", messages=({"role": "user", "content": "Prompt?"},)), "401e99339aa2c36a"),
    ],
    ids=["prompt", "messages"],
)
def test_keys_of_the_journal_stay_as_they_are(item: Item, key: str) -> None:
    """Otherwise an interrupted run would ask again what an earlier release kept."""
    recorder = AnswerRecorder()
    recorder.subject = cast(Any, SUBJECT)
    assert recorder.key(asked(item))[:16] == key


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
    found, test = kept_again(tmp_path / "journal.jsonl", Item("a", "?", "7"), completion)
    assert found == (completion if kept else None)
    assert (found is not None and found.reused) is completion.reused
    assert test.administration.resumed is kept


def test_the_score_of_likelihoods_is_computed_again(tmp_path: Path) -> None:
    item = Item("c", "Sky?", "blue", "choice", choices=("red", "blue"), likelihood=ChoiceLikelihood("pmi"))
    result = item.likelihood_result([-2.0, -1.0, -1.0, -1.0])
    whole = Completion(result.text, score=result.score, likelihood=result.facts)
    found, test = kept_again(tmp_path / "journal.jsonl", item, whole)
    assert found == whole
    assert test.administration.likelihood is not None
    assert test.administration.likelihood == result.facts
    assert '"score"' not in (tmp_path / "journal.jsonl").read_text().replace('"scores"', "")


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
    recorder, item = keeping(tmp_path / "journal.jsonl"), Item("a", "?", "7")
    recorder.keep_completion(asked(item), Completion("7"))
    assert recorder.knows(asked(replace(item, **change))) is same
    assert not recorder.knows(asked(item, sample=1))
    assert not recorder.knows(asked(replace(item, id="b")))
    recorder.close()


def test_another_decoding_or_cap_is_another_request(tmp_path: Path) -> None:
    recorder, item = keeping(tmp_path / "journal.jsonl"), Item("a", "?", "7")
    recorder.keep_completion(asked(item), Completion("7"))
    identity = SUBJECT.identity
    for other in (
        SimpleNamespace(identity=replace(identity, checkpoint="other"), cap=None),
        SimpleNamespace(identity=replace(identity, decoding={"temperature": 1}), cap=None),
        SimpleNamespace(identity=identity, cap=Cap(9, chosen=True)),
    ):
        recorder.subject = cast(Any, other)
        assert not recorder.knows(asked(item))
    recorder.close()


@pytest.mark.parametrize("entry", [{"status": "well", "text": "7"}, {"text": "7"}, {"status": "ok", "graded": 1.0}])
def test_an_entry_that_is_no_completion_is_refused_with_a_sentence(entry: dict[str, Any], tmp_path: Path) -> None:
    recorder, test = keeping(tmp_path / "journal.jsonl"), asked(Item("a", "?", "7"))
    assert recorder.journal is not None
    recorder.journal.append(recorder.key(test), {"item": "a", **entry})
    with pytest.raises(JournalError, match=r"the answer to 'a' cannot be read .*--adaptive-eval-fresh"):
        recorder.recall(test, test.asked.item, recorder.key(test))
    recorder.close()


def test_without_a_journal_nothing_is_kept_and_nothing_is_found() -> None:
    recorder, test = AnswerRecorder(), asked(Item("a", "?", "7"))
    recorder.subject = cast(Any, SUBJECT)
    recorder.keep_completion(test, Completion("7"))
    assert not recorder.knows(test)
    assert recorder.unanswered(cast(Any, SUBJECT), [test]) == [test]
    recorder.close()


def test_a_later_run_asks_only_what_an_earlier_one_has_no_completion_of(tmp_path: Path) -> None:
    tests = [asked(Item(name, f"{name}?", "7")) for name in ("kept", "failed", "new")]
    earlier, later, restored = keeping(tmp_path / "journal.jsonl"), None, {}
    earlier.keep_completion(tests[0], Completion("seven"))
    earlier.keep_completion(tests[1], Completion("", Status.ERROR))
    earlier.close()
    later = keeping(tmp_path / "journal.jsonl")
    subject = SimpleNamespace(restore=lambda item, sample, completion: restored.update({item.id: completion.text}))
    assert later.unanswered(cast(Any, subject), tests) == tests[1:]
    assert restored == {"kept": "seven"}
    later.close()


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
    path = tmp_path / "journal.jsonl"
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
        recorder, model = watching(tmp_path / "journal.jsonl")
        model.generate(argument)
        assert model.count == 1
        recorder.close()


@pytest.mark.parametrize("model", [lambda prompt: prompt, type("Closed", (), {"__slots__": (), "generate": str})()])
def test_a_model_that_cannot_be_watched_says_so(model: Any) -> None:
    recorder = AnswerRecorder()
    assert not recorder.watch(model, SubjectIdentity("own", "checkpoint"))
    assert "answers of 'own' are not kept for a later run" in recorder.unkept
