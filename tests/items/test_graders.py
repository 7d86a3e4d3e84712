"""Graders of items: several accepted answers, truth values, JSON fields, words and expressions."""

from __future__ import annotations

import json
import sys
import time
import types
from importlib.metadata import EntryPoint

import pytest

from pytest_adaptive_eval import Item, registry, worker
from pytest_adaptive_eval.banks.items import parse_item
from pytest_adaptive_eval.errors import BankError, ConfigError, Unscored
from pytest_adaptive_eval.items.graders.kind import GraderKind, finding_kind, grader_kinds
from pytest_adaptive_eval.items.graders.kinds import mathematics
from pytest_adaptive_eval.worker import WorkerFault


def grade(grader: str, answer: object, text: str, **more: object) -> float:
    return Item("i", "?", answer, grader, **more).grade(text)


def parsed(**fields: object) -> Item:
    return parse_item(json.dumps({"id": "i", "prompt": "?", **fields}), "bank.jsonl, line 1")


@pytest.mark.parametrize(
    ("grader", "answers", "right", "wrong"),
    [
        ("exact", ["NYC", "New York"], "new york", "Boston"),
        ("contains", ["NYC", "New York"], "I live in New York now", "I live in Boston"),
        ("exact_match", ["NYC", "New York"], "The New York!", "New York state"),
        ("f1", ["NYC", "New York"], "New York", "Boston"),
        ("numeric", ["3", "4"], "4.0", "34"),
        ("yesno", ["no", "unknown"], "It cannot be determined.", "yes"),
        ("choice", ["A", "C"], "The answer is (C).", "The answer is (A) and (C)."),
        ("json", ["3", "4"], '{"answer": 4}', '{"answer": 5}'),
        ("regex", ["^a", "b$"], "xb", "x"),
        ("math", ["x^2", "y^2"], "$y^{2}$", "$z^2$"),
    ],
)
def test_each_of_several_accepted_answers_is_right(grader: str, answers: list[str], right: str, wrong: str) -> None:
    choices = ["red", "blue", "green"] if grader == "choice" else []
    item = parsed(answer=answers, grader=grader, choices=choices)
    assert (item.answers, item.to_json()["answer"]) == (tuple(answers), answers)
    assert item.grade(right) == 1
    assert item.grade(wrong) == 0


def test_a_list_of_one_answer_is_that_answer_and_other_lists_are_refused() -> None:
    assert parsed(answer=["a"]).to_json() == parsed(answer="a").to_json()
    assert Item("i", answer=["a", "b"]).answers == ("a", "b")
    assert parsed(answer=[1, 2.5], grader="numeric").answers == ("1", "2.5")
    for wrong in ([], ["a", ""], [["a"]], [True]):
        with pytest.raises(BankError, match="answer"):
            parsed(answer=wrong)
    with pytest.raises(BankError, match="'many' holds no number"):
        parsed(answer=["7", "many"], grader="numeric")


def test_choices_that_are_right_together_are_all_named() -> None:
    item = parsed(answer="AC", choices=["red", "blue", "green"])
    for text in ("AC", "A and C", "Answer: A, C", "答案：A、C", "**(A)** and **(C)**", "C, A"):
        assert item.grade(text) == 1, text
    for text in ("A", "ABC", "A and B", "C"):
        assert item.grade(text) == 0, text


def test_truth_by_the_letter_of_a_choice() -> None:
    item = parsed(answer="no", grader="yesno", choices=["yes", "no"])
    assert [item.grade(text) for text in ("B", "(B) no", "B (No)", "A", "C")] == [1, 1, 1, 0, 0]
    with pytest.raises(BankError, match="is none of yes, no and unknown"):
        parsed(answer="blue", grader="yesno")


@pytest.mark.parametrize(
    ("answer", "text", "score"),
    [
        ("Paris", '{"answer": "paris"}', 1),
        ("Zürich", '{"answer": "Z\\u00fcrich"}', 1),
        ("Paris", 'First {"answer": "Rome"}, then ```json\n{"answer": "Paris"}\n```', 1),
        ("12", '{"answer": 12.0}', 1),
        ("1,200", '{"answer": 1200}', 1),
        ("true", '{"answer": true}', 1),
        ("[1, 2]", '{"answer": [1, 2]}', 1),
        ("Paris", '{"answer": "Paris, France"}', 0),
        ("Paris", '{"city": "Paris"}', 0),
        ("Paris", "Paris", 0),
        ("Paris", '<think>{"answer": "Paris"}</think>{"answer": "Rome"}', 0),
        ("Paris", '{"answer": ' * 200, 0),
    ],
)
def test_a_field_of_a_json_object(answer: str, text: str, score: float) -> None:
    assert grade("json", answer, text) == score


