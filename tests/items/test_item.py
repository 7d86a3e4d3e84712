"""Items and their graders on answers as models write them."""

from __future__ import annotations

import json

import pytest

from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.items.graders.kind import grader_kinds
from pytest_adaptive_eval.items.item import (
    GRADED_CHARACTERS,
    Item,
    Response,
    Status,
    cut_text,
    length_note,
    unanswered_sentence,
)

COLOURS = ("red", "blue", "dark green", "Yellow.")


def grade(grader: str, answer: str, text: str, **more: object) -> float:
    return Item("i", "?", answer, grader, **more).grade(text)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "text", "right"),
    [
        ("Paris", " paris.\n", 1),
        ("Paris", '"Paris"!', 1),
        ("New  York", "new york", 1),
        ("STRASSE", "straße", 1),
        ("Paris", "It is Paris", 1),
        ("Paris", "It is Paris or Rome", 0),
        ("Paris", "", 0),
        ("don't", "dont", 0),
        ("-5", "5", 0),
    ],
)
def test_exact(answer: str, text: str, right: float) -> None:
    assert grade("exact", answer, text) == right


@pytest.mark.parametrize(
    ("answer", "text", "right"),
    [
        ("B", "B", 1),
        ("B", "b", 1),
        ("B", "(B)", 1),
        ("B", "(B) blue", 1),
        ("B", "B. blue", 1),
        ("B", "B) blue", 1),
        ("B", "**B**", 1),
        ("B", "B: because the sky is", 1),
        ("B", "The answer is B.", 1),
        ("B", "Answer: (B)", 1),
        ("B", "the answer is: **B**", 1),
        ("B", "blue", 1),
        ("B", "Blue.", 1),
        ("blue", "B", 1),
        ("blue", "blue", 1),
        ("D", "yellow", 1),
        ("C", "Dark  green", 1),
        ("C", "A car is shown, and it is dark, so the answer is C", 1),
        ("B", "I see the sky. Answer: B", 1),
        ("C", "First I thought the answer is A. But no: the answer is C.", 1),
        ("A", "First I thought the answer is A. But no: the answer is C.", 0),
        ("B", "C", 0),
        ("B", "", 0),
        ("B", "Both", 0),
        ("B", "because", 0),
        ("B", "7", 0),
        ("B", "red", 0),
        ("A", "A is correct", 1),
        ("A", "A because of the sky", 1),
        ("A", "A (red)", 1),
        ("A", "a", 1),
        ("A", "A red", 1),  # with an article, and by its letter
        ("B", "A blue", 1),  # no letter: "A" is an article here
        ("B", "The answer is a blue.", 1),
        ("C", "The answer is dark green", 1),
        ("B", "B blue", 1),
        ("B", "Option B: blue", 1),
        ("B", "The correct option is B", 1),
        ("B", "The answer to this question is B.", 1),
        ("B", "**Answer:** B", 1),
        ("B", "Answer:\n\nB", 1),
        ("B", "The answer is not A, the answer is B", 1),
        ("B", "Answer: B\nExplanation: the answer a user expects", 1),
        ("B", r"The answer is $\boxed{\text{B}}$.", 1),
        ("B", "the answer would be B because", 1),
        ("A", "I cannot answer a question like this", 0),
        ("A", "A car is shown", 0),
        ("A", "The answer isn't A", 0),
        ("A", "The answer is a car", 0),
        ("A", "Answer: B\nExplanation: the answer a user expects", 0),
    ],
)
def test_choice(answer: str, text: str, right: float) -> None:
    assert grade("choice", answer, text, choices=COLOURS) == right


