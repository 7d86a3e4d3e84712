"""Responses in formats: items that subjects were asked with and without image and text.

Three kinds of source: a table with a row an answer and the columns ``subject``,
``item``, ``format`` and ``score``; a matrix whose columns say by a suffix what was
shown, ``17@text``, or by a prefix what was left out, ``<no_image>17``, as the
M3-IRT paper publishes its data; and recorded runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np

from pytest_adaptive_eval.banks.responses.files import Collected
from pytest_adaptive_eval.banks.responses.matrix import (
    ITEM_WORDS,
    SUBJECT_WORDS,
    Cells,
    read_matrix,
    rows_of,
    with_families,
)
from pytest_adaptive_eval.banks.responses.runs import is_record, read_runs
from pytest_adaptive_eval.errors import EstimationError, ResponsesError
from pytest_adaptive_eval.irt.multimodal import Modalities
from pytest_adaptive_eval.items.responses import FormatResponses, Responses
from pytest_adaptive_eval.records.run_record import Administration

__all__ = ["in_formats", "named_in_formats", "read_format_responses"]

#: What the columns of a published matrix begin with, and the format that each means.
PREFIXES = MappingProxyType(
    {"<no_question>": "image", "<no_image>": "text", "<no_info>": "none", "<no_text>": "image", "": "image+text"}
)
#: What other columns of a matrix end with, behind an at sign; without one an item was asked with image and text.
_SUFFIXES = ("image+text", "image", "text", "none")
#: Between format and item, while both are one name: no tabulator stands in a name of either.
_BETWEEN = "\t"


def in_formats(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a table or a matrix of responses in formats, by its first line."""
    where = Path(path)
    if not where.is_file() or not _is_csv(where):
        return False
    _, names = next(rows_of(where), (0, []))
    return _is_tidy(names) or _is_wide(names)


def named_in_formats(items: Sequence[str]) -> int:
    """How many of the items are named as another one in a format, ``17@text`` beside ``17``."""
    known = set(items)
    return sum(form in _SUFFIXES and item in known for item, _, form in (name.rpartition("@") for name in items))


def _is_csv(path: Path) -> bool:
    return path.name.lower().endswith((".csv", ".csv.gz"))


def read_format_responses(
    paths: Sequence[str | os.PathLike[str]],
    *,
    bank: str | None = None,
    families: str | os.PathLike[str] | None = None,
    note: Callable[[str], object] = lambda _: None,
) -> FormatResponses:
    """Read what models answered in several formats, from one source or several with different items.

    Parameters
    ----------
    paths : sequence of path
    bank : str, optional
        Of recorded runs: the bank's name, needed when they used several.
    families : path, optional
        As in `read_responses`.
    note : callable, optional
        Called with a sentence about each thing that was left out on purpose.

    Returns
    -------
    FormatResponses
        The modalities are those of the fullest format; a score is NaN where it is missing.

    Raises
    ------
    ResponsesError
        Names the file, the line or item, what was found and what to do.
    """
    places = [Path(path) for path in paths]
    try:
        found = _together([_read(path, bank, note) for path in places], ", ".join(map(str, places)), note)
        return found if families is None else with_families(found, Path(families))
    except OSError as error:
        raise ResponsesError(
            f"{error.filename or 'a file'}: cannot be read: {error.strerror or error}; check the path and the rights"
        ) from error


def _together(parts: Sequence[Responses], source: str, note: Callable[[str], object]) -> FormatResponses:
    """The responses of all sources, their items told apart from their formats again."""
    subjects = list(dict.fromkeys(name for part in parts for name in part.subjects))
    for part in parts:
        if lacking := len(subjects) - len(part.subjects):
            note(f"{part.source}: no answers of {lacking} of the {len(subjects)} subjects")
    pairs = [[tuple(name.split(_BETWEEN, 1)) for name in part.items] for part in parts]
    modalities = _modalities({form for part in pairs for form, _ in part}, source)
    place: dict[str, int] = {}
    whose: dict[str, int] = {}
    for number, (part, named) in enumerate(zip(parts, pairs, strict=True)):
        for _, item in named:
            place.setdefault(item, len(place))
            if whose.setdefault(item, number) != number:
                raise ResponsesError(
                    f"{part.source}: the item {item!r} stands in {parts[whose[item]].source} already; give the items "
                    "of one of them other names"
                )
    scores = np.full((len(subjects), len(place), len(modalities.formats)), np.nan)
    row = {name: s for s, name in enumerate(subjects)}
    for part, named in zip(parts, pairs, strict=True):
        items = [place[item] for _, item in named]
        forms = [modalities.formats.index("+".join(_ordered(form, modalities.names))) for form, _ in named]
        scores[np.array([row[name] for name in part.subjects])[:, None], items, forms] = part.scores
    families = {name: family for part in parts for name, family in zip(part.subjects, part.families, strict=True)}
    return FormatResponses(
        tuple(subjects), tuple(place), modalities, scores, tuple(families[name] for name in subjects), source
    )


