"""Read responses in formats: items administered with and without image and text.

There are three kinds of source:

- a table with one row per response and the columns ``subject``, ``item``, ``format``
  and ``score``;
- a matrix whose column names have the format as a suffix, ``17@text``, or the omitted
  modality as a prefix, ``<no_image>17``, as in the published data of the M3-IRT paper;
- recorded runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from pytest_adaptive_eval.banks.expressions import as_path
from pytest_adaptive_eval.banks.responses.base import ReadSettings
from pytest_adaptive_eval.banks.responses.files import with_families
from pytest_adaptive_eval.banks.responses.readers.mapped import read_mapped
from pytest_adaptive_eval.banks.responses.readers.matrix import read_matrix
from pytest_adaptive_eval.banks.responses.readers.runs import is_record, read_runs
from pytest_adaptive_eval.checks import check_faults
from pytest_adaptive_eval.errors import EstimationError, ResponsesError
from pytest_adaptive_eval.inputs import StrPath, reading
from pytest_adaptive_eval.irt.multimodal import Modalities
from pytest_adaptive_eval.items.responses import FormatResponses, Responses
from pytest_adaptive_eval.mappings import ResponseMapping
from pytest_adaptive_eval.records.run_record import Administration
from pytest_adaptive_eval.tables import ITEM_WORDS, SUBJECT_WORDS, read_rows
from pytest_adaptive_eval.text import Tell

#: Prefixes of the columns of a published matrix, and the format of each.
_PREFIXES = MappingProxyType(
    {"<no_question>": "image", "<no_image>": "text", "<no_info>": "none", "<no_text>": "image"}
)
#: Formats that the columns of a matrix may end with, after an at sign; the first one is that of other columns.
_SUFFIXES = ("image+text", "image", "text", "none")
#: Names of the columns of a table with one row per response.
_COLUMNS = MappingProxyType({"subject": SUBJECT_WORDS, "item": ITEM_WORDS, "format": ("format",), "score": ("score",)})


def in_formats(path: StrPath) -> bool:
    """Return whether a file is a table or a matrix of responses in formats, by its first line."""
    names = _header(Path(path))
    return _is_tidy(names) or _is_wide(names)


def named_in_formats(items: Sequence[str]) -> int:
    """Count the items whose name is another item's with a format, such as ``17@text`` and ``17``."""
    names = set(items)
    return sum(form in _SUFFIXES and item in names for item, _, form in (name.rpartition("@") for name in items))


def _header(path: Path) -> list[str]:
    """Return the first row of a CSV; empty for what is none."""
    is_csv = path.is_file() and path.name.lower().endswith((".csv", ".csv.gz"))
    if is_csv:
        return next(read_rows(path), (0, list[str]()))[1]
    return []


def _is_tidy(names: Sequence[str]) -> bool:
    return {"format", "score"} <= {name.strip().lower() for name in names}


def _is_wide(names: Sequence[str]) -> bool:
    for name in names:
        if name.startswith("<no_") or name.rpartition("@")[2] in _SUFFIXES:
            return True
    return False