def test_words_of_one_letter_and_letters_of_no_choice_are_no_answers() -> None:
    item = Item("i", "?", "A", "choice", choices=COLOURS)
    for text in (
        "I cannot answer a question like this",
        "A car is shown",
        "I.e. something else",
        "Z",
        "e.g. none",
        "I",
    ):
        assert not item.readable(text), text
        assert item.grade(text) == 0, text
    assert item.readable("B)")
    letters = Item("i", "A red, B blue", "B", "choice")  # the choices are in its prompt
    assert letters.grade("B blue") == 1
    assert not letters.readable("A car is shown")


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(
    "text", ["(", "* ", "answer ", "answer" + " " * 50, "answer: (", "a " * 5, "option\n", "\\boxed{"]
)
def test_no_endless_answer_stalls_the_grader(text: str) -> None:
    item = Item("i", "?", "A", "choice", choices=COLOURS)
    assert not item.readable(text * (GRADED_CHARACTERS // len(text)))


def test_an_answer_of_punctuation_alone_is_compared_as_it_stands() -> None:
    for grader in ("exact", "contains"):
        assert grade(grader, "!", "!") == 1
        for text in ("", ".", "anything"):
            assert grade(grader, "!", text) == 0, (grader, text)
    assert grade("contains", "->", "a -> b") == 1


@pytest.mark.parametrize(
    ("answer", "text", "right"),
    [
        ("12", "12", 1),
        ("12", "so 3 * 4 = 12.", 1),
        ("12", "12.0", 1),
        ("1234.5", "$1,234.50", 1),
        ("0.5", "1/2", 1),
        ("1/3", "2/6", 1),
        ("0.1", ".1", 1),
        ("100000", "1e5", 1),
        ("-5", "x = -5", 1),
        ("-5", "x = \N{MINUS SIGN}5", 1),
        ("5", "x = \N{MINUS SIGN}5", 0),
        ("12", "12 or 13", 0),
        ("0.3", "0.30000000000000004", 0),
        ("12", "", 0),
        ("12", "twelve", 1),
        ("12", "1/0", 0),
        ("12", "1e999999999", 0),
        ("12", "9" * 15_000, 0),
    ],
)
def test_numeric(answer: str, text: str, right: float) -> None:
    assert grade("numeric", answer, text) == right


def test_numeric_tolerance() -> None:
    assert grade("numeric", "3.14159", "3.14", meta={"tolerance": 0.01}) == 1
    assert grade("numeric", "3.14159", "3.1", meta={"tolerance": 0.01}) == 0
    assert grade("numeric", "10", "9.5", meta={"tolerance": 0.5}) == 1  # the edge is inside
    for wrong in (-1, float("nan"), float("inf"), "abc", True):
        with pytest.raises(BankError, match="tolerance"):
            grade("numeric", "1", "1", meta={"tolerance": wrong})


@pytest.mark.parametrize("answer", ["unknown", "1e500", "1/0"])
def test_an_expected_answer_without_a_number_is_no_wrong_answer(answer: str) -> None:
    with pytest.raises(BankError, match="holds no number"):
        grade("numeric", answer, "1")


def test_contains() -> None:
    assert grade("contains", "Red Cross", "the red\ncross") == 1
    assert grade("contains", "Red Cross", "red, cross") == 0


def test_graders_read_the_beginning_of_an_endless_answer() -> None:
    assert grade("contains", "end", "x" * (GRADED_CHARACTERS - 4) + " end") == 1
    assert grade("contains", "end", "x" * GRADED_CHARACTERS + "end") == 0


def test_answers_are_readable_by_the_part_that_is_graded() -> None:
    assert Item("i").readable(" " * (GRADED_CHARACTERS - 1) + "x")
    assert not Item("i").readable(" " * GRADED_CHARACTERS + "x")
    numeric = Item("i", answer="7", grader="numeric")
    assert numeric.readable("x" * (GRADED_CHARACTERS - 2) + " 7")
    assert not numeric.readable("x" * GRADED_CHARACTERS + " 7")


def test_own_grader_and_what_it_may_give() -> None:
    assert Item("i", custom=lambda item, text: len(text) / 10).grade("abc") == pytest.approx(0.3)
    for wrong in (1.5, -0.1, float("nan")):

        def grade(item, text, wrong=wrong):
            return wrong

        with pytest.raises(BankError, match=r"expected a number in \[0, 1\]"):
            Item("i", custom=grade).grade("x")
    with pytest.raises(BankError, match="grader 'exakt' is not known; did you mean 'exact'"):
        Item("i", grader="exakt").grade("x")
    with pytest.raises(BankError, match="grader 'fuzzy' is not known; use one of calls, instructions, instructions_"):
        Item("i", grader="fuzzy").grade("x")
    with pytest.raises(BankError, match=r"gave NoneType, expected a number in \[0, 1\]"):
        Item("i", custom=lambda item, text: None).grade("x")
    assert set(grader_kinds()) >= {"exact", "choice", "numeric", "contains", "regex", "yesno", "math", "json", "f1"}


INFRASTRUCTURE = (
    Status.TIMEOUT,
    Status.ERROR,
    Status.SANDBOX_ERROR,
    Status.NOT_RUN,
    Status.NOT_AWAITED,
    Status.NOT_RECORDED,
)


def test_what_the_infrastructure_did_has_no_score() -> None:
    for status in Status:
        assert status.infrastructure == (status in INFRASTRUCTURE)
        if status.infrastructure:
            assert Response(status).score is None
            with pytest.raises(ValueError, match="cannot have score"):
                Response(status, 0.0)
        else:
            assert [Response(status, score).score for score in (0.0, 0.5, 1.0)] == [0.0, 0.5, 1.0]
    with pytest.raises(ValueError, match="cannot have score None"):
        Response(Status.OK)
    for wrong in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match=r"lies in \[0, 1\]"):
            Response(Status.OK, wrong)


@pytest.mark.parametrize("status", Status)
def test_the_score_of_a_response_follows_its_status(status: Status) -> None:
    scores = [Response.of(status, score, "x", "why").score for score in (0.5, None)]
    assert scores == ([None, None] if status.infrastructure else [0.5, 0.0])


@pytest.mark.parametrize(
    ("statuses", "sentence"),
    [
        ({}, ""),
        ({"ok": 40}, ""),
        ({"ok": 38, "timeout": 2}, ""),
        ({"ok": 30, "empty": 10}, "10 of 40 empty"),
        ({"ok": 30, "truncated": 5, "refused": 3, "error": 2}, "3 of 40 refused, 5 cut at the cap"),
    ],
)
def test_the_sentence_on_unanswered_items_counts_each_status(statuses: dict[str, int], sentence: str) -> None:
    assert unanswered_sentence(statuses) == sentence


def test_a_blank_answer_is_wrong_whatever_the_grader() -> None:
    graders = [kind for kind in grader_kinds() if not kind.startswith("instructions")]
    items = [Item("i", "?", "b", grader, choices=("a", "b")) for grader in graders]
    items += [Item("i", "?", custom=lambda *_: 1.0), Item("i", "?", ".*", "regex")]
    assert {item.grade(blank) for item in items for blank in ("", " \n\t")} == {0.0}


def test_the_task_of_a_generated_item_is_the_first_part_of_its_id() -> None:
    assert Item("addition-3-17").task == "addition"
    assert Item("plain").task == "plain"


def test_a_long_text_tells_how_many_characters_were_cut() -> None:
    whole = "x" * GRADED_CHARACTERS
    assert cut_text(whole) == whole
    assert cut_text(whole + "yz") == f"{whole}\n[2 more characters were neither graded nor kept]"
    assert length_note(whole) == ""
    assert length_note(cut_text(whole + "yz")) == (
        f"the answer has {GRADED_CHARACTERS + 2} characters: the first {GRADED_CHARACTERS} were graded and kept"
    )


def test_faults_of_the_run_are_told_from_those_of_the_subject() -> None:
    faults = {status.value for status in Status if status.infrastructure}
    assert faults == {"timeout", "error", "sandbox_error", "not_run", "not_awaited", "not_recorded"}


def test_formats() -> None:
    item = Item("i", "what?", images=("a.png",), formats=("image+text", "text", "image", "none"), root="bank")
    assert item.in_format("image+text") == item
    assert item.image_paths == ("bank/a.png",)
    assert (item.in_format("text").images, item.in_format("text").prompt) == ((), "what?")
    assert (item.in_format("image").images, item.in_format("image").prompt) == (("a.png",), "")
    assert (item.in_format("none").images, item.in_format("none").prompt) == ((), "")
    with pytest.raises(BankError, match="no format 'sound'"):
        item.in_format("sound")


def test_content_hash_changes_with_what_is_asked_and_not_with_where_it_lies() -> None:
    item = Item("i", "what?", "B", "choice", choices=("a", "b"), meta={"level": 1})
    assert json.loads(json.dumps(item.to_json()))["choices"] == ["a", "b"]
    assert (
        item.content_hash
        == Item("i", "what?", "B", "choice", choices=("a", "b"), meta={"level": 1}, root="x").content_hash
    )
    others = [
        Item("i", "what!", "B", "choice", choices=("a", "b"), meta={"level": 1}),
        Item("i", "what?", "A", "choice", choices=("a", "b"), meta={"level": 1}),
        Item("i", "what?", "B", "exact", choices=("a", "b"), meta={"level": 1}),
        Item("i", "what?", "B", "choice", choices=("b", "a"), meta={"level": 1}),
        Item("i", "what?", "B", "choice", choices=("a", "b"), meta={"level": 2}),
        Item("i", "what?", "B", "choice", choices=("a", "b"), meta={"level": 1}, images=("p.png",)),
    ]
    assert len({item.content_hash, *(other.content_hash for other in others)}) == 7


def test_content_hash_is_the_same_in_every_version_and_order() -> None:
    """Journals and records find an item's answers by it."""
    item = Item("i", "\u65e5\u672c?", "B", "choice", choices=("a", "b"), meta={"b": 1, "a": 2})
    assert item.content_hash == "c828440a36fa6934"
    assert Item("i", item.prompt, "B", "choice", choices=("a", "b"), meta={"a": 2, "b": 1}).content_hash == (
        item.content_hash
    )


def test_json_leaves_out_what_is_at_its_default() -> None:
    assert Item("i").to_json() == {"id": "i", "grader": "exact"}
    full = Item("i", "?", "a", formats=("image", "text"), messages=({"role": "user", "content": "x"},), meta={"a": 1})
    assert full.to_json() == {
        "id": "i",
        "prompt": "?",
        "answer": "a",
        "grader": "exact",
        "messages": [{"role": "user", "content": "x"}],
        "formats": ["image", "text"],
        "meta": {"a": 1},
    }
