"""Write a bank folder atomically."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from pytest_adaptive_eval.banks.hashes import content_hash, file_hash
from pytest_adaptive_eval.banks.reader import SCHEMA_VERSION, is_bank, read_bank
from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.inference.conformal import Conformal
from pytest_adaptive_eval.irt.prediction import Predictor
from pytest_adaptive_eval.items.bank import ItemBank, scale_id
from pytest_adaptive_eval.items.item import Item

if TYPE_CHECKING:
    from pytest_adaptive_eval.irt.multimodal import FormatScale


def check_place(path: Path, replace: bool) -> None:
    """Refuse a path at which no bank can be written: another suffix, or something that `replace` does not allow for.

    Raises:
        BankError: The path has another suffix, or exists and is not a bank that `replace` allows to replace.
    """
    fault = ""
    if path.suffix != ".bank":
        fault = ": a bank folder's name ends with .bank"
    elif path.exists() and not replace:
        fault = " exists: choose another name, or replace it (--replace, replace=True)"
    elif path.exists() and not is_bank(path):
        fault = " exists and is not a bank folder: choose another name"
    if fault:
        raise BankError(f"{path}{fault}")


def write_bank(
    path: str | Path,
    items: Sequence[Item],
    *,
    discrimination: ArrayLike,
    intercept: ArrayLike,
    guess: ArrayLike | None = None,
    model: str = "2pl",
    subjects: Sequence[str] = (),
    accuracies: Sequence[float] = (),
    accuracy_ranges: Sequence[tuple[float, float]] = (),
    report: Mapping[str, Any] | None = None,
    conformal: Iterable[Conformal] = (),
    in_formats: FormatScale | None = None,
    predictor: Predictor | None = None,
    replace: bool = False,
) -> ItemBank:
    """Write ``NAME.bank/`` and read it back.

    The folder is written under a temporary name in the same folder and renamed after it has been read back. An error
    then leaves no partial bank.

    Args:
        path: Ends with ``.bank``.
        items: Their images are copied from each item's root.
        discrimination: Shape (n,) or (n, D).
        intercept, guess: Shape (n,).
        model: ``1pl``, ``2pl``, ``3pl`` or ``mirt``; ``none`` for items without parameters, see `write_uncalibrated`.
        accuracies: Accuracy of each calibration subject over the whole bank, or empty.
        accuracy_ranges: Its least and largest value by the missing scores; empty if no score is missing.
        conformal: Errors in replayed interviews, one table per policy and budget.

    Raises:
        BankError: The path exists or has another suffix, an image is missing, or the bank cannot be read back.
    """
    path = Path(path)
    check_place(path, replace)
    slopes = np.asarray(discrimination, dtype="<f8")
    slopes = slopes[:, None] if slopes.ndim == 1 else slopes
    intercept = np.asarray(intercept, dtype="<f8")
    if guess is None:
        floor = np.zeros(len(items))
    else:
        floor = np.asarray(guess, dtype="<f8")
    names = sorted({item.category[0] for item in items if item.category})
    path.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    work.chmod(0o755)
    staged = work / path.name
    staged.mkdir()
    try:
        offsets = _write_items(staged, items)
        np.savez(
            staged / "params.npz",
            ids=np.array([item.id.encode() for item in items], dtype="S"),
            discrimination=slopes,
            intercept=intercept,
            guess=floor,
            category=np.array([names.index(i.category[0]) if i.category else -1 for i in items], dtype="<i4"),
            offset=np.array(offsets, dtype="<i8"),
        )
        about = {
            "schema_version": SCHEMA_VERSION,
            "model": model,
            "dimensions": slopes.shape[1],
            "size": len(items),
            "scale": "" if model == "none" else scale_id(slopes, intercept, floor),
            "content_hash": content_hash(items),
            "items_hash": file_hash(staged / "items.jsonl"),
            "items_bytes": (staged / "items.jsonl").stat().st_size,
            "categories": names,
            "subjects": list(subjects),
            "accuracies": [float(accuracy) for accuracy in accuracies],
            "report": dict(report or {}),
            "conformal": [table.to_json() for table in conformal],
        }
        if any(low < high for low, high in accuracy_ranges):
            about["accuracy_ranges"] = [[float(low), float(high)] for low, high in accuracy_ranges]
        if in_formats is not None:
            about["in_formats"] = _in_formats(staged / "formats.npz", in_formats)
        if predictor is not None:
            about["predictor"] = _predictor(staged / "predictor.npz", predictor)
        (staged / "bank.json").write_text(json.dumps(about, indent=1, ensure_ascii=True) + "\n", encoding="ascii")
        _ = read_bank(staged).items[0]
        if path.exists():
            path.rename(work / "replaced")
        staged.rename(path)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return read_bank(path)


def write_uncalibrated(
    path: str | Path, items: Sequence[Item], *, report: Mapping[str, Any] | None = None, replace: bool = False
) -> ItemBank:
    """Write items without parameters to a folder ``NAME.bank/``, and read it back; see `write_bank`."""
    nothing = np.zeros(len(items))
    return write_bank(
        path, items, discrimination=nothing, intercept=nothing, model="none", report=report, replace=replace
    )


def _write_items(folder: Path, items: Sequence[Item]) -> list[int]:
    """Write ``items.jsonl`` and the images; return the position of each item in the file."""
    offsets = []
    position = 0
    with (folder / "items.jsonl").open("wb") as file:
        for item in items:
            offsets.append(position)
            position += file.write(json.dumps(item.to_json(), ensure_ascii=True).encode() + b"\n")
            for name, source in zip(item.images, item.image_paths, strict=True):
                try:
                    _place_file(Path(source), folder / name)
                except OSError as error:
                    raise BankError(f"item {item.id!r}: its image {name!r} cannot be copied: {error}") from None
    return offsets


def _place_file(source: Path, target: Path) -> None:
    """Copy a file; refuse to replace another one."""
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    elif file_hash(target) != file_hash(source):
        raise BankError(f"the image {source} would replace another file, {target}; give one of them another name")


def _predictor(path: Path, predictor: Predictor) -> dict[str, Any]:
    """Write the arrays to `path`, and return designs and hash as JSON data."""
    np.savez(
        path,
        residuals=predictor.residuals.astype("<f4"),
        level=predictor.level.astype("<f4"),
        order=predictor.order.astype("<i4"),
    )
    return {"hash": predictor.hash, "designs": [design.to_json() for design in predictor.designs]}


def _in_formats(path: Path, scale: FormatScale) -> dict[str, Any]:
    """Write the arrays to `path`, and return the rest as JSON data."""
    items = scale.items
    np.savez(
        path,
        discrimination=items.discrimination,
        difficulty=items.difficulty,
        mean=scale.population.mean,
        covariance=scale.population.covariance,
        standings=scale.standings,
    )
    modalities = items.modalities
    return {
        "modalities": list(modalities.names),
        "formats": list(modalities.formats),
        "form": items.form,
        "bound": items.bound,
        "report": dict(scale.report),
    }


def write_items(path: str | Path, items: Sequence[Item]) -> ItemBank:
    """Write a JSONL file of items, and copy images that its folder lacks.

    Args:
        path: Ends with ``.jsonl`` and does not exist.

    Returns:
        The bank, read from the new file.

    Raises:
        BankError: The path exists or has another suffix, an image is missing or would replace a file, or an item is
            malformed.
    """
    path = Path(path)
    if path.suffix != ".jsonl":
        raise BankError(f"{path}: items are written as JSON lines; name a file that ends with .jsonl")
    if path.exists():
        raise BankError(f"{path} exists; choose another name")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        staged = Path(folder)
        _write_items(staged, items)
        read_bank(staged / "items.jsonl")
        for name in dict.fromkeys(name for item in items for name in item.images):
            _place_file(staged / name, path.parent / name)
        (staged / "items.jsonl").rename(path)
    return read_bank(path)
