"""The report section of a peer assessment: scores by topic, judgments, judges, convergence, coded truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_adaptive_eval.records.run_record import StudyRecord
from pytest_adaptive_eval.reports.figures import Figure
from pytest_adaptive_eval.reports.plots import heatmap, series_plot
from pytest_adaptive_eval.reports.studies import ROWS, StudySection, Table, short
from pytest_adaptive_eval.reports.words import as_list, as_mapping, number_or_dash, plottable
from pytest_adaptive_eval.text import number

#: Columns of the table by topic, and models of a heatmap; more would be unreadable.
_COLUMNS, _MOST = 8, 33
#: Characters of a task and of an answer.
_TEXT = 240


def _tables(study: StudyRecord) -> list[Table]:
    account = as_mapping(study.account)
    names = _names(account)
    order = _order(account, names)
    return [
        _topics(account, names, order, study.candidate),
        _judges(account, names, order),
        *_truth(account, names),
        _tasks(account, names),
        _answers(account, names),
    ]


def _figures(key: str, study: StudyRecord) -> list[Figure]:
    account = as_mapping(study.account)
    figures = []
    names = _names(account)
    means = [_numbers(row) for row in as_list(as_mapping(account.get("judgments")).get("mean"))]
    square = len(means) == len(names) and all(len(row) == len(names) for row in means)
    if 0 < len(names) <= _MOST and square and any(value is not None for row in means for value in row):
        order = _order(account, names)
        cells = [[means[i][j] for j in order] for i in order]
        caption = (
            "Mean judgment from 1 to 5: a row is a judge, a column the contestant of that number, both by their "
            "rank. What a model gave itself does not count in mode reliability."
        )
        labels = [f"{rank} {short(names[i], 16)}" for rank, i in enumerate(order, 1)]
        figures.append(Figure("Who judged whom", caption, heatmap(labels, cells, f"{key}h")))
    changes = [value for value in _numbers(account.get("changes")) if value is not None]
    if len(changes) > 1:
        caption = (
            "How much the weights of the judges changed in each round, as the sum over all of them. A round "
            "without a task changes nothing, and the first rounds weigh all alike."
        )
        picture = series_plot(changes, "change of the weights", "round", f"{key}v")
        figures.append(Figure("Convergence", caption, picture))
    return figures


REGISTERED = (StudySection("peers", _tables, _figures),)


def _names(account: Mapping[str, Any]) -> list[str]:
    return [str(as_mapping(model).get("name") or "unnamed") for model in as_list(account.get("models"))]


def _order(account: Mapping[str, Any], names: Sequence[str]) -> list[int]:
    """Return the indices of the models, the highest score first."""
    scores = _numbers(account.get("scores"))
    by_model = [_at(scores, i) for i in range(len(names))]
    return sorted(range(len(names)), key=lambda i: (by_model[i] is None, -(by_model[i] or 0.0)))


def _topics(account: Mapping[str, Any], names: Sequence[str], order: Sequence[int], candidate: str) -> Table:
    columns = sorted(order, key=lambda i: names[i] != candidate)[:_COLUMNS]
    rows = []
    for topic, entry in list(as_mapping(account.get("topics")).items())[:ROWS]:
        result = as_mapping(entry)
        scores, errors = _numbers(result.get("scores")), _numbers(result.get("errors"))
        cells = [
            number_or_dash(_at(scores, i), 2) + ("" if (error := _at(errors, i)) is None else f" ± {number(error, 2)}")
            for i in columns
        ]
        rows.append((short(topic, 60), str(result.get("tasks")), *cells))
    omitted = len(names) - len(columns)
    note = "With standard errors, where the mode has them."
    note += f" {omitted} more models are in the record." if omitted else ""
    return Table("Score by topic", ("topic", "tasks", *(short(names[i], 20) for i in columns)), rows, note)


def _judges(account: Mapping[str, Any], names: Sequence[str], order: Sequence[int]) -> Table:
    judges = [as_mapping(judge) for judge in as_list(account.get("judges"))]
    # a record without weights has those of both rules
    weights = _numbers(account.get("weights")) or (
        _numbers(as_mapping(account.get("paper")).get("weights"))
        if account.get("mode") == "paper"
        else [plottable(judge.get("weight")) for judge in judges]
    )
    rows = []
    for i in (i for i in order[:ROWS] if i < max(len(judges), len(weights))):
        judge = judges[i] if i < len(judges) else {}
        keys = ("scale", "bias", "noise", "self_excess")
        numbers = [number_or_dash(_at(weights, i)), *(number_or_dash(plottable(judge.get(key)), 2) for key in keys)]
        flags = ", ".join(str(flag) for flag in as_list(judge.get("flags"))) or "-"
        rows.append((short(names[i]), *numbers, short(flags)))
    heads = ("judge", "weight", "scale", "bias", "noise", "more to itself", "flags")
    note = (
        "Weight is the judge's share in the scores, by the rule of the panel's mode; scale its points for each of the "
        "panel's, 0 where it tells nothing apart."
    )
    return Table("Judges", heads, rows, note)


def _tasks(account: Mapping[str, Any], names: Sequence[str]) -> Table:
    rows = []
    for n, cycle in enumerate(map(as_mapping, as_list(account.get("rounds"))), 1):
        for attempt in map(as_mapping, as_list(cycle.get("attempts"))):
            votes = [vote for vote in _numbers(attempt.get("votes")) if vote is not None]
            mean = number_or_dash(sum(votes) / len(votes) if votes else None, 1)
            outcome = "accepted" if attempt.get("accepted") else str(attempt.get("problem") or "rejected")
            task = short(attempt.get("task") or "-", _TEXT, keep_end=False)
            generator = _name(names, attempt.get("generator"))
            rows.append((f"{n}", generator, short(attempt.get("topic")), mean, short(outcome), task))
    heads = ("round", "set by", "topic", "mean vote", "outcome", "task")
    note = f"The first {ROWS} attempts; all are in the record." if len(rows) > ROWS else ""
    return Table("Tasks", heads, rows[:ROWS], note)


def _answers(account: Mapping[str, Any], names: Sequence[str]) -> Table:
    rows = []
    for n, cycle in enumerate(map(as_mapping, as_list(account.get("rounds"))), 1):
        judgments = [_numbers(row) for row in as_list(cycle.get("judgments"))]
        for j, answer in enumerate(as_list(cycle.get("answers"))):
            marks = [mark for i, row in enumerate(judgments) if i != j and (mark := _at(row, j)) is not None]
            mean = number_or_dash(sum(marks) / len(marks) if marks else None, 1)
            text = "-" if answer is None else short(answer, _TEXT, keep_end=False)
            rows.append((f"{n}", _name(names, j), mean, text))
    heads = ("round", "model", "mean judgment by others", "answer")
    note = f"The first {ROWS} answers; all are in the record." if len(rows) > ROWS else ""
    return Table("Answers", heads, rows[:ROWS], note)


def _name(names: Sequence[str], index: Any) -> str:
    return short(names[index]) if isinstance(index, int) and 0 <= index < len(names) else "-"


def _truth(account: Mapping[str, Any], names: Sequence[str]) -> list[Table]:
    tables = []
    for truth in map(as_mapping, as_list(account.get("truth"))):
        accuracies, judges = as_mapping(truth.get("accuracies")), as_list(truth.get("judges"))
        rows = [("the panel", *_agreement(truth.get("scores")), "")]
        for i, name in enumerate(names):
            accuracy = number_or_dash(plottable(accuracies.get(name)))
            rows.append((short(name), *_agreement(judges[i] if i < len(judges) else None), accuracy))
        title = f"Agreement with coded truth: {short(truth.get('evaluation'), 60)}"
        note = (
            f"Rank correlations of the scores, and of each judge's judgments of the others, with the accuracies of "
            f"{len(accuracies)} models. So few say little."
        )
        tables.append(Table(title, ("judge", "Spearman", "Kendall", "its own accuracy"), rows[:ROWS], note))
    return tables


def _agreement(value: Any) -> tuple[str, str]:
    spearman, kendall = (number_or_dash(plottable(as_mapping(value).get(key)), 2) for key in ("spearman", "kendall"))
    return spearman, kendall


def _numbers(value: Any) -> list[float | None]:
    return [plottable(entry) for entry in as_list(value)]


def _at(values: Sequence[float | None], index: int) -> float | None:
    return values[index] if index < len(values) else None
