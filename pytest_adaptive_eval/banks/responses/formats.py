"""Read responses in formats: items administered with and without image and text.

There are three kinds of source:

- a table with one row per response and the columns ``subject``, ``item``, ``format``
  and ``score``;
- a matrix whose column names have the format as a suffix, ``17@text``, or the omitted
  modality as a prefix, ``<no_image>17``, as in the published data of the M3-IRT paper;
- recorded runs.
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

#: Prefixes of the columns of a published matrix, and the format of each.
PREFIXES = MappingProxyType(
    {"<no_question>": "image", "<no_image>": "text", "<no_info>": "none", "<no_text>": "image", "": "image+text"}
)
#: Suffixes of other matrix columns, after an at sign.  A column without one has image and text.
_SUFFIXES = ("image+text", "image", "text", "none")
#: Separator of format and item in a joint name.  Names of neither contain a tabulator.
_BETWEEN = "\t"


def in_formats(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is a table or a matrix of responses in formats, by its first line."""
    where = Path(path)
    if not where.is_file() or not _is_csv(where):
        return False
    _, names = next(rows_of(where), (0, []))
    return _is_tidy(names) or _is_wide(names)


def named_in_formats(items: Sequence[str]) -> int:
    """Count the items whose name is another item's with a format, such as ``17@text`` and ``17``."""
    names = set(items)
    return sum(form in _SUFFIXES and item in names for item, _, form in (name.rpartition("@") for name in items))


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
        Name of the bank, for recorded runs; needed when they used several.
    families : path, optional
        As in `read_responses`.
    note : callable, optional
        Called with a sentence about each omission.

    Returns
    -------
    FormatResponses
        The modalities are those of the fullest format; a missing score is NaN.

    Raises
    ------
    ResponsesError
        Unreadable or malformed responses; the message names file, line or item, and the fix.
    """
    sources = [Path(path) for path in paths]
    try:
        responses = _together([_read(path, bank, note) for path in sources], ", ".join(map(str, sources)), note)
        return responses if families is None else with_families(responses, Path(families))
    except OSError as error:
        raise ResponsesError(
            f"{error.filename or 'a file'}: cannot be read: {error.strerror or error}; check the path and the rights"
        ) from error


def _together(parts: Sequence[Responses], source: str, note: Callable[[str], object]) -> FormatResponses:
    """Merge the responses of all sources, with items and formats as separate axes."""
    subjects = list(dict.fromkeys(name for part in parts for name in part.subjects))
    for part in parts:
        if lacking := len(subjects) - len(part.subjects):
            note(f"{part.source}: no answers of {lacking} of the {len(subjects)} subjects")
    pairs = [[tuple(name.split(_BETWEEN, 1)) for name in part.items] for part in parts]
    modalities = _modalities({form for part in pairs for form, _ in part}, source)
    columns: dict[str, int] = {}
    source_numbers: dict[str, int] = {}
    for number, (part, named) in enumerate(zip(parts, pairs, strict=True)):
        for _, item in named:
            columns.setdefault(item, len(columns))
            if source_numbers.setdefault(item, number) != number:
                raise ResponsesError(
                    f"{part.source}: the item {item!r} stands in {parts[source_numbers[item]].source} already; give "
                    "the items of one of them other names"
                )
    scores = np.full((len(subjects), len(columns), len(modalities.formats)), np.nan)
    row = {name: s for s, name in enumerate(subjects)}
    for part, named in zip(parts, pairs, strict=True):
        items = [columns[item] for _, item in named]
        forms = [modalities.formats.index("+".join(_ordered(form, modalities.names))) for form, _ in named]
        scores[np.array([row[name] for name in part.subjects])[:, None], items, forms] = part.scores
    families = {name: family for part in parts for name, family in zip(part.subjects, part.families, strict=True)}
    return FormatResponses(
        tuple(subjects), tuple(columns), modalities, scores, tuple(families[name] for name in subjects), source
    )


def _read(path: Path, bank: str | None, note: Callable[[str], object]) -> Responses:
    """Read one source, with columns named by format and item."""
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
    """Return format and item of an administration.  Runs add ``@FORMAT`` to an item in other than its first format."""
    return f"{asked.format}{_BETWEEN}{asked.item.removesuffix(f'@{asked.format}')}"


def _is_tidy(names: Sequence[str]) -> bool:
    return {"format", "score"} <= {name.strip().lower() for name in names}


def _read_tidy(path: Path, note: Callable[[str], object]) -> Responses:
    rows = rows_of(path)
    _, header = next(rows)
    names = [name.strip().lower() for name in header]
    column_words = {"subject": SUBJECT_WORDS, "item": ITEM_WORDS, "format": ("format",), "score": ("score",)}
    at = {}
    for field, words in column_words.items():
        matches = [k for k, name in enumerate(names) if name in words]
        if len(matches) != 1:
            raise ResponsesError(
                f"{path}, line 1: {len(matches)} columns for the {field}, expected one, named {' or '.join(words)}"
            )
        at[field] = matches[0]
    if more := [name for k, name in enumerate(header) if k not in at.values()]:
        note(f"{path.name}: columns that are not read: {', '.join(more):.200}")
    cells, collected, first_lines = Cells(), Collected(str(path)), dict[tuple[str, ...], int]()
    for number, row in rows:
        where = f"{path}, line {number}"
        if len(row) != len(names):
            raise ResponsesError(f"{where}: {len(row)} cells, expected {len(names)} as in the header")
        cells_by_field = {field: row[k].strip() for field, k in at.items()}
        for field in ("subject", "item", "format"):
            if not cells_by_field[field] or _BETWEEN in cells_by_field[field]:
                raise ResponsesError(f"{where}: the {field} is {cells_by_field[field]!r:.80}, expected a name")
        asked = cells_by_field["subject"], cells_by_field["item"], cells_by_field["format"]
        if first_lines.setdefault(asked, number) != number:
            raise ResponsesError(
                f"{where}: {' '.join(asked)!r:.120} stands in line {first_lines[asked]} already; give the mean of "
                "repeated answers, or keep one"
            )
        try:
            score = cells[cells_by_field["score"]]
        except ValueError:
            raise ResponsesError(
                f"{where}: found {cells_by_field['score']!r:.80}, expected a score in [0, 1], or nothing where it is "
                "missing"
            ) from None
        collected.add(cells_by_field["subject"], f"{cells_by_field['format']}{_BETWEEN}{cells_by_field['item']}", score)
    return collected.responses()


def _read_wide(path: Path, note: Callable[[str], object]) -> Responses:
    matrix = read_matrix(path, "subjects-by-items", note)
    items = tuple(_split(name, path) for name in matrix.items)
    return Responses(matrix.subjects, items, matrix.scores, matrix.families, str(path))


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
        prefixes = ", ".join(prefix for prefix in PREFIXES if prefix)
        raise ResponsesError(f"{path}, line 1: column {name!r:.80}: known beginnings are {prefixes}")
    return f"{PREFIXES['']}{_BETWEEN}{name}"


def _ordered(form: str, names: Sequence[str]) -> list[str]:
    """Return the modalities of a format in the order of `names`, or ``none`` if it has none."""
    present = set(form.split("+"))
    return [name for name in names if name in present] or ["none"]


def _modalities(forms: set[str], source: str) -> Modalities:
    """Return the modalities of the fullest format; refuse formats with others."""
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
            f"{source}: the only format is {fullest!r:.80}, expected several; administer the items also without image, "
            "without text and with neither"
        )
    try:
        formats = {"+".join(_ordered(form, names)) for form in forms}
        return Modalities(names, tuple(form for form in Modalities(names).formats if form in formats))
    except EstimationError as error:
        raise ResponsesError(f"{source}: {error}") from None
