"""Read responses: choose the reader of a format, check the settings and add the families."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from pytest_adaptive_eval.banks.reader import is_bank
from pytest_adaptive_eval.banks.responses.base import ReadSettings, ResponseReader
from pytest_adaptive_eval.banks.responses.files import files_of, with_families
from pytest_adaptive_eval.banks.responses.readers.mapped import propose
from pytest_adaptive_eval.banks.responses.readers.matrix import ORIENTATIONS
from pytest_adaptive_eval.banks.rows import head, json_lines
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.responses import Responses
from pytest_adaptive_eval.mappings import ResponseMapping
from pytest_adaptive_eval.registry import registered

#: Readers by the name of their format.
FORMATS: Mapping[str, ResponseReader] = registered(
    "pytest_adaptive_eval.banks.responses.readers", "adaptive_eval.response_readers", ResponseReader
)

_PICKLES = {".pkl", ".pickle", ".pt", ".pth", ".joblib"}
_TABLES = {".feather", ".arrow", ".npy", ".npz", ".xls", ".ods"}

_CSV = "write a CSV with the columns subject, item and score"
#: Contents of JSON lines that no reader reads: keys of which one has to be present besides ``id``, and a description.
_OTHER_LINES = (
    ({"prompt", "messages", "grader"}, "looks like the items of a bank, which are questions without responses"),
    ({"text", "score", "status"}, "looks like the answers of one subject for replaying; a matrix in CSV holds several"),
)


def read_responses(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    orientation: str | None = None,
    metric: str | None = None,
    filter: str | None = None,
    families: str | os.PathLike[str] | None = None,
    mapping: ResponseMapping | None = None,
    items: Mapping[str, Item] | None = None,
    texts: bool = False,
    note: Callable[[str], object] = lambda _: None,
) -> Responses:
    """Read what models answered, from a file or a folder of an evaluation tool.

    Nothing in it is run, pickles are refused, and sizes are bounded. Items that all subjects had right or wrong are
    kept, and one subject is enough.

    Args:
        format: One of `FORMATS`; recognised from name and content when omitted.
        orientation: Content of rows and columns, for a CSV whose first header cell does not name it.
        metric: lm-eval: the metric; inspect: the scorer. Needed when there are several.
        filter: lm-eval: the filter; vlmevalkit: the data set; runs: the bank. Needed when there are several.
        families: A CSV ``subject,family``: training runs or model families.
        mapping: Expressions for the fields of a response, for rows of any other tool.
        items: One's own items by id in the log, which grade answers without a score; with a mapping.
        texts: Whether all answers are kept as texts in `Responses.replies`, and not a few of each item.

    Returns:
        A missing score is NaN; an error is never a wrong answer.

    Raises:
        ResponsesError: Unreadable or malformed responses; the message names file, line or item, and the fix.
    """
    source = Path(path)
    if format is not None and format not in FORMATS:
        raise ResponsesError(f"format {format!r} is not known; use {', '.join(FORMATS)}")
    if orientation is not None and orientation not in ORIENTATIONS:
        raise ResponsesError(f"orientation {orientation!r} is not known; use {' or '.join(ORIENTATIONS)}")
    try:
        if not source.exists():
            raise ResponsesError(f"{source} does not exist; check the path")
        reader = FORMATS[format if format else "mapping"] if format or mapping else _recognise(source)
        _check_settings(
            source, reader, {"orientation": orientation, "metric": metric, "filter": filter, "mapping": mapping}
        )
        responses = reader.read(source, ReadSettings(orientation, metric, filter, note, mapping, items, texts))
        return with_families(responses, Path(families)) if families is not None else responses
    except OSError as error:
        raise ResponsesError(
            f"{error.filename or source}: cannot be read: {error.strerror or error}; check the path and the rights"
        ) from error


def _check_settings(source: Path, reader: ResponseReader, settings: Mapping[str, object]) -> None:
    """Refuse settings that the format does not use, and a folder for a format that is read from one file."""
    for setting, value in settings.items():
        if value is not None and setting not in reader.settings:
            takes = " and ".join(reader.settings) or "no such setting"
            text = value.options if isinstance(value, ResponseMapping) else f"{setting} {value!r}"
            raise ResponsesError(f"{source} is read as {reader.name}, which takes {takes}; leave {text} out")
    if source.is_dir() and not reader.folders:
        raise ResponsesError(f"{source} is a folder, and {reader.name} is read from one file; name the file")


def _recognise(path: Path) -> ResponseReader:
    """Return the least general reader that recognises a file, or any file in a folder."""
    if path.is_dir() and is_bank(path):
        raise ResponsesError(f"{path} is a bank, which holds questions and parameters; give the responses to it")
    files, readers = [path], list(FORMATS.values())
    if path.is_dir():
        files, readers = files_of(path), [reader for reader in readers if reader.folders]
    else:
        _refuse_binary(path)
    least: dict[int, list[ResponseReader]] = {}
    for reader in readers:
        if any(map(reader.recognises, files)):
            least.setdefault(reader.generality, []).append(reader)
    if not least:
        raise _unsupported(path, files)
    matching = least[min(least)]
    if len(matching) > 1:
        names = " and ".join(reader.name for reader in matching)
        raise ResponsesError(f"{path} holds files of {names}; give format one of them, or a folder of one")
    return matching[0]


def _refuse_binary(path: Path) -> None:
    """Refuse pickles and binary tables."""
    suffix = _suffix(path)
    if suffix in _PICKLES:
        raise ResponsesError(
            f"{path} is a pickle, which can run any code when opened, so it is never opened. Give the table stored "
            "with it (.xlsx, .csv), or write it as CSV"
        )
    if suffix in _TABLES:
        raise ResponsesError(f"{path}: {suffix} is not read; write it as CSV with ids in the first row and column")


def _suffix(path: Path) -> str:
    return Path(path.name.removesuffix(".gz")).suffix.lower()


def _unsupported(path: Path, files: list[Path]) -> ResponsesError:
    """Return the error for files of no format, with what they hold."""
    # sums by task, as lm-evaluation-harness writes them beside its samples
    sums = re.compile(r'\s*\{\s*"results":\s*\{\s*"[^"]*":\s*\{\s*"')
    if summed := next((file for file in files if _suffix(file) == ".json" and sums.match(head(file))), None):
        return ResponsesError(
            f"{summed} looks like summed results; calibration needs the answer to each item: run lm-evaluation-harness "
            "with --log_samples and give the folder of samples_*.jsonl"
        )
    expected = ", ".join(reader.content for reader in FORMATS.values())
    if path.is_dir():
        counts = Counter(file.suffix or "no suffix" for file in files).most_common(5)
        holds = ", ".join(f"{count} {suffix}" for suffix, count in counts) or "nothing"
        return ResponsesError(f"{path} holds {holds}; expected {expected}; rows of a table are given by their own file")
    proposal = propose(path)
    return ResponsesError(
        f"{path}{_contents(path)}; expected {expected}; or {_CSV}{'. ' if proposal else ''}{proposal}"
    )


def _contents(path: Path) -> str:
    """Return what a file of no format holds, by the keys of the first line."""
    if _suffix(path) != ".jsonl":
        return ": neither its name nor its beginning says a format"
    _, first = next(json_lines(path), ("", {}))
    for other_keys, description in _OTHER_LINES:
        if "id" in first and first.keys() & other_keys:
            return f" {description}"
    return f" has objects with the keys {', '.join(sorted(first)[:6])}" if first else " holds no objects"