@pytest.mark.parametrize(
    ("key", "text", "score"),
    [
        ('{"city": "Paris", "count": 2}', 'Here: {"count": 2.0, "city": "paris"}', 1),
        ('{"city": "Paris", "count": 2}', '```json\n{"city": "Paris"}\n```', 0),
        ('{"city": "Paris"}', '{"city": "Paris", "count": 2}', 0),
        ('{"done": true}', '{"done": 1}', 0),
        ("[1, [2, null]]", "First [1], then [1, [2, null]]", 1),
        ("[1, 2]", "[2, 1]", 0),
        ("[1, 2]", '{"answer": [1, 2]}', 1),
        ('{"answer": 1, "why": "x"}', '{"answer": 1, "why": "x"}', 1),
        ('{"answer": 1, "why": "x"}', '{"answer": 1, "why": "y"}', 0),
        ('{"a": 1}', "no JSON at all", 0),
    ],
)
def test_a_whole_json_value(key: str, text: str, score: float) -> None:
    assert grade("json", key, text) == score


def test_the_json_field_can_be_named_by_a_path() -> None:
    assert grade("json", "7", '{"result": {"values": [3, 7]}}', meta={"field": "result.values.1"}) == 1
    assert not Item("i", answer="7", grader="json").readable("7")
    with pytest.raises(BankError, match="name a field"):
        parsed(answer="7", grader="json", meta={"field": 3})


@pytest.mark.parametrize(
    ("text", "match", "f1"),
    [
        ("the  Eiffel-Tower", 0, 0),  # SQuAD joins what a hyphen joins
        ("The Eiffel Tower!", 1, 1),
        ("It is the tower", 0, 0.4),
        ("Answer: Eiffel Tower", 1, 1),
        ("an eiffel tower", 1, 1),
        ("", 0, 0),
    ],
)
def test_words_as_squad_compares_them(text: str, match: float, f1: float) -> None:
    assert grade("exact_match", "Eiffel Tower", text) == match
    assert grade("f1", "Eiffel Tower", text) == pytest.approx(f1)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (r"\frac{1}{2}", "0.5"),
        ("10", r"\boxed{10}"),
        (r"\sqrt{3}", r"so $r = \sqrt{3}$."),
        (r"\left(3, 4\right)", r"The answer is $(3,4)$."),
        ("2x+1", r"\boxed{2x + 1}"),
    ],
)
def test_expressions_that_differ_in_their_look_alone(answer: str, text: str) -> None:
    assert grade("math", answer, text) == 1
    assert grade("math", answer, text.replace("1", "7").replace("3", "7").replace("0.5", "0.7")) == 0


