"""Responses in formats: tables, published matrices and recorded runs, and what is said of bad ones."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest

from pytest_adaptive_eval.banks.responses import in_formats, read_format_responses
from pytest_adaptive_eval.errors import ResponsesError

DATA = Path(os.environ.get("ADAPTIVE_EVAL_DATA", Path(__file__).parents[3] / "shared" / "data")) / "m3irt"
FORMATS = ("image+text", "image", "text", "none")


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def tidy(name, rows, header="subject,item,format,score"):
    Path(name).write_text("\n".join([header, *rows]) + "\n")
    return name


ROWS = ["a,q1,image+text,1", "a,q1,text,0", "b,q1,image,0.5", "b,q2,none,", "a,q2,image+text,true", "b,q2,image+text,0"]


def test_a_table():
    found = read_format_responses([tidy("r.csv", ROWS)])
    assert found.subjects == ("a", "b")
    assert found.items == ("q1", "q2")
    assert found.modalities.formats == FORMATS
    nan = np.nan
    np.testing.assert_array_equal(
        found.scores, [[[1, nan, 0, nan], [1, nan, nan, nan]], [[nan, 0.5, nan, nan], [0, nan, nan, nan]]]
    )
    np.testing.assert_array_equal(found.at([1]).scores, found.scores[:, [1]])
    assert found.at(np.array([False, True])).items == ("q2",)


def test_two_scores_of_one_subject_in_one_format_are_refused():
    with pytest.raises(ResponsesError, match=r"r.csv: 1 rows repeat a subject and item; .*; keep one answer"):
        read_format_responses([tidy("r.csv", [*ROWS, "a,q1,text,1"])])


def test_columns_in_another_order_and_others_beside_them():
    notes: list[str] = []
    rows = ["text,x,1,m,q", "image+text,y,0,m,q"]
    found = read_format_responses([tidy("r.csv", rows, "Format,seed,score,model,question_id")], note=notes.append)
    assert found.modalities.formats == ("image+text", "text")
    np.testing.assert_array_equal(found.scores, [[[0, 1]]])
    assert notes == []


def test_families_are_of_both_the_formats_and_the_fullest_one():
    Path("f.csv").write_text("subject,family\na,run\nb,run\n")
    found = read_format_responses([tidy("R.CSV", ROWS)], families="f.csv")
    assert found.families == found.whole.families == ("run", "run")
    assert in_formats("R.CSV")
    for families, message in (("nowhere.csv", "nowhere.csv: cannot be read"), ("R.CSV", "expected 'subject,family'")):
        with pytest.raises(ResponsesError, match=message):
            read_format_responses(["R.CSV"], families=families)


def test_modalities_are_those_of_the_fullest_format():
    rows = ["a,q,audio+image+text,1", "a,q,text+audio,0", "a,q,none,0"]
    found = read_format_responses([tidy("r.csv", rows)])
    assert found.modalities.names == ("audio", "image", "text")
    assert found.modalities.formats == ("audio+image+text", "audio+text", "none")
    np.testing.assert_array_equal(found.scores, [[[1, 0, 0]]])


def test_a_published_matrix_in_two_files():
    Path("normal.csv").write_text("\ufeff,<no_image>1,<no_question>1,<no_info>1,1\nb,0,0,0,1\na,1,0,,1\n")
    Path("bad.csv.gz").write_bytes(gzip.compress(b"llm_name,bad1,<no_image>bad1\na,0,1\nb,1,1\n"))
    found = read_format_responses(["normal.csv", "bad.csv.gz"])
    assert found.subjects == ("b", "a")
    assert found.items == ("1", "bad1")
    nan = np.nan
    np.testing.assert_array_equal(found.scores, [[[1, 0, 0, 0], [1, nan, 1, nan]], [[1, 0, 1, nan], [0, nan, 1, nan]]])


def test_subjects_that_one_of_two_files_lacks():
    notes: list[str] = []
    more = tidy("s.csv", ["c,z,text,1", "c,z,image+text,1"])
    found = read_format_responses([tidy("r.csv", ROWS), more], note=notes.append)
    assert found.scores.shape == (3, 3, 4)
    assert np.isnan(found.scores[2, :2]).all()
    assert notes == ["r.csv: no answers of 1 of the 3 subjects", "s.csv: no answers of 2 of the 3 subjects"]


def test_recorded_runs():
    """An item in another format than its first is called ITEM@FORMAT in records."""
    asked = [("q1", "image+text", 1.0), ("q1@text", "text", 0.0), ("q2", "image+text", 0.0), ("q2@none", "none", 1.0)]
    record = {
        "run": "r1",
        "started": "2026-01-01T00:00:00+00:00",
        "schema_version": 3,
        "interviews": [
            {
                "name": "v",
                **dict.fromkeys(("nodeid", "stop", "stop_sentence"), ""),
                "policy": {},
                **dict.fromkeys(("asked", "scored", "size"), 4),
                **dict.fromkeys(("theta", "standard_error", "accuracy", "accuracy_model")),
                "statuses": {},
                "bank": {"name": "vision"},
                "subject": {"name": "late", "checkpoint": "c" * 16},
                "administrations": [
                    {
                        "position": n,
                        "item": name,
                        "item_hash": f"h{n}",
                        "format": form,
                        "status": "ok",
                        "score": score,
                        "sample": 0,
                        "propensity": 0.5,
                    }
                    for n, (name, form, score) in enumerate(asked)
                ],
            }
        ],
    }
    Path("run.json").write_text(json.dumps(record))
    found = read_format_responses(["run.json"])
    assert found.items == ("q1", "q2")
    assert found.modalities.formats == ("image+text", "text", "none")
    np.testing.assert_array_equal(found.scores, [[[1, 0, np.nan], [0, np.nan, 1]]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "subject,item,format,score\na,q,image+text,2\n",
            "r.csv, line 2: found '2', expected a score",
        ),
        ("subject,item,format,score\na,q,image+text\n", "r.csv, line 2: 3 cells, expected 4"),
        ("subject,item,format,score\na,,text,1\n", "r.csv, line 2: item is None, expected a text"),
        ("subject,format,score\na,text,1\n", "r.csv, line 1: 0 columns for the item, expected one, named item or"),
        ("subject,item,question,format,score\na,b,c,d,1\n", "r.csv, line 1: 2 columns for the item"),
        ("subject,item,format,score\na,q,text,1\n", "the only format is 'text', expected several"),
        ("subject,item,format,score\na,q,image+text,1\na,q,sound,0\n", "the format 'sound' is not made of"),
        ("subject,item,format,score\na,q,image+image,1\na,q,none,0\n", "modalities are"),
        ("subject,item,format,score\n", "the first record has no rows"),
        (
            "subject,q1\na,1\n",
            "r.csv: found 'subject,q1', expected a CSV with the columns subject, item, format and score",
        ),
        (",<no_sound>1,1\na,1,1\n", "column '<no_sound>1': known beginnings are <no_question>"),
        (",<no_image>1,1\na,1,7\n", "r.csv, line 2, column '1': found '7'"),
    ],
)
def test_bad_files(text, message):
    Path("r.csv").write_text(text)
    with pytest.raises(ResponsesError) as error:
        read_format_responses(["r.csv"])
    assert message in str(error.value)


def test_other_mistakes():
    tidy("r.csv", ROWS)
    tidy("s.csv", ["a,q1,text,1", "a,q1,image+text,1"])
    Path("r.txt").write_text("x")
    for paths, message in (
        (["nowhere.csv"], "nowhere.csv does not exist"),
        (["r.csv", "s.csv"], "s.csv: the item 'q1' is in r.csv already"),
        (["r.txt"], "r.txt: found '', expected a CSV"),
    ):
        with pytest.raises(ResponsesError, match=message):
            read_format_responses(paths)


def test_what_is_in_formats():
    Path("m.csv").write_text("subject,q1\na,1\n")
    Path("n.csv").write_text("subject,q1,<no_image>q1\na,1,0\n")
    Path("empty.csv").write_text("")
    found = [in_formats(name) for name in (tidy("r.csv", ROWS), "n.csv", "m.csv", "empty.csv", "nowhere.csv", ".")]
    assert found == [True, True, False, False, False, False]


@pytest.mark.parametrize(("data", "items"), [("mmmu", (847, 900)), ("mathvista", (1000, 999))])
def test_the_published_data(data, items):
    normal, shuffled = (DATA / f"{kind}_{data}.csv.gz" for kind in ("normal", "shuffled"))
    if not normal.is_file():
        pytest.skip(f"the public response matrices are not there: {normal} (ADAPTIVE_EVAL_DATA names their folder)")
    found = read_format_responses([normal, shuffled])
    assert found.scores.shape == (24, sum(items), 4)
    assert not np.isnan(found.scores).any()
    assert sum(name.startswith("shuffle") for name in found.items) == items[1]
    assert found.scores[..., 0].mean() > found.scores[..., 3].mean()


def test_columns_with_a_suffix_and_runs_as_families():
    Path("w.csv").write_text(
        "subject,run,q1,q1@text,q2,q2@text,odd@name\na,r1,1,0,1,1,0\nb,r1,0,,1,0,1\nc,r2,1,1,1,0,1\n"
    )
    assert in_formats("w.csv")
    found = read_format_responses(["w.csv"])
    assert found.items == ("q1", "q2", "odd@name")
    assert found.modalities.formats == ("image+text", "text")
    assert found.families == ("r1", "r1", "r2")
    nan = np.nan
    np.testing.assert_array_equal(found.scores[1], [[0, nan], [1, 0], [1, nan]])
    np.testing.assert_array_equal(found.whole.scores, found.scores[:, :, 0])
    assert found.at([1]).families == found.families
