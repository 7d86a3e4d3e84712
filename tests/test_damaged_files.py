"""Damaged input: each reader takes it, or refuses it with an error of this package, and raises nothing else."""

from __future__ import annotations

import json
import random
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from readers import READERS

from pytest_adaptive_eval.errors import AdaptiveEvalError

pytestmark = pytest.mark.slow

#: Damaged versions of each reader's input, of each kind of damage.
VERSIONS = 12
#: What takes the place of a value in JSON: every type, extremes, and what is true by accident.
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 10**30, float("inf"), float("nan"), "", "x", "\ud800", "\0", "../../x", [], [None], [[]],
    {}, {"a": {}}, [[[[]]]], "9" * 5000, ["x"] * 3, {"": None},
)  # fmt: skip


@cache
def sound(name: str) -> bytes:
    """Content of the reader's file."""
    with tempfile.TemporaryDirectory() as folder:
        READERS[name].prepare(Path(folder))
        return (Path(folder) / READERS[name].file).read_bytes()


def cut_off(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def bytes_changed(content: bytes, chance: random.Random) -> bytes:
    data = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 5, 30))):
        if data:
            data[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(data)


def noise(content: bytes, chance: random.Random) -> bytes:
    fixed = (b"", b"\0" * 64, b"[" * 100_000, b'{"a":' * 50_000, b"\xff\xfe", b"\n" * 50, b"1" * 10_000)
    return chance.choice((*fixed, chance.randbytes(200), content + chance.randbytes(20), b"PK\x05\x06" + bytes(18)))


def other_values(content: bytes, chance: random.Random) -> bytes:
    """JSON, or lines of it, of which one value is another one; cells of a table likewise."""
    whole = changed_json(content, chance)
    if whole is not None:
        return whole
    rows = content.split(b"\n")
    at = chance.randrange(len(rows))
    row = changed_json(rows[at], chance)
    if row is None:
        cells = rows[at].split(b",")
        cells[chance.randrange(len(cells))] = json.dumps(chance.choice(VALUES)).encode()
        row = b",".join(cells)
    return b"\n".join([*rows[:at], row, *rows[at + 1 :]])


def changed_json(content: bytes, chance: random.Random) -> bytes | None:
    try:
        data = json.loads(content)
    except ValueError:
        return None
    box = [data]
    holder, key = chance.choice(list(places(box)))
    if chance.random() < 0.2 and isinstance(holder, dict):
        del holder[key]
    else:
        holder[key] = chance.choice(VALUES)
    return json.dumps(box[0]).encode()


def places(holder: Any) -> Iterator[tuple[Any, Any]]:
    """Every value, as what holds it and where."""
    for key, value in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
        yield holder, key
        if isinstance(value, dict | list):
            yield from places(value)


def members_changed(content: bytes, chance: random.Random) -> bytes:
    """A zip archive of which one member is another one, and sound as an archive."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a"
        path.write_bytes(content)
        if not zipfile.is_zipfile(path):
            return other_values(content, chance)
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        name = chance.choice(sorted(members))
        change = chance.choice((cut_off, bytes_changed, noise, other_values, None))
        if name.endswith(".npy") and chance.random() < 0.7:
            np.save(path, chance.choice(ARRAYS), allow_pickle=True)
            members[name] = path.with_suffix(".npy").read_bytes()
        elif change is None:
            del members[name]
        else:
            members[name] = change(members[name], chance)
        with zipfile.ZipFile(path, "w", chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        return path.read_bytes()


ARRAYS = (
    np.array(1.0), np.zeros(0), np.zeros((3, 2, 2)), np.full(3, np.nan), np.full(3, np.inf), np.full(3, 1e308),
    np.array([b"q-0"] * 3), np.array([b"\xff", b"q", b"r"]), np.array([-(2**62)] * 3), np.array([2**62] * 3),
    np.array([None, {}, "x"], dtype=object), np.array(["q-0", "q-1", "q-2"]), np.zeros(3, dtype=complex),
    np.zeros(3, dtype=[("a", "f8")]), np.zeros(3, dtype="M8[s]"), np.zeros(10**6), np.arange(3, dtype=np.uint8),
)  # fmt: skip
DAMAGE = (cut_off, bytes_changed, noise, other_values, members_changed)


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("name", sorted(READERS))
def test_damaged_input_is_read_or_refused(
    name: str, damage: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reader = READERS[name]
    reader.prepare(tmp_path)
    path = tmp_path / reader.file
    content = path.read_bytes()
    versions = 2 if "correlation" in name else VERSIONS  # that one runs a whole command
    faults: list[str] = []
    for version in range(versions):
        chance = random.Random(f"{name} {damage.__name__} {version}")
        damaged = damage(content, chance)
        path.write_bytes(damaged)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of numpy about what it reads
                reader.read(tmp_path)
        except AdaptiveEvalError as error:
            faults.append(str(error) + capsys.readouterr().err)
        except Exception as error:
            raise AssertionError(f"{type(error).__name__} for {damaged[:300]!r}") from error
    assert all(faults), "an error without a message"
    assert not any("Traceback" in fault for fault in faults)
