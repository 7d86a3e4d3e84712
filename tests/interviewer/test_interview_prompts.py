"""What an interviewing model is told, and how its replies are read."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.interviewer import prompts
from pytest_adaptive_eval.interviewer.interviewer import Candidate, CategoryRow, MemoryTable
from pytest_adaptive_eval.interviewer.parsing import (
    READ_CHARACTERS,
    Unreadable,
    read_assignment,
    read_categories,
    read_choice,
    read_object,
)
from pytest_adaptive_eval.interviewer.prompts import PromptForm
from pytest_adaptive_eval.items.item import Item

MEMORY = MemoryTable(
    (CategoryRow("sums", 3, -1.25, 0.44, -0.04, 2 / 3), CategoryRow("trees", 1, None, None, None, None)), 4
)
CANDIDATES = (
    Candidate(4, Item("a", "What is\n2 + 3?"), ("sums",), 0.31, 0.484, 1.2),
    Candidate(9, Item("b", "Which shape?", images=("x.png", "y.png"), root="/bank"), (), -40.0, None, 0.7),
    Candidate(2, Item("c"), (), None, None, 0.1),
)


def text(form: PromptForm = PromptForm()) -> str:  # noqa: B008 - frozen
    (message,) = prompts.recommend(CANDIDATES, MEMORY, 0.4, form)
    return message.text


def test_a_recommendation_shows_everything() -> None:
    (message,) = prompts.recommend(CANDIDATES, MEMORY, 0.4, PromptForm())
    assert message.text.splitlines()[2:-1] == [
        "Ability: 0.4",
        "Asked so far, with difficulties:",
        "| category | count | min | mean | max | accuracy |",
        "| sums | 3 | -1.2 | 0.0 | 0.4 | 67% |",
        "| trees | 1 | - | - | - | - |",
        "Candidates:",
        "1. What is 2 + 3? (sums; difficulty 0.3; chance 48%)",
        "2. Which shape? [2 images] (difficulty -9.9)",
        "3. (no text, c)",
    ]
    assert '"question_index"' in message.text.splitlines()[-1]
    assert (message.images, message.role) == (("x.png", "y.png"), "user")


def test_a_profile_is_shown_with_errors_and_another_goal() -> None:
    name = MEMORY.rows[0].name
    profiled = MEMORY.with_abilities({name: (0.44, 0.31)})
    (message,) = prompts.recommend(CANDIDATES, profiled, 0.4, PromptForm())
    assert "| accuracy | ability |" in message.text
    assert "0.4 ± 0.3 |" in message.text
    assert "Refine the profile of abilities by category" in message.text
    for form in (PromptForm(memory=False), PromptForm(difficulty="none")):
        (message,) = prompts.recommend(CANDIDATES, profiled, 0.4, form)
        assert "±" not in message.text
        assert "profile" not in message.text
    assert "±" not in text()


def test_each_switch_hides_its_part() -> None:
    assert "67%" not in text(PromptForm(memory=False))
    assert "Asked so far" not in text(PromptForm(memory=False))
    hidden = text(PromptForm(difficulty="none"))
    for shown in ("Ability", "difficulty 0.3", "chance", "-1.2", "min"):
        assert shown in text()
        assert shown not in hidden
    assert "| sums | 3 | 67% |" in hidden
    (message,) = prompts.recommend(CANDIDATES, MEMORY, 0.4, PromptForm(images=False))
    assert message.images == ()
    assert "2. Which shape? [2 images, not shown]" in message.text
    with pytest.raises(ConfigError, match="difficulty is 'hard', expected 'irt' or 'none'"):
        PromptForm(difficulty="hard")  # type: ignore[arg-type]


def test_candidates_to_rate_stand_alone_behind_what_they_share() -> None:
    (message,), continuations = prompts.rate(CANDIDATES, MEMORY, 0.4, PromptForm())
    assert text().startswith(message.text)
    assert message.text.endswith("| trees | 1 | - | - | - | - |\n")
    assert message.images == ()
    assert [part.splitlines()[0] for part in continuations] == [
        "Candidate: What is 2 + 3? (sums; difficulty 0.3; chance 48%)",
        "Candidate: Which shape? [2 images, not shown] (difficulty -9.9)",
        "Candidate: (no text, c)",
    ]
    alone = prompts.rate(CANDIDATES[1:2], MEMORY, 0.4, PromptForm())
    assert alone == ([message], continuations[1:2])


def test_sorting() -> None:
    items = [candidate.item for candidate in CANDIDATES]
    (message,) = prompts.sort_first(items, [], PromptForm())
    assert message.text.splitlines()[2:5] == ["1. What is 2 + 3?", "2. Which shape? [2 images]", "3. (no text, c)"]
    assert message.images == ("x.png", "y.png")
    assert message.root == "" or message.root == "/bank"
    assert prompts.assignment_schema(2)["required"] == ["1", "2"]
    assert "Categories so far: sums, trees.\n" in prompts.sort_first(items, ["sums", "trees"], PromptForm())[0].text
    (message,) = prompts.sort_one(items[1], ["sums", "trees"], PromptForm())
    assert "Question: Which shape? [2 images]\nCategories so far: sums, trees.\n" in message.text
    assert (message.images, message.root) == (("x.png", "y.png"), "/bank")
    assert "Categories so far: none yet.\n" in prompts.sort_one(items[1], [], PromptForm())[0].text


def test_questions_to_sort_have_their_difficulties_where_these_are_known_and_shown() -> None:
    first, second = items = [candidate.item for candidate in CANDIDATES][:2]
    difficulties = {first.id: 1.25, second.id: None}
    (message,) = prompts.sort_first(items, [], PromptForm(), difficulties)
    assert message.text.splitlines()[2:4] == ["1. What is 2 + 3? (difficulty 1.2)", "2. Which shape? [2 images]"]
    assert (
        "Question: What is 2 + 3? (difficulty 1.2)\n" in prompts.sort_one(first, [], PromptForm(), difficulties)[0].text
    )
    hidden = prompts.sort_one(first, [], PromptForm(difficulty="none"), difficulties)
    assert "difficulty" not in hidden[0].text


@given(st.text(max_size=300), st.text(max_size=100))
def test_no_foreign_text_breaks_out_of_its_line(question: str, category: str) -> None:
    memory = MemoryTable((CategoryRow(category, 1, 0.0, 0.0, 0.0, 1.0),), 1)
    candidates = [Candidate(0, Item("a", question), (category,), 0.0, 0.5, 1.0)] * 2
    (message,) = prompts.recommend(candidates, memory, 0.0, PromptForm())
    lines = message.text.splitlines()
    assert len(lines) == 10
    assert lines[5].count("|") == 7
    assert all(c.isprintable() or c == "\n" for c in message.text)


def test_prompts_are_bounded() -> None:
    rows = tuple(CategoryRow(f"c{n}", 1 + n % 7, 0.0, 0.0, 0.0, 1.0) for n in range(1000))
    long = Candidate(0, Item("a", "start " + "word " * 100_000 + "end?"), (), 0.0, 0.5, 1.0)
    (message,) = prompts.recommend([long], MemoryTable(rows, 1000), 0.0, PromptForm())
    assert len(message.text) < 6000
    assert f"and {1000 - prompts.SHOWN_ROWS} categories that were tested more\n" in message.text
    assert "| c0 | 1 |" in message.text
    assert "| c6 | 7 |" not in message.text
    assert "1. start word" in message.text


def test_messages_are_read_as_text() -> None:
    parts = ({"role": "user", "content": [{"type": "text", "text": "How"}, {"type": "image"}]},)
    item = Item("m", messages=({"role": "system", "content": "Be brief."}, *parts), images=("x.png",))
    assert "Question: Be brief. How [1 image]\n" in prompts.sort_one(item, [], PromptForm())[0].text


IDS = ["sum-1", "tree-2", "3", "q2"]
GOOD = [
    '{"summary": "s", "think": "because", "question_index": 2}',
    'Sure!\n```json\n{"summary": "s", "think": "because", "question_index": 2,}\n```\nDone.',
    "{'summary': 'it\\'s', 'think': 'because', 'question_index': '2'}",
    '{"think": "because", "question_index": "2",}',
    '{"think": "because", "question_index": "tree-2"}',
    '{"Think": "because", "Question_Index": "Candidate 2"}',
    '{"think": "because", "question_index": [2.0]}',
    'The form is {"question_index": 1}; I say {"think": "because", "question_index": 2}.',
    '{"think": "because", "question_index": 2} and {"note": 1}',
    'I compare {a, b} first: {"think": "because", "question_index": 2}',
    '{"think": "because", "question_index": "#2."}',
    '{"summary": "a } in it", "think": "because", "question_index": 2}',
]


@pytest.mark.parametrize("reply", GOOD)
def test_choices_in_many_guises(reply: str) -> None:
    index, reason = read_choice(reply, IDS)
    assert (index, reason.partition("; so far: ")[0]) == (1, "because")
    assert ("so far" in reason) == ("summary" in reply)


def test_choices_of_an_item_stand_in_its_question() -> None:
    named = Item("a", "Which? (A) red (B) blue", "A", choices=("red", "blue"))
    unnamed = Item("b", "Which?", "A", choices=("red", "blue"))
    (message,) = prompts.sort_first([named, unnamed], [], PromptForm())
    assert "1. Which? (A) red (B) blue\n" in message.text
    assert "2. Which? Choices: red; blue\n" in message.text


def test_a_number_goes_before_an_id_and_an_id_before_a_number_in_it() -> None:
    assert read_choice('{"question_index": 3}', IDS)[0] == 2
    assert read_choice('{"question_index": "3"}', ["x", "3", "y"])[0] == 2
    assert read_choice('{"question_index": "q2"}', IDS)[0] == 3
    assert read_choice('{"question_index": "9"}', ["x", "9"])[0] == 1


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ("", "no-json"),
        ("2", "no-json"),
        ("I would take the second.", "no-json"),
        ('{"question_index": 2', "no-json"),
        ("[2]", "no-json"),
        ("{}", "no-json"),
        ('{"think": "2"}', "no-choice"),
        ('{"question_index": null}', "no-choice"),
        ('{"question_index": true}', "no-choice"),
        ('{"question_index": [1, 2]}', "no-choice"),
        ('{"question_index": ""}', "no-choice"),
        ('{"question_index": 0}', "outside"),
        ('{"question_index": 5}', "outside"),
        ('{"question_index": -1}', "outside"),
        ('{"question_index": 1.5}', "outside"),
        ('{"question_index": NaN}', "outside"),
        ('{"question_index": "tree-3"}', "outside"),
        ('{"question_index": "\u001b[31m\ud800"}', "outside"),
        ('{"question_index": ' + "9" * 400 + "}", "outside"),
    ],
)
def test_no_choice(reply: str, kind: str) -> None:
    with pytest.raises(Unreadable) as caught:
        read_choice(reply, IDS)
    assert caught.value.kind == kind
    assert caught.value.problem.isprintable()


def test_categories() -> None:
    known = ["Sums", "trees"]
    assert read_categories('{"category": ["sums", "graphs"]}', known) == ("Sums", "graphs")
    assert read_categories('{"category": "trees"}', known) == ("trees",)
    assert read_categories("```\n{'categories': ['a|b', 'A|B', ' ', 7, 'c\\nd',]}\n```") == ("a/b", "c d")
    assert len(read_categories(json.dumps({"category": [f"c{n}" for n in range(99)]}))) == 10
    (long,) = read_categories(json.dumps({"category": ["word " * 99]}))
    assert len(long) < 70
    for reply in ('{"category": []}', '{"category": [1]}', '{"other": ["a"]}', '{"category": {"a": 1}}'):
        with pytest.raises(Unreadable) as caught:
            read_categories(reply)
        assert caught.value.kind == "no-category"


def test_assignments() -> None:
    reply = '{"1": "sums", "Question 2": ["trees", "Sums"], "q-9": "shapes", "5": 7}'
    assert read_assignment(reply, ["a", "b", "q-9", "d", "e"]) == [("sums",), ("trees", "sums"), ("shapes",), (), ()]
    assert read_assignment('{"1": "SUMS"}', ["a"], ["Sums"]) == [("Sums",)]
    with pytest.raises(Unreadable) as caught:
        read_assignment("none", ["a"])
    assert caught.value.kind == "no-json"


@given(st.text(alphabet="{}[]\"',:\\ \n12aé", max_size=60))
@example("{[]}")  # in Python a set of a list, which cannot be
@example("{'a': '\\d'}")
def test_garbage_is_read_or_refused(reply: str) -> None:
    try:
        place, think = read_choice(reply, IDS)
    except Unreadable:
        return
    assert 0 <= place < len(IDS)
    assert think == prompts.one_line(think, 300)


@pytest.mark.slow
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=8,
    ).filter(lambda x: isinstance(x, dict) and x)
)
def test_json_is_read_as_it_is(value: dict[str, object]) -> None:
    folded = {key.strip().casefold(): entry for key, entry in value.items()}
    assert read_object(f"before {json.dumps(value)} after") == folded


@pytest.mark.parametrize("unit", ["{", '{"', "{'", "[{", '{"a":', "{\\", "'"])
def test_hostile_replies_cost_little(unit: str) -> None:
    begun = time.process_time()
    with pytest.raises(Unreadable):
        read_object(unit * READ_CHARACTERS)
    assert time.process_time() - begun < 6.0
