"""Rows of any file, by a mapping of their columns, and ids joined to one's own items."""

import json
import shlex
from dataclasses import replace

import numpy as np
import pytest

from pytest_adaptive_eval.banks.items import parse_item
from pytest_adaptive_eval.banks.responses import read_responses
from pytest_adaptive_eval.banks.responses.ids import rename_items, with_item_ids
from pytest_adaptive_eval.banks.responses.questions import items_of
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.items.responses import LoggedQuestion, Reply, Responses
from pytest_adaptive_eval.mappings import ResponseMapping

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def lines(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def table(responses):
    return {
        subject: {item: None if np.isnan(v) else float(v) for item, v in zip(responses.items, row, strict=True)}
        for subject, row in zip(responses.subjects, responses.scores, strict=True)
    }


def refused(path, **settings):
    with pytest.raises(ResponsesError) as caught:
        read_responses(path, **settings)
    return str(caught.value)


def test_fields_are_reached_by_expressions(tmp_path):
    row = {"meta": {"model": "m"}, "doc": {"id": 7, "q": "?"}, "out": {"pred": "B"}, "gold": "B"}
    path = lines(tmp_path / "r.jsonl", row, {**row, "doc": {"id": 8}, "gold": "A"})
    mapping = ResponseMapping(subject="meta.model", item="doc.id", score="out.pred == gold")
    assert table(read_responses(path, mapping=mapping)) == {"m": {"7": 1, "8": 0}}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, 1),
        (0, 0),
        (0.25, 0.25),
        ("correct", 1),
        ("Incorrect", 0),
        ("C", 1),
        ("fail", 0),
        ("0.5", 0.5),
        ("NA", None),
    ],
)
def test_verdicts(tmp_path, value, expected):
    path = lines(tmp_path / "r.jsonl", {"id": "a", "ok": value}, {"id": "b", "ok": 1})
    found = table(read_responses(path, mapping=ResponseMapping(item="id", score="ok")))["r"]
    assert found["a"] == expected


@pytest.mark.parametrize("value", [3, -1, "maybe", [1], {"a": 1}])
def test_other_values_of_a_score_are_refused_with_the_filters_that_help(tmp_path, value):
    path = lines(tmp_path / "r.jsonl", {"id": "a", "ok": 1}, {"id": "b", "ok": value})
    message = refused(path, mapping=ResponseMapping(item="id", score="ok"))
    assert "line 2: found" in message
    assert "lookup(..) or scale(..)" in message


def test_whole_numbers_are_ids_however_a_table_holds_them(tmp_path):
    path = lines(tmp_path / "r.jsonl", {"id": 7, "ok": 1}, {"id": 8.0, "ok": 0}, {"id": " 9 ", "ok": 1})
    assert table(read_responses(path, mapping=ResponseMapping(item="id", score="ok"))) == {
        "r": {"7": 1, "8": 0, "9": 1}
    }


def test_errors_and_absent_scores_are_missing(tmp_path):
    rows = ({"id": "a", "ok": 1}, {"id": "b", "ok": 0, "error": "timeout"}, {"id": "c"})
    notes: list[str] = []
    found = read_responses(lines(tmp_path / "r.jsonl", *rows), mapping=ResponseMapping(score="ok"), note=notes.append)
    assert table(found) == {"r": {"a": 1, "b": None}}
    assert "r.jsonl: by the names of its columns, --set item=id --set error=error" in notes[0]
    assert notes[1] == "r.jsonl: 1 rows have no score and are left out"


def test_a_missing_prediction_is_wrong_where_the_mapping_says_so(tmp_path):
    path = lines(tmp_path / "r.jsonl", {"id": "a", "pred": None, "gold": "A"}, {"id": "b", "pred": "A", "gold": "A"})
    mapping = ResponseMapping(item="id", score="(pred || 'none') == gold")
    assert table(read_responses(path, mapping=mapping)) == {"r": {"a": 0, "b": 1}}


