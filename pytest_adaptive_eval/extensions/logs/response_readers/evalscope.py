"""Reviews of evalscope: ``reviews/MODEL/DATASET_SUBSET.jsonl``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.responses.base import ReadSettings, ResponseReader
from pytest_adaptive_eval.banks.responses.files import Collected, choose, files_of, named, score
from pytest_adaptive_eval.banks.responses.questions import as_question
from pytest_adaptive_eval.banks.rows import first_keys, json_lines
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.items.responses import Responses


def _is_reviews(path: Path) -> bool:
    return {"index", "sample_score"} <= first_keys(path)


def read_evalscope(path: Path, settings: ReadSettings) -> Responses:
    """Read a file of reviews, a run's folder, or a folder of runs.

    The subject is the folder of the file, which has the model's name. An item's id is ``DATASET_SUBSET:INDEX``. Samples
    of one group are repetitions, which count as their mean. The metric is the tool's main one, where it names one.
    """
    files = [file for file in files_of(path) if _is_reviews(file)] if path.is_dir() else [path]
    if not files:
        raise ResponsesError(f"{path}: no reviews; expected reviews/MODEL/DATASET_SUBSET.jsonl")
    collected = Collected(str(path))
    for file in files:
        _read_file(collected, file, settings)
    collected.check_questions("give runs on one version of the data set, with the same limit and seed")
    return collected.responses()


def _read_file(collected: Collected, file: Path, settings: ReadSettings) -> None:
    data_set, subject = file.name.removesuffix(".gz").removesuffix(".jsonl"), file.absolute().parent.name
    reviews = [(where, *_review(where, data)) for where, data in json_lines(file)]
    metrics = {name for _, _, values, _ in reviews for name in values}
    if not metrics:
        raise ResponsesError(f"{file}: no review has a score; run the evaluation again")
    mains = {main for _, _, _, main in reviews if main in metrics}
    metric = settings.metric or (mains.pop() if len(mains) == 1 else None)
    metric = choose("metric", metrics, metric, f"{file}, metrics")
    for where, review, values, _ in reviews:
        about = review["sample_score"]
        item = f"{data_set}:{named(about.get('group_id', review.get('index')), 'index', where)}"
        number = score(values.get(metric), f"{where}, metric {metric!r}")
        collected.add(subject, item, number)
        messages = review.get("messages")
        texts = [m for m in messages if isinstance(m, Mapping)] if isinstance(messages, list) else []
        chat = [{"role": m.get("role"), "content": m["content"]} for m in texts if isinstance(m.get("content"), str)]
        question_text = chat if isinstance(messages, list) else None
        fields = {"question": question_text, "target": review.get("target") or None}
        if (question := as_question(fields, file)) is not None:
            collected.ask(item, question, where)
        collected.reply(item, about["score"].get("prediction"), number)


def _review(where: str, data: dict[str, Any]) -> tuple[dict[str, Any], Mapping[str, Any], Any]:
    """Return a review, its scores by metric, and the name of the main one."""
    about = data.get("sample_score")
    scored = about.get("score") if isinstance(about, dict) else None
    values = scored.get("value") if isinstance(scored, dict) else None
    if not isinstance(scored, dict) or not isinstance(values, dict):
        raise ResponsesError(f"{where}: sample_score is {about!r:.80}, expected an object with score.value by metric")
    return data, values, scored.get("main_score_name")


REGISTERED = (
    ResponseReader(
        "evalscope", "reviews of evalscope", _is_reviews, read_evalscope, {"metric": "the metric, where none is main"}
    ),
)
