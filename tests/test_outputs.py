"""Output files are replaced whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_adaptive_eval.errors import JournalError, UsageError
from pytest_adaptive_eval.outputs import replacing, write_whole


@pytest.mark.parametrize("durable", [False, True])
def test_replaced_file_has_the_new_content_and_leaves_no_other_file(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "new folder" / "page.html"
    for content in (b"first", b"second"):
        write_whole(path, [content, b" part"], "the page", durable=durable)
    assert path.read_bytes() == b"second part"
    assert list(path.parent.iterdir()) == [path]


def test_exception_in_the_block_keeps_the_earlier_file(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    path.write_text("old")
    with pytest.raises(TypeError), replacing(path) as file:
        file.writelines([b"new", "text"])  # type: ignore[list-item]
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_file_in_writing_keeps_the_suffix(tmp_path: Path) -> None:
    with replacing(tmp_path / "items.jsonl") as file:
        assert Path(file.name).suffix == ".jsonl"


def test_symbolic_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_whole(link, [b"new"], "the page")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_pipe_behind_a_symbolic_link_is_not_replaced(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    with pytest.raises(OSError, match="not a regular file"), replacing(link) as file:
        file.write(b"new")
    assert pipe.is_fifo()


@pytest.mark.parametrize("error_class", [UsageError, JournalError])
def test_folder_or_unwritable_path_raises_the_given_class(tmp_path: Path, error_class: type[UsageError]) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(error_class, match=r"is not a regular file, and the page would replace it: choose another"):
        write_whole(tmp_path, [b""], "the page", error_class)
    with pytest.raises(error_class, match=r"cannot write the page: File exists\. Free space, set the rights"):
        write_whole(tmp_path / "file" / "page", [b""], "the page", error_class)