def test_a_row_with_several_subjects(tmp_path):
    row = {"question": "1 + 1?", "small": {"right": False, "text": "3"}, "large": {"right": True, "text": "2"}}
    mapping = ResponseMapping(
        rows="*",
        subject="$key",
        item="hash($parent.question)",
        score="right",
        answer="text",
        question="$parent.question",
    )
    found = read_responses(lines(tmp_path / "r.jsonl", row), mapping=mapping)
    assert {subject: list(scores.values()) for subject, scores in table(found).items()} == {"small": [0], "large": [1]}
    (replies,) = found.replies.values()
    assert [reply[:3] for reply in replies] == [("small", "3", 0.0), ("large", "2", 1.0)]


def test_samples_of_an_object_count_as_their_mean(tmp_path):
    (tmp_path / "r.json").write_text(json.dumps({"pass@1": 50.0, "graded": {"t1": [True, False], "t2": [True]}}))
    mapping = ResponseMapping(rows="graded.*[*]", item="$key", score="$value")
    assert table(read_responses(tmp_path / "r.json", mapping=mapping)) == {"r": {"t1": 0.5, "t2": 1}}


def test_a_folder_has_a_subject_for_each_file_and_other_files_are_named(tmp_path):
    for name, right in (("a", True), ("b", False)):
        lines(tmp_path / f"{name}.jsonl", {"id": 1, "correct": right}, {"id": 2, "correct": right})
    lines(tmp_path / "notes.jsonl", {"text": "not a response"})
    notes: list[str] = []
    found = read_responses(tmp_path, mapping=ResponseMapping(item="id", score="correct"), note=notes.append)
    assert table(found) == {"a": {"1": 1, "2": 1}, "b": {"1": 0, "2": 0}}
    assert any("notes.jsonl: no row has a value at score 'correct'" in note for note in notes)


def test_repeated_rows_count_as_their_mean_and_that_is_said(tmp_path):
    notes: list[str] = []
    path = lines(tmp_path / "r.jsonl", {"id": 1, "ok": 1}, {"id": 1, "ok": 0})
    found = read_responses(path, mapping=ResponseMapping(item="id", score="ok"), note=notes.append)
    assert table(found) == {"r": {"1": 0.5}}
    assert notes[-1] == "r.jsonl: 1 rows repeat a subject and item; the mean of their scores counts"


def test_one_id_for_two_questions_is_refused(tmp_path):
    path = lines(tmp_path / "r.jsonl", {"id": 1, "ok": 1, "q": "One?"}, {"id": 1, "ok": 0, "q": "Two?"})
    message = refused(path, mapping=ResponseMapping(item="id", score="ok", question="q"))
    assert "line 2: the item '1' has another question than in" in message
    assert "such as --set item=EXPRESSION" in message


@pytest.mark.parametrize(
    ("row", "options"),
    [
        (
            {"id": "1", "model": "m", "response": "60", "model_answer": "60", "correct": True},
            "subject=model item=id score=correct answer=response",
        ),
        (
            {"question_id": 70, "question": "?", "options": ["a", "b"], "answer": "B", "pred": "B", "category": "c"},
            "item=question_id answer=pred question=question choices=parse(options) target=answer category=category",
        ),
    ],
)
def test_clear_names_of_columns_suggest_a_mapping(tmp_path, row, options):
    message = refused(lines(tmp_path / "r.jsonl", row))
    proposed = message.partition("The names of its columns suggest: ")[2]
    assert sorted(shlex.split(proposed)) == sorted(word for each in options.split() for word in ("--set", each))
    mapping = ResponseMapping(**dict(option.split("=", 1) for option in options.split()))
    assert read_responses(tmp_path / "r.jsonl", mapping=mapping).items


def test_a_column_without_a_clear_name_is_used_only_where_the_mapping_says(tmp_path):
    path = lines(tmp_path / "r.jsonl", {"id": "a", "rating": 1, "acc": 0})
    assert table(read_responses(path, format="mapping")) == {"r": {"a": 0}}
    assert table(read_responses(path, mapping=ResponseMapping(score="rating"))) == {"r": {"a": 1}}


def test_the_fields_of_a_summary_are_no_scores(tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"adapter": {"tries": 1, "name": "plain", "ask": True, "top": 0}}))
    assert "suggest" not in refused(tmp_path / "run.json")


