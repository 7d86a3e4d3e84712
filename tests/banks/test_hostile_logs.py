"""Logs made to harm: refused with their name, in bounded memory, and nothing of them is run or followed."""

import gzip
import json
import os
import pickle
import subprocess
import sys
import zipfile

import pytest

pytestmark = pytest.mark.slow

#: Upper limit of the memory of a process that reads a hostile log, in bytes.
MEMORY = 500_000_000

READ = """
import re, sys
from pytest_adaptive_eval.banks.responses import read_responses
from pytest_adaptive_eval.errors import UsageError
try:
    read_responses(sys.argv[1], format=sys.argv[2] or None)
    print("read")
except UsageError as error:
    print("refused:", error)
print(1024 * int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]))
"""


class Runs:
    """Creates a file when it is unpickled."""

    def __reduce__(self):
        return os.system, ("touch ran",)


def archive(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name.replace("__", "/") + ".json", content)
    return path


HEADER = json.dumps({"version": 2, "status": "success", "eval": {"model": "m", "task": "t"}})


def eval_bomb(folder):
    path = archive(folder / "a.eval", header=HEADER)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as file, file.open("summaries.json", "w") as member:
        for _ in range(900):
            member.write(b" " * 1_000_000)
    return path


def lying_sizes(folder):
    """A member that declares 10 GB."""
    path = archive(folder / "a.eval", header=HEADER, summaries=b"[]" + b" " * 100)
    data = bytearray(path.read_bytes())
    at = data.rindex(b"PK\x01\x02")
    data[at + 24 : at + 28] = (0xFFFFFFF0).to_bytes(4, "little")
    path.write_bytes(data)
    return path


def gzip_bomb(folder):
    path = folder / "r.jsonl.gz"
    with gzip.open(path, "wb", 9) as file:
        file.write(b'{"id": "')
        for _ in range(60):
            file.write(b"x" * 5_000_000)
    return path


def csv_bomb(folder):
    path = folder / "r.csv.gz"
    with gzip.open(path, "wb", 9) as file:
        file.write(b"subject,")
        for _ in range(60):
            file.write(b"q," * 2_500_000)
    return path


def sparse(name):
    """A file of 10 GB that takes no space."""

    def make(folder):
        path = folder / name
        with path.open("wb") as file:
            file.write(b'{"results": ')
            file.truncate(10_000_000_000)
        return path

    return make


def foreign_pickle(name):
    def make(folder):
        path = folder / name
        path.write_bytes(pickle.dumps(Runs()))
        return path

    return make


def numpy_of_objects(folder):
    import numpy as np

    np.save(folder / "r.npy", np.array([Runs()], dtype=object), allow_pickle=True)
    return folder / "r.npy"


def parquet_of_many_rows(folder):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow reads parquet (extra parquet)")
    from pyarrow import parquet

    column = pyarrow.nulls(60_000_000, pyarrow.int8())
    parquet.write_table(pyarrow.table({"acc": column}), folder / "t.parquet")
    return folder / "t.parquet"


def nested(folder):
    (folder / "r.json").write_text("[" * 200_000)
    return folder / "r.json"


def text(name, content):
    def make(folder):
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return folder / name

    return make


def link_to_device(folder):
    (folder / "r.jsonl").symlink_to("/dev/zero")
    return folder / "r.jsonl"


def pipe(folder):
    os.mkfifo(folder / "r.csv")
    return folder / "r.csv"


def circle(folder):
    (folder / "a").symlink_to(folder)
    return folder


