"""Recorded responses: matrices, JSON lines of py-irt, and telling formats apart."""

from __future__ import annotations

import gzip
import json
import os
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval import tables
from pytest_adaptive_eval.banks import write_bank
from pytest_adaptive_eval.banks.responses import FORMATS, read_responses
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.items.item import Item

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("ADAPTIVE_EVAL_DATA", ROOT.parent / "shared" / "data"))
real = pytest.mark.skipif(
    not (DATA / "autojudger").is_dir(), reason=f"the published matrices are not in {DATA} (ADAPTIVE_EVAL_DATA)"
)
NAN = float("nan")


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    data = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def refused(path, **settings):
    with pytest.raises(ResponsesError) as caught:
        read_responses(path, **settings)
    return str(caught.value)


# --- matrices ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["r.csv", "r.csv.gz"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_subjects_in_rows(tmp_path, name, mark):
    path = put(tmp_path / name, f"{mark}model,q1,q2,q3\r\na,1,0,0.25\r\nb,0,,1\r\n")
    found = read_responses(path)
    assert (found.subjects, found.items, found.families) == (("a", "b"), ("q1", "q2", "q3"), ("a", "b"))
    np.testing.assert_array_equal(found.scores, [[1, 0, 0.25], [0, NAN, 1]])
    assert found.source == str(path)


def test_items_in_rows(tmp_path):
    found = read_responses(put(tmp_path / "r.csv", "Item_ID,a,b\nq1,1,0\nq2,0,1\nq3,1,1\n"))
    assert (found.subjects, found.items) == (("a", "b"), ("q1", "q2", "q3"))
    np.testing.assert_array_equal(found.scores, [[1, 0, 1], [0, 1, 1]])


@pytest.mark.parametrize(
    ("corner", "told"),
    [("model", "subjects-by-items"), ("subject", "subjects-by-items"), ("Item", "items-by-subjects")],
)
def test_a_flag_that_contradicts_the_header_is_refused(tmp_path, corner, told):
    path = put(tmp_path / "r.csv", f"{corner},a,b\nq1,1,0\n")
    assert read_responses(path, orientation=told).scores.size == 2
    other = "items-by-subjects" if told == "subjects-by-items" else "subjects-by-items"
    message = refused(path, orientation=other)
    assert f"line 1: the first header cell, {corner!r}, says {told}, and the orientation given is {other}" in message


@pytest.mark.parametrize(
    ("header", "do"),
    [
        ("subject,item,score", "pivot the table to one row per subject and one column per item"),
        ("Question,Model,Score", "pivot the table"),
        ("subject,item,format,score", "these are responses in formats: calibrate with --formats m2 or m3"),
    ],
)
def test_a_row_an_answer_is_no_matrix(tmp_path, header, do):
    row = ",".join("1" for _ in header.split(","))
    message = refused(put(tmp_path / "r.csv", f"{header}\n{row}\n"))
    assert f"r.csv, line 1: '{header}' heads one row per answer, not a matrix; {do}" in message


@pytest.mark.parametrize("corner", ["model_sha", "", "llm_name", "id"])
def test_no_orientation_is_guessed(tmp_path, corner):
    path = put(tmp_path / "r.csv", f"{corner},a,b,c\nq1,1,0,0\nq2,1,1,1\n")
    message = refused(path)
    assert "2 rows and 3 columns" in message
    assert repr(corner) in message
    assert "'items-by-subjects' (3 subjects, 2 items)" in message
    assert "'subjects-by-items' (2 subjects, 3 items)" in message
    assert read_responses(path, orientation="subjects-by-items").scores.shape == (2, 3)


@pytest.mark.parametrize("cell", ["", "  ", "NA", "n/a", "nan", "NaN", "None", "NULL"])
def test_missing_is_not_wrong(tmp_path, cell):
    found = read_responses(put(tmp_path / "r.csv", f"subject,q1,q2\na,1,{cell}\n"))
    np.testing.assert_array_equal(found.scores, [[1, NAN]])