def test_answers_without_verdicts_are_graded_by_the_target_or_by_own_items(tmp_path):
    path = lines(
        tmp_path / "r.jsonl", {"id": "a", "out": "It is 12.", "gold": 12}, {"id": "b", "out": "13", "gold": 12}
    )
    mapping = ResponseMapping(item="id", answer="out", target="gold")
    assert table(read_responses(path, mapping=mapping)) == {"r": {"a": 1, "b": 0}}
    (tmp_path / "v.json").write_text(json.dumps({"q1": "B", "q2": "(A)", "other": "A"}))
    own = {
        name: parse_item(json.dumps({"id": name, "prompt": "?", "choices": ["x", "y"], "answer": "B"}), "t")
        for name in ("q1", "q2")
    }
    mapping = ResponseMapping(item="$key", answer="$value")
    assert table(read_responses(tmp_path / "v.json", mapping=mapping, items=own)) == {"v": {"q1": 1, "q2": 0}}


@pytest.mark.parametrize(
    ("mapping", "part"),
    [
        (ResponseMapping(item="id", score="nowhere"), "no row has a value at score 'nowhere'; give --set score=COLUMN"),
        (
            ResponseMapping(item="nowhere", score="ok"),
            "item is None, expected a text or a whole number; give --set item=COLUMN",
        ),
        (ResponseMapping(item="id", score="ok", subject="list"), "subject is [1], expected"),
        (ResponseMapping(rows="nowhere", item="id", score="ok"), "nothing at rows 'nowhere'"),
    ],
)
def test_a_mapping_that_reaches_nothing_lists_the_columns(tmp_path, mapping, part):
    message = refused(lines(tmp_path / "r.jsonl", {"id": 1, "ok": 1, "list": [1]}), mapping=mapping)
    assert part in message
    assert "id" in message


def test_a_mapping_is_refused_for_a_named_format(tmp_path):
    path = lines(tmp_path / "r.jsonl", {"subject_id": "a", "responses": {"q": 1}})
    message = refused(path, format="py-irt", mapping=ResponseMapping(score="x"))
    assert "is read as py-irt, which takes no such setting; leave --set score=x out" in message


# --- ids --------------------------------------------------------------------------------------------------------------


def responses_to(*items, questions=None):
    scores = np.arange(len(items), dtype=float)[None] % 2
    return Responses(("m",), items, scores, questions=questions or {})


def own(*ids, prompt="?"):
    return [parse_item(json.dumps({"id": name, "prompt": prompt, "answer": "1"}), "own") for name in ids]


def test_ids_by_prefix_pattern_field_text_and_file(tmp_path):
    (tmp_path / "ids.csv").write_text("log,mine\nsums:a,x\nsums:b,y\n")
    logged = {
        "sums:a": LoggedQuestion("What is 1?", names={"doc.id": "d1"}),
        "sums:b": LoggedQuestion("2?", names={"doc.id": "d2"}),
    }
    given = responses_to("sums:a", "sums:b", questions=logged)
    assert rename_items(given, "sums:")[0].items == ("a", "b")
    assert rename_items(given, "s.*:(.)")[0].items == ("a", "b")
    assert rename_items(given, "doc.id")[0].items == ("d1", "d2")
    assert rename_items(given, str(tmp_path / "ids.csv"))[0].items == ("x", "y")
    mine = [*own("first", prompt="What  is 1?"), *own("second", prompt="2?")]
    joined = rename_items(given, "question", mine)[0]
    assert joined.items == ("first", "second")
    assert joined.questions["first"].prompt == "What is 1?"


def test_items_without_a_new_id_are_left_out_and_two_for_one_are_refused():
    renamed, left = rename_items(responses_to("a:1", "b:2"), "a:")
    assert (renamed.items, left, renamed.scores.tolist()) == (("1",), 1, [[0.0]])
    for ids, part in (
        (r".*:(\d)\d", "fits none of the items"),
        (r"(.):.*", None),
        ("c:", "fits none"),
        ("(", "not a regular expression"),
        (r"(?:a).*", "has no group"),
    ):
        if part is None:
            assert rename_items(responses_to("a:1", "b:2"), ids)[0].items == ("a", "b")
            continue
        with pytest.raises(ResponsesError, match=part):
            rename_items(responses_to("a:1", "b:2"), ids)
    with pytest.raises(ResponsesError, match="gives 'a:1' and 'a:2' the same id 'a'"):
        rename_items(responses_to("a:1", "a:2"), "(.):.*")