def entities(folder):
    """A workbook whose XML expands."""
    letters = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "x" * 50}">' for n in range(10))
    with zipfile.ZipFile(folder / "m_T_judged.xlsx", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("xl/workbook.xml", f'<?xml version="1.0"?><!DOCTYPE w [{letters}]><workbook>&e9;</workbook>')
    return folder / "m_T_judged.xlsx"


HOSTILE = {
    "bomb in an archive": (eval_bomb, "", "summaries.json claims 900000000 bytes"),
    "declared size that is false": (lying_sizes, "", "a.eval"),
    "bomb of one line": (gzip_bomb, "", "r.jsonl.gz"),
    "bomb of one header": (csv_bomb, "", "more than 64000000 characters in a line"),
    "file of 10 GB": (sparse("r.json"), "mapping", "bytes unpacked, which are read whole"),
    "log of 10 GB": (sparse("per_instance_stats.json"), "helm", "at most 2147483648 are read"),
    "lines of 10 GB": (sparse("r.jsonl"), "mapping", "line 1"),
    "pickle": (foreign_pickle("r.pkl"), "", "neither its name nor its beginning says a format"),
    "pickle under another name": (foreign_pickle("r.json"), "", "r.json"),
    "pickle as a table": (foreign_pickle("r.parquet"), "mapping", "not a readable parquet file"),
    "array of objects": (numpy_of_objects, "", "neither its name nor its beginning says a format"),
    "parquet of 60 million rows": (parquet_of_many_rows, "mapping", "60000000 rows and"),
    "nested a hundred thousand deep": (nested, "mapping", "not JSON"),
    "number of a hundred thousand digits": (text("r.json", f'[{{"score": {"9" * 100_000}}}]'), "mapping", "r.json"),
    "key that stands twice": (text("r.jsonl", '{"id": 1, "score": 1, "score": 0}\n'), "mapping", "duplicate key"),
    "lone surrogates as ids": (text("r.jsonl", '{"id": "\\ud800", "score": 2}\n'), "mapping", "r.jsonl"),
    "scores of other types": (text("r.jsonl", '{"id": 1, "score": {"a": 1}}\n'), "mapping", "r.jsonl"),
    "no column of scores": (text("r.jsonl", '{"id": 1, "text": "x"}\n'), "mapping", "no column holds scores"),
    "bytes that are no text": (text("r.csv", b"\xff\xfe\x00subject"), "", "not UTF-8"),
    "link to a device": (link_to_device, "mapping", "it is a device"),
    "named pipe": (pipe, "csv", "it is a named pipe"),
    "folder within itself": (circle, "", "holds nothing"),
    "entities that expand": (entities, "", "m_T_judged.xlsx"),
}


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_log_is_refused_in_bounded_memory(name, tmp_path):
    make, kind, part = HOSTILE[name]
    folder = tmp_path / "logs"
    folder.mkdir()
    path = make(folder)
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow", reason="parquet needs pyarrow (extra parquet)")
    done = subprocess.run(
        [sys.executable, "-c", READ, str(path), kind], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    *said, memory = done.stdout.splitlines() or [done.stderr, "0"]
    assert done.stderr == ""
    assert said[0].startswith("refused:")
    assert part in said[0]
    assert path.name in said[0]
    assert int(memory) <= MEMORY
    assert not list(tmp_path.rglob("ran"))


def test_a_question_in_a_log_reads_no_file_outside(tmp_path):
    from pytest_adaptive_eval.banks.responses import read_responses
    from pytest_adaptive_eval.banks.responses.questions import items_of

    folder = tmp_path / "logs"
    folder.mkdir()
    (tmp_path / "secret.png").write_bytes(b"\x89PNG secret")
    row = {"id": 1, "correct": 1, "question": "?", "answer": "x", "image": "../secret.png"}
    paths = "../secret.png", str(tmp_path / "secret.png"), "/etc/passwd", "http://127.0.0.1:9/x.png"
    rows = [json.dumps({**row, "id": n, "image": path}) for n, path in enumerate(paths)]
    (folder / "r.jsonl").write_text("\n".join(rows))
    notes: list[str] = []
    assert items_of(read_responses(folder / "r.jsonl", format="mapping"), tmp_path, notes.append) == []
    assert not (tmp_path / "images").exists()