@pytest.mark.parametrize(("cell", "value"), [("True", 1), ("false", 0), ("1.0", 1), (" 0.5 ", 0.5), ("1e-1", 0.1)])
def test_ways_to_write_a_score(tmp_path, cell, value):
    assert read_responses(put(tmp_path / "r.csv", f"subject,q1\na,{cell}\n")).scores[0, 0] == value


@pytest.mark.parametrize("cell", ["2", "-0.1", "right", "1_0", "inf", "50%", "0;1"])
def test_a_value_outside_is_named_by_line_and_column(tmp_path, cell):
    message = refused(put(tmp_path / "r.csv", f"subject,q1,q2\na,1,0\n\nb,0,{cell}\n"))
    assert f"r.csv, line 4, column 'q2': found {cell!r}, expected a score in [0, 1]" in message


def test_cells_of_one_and_two_characters_do_not_run_together(tmp_path):
    message = refused(put(tmp_path / "r.csv", "subject,q1,q2\na,,10\n"))
    assert "column 'q2': found '10'" in message


def test_a_quoted_cell_may_hold_a_line_end(tmp_path):
    message = refused(put(tmp_path / "r.csv", 'subject,"q\n1",q2\na,0,0\nb,0,x\n'))
    assert "line 4, column 'q2'" in message


@pytest.mark.parametrize("ending", ["", ","])
def test_a_comma_at_the_end_of_rows_is_no_subject(tmp_path, ending):
    notes: list[str] = []
    path = put(tmp_path / "r.csv", f"item,a,b{ending}\nq1,1,0,\nq2,0,1,\n")
    found = read_responses(path, note=notes.append)
    assert found.subjects == ("a", "b")
    np.testing.assert_array_equal(found.scores, [[1, 0], [0, 1]])
    assert len(notes) == (ending == ",")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("item,a,\nq1,1,0\n", ["line 2, column 3: '0' under an empty header", "name the column"]),
        ("item,a,b\nq1,1\n", ["line 2 ('q1'): 2 cells, expected 3"]),
        ("item,a,b\nq1,1,0,1\n", ["line 2 ('q1'): 4 cells, expected 3"]),
        ("item,a,b\nq1,1,0\nq2,1,1\nq1,0,0\n", ["line 4: duplicate 'q1', also in line 2"]),
        ("item,a,b,a\nq1,1,0,1\n", ["line 1: 'a' heads columns 2 and 4"]),
        ("item,a\n,1\n", ["line 2: the first cell is empty"]),
        ("item,a\n", ["a header and no rows"]),
        ("", ["empty; expected a header"]),
        ("item,\nq1,\n", ["line 1: no column of scores"]),
        ("item;a;b\nq1;1;0\n", ["line 1: one column", "not by ';'"]),
        ("item\tb\nq1\t0\n", ["not by '\\t'"]),
        ("item\nq1\n", ["one column, 'item'"]),
        ('item,a\nq1,"1\n', ["line 2: unexpected end of data"]),
        (b"item,a\nq\xff,1\n", ["not UTF-8 text", "save it as UTF-8"]),
    ],
)
def test_malformed_matrices(tmp_path, text, parts):
    message = refused(put(tmp_path / "r.csv", text))
    assert "r.csv" in message
    for part in parts:
        assert part in message