def test_ids_that_cannot_name_tests_become_others():
    notes: list[str] = []
    renamed = with_item_ids(responses_to("fine:1", "with space", "a::b", "\u00fcber", "x" * 130), notes.append)
    assert renamed.items[0] == "fine:1"
    assert len(set(renamed.items)) == 5
    for item in renamed.items:
        parse_item(json.dumps({"id": item, "prompt": "?", "answer": "1"}), "t")
    assert "3 ids cannot name tests" in notes[0]


# --- items ------------------------------------------------------------------------------------------------------------


def logged_items(tmp_path, *replies, **questions):
    """Items of questions, the first of which has replies with scores."""
    notes: list[str] = []
    given = replace(
        responses_to(*questions, questions=questions),
        replies={next(iter(questions)): [Reply("m", text, score) for text, score in replies]},
    )
    return {item.id: item for item in items_of(given, tmp_path, notes.append)}, notes


def test_the_grader_is_the_one_that_agrees_with_the_logged_scores(tmp_path):
    capital = LoggedQuestion("Capital of France?", answers=("Paris",))
    number = LoggedQuestion("6 * 7?", answers=("42",))
    letter = LoggedQuestion("A or B?", answers=("B",))
    for question, replies, grader in (
        (capital, [("We flew to Paris in May", 0.0), ("paris", 1.0)], "exact"),
        (capital, [("We flew to Paris in May", 1.0), ("Rome", 0.0)], "contains"),
        (number, [("So 42", 1.0), ("41", 0.0)], "numeric"),
        (letter, [("ANSWER: B", 1.0), ("A", 0.0)], "choice"),
    ):
        items, notes = logged_items(tmp_path, *replies, q=question)
        assert items["q"].grader == grader
        assert "agrees with the logged score of 2 of 2 answers" in notes[0]


def test_items_that_cannot_be_asked_or_graded_are_left_out_with_the_reason(tmp_path):
    items, notes = logged_items(
        tmp_path,
        good=LoggedQuestion("1?", answers=("1",)),
        open=LoggedQuestion("Write a poem"),
        image=LoggedQuestion("2?", answers=("2",), images=(b"GIF89a",)),
    )
    assert list(items) == ["good"]
    assert "left out: 1 item without a right answer" in notes
    assert any("begins with b'GIF89a', expected PNG, JPEG or WEBP" in note for note in notes)


def test_several_accepted_answers_all_count_and_several_right_choices_are_left_out(tmp_path):
    accepted = ("U.S.", "United States")
    question = LoggedQuestion("Where?", answers=accepted)
    whole = [("united states.", 1.0), ("In May we flew to the United States", 0.0)]
    within = [("In the U.S. of course", 1.0), ("Peru", 0.0)]
    for replies in (whole, within):
        items, notes = logged_items(tmp_path, *replies, q=question)
        assert "agrees with the logged score of 2 of 2 answers" in notes[0]
        assert [items["q"].grade(text) for text, _ in replies] == [score for _, score in replies]
    items, notes = logged_items(tmp_path, q=LoggedQuestion("Which?", choices=("x", "y"), answers=("A", "B")))
    assert (items, notes) == ({}, ["left out: 1 item with several right choices"])


def test_images_of_logs_are_written_and_those_outside_of_the_folder_are_not(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "log" / "pics").mkdir(parents=True)
    (tmp_path / "log" / "pics" / "a.png").write_bytes(PNG)
    (tmp_path / "secret.png").write_bytes(PNG)
    rows = [
        {"id": n, "ok": 1, "q": f"{n}?", "gold": "x", "pic": pic}
        for n, pic in enumerate(("pics/a.png", "../secret.png"))
    ]
    mapping = ResponseMapping(item="id", score="ok", question="q", target="gold", images="pic")
    found = read_responses(lines(tmp_path / "log" / "r.jsonl", *rows), mapping=mapping)
    notes: list[str] = []
    (item,) = items_of(found, tmp_path / "out", notes.append)
    assert item.id == "0"
    assert (tmp_path / "out" / item.images[0]).read_bytes() == PNG
    assert any("the image has 0 bytes" in note for note in notes)
