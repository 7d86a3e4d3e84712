"""What a page says of a peer assessment: scores by topic, who judged whom how, judges, convergence, coded truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_adaptive_eval.records.run_record import StudyRecord
from pytest_adaptive_eval.reports import plots
from pytest_adaptive_eval.reports.curves import real
from pytest_adaptive_eval.reports.figures import Figure
from pytest_adaptive_eval.reports.markup import Markup, tag
from pytest_adaptive_eval.reports.tables import ROWS, Table, mapping, short
from pytest_adaptive_eval.text import number

__all__ = ["panel_figures", "panel_tables"]

#: Columns of the table by topic, and models of a heatmap; more would not be read.
_COLUMNS, _MOST = 8, 33
#: Width of a drawing.
_WIDTH = 560.0


def panel_tables(study: StudyRecord) -> list[Table]:
    """Scores by topic, the judges, and how both agree with coded truth."""
    account = mapping(study.account)
    names = _names(account)
    order = _order(account, names)
    return [_topics(account, names, order, study.candidate), _judges(account, names, order), *_truth(account, names)]


def panel_figures(key: str, study: StudyRecord) -> list[Figure]:
    """Mean judgments, and convergence."""
    account = mapping(study.account)
    names = _names(account)
    order = _order(account, names)
    figures = []
    means = [_numbers(row) for row in _list(mapping(account.get("judgments")).get("mean"))]
    square = len(means) == len(names) and all(len(row) == len(names) for row in means)
    if 0 < len(names) <= _MOST and square and any(value is not None for row in means for value in row):
        cells = [[means[i][j] for j in order] for i in order]
        figures.append(
            Figure(
                "Who judged whom",
                "Mean judgment from 1 to 5: a row is a judge, a column the contestant of that number, both by their "
                "rank. What a model gave itself does not count in mode reliability.",
                _heatmap([f"{n} {short(names[i], 16)}" for n, i in enumerate(order, 1)], cells, f"{key}h"),
            )
        )
    changes = [value for value in _numbers(account.get("changes")) if value is not None]
    if len(changes) > 1:
        figures.append(
            Figure(
                "Convergence",
                "How much the weights of the judges changed in each round, as the sum over all of them. A round "
                "without a task changes nothing, and the first rounds weigh all alike.",
                plots.series_plot(changes, "change of the weights", "round", f"{key}v"),
            )
        )
    return figures


def _heatmap(names: Sequence[str], cells: Sequence[Sequence[float | None]], key: str) -> Markup:
    """A square of judgments from 1 to 5, whose columns are called by the rows' numbers.

    Parameters
    ----------
    names : sequence of str
        Of the rows.
    cells : sequence of sequences of (float or None)
    key : str
        Prefix of the picture's ids.
    """
    n, left, top = len(names), 150.0, 24.0
    side = min((_WIDTH - left) / n, 44.0)
    parts = []
    for i, (name, row) in enumerate(zip(names, cells, strict=True)):
        y = top + i * side
        parts.append(tag("text", name, class_="end", x=left - 8, y=y + side / 2 + 4))
        parts.append(tag("text", str(i + 1), class_="mid", x=left + (i + 0.5) * side, y=top - 8))
        for j, value in enumerate(row):
            x = left + j * side
            shade = 0.06 + 0.84 * min(max((value - 1.0) / 4.0, 0.0), 1.0) if value is not None else 0.0
            inside = {"x": x + 1, "y": y + 1, "width": side - 2, "height": side - 2}
            parts.append(tag("rect", class_="heat", fill_opacity=f"{shade:.2f}", **inside))
            if side >= 26:
                shown = "–" if value is None else number(value, 1)
                class_ = "mid on" if shade > 0.75 else "mid over"
                parts.append(tag("text", shown, class_=class_, x=x + side / 2, y=y + side / 2 + 4))
    rows = [[value for value in row if value is not None] for row in cells]
    told = "; ".join(
        f"{name} gives {number(sum(row) / len(row), 1)} on average"
        for name, row in zip(names, rows, strict=True)
        if row
    )
    return tag(
        "svg",
        tag("title", "Mean judgment by judge and contestant", id=f"{key}-t"),
        tag("desc", told, id=f"{key}-d"),
        *parts,
        role="img",
        aria_labelledby=f"{key}-t {key}-d",
        viewBox=f"0 0 {_WIDTH:g} {top + n * side + 4:g}",
    )


def _names(account: Mapping[str, Any]) -> list[str]:
    return [str(mapping(one).get("name") or "unnamed") for one in _list(account.get("models"))]


def _order(account: Mapping[str, Any], names: Sequence[str]) -> list[int]:
    """Places of the models, the highest score first."""
    scores = _numbers(account.get("scores"))
    known = [scores[i] if i < len(scores) else None for i in range(len(names))]
    return sorted(range(len(names)), key=lambda i: (known[i] is None, -(known[i] or 0.0)))


def _topics(account: Mapping[str, Any], names: Sequence[str], order: Sequence[int], candidate: str) -> Table:
    shown = [i for i in order if names[i] == candidate] + [i for i in order if names[i] != candidate]
    shown = shown[:_COLUMNS]
    rows = []
    for topic, one in list(mapping(account.get("topics")).items())[:ROWS]:
        given = mapping(one)
        scores, errors = _numbers(given.get("scores")), _numbers(given.get("errors"))
        cells = []
        for i in shown:
            score = scores[i] if i < len(scores) else None
            error = errors[i] if i < len(errors) else None
            cells.append(_told(score) + (f" ± {number(error, 2)}" if error is not None else ""))
        rows.append((short(topic, 60), str(given.get("tasks")), *cells))
    left = len(names) - len(shown)
    note = "With standard errors, where the mode has them." + (
        f" {left} more models are in the record." if left else ""
    )
    return Table("Score by topic", ("topic", "tasks", *(short(names[i], 20) for i in shown)), rows, note)


def _judges(account: Mapping[str, Any], names: Sequence[str], order: Sequence[int]) -> Table:
    given = [mapping(one) for one in _list(account.get("judges"))]
    rows = []
    for i in (i for i in order[:ROWS] if i < len(given)):
        judge = given[i]
        numbers = [_told(real(judge.get(name))) for name in ("weight", "scale", "bias", "noise", "self_excess")]
        flags = ", ".join(str(flag) for flag in _list(judge.get("flags"))) or "-"
        rows.append((short(names[i]), *numbers, short(flags)))
    heads = ("judge", "weight", "scale", "bias", "noise", "more to itself", "flags")
    note = (
        "Weight is the judge's share in what is known; scale its points for each of the panel's, 0 where it tells "
        "nothing apart."
    )
    return Table("Judges", heads, rows, note)


def _truth(account: Mapping[str, Any], names: Sequence[str]) -> list[Table]:
    """Rank correlations with accuracies that code found."""
    tables = []
    for one in map(mapping, _list(account.get("truth"))):
        accuracies, judges = mapping(one.get("accuracies")), _list(one.get("judges"))
        rows = [("the panel", *_agreement(one.get("scores")), "")]
        for i, name in enumerate(names):
            accuracy = real(accuracies.get(name))
            own = _told(accuracy, 3) if accuracy is not None else "-"
            rows.append((short(name), *_agreement(judges[i] if i < len(judges) else None), own))
        title = f"Agreement with coded truth: {short(one.get('evaluation'), 60)}"
        note = (
            f"Rank correlations of the scores, and of each judge's judgments of the others, with the accuracies of "
            f"{len(accuracies)} models. So few say little."
        )
        tables.append(Table(title, ("judge", "Spearman", "Kendall", "its own accuracy"), rows[:ROWS], note))
    return tables


def _agreement(value: Any) -> tuple[str, str]:
    given = mapping(value)
    return _told(real(given.get("spearman"))), _told(real(given.get("kendall")))


def _told(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else number(value, digits)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _numbers(value: Any) -> list[float | None]:
    return [real(one) for one in _list(value)]
