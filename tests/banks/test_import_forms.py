"""Forms of files that are opened by what is in them, and references to other files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_adaptive_eval.banks.code import calls_of_tests
from pytest_adaptive_eval.cli import main
from pytest_adaptive_eval.errors import DatasetError
from pytest_adaptive_eval.extensions.importing.base import Imported, ImportSettings
from pytest_adaptive_eval.extensions.importing.importer import import_items

WORDS = ["river", "stone", "cloud", "garden", "window", "copper", "meadow", "lantern", "harbor", "pencil", "saddle"]
COUNT = 24
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63606060000000040001f61738550000000049454e44ae426082"
)


def options(n: int) -> list[str]:
    return [WORDS[(n * 7 + k * 3) % 11] for k in range(4)]


def letter(n: int) -> str:
    return "ABCD"[(n * 7 + n // 4) % 4]


def right(n: int) -> str:
    return options(n)["ABCD".index(letter(n))]


def question(n: int) -> str:
    return f"Which word belongs to round {n} of the game?"


def lines(rows: list[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def each(row: Any) -> list[Any]:
    return [row(n) for n in range(COUNT)]


PLAIN = each(lambda n: {"question": question(n), "options": options(n), "answer": letter(n)})
#: Texts of files by name of the form, with the file's name.
CHOICES: dict[str, tuple[str, str]] = {
    "JSON lines called a text": ("test.txt", lines(PLAIN)),
    "JSON lines without an ending": ("questions", lines(PLAIN)),
    "JSON called a text": ("test.txt", json.dumps(PLAIN, indent=1)),
    "columns 1 to 4": (
        "test.csv",
        "id,question,1,2,3,4,answer\n"
        + "".join(f"{n},{question(n)},{','.join(options(n))},{'ABCD'.index(letter(n)) + 1}\n" for n in range(COUNT)),
    ),
    "columns in brackets, by semicolons": (
        "test.csv",
        "Question;(A);(B);(C);(D);Correct Answer\n"
        + "".join(f"{question(n)};{';'.join(options(n))};{letter(n)}\n" for n in range(COUNT)),
    ),
    "lists by category": ("quiz.json", json.dumps({"easy": PLAIN[:9], "hard": PLAIN[9:]})),
    "a list of questions in each record": (
        "musr.json",
        json.dumps([{"context": f"Story {n}.", "questions": [{**PLAIN[n], "gold": "x"}]} for n in range(COUNT)]),
    ),
    "names of columns as answers": (
        "test.jsonl",
        lines(
            each(
                lambda n: {
                    "question": question(n),
                    "options": {f"option_{name}": text for name, text in zip("abcd", options(n), strict=True)},
                    "correct": f"option_{letter(n).lower()}",
                }
            )
        ),
    ),
    "a chat in a list": (
        "chat.jsonl",
        lines(each(lambda n: {"question": [[{"role": "user", "content": question(n)}]], "ground_truth": right(n)})),
    ),
    "rows as the hub's server gives them": (
        "rows.json",
        json.dumps({"features": [{"name": "x"}], "rows": [{"row_idx": n, "row": row} for n, row in enumerate(PLAIN)]}),
    ),
    "the answer first among its spellings": (
        "test.jsonl",
        lines(
            each(lambda n: {"question": question(n), "obj": right(n), "possible_answers": [right(n), f"a {right(n)}"]})
        ),
    ),
    "names of columns with signs": (
        "test.csv",
        "Writer's note (in minutes - self-reported),Question,Correct Answer,Incorrect Answer 1,Incorrect Answer 2\n"
        + "".join(
            f"{n},{question(n)},{right(n)},{','.join([text for text in options(n) if text != right(n)][:2])}\n"
            for n in range(COUNT)
        ),
    ),
}


def imported(path: Path, **settings: Any) -> Imported:
    return import_items(str(path), ImportSettings(**settings))


@pytest.mark.parametrize("form", CHOICES)
def test_every_item_of_a_form_has_the_right_answer(form: str, tmp_path: Path) -> None:
    name, text = CHOICES[form]
    (tmp_path / name).write_text(text, encoding="utf-8")
    with imported(tmp_path / name) as found:
        assert (len(found.items), found.refused) == (COUNT, [])
        for item in found.items:
            number = int(item.prompt.partition("round ")[2].partition(" ")[0])
            answer = item.choices["ABCD".index(item.answer)] if item.choices else item.answer
            assert answer == right(number)


def test_the_answer_is_in_one_of_two_fields_where_the_mapping_says_so(tmp_path: Path) -> None:
    rows = [
        {**row, "options": row["options"] if n % 2 else None, "label": letter(n) if n % 2 else None}
        | {"answer": None if n % 2 else right(n)}
        for n, row in enumerate(PLAIN)
    ]
    (tmp_path / "mixed.jsonl").write_text(lines(rows))
    found = imported(tmp_path / "mixed.jsonl", answer="label || answer")
    assert [item.answer for item in found.items] == [letter(n) if n % 2 else right(n) for n in range(COUNT)]


@pytest.mark.parametrize(
    ("form", "mapping"),
    [
        ("a ) {} , b ) {} , c ) {} , d ) {}", {}),
        ("A {}\nB {}\nC {}\nD {}", {}),
        ("A:{};B:{};C:{};D:{}。", {}),
        ("(A) {} (B) {} (C) {} (D) {}", {}),
        ("1. {}\n2. {}\n3. {}\n4. {}", {}),
        ("{}\n{}\n{}\n{}", {}),
        ("{} / {} / {} / {}", {"choices": ("split(options, ' / ')",)}),
    ],
)
def test_options_in_one_text_are_read_by_letters_or_lines_or_separated_by_the_mapping(
    form: str, mapping: dict[str, Any], tmp_path: Path
) -> None:
    rows = each(lambda n: {"question": question(n), "options": form.format(*options(n)), "correct": letter(n).lower()})
    (tmp_path / "math.jsonl").write_text(lines(rows))
    found = imported(tmp_path / "math.jsonl", **mapping)
    assert [(item.answer, list(item.choices)) for item in found.items] == [
        (letter(n), options(n)) for n in range(COUNT)
    ]


def test_a_workbook_is_imported(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine")
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["No", "Question", "Option A", "Option B", "Option C", "Option D", "Correct"])
    for n in range(COUNT):
        book.active.append([n, question(n), *options(n), letter(n)])
    book.save(tmp_path / "quiz.xlsx")
    assert [item.answer for item in imported(tmp_path / "quiz.xlsx").items] == each(letter)


def test_the_columns_of_a_table_without_a_header_are_named(tmp_path: Path) -> None:
    (tmp_path / "test.csv").write_text(
        "".join(f"{question(n)},{','.join(options(n))},{letter(n)}\n" for n in range(COUNT))
    )
    header = ("question", *"ABCD", "answer")
    mapping = ImportSettings(header=header, question="question", choices=tuple("ABCD"), answer="answer")
    found = import_items(str(tmp_path / "test.csv"), mapping)
    assert [item.answer for item in found.items] == each(letter)


def test_questions_within_a_list_of_a_record_have_what_encloses_them(tmp_path: Path) -> None:
    rows = [
        [[f"Story {n}."], [{"question": question(n), "options": options(n), "answer": letter(n)}], n] for n in range(9)
    ]
    (tmp_path / "talks.json").write_text(json.dumps(rows))
    mapping = ImportSettings(
        rows="[*][1][*]", context=("$outer[0]",), question="question", choices=("options",), answer="answer"
    )
    found = import_items(str(tmp_path / "talks.json"), mapping)
    assert [item.answer for item in found.items] == [letter(n) for n in range(9)]
    assert found.items[2].prompt.startswith("Story 2.\n\nWhich word")


def test_lists_side_by_side_and_splits_in_one_file_are_named(tmp_path: Path) -> None:
    rows = [
        {"article": f"Story {n}.", "questions": [question(n)], "options": [options(n)], "answers": [letter(n)]}
        for n in range(COUNT)
    ]
    (tmp_path / "race.jsonl").write_text(lines(rows))
    mapping = ImportSettings(
        rows="questions,options,answers",
        context=("article",),
        question="questions",
        choices=("options",),
        answer="answers",
    )
    found = import_items(str(tmp_path / "race.jsonl"), mapping)
    assert [item.answer for item in found.items] == each(letter)
    assert found.items[1].prompt.startswith("Story 1.\n\nWhich word")
    (tmp_path / "quiz.json").write_text(json.dumps({"train": PLAIN, "test": PLAIN[:3]}))
    with pytest.raises(DatasetError, match=r"it has the splits test, train: give --set rows=test"):
        imported(tmp_path / "quiz.json")
    assert len(import_items(str(tmp_path / "quiz.json"), ImportSettings(rows="test")).items) == 3


def test_records_that_name_a_rule_in_another_file_are_joined_by_its_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules, data = tmp_path / "rule.jsonl", tmp_path / "sample.jsonl"
    rules.write_text(lines([{"idx": f"{n}", "tag": "t", "rule_content": f"Rule {n}: words grow."} for n in range(4)]))
    data.write_text(
        lines(each(lambda n: {"idx": f"s{n}", "question": question(n), "answer": f"[[{n}]]", "rule_id": f"{n % 4}"}))
    )
    assert [field.name for field in imported(data).unused if field.needed] == ["rule_id"]
    command = ["import", str(data), "--labels", str(rules), "--set", "labels_by=rule_id"]
    given = ["--set", "context=$label.rule_content", "--question", "question", "--answer", "answer"]
    assert main([*command, *given]) == 0
    shown = capsys.readouterr().out
    assert "| Rule 0: words grow." in shown
    assert "answer: '0' (by the grader numeric)" in shown


def test_calls_of_functions_are_asked_with_these_and_a_judge_or_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, labels = tmp_path / "BFCL_v3_simple.json", tmp_path / "possible_answer.json"
    chat = each(lambda n: [[{"role": "user", "content": question(n)}]])
    data.write_text(
        lines(each(lambda n: {"id": f"simple_{n}", "question": chat[n], "function": [{"name": f"area{n}"}]}))
    )
    labels.write_text(lines(each(lambda n: {"id": f"simple_{n}", "ground_truth": [{f"area{n}": {"base": [n, ""]}}]})))
    command = ["import", str(data), "--labels", str(labels)]
    assert main(command) == 4
    said = " ".join(capsys.readouterr().out.split())
    assert "write --set answer=$label.KEY for the part that is the answer, or --set grader=judge" in said
    assert "questions may need 'function'" in said
    answers = ["--answer", "$label.ground_truth"]
    assert main([*command, "--grader", "judge", "--set", "context=function", "--question", "question", *answers]) == 0
    shown = capsys.readouterr().out
    assert '| {"name": "area0"}\n' in shown
    assert f"| {question(0)}\n" in shown
    assert """answer: '{"area0": {"base": [0, ""]}}' (by the grader judge)""" in shown


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("data.tar", "x", "is an archive; unpack it"),
        ("config.yaml", "tests: 1", "is YAML; write its records as JSON"),
        ("lists.json", '[["What is 1?", 1], ["What is 2?"]]', "its values have no names; give --set header="),
    ],
)
def test_files_of_another_form_say_what_to_do(name: str, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DatasetError, match=message):
        import_items(str(tmp_path / name))


def test_lists_are_records_under_the_names_of_the_first_one(tmp_path: Path) -> None:
    rows = [["question", "answer"], *each(lambda n: [question(n), n])]
    (tmp_path / "lists.json").write_text(json.dumps(rows))
    assert [item.answer for item in imported(tmp_path / "lists.json").items] == each(str)


def test_a_context_comes_before_the_messages_of_a_chat(tmp_path: Path) -> None:
    roles = ("user", "assistant", "user")
    chat = [{"role": role, "content": text} for role, text in zip(roles, ("Hello.", "Hi.", "Who?"), strict=True)]
    (tmp_path / "chat.jsonl").write_text(lines(each(lambda n: {"rule": f"Rule {n}.", "messages": chat, "answer": n})))
    mapping = ImportSettings(context=("rule",), messages="messages", answer="answer")
    first = import_items(str(tmp_path / "chat.jsonl"), mapping).items[0]
    assert [part["content"] for part in first.messages] == ["Rule 0.", "Hello.", "Hi.", "Who?"]


def test_labels_may_be_json_lines_under_any_name(tmp_path: Path) -> None:
    labels, data = tmp_path / "labels.json", tmp_path / "data.jsonl"
    labels.write_text(lines(each(lambda n: {"id": f"q{n}", "label": letter(n)})[::-1]))
    data.write_text(lines(each(lambda n: {"id": f"q{n}", "question": question(n), "options": options(n)})))
    assert [item.answer for item in imported(data, labels=str(labels), answer="$label.label").items] == each(letter)


def test_a_unit_is_asked_for(tmp_path: Path) -> None:
    data = tmp_path / "data.json"
    data.write_text(json.dumps(each(lambda n: {"question": question(n), "answer": f"{n}.5", "unit": ["m", ""][n % 2]})))
    first, second, *_ = imported(data).items
    assert "Give the answer in m." in first.prompt
    assert "Give the answer" not in second.prompt


def test_sets_in_the_tests_of_programs_are_written_in_one_order() -> None:
    (call,) = calls_of_tests("assert f(1) == {'z', 'y', 'x', 'w'}", "f")
    assert call["expected"] == "{'w', 'x', 'y', 'z'}"