def test_broken_archives(tmp_path):
    whole = gzip.compress(b"subject,q1\n" + b"".join(b"s%d,1\n" % i for i in range(1000)))
    path = tmp_path / "r.csv.gz"
    path.write_bytes(whole[: len(whole) // 2])
    assert "the archive is broken" in refused(path)
    path.write_bytes(b"subject,q1\na,1\n")
    assert "the archive is broken" in refused(path)
    path.write_bytes(whole[:-8] + b"\0" * 8)
    assert "the archive is broken" in refused(path)


def test_what_unpacks_to_too_much_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "FILE_LIMIT", 1000)
    path = put(tmp_path / "r.csv.gz", "subject,q1\n" + "".join(f"s{i},1\n" for i in range(1000)))
    assert "more than" in refused(path)


def test_a_file_for_replaying_gives_the_runs_as_families(tmp_path):
    path = put(tmp_path / "r.csv", "subject,run,step,q1,q2\na-1,a,100,1,0\na-2,a,200,1,1\nb,,,0,1\n")
    found = read_responses(path)
    assert (found.items, found.families) == (("q1", "q2"), ("a", "a", "b"))
    np.testing.assert_array_equal(found.scores, [[1, 0], [1, 1], [0, 1]])


@pytest.mark.parametrize("header", ["Subject,Run,Step", "model,run,step", "subject_id,step,run"])
def test_run_and_step_are_no_items_whatever_the_word_before_them(tmp_path, header):
    row = "a,1,100" if header.lower().endswith("step") else "a,100,1"
    found = read_responses(put(tmp_path / "r.csv", f"{header},q1,q2\n{row},1,0\n"))
    assert (found.items, found.families) == (("q1", "q2"), ("1",))


def test_one_subject_and_items_without_variation_are_kept(tmp_path):
    found = read_responses(put(tmp_path / "r.csv", "item,only\nq1,1\nq2,1\nq3,\n"))
    np.testing.assert_array_equal(found.scores, [[1, 1, NAN]])


names = st.lists(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
    .map(str.strip)
    .filter(lambda name: name.lower() not in ("", "run", "step")),
    min_size=1,
    max_size=6,
    unique=True,
)


@pytest.mark.slow
@given(data=st.data(), subjects=names, items=names, flip=st.booleans())
def test_what_is_written_reads_back(tmp_path_factory, data, subjects, items, flip):
    import csv

    score = st.sampled_from([0.0, 1.0]) | st.floats(0, 1) | st.just(NAN)
    row = st.lists(score, min_size=len(items), max_size=len(items))
    scores = np.array(data.draw(st.lists(row, min_size=len(subjects), max_size=len(subjects))))
    path = tmp_path_factory.mktemp("csv") / "r.csv"
    rows, columns, table = (items, subjects, scores.T) if flip else (subjects, items, scores)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["item" if flip else "model", *columns])
        for name, values in zip(rows, table, strict=True):
            writer.writerow([name, *("" if np.isnan(v) else repr(float(v)) for v in values)])
    found = read_responses(path)
    assert (found.subjects, found.items) == (tuple(subjects), tuple(items))
    np.testing.assert_array_equal(found.scores, scores)


@pytest.mark.slow
def test_large_matrices_are_read_fast(tmp_path):
    rng = np.random.default_rng(0)
    table = rng.integers(0, 2, (3000, 170)).astype(str)
    body = "\n".join(f"q{i}," + ",".join(row) for i, row in enumerate(table))
    path = put(tmp_path / "r.csv.gz", "item," + ",".join(f"s{i}" for i in range(170)) + "\n" + body)
    start = time.process_time()
    found = read_responses(path)
    assert time.process_time() - start < 5
    np.testing.assert_array_equal(found.scores.T, table.astype(float))


# --- families ---------------------------------------------------------------------------------------------------------


def test_families_from_a_table(tmp_path):
    path = put(tmp_path / "r.csv", "subject,q1\na,1\nb,0\nc,1\n")
    table = put(tmp_path / "f.csv", "subject,family\nc,x\na,x\nunused,y\nb,\n")
    assert read_responses(path, families=table).families == ("x", "b", "x")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a,b\na,x\n", "expected 'subject,family'"),
        ("subject,family\na,x\na,y\n", "line 3: found 'a,y', expected 'subject,family', one row for each subject"),
        ("subject,family\na,x,1\n", "line 2: found 'a,x,1'"),
        ("subject,family\na,x\n", "no family for 1 of 2 subjects"),
    ],
)
def test_malformed_families(tmp_path, text, part):
    path = put(tmp_path / "r.csv", "subject,q1\na,1\nb,0\n")
    message = refused(path, families=put(tmp_path / "f.csv", text))
    assert "f.csv" in message
    assert part in message


