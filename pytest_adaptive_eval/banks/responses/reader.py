"""Read responses: choose the reader of a format, check the settings and add the families."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_adaptive_eval.banks.reader import is_bank
from pytest_adaptive_eval.banks.responses.base import ReadSettings, ResponseReader
from pytest_adaptive_eval.banks.responses.files import files_of, with_families
from pytest_adaptive_eval.banks.responses.readers.mapped import propose
from pytest_adaptive_eval.banks.responses.readers.matrix import ORIENTATIONS
from pytest_adaptive_eval.banks.rows import head, refuse_other_form
from pytest_adaptive_eval.checks import check_faults
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.inputs import StrPath, reading
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.responses import Responses
from pytest_adaptive_eval.mappings import ResponseMapping
from pytest_adaptive_eval.registry import registered
from pytest_adaptive_eval.text import Tell

#: Readers by the name of their format.
FORMATS: Mapping[str, ResponseReader] = registered(
    "pytest_adaptive_eval.banks.responses.readers", "adaptive_eval.response_readers", ResponseReader
)
#: Begins of files that lack answers, with what they have and what to do.
_INCOMPLETE = {
    re.compile(r'\s*\{\s*"results":\s*\{\s*"[^"]*":\s*\{\s*"'): (
        "looks like summed results; calibration needs the answer to each item: run lm-evaluation-harness with "
        "--log_samples and give the folder of samples_*.jsonl"
    ),
    re.compile(r'\s*\{"accuracy": [\d.]+, "correct_count": \d+, "total_count": \d+'): (
        "looks like a score file of BFCL, which has the failed samples alone: write a CSV with the columns subject, "
        "item and score, in which each id of the result file has the score 1 unless the score file has it"
    ),
}


def read_responses(
    path: StrPath,
    *,
    format: str | None = None,
    orientation: str | None = None,
    metric: str | None = None,
    filter: str | None = None,
    families: StrPath | None = None,
    mapping: ResponseMapping | None = None,
    items: Mapping[str, Item] | None = None,
    texts: bool = False,
    note: Tell = lambda _: None,
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
    settings = ReadSettings(orientation, metric, filter, note, mapping, items, texts)
    check_faults(_faults(source, format, orientation), error=ResponsesError)
    with reading(source, ResponsesError):
        if format or mapping:
            reader = FORMATS[format or "mapping"]
        else:
            reader = _recognise(source)
        check_faults(_settings_faults(source, reader, settings), error=ResponsesError)
        responses = reader.read(source, settings)
        if families is not None:
            return with_families(responses, Path(families))
        return responses


def _faults(source: Path, format: str | None, orientation: str | None) -> Iterator[str]:
    for name, value, names in (("format", format, FORMATS), ("orientation", orientation, ORIENTATIONS)):
        if value is not None and value not in names:
            yield f"{name} {value!r} is not known; use {', '.join(names)}"
    if not source.exists():
        yield f"{source} does not exist; check the path"
    if is_bank(source):
        yield f"{source} is a bank, which holds questions and parameters; give the responses to it"


def _settings_faults(source: Path, reader: ResponseReader, settings: ReadSettings) -> Iterator[str]:
    """Yield settings that the format does not use, and a folder for a format that is read from one file."""
    for name in ("orientation", "metric", "filter", "mapping"):
        value = getattr(settings, name)
        if value is not None and name not in reader.settings:
            takes = " and ".join(reader.settings) or "no such setting"
            if isinstance(value, ResponseMapping):
                text = value.options
            else:
                text = f"{name} {value!r}"
            yield f"{source} is read as {reader.name}, which takes {takes}; leave {text} out"
    if source.is_dir() and not reader.folders:
        yield f"{source} is a folder, and {reader.name} is read from one file; name the file"


def _recognise(path: Path) -> ResponseReader:
    """Return the least general reader that recognises a file, or any file in a folder."""
    if path.is_dir():
        files = files_of(path)
    else:
        files = [path]
    readers = []
    for reader in FORMATS.values():
        if reader.folders or not path.is_dir():
            readers.append(reader)
    matching = []
    for reader in readers:
        if any(map(reader.recognises, files)):
            matching.append(reader)
    least = min((reader.generality for reader in matching), default=0)
    matching = [reader for reader in matching if reader.generality == least]
    if not matching:
        raise _unsupported(path, files)
    if len(matching) > 1:
        names = " and ".join(reader.name for reader in matching)
        raise ResponsesError(f"{path} holds files of {names}; give format one of them, or a folder of one")
    return matching[0]


def _unsupported(path: Path, files: list[Path]) -> ResponsesError:
    """Return the error for files of no format."""
    for file in files:
        for begin, problem in _INCOMPLETE.items():
            if file.suffix == ".json" and begin.match(head(file)):
                return ResponsesError(f"{file} {problem}")
    expected = ", ".join(reader.content for reader in FORMATS.values())
    problem = "neither its name nor its beginning says a format"
    proposal = ""
    if path.is_dir():
        counts = Counter(file.suffix or "no suffix" for file in files).most_common(5)
        holds = ", ".join(f"{count} {suffix}" for suffix, count in counts) or "nothing"
        problem = f"it holds {holds}"
        proposal = "; rows of a table are given by their own file"
    else:
        refuse_other_form(path, head(path))
        proposal = propose(path)
    return ResponsesError(
        f"{path}: {problem}; expected {expected}; or write a CSV with the columns subject, item and score{proposal}"
    )
