"""Files that are no files: each reader refuses them by name, at once, and in one sentence."""

from __future__ import annotations

import os
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from readers import READERS, Reader

from pytest_adaptive_eval.errors import UsageError
from pytest_adaptive_eval.inputs import find_input, open_regular, open_text

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="named pipes, devices and /proc are of Linux"),
]

#: Seconds after which a reader counts as blocked.
DEADLINE = 60
#: Bytes that a reader may take beyond what is in use: an endless device must not fill the machine.
MEMORY = 2**31


def _unreadable(path: Path) -> None:
    """Make a regular file that can be opened and not be read, even by root."""
    path.symlink_to("/proc/self/mem")


KINDS: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "socket": lambda path: os.mknod(path, stat.S_IFSOCK | 0o600),
    "endless device": lambda path: path.symlink_to("/dev/zero"),
    "full device": lambda path: path.symlink_to("/dev/full"),
    "terminal": lambda path: path.symlink_to("/dev/tty"),
    "folder": Path.mkdir,
    "dangling link": lambda path: path.symlink_to("nowhere"),
    "circular link": lambda path: path.symlink_to(path.name),
    "unreadable file": _unreadable,
    "missing file": lambda _: None,
}


@contextmanager
def bounded() -> Iterator[None]:
    """End what blocks, and what reads without end."""
    import resource

    def ring(*_: object) -> None:
        raise TimeoutError(f"the reader did not end in {DEADLINE} s")

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, DEADLINE)
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def complaint(reader: Reader, folder: Path, said: Callable[[], str]) -> str:
    """What the reader says about its input; empty where it says nothing."""
    try:
        with bounded():
            left_out = reader.read(folder)
    except UsageError as error:
        return f"{error} {said()}"
    return " ".join(left_out) if isinstance(left_out, list) else ""


@pytest.mark.parametrize("name", READERS)
def test_what_is_no_readable_file_is_refused_by_name(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reader = READERS[name]
    reader.prepare(tmp_path)
    path = tmp_path / reader.file
    path.rename(tmp_path / "sound")
    accepted = []
    for kind, make in KINDS.items():
        make(path)
        told = complaint(reader, tmp_path, lambda: capsys.readouterr().err)
        assert "Traceback" not in told
        assert len(told) < 2_000
        if path.name not in told:
            accepted.append(kind)
        remove(path)
    legitimate = {"missing file"} | (set(KINDS) if reader.optional else set())
    if name == "history archive":
        legitimate.add("folder")  # a history may be a folder, whatever its name
    assert set(accepted) <= legitimate, "read as if it were a file, or refused without its name"


def remove(path: Path) -> None:
    """Remove what a kind made, and what a reader put in its place."""
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)


@pytest.mark.parametrize("name", READERS)
def test_the_sound_input_of_each_reader_is_read(name: str, tmp_path: Path) -> None:
    READERS[name].prepare(tmp_path)
    left_out = READERS[name].read(tmp_path)
    assert left_out == [] or not isinstance(left_out, list)


def test_a_regular_file_is_opened_and_a_link_to_it_where_links_may_be_followed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"text")
    (tmp_path / "link").symlink_to("a")
    with open_regular(tmp_path / "link") as file:
        assert (file.read(), file.name) == (b"text", str(tmp_path / "link"))
    with pytest.raises(OSError, match="it is a symbolic link, expected a regular file"):
        open_regular(tmp_path / "link", follow=False)


@pytest.mark.parametrize("path", ["a\0b", "a\udcff\ud800", "a" * 5000])
def test_a_path_that_no_file_can_have_is_an_error_of_files(path: str, tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"no file can have such a path|too long|No such file"):
        open_regular(tmp_path / path)
    assert find_input(path, [tmp_path]) is None


def test_a_git_lfs_pointer_is_refused_where_its_content_is_wanted(tmp_path: Path) -> None:
    pointer = tmp_path / "items.jsonl"
    pointer.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n")
    with pytest.raises(OSError, match="Git LFS pointer in place of the file") as raised:
        open_regular(pointer)
    assert raised.value.filename == str(pointer)
    with open_regular(pointer, pointer=True) as file:
        assert file.read(7) == b"version"


def test_text_is_decoded_and_unpacked_with_its_line_ends(tmp_path: Path) -> None:
    import gzip

    content = "\ufeffä,1\r\nb,2\n".encode()
    (tmp_path / "a.csv").write_bytes(content)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(content))
    for name in ("a.csv", "a.csv.gz"):
        with open_text(tmp_path / name) as file:
            assert file.read() == "ä,1\r\nb,2\n"