# --- py-irt -----------------------------------------------------------------------------------------------------------


def test_pyirt_lines(tmp_path):
    text = '{"subject_id": "a", "responses": {"q1": 1, "q2": 0}}\n\n'
    text += '{"subject_id": 7, "responses": {"q3": null, "q1": 1.0}}'
    for name in ("r.jsonl", "r.jsonl.gz"):
        found = read_responses(put(tmp_path / name, text))
        assert (found.subjects, found.items) == (("a", "7"), ("q1", "q2", "q3"))
        np.testing.assert_array_equal(found.scores, [[1, 0, NAN], [1, NAN, NAN]])


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ('{"subject_id": "b", "responses": {"q1": 3}}', "line 2, key 'q1', metric 'score': found 3, expected a score"),
        ('{"subject_id": "b", "responses": {"q1": "x"}}', "found 'x', expected a score"),
        ('{"subject_id": "", "responses": {"q1": 1}}', "line 2, key 'q1': subject is '', expected a text"),
        ('{"subject": "b", "responses": {}}', "line 2: nothing at rows 'responses'"),
        ('{"subject_id": "b", ', "line 2: not JSON"),
    ],
)
def test_malformed_pyirt_lines(tmp_path, line, part):
    path = put(tmp_path / "r.jsonl", '{"subject_id": "a", "responses": {"q1": 1}}\n' + line + "\n")
    assert part in refused(path)


# --- which format it is -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "part"),
    [
        ("r.pkl", b"\x80\x04.", "neither its name nor its beginning"),
        ("r.parquet", b"PAR1", "not a readable parquet file"),
        ("r.npz", b"PK", "or write a CSV with the columns subject, item and score"),
        ("results_2026.json", '{"results": {"gsm8k": {"acc,none": 0.5}}}', "looks like summed results"),
        (
            "score.json",
            '{"accuracy": 0.5, "correct_count": 1, "total_count": 2}\n{"id": "a"}',
            "the failed samples alone",
        ),
        (
            "r.json",
            '{"outputs": [{"input": "?", "prediction": "a", "target": "a"}]}',
            "suggest: --set answer=prediction",
        ),
        ("r.json", '{"outputs": [{"input": "?", "prediction": "a", "target": ""}]}', "columns subject, item and score"),
        ("r.tar", "x", "r.tar is an archive; unpack it"),
        ("logs.yaml", "a: 1", "logs.yaml is YAML; write its records as JSON"),
        ("r.json", '{"a": 1}', "neither its name nor its beginning says a format"),
        ("r.txt", "subject,q1\na,1\n", "neither its name nor its beginning"),
        ("r.tsv", "subject\tq1\na\t1\n", "neither its name nor its beginning"),
        ("r.jsonl", '{"id": "q1", "prompt": "?", "answer": "1"}\n', "neither its name nor its beginning"),
        ("r.jsonl", '{"id": "q1", "score": 1}\n', "suggest: --set item=id --set score=score"),
        ("r.jsonl", '{"spec": {}}\n', "write a CSV with the columns subject, item and score"),
        ("r.jsonl", "3\n", "line 1: found int, expected one JSON object a line"),
        ("r.jsonl", "{\n", "line 1: not JSON"),
    ],
)
def test_files_of_no_format_say_what_they_look_like(tmp_path, name, text, part):
    message = refused(put(tmp_path / name, text))
    assert name in message
    assert part in message


def test_a_format_named_is_the_one_read(tmp_path):
    path = put(tmp_path / "r.txt", "subject,q1\na,1\n")
    assert read_responses(path, format="csv").items == ("q1",)


