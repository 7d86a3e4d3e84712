"""Banks on disk: what is written reads back, and what is wrong is named."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace

import numpy as np
import pytest

from pytest_adaptive_eval.banks import read_bank, reader, write_bank
from pytest_adaptive_eval.banks.items import parse_item
from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.items.item import Item, items_by_likelihood, items_naming
from pytest_adaptive_eval.models.caps import Cap, recorded_caps


def items_of(n):
    return [Item(id=f"q-{i}", prompt=f"{i}?", answer=str(i), category=(f"c{i % 3}",)) for i in range(n)]


def write(path, n=6, **more):
    more = {"discrimination": np.linspace(0.5, 2, n), "intercept": np.linspace(-1, 1, n), **more}
    return write_bank(path, items_of(n), **more)


def jsonl(path, *lines):
    path.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
    return path


def test_a_folder_reads_back(tmp_path):
    written = write(tmp_path / "x.bank", subjects=["m1"], report={"trusted": True})
    bank = read_bank(tmp_path / "x.bank")
    assert bank.name == "x"
    assert list(bank.ids) == [f"q-{i}" for i in range(6)]
    assert [item.to_json() for item in bank.items] == [item.to_json() for item in items_of(6)]
    np.testing.assert_array_equal(bank.discrimination[:, 0], np.linspace(0.5, 2, 6))
    np.testing.assert_array_equal(bank.intercept, np.linspace(-1, 1, 6))
    assert list(bank.categories) == [f"c{i % 3}" for i in range(6)]
    assert (bank.scale, bank.content_hash) == (written.scale, written.content_hash)
    assert (bank.subjects, bank.report["trusted"], bank.calibrated) == (("m1",), True, True)
    with pytest.raises(ValueError, match="read-only"):
        bank.intercept[0] = 3


def test_accuracies_of_the_subjects_read_back_exactly(tmp_path):
    accuracies = [0.0, 1.0, 2 / 3]
    write(tmp_path / "x.bank", subjects=["a", "b", "c"], accuracies=accuracies)
    assert read_bank(tmp_path / "x.bank").accuracies == tuple(accuracies)
    about = json.loads((tmp_path / "x.bank" / "bank.json").read_text())
    del about["accuracies"]  # of before they were kept
    (tmp_path / "x.bank" / "bank.json").write_text(json.dumps(about))
    assert read_bank(tmp_path / "x.bank").accuracies == ()


def test_ranges_of_accuracies_are_kept_where_scores_are_missing(tmp_path):
    more = {"subjects": ["a", "b"], "accuracies": [0.5, 0.7]}
    write(tmp_path / "x.bank", **more, accuracy_ranges=[(0.5, 0.5), (2 / 3, 0.75)])
    assert read_bank(tmp_path / "x.bank").accuracy_ranges == ((0.5, 0.5), (2 / 3, 0.75))
    write(tmp_path / "y.bank", **more, accuracy_ranges=[(0.5, 0.5), (0.7, 0.7)])
    assert "accuracy_ranges" not in json.loads((tmp_path / "y.bank" / "bank.json").read_text())
    assert read_bank(tmp_path / "y.bank").accuracy_ranges == ((0.5, 0.5), (0.7, 0.7))
    path = tmp_path / "x.bank" / "bank.json"
    for wrong in ([0.5, 0.7], [[0.5], [0.7, 0.7]], {"a": 1}, None):
        path.write_text(json.dumps({**json.loads(path.read_text()), "accuracy_ranges": wrong}))
        with pytest.raises(BankError, match=r"bank\.json: .* at `\$\.accuracy_ranges"):
            read_bank(tmp_path / "x.bank")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, r"bank\.json: .*got `null` - at `\$\.accuracies`"),
        ({"a": 0.5}, r"bank\.json: .*got `object` - at `\$\.accuracies`"),
        ([0.5, "0.7"], r"bank\.json: .*got `str` - at `\$\.accuracies\[1\]`"),
        ([0.5, True], r"bank\.json: .*got `bool` - at `\$\.accuracies\[1\]`"),
        ([0.5], "expected 2 accuracies or none, got 1"),
        ([0.5, 70], r"subject 'b' has accuracy 70.0 in \[70.0, 70.0\], expected numbers in \[0, 1\]"),
        ([float("nan"), 0.5], "subject 'a' has accuracy nan"),
        ([10**400, 0.5], r"Number out of range - at `\$\.accuracies\[0\]`"),
    ],
)
def test_wrong_accuracies_are_refused(tmp_path, value, message):
    write(tmp_path / "x.bank", subjects=["a", "b"], accuracies=[0.5, 0.7])
    path = tmp_path / "x.bank" / "bank.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "accuracies": value}))
    with pytest.raises(BankError, match=message):
        read_bank(tmp_path / "x.bank")


def test_wrong_accuracies_are_not_written(tmp_path):
    with pytest.raises(BankError, match="expected 1 accuracies or none, got 2"):
        write(tmp_path / "x.bank", subjects=["a"], accuracies=[0.5, 0.7])
    with pytest.raises(BankError, match="has accuracy nan"):
        write(tmp_path / "x.bank", subjects=["a"], accuracies=[np.nan])
    assert list(tmp_path.iterdir()) == []


def test_the_scale_changes_with_the_fit_and_the_content_with_the_texts(tmp_path):
    one = write(tmp_path / "a.bank")
    other = write(tmp_path / "b.bank", intercept=np.zeros(6))
    assert one.scale != other.scale
    assert one.content_hash == other.content_hash
    assert write(tmp_path / "c.bank", n=5).content_hash != one.content_hash


@pytest.fixture
def varied(tmp_path):
    """A bank with an own cap, a turn and a scoring by likelihood among 40 items."""
    items = [Item(f"i{n}", f"level {n} of images and turns?", answer="yes", meta={"level": n % 3}) for n in range(40)]
    items[3] = replace(items[3], meta={"max_tokens": 7})
    items[17] = replace(items[17], meta={"max_tokens": 9}, turns=("And then?",), grader="judge")
    items[39] = Item("i39", "A text.", grader="bits_per_byte")
    write_bank(tmp_path / "varied.bank", items, discrimination=np.ones(40), intercept=np.zeros(40))
    return read_bank(tmp_path / "varied.bank")


def test_items_of_a_file_are_found_by_what_their_lines_name(varied):
    assert [item.id for item in items_naming(varied.items, "max_tokens")] == ["i3", "i17"]
    assert [item.id for item in items_naming(varied.items, "turns", "max_tokens")] == ["i3", "i17"]
    assert [item.id for item in items_naming(varied.items, "judge")] == ["i17"]
    assert not list(items_naming(varied.items, "images"))  # of texts, no field
    assert [item.id for item in items_by_likelihood(varied.items)] == ["i39"]
    assert len(list(items_naming(varied.items, "level"))) == 37
    part = varied.subset([39, 17, 5], "part")
    assert [item.id for item in items_naming(part.items, "turns")] == ["i17"]
    assert [item.id for item in items_by_likelihood(part.items)] == ["i39"]


@pytest.mark.parametrize("part", [[3], [3, 17], [39], [3, 39], [0, 3, 17, 39], range(40)])
@pytest.mark.parametrize("chosen", [False, True])
def test_caps_of_items_in_a_file_are_those_of_the_items(varied, part, chosen):
    cap, items = Cap(20, chosen=chosen), varied.subset(part, "part").items
    expected = {cap.of(item) for item in items if item.likelihood is None}
    assert recorded_caps(cap, items) == recorded_caps(cap, list(items)) == expected


def test_few_lines_of_a_file_are_parsed_for_the_caps(varied, monkeypatch):
    parsed = []
    monkeypatch.setattr(reader, "parse_item", lambda line, *rest: parsed.append(line) or parse_item(line, *rest))
    recorded_caps(Cap(20, chosen=False), varied.items)
    assert len(parsed) == 3


def test_ids_of_any_script_read_back(tmp_path):
    ids = ["größe", "数学-1", "вопрос", "a/b:c", "e\u0301", "\U0001f600", "x" * 119 + "é"]
    items = [Item(id=name, prompt=f"{name}?", answer="1") for name in ids]
    write_bank(tmp_path / "x.bank", items, discrimination=[1.0] * 7, intercept=[0.0] * 7)
    for bank in (read_bank(tmp_path / "x.bank"), read_bank(jsonl(tmp_path / "x.jsonl", *(i.to_json() for i in items)))):
        assert list(bank.ids) == [item.id for item in bank.items] == ids
        assert bank.index("数学-1") == 1
    with pytest.raises(BankError, match="has no item 'q'; its ids are größe, 数学-1, вопрос"):
        bank.index("q")


def test_a_plain_file_is_an_uncalibrated_bank_of_the_same_content(tmp_path):
    folder = write(tmp_path / "x.bank")
    path = jsonl(tmp_path / "x.items.jsonl", *(item.to_json() for item in items_of(6)))
    bank = read_bank(path)
    assert (bank.name, bank.calibrated, len(bank)) == ("x", False, 6)
    assert bank.content_hash == folder.content_hash


def test_images_travel_with_the_bank_and_count_as_content(tmp_path):
    image = pytest.importorskip("PIL.Image", reason="images need pillow (extra hf)")
    image.new("L", (4, 4), 0).save(tmp_path / "a.png")
    item = Item(id="i", prompt="?", answer="x", images=("a.png",), root=str(tmp_path), formats=("image+text", "text"))
    bank = write_bank(tmp_path / "i.bank", [item], discrimination=[1.0], intercept=[0.0])
    assert bank.items[0].image_paths == (str(tmp_path / "i.bank" / "a.png"),)
    assert bank.items[0].in_format("text").images == ()
    image.new("L", (4, 4), 9).save(tmp_path / "a.png")
    other = write_bank(tmp_path / "j.bank", [item], discrimination=[1.0], intercept=[0.0])
    assert other.content_hash != bank.content_hash


def test_nothing_is_left_behind_when_writing_fails(tmp_path):
    with pytest.raises(BankError, match="discrimination"):
        write(tmp_path / "x.bank", discrimination=np.array([1, 1, np.nan, 1, 1, 1.0]))
    assert list(tmp_path.iterdir()) == []
    write(tmp_path / "x.bank")
    before = read_bank(tmp_path / "x.bank").scale
    with pytest.raises(BankError, match="exists"):
        write(tmp_path / "x.bank")
    with pytest.raises(BankError, match="cannot be copied"):
        write_bank(
            tmp_path / "x.bank",
            [Item(id="i", prompt="?", answer="x", images=("gone.png",))],
            discrimination=[1.0],
            intercept=[0.0],
            replace=True,
        )
    assert read_bank(tmp_path / "x.bank").scale == before
    assert [p.name for p in tmp_path.iterdir()] == ["x.bank"]


def test_a_folder_that_is_no_bank_is_not_replaced(tmp_path):
    (tmp_path / "x.bank").mkdir()
    (tmp_path / "x.bank" / "thesis.tex").write_text("mine")
    with pytest.raises(BankError, match="exists and is not a bank folder"):
        write(tmp_path / "x.bank", replace=True)
    assert (tmp_path / "x.bank" / "thesis.tex").read_text() == "mine"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("not json\n", "not a JSON object"),
        ("[1]\n", "Expected `object`, got `array`"),
        ({"id": "a", "prompt": "p", "answer": "x", "colour": 1}, "unknown field `colour`"),
        ({"id": "a", "prompt": 3, "answer": "x"}, r"Expected `str`, got `int` - at `\$\.prompt`"),
        ({"id": "a b", "prompt": "p", "answer": "x"}, "cannot name a test"),
        ({"id": "a::b", "prompt": "p", "answer": "x"}, "cannot name a test: .* or two colons in a row are expected$"),
        ({"id": "a[1]", "prompt": "p", "answer": "x"}, "cannot name a test"),
        ({"id": "a\u202eb", "prompt": "p", "answer": "x"}, "cannot name a test"),
        ({"id": "a\u3000b", "prompt": "p", "answer": "x"}, "cannot name a test"),
        ({"prompt": "p", "answer": "x"}, "the question has no id"),
        ({"id": "a", "answer": "x"}, "no prompt, messages or images"),
        (
            {"id": "a", "prompt": "p", "answer": "x", "meta": {"max_tokens": "3"}},
            "meta.max_tokens is '3', expected a who",
        ),
        ({"id": "a", "prompt": "p", "answer": "x", "meta": {"max_tokens": 0}}, "meta.max_tokens is 0, expected a who"),
        ({"id": "a", "answer": "x", "messages": [{"role": "user", "content": 7}]}, "the content 7 of a message"),
        ({"id": "a", "prompt": "p"}, "has no answer"),
        ({"id": "a", "prompt": "p", "answer": "x", "grader": "fuzzy"}, "grader 'fuzzy' is not known"),
        ({"id": "a", "prompt": "p", "answer": "(", "grader": "regex"}, "not a regular expression"),
        (
            {"id": "a", "prompt": "p", "answer": "(" * 9000 + ")" * 9000, "grader": "regex"},
            r"not a regular expression \(its groups are nested too deep",
        ),
        (
            {"id": "a", "prompt": "p", "answer": "((x{1000}){1000}){1000}", "grader": "regex"},
            r"not a regular expression \(its repetitions stand for more than 100000 characters",
        ),
        pytest.param(
            {"id": "a", "prompt": "p", "answer": r"([a-z\n ]+[a-z\n ]+)+\d", "grader": "regex"},
            r"does not end in time on a plain text",
            marks=pytest.mark.slow,
        ),
        ({"id": "a", "prompt": "p", "answer": "plenty", "grader": "numeric"}, "'plenty' holds no number"),
        (
            {"id": "a", "prompt": "p", "answer": "4", "grader": "numeric", "meta": {"tolerance": "abc"}},
            "tolerance is 'abc', expected a number of at least 0",
        ),
        ({"id": "a", "prompt": "p", "answer": "x", "images": ["../a.png"]}, "outside the bank's folder"),
        ({"id": "a", "prompt": "p", "answer": "x", "images": ["/a.png"]}, "outside the bank's folder"),
        ({"id": "a", "prompt": "p", "answer": "x", "images": ["http://h/a.png"]}, "outside the bank's folder"),
        ({"id": "a", "prompt": "p", "answer": "x", "images": ["a.gif"]}, "is not one of"),
        ({"id": "a", "prompt": "p", "answer": "x", "images": ["gone.png"]}, "cannot be read"),
        (
            {"id": "a", "prompt": "p", "answer": "x", "choices": [1]},
            r"Expected `str`, got `int` - at `\$\.choices\[0\]`",
        ),
        ({"id": "a", "prompt": "p", "answer": "C", "choices": ["u", "v"]}, "one of its 2 choices or the letter"),
        (
            {"id": "a", "prompt": "p", "answer": "use", "choices": ["u", "v"]},
            "'a': the answer 'use' names no choice",
        ),
        ({"id": "a", "prompt": "p", "answer": "7", "grader": "choice"}, "names no choice; a letter is expected"),
        (
            {"id": "a", "prompt": "p", "answer": "C", "choices": ["4", "5", "4"]},
            "the right choice, '4', appears twice, and only one of the two would count as right",
        ),
        ({"id": "a", "messages": [{"role": "user"}], "answer": "x"}, "expected {"),
        ({"id": "q", "prompt": "p", "answer": "x"}, "is already in line 1"),
        ({"id": "a", "prompt": "p", "answer": "x", "grader": "python:os:system"}, "not trusted"),
        ({"id": "a", "prompt": "p", "answer": "x", "grader": "python:os"}, "expected python:module:function"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, message):
    path = jsonl(tmp_path / "x.jsonl", {"id": "q", "prompt": "p", "answer": "x"}, "\n", line)
    with pytest.raises(BankError, match=message) as caught:
        read_bank(path)
    assert str(path) in str(caught.value) or "gone.png" in str(caught.value)
    if "gone" not in str(line):
        assert ":3:" in str(caught.value)


@pytest.mark.parametrize(
    ("item", "why"),
    [
        *(
            ({"answer": pattern, "grader": "regex"}, "matches the empty text")
            for pattern in (".*", "right|", "^", "$", "a*", "(?:)", "x?", "(?s).*", "^[^,]*$", r"\s*42?\s*|", "(?=)")
        ),
        *(
            ({"answer": pattern, "grader": "regex"}, "matches any text")
            for pattern in (".", ".+", r"\S", r"\w", "[a-zA-Z]", r"[\s\S]+", "right|.+", r"\b", r"\D", "(?i)[k-z]")
        ),
        *(({"answer": marks, "grader": "contains"}, "is only punctuation") for marks in (".", "?!", " - ", "« »")),
        ({"answer": "7", "grader": "numeric", "meta": {"tolerance": 700}}, "with meta.tolerance 700 accepts numbers"),
        ({"answer": "0", "grader": "numeric", "meta": {"tolerance": 1e300}}, "accepts numbers of any size"),
        ({"answer": "A", "choices": ["only"]}, "is the only choice"),
    ],
)
def test_an_answer_that_accepts_any_text_is_refused_unless_it_is_meant(tmp_path, item, why):
    item = {"id": "a", "prompt": "p", **item}
    path = jsonl(tmp_path / "x.jsonl", {"id": "q", "prompt": "p", "answer": "x"}, "\n", item)
    with pytest.raises(BankError, match=rf"x\.jsonl:3: item 'a': the answer .* {why}.*\"lenient\": true"):
        read_bank(path)
    jsonl(path, {**item, "meta": {**item.get("meta", {}), "lenient": True}})
    assert read_bank(path).items[0].grade("A" if item["answer"] == "A" else "word 7 ?! . - « » 7") == 1
    jsonl(path, {**item, "meta": {**item.get("meta", {}), "lenient": "yes"}})
    with pytest.raises(BankError, match="lenient is 'yes', expected true or false"):
        read_bank(path)


@pytest.mark.parametrize(
    "item",
    [
        *(
            {"answer": pattern, "grader": "regex"}
            for pattern in (r"\d", "^[A-Z]", r"[.!?]$", "(?i)paris", r"^\w+$", "^.{1,80}$", "[[(]", "a{e}", r"^(a+)+$")
        ),
        *({"answer": text, "grader": "contains"} for text in ("a", "∞", "+", "😀", "7.", "ж")),
        {"answer": "-7", "grader": "numeric", "meta": {"tolerance": 70}},
        {"answer": ".", "grader": "exact"},
        {"answer": "A", "grader": "choice"},
    ],
)
def test_an_answer_that_refuses_something_is_read(tmp_path, item):
    assert len(read_bank(jsonl(tmp_path / "x.jsonl", {"id": "a", "prompt": "p", **item}))) == 1


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_an_image_that_is_no_regular_file_is_refused(tmp_path, kind):
    image = tmp_path / "a.png"
    match kind:
        case "pipe":
            os.mkfifo(image)
        case "device":
            image.symlink_to("/dev/zero")
        case "folder":
            image.mkdir()
    path = jsonl(tmp_path / "x.jsonl", {"id": "a", "prompt": "p", "answer": "x", "images": ["a.png"]})
    with pytest.raises(BankError, match=r"item 'a': its image 'a\.png' cannot be read .*: restore it, or correct"):
        read_bank(path)


@pytest.mark.parametrize("name", ["a\0b.png", "a\nb.png", "\ud800.png"])
def test_an_image_whose_name_cannot_be_printed_is_refused(tmp_path, name):
    path = jsonl(tmp_path / "x.jsonl", {"id": "a", "prompt": "p", "answer": "x", "images": [name]})
    with pytest.raises(BankError, match=r"x\.jsonl:1: item 'a': the image's name '.*' has unprintable characters"):
        read_bank(path)


def test_a_key_that_stands_twice_is_told(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"id": "a", "prompt": "p", "answer": "5", "answer": "4"}\n')
    with pytest.raises(BankError, match=r"x\.jsonl:1: not a JSON object \(duplicate key 'answer'\)"):
        read_bank(tmp_path / "x.jsonl")


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_another_encoding_is_told(tmp_path, encoding):
    line = json.dumps({"id": "a", "prompt": "café?", "answer": "x"}, ensure_ascii=False)
    (tmp_path / "x.jsonl").write_text(line + "\n", encoding=encoding)
    with pytest.raises(BankError, match=r"x\.jsonl:1: not UTF-8 text; save the file as UTF-8$"):
        read_bank(tmp_path / "x.jsonl")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "quiz.csv",
            "question,answer\nWhat?,4\n",
            "make a bank .* `adaptive-eval import .*quiz.csv -o quiz.bank`",
        ),
        ("quiz.json", '[{"question": "What?"}]', "is a table or a list; .* `adaptive-eval import .*quiz.json"),
        ("quiz.parquet", "PAR1", "`adaptive-eval import .*quiz.parquet -o quiz.bank`"),
        (
            "quiz.jsonl",
            '{"question": "What?"}\n',
            "field `question`; .* becomes a bank by `adaptive-eval import`",
        ),
        (
            "quiz.jsonl",
            '{"id": "a", "prompt": "?", "answer": true}\n',
            'answer is true, .* write "yes" or "no", and',
        ),
        (
            "quiz.jsonl",
            '{"id": "a", "prompt": "?", "choices": ["p", "q"], "answer": 1}\n',
            "the letter of one .B where they are counted from 0. is expected",
        ),
    ],
)
def test_a_file_that_is_nearly_a_bank_gets_what_to_write(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(BankError, match=message):
        read_bank(tmp_path / name)


@pytest.mark.parametrize("key", ["B", "b", "(B)", "B.", "B) blue", "blue", " Blue. ", "sky  BLUE"])
def test_a_key_that_names_a_choice_reads_and_grades(tmp_path, key):
    choices = ["red", "sky blue" if "sky" in key else "blue", "dark"]
    bank = read_bank(jsonl(tmp_path / "x.jsonl", {"id": "a", "prompt": "p", "answer": key, "choices": choices}))
    assert [bank.items[0].grade(text) for text in ("B", choices[1], "A", "D", "nothing")] == [1, 1, 0, 0, 0]


def test_a_key_by_letter_needs_no_list_of_choices(tmp_path):
    line = {"id": "a", "prompt": "A. red B. blue?", "answer": "B", "grader": "choice"}
    assert read_bank(jsonl(tmp_path / "x.jsonl", line)).items[0].grade("(B)") == 1


def test_graders_of_trusted_modules_grade(tmp_path, monkeypatch):
    (tmp_path / "my_graders.py").write_text("def half(item, text):\n    return 0.5 if text == item.answer else 0.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    line = {"id": "a", "prompt": "p", "answer": "x", "grader": "python:my_graders:half"}
    bank = read_bank(jsonl(tmp_path / "x.jsonl", line), graders=["my_graders"])
    assert bank.items[0].grade("x") == 0.5
    sys.modules.pop("my_graders", None)
    with pytest.raises(BankError, match="cannot be loaded"):
        read_bank(jsonl(tmp_path / "y.jsonl", {**line, "grader": "python:my_graders:none"}), graders=["my_graders"])


def test_a_number_may_be_written_as_a_number(tmp_path):
    bank = read_bank(jsonl(tmp_path / "x.jsonl", {"id": "a", "prompt": "p", "answer": 4, "grader": "numeric"}))
    assert bank.items[0].grade("it is 4.0") == 1.0


@pytest.mark.parametrize("name", ["bank.json", "params.npz", "items.jsonl"])
def test_a_missing_or_broken_file_is_named(tmp_path, name):
    write(tmp_path / "x.bank")
    path = tmp_path / "x.bank" / name
    path.write_bytes(b"\x00garbage")
    with pytest.raises(BankError, match=name.replace(".", r"\.")):
        read_bank(tmp_path / "x.bank")
    path.unlink()
    with pytest.raises(BankError, match=f"{name} is missing"):
        read_bank(tmp_path / "x.bank")


def test_pickles_are_not_opened(tmp_path):
    write(tmp_path / "x.bank")
    ids = np.array([{"a": 1}] * 6, dtype=object)
    np.savez(tmp_path / "x.bank" / "params.npz", ids=ids)
    with pytest.raises(BankError, match="npz of plain arrays"):
        read_bank(tmp_path / "x.bank")


def columns(path):
    with np.load(path / "params.npz") as file:
        return dict(file)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("discrimination", np.nan, "expected finite"),
        ("discrimination", -np.inf, "expected finite"),
        ("intercept", np.inf, "expected finite"),
        ("guess", 1.0, r"expected in \[0, 1\)"),
    ],
)
def test_bad_parameters_name_the_item(tmp_path, name, value, message):
    write(tmp_path / "x.bank")
    data = columns(tmp_path / "x.bank")
    data[name][2] = value
    np.savez(tmp_path / "x.bank" / "params.npz", **data)
    with pytest.raises(BankError, match=message) as caught:
        read_bank(tmp_path / "x.bank")
    assert "'q-2'" in str(caught.value)


def test_parameters_of_another_fit_and_edited_texts_are_refused(tmp_path):
    write(tmp_path / "x.bank")
    data = columns(tmp_path / "x.bank")
    np.savez(tmp_path / "x.bank" / "params.npz", **{**data, "intercept": data["intercept"] + 1})
    with pytest.raises(BankError, match="not of one fit"):
        read_bank(tmp_path / "x.bank")
    np.savez(tmp_path / "x.bank" / "params.npz", **{**data, "ids": data["ids"][[0, 1, 1, 3, 4, 5]]})
    with pytest.raises(BankError, match="duplicate item id 'q-1'"):
        read_bank(tmp_path / "x.bank")
    np.savez(tmp_path / "x.bank" / "params.npz", **{**data, "guess": data["guess"][:3]})
    with pytest.raises(BankError, match="3 values of guess"):
        read_bank(tmp_path / "x.bank")
    np.savez(tmp_path / "x.bank" / "params.npz", **data)
    items = tmp_path / "x.bank" / "items.jsonl"
    whole = items.read_text()
    items.write_text(whole.replace("3?", "4?"))
    with pytest.raises(BankError, match=r"its hash is .* edited"):
        _ = read_bank(tmp_path / "x.bank").items[0]
    items.write_text(whole.replace("3?", "33?"))
    with pytest.raises(BankError, match=r"bytes.* edited"):
        read_bank(tmp_path / "x.bank")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("categories", 7, r"got `int` - at `\$\.categories`"),
        ("categories", None, r"got `null` - at `\$\.categories`"),
        ("subjects", True, r"got `bool` - at `\$\.subjects`"),
        ("subjects", ["a", 1], r"got `int` - at `\$\.subjects\[1\]`"),
        ("report", [], r"got `array` - at `\$\.report`"),
    ],
)
def test_parts_of_another_type_are_named(tmp_path, key, value, message):
    write(tmp_path / "x.bank")
    path = tmp_path / "x.bank" / "bank.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(BankError, match=rf"bank\.json: .*{message}; write the bank again"):
        read_bank(tmp_path / "x.bank")


def test_another_version_and_no_bank_at_all(tmp_path):
    write(tmp_path / "x.bank")
    about = json.loads((tmp_path / "x.bank" / "bank.json").read_text())
    (tmp_path / "x.bank" / "bank.json").write_text(json.dumps({**about, "schema_version": 99}))
    with pytest.raises(BankError, match="schema_version is 99"):
        read_bank(tmp_path / "x.bank")
    with pytest.raises(BankError, match="no bank"):
        read_bank(tmp_path / "none.bank")
    with pytest.raises(BankError, match="no items"):
        read_bank(jsonl(tmp_path / "e.jsonl", "\n"))
