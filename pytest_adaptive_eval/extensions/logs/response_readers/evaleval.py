"""Samples of Every Eval Ever, ``UUID_samples.jsonl``: from this package's exports, and from those of other tools."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_adaptive_eval.banks.responses.base import ReadSettings, ResponseReader
from pytest_adaptive_eval.banks.responses.files import Collected, files_of, named, score
from pytest_adaptive_eval.banks.responses.questions import as_question
from pytest_adaptive_eval.banks.rows import first_keys, json_lines
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.items.responses import Responses


def _is_samples(path: Path) -> bool:
    return {"evaluation_id", "model_id"} <= first_keys(path)


def read_every_eval_ever(path: Path, settings: ReadSettings) -> Responses:
    """Read a file of samples, or a folder of them.

    The subject is ``model_id``. An item's id is ``sample_id``, with the evaluation's name before it where the samples
    are of several evaluations.
    """
    files = [file for file in files_of(path) if _is_samples(file)] if path.is_dir() else [path]
    collected = Collected(str(path))
    evaluations = {str(data.get("evaluation_name")) for file in files for _, data in json_lines(file)}
    for file in files:
        for where, data in json_lines(file):
            verdict = data.get("evaluation")
            if not isinstance(verdict, dict):
                raise ResponsesError(f"{where}: evaluation is {verdict!r:.80}, expected an object with score")
            item = named(data.get("sample_id"), "sample_id", where)
            if len(evaluations) > 1:
                item = f"{data.get('evaluation_name')}:{item}"
            number = score(verdict.get("score", verdict.get("is_correct")), f"{where}, evaluation.score")
            collected.add(named(data.get("model_id"), "model_id", where), item, number)
            asked, output = (each if isinstance(each, Mapping) else {} for each in map(data.get, ("input", "output")))
            fields = {"question": asked.get("raw"), "target": asked.get("reference"), "choices": asked.get("choices")}
            if (question := as_question(fields, file)) is not None:
                collected.ask(item, question, where)
            raw = output.get("raw")
            collected.reply(item, raw[0] if isinstance(raw, list) and raw else raw, number)
    settings.note(f"{path.name}: Every Eval Ever has no answers without a score; missing ones cannot be told")
    return collected.responses()


REGISTERED = (
    ResponseReader("every-eval-ever", "_samples.jsonl of Every Eval Ever", _is_samples, read_every_eval_ever),
)