def read_format_responses(
    paths: Sequence[StrPath],
    *,
    bank: str | None = None,
    families: StrPath | None = None,
    note: Tell = lambda _: None,
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
    settings = ReadSettings("subjects-by-items", filter=bank, note=note)
    with reading("a file", ResponsesError):
        parts = [_read(Path(path), settings) for path in paths]
        responses = _merge(parts, ", ".join(map(str, paths)), note)
        if families is None:
            return responses
        return with_families(responses, Path(families))


def _read(path: Path, settings: ReadSettings) -> Responses:
    """Read one source, with items named as ``ITEM@FORMAT``."""
    if not path.exists():
        raise ResponsesError(f"{path} does not exist; check the path")
    if path.is_dir() or is_record(path):
        return read_runs(path, settings, column=_run_column)
    names = _header(path)
    if _is_tidy(names):
        return _read_tidy(path, names, settings)
    if _is_wide(names):
        matrix = read_matrix(path, settings)
        return replace(matrix, items=tuple(_with_format(name, path) for name in matrix.items))
    raise ResponsesError(
        f"{path}: found {','.join(names)!r:.80}, expected a CSV with the columns subject, item, format and score, a "
        "matrix with columns such as <no_image>17, or run records"
    )


def _run_column(administration: Administration) -> str:
    """Return item and format of an administration.  Runs add ``@FORMAT`` to an item in other than its first format."""
    return f"{administration.item.removesuffix(f'@{administration.format}')}@{administration.format}"


def _read_tidy(path: Path, names: Sequence[str], settings: ReadSettings) -> Responses:
    """Read a table with one row per response."""
    columns = {}
    for field, words in _COLUMNS.items():
        columns[field] = [name for name in names if name.strip().lower() in words]
    faults = (
        f"{len(named)} columns for the {field}, expected one, named {' or '.join(_COLUMNS[field])}"
        for field, named in columns.items()
        if len(named) != 1
    )
    check_faults(faults, f"{path}, line 1", ResponsesError)
    subject, item, form, score = (named[0] for named in columns.values())
    mapping = ResponseMapping(subject=subject, item=f"{{{item}}}@{{{form}}}", score=f"{as_path(score)} || 'NA'")
    notes: list[str] = []
    responses = read_mapped(path, replace(settings, mapping=mapping, note=notes.append))
    repeats = (
        f"{note}; keep one answer of each subject to each item in each format" for note in notes if "repeat" in note
    )
    check_faults(repeats, error=ResponsesError)
    return responses


def _with_format(name: str, path: Path) -> str:
    """Return the name of a matrix column with its format after an at sign."""
    if name.rpartition("@")[2] in _SUFFIXES:
        return name
    for prefix, form in _PREFIXES.items():
        if name.startswith(prefix):
            return f"{name.removeprefix(prefix)}@{form}"
    if name.startswith("<no_"):
        raise ResponsesError(f"{path}, line 1: column {name!r:.80}: known beginnings are {', '.join(_PREFIXES)}")
    return f"{name}@{_SUFFIXES[0]}"


def _merge(parts: Sequence[Responses], source: str, note: Tell) -> FormatResponses:
    """Merge the responses of all sources, with items and formats as separate axes."""
    families = {name: family for part in parts for name, family in zip(part.subjects, part.families, strict=True)}
    owners: dict[str, Responses] = {}
    for part in parts:
        if absent := len(families) - len(part.subjects):
            note(f"{part.source}: no answers of {absent} of the {len(families)} subjects")
        for name in part.items:
            item = name.rpartition("@")[0]
            if (owner := owners.setdefault(item, part)) is not part:
                raise ResponsesError(
                    f"{part.source}: the item {item!r} is in {owner.source} already; give the items of one of them "
                    "other names"
                )
    depths, modalities = _modalities({name.rpartition("@")[2] for part in parts for name in part.items}, source)
    rows, columns = ({name: n for n, name in enumerate(names)} for names in (families, owners))
    scores = np.full((len(rows), len(columns), len(modalities.formats)), np.nan)
    for part in parts:
        pairs = (name.rpartition("@") for name in part.items)
        columns_and_depths = [(columns[item], depths[form]) for item, _, form in pairs]
        part_rows = [rows[name] for name in part.subjects]
        scores[np.array(part_rows)[:, None], *np.array(columns_and_depths).T] = part.scores
    return FormatResponses(tuple(rows), tuple(columns), modalities, scores, tuple(families.values()), source)


def _modalities(forms: set[str], source: str) -> tuple[dict[str, int], Modalities]:
    """Return the place of each format among the formats of the modalities, and the modalities of the fullest format."""
    fullest = max(sorted(forms), key=lambda form: (form != "none", form.count("+")))
    names = tuple(fullest.split("+"))
    check_faults(_format_faults(forms, fullest), source, ResponsesError)
    try:
        every = Modalities(names).formats
        whole = {form: "+".join(name for name in names if name in form.split("+")) or "none" for form in forms}
        modalities = Modalities(names, tuple(form for form in every if form in whole.values()))
    except EstimationError as error:
        raise ResponsesError(f"{source}: {error}") from None
    return {form: modalities.formats.index(name) for form, name in whole.items()}, modalities


def _format_faults(forms: set[str], fullest: str) -> Iterator[str]:
    for form in sorted(forms - {"none"}):
        if not set(form.split("+")) <= set(fullest.split("+")):
            yield (
                f"the format {form!r:.80} is not made of the modalities of the fullest one, {fullest!r:.80}; write "
                "formats as image+text, image, text and none"
            )
    if len(forms) < 2 or fullest == "none":
        yield (
            f"the only format is {fullest!r:.80}, expected several; administer the items also without image, without "
            "text and with neither"
        )
