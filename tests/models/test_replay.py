"""Recorded answers."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_adaptive_eval.errors import ConfigError, Unscored
from pytest_adaptive_eval.items.grading import needs_judge
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.models import Completion, load_model
from pytest_adaptive_eval.models.replay import ReplayModel

MATRIX = "subject,run,step,q1,q2,q3,q4\nearly,r1,300,1,0,,0.25\nlate,r1,1200,1,1,1,1.0\n"


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    path = tmp_path / "responses.csv"
    path.write_text(MATRIX)
    return path


def items(*names: str) -> list[Item]:
    return [Item(name, "what?") for name in names]


def test_a_row_of_a_matrix(matrix: Path) -> None:
    subject = load_model(f"replay:{matrix}#early")
    assert isinstance(subject, ReplayModel)
    assert subject.identity.name == "early"
    given = subject.answer(items("q4", "q1", "q2", "q3", "q9", "run"))
    assert [c.score for c in given] == [0.25, 1.0, 0.0, None, None, None]
    assert [c.status for c in given] == [Status.OK] * 3 + [Status.NOT_RECORDED] + [Status.NOT_RUN] * 2
    assert "'q9'" in given[4].detail
    assert subject.score(items("q4")[0]) == 0.25


@pytest.mark.parametrize("prefix", ["", "\ufeff"])
def test_gzip_and_a_byte_order_mark(tmp_path: Path, prefix: str) -> None:
    path = tmp_path / "responses.csv.gz"
    path.write_bytes(gzip.compress((prefix + MATRIX).encode()))
    assert ReplayModel.load(path, "late").score(items("q3")[0]) == 1.0


def test_only_one_row_needs_no_name(tmp_path: Path) -> None:
    path = tmp_path / "a#b.csv"
    path.write_text('subject,q1\r\n"x, y",1\r\n\r\n')
    assert load_model(f"replay:{path}").identity.name == "x, y"


def test_the_identity_is_the_content(matrix: Path, tmp_path: Path) -> None:
    first = ReplayModel.load(matrix, "early").identity.checkpoint
    matrix.write_text(MATRIX.replace("late,r1,1200,1", "late,r1,1200,0"))
    assert ReplayModel.load(matrix, "early").identity.checkpoint == first
    matrix.write_text(MATRIX.replace("0.25", "0.5"))
    assert ReplayModel.load(matrix, "early").identity.checkpoint != first


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["empty", "header"]),
        ("name,q1\na,1\n", ["line 1", "'name'", "'subject'"]),
        ("subject,q1\na,1,1\n", ["line 2", "3 cells", "expected 2"]),
        ("subject,q1\na,yes\n", ["line 2", "'q1'", "'yes'"]),
        ("subject,q1\na,1.5\n", ["line 2", "'q1'", "'1.5'"]),
        ("subject,q1,q1\na,1,1\n", ["line 1", "'q1'", "columns 2 and 3"]),
        ("subject,q1,\na,1,1\n", ["line 2", "column 3", "empty header"]),
        ("subject,q1\na,1\na,0\n", ["line 3", "'a'", "also in line 2"]),
        ("subject,q1\na,1\nb,0\n", ["2 subjects", "choose", "'a'", "'b'"]),
        ("subject,q1\n", ["no rows"]),
        ('subject,q1\na,"1\n', ["line 2", "end of data"]),
    ],
)
def test_a_malformed_matrix(tmp_path: Path, text: str, words: list[str]) -> None:
    path = tmp_path / "r.csv"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        ReplayModel.load(path)
    for word in [str(path), *words]:
        assert word in str(caught.value)


def test_an_unknown_subject_names_its_neighbours(matrix: Path) -> None:
    with pytest.raises(ConfigError, match=r"no subject 'lat'; choose one, such as 'late', 'early'"):
        load_model(f"replay:{matrix}#lat")


@pytest.mark.parametrize("name", ["gone.csv", "gone.csv.gz", "gone.jsonl", "answers.xml"])
def test_missing_files_and_other_formats(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        load_model(f"replay:{tmp_path / name}")


@pytest.mark.parametrize(
    "content",
    [gzip.compress(MATRIX.encode())[:-12], b"subject,q1", gzip.compress(b"subject\xff")],
    ids=["cut off", "not gzip", "not text"],  # the bytes tell the time, and workers must name tests alike
)
def test_broken_gzip_and_text(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "r.csv.gz").write_bytes(content)
    with pytest.raises(ConfigError, match="after line"):
        ReplayModel.load(tmp_path / "r.csv.gz")


def lines(path: Path, *rows: object) -> Path:
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows) + "\n\n")
    return path


def test_json_lines(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "answers.jsonl",
        {"id": "a", "text": "7", "model": "ignored"},
        {"id": "b", "score": 1},
        {"id": "c", "text": "8", "score": 0.5},
        {"id": "d", "text": "ha", "status": "truncated", "detail": "64 tokens"},
        {"id": "e", "status": "refused"},
        {"id": "f", "text": ""},
    )
    subject = load_model(f"replay:{path}")
    assert subject.identity.name == "answers"
    assert subject.answer(items("a", "b", "c", "d", "e", "f")) == [
        Completion("7"),
        Completion("", score=1.0),
        Completion("8"),  # the item's grader reads it
        Completion("ha", Status.TRUNCATED, detail="64 tokens"),
        Completion("", Status.REFUSED),
        Completion("", Status.EMPTY),
    ]
    assert subject.generate(Item("a", "what?")) == "7"
    with pytest.raises(Unscored, match="refused"):
        subject.generate(Item("e", "what?"))


def test_a_recorded_score_counts_where_nothing_grades_the_text(tmp_path: Path) -> None:
    path = lines(tmp_path / "answers.jsonl", {"id": "a", "text": "no", "score": 1}, {"id": "b", "text": "", "score": 1})
    subject = load_model(f"replay:{path}")
    plain, judged = Item("a", "?", "yes"), Item("a", "?", "yes", "judge", custom=needs_judge)
    (answer,) = subject.answer([plain])
    assert answer.response(plain).score == 0.0
    assert subject.answer([judged]) == [Completion("no", score=1.0)]
    assert subject.answer([replace(plain, meta={"textless": True})]) == [Completion("no", score=1.0)]
    assert subject.answer([Item("b", "?", "yes")]) == [Completion("", score=1.0)]


@pytest.mark.parametrize(
    ("row", "word"),
    [
        ("{", "expected one JSON object"),
        ("[1]", "expected one JSON object with the item's id"),
        ({"text": "x"}, "`id`"),
        ({"id": 3, "text": "x"}, "$.id`"),
        ({"id": "first", "text": "x"}, "twice"),
        ({"id": "a"}, "with score None and text None"),
        ({"id": "a", "prompt": "1 + 1?", "answer": "2"}, "expected an answer, found a question"),
        ({"id": "a", "text": 3}, "$.text`"),
        ({"id": "a", "text": "x", "detail": []}, "$.detail`"),
        ({"id": "a", "score": 2}, "$.score`"),
        ({"id": "a", "score": True}, "$.score`"),
        ('{"id": "a", "score": NaN}', "malformed"),
        ({"id": "a", "status": "lost"}, "$.status`"),
        ({"id": "a", "status": ["ok"], "text": "x"}, "$.status`"),
        ({"id": "a", "status": "error", "score": 1}, "score"),
    ],
)
def test_a_malformed_line(tmp_path: Path, row: object, word: str) -> None:
    path = lines(tmp_path / "r.jsonl", {"id": "first", "text": "x"}, row)
    with pytest.raises(ConfigError) as caught:
        ReplayModel.load(path)
    assert f"{path}, line 2: " in str(caught.value)
    assert word in str(caught.value)


def test_a_bare_prompt_has_no_id(matrix: Path) -> None:
    subject = ReplayModel.load(matrix, "late")
    with pytest.raises(ConfigError, match=r"looked up by item id.*model\.score\(item\)"):
        subject.generate("what?")


def test_options_of_other_subjects_are_refused(matrix: Path) -> None:
    with pytest.raises(ConfigError, match="no option device; expected format, orientation"):
        load_model(f"replay:{matrix}#late", device="cpu")
