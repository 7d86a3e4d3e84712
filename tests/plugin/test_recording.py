"""What the recorder of an interview counts, and which answers it keeps for later runs, without a run of pytest."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_adaptive_eval import Item
from pytest_adaptive_eval.items.item import Response, Status
from pytest_adaptive_eval.models.base import Completion
from pytest_adaptive_eval.plugin.question import AskedItem
from pytest_adaptive_eval.plugin.recording import AnswerRecorder
from pytest_adaptive_eval.records.journal import Journal
from pytest_adaptive_eval.records.run_record import Administration


def asked(item: Item, *, sample: int = 0, read: bool = False, lasting: bool = False) -> Any:
    """What the recorder reads of a question that has run."""
    value = AskedItem(item, sample)
    value.read = value.read or read
    administration = Administration(1, item.id, item.content_hash, item.formats[0], sample)
    return SimpleNamespace(asked=value, administration=administration, fault="", key="", lasting=lasting)


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
    found = f"the expected answer stands in {holding} of {holding + others} wrong answers: use grader "
    assert said.startswith(found) if told else not said


def test_an_answer_that_the_test_did_not_pass_on_is_not_unreadable() -> None:
    item = choice("red", "blue")
    assert not recorded(*[(asked(item), right(""))] * 3).too_many_unreadable()
    assert recorded(*[(asked(item, read=True), right(""))] * 3).too_many_unreadable()


@pytest.mark.parametrize(
    ("item", "key"),
    [
        (Item("a", "Prompt?", "7"), "bd91abea22038c0a92050f70"),
        (Item("a", "", "7", messages=({"role": "user", "content": "Prompt?"},)), "0c56b13d1a8e8c88824ae8be"),
    ],
    ids=["prompt", "messages"],
)
def test_keys_of_the_journal_stay_as_they_are(item: Item, key: str, tmp_path: Path) -> None:
    """Otherwise an interrupted run would ask again what an earlier release kept."""
    recorder = AnswerRecorder()
    recorder.open(Journal(tmp_path / "journal.jsonl"), checkpoint="checkpoint", decoding="decoding")
    test = asked(item)
    recorder.keep(test, right())
    recorder.close()
    assert test.key == key


@pytest.mark.parametrize(
    ("response", "lasting", "kept"),
    [
        (right(), False, True),
        (Response(Status.REFUSED, None, "no"), False, True),
        (Response(Status.ERROR, None, ""), False, False),
        (Response(Status.ERROR, None, ""), True, True),
    ],
)
def test_an_answer_is_kept_unless_a_later_run_should_ask_again(
    response: Response, lasting: bool, kept: bool, tmp_path: Path
) -> None:
    recorder = AnswerRecorder()
    recorder.open(Journal(tmp_path / "journal.jsonl"), checkpoint="c", decoding="d")
    test = asked(Item("a", "?", "7"), lasting=lasting)
    recorder.keep(test, response)
    assert recorder.journal is not None
    assert (recorder.journal.get(test.key) is not None) is kept
    recorder.close()


def test_without_a_journal_nothing_is_kept_and_nothing_is_found() -> None:
    recorder = AnswerRecorder()
    test = asked(Item("a", "?", "7"))
    recorder.keep(test, right())
    assert recorder.stored_response(test) is None
    recorder.close()


class Batches:
    """A subject that gives completions by the ids of items, and notes what it is asked for and what it gets back."""

    def __init__(self, **completions: Completion) -> None:
        self.completions = completions
        self.asked: list[str] = []
        self.restored: dict[str, str] = {}

    def prefetch(self, items: Any, samples: Any, keep: Any) -> None:
        assert len(items) == len(samples)
        for index, item in enumerate(items):
            self.asked.append(item.id)
            keep(index, self.completions[item.id])

    def restore(self, item: Item, sample: int, completion: Completion) -> None:
        assert sample == 0
        self.restored[item.id] = completion.text


def test_a_later_run_asks_only_what_an_earlier_one_has_no_completion_and_no_response_of(tmp_path: Path) -> None:
    items = [Item(name, f"{name}?", "7") for name in ("kept", "failed", "graded", "new")]
    completions = {
        "kept": Completion("seven"),
        "failed": Completion("", Status.ERROR),
        "graded": Completion("7"),
        "new": Completion("8"),
    }
    earlier, subject = AnswerRecorder(), Batches(**completions)
    earlier.open(Journal(tmp_path / "journal.jsonl"), checkpoint="c", decoding="d")
    earlier.prefetch(subject, [asked(item) for item in items[:3]])  # type: ignore[arg-type]
    earlier.keep(asked(items[2]), right("7"))
    earlier.close()
    assert subject.asked == ["kept", "failed", "graded"]
    later, subject = AnswerRecorder(), Batches(**completions)
    later.open(Journal(tmp_path / "journal.jsonl"), checkpoint="c", decoding="d")
    later.prefetch(subject, [asked(item) for item in items])  # type: ignore[arg-type]
    later.close()
    assert (subject.asked, subject.restored) == (["failed", "new"], {"kept": "seven"})


def test_without_a_journal_all_of_a_batch_are_asked() -> None:
    subject = Batches(a=Completion("7"), b=Completion("8"))
    AnswerRecorder().prefetch(subject, [asked(Item("a", "?", "7")), asked(Item("b", "?", "7"))])  # type: ignore[arg-type]
    assert subject.asked == ["a", "b"]
