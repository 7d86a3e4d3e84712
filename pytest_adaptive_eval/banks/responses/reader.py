"""The one way in: which format it is, which settings it takes, and who reads it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType

from pytest_adaptive_eval.banks.reader import is_bank
from pytest_adaptive_eval.banks.responses.files import files_of, head, lines, load_json
from pytest_adaptive_eval.banks.responses.inspectlog import is_log, read_inspect
from pytest_adaptive_eval.banks.responses.lmeval import SAMPLES, read_lmeval
from pytest_adaptive_eval.banks.responses.matrix import ORIENTATIONS, read_matrix, with_families
from pytest_adaptive_eval.banks.responses.pyirt import read_pyirt
from pytest_adaptive_eval.banks.responses.runs import is_record, read_runs
from pytest_adaptive_eval.banks.responses.vlmevalkit import SUFFIXES, is_judged, read_vlmevalkit
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.items.responses import Responses

__all__ = ["FORMATS", "read_responses"]

#: Formats, and the settings that each takes.
FORMATS: MappingProxyType[str, tuple[str, ...]] = MappingProxyType(
    {
        "csv": ("orientation",),
        "py-irt": (),
        "lm-eval": ("metric", "filter"),
        "inspect": ("metric",),
        "vlmevalkit": ("filter",),
        "runs": ("filter",),
    }
)

_PICKLES = {".pkl", ".pickle", ".pt", ".pth", ".joblib"}
_TABLES = {".parquet", ".feather", ".arrow", ".npy", ".npz", ".xls", ".ods"}


def read_responses(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    orientation: str | None = None,
    metric: str | None = None,
    filter: str | None = None,
    families: str | os.PathLike[str] | None = None,
    note: Callable[[str], object] = lambda _: None,
) -> Responses:
    """Read what models answered, from a file or a folder of an evaluation tool.

    Nothing in it is run, pickles are refused, and sizes are bounded.  Items that
    all subjects had right or wrong are kept, and one subject is enough.

    Parameters
    ----------
    path : path
    format : str, optional
        One of `FORMATS`; recognised from name and content when omitted.
    orientation : {'items-by-subjects', 'subjects-by-items'}, optional
        Content of rows and columns, for a CSV whose first header cell does not name it.
    metric : str, optional
        lm-eval: the metric; inspect: the scorer.  Needed when there are several.
    filter : str, optional
        lm-eval: the filter; vlmevalkit: the data set; runs: the bank.  Needed when
        there are several.
    families : path, optional
        A CSV ``subject,family``: training runs or model families.
    note : callable, optional
        Called with a sentence about each omission.

    Returns
    -------
    Responses
        A missing score is NaN; an error is never a wrong answer.

    Raises
    ------
    ResponsesError
        Unreadable or malformed responses; the message names file, line or item, and the fix.
    """
    where = Path(path)
    settings = {"orientation": orientation, "metric": metric, "filter": filter}
    if format is not None and format not in FORMATS:
        raise ResponsesError(f"format {format!r} is not known; use {', '.join(FORMATS)}")
    if orientation is not None and orientation not in ORIENTATIONS:
        raise ResponsesError(f"orientation {orientation!r} is not known; use {' or '.join(ORIENTATIONS)}")
    try:
        if not where.exists():
            raise ResponsesError(f"{where} does not exist; check the path")
        kind = format or _recognise(where)
        for name, value in settings.items():
            if value is not None and name not in FORMATS[kind]:
                takes = " and ".join(FORMATS[kind]) or "no such setting"
                raise ResponsesError(f"{where} is read as {kind}, which takes {takes}; leave {name} {value!r} out")
        if where.is_dir() and kind in ("csv", "py-irt"):
            raise ResponsesError(f"{where} is a folder, and {kind} is read from one file; name the file")
        responses = _read(kind, where, settings, note)
        return with_families(responses, Path(families)) if families is not None else responses
    except OSError as error:
        raise ResponsesError(
            f"{error.filename or where}: cannot be read: {error.strerror or error}; check the path and the rights"
        ) from error


def _read(kind: str, path: Path, settings: dict[str, str | None], note: Callable[[str], object]) -> Responses:
    metric, chosen = settings["metric"], settings["filter"]
    match kind:
        case "csv":
            return read_matrix(path, settings["orientation"], note)
        case "py-irt":
            return read_pyirt(path)
        case "lm-eval":
            return read_lmeval(path, metric, chosen, note)
        case "inspect":
            return read_inspect(path, metric, note)
        case "vlmevalkit":
            return read_vlmevalkit(path, chosen, note)
        case _:
            return read_runs(path, chosen, note)


def _recognise(path: Path) -> str:
    """Return the format of a file or folder.

    The error for an unsupported file names the format that it resembles.
    """
    if path.is_dir():
        return _of_folder(path)
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if suffix in _PICKLES:
        raise ResponsesError(
            f"{path} is a pickle, which can run any code when opened, so it is never opened. Give the table stored "
            "with it (.xlsx, .csv), or write it as CSV"
        )
    if suffix in _TABLES:
        raise ResponsesError(f"{path}: {suffix} is not read; write it as CSV with ids in the first row and column")
    if suffix == ".eval" or is_log(path):
        return "inspect"
    if is_record(path):
        return "runs"
    if suffix == ".xlsx" or (suffix in SUFFIXES and path.suffix != ".gz" and is_judged(path)):
        return "vlmevalkit"
    if suffix == ".csv":
        return "csv"
    if suffix == ".jsonl":
        return _of_lines(path)
    if suffix == ".json" and '"results"' in head(path):
        raise ResponsesError(
            f"{path} looks like summed results; calibration needs the answer to each item: run lm-evaluation-harness "
            "with --log_samples and give the folder of samples_*.jsonl"
        )
    raise ResponsesError(f"{path}: neither its name nor its beginning says a format; give format: {', '.join(FORMATS)}")


def _of_lines(path: Path) -> str:
    """Return the format of a JSON lines file by the keys of its first line."""
    first = next((line for line in lines(path) if line.strip()), "null")
    data = load_json(first, f"{path}, line 1")
    keys = set(data) if isinstance(data, dict) else set()
    if {"subject_id", "responses"} <= keys:
        return "py-irt"
    if "doc_id" in keys or SAMPLES.fullmatch(path.name):
        return "lm-eval"
    looks = f"has objects with the keys {', '.join(sorted(keys)[:6])}" if keys else "holds no objects"
    if "id" in keys and keys & {"prompt", "messages", "grader"}:
        looks = "looks like the items of a bank, which are questions without responses"
    elif "id" in keys and keys & {"text", "score", "status"}:
        looks = "looks like the answers of one subject for replaying; a matrix in CSV holds several"
    elif "evaluation_id" in keys:
        looks = "looks like an Every Eval Ever export, which is not read"
    raise ResponsesError(
        f"{path} {looks}; expected py-irt lines with subject_id and responses, or samples of lm-evaluation-harness"
    )


def _of_folder(path: Path) -> str:
    if is_bank(path):
        raise ResponsesError(f"{path} is a bank, which holds questions and parameters; give the responses to it")
    files = files_of(path)
    kinds = {
        "lm-eval": any(SAMPLES.fullmatch(file.name) for file in files),
        "inspect": any(map(is_log, files)),
        "runs": any(map(is_record, files)),
    }
    if not any(kinds.values()):
        kinds["vlmevalkit"] = any(map(is_judged, files))
    matching = [kind for kind, there in kinds.items() if there]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise ResponsesError(
            f"{path} holds files of {' and '.join(matching)}; give format one of them, or a folder of one"
        )
    counts = Counter(file.suffix or "no suffix" for file in files).most_common(5)
    raise ResponsesError(
        f"{path} holds {', '.join(f'{n} {suffix}' for suffix, n in counts) or 'nothing'}, and no samples_*.jsonl, "
        ".eval log, judged table or run record; a CSV or py-irt file is given by its own path"
    )
