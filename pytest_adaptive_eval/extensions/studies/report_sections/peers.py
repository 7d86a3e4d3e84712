"""The report section of a peer assessment: scores by topic, judges, judgments, coded truth."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pytest_adaptive_eval.extensions.studies.report_sections.members import members_table
from pytest_adaptive_eval.models.base import SubjectIdentity
from pytest_adaptive_eval.records.run_record import EvaluationRecord
from pytest_adaptive_eval.reports.figures import Figure
from pytest_adaptive_eval.reports.plots import Frame, path, signed_label, ticks_in
from pytest_adaptive_eval.reports.sections import ROWS, Section, Table, short
from pytest_adaptive_eval.reports.words import number_or_dash
from pytest_adaptive_eval.text import number

#: Models in the columns of a table; more would be unreadable.
_COLUMNS = 8


_Numbers = list[float | None]


class _Topic(msgspec.Struct):
    tasks: int
    scores: _Numbers = []
    errors: _Numbers = []


class _Judgments(msgspec.Struct):
    mean: list[_Numbers] = []


class _Judge(msgspec.Struct):
    scale: float | None = None
    bias: float | None = None
    noise: float | None = None
    self_excess: float | None = None
    flags: list[str] = []


class _Agreement(msgspec.Struct):
    spearman: float | None = None
    kendall: float | None = None


class _Truth(msgspec.Struct):
    evaluation: str
    accuracies: dict[str, float]
    scores: _Agreement
    judges: list[_Agreement]


class PanelAccount(msgspec.Struct):
    """Account of a panel, see `extensions.studies.peers.result.Assessment.to_json`, with the agreement with truth."""

    models: list[SubjectIdentity]
    scores: _Numbers = []
    topics: dict[str, _Topic] = {}
    judgments: _Judgments = msgspec.field(default_factory=_Judgments)
    judges: list[_Judge] = []
    weights: _Numbers = []
    changes: _Numbers = []
    truth: list[_Truth] = []


def _tables(study: EvaluationRecord, account: PanelAccount) -> list[Table]:
    names = _names(account)
    order = _order(account, names)
    return [
        _topics(account, names, order, study.subject.name),
        _judges(account, names, order),
        _judgments(account, names, order),
        *_truth(account, names),
        members_table(study),
    ]


def _judgments(account: PanelAccount, names: Sequence[str], order: Sequence[int]) -> Table:
    means = account.judgments.mean
    columns = order[:_COLUMNS]
    rows = []
    for rank, i in enumerate(order[:ROWS], 1):
        if i < len(means):
            cells = [number_or_dash(_at(means[i], j), 1) for j in columns]
            rows.append((f"{rank} {short(names[i])}", *cells))
    heads = ["judge"]
    for rank, j in enumerate(columns, 1):
        heads.append(f"{rank} {short(names[j], 20)}")
    note = "Mean judgments from 1 to 5 of the first contestants. What a model gave itself does not count in mode "
    return Table("Who judged whom", heads, rows, f"{note}reliability.")


def _figures(key: str, account: PanelAccount) -> list[Figure]:
    """Return the drawing of the weights' convergence; none without a change."""
    changes = [change or 0.0 for change in account.changes]
    if not any(changes):
        return []
    frame = Frame((0.5, len(changes) + 0.5), (0.0, max(changes)))
    points = []
    for n, change in enumerate(changes, 1):
        points.append((frame.x(n), frame.y(change)))
    parts = [frame.above("L1 norm"), *frame.grid(ticks_in((0.0, max(changes))), signed_label), path(points, "line")]
    every = max(1, len(changes) // 10)
    labels = [(frame.x(n), str(n)) for n in range(1, len(changes) + 1, every)]
    parts += frame.below(labels, "round")
    description = f"{number(changes[0])} in the first round, {number(changes[-1])} in the last."
    picture = frame.picture(f"{key}w", "Change of the judges' weights by round", description, parts)
    caption = "Sum of the absolute changes of the judges' weights for votes, by round."
    return [Figure("Change of the judges' weights", caption, picture)]


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
        cells = []
        for i in columns:
            cell = number_or_dash(_at(result.scores, i), 2)
            error = _at(result.errors, i)
            if error is not None:
                cell += f" ± {number(error, 2)}"
            cells.append(cell)
        rows.append((short(topic, 60), str(result.tasks), *cells))
    omitted = len(names) - len(columns)
    note = "With standard errors, where the mode has them."
    if omitted:
        note += f" {omitted} more models are in the record."
    models = [short(names[i], 20) for i in columns]
    return Table("Score by topic", ("topic", "tasks", *models), rows, note)


def _judges(account: PanelAccount, names: Sequence[str], order: Sequence[int]) -> Table:
    judges = account.judges
    rows = []
    for i in order[:ROWS]:
        if i < len(judges):
            judge = judges[i]
        else:
            judge = _Judge()
        weight = number_or_dash(_at(account.weights, i))
        traits = [number_or_dash(value, 2) for value in (judge.scale, judge.bias, judge.noise, judge.self_excess)]
        flags = ", ".join(judge.flags) or "-"
        rows.append((short(names[i]), weight, *traits, short(flags)))
    heads = ("judge", "weight", "scale", "bias", "noise", "more to itself", "flags")
    note = (
        "Weight is the judge's share in the scores, by the rule of the panel's mode. Scale is how far its judgments "
        "move when the panel's move by a point: 0 for a judge that gives all answers the same."
    )
    return Table("Judges", heads, rows, note)


def _truth(account: PanelAccount, names: Sequence[str]) -> list[Table]:
    tables = []
    for truth in account.truth:
        rows = [("the panel", *_agreement(truth.scores), "")]
        for i, name in enumerate(names):
            if i < len(truth.judges):
                judge = truth.judges[i]
            else:
                judge = _Agreement()
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
    if index < len(values):
        return values[index]
    return None
