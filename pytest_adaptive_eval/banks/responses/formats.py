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
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType

import numpy as np

from pytest_adaptive_eval.banks.expressions import as_path
from pytest_adaptive_eval.banks.responses.base import ReadSettings
from pytest_adaptive_eval.banks.responses.files import with_families
from pytest_adaptive_eval.banks.responses.readers.mapped import read_mapped
from pytest_adaptive_eval.banks.responses.readers.matrix import read_matrix
from pytest_adaptive_eval.banks.responses.readers.runs import is_record, read_runs
from pytest_adaptive_eval.errors import EstimationError, ResponsesError
from pytest_adaptive_eval.irt.multimodal import Modalities
from pytest_adaptive_eval.items.responses import FormatResponses, Responses
from pytest_adaptive_eval.mappings import ResponseMapping
from pytest_adaptive_eval.records.run_record import Administration
from pytest_adaptive_eval.tables import ITEM_WORDS, SUBJECT_WORDS, read_rows

#: Prefixes of the columns of a published matrix, and the format of each.
_PREFIXES = MappingProxyType(
    {"<no_question>": "image", "<no_image>": "text", "<no_info>": "none", "<no_text>": "image"}
)
#: Format of a column without prefix and suffix.
_FULL = "image+text"
#: Suffixes of other matrix columns, after an at sign.
_SUFFIXES = ("image+text", "image", "text", "none")
#: Separator of format and item in a joint name.  Names of neither contain a tabulator.
_SEPARATOR = "\t"


