"""Rows of foreign files."""

import gzip
import json

import pytest

from pytest_adaptive_eval.banks import rows as rows_module
from pytest_adaptive_eval.banks.rows import read_records
from pytest_adaptive_eval.errors import ResponsesError


def write(path, text):
    path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
    return path


def records(path, rows=""):
    return [dict(row.data) for row in read_records(path, rows)]


def refused(path, rows=""):
    with pytest.raises(ResponsesError) as caught:
        list(read_records(path, rows))
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("r.jsonl", '\ufeff{"id": 1, "q": "x"}\n\n{"id": 2, "q": "y, z"}\n'),
        ("r.ndjson", '{"id": 1, "q": "x"}\n{"id": 2, "q": "y, z"}'),
        ("r.json", '{"id": 1, "q": "x"}\n{"id": 2, "q": "y, z"}\n'),
        ("r.json", [{"id": 1, "q": "x"}, {"id": 2, "q": "y, z"}]),
        ("r.json", {"data": [{"id": 1, "q": "x"}, {"id": 2, "q": "y, z"}]}),
    ],
)
def test_records_of_each_form(tmp_path, name, text):
    assert records(write(tmp_path / name, text)) == [{"id": 1, "q": "x"}, {"id": 2, "q": "y, z"}]


def test_lists_side_by_side(tmp_path):
    path = write(tmp_path / "r.json", {"id": [1, 2], "q": ["x", "y, z"], "set": "s"})
    assert records(path, "id,q") == [{"id": 1, "q": "x", "set": "s"}, {"id": 2, "q": "y, z", "set": "s"}]
    assert "id, set at rows are not lists of one length" in refused(path, "id,set")


def test_tables_and_gzipped_files(tmp_path):
    expected = [{"id": "1", "q": "x"}, {"id": "2", "q": "y, z", "note": "n"}]
    assert records(write(tmp_path / "r.csv", 'id,q,note\n1,x,\n2,"y, z",n\n')) == expected
    assert records(write(tmp_path / "r.tsv", "\ufeffid\tq\tnote\n1\tx\t\n2\ty, z\tn\n")) == expected
    (tmp_path / "r.jsonl.gz").write_bytes(gzip.compress(b'{"id": 1}\n'))
    assert [row.names["file"] for row in read_records(tmp_path / "r.jsonl.gz")] == ["r"]


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow reads parquet")
    from pyarrow import parquet

    table = pyarrow.table({"id": list(range(150)), "choices": [["a", "b"]] * 150})
    parquet.write_table(table, tmp_path / "r.parquet")
    rows = list(read_records(tmp_path / "r.parquet"))
    assert len(rows) == 150
    assert rows[149].data == {"id": 149, "choices": ["a", "b"]}
    assert rows[149].where.endswith("r.parquet, row 150")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1nonsensePAR1")
    assert "not a readable parquet file" in refused(tmp_path / "broken.parquet")


def test_a_parquet_file_that_declares_more_than_the_limits_is_refused(tmp_path, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow reads parquet")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"id": [0] * 1000}), tmp_path / "r.parquet")
    monkeypatch.setattr(rows_module, "_ROW_LIMIT", 999)
    assert "1000 rows and" in refused(tmp_path / "r.parquet")


def test_an_object_of_records_gives_keys_and_values(tmp_path):
    path = write(tmp_path / "r.json", {"v_1": "A", "v_2": {"pred": "B"}})
    rows = list(read_records(path))
    assert [(row.names["key"], row.names["value"]) for row in rows] == [("v_1", "A"), ("v_2", {"pred": "B"})]
    assert [row.data for row in rows] == [{"value": "A"}, {"pred": "B"}]
    assert rows[0].where == f"{path}, key 'v_1'"
    assert (rows[0].names["file"], rows[0].names["folder"]) == ("r", tmp_path.name)


def test_records_within_records(tmp_path):
    data = {"model": "m", "tasks": [{"samples": [{"id": 1}]}, {"samples": [{"id": 2}]}], "other": [{"x": 1}]}
    path = write(tmp_path / "r.json", data)
    rows = list(read_records(path, "tasks[*].samples"))
    assert [row.data["id"] for row in rows] == [1, 2]
    assert rows[0].names["parent"]["model"] == "m"
    lines = write(tmp_path / "r.jsonl", '{"m": "a", "r": [{"id": 1}]}\n{"m": "b", "r": [{"id": 1}, {"id": 2}]}\n')
    assert [(row.names["parent"]["m"], row.data["id"]) for row in read_records(lines, "r")] == [
        ("a", 1),
        ("b", 1),
        ("b", 2),
    ]
    assert [row.data for row in read_records(write(tmp_path / "l.json", [[{"id": 1}], [{"id": 2}]]), "[*]")] == [
        {"id": 1},
        {"id": 2},
    ]


@pytest.mark.parametrize(
    ("name", "text", "rows", "part"),
    [
        ("r.json", "[1, 2", "", "r.json: not JSON"),
        ("r.json", "3", "", "found int, expected records"),
        ("r.json", {}, "", "found dict, expected records"),
        ("r.json", {"a": 1, "b": {}}, "b", "nothing at rows 'b'; expected a list or an object; it has 'a', 'b'"),
        ("r.jsonl", "[1]\n", "", "line 1: found list, expected one JSON object a line"),
        ("r.jsonl", '{"a": 1, "a": 2}\n', "", "line 1: not JSON (duplicate key 'a')"),
        ("r.csv", "a,b\n1\n", "", "line 2: 1 cells, expected 2 as in the header"),
        ("r.csv", "a,a\n1,2\n", "", "line 1: 'a' is the name of two columns"),
        ("r.csv", 'a,b\n"1,2\n', "", "save the table again"),
        ("r.npy", "a", "", "is a pickle or an array file, which can run any code when opened"),
    ],
)
def test_malformed_files_are_refused_with_their_place(tmp_path, name, text, rows, part):
    assert part in refused(write(tmp_path / name, text), rows)
