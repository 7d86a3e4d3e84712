"""Write hostile data sets to a folder, and import each: ``python hostile_data.py FOLDER`` prints what became of it.

Each is refused with a sentence, or yields only what is sound in it.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import pickle
import resource
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

_GOOD = {"question": "Who is tall?", "options": ["Ann", "Bo"], "answer": "A"}
_PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def _lines(path: Path, *records: object) -> Path:
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return path


def _zeros(path: Path, size: int, head: bytes = b"", block: bytes = b"a" * (1 << 20)) -> Path:
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(head)
        for _ in range(size // len(block)):
            file.write(block)
    return path


def _parquet_of_one_text(folder: Path, length: int, rows: int) -> Path:
    """Write a text once and refer to it from every row."""
    import pyarrow
    import pyarrow.parquet

    text = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * rows, pyarrow.int32()), ["x" * length])
    table = pyarrow.table({"question": text, "answer": ["A"] * rows})
    pyarrow.parquet.write_table(table, folder / "t.parquet", compression="zstd", store_schema=False)
    return folder / "t.parquet"


def _parquet_lie(folder: Path) -> Path:
    path = _parquet_of_one_text(folder, 10, 10)
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 40] = b"\xff" * 40
    path.write_bytes(data)
    return path


def _arrow_bomb(folder: Path) -> Path:
    import pyarrow
    import pyarrow.ipc

    batch = pyarrow.record_batch({"question": ["x" * (1 << 20)] * 400, "answer": ["A"] * 400})
    options = pyarrow.ipc.IpcWriteOptions(compression="zstd")
    with pyarrow.ipc.new_stream(str(folder / "t.arrow"), batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return folder / "t.arrow"


class _Runs:
    """An object whose pickle would create a file when it is opened."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (str(self.path), "w")


def _pickle(folder: Path, name: str) -> Path:
    (folder / name).write_bytes(pickle.dumps(_Runs(folder / "ran")))
    return folder / name


def _picture(folder: Path, image: object) -> Path:
    return _lines(folder / "t.jsonl", *[{**_GOOD, "image": image}] * 3)


def _linked_picture(folder: Path) -> Path:
    outside = folder.parent / f"{folder.name}-secret.png"
    outside.write_bytes(_PNG)
    (folder / "a.png").symlink_to(outside)
    return _picture(folder, "a.png")


def _linked_file(folder: Path) -> Path:
    outside = folder.parent / f"{folder.name}-secret.jsonl"
    _lines(outside, *[_GOOD] * 3)
    (folder / "t.jsonl").symlink_to(outside)
    return folder


def _pipe(folder: Path) -> Path:
    os.mkfifo(folder / "t.jsonl")
    return folder / "t.jsonl"


def _bytes(folder: Path, name: str, data: bytes) -> Path:
    (folder / name).write_bytes(data)
    return folder / name


