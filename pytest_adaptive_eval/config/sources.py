"""What settings and records name, found and loaded: subjects and banks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.core.bank import ItemBank
from pytest_adaptive_eval.errors import BankError

if TYPE_CHECKING:
    from pytest_adaptive_eval.core.record import RunRecord
    from pytest_adaptive_eval.models.base import Subject

__all__ = ["load_model", "recorded_banks"]


def load_model(spec: str, folders: Sequence[Path], cache: Path) -> Subject:
    """The subject that a text names.

    Parameters
    ----------
    spec : str
        A checkpoint folder, or ``replay:FILE[#NAME]``.
    folders : sequence of Path
        What a relative path may be relative to, in order.
    cache : Path
        Where checkpoint hashes are kept.

    Raises
    ------
    ConfigError, CheckpointError
        No such folder, or one that cannot be loaded safely.
    """
    from pytest_adaptive_eval.models import REPLAY, load_subject

    kind = REPLAY if spec.startswith(REPLAY) else ""
    path = spec.removeprefix(kind)
    whole = path.rpartition("#")[0] if kind and "#" in path else path
    folder = next((f for f in folders if (f / whole).exists() or (f / path).exists()), None)
    found = spec if folder is None else f"{kind}{folder / path}"
    return load_subject(found) if kind else load_subject(found, cache=cache)


def recorded_banks(
    record: RunRecord, folders: Sequence[Path], paths: Mapping[str, Path] | None = None, graders: Sequence[str] = ()
) -> dict[str, ItemBank]:
    """The banks of a record's interviews that are at hand.

    Parameters
    ----------
    record : RunRecord
    folders : sequence of Path
        What the paths in the record may be relative to, in order.
    paths : mapping, optional
        Where the bank of an evaluation is now, by the evaluation's name.
    graders : sequence of str
        Modules whose functions may grade.

    Returns
    -------
    dict of str to ItemBank
        By the evaluation's name; one whose bank is gone is left out.

    Raises
    ------
    BankError
        A bank that `paths` names cannot be read.
    """
    found: dict[str, ItemBank] = {}
    for interview in record.interviews:
        if (given := (paths or {}).get(interview.name)) is not None:
            found[interview.name] = read_bank(given, graders=graders)
            continue
        written = str(interview.bank.get("path") or "")
        place = next((folder / written for folder in folders if written and (folder / written).exists()), None)
        if place is not None:
            with suppress(BankError, OSError):  # shown without its texts
                found[interview.name] = read_bank(place, graders=graders)
    return found
