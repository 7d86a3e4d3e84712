"""The report section of a peer assessment: scores by topic, judgments, judges, convergence, coded truth."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pytest_adaptive_eval.extensions.studies.peers.result import Attempt
from pytest_adaptive_eval.extensions.studies.report_sections.members import members_table
from pytest_adaptive_eval.records.parts import SubjectRecord
from pytest_adaptive_eval.records.run_record import EvaluationRecord
from pytest_adaptive_eval.reports.figures import Figure
from pytest_adaptive_eval.reports.plots import heatmap, series_plot
from pytest_adaptive_eval.reports.sections import ROWS, Section, Table, short
from pytest_adaptive_eval.reports.words import number_or_dash
from pytest_adaptive_eval.text import number

#: Columns of the table by topic, and models of a heatmap; more would be unreadable.
_COLUMNS, _MOST = 8, 33
#: Characters of a task and of an answer.
_TEXT = 240


_Numbers = list[float | None]


class _Topic(msgspec.Struct):
    tasks: int
    scores: _Numbers = []
    errors: _Numbers = []


class _Judgments(msgspec.Struct):
    mean: list[_Numbers] = []


class _Judge(msgspec.Struct):
    weight: float | None = None
    scale: float | None = None
    bias: float | None = None
    noise: float | None = None
    self_excess: float | None = None
    flags: list[str] = []


class _Round(msgspec.Struct):
    attempts: list[Attempt] = []
    answers: list[str | None] = []
    judgments: list[_Numbers] = []


class _Agreement(msgspec.Struct):
    spearman: float | None = None
    kendall: float | None = None


class _Truth(msgspec.Struct):
    evaluation: str
    accuracies: dict[str, float]
    scores: _Agreement
    judges: list[_Agreement]


class _Paper(msgspec.Struct):
    weights: _Numbers = []


class PanelAccount(msgspec.Struct):
    """Account of a panel, see `extensions.studies.peers.result.Assessment.to_json`, with the agreement with truth."""

    models: list[SubjectRecord]
    scores: _Numbers = []
    mode: str = ""
    topics: dict[str, _Topic] = {}
    judgments: _Judgments = msgspec.field(default_factory=_Judgments)
    judges: list[_Judge] = []
    weights: _Numbers = []
    paper: _Paper = msgspec.field(default_factory=_Paper)
    changes: _Numbers = []
    rounds: list[_Round] = []
    truth: list[_Truth] = []


def _tables(study: EvaluationRecord, account: PanelAccount) -> list[Table]:
    names = _names(account)
    order = _order(account, names)
    return [
        _topics(account, names, order, study.subject.name),
        _judges(account, names, order),
        *_truth(account, names),
        _tasks(account, names),
        _answers(account, names),
        members_table(study),
    ]


def _figures(key: str, account: PanelAccount) -> list[Figure]:
    figures = []
    names = _names(account)
    means = account.judgments.mean
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
    changes = [value for value in account.changes if value is not None]
    if len(changes) > 1:
        caption = (
            "How much the weights of the judges changed in each round, as the sum over all of them. A round "
            "without a task changes nothing, and the first rounds weigh all alike."
        )
        picture = series_plot(changes, "change of the weights", "round", f"{key}v")
        figures.append(Figure("Convergence", caption, picture))
    return figures


SECTION = Section(PanelAccount, _tables, _figures)


def _names(account: PanelAccount) -> list[str]:
    return [model.name or "unnamed" for model in account.models]


def _order(account: PanelAccount, names: Sequence[str]) -> list[int]:
    """Return the indices of the models, the highest score first."""
    by_model = [_at(account.scores, i) for i in range(len(names))]
    return sorted(range(len(names)), key=lambda i: (by_model[i] is None, -(by_model[i] or 0.0)))


def _topics(account: PanelAccount, names: Sequence[str], order: Sequence[int], candidate: str) -> Table:
    columns = sorted(order, key=lambda i: names[i] != candidate)[:_COLUMNS]
    rows = []
    for topic, result in list(account.topics.items())[:ROWS]:
        cells = [
            number_or_dash(_at(result.scores, i), 2)
            + ("" if (error := _at(result.errors, i)) is None else f" ± {number(error, 2)}")
            for i in columns
        ]
        rows.append((short(topic, 60), str(result.tasks), *cells))
    omitted = len(names) - len(columns)
    note = "With standard errors, where the mode has them."
    note += f" {omitted} more models are in the record." if omitted else ""
    return Table("Score by topic", ("topic", "tasks", *(short(names[i], 20) for i in columns)), rows, note)


def _judges(account: PanelAccount, names: Sequence[str], order: Sequence[int]) -> Table:
    judges = account.judges
    # a record without weights has those of both rules
    weights = account.weights or (
        account.paper.weights if account.mode == "paper" else [judge.weight for judge in judges]
    )
    rows = []
    for i in (i for i in order[:ROWS] if i < max(len(judges), len(weights))):
        judge = judges[i] if i < len(judges) else _Judge()
        traits = (judge.scale, judge.bias, judge.noise, judge.self_excess)
        numbers = [number_or_dash(_at(weights, i)), *(number_or_dash(value, 2) for value in traits)]
        rows.append((short(names[i]), *numbers, short(", ".join(judge.flags) or "-")))
    heads = ("judge", "weight", "scale", "bias", "noise", "more to itself", "flags")
    note = (
        "Weight is the judge's share in the scores, by the rule of the panel's mode; scale its points for each of the "
        "panel's, 0 where it tells nothing apart."
    )
    return Table("Judges", heads, rows, note)


def _tasks(account: PanelAccount, names: Sequence[str]) -> Table:
    rows = []
    for n, cycle in enumerate(account.rounds, 1):
        for attempt in cycle.attempts:
            counts = [account.mode == "paper" or i != attempt.generator for i in range(len(attempt.votes))]
            votes = [vote for vote, one in zip(attempt.votes, counts, strict=True) if one and vote is not None]
            mean = number_or_dash(sum(votes) / len(votes) if votes else None, 1)
            outcome = "accepted" if attempt.accepted else attempt.problem or "rejected"
            task = short(attempt.task or "-", _TEXT, keep_end=False)
            rows.append((f"{n}", _name(names, attempt.generator), short(attempt.topic), mean, short(outcome), task))
    heads = ("round", "set by", "topic", "mean vote", "outcome", "task")
    note = "Without the vote of the model that set the task. " * (account.mode != "paper")
    note += "Acceptance depends on the mean and the median of the votes by the judges' weights."
    note += f" The first {ROWS} attempts; all are in the record." * (len(rows) > ROWS)
    return Table("Tasks", heads, rows[:ROWS], note)


def _answers(account: PanelAccount, names: Sequence[str]) -> Table:
    rows = []
    for n, cycle in enumerate(account.rounds, 1):
        for j, answer in enumerate(cycle.answers):
            marks = [mark for i, row in enumerate(cycle.judgments) if i != j and (mark := _at(row, j)) is not None]
            mean = number_or_dash(sum(marks) / len(marks) if marks else None, 1)
            text = "-" if answer is None else short(answer, _TEXT, keep_end=False)
            rows.append((f"{n}", _name(names, j), mean, text))
    heads = ("round", "model", "mean judgment by others", "answer")
    note = f"The first {ROWS} answers; all are in the record." if len(rows) > ROWS else ""
    return Table("Answers", heads, rows[:ROWS], note)


def _name(names: Sequence[str], index: int) -> str:
    return short(names[index]) if 0 <= index < len(names) else "-"


def _truth(account: PanelAccount, names: Sequence[str]) -> list[Table]:
    tables = []
    for truth in account.truth:
        rows = [("the panel", *_agreement(truth.scores), "")]
        for i, name in enumerate(names):
            judge = truth.judges[i] if i < len(truth.judges) else _Agreement()
            rows.append((short(name), *_agreement(judge), number_or_dash(truth.accuracies.get(name))))
        title = f"Agreement with coded truth: {short(truth.evaluation, 60)}"
        note = (
            f"Rank correlations of the scores, and of each judge's judgments of the others, with the accuracies of "
            f"{len(truth.accuracies)} models. So few say little."
        )
        tables.append(Table(title, ("judge", "Spearman", "Kendall", "its own accuracy"), rows[:ROWS], note))
    return tables


def _agreement(agreement: _Agreement) -> tuple[str, str]:
    return number_or_dash(agreement.spearman, 2), number_or_dash(agreement.kendall, 2)


def _at(values: Sequence[float | None], index: int) -> float | None:
    return values[index] if index < len(values) else None