#: Hostile data sets by name: a function that writes one to a folder, and a part of the refusal; empty if something
#: sound is left.
HOSTILE: dict[str, tuple[Callable[[Path], Path], str]] = {
    "gzip bomb of one line": (lambda d: _zeros(d / "t.jsonl.gz", 130 << 20, b'{"question": "'), "characters in a line"),
    "gzip bomb of JSON": (lambda d: _zeros(d / "t.json.gz", 130 << 20, b'["'), "bytes unpacked"),
    "gzip bomb of CSV": (lambda d: _zeros(d / "t.csv.gz", 130 << 20, b"question,answer\n"), "characters in a line"),
    "gzip bomb of arrow": (lambda d: _zeros(d / "t.arrow.gz", 130 << 20), "bytes unpacked"),
    "millions of small values": (lambda d: _bytes(d, "t.json", b"[" + b"{}," * 3_000_000 + b"{}]"), "values"),
    "millions of values in a line": (
        lambda d: _bytes(d, "t.jsonl", b'{"a": [' + b"[]," * 3_000_000 + b"1]}"),
        "values",
    ),
    "millions of columns": (lambda d: _bytes(d, "t.csv", b"a," * 8_000_000), "cells"),
    "deep nesting": (lambda d: _bytes(d, "t.json", b"[" * 200_000), "not JSON"),
    "deep nesting in a line": (lambda d: _bytes(d, "t.jsonl", b'{"a":' * 50_000), "not JSON"),
    "parquet of 10 GB in one text": (lambda d: _parquet_of_one_text(d, 1_000_000, 10_000), "characters of questions"),
    "parquet of 6 GB a batch": (lambda d: _parquet_of_one_text(d, 100_000_000, 64), "characters of questions"),
    "damaged parquet": (_parquet_lie, "not a readable parquet"),
    "compressed arrow": (_arrow_bomb, "compressed"),
    "no arrow": (lambda d: _bytes(d, "t.arrow", b"ARROW1\0\0" + b"\xff" * 64), "not a readable arrow"),
    "pickle": (lambda d: _pickle(d, "t.pkl"), "never opened"),
    "pickle in a folder": (lambda d: _pickle(d, "t.pickle").parent, "never opened"),
    "pickle named JSON": (lambda d: _pickle(d, "t.json"), "not UTF-8"),
    "array file": (lambda d: _pickle(d, "t.npy"), "never opened"),
    "link to an image outside": (_linked_picture, "no image"),
    "image path above the folder": (lambda d: _picture(d, "../../../etc/hostname.png"), "outside the data set"),
    "absolute image path": (lambda d: _picture(d, "/etc/hostname.png"), "no image"),
    "image by address": (lambda d: _picture(d, "https://127.0.0.1/a.png"), "is not fetched"),
    "image that is none": (lambda d: _picture(d, "data:image/png;base64,AAAA"), "expected PNG, JPEG or WEBP"),
    "linked data file": (_linked_file, "no data file"),
    "named pipe": (_pipe, "named pipe"),
    "not UTF-8": (lambda d: _bytes(d, "t.jsonl", b'{"question": "\xff\xfe"}\n'), "not UTF-8"),
    "broken archive": (
        lambda d: _bytes(
            d, "t.jsonl.gz", gzip.compress(os.urandom(9).hex().join([json.dumps(_GOOD) + "\n"] * 99).encode())[:90]
        ),
        "archive is broken",
    ),
    "no archive": (lambda d: _bytes(d, "t.json.gz", zlib.compress(b"[]")), "archive is broken"),
    "empty file": (lambda d: _bytes(d, "t.jsonl", b""), "no records"),
    "question of another type": (
        lambda d: _lines(d / "t.jsonl", *[{**_GOOD, "question": {"a": 1}}] * 3),
        "no question",
    ),
    "answer of another type": (
        lambda d: _lines(d / "t.jsonl", *[{**_GOOD, "answer": {"a": [1]}}] * 3),
        "name a choice in 0 of 3 rows",
    ),
    "missing columns": (lambda d: _lines(d / "t.jsonl", *[{"options": ["a", "b"], "answer": "A"}] * 3), "no question"),
    "key that stands twice": (lambda d: _bytes(d, "t.jsonl", b'{"question": "a", "question": "b"}'), "question"),
    "list instead of objects": (lambda d: _bytes(d, "t.jsonl", b"[1, 2]\n[3, 4]\n"), "its values have no names"),
    "terminal codes in texts": (lambda d: _lines(d / "t.jsonl", *[{**_GOOD, "id": "\x1b[2J::x"}] * 3), ""),
    "lone surrogate": (lambda d: _bytes(d, "t.jsonl", b'{"question": "\\ud800?", "answer": "Ann"}\n' * 3), ""),
}


def main(folder: Path) -> None:
    """Import every hostile data set, and print a line with the refusal of each, and the peak memory in MB."""
    from pytest_adaptive_eval.errors import AdaptiveEvalError
    from pytest_adaptive_eval.extensions.importing.importer import check_refused, import_items

    for name, (write, _) in HOSTILE.items():
        place = folder / "".join(letter if letter.isalnum() else "-" for letter in name)
        place.mkdir()
        path = _in_child(lambda write=write, place=place: str(write(place)))  # type: ignore[misc]

        def read(path: str = path) -> str:
            try:
                with import_items(path) as found:
                    check_refused(found, path)
                    return f"{len(found.items)} items"
            except AdaptiveEvalError as error:
                return f"refused: {error}"
            except BaseException as error:
                return f"crashed: {type(error).__name__}: {error}"

        said, _, peak = _in_child(lambda read=read: f"{read()}\n{_peak()}").rpartition("\n")  # type: ignore[misc]
        print(json.dumps([name, said[:2000], int(peak), (place / "ran").exists()]), flush=True)  # noqa: T201


def _peak() -> int:
    """Return the peak memory of this process, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _in_child(work: Callable[[], str]) -> str:
    """Return what a function returns in a process of its own, so that its memory counts for nothing else."""
    reading, writing = os.pipe()
    if not (child := os.fork()):
        os.write(writing, work().encode("utf-8", "replace")[-4000:])
        os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8", errors="replace") as answer:  # noqa: PTH123 -- a descriptor
        text = answer.read()
    os.waitpid(child, 0)
    return text


if __name__ == "__main__":
    main(Path(sys.argv[1]))
