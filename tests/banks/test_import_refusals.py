"""Import of data that could be guessed at: each record is understood, or refused by line and reason."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from pytest_adaptive_eval.banks import read_bank
from pytest_adaptive_eval.banks.items import parse_item
from pytest_adaptive_eval.banks.rows import without_nan
from pytest_adaptive_eval.cli import main
from pytest_adaptive_eval.errors import BankError, DatasetError
from pytest_adaptive_eval.extensions.importing import check as check_module
from pytest_adaptive_eval.extensions.importing.base import ImportSettings
from pytest_adaptive_eval.extensions.importing.grading import is_list
from pytest_adaptive_eval.extensions.importing.importer import import_items

COUNT = 24
WORDS = ("apple", "birch", "crane", "delta", "eagle", "frost", "grape", "heron", "ivory", "jewel", "koala")


def four(n):
    return [WORDS[(n + 3 * k) % len(WORDS)] for k in range(4)]


def choosing(**answer):
    """Questions with four choices; each answer is a function of the number."""
    return [
        {"question": f"Which one, {n}?", "choices": four(n), **{name: value(n) for name, value in answer.items()}}
        for n in range(COUNT)
    ]


def asking(question="What is {}?", **answer):
    return [
        {"question": question.format(n), **{name: value(n) for name, value in answer.items()}} for n in range(COUNT)
    ]


def table(header, row):
    return "\n".join([header, *(",".join(map(str, row(n))) for n in range(COUNT))]) + "\n"


def write(folder, data):
    path = folder / ("quiz.csv" if isinstance(data, str) else "quiz.jsonl")
    path.write_text(data if isinstance(data, str) else "".join(json.dumps(row) + "\n" for row in data))
    return path


def imported(folder, data, labels=None, **mapping):
    with import_items(str(write(folder, data)), ImportSettings(**mapping, labels=str(labels or ""))) as found:
        return found


def letter(n):
    return "ABCD"[n % 4]


def some(n):
    return n % 12 == 0


def third(n):
    return n % 3 == 0


REFUSED_ONE_BY_ONE = {
    "a third of the letters is a question mark": (
        choosing(answer=lambda n: "?" if third(n) else letter(n)),
        third,
        "no answer: '?'",
    ),
    "an object of choices with a hole": (
        [
            {**row, "choices": {**dict(zip("ABCD", four(n), strict=True)), **({"B": None} if some(n) else {})}}
            for n, row in enumerate(choosing(answer=letter))
        ],
        some,
        "choice 2 of 4 has no value",
    ),
    "a letter that the question does not list": (
        [
            {"question": f"Which, {n}?\nA) one\nB) two\nC) three", "answer": "D" if some(n) else "ABC"[n % 3]}
            for n in range(COUNT)
        ],
        some,
        "the answer 'D' may name choices, or be a text or a number",
    ),
    "an empty list among lists": (asking(answer=lambda n: [] if third(n) else [n]), third, "no answer"),
    "a third of the labels is -1": (choosing(label=lambda n: -1 if third(n) else n % 4), third, "no answer: '-1'"),
    "a third of the letters is -1": (choosing(answer=lambda n: "-1" if third(n) else letter(n)), third, "no answer"),
    "a third of the letters is null": (choosing(answer=lambda n: None if third(n) else letter(n)), third, "no answer"),
    "a third of the cells is NaN": (
        table("question,A,B,C,D,answer", lambda n: [f"Which {n}?", *four(n), "NaN" if third(n) else letter(n)]),
        third,
        "no answer: 'NaN'",
    ),
    "numbers among letters": (choosing(answer=lambda n: "2" if some(n) else letter(n)), some, "names none of its 4"),
    "texts among letters": (choosing(answer=lambda n: four(n)[2] if some(n) else letter(n)), some, "names none"),
    "letters beyond the choices": (choosing(answer=lambda n: "E" if some(n) else letter(n)), some, "names none"),
    "numbers beyond the choices": (choosing(answer=lambda n: 7 if some(n) else n % 4), some, "names none of its 4"),
    "two letters where others have one": (
        choosing(answer=lambda n: "AC" if some(n) else letter(n)),
        some,
        "the answer 'AC' names 2 choices: give --set answer_kind=all",
    ),
    "a choice between others is null": (
        [
            {**row, "choices": [*four(n)[:2], None, four(n)[3]]} if some(n) else row
            for n, row in enumerate(choosing(answer=letter))
        ],
        some,
        "choice 3 of 4 has no value",
    ),
    "a choice that may be a missing value": (
        table(
            "question,A,B,C,D,answer",
            lambda n: [f"Which {n}?", *four(n)[:3], "nan" if third(n) else four(n)[3], "ABC"[n % 3]],
        ),
        third,
        "the choice 'nan' may mean no value: give --set missing=nan if it does, or --set missing= if it is a text",
    ),
    "a choice twice": (
        [
            {**row, "choices": [*four(n)[:3], four(n)[0]]} if some(n) else row
            for n, row in enumerate(choosing(answer=letter))
        ],
        some,
        "appears twice",
    ),
    "hidden marks": (
        [
            {
                "question": f"Which {n}?",
                "options": [{"text": w, "is_correct": k == n % 4 and not third(n)} for k, w in enumerate(four(n))],
            }
            for n in range(COUNT)
        ],
        third,
        "no answer",
    ),
    "an only choice": (
        [{**row, "choices": four(n)[:1]} if some(n) else row for n, row in enumerate(choosing(answer=letter))],
        some,
        "is its only choice",
    ),
    "a free answer that is NaN": (asking(answer=lambda n: float("nan") if third(n) else n), third, "no answer"),
    "a free answer that is blank": (
        asking(answer=lambda n: " " if third(n) else f"{WORDS[n % 11]} tree"),
        third,
        "no answer",
    ),
    "a free answer in an object that is null": (
        asking(answer=lambda n: {"value": None if third(n) else f"{WORDS[n % 11]} tree {n}"}),
        third,
        "no answer",
    ),
    "a free answer NA": (
        table("question,answer", lambda n: [f"What is {n}?", "NA" if third(n) else f"{WORDS[n % 11]} tree {n}"]),
        third,
        "the answer 'NA' may mean no value",
    ),
    "a dash among classes": (
        asking(label=lambda n: "-" if third(n) else ("entailment", "neutral")[n % 2]),
        third,
        "the answer '-' may mean no value",
    ),
    "a solution without its end": (
        asking(answer=lambda n: "I add them up and get it." if some(n) else f"I add.\n#### {n}"),
        some,
        "its answer has no marked end, such as a box, and most have one",
    ),
}


@pytest.mark.parametrize("name", REFUSED_ONE_BY_ONE)
def test_records_that_are_not_understood_are_refused_and_the_others_keep_their_answers(name, tmp_path):
    data, refused, reason = REFUSED_ONE_BY_ONE[name]
    found = imported(tmp_path, data)
    first = 2 if isinstance(data, str) else 1
    assert [(where.rpartition(" ")[2], why) for where, why in found.refused if reason not in why] == []
    assert sorted(int(where.rpartition(" ")[2]) - first for where, _ in found.refused) == list(
        filter(refused, range(COUNT))
    )
    for item in found.items:
        n = item.meta["row"]
        if item.choices and item.grader == "choice":
            right = n % (3 if "may be a missing" in name else 4)
            assert (item.answer, list(item.choices[:3])) == (letter(right), four(n)[:3])
        elif item.grader == "numeric":
            assert item.answer == str(n)


REFUSED_WHOLE = {
    "all labels are -1": (choosing(label=lambda _: -1), "24 of 24 records are refused, 24 because no answer: '-1'"),
    "the key is empty": (
        choosing(answerKey=lambda _: ""),
        "24 because no answer",
    ),
    "the key is empty and a reply is there": (
        choosing(answerKey=lambda _: "", response=letter),
        "24 because no answer",
    ),
    "the answer is empty and a reply is there": (
        asking(answer=lambda _: "", output=lambda n: f"I think {n}"),
        "24 because no answer",
    ),
    "all labels are the same": (
        choosing(label=lambda _: 0),
        "the answers of 'label' are all 0, as where they are hidden",
    ),
    "all letters are the same": (choosing(answer=lambda _: "C"), "are all 'C', as where they are hidden"),
    "all free answers are the same": (asking(answer=lambda _: "hidden"), "are all 'hidden', as where they are hidden"),
    "numbers from 1 to 3 of four": (choosing(answer_idx=lambda n: 1 + n % 3), "--set counted=0, or --set counted=1"),
    "numbers with a 0 and with the last": (
        choosing(answer=lambda n: 0 if n in (5, 9) else 1 + n % 4),
        "2 because the answer 0: '0' names none of its 4 choices",
    ),
    "numbers of choices that are numbers": (
        [{"question": f"How many, {n}?", "choices": ["1", "2", "3", "4"], "answer": 1 + n % 3} for n in range(COUNT)],
        "by text or by numbers from 0, which differ",
    ),
    "letters of choices that are letters": (
        [
            {"question": f"Which letter, {n}?", "choices": ["B", "A", "D", "C"], "answer": letter(n)}
            for n in range(COUNT)
        ],
        "by letter or by text, which differ",
    ),
    "choices in columns that no answer names": (
        [
            {
                "question": f"Which {n}?",
                **dict(zip(("option1", "option2", "option3", "option4"), four(n), strict=True)),
                "answer": f"the {n}th",
            }
            for n in range(COUNT)
        ],
        "name a choice in 0 of 24 rows only",
    ),
    "letters without choices": (
        asking(answer=letter),
        "may name choices, which the question does not list: write --set choices=FIELD",
    ),
    "objects": (
        asking(answer=lambda n: {"x": n, "y": 2}),
        "its answer is an object, .'x': 0, 'y': 2..*write --set answer=answer.KEY",
    ),
    "lists of texts": (
        asking(answer=lambda n: [f"{WORDS[n % 11]} {n}", f"{n}"]),
        "list, .*give --set answer_kind=any where each entry is right, or .*=all where .*, or .*=list where",
    ),
    "decimals with a comma": (asking(answer=lambda n: f"{n},5"), "may have a decimal comma, or be two numbers"),
    "choices of which none is said to be right": (
        asking(answers=four),
        "24 because no answer",
    ),
    "answers of which a field says whether they are right": (
        asking(answer=lambda n: WORDS[n % 11], label=lambda n: n % 2),
        "questions may need 'label', and do not use it: .*--set ignore=label",
    ),
    "keys behind a label": (
        asking(answer=lambda n: f"Verdict: {WORDS[n % 11]}"),
        "every key begins with 'Verdict: ', .*answer=\"extract\\(answer, 'Verdict:",
    ),
    "choices with letters of their own in another order": (
        asking(
            choices=lambda n: [f"({mark}) {WORDS[n % 11]} {mark}" for mark in "ACBD"], answer=lambda n: "ABCD"[n % 4]
        ),
        "its choices have the letters ACBD of their own",
    ),
    "chats of several turns beside a list as long": (
        [
            {"id": n, "question": [[{"role": "user", "content": f"Go {n}"}], [{"role": "user", "content": "Back"}]]}
            | {"path": ["go", "back"], "ground_truth": [["go()"], ["back()"]]}
            for n in range(COUNT)
        ],
        "each turn has an answer of several parts",
    ),
    "numbers of choices that the questions list": (
        asking("Which is {}? (A) one (B) two", answer_index=lambda n: n % 2),
        "the numbers in 'answer_index' may mean 2 classes",
    ),
    "ratings of texts": (
        table("text,label", lambda n: [f"You are number {n}.", n / 40 + 0.01]),
        "'text' asks nothing by itself, and no field says what is asked: give --set question=",
    ),
    "turns of a conversation": (
        [
            {
                "story": f"Tale {n}.",
                "questions": [{"input_text": f"Who, {n}?", "turn": 1}, {"input_text": f"Why, {n}?", "turn": 2}],
                "answers": [{"input_text": "Ann", "span_start": 1}, {"input_text": "Rain", "span_start": 2}],
            }
            for n in range(COUNT)
        ],
        "no field has the name of a question",
    ),
    "what a program is given": (
        [{"code": f"def f(x):\n    return x + {n}", "input": f"{n}", "output": f"{2 * n}"} for n in range(COUNT)],
        "questions may need 'code', and do not use it",
    ),
    "truth values of a pair of texts": (
        [{"sentence1": f"The bank {n} shut.", "sentence2": "A bank.", "label": bool(n % 2)} for n in range(COUNT)],
        "'sentence2' asks nothing by itself, and no field says what is asked",
    ),
    "truth values of a text": (
        table("index,answer,text", lambda n: [n, "Yes" if n % 2 else "No", f"The clause {n} binds."]),
        "'text' asks nothing by itself, and no field says what is asked",
    ),
    "0 and 1 to questions for yes or no": (
        asking("Is {} red?", answer=lambda n: n % 2),
        "may mean 2 classes, whose names no field has: write --set choices=.*--set counted=0, or --set grader=numeric",
    ),
    "two readings of a list in a text": (
        asking(answer=lambda n: f"['a', 'b{n}']"),
        "its answer is a list, .*give --set answer_kind=list",
    ),
    "several letters of choices that the question lists": (
        asking("Which of {}?\nA. one\nB. two\nC. three", answer=lambda n: ["AB", "C", "ABC"][n % 3]),
        "the answer 'AB' may name choices, .*answer_kind=letters where it is letters",
    ),
    "a constant field that may say what is to be done": (
        asking(answer=lambda n: n, handling=lambda _: "Count the vowels of the word."),
        "questions may need 'handling'",
    ),
    "a question said to have no answer": (
        asking(answer=lambda n: f"{WORDS[n % 11]} {n}", is_impossible=third),
        "questions may need 'is_impossible'",
    ),
    "a file that some questions need": (
        asking(answer=lambda n: f"{WORDS[n % 11]} {n}", file_name=lambda n: f"t{n}.xlsx" if third(n) else ""),
        "questions may need 'file_name'",
    ),
}


@pytest.mark.parametrize("name", REFUSED_WHOLE)
def test_data_of_which_no_answer_is_sure_are_refused_with_the_option_to_give(name, tmp_path, capsys):
    data, message = REFUSED_WHOLE[name]
    assert main(["import", str(write(tmp_path, data)), "-o", str(tmp_path / "quiz.bank"), "--yes"]) == 4
    said = " ".join(" ".join(capsys.readouterr()).split())
    assert re.search(message, said), said
    assert not (tmp_path / "quiz.bank").exists()


KINDS = {
    "names of columns": (
        [
            {
                "question": f"Which {n}?",
                **{f"option{k}": word for k, word in enumerate(four(n), 1)},
                "answer": f"option{n % 4 + 1}",
            }
            for n in range(COUNT)
        ],
        "choice",
        "D",
    ),
    "times of a clock": (asking(answer=lambda n: f"{n % 12 + 1}:30"), "exact", "8:30"),
    "versions": (asking(answer=lambda n: f"1.{n}.0"), "exact", "1.7.0"),
    "shares": (asking(answer=lambda n: f"{n}%"), "numeric", "7%"),
    "answers with their place in a text": (
        asking(
            answers=lambda n: [
                {"text": f"{WORDS[n % 11]} {n}", "answer_start": 3},
                {"text": f"the {n}", "answer_start": 1},
            ]
        ),
        "exact_match",
        ["heron 7", "the 7"],
    ),
    "numbers with commas": (asking(answer=lambda n: f"0,{n},0"), "literal", "0,7,0"),
    "letters with commas": (asking(answer=lambda n: f"C, {letter(n)}, {n}"), "literal", "C, D, 7"),
    "aliases beside the answer": (
        asking(answer=lambda n: f"{WORDS[n % 11]} tree {n}", aliases=lambda n: [f"{WORDS[n % 11]} {n}"]),
        "exact_match",
        ["heron tree 7", "heron 7"],
    ),
    "acceptable answers in a text": (
        asking(acceptable_answers=lambda n: f"['{WORDS[n % 11]} tree {n}', '{WORDS[n % 11]} {n}']"),
        "exact_match",
        ["heron tree 7", "heron 7"],
    ),
    "lists of one entry": (asking(answer=lambda n: [f"{WORDS[n % 11]} tree {n}"]), "exact_match", "heron tree 7"),
    "truth values": (asking("Is {} red?", answer=lambda n: bool(n % 3)), "yesno", "yes"),
    "True and False": (asking("Is {} red?", answer=lambda n: str(bool(n % 3))), "yesno", "yes"),
    "names in Chinese": (
        asking(answer=lambda n: "王李张刘陈杨黄"[n % 7] + "伟芳娜敏"[n % 4] + "静丽强磊军"[n % 5]),
        "exact_match",
        "王敏强",
    ),
    "LaTeX": (asking(answer=lambda n: f"\\frac{{{n}}}{{7}}"), "math", "\\frac{7}{7}"),
    "words of LaTeX": (asking(answer=lambda n: f"\\text{{{WORDS[n % 11]} {n}}}"), "exact_match", "heron 7"),
    "numbers with a note": (asking(answer=lambda n: f"{800 + n} (visitors)"), "numeric", "807 (visitors)"),
    "numbers with a unit": (asking(answer=lambda n: f"{n} km"), "numeric", "7 km"),
    "days": (asking(answer=lambda n: f"{n + 1} January"), "exact_match", "8 January"),
    "years": (asking(answer=lambda n: f"{1900 + n}-{1950 + n}"), "exact", "1907-1957"),
    "-1 among negative numbers": (asking(answer=lambda n: -1 if third(n) else -n), "numeric", "-7"),
    "numbers beside words": (asking(answer=lambda n: f"{WORDS[n % 11]}" if n == 3 else str(n)), "numeric", "7"),
    "none of the above": (
        [{**row, "choices": [*four(n)[:3], "None of the above"]} for n, row in enumerate(choosing(answer=letter))],
        "choice",
        "D",
    ),
    "letters in lower case with a point": (choosing(answer=lambda n: f"{letter(n).lower()}."), "choice", "D"),
    "numbers that became decimals": (
        table("question,choice1,choice2,choice3,label", lambda n: [f"Which {n}?", *four(n)[:3], float(n % 3)]),
        "choice",
        "B",
    ),
}


@pytest.mark.parametrize("name", KINDS)
def test_the_grader_follows_from_the_kind_of_each_answer(name, tmp_path):
    data, grader, answer = KINDS[name]
    found = imported(tmp_path, data)
    assert (len(found.items), found.refused) == (COUNT, [])
    assert Counter(item.grader for item in found.items)[grader] >= COUNT - 1
    assert found.items[7].to_json()["answer"] == answer


ANSWER_KINDS = {
    "any": (["Ann", "Bo"], {"Answer: Ann": 1, "Answer: Bo": 1, "Answer: Al": 0}),
    "all": (["Ann", "Bo"], {"Answer: Ann, Bo": 1, "Answer: Bo, Ann": 1, "Answer: Ann": 0}),
    "list": (["Ann", "Bo"], {"Answer: ['Ann', 'Bo']": 1, "Answer: ['Bo', 'Ann']": 0, "Answer: Ann": 0}),
    "letters": (["A", "C"], {"The answers are A and C.": 1, "AC": 1, "A": 0, "A, B, C": 0}),
}


@pytest.mark.parametrize("kind", ANSWER_KINDS)
def test_the_mapping_says_how_an_answer_of_several_parts_is_read(kind, tmp_path):
    answer, scores = ANSWER_KINDS[kind]
    rows = [{"question": f"Which of {n}?\nA. one\nB. two\nC. three", "answer": answer} for n in range(4)]
    found = imported(tmp_path, rows, answer_kind=kind, question="question", answer="answer")
    assert found.refused == []
    assert {text: found.items[0].grade(text) for text in scores} == scores


@pytest.mark.parametrize(("kind", "answer"), [("all", "AC"), ("any", ["A", "C"])])
def test_several_right_choices_count_together_or_each(kind, answer, tmp_path):
    rows = choosing(answer=lambda n: ["A", "BC"[n % 2]])
    found = imported(tmp_path, rows, answer_kind=kind)
    assert found.items[1].to_json()["answer"] == answer


def test_labels_of_a_data_set_are_choices(tmp_path):
    labels = ("True", "False", "Uncertain")
    items = imported(tmp_path, asking("Does bird {} bark?", answer=lambda n: labels[n % 3])).items
    assert {(item.grader, item.choices) for item in items} == {("yesno", ("False", "True", "Uncertain"))}
    assert items[0].prompt.endswith("Answer with one of: False, True, Uncertain.")
    assert [items[1].grade(text) for text in ("False. No bird barks.", "True", "Uncertain")] == [1, 0, 0]
    items = imported(
        tmp_path, asking("How is {}?", answer=lambda n: ["cold", "mild", "hot"][n % 3] if n else "-")
    ).items
    assert {(item.grader, item.choices) for item in items} == {("choice", ("cold", "hot", "mild"))}
    assert [items[0].grade(text) for text in ("It is mild.", "hot")] == [1, 0]


def test_a_letter_with_the_text_of_its_choice_is_the_choice(tmp_path):
    rows = asking("Who {}?\n(A) Ann\n(B) Bo\n(C) Cy", answer=lambda n: ["(A) Ann", "(B) Bo", "C. Cy"][n % 3])
    items = imported(tmp_path, rows).items
    assert [(item.grader, item.answer) for item in items[:3]] == [("choice", letter) for letter in "ABC"]
    assert items[1].grade("B. Bo") == 1


def test_long_hostile_texts_are_read_in_time(tmp_path):
    long = "a. " * 40_000 + "A " * 40_000 + "(" * 40_000
    rows = [{"question": f"{n} {long}", " " * 60_000 + "x": "y", "answer": "A"} for n in range(4)]
    assert len(imported(tmp_path, rows).refused) == 4


def test_zeros_before_a_number_do_not_count(tmp_path):
    items = imported(tmp_path, asking(answer=lambda n: f"{25 + n:03d}")).items
    assert [items[0].grade(text) for text in ("25", "Answer: 025", "26")] == [1, 1, 0]


def test_shuffled_choices_keep_those_that_name_the_others_last_or_are_refused(tmp_path):
    def rows(last):
        return table("question,correct_answer,wrong1,wrong2", lambda n: [f"What {n}?", *four(n)[:2], last])

    items = imported(tmp_path, rows("None of the above")).items
    assert {item.choices[-1] for item in items} == {"None of the above"}
    assert {item.answer for item in items} == {"A", "B"}
    assert {why for _, why in imported(tmp_path, rows("Both A and B")).refused} == {
        "a choice names others by letter, and they are shuffled"
    }


def test_the_user_says_which_words_stand_for_no_value(tmp_path, capsys):
    data = write(
        tmp_path, table("question,answer", lambda n: [f"What is {n}?", "NA" if third(n) else f"{WORDS[n % 11]} {n}"])
    )
    for given, count in (("NA", 16), ("", 24)):
        assert main(["import", str(data), "--set", f"missing={given}"]) == 4
        assert f"{count} items of 24 records" in capsys.readouterr().out


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("field", ["code", "paragraph_b", "codeSnippet", "table"])
def test_a_field_that_questions_may_need_stops_the_import_until_it_is_used_or_ignored(field, tmp_path, capsys):
    rows = asking(answer=lambda n: n + 5, context=lambda n: f"Say {n}.", **{field: lambda n: f"value {n}"})
    data, bank = write(tmp_path, rows), tmp_path / "quiz.bank"
    command = ["import", str(data), "-o", str(bank), "--yes", "--replace"]
    for options in ([], ["--partial"]):
        assert main([*command, *options]) == 4
        assert f"questions may need '{field}'" in " ".join(capsys.readouterr().out.split())
        assert not bank.exists()
    for given in (
        f"meta={field}",
        f"ignore={field}",
        f"question={{question}} {{{field}}}",
        f"context=context,{field}",
    ):
        assert main([*command, "--set", given]) == 0
    contained = [{**row, "question": f"{row['question']} {row[field]}"} for row in rows]
    assert not any(unused.needed for unused in imported(tmp_path, contained).unused)


def test_a_blank_line_of_labels_is_a_missing_answer_and_shifts_none(tmp_path):
    labels = tmp_path / "labels.lst"
    labels.write_text("\n".join("" if third(n) else letter(n) for n in range(COUNT)) + "\n\n")
    found = imported(tmp_path, choosing(), labels=labels)
    assert {item.meta["row"]: item.answer for item in found.items} == {
        n: letter(n) for n in range(COUNT) if not third(n)
    }
    labels = tmp_path / "labels.jsonl"
    labels.write_text('{"id": 1, "answer": "A"}\n{"id": 1, "answer": "B"}\n')
    with pytest.raises(DatasetError, match="have a value of id more than once"):
        imported(tmp_path, choosing(), labels=labels)


def test_classes_of_a_table_without_a_name_are_missing(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    features = {"features": {"label": {"names": ["bad", "good"], "_type": "ClassLabel"}}}
    rows = {"text": [f"film {n}" for n in range(COUNT)], "label": [-1 if third(n) else n % 2 for n in range(COUNT)]}
    rows |= {"score": [float("nan")] * COUNT}
    described = pyarrow.table(rows).replace_schema_metadata({"huggingface": json.dumps({"info": features})})
    parquet.write_table(described, tmp_path / "test.parquet")
    with import_items(str(tmp_path / "test.parquet")) as found:
        assert {item.answer for item in found.items} == {"bad", "good"}
        assert [reason for _, reason in found.refused] == ["no answer"] * 8
    assert without_nan({"a": [1.0, float("nan")], "b": "nan"}) == {"a": [1.0, None], "b": "nan"}


@pytest.mark.parametrize(
    ("grader", "answer", "more"),
    [
        ("choice", "B", {"choices": ["p", "q"]}),
        ("choice", "ABD", {"choices": ["p", "q", "r", "s"]}),
        ("choice", "B", {}),
        ("yesno", "no", {}),
        ("numeric", "1,234.5", {"meta": {"tolerance": 3}}),
        ("exact", "[1, 2]", {}),
        ("exact_match", "Ann Bo", {}),
        ("f1", "Ann Bo", {}),
        ("contains", "Ann", {}),
        ("exact", "Ann", {"turns": ["And who then?"]}),
    ],
)
def test_items_that_grade_their_own_answer_pass_the_check(grader, answer, more):
    item = parse_item(json.dumps({"id": "q", "prompt": "?", "answer": answer, "grader": grader, **more}), "quiz")
    check = check_module.KeyCheck()
    check.check(item)
    assert check.graded == 1


def test_items_whose_grader_fails_their_own_answer_are_refused_and_others_are_named(monkeypatch, tmp_path):
    rows = [
        *asking(answer=lambda n: f"{WORDS[n % 11]} {n}"),
        {"question": "All?", "answer": "first\n\nThe answer is second"},
    ]
    found = imported(tmp_path, rows, grader="exact")
    assert (len(found.items), len(found.refused)) == (COUNT, 1)
    assert "its grader exact: gives its expected answer, 'Answer: first" in found.refused[0][1]
    assert f"graders checked on {COUNT} items: each accepts the key and rejects another item's" in found.notes
    monkeypatch.setattr(check_module, "_SECONDS", -1.0)
    assert "were not graded with their own answers" in imported(tmp_path, rows, grader="exact").notes[-1]


@pytest.mark.parametrize("answer", ["NaN", "Infinity", "[NaN]", '" "', '[" ", "a"]', "true", "null"])
def test_an_answer_of_a_bank_that_is_no_text_or_number_is_refused(answer):
    with pytest.raises(BankError, match="answer"):
        parse_item(f'{{"id": "q", "prompt": "?", "answer": {answer}}}', "quiz")


@pytest.mark.parametrize("text", ["[1]", "{'a': 1}", "(1, 2)", "A, B", "0,1", "['a', 'b']"])
def test_lists_are_told_from_texts(text):
    assert is_list(text)
    assert not any(map(is_list, ("red, green", "(a) b", "New York", "[sic", "")))


def test_choices_in_one_line_of_a_script_without_spaces_are_listed(tmp_path):
    rows = asking("第{0}号箱子里有什么？A:灯{0};B:绳{0};C:杯{0};D:船{0}。", answer=letter)
    bank = tmp_path / "quiz.bank"
    assert main(["import", str(write(tmp_path, rows)), "-o", str(bank), "--yes"]) == 0
    assert {item.grader for item in read_bank(bank).items} == {"choice"}


def test_records_without_a_common_form_are_no_questions(tmp_path, capsys):
    rows = [{"question": f"What is {n}?", "answer": str(n), f"text of {n}": f"some words about {n}"} for n in range(60)]
    path = tmp_path / "mixed.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["import", str(path)]) == 4
    told = capsys.readouterr()
    assert "questions may need 60 fields" in told.out
    assert "the records have no common form" in told.out
    assert max(map(len, told.out.splitlines())) < 1000


def test_an_empty_name_is_not_the_working_folder(tmp_path, capsys, monkeypatch):
    (tmp_path / "mixed.jsonl").write_text(json.dumps({"question": "What is 1?", "answer": "1"}) + "\n")
    monkeypatch.chdir(tmp_path)
    assert main(["import", ""]) == 4
    assert "name a file or folder to import" in capsys.readouterr().err