def _read(path: Path, bank: str | None, note: Callable[[str], object]) -> Responses:
    """One source, its items named by format and item."""
    if not path.exists():
        raise ResponsesError(f"{path} does not exist; check the path")
    if path.is_dir() or is_record(path):
        return read_runs(path, bank, note, by=_asked)
    if not _is_csv(path):
        raise ResponsesError(
            f"{path}: responses in formats are a CSV with the columns subject, item, format and score, a matrix with "
            "columns such as <no_image>17, or run records"
        )
    _, names = next(rows_of(path), (0, []))
    if _is_tidy(names):
        return _read_tidy(path, note)
    if _is_wide(names):
        return _read_wide(path, note)
    raise ResponsesError(
        f"{path}, line 1: neither the columns subject, item, format and score, nor columns such as <no_image>17 for "
        f"what was asked without an image; found {','.join(names)!r:.80}"
    )


def _asked(asked: Administration) -> str:
    """Format and item of an answer; runs call an item in another format than its first ``ITEM@FORMAT``."""
    return f"{asked.format}{_BETWEEN}{asked.item.removesuffix(f'@{asked.format}')}"


def _is_tidy(names: Sequence[str]) -> bool:
    return {"format", "score"} <= {name.strip().lower() for name in names}


def _read_tidy(path: Path, note: Callable[[str], object]) -> Responses:
    rows = rows_of(path)
    _, header = next(rows)
    names = [name.strip().lower() for name in header]
    wanted = {"subject": SUBJECT_WORDS, "item": ITEM_WORDS, "format": ("format",), "score": ("score",)}
    at = {}
    for what, words in wanted.items():
        found = [k for k, name in enumerate(names) if name in words]
        if len(found) != 1:
            raise ResponsesError(
                f"{path}, line 1: {len(found)} columns for the {what}, expected one, called {' or '.join(words)}"
            )
        at[what] = found[0]
    if more := [name for k, name in enumerate(header) if k not in at.values()]:
        note(f"{path.name}: columns that are not read: {', '.join(more):.200}")
    cells, collected, seen = Cells(), Collected(str(path)), dict[tuple[str, ...], int]()
    for number, row in rows:
        where = f"{path}, line {number}"
        if len(row) != len(names):
            raise ResponsesError(f"{where}: {len(row)} cells, expected {len(names)} as in the header")
        told = {what: row[k].strip() for what, k in at.items()}
        for what in ("subject", "item", "format"):
            if not told[what] or _BETWEEN in told[what]:
                raise ResponsesError(f"{where}: the {what} is {told[what]!r:.80}, expected a name")
        asked = told["subject"], told["item"], told["format"]
        if seen.setdefault(asked, number) != number:
            raise ResponsesError(
                f"{where}: {' '.join(asked)!r:.120} stands in line {seen[asked]} already; give the mean of repeated "
                "answers, or keep one"
            )
        try:
            score = cells[told["score"]]
        except ValueError:
            raise ResponsesError(
                f"{where}: found {told['score']!r:.80}, expected a score in [0, 1], or nothing where it is missing"
            ) from None
        collected.add(told["subject"], f"{told['format']}{_BETWEEN}{told['item']}", score)
    return collected.responses()


def _read_wide(path: Path, note: Callable[[str], object]) -> Responses:
    found = read_matrix(path, "subjects-by-items", note)
    items = tuple(_split(name, path) for name in found.items)
    return Responses(found.subjects, items, found.scores, found.families, str(path))


def _is_wide(names: Sequence[str]) -> bool:
    return any(
        name.startswith("<no_") or name.rpartition("@")[2] in _SUFFIXES for name in names if "@" in name or "<" in name
    )


def _split(name: str, path: Path) -> str:
    item, _, form = name.rpartition("@")
    if item and form in _SUFFIXES:
        return f"{form}{_BETWEEN}{item}"
    for prefix, form in PREFIXES.items():
        if prefix and name.startswith(prefix):
            return f"{form}{_BETWEEN}{name[len(prefix) :]}"
    if name.startswith("<no_"):
        known = ", ".join(prefix for prefix in PREFIXES if prefix)
        raise ResponsesError(f"{path}, line 1: column {name!r:.80}: known beginnings are {known}")
    return f"{PREFIXES['']}{_BETWEEN}{name}"


def _ordered(form: str, names: Sequence[str]) -> list[str]:
    """The modalities of a format in the order of `names`; ``none`` where there is none."""
    have = set(form.split("+"))
    return [name for name in names if name in have] or ["none"]


def _modalities(forms: set[str], source: str) -> Modalities:
    """The fullest format says the modalities; the others must be of some of them."""
    fullest = max(sorted(forms), key=lambda form: (form != "none", form.count("+")))
    names = tuple(fullest.split("+"))
    for form in sorted(forms):
        if form != "none" and not set(form.split("+")) <= set(names):
            raise ResponsesError(
                f"{source}: the format {form!r:.80} is not made of the modalities of the fullest one, {fullest!r:.80}; "
                "write formats as image+text, image, text and none"
            )
    if len(forms) < 2 or fullest == "none":
        raise ResponsesError(
            f"{source}: the only format is {fullest!r:.80}; ask the items without image, without text and with neither "
            "as well, since only that tells what they need"
        )
    try:
        given = {"+".join(_ordered(form, names)) for form in forms}
        return Modalities(names, tuple(form for form in Modalities(names).formats if form in given))
    except EstimationError as error:
        raise ResponsesError(f"{source}: {error}") from None