def test_expressions_are_compared_by_what_they_mean() -> None:
    pytest.importorskip("math_verify", reason="comparing expressions needs math-verify (extra math)")
    assert grade("math", "(x+1)^2", r"\boxed{x^2+2x+1}") == 1
    assert grade("math", "(x+1)^2", r"\boxed{x^2+2x+2}") == 0
    assert grade("math", r"\{1, 2\}", r"$\boxed{\{2, 1\}}$") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [r"\boxed{3^{4^{5^{6^7}}}}", r"\boxed{10^{10^{11}}}", r"\boxed{(10^{9})!}", r"\boxed{\sum_{k=1}^{10^{13}} k^k}"],
)
def test_an_expression_beyond_what_can_be_computed_is_wrong(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("math_verify", reason="comparing expressions needs math-verify (extra math)")
    assert grade("math", "x+3", r"\boxed{3 + x}") == 1  # imports what compares
    monkeypatch.setattr(mathematics, "SECONDS", 0.1)
    begun = time.monotonic()
    assert grade("math", "3", text) == 0
    assert time.monotonic() - begun < 8
    assert grade("math", "x+3", r"\boxed{3 + x}") == 1


@pytest.mark.parametrize(
    "part", ["<|channel|>final", "<a", "<think>", r"\boxed{", "[", "<answer>", "{", '{"answer": "']
)
@pytest.mark.parametrize("grader", ["exact", "numeric", "regex"])
def test_a_long_answer_of_beginnings_is_read_in_little_time(grader: str, part: str) -> None:
    begun = time.process_time()
    assert grade(grader, "7", part * (20_000 // len(part))) == 0
    assert time.process_time() - begun < 4  # a second at most where the machine is free


def test_a_comparison_without_a_worker_is_a_missing_score(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object, **__: object) -> None:
        raise WorkerFault("no worker")

    monkeypatch.setattr(worker, "call", gone)
    monkeypatch.setattr(mathematics, "_verifies", lambda: True)
    with pytest.raises(Unscored, match="error: item 'i': no worker"):
        grade("math", "a+b+c", r"\boxed{b+a+c}")


def test_a_grader_that_finds_the_answer_is_named() -> None:
    assert finding_kind(Item("i", answer="lantern"), "exact", "It is a lantern, I think") == "contains"
    assert finding_kind(Item("i", answer="17"), "exact_match", "They bought 17 of them") == "numeric"
    assert finding_kind(Item("i", answer="no"), "exact", "No, it is not") == "yesno"
    assert finding_kind(Item("i", answer="a"), "exact", "a lantern") == ""  # stands in most texts
    assert finding_kind(Item("i", answer="17", grader="numeric"), "numeric", "17 or 18") == ""


def test_plugins_register_graders(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("my_graders")
    kind = GraderKind("reversed", "backwards", lambda item, text: float(item.answers[0][::-1] in text))
    module.REGISTERED = (kind,)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "my_graders", module)
    monkeypatch.setattr(registry, "entry_points", lambda group: [EntryPoint("mine", "my_graders", group)])
    grader_kinds.cache_clear()
    try:
        assert parsed(answer="abc", grader="reversed").grade("xcba") == 1
        module.REGISTERED = (GraderKind("exact", "twice", kind.grade),)  # type: ignore[attr-defined]
        grader_kinds.cache_clear()
        with pytest.raises(ConfigError, match="'exact' exists already"):
            grader_kinds()
    finally:
        monkeypatch.undo()
        grader_kinds.cache_clear()
    assert "reversed" not in grader_kinds()


@pytest.mark.parametrize(
    ("text", "score"),
    [("Rr", 1), ("Answer: Rr.", 1), ("C. Rr", 1), ("C", 1), ("RR", 0), ("rr", 0), ("rR", 0), ("R", 0)],
)
def test_choices_that_only_case_tells_apart_are_named_as_they_are_written(text: str, score: float) -> None:
    prompt = "Which alleles?\n\nA. R\nB. rr\nC. Rr\nD. RR"
    assert Item("alleles", prompt, "C", "choice", choices=("R", "rr", "Rr", "RR")).grade(text) == score


@pytest.mark.parametrize(
    ("choices", "answer", "text", "score"),
    [
        (("X^2", "x^2"), "B", "x^2", 1),
        (("X^2", "x^2"), "B", "X^2", 0),
        (("a", "b", "B"), "b", "B", 1),  # the letter
        (("a", "b", "B"), "b", "C", 0),
        (("3", "1", "2"), "B", "yes", 0),  # "1" is a truth value only beside others
        (("0", "1", "2"), "A", "0", 1),
        (("a cat", "cat", "bird"), "B", "the cat", 1),
        (("a cat", "cat", "bird"), "A", "the cat", 0),
    ],
)
def test_a_text_tells_choices_apart_by_its_strictest_form(
    choices: tuple[str, ...], answer: str, text: str, score: float
) -> None:
    assert Item("case", "Which?", answer, "choice", choices=choices).grade(text) == score


@pytest.mark.parametrize(
    "text", ['{"answer": 5,}', "{'answer': 5}", "So: {'answer': 5, 'sure': True}.", '{"answer": 5, "x": [1,],}']
)
def test_json_with_single_quotes_or_a_comma_at_its_end_is_read(text: str) -> None:
    assert grade("json", "5", text) == 1
    assert grade("json", "6", text) == 0


@pytest.mark.parametrize("key", ["stone", "flint", "chalk"])
@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("Which lies in tray 3? Options: stone, flint, chalk", False),
        ("Options: stone, flint, chalk", False),
        ("In tray 3 lies {key}.", True),
        ("{key}", True),
    ],
)
def test_a_repeated_list_of_options_states_none_of_them(text: str, right: bool, key: str) -> None:
    item = Item("q", "Which lies in tray 3? Options: stone, flint, chalk", key)
    assert item.grade(text.format(key=key)) == right