def in_formats(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is a table or a matrix of responses in formats, by its first line."""
    where = Path(path)
    if not where.is_file() or not _is_csv(where):
        return False
    _, names = next(read_rows(where), (0, []))
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

    Args:
        bank: Name of the bank, for recorded runs; needed when they used several.
        families: As in `read_responses`.

    Returns:
        The modalities of the fullest format; a missing score is NaN.

    Raises:
        ResponsesError: Unreadable or malformed responses; the message names file, line or item, and the fix.
    """
    sources = [Path(path) for path in paths]
    settings = ReadSettings("subjects-by-items", filter=bank, note=note)
    try:
        parts = [_read(path, settings) for path in sources]
        responses = _merge(parts, ", ".join(map(str, sources)), note)
        return responses if families is None else with_families(responses, Path(families))
    except OSError as error:
        raise ResponsesError(
            f"{error.filename or 'a file'}: cannot be read: {error.strerror or error}; check the path and the rights"
        ) from error


def _merge(parts: Sequence[Responses], source: str, note: Callable[[str], object]) -> FormatResponses:
    """Merge the responses of all sources, with items and formats as separate axes."""
    families: dict[str, str] = {}
    for part in parts:
        families.update(zip(part.subjects, part.families, strict=True))
    for part in parts:
        if absent := len(families) - len(part.subjects):
            note(f"{part.source}: no answers of {absent} of the {len(families)} subjects")
    pairs = [[name.split(_SEPARATOR, 1) for name in part.items] for part in parts]
    forms = {form for form, _ in chain(*pairs)}
    modalities = _modalities(forms, source)
    rows = {name: row for row, name in enumerate(families)}
    columns = _columns(parts, pairs)
    depths = {form: modalities.formats.index("+".join(_ordered(form, modalities.names))) for form in forms}
    scores = np.full((len(rows), len(columns), len(modalities.formats)), np.nan)
    for part, part_pairs in zip(parts, pairs, strict=True):
        positions = np.array([(columns[item], depths[form]) for form, item in part_pairs])
        part_rows = np.array([rows[name] for name in part.subjects])
        scores[part_rows[:, None], positions[:, 0], positions[:, 1]] = part.scores
    return FormatResponses(tuple(rows), tuple(columns), modalities, scores, tuple(families.values()), source)


def _columns(parts: Sequence[Responses], pairs: Sequence[Sequence[Sequence[str]]]) -> dict[str, int]:
    """Return the column of each item; refuse one that several sources have."""
    owners: dict[str, Responses] = {}
    for part, part_pairs in zip(parts, pairs, strict=True):
        for _, item in part_pairs:
            if (owner := owners.setdefault(item, part)) is not part:
                raise ResponsesError(
                    f"{part.source}: the item {item!r} stands in {owner.source} already; give the items of one of them "
                    "other names"
                )
    return {item: column for column, item in enumerate(owners)}


def _read(path: Path, settings: ReadSettings) -> Responses:
    """Read one source, with columns named by format and item."""
    if not path.exists():
        raise ResponsesError(f"{path} does not exist; check the path")
    if path.is_dir() or is_record(path):
        return read_runs(path, settings, column=_run_column)
    if not _is_csv(path):
        raise ResponsesError(
            f"{path}: responses in formats are a CSV with the columns subject, item, format and score, a matrix with "
            "columns such as <no_image>17, or run records"
        )
    _, names = next(read_rows(path), (0, []))
    if _is_tidy(names):
        return _read_tidy(path, names, settings)
    if _is_wide(names):
        matrix = read_matrix(path, settings)
        return replace(matrix, items=tuple(_split(name, path) for name in matrix.items))
    raise ResponsesError(
        f"{path}, line 1: neither the columns subject, item, format and score, nor columns such as <no_image>17 for "
        f"what was asked without an image; found {','.join(names)!r:.80}"
    )


def _run_column(administration: Administration) -> str:
    """Return format and item of an administration.  Runs add ``@FORMAT`` to an item in other than its first format."""
    form = administration.format
    return f"{form}{_SEPARATOR}{administration.item.removesuffix(f'@{form}')}"


def _is_tidy(names: Sequence[str]) -> bool:
    return {"format", "score"} <= {name.strip().lower() for name in names}


def _read_tidy(path: Path, names: Sequence[str], settings: ReadSettings) -> Responses:
    """Read a table with one row per response."""
    columns = _tidy_columns(path, names)
    item = f"{{{columns['format']}}}{_SEPARATOR}{{{columns['item']}}}"
    mapping = ResponseMapping(subject=columns["subject"], item=item, score=f"{as_path(columns['score'])} || 'NA'")
    notes: list[str] = []
    responses = read_mapped(path, replace(settings, mapping=mapping, note=notes.append))
    for note in notes:
        if "repeat" in note:
            raise ResponsesError(f"{note}; keep one answer of each subject to each item in each format")
    return responses


def _tidy_columns(path: Path, header: Sequence[str]) -> dict[str, str]:
    """Return the name of each field's column."""
    columns = {}
    field_words = {"subject": SUBJECT_WORDS, "item": ITEM_WORDS, "format": ("format",), "score": ("score",)}
    for field, words in field_words.items():
        matches = [name for name in header if name.strip().lower() in words]
        if len(matches) != 1:
            raise ResponsesError(
                f"{path}, line 1: {len(matches)} columns for the {field}, expected one, named {' or '.join(words)}"
            )
        columns[field] = matches[0]
    return columns


def _is_wide(names: Sequence[str]) -> bool:
    return any(
        name.startswith("<no_") or name.rpartition("@")[2] in _SUFFIXES for name in names if "@" in name or "<" in name
    )


def _split(name: str, path: Path) -> str:
    item, _, form = name.rpartition("@")
    if item and form in _SUFFIXES:
        return f"{form}{_SEPARATOR}{item}"
    for prefix, form in _PREFIXES.items():
        if name.startswith(prefix):
            return f"{form}{_SEPARATOR}{name[len(prefix) :]}"
    if name.startswith("<no_"):
        raise ResponsesError(f"{path}, line 1: column {name!r:.80}: known beginnings are {', '.join(_PREFIXES)}")
    return f"{_FULL}{_SEPARATOR}{name}"


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