def test_folders_of_no_format(tmp_path):
    assert "holds nothing" in refused(tmp_path)
    (tmp_path / "notes").write_text("x")
    (tmp_path / "scores.jsonl").write_text('{"a": 1}\n')
    assert refused(tmp_path).endswith("rows of a table are given by their own file")
    put(tmp_path / "a.csv", "subject,q1\na,1\n")
    put(tmp_path / "b.pkl", "")
    message = refused(tmp_path)
    assert "1 .csv, 1 .pkl" in message
    assert "given by their own file" in message
    assert "is a folder" in refused(tmp_path, format="csv")
    bank = tmp_path / "x.bank"
    write_bank(bank, [Item(id="q", prompt="?", answer="1")], discrimination=np.ones(1), intercept=np.zeros(1))
    assert "is a bank" in refused(bank)


def test_folders_of_two_formats_need_one_named(tmp_path):
    put(tmp_path / "m" / "samples_t_2026-01-01T00-00-00.jsonl", '{"doc_id": 0, "acc": 1}\n')
    put(tmp_path / "logs" / "x.json", '{"version": 2, "status": "success"}')
    assert "files of inspect and lm-eval; give format" in refused(tmp_path)
    assert read_responses(tmp_path, format="lm-eval").items == ("t:0",)


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"format": "excel"}, f"format 'excel' is not known; use {', '.join(FORMATS)}"),
        ({"orientation": "rows"}, "orientation 'rows' is not known"),
        ({"metric": "acc"}, "is read as csv, which takes orientation; leave metric 'acc' out"),
        ({"filter": "none"}, "leave filter 'none' out"),
    ],
)
def test_settings_that_do_not_apply(tmp_path, settings, part):
    assert part in refused(put(tmp_path / "r.csv", "subject,q1\na,1\n"), **settings)


def test_py_irt_takes_no_setting(tmp_path):
    path = put(tmp_path / "r.jsonl", json.dumps({"subject_id": "a", "responses": {"q": 1}}))
    assert "which takes no such setting" in refused(path, orientation="items-by-subjects")


def test_files_that_cannot_be_read(tmp_path, monkeypatch):
    assert "does not exist; check the path" in refused(tmp_path / "nowhere.csv")
    path = put(tmp_path / "r.csv", "subject,q1\na,1\n")

    def deny(*_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", deny)
    assert f"{path}: cannot be read: Permission denied" in refused(path)


def test_links_are_followed_and_circles_end(tmp_path):
    put(tmp_path / "real" / "samples_t.jsonl", '{"doc_id": 0, "acc": 1}\n')
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "m").symlink_to(tmp_path / "real")
    (tmp_path / "out" / "again").symlink_to(tmp_path / "out")
    assert len(read_responses(tmp_path / "out").subjects) == 1


# --- published matrices -----------------------------------------------------------------------------------------------


@real
@pytest.mark.parametrize(
    ("name", "shape", "mean"), [("AI2D_TEST", (169, 3088), 0.668365), ("MMMU_DEV_VAL", (168, 1050), 0.399252)]
)
def test_published_item_by_model_matrices(name, shape, mean):
    path = DATA / "autojudger" / f"{name}.csv.gz"
    found = read_responses(path, orientation="items-by-subjects")
    assert found.scores.shape == shape
    assert found.observed == 1
    assert found.scores.mean() == pytest.approx(mean, abs=1e-6)
    assert "'model_sha', does not say which are the items" in refused(path)


@real
@pytest.mark.parametrize(
    ("name", "items"),
    [("normal_mmmu", 3388), ("normal_mathvista", 4000), ("shuffled_mmmu", 3600), ("shuffled_mathvista", 3996)],
)
def test_published_model_by_item_matrices(name, items):
    found = read_responses(DATA / "m3irt" / f"{name}.csv.gz", orientation="subjects-by-items")
    assert found.scores.shape == (24, items)
    assert not found.items[0].startswith("\ufeff")
    assert "qwen2.5-vl-7b" in found.subjects
