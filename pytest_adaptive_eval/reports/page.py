"""The report as one self-contained HTML page that loads, runs and sends nothing but its own content.

Every text that the template inserts is cleaned and escaped, and a policy in the page's head lets a browser run and
style by the two blocks of this package alone.
"""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.errors import UsageError
from pytest_adaptive_eval.gates.condition import registered_metric
from pytest_adaptive_eval.gates.verdict import Outcome, Verdict
from pytest_adaptive_eval.outputs import write_whole
from pytest_adaptive_eval.records.parts import Costs, InterviewerRecord, listed_kinds
from pytest_adaptive_eval.records.run_record import EvaluationRecord, GateRecord, RunRecord
from pytest_adaptive_eval.reports import plots, words
from pytest_adaptive_eval.reports.figures import (
    FEWEST,
    KIND_WORDS,
    PANELS,
    history_legend,
    history_panels,
    interview_figures,
)
from pytest_adaptive_eval.reports.markup import Markup, clean_html, unbroken
from pytest_adaptive_eval.reports.plots import Kind, minus, span_of
from pytest_adaptive_eval.reports.questions import QuestionList, question_lists, wrong_answers
from pytest_adaptive_eval.reports.sections import Table, interval_of, results_of
from pytest_adaptive_eval.reports.view import ReportView, views
from pytest_adaptive_eval.reports.words import plottable
from pytest_adaptive_eval.text import clean_terminal, counted

if TYPE_CHECKING:
    from pytest_adaptive_eval.items.bank import ItemBank
    from pytest_adaptive_eval.records.drift import Alarm, Series

#: Longest name, sentence and any other text, in characters; the record has all of it.
_NAME, _SENTENCE, _TEXT = 80, 600, 10_000
_WRONG, _CELL = 10, 300  #: Wrong answers in the first table, and characters of a cell.
_CATEGORIES = 200  #: Categories in the filter of questions.
_GLYPHS = {Outcome.PASS: "✓", Outcome.FAIL: "✕", Outcome.INCONCLUSIVE: "?", Outcome.ERROR: "!"}


def write_page(
    record: RunRecord,
    path: Path,
    *,
    banks: Mapping[str, ItemBank] | None = None,
    series: Sequence[Series] = (),
    alarms: Sequence[Alarm] = (),
) -> None:
    """Write the page, replacing an earlier one in one step; see `html_page`.

    Raises:
        UsageError: The file cannot be written, or jinja2 is missing.
    """
    page = html_page(record, banks=banks, series=series, alarms=alarms)
    write_whole(path, [page.encode("utf-8")], "the page")


def html_page(
    record: RunRecord,
    *,
    banks: Mapping[str, ItemBank] | None = None,
    series: Sequence[Series] = (),
    alarms: Sequence[Alarm] = (),
) -> str:
    """Return the report of a run as one HTML page that needs no network.

    Args:
        banks: Available banks by the interview's name. Without one, questions are shown by their ids.

    Raises:
        UsageError: jinja2 is missing.
    """
    template = _template()
    banks = {} if banks is None else banks
    entries = views(record)
    style, script = Markup(asset("page.css")), Markup(asset("page.js"))
    evaluations = [_evaluation(f"i{n}", view) for n, view in enumerate(entries, 1)]
    titles = [
        (entry["title"], view.record)
        for entry, view in zip(evaluations, entries, strict=True)
        if view.record.is_interview
    ]
    page: str = template.render(
        style=style,
        script=script,
        policy=content_policy(style, script),
        record=record,
        verdict=_verdict(record, entries),
        gates=[_gate(gate) for view in entries for gate in view.gates] + list(map(_gate, record.judged()[1])),
        evaluations=evaluations,
        wrong=_wrong(record, banks),
        # 2031-05-06 07:08 UTC
        started=re.sub(r"^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)[\d:.]*(?:Z|\+00:00)$", r"\1 \2 UTC", record.started),
        seconds=f"{seconds:.1f}" if (seconds := plottable(record.seconds)) is not None else "-",
        panels=history_panels(record.run, series, alarms),
        panels_left=max(sum(len(entry.points) >= FEWEST for entry in series) - PANELS, 0),
        history_legend=history_legend(),
        versions=", ".join(f"{name} {version}" for name, version in record.versions.items()),
        **_questions(question_lists(titles, banks)),
    )
    return page


def _wrong(record: RunRecord, banks: Mapping[str, ItemBank]) -> dict[str, Any]:
    """Return some wrong answers for the page's first table, and which they are of how many."""
    answers, which = wrong_answers(record.interviews, banks, _WRONG)
    several = len(record.interviews) > 1
    rows = [
        {
            "item": clean_html(words.asked_item(answer.asked), 130),
            "of": clean_html(answer.interview.name, 60) if several else "",
            "question": clean_html(answer.question, _CELL),
            "answer": clean_html(answer.asked.text, _CELL),
            "expected": clean_html(answer.expected, _CELL),
        }
        for answer in answers
    ]
    heads = [head for head in ("question", "answer", "expected") if head == "answer" or any(row[head] for row in rows)]
    return {"rows": rows, "which": which, "heads": heads}


def _questions(lists: list[QuestionList]) -> dict[str, Any]:
    questions = [question for entry in lists for question in entry.questions]
    categories = sorted({question.broad for question in questions if question.broad})[:_CATEGORIES]
    kinds = [question.kind for question in questions]
    return {
        "lists": lists,
        "asked": len(questions),
        "kinds": [(kind, KIND_WORDS[kind], n) for kind in Kind if (n := kinds.count(kind))],
        "categories": categories,
        "places": {name: n for n, name in enumerate(categories, 1)},
    }


def need_jinja2() -> None:
    """Raise if no page can be written.

    Raises:
        UsageError: jinja2 is missing.
    """
    try:
        import jinja2  # noqa: F401  # only whether it is there
    except ImportError:
        raise UsageError('the HTML report needs jinja2: pip install "pytest-adaptive-eval[html]"') from None


@cache
def _template() -> Any:
    need_jinja2()
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_cleaned
    )
    environment.filters["unbroken"] = unbroken
    return environment.from_string(asset("page.html.jinja"))


def asset(name: str) -> str:
    """Return the text of a style, a script or a template of the pages."""
    return files("pytest_adaptive_eval.reports").joinpath(name).read_text("utf-8")


def _cleaned(value: Any) -> Any:
    """Return a value as jinja2 escapes it; every text of the template passes here."""
    return value if hasattr(value, "__html__") or not isinstance(value, str) else clean_html(value, _TEXT)


def content_policy(style: str, script: str) -> str:
    """Return the content security policy of a page: nothing is loaded, and only these two blocks style and run."""
    hashes = [base64.b64encode(hashlib.sha256(block.encode()).digest()).decode() for block in (style, script)]
    return (
        f"default-src 'none'; img-src data:; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )


def page_head(title: str, style: str, script: str) -> str:
    """Return a page of its own up to its body, for pages without a template.

    Args:
        title: HTML.
    """
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(content_policy(style, script))}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n"
    )


def _verdict(record: RunRecord, entries: Sequence[ReportView]) -> dict[str, Any]:
    outcomes = [gate.outcome for gate in record.gates]
    names = dict.fromkeys(view.shown_subject for view in entries)
    subjects = [clean_terminal(name, _NAME, keep_end=True) for name in names]
    failed = {Outcome.FAIL, Outcome.ERROR} & set(outcomes)
    return {
        "class": "pass" if words.promoted(record) else "fail" if failed else "open",
        "title": words.promotion(record),
        "why": words.why(record),
        "subjects": ", ".join(subjects[:5]) + (f" and {len(subjects) - 5} more" if len(subjects) > 5 else ""),
        "counts": [(outcome.value, outcomes.count(outcome)) for outcome in Outcome],
    }


def _gate(gate: GateRecord) -> dict[str, Any]:
    outcome = gate.outcome
    notes = list(dict.fromkeys(gate.verdict.notes))
    return {
        "outcome": outcome.value,
        "glyph": _GLYPHS[outcome],
        "name": clean_html(gate.name, 200),
        "sentence": clean_html(words.sentence_without(gate, notes), _SENTENCE),
        "notes": [clean_html(note, _SENTENCE) for note in filter(None, [*notes, words.decided(gate)])],
        "where": clean_html(gate.where, 300),
        "bar": _gate_bar(gate.verdict),
    }


def _gate_bar(verdict: Verdict) -> Markup | None:
    interval, condition = interval_of(verdict.interval), verdict.condition
    kind = condition.get("kind")
    if interval is None or kind not in ("at_least", "not_worse_than"):
        return None
    threshold, metric = plottable(condition.get("value", 0.0)), registered_metric(condition.get("metric"))
    if threshold is None:
        return None
    if kind == "not_worse_than":
        threshold = -threshold
    elif metric is not None and metric.is_share:
        return plots.interval_bar(*interval, target=threshold)
    span = span_of([*interval, threshold, *([0.0] if threshold < 0 else [])], 0.02)
    return plots.interval_bar(*interval, span, threshold)


def _evaluation(key: str, view: ReportView) -> dict[str, Any]:
    """Return an evaluation as the template takes it."""
    evaluation = view.record
    subject = clean_terminal(view.shown_subject, _NAME, keep_end=True)
    name = clean_terminal(view.shown_place, _NAME)
    parts = _interview(key, view) if evaluation.is_interview else results_of(key, view)
    sources = {"evaluation": evaluation.name, "test": shlex.quote(evaluation.nodeid), **parts["made"]}
    return {
        **parts,
        "key": key,
        "title": f"{subject} {view.on} {name}",
        "short": clean_terminal(evaluation.name or name, 24),
        "void": clean_html(evaluation.void, _SENTENCE),
        "facts": [(clean_html(n, 100), clean_html(v, 200), clean_html(more, 300)) for n, v, more in parts["facts"]],
        "notes": [clean_html(note, _SENTENCE) for note in dict.fromkeys(parts["notes"])],
        "made": [(name, clean_html(value, _SENTENCE)) for name, value in sources.items() if value],
    }


def _interview(key: str, view: ReportView) -> dict[str, Any]:
    interview = view.record
    return {
        "facts": _facts(view, interview),
        "notes": view.notes(),
        "made": _setup(interview) | interviewer_facts(interview),
        "figures": interview_figures(key, interview),
        "tables": _categories(interview),
    }


def _facts(view: ReportView, interview: EvaluationRecord) -> list[tuple[str, str, str]]:
    """Return name, value and remark of each figure in the head of an interview."""
    percent = words.percent(interview)
    title = "Accuracy over the whole bank"
    interval = interview.projection
    value, more = view.result, ""
    if interview.levels:
        title, interval = "Area under the accuracy by level", interview.levels.auc
        value, _, more = value.partition(", last level")
        value, more = value.removeprefix("AUC "), f"last level{more}; " if more else ""
    seconds = plottable(interview.seconds)
    facts = []
    if interview.theta:
        unit = words.ability_unit([interview])
        facts.append(("Ability", minus(view.ability), f"{unit}, two-sided {percent}"))
    remark = f"{more}{interval.method}, two-sided {percent}" if interval else more
    facts.append((title, value, remark))
    noise = words.noise(interview)
    if noise:
        facts.append(("Decoding noise", noise, "standard error that it gives the accuracy; the interval allows for it"))
    facts.append(("Asked", view.asked, words.statuses(interview) or "each has a score"))
    facts += _costs(view, interview)
    facts.append(("Ended because", words.stop(interview), f"after {seconds:.1f} s" if seconds else ""))
    return facts


def _costs(view: ReportView, interview: EvaluationRecord) -> Iterator[tuple[str, str, str]]:
    """Yield the cost of the subject and of each agent."""
    agents = words.agent_usages(interview.costs)
    own_cost = view.cost.removesuffix("; ".join(agents)).removesuffix("; ")
    for role, cost in [("subject", own_cost), *(agent.split(" ", 1) for agent in agents)]:
        calls, _, rest = cost.partition(", ")
        if calls:
            yield f"Cost of the {role}", calls, f"{rest}, in this run" if rest else "in this run"


def _setup(interview: EvaluationRecord) -> dict[str, str]:
    subject, bank = interview.subject, interview.bank
    return {
        "checkpoint": subject.checkpoint,
        "decoding": words.settings(subject.decoding) or subject.decoding_hash,
        "environment": words.settings(subject.environment),
        "bank": words.settings({name: getattr(bank, name) for name in _BANK}),
        "policy": words.settings(interview.policy.to_json()),
        "questions a call": ", ".join(f"{size} ({count} times)" for size, count in interview.call_sizes.items()),
    }


def _categories(interview: EvaluationRecord) -> list[Table]:
    """Return the table of categories; levels have a figure instead."""
    rows: list[tuple[str | Markup, ...]] = []
    for row in [] if interview.levels else interview.categories:
        accuracy = words.category_accuracy(row)
        interval = interval_of(accuracy)
        text = accuracy.in_words() if accuracy and interval else "-"
        bar = plots.interval_bar(*interval) if interval else ""
        rows.append((clean_html(row.category or "none", 100), f"{row.asked}/{row.size}", text, bar))
    if not rows:
        return []
    note = "Each interval holds by itself, not all at once."
    if not any(row[-1] for row in rows):
        note = "There are no intervals: as for the whole bank, the draws of this interview allow none."
    heads = ("category", "asked", f"accuracy, {words.percent(interview)}", "")
    return [Table("Accuracy by category", heads, rows, note)]


_BANK = ("name", "content_hash", "scale", "size", "model")  #: Facts of a bank that the page shows.


def interviewer_facts(interview: EvaluationRecord) -> dict[str, str]:
    """Return facts on the interviewer, empty if a formula chose the questions."""
    account = interview.interviewer
    if account is None:
        return {}
    interviewer = account.interviewer
    apart, off = (
        plottable(distances[0]) if distances else None
        for distances in (account.semantic_distance, account.difficulty_distance)
    )
    distances = [] if apart is None else [f"{apart:.2f} apart on average by the embeddings (semantic distance)"]
    if off is not None:
        distances.append(f"difficulties {off:.2f} logits from the ability, past the first questions")
    name = "none: drawn in the window"
    if interviewer:
        name = "by code" if interviewer.name == "deterministic" else interviewer.name or "unnamed"
    return {
        "interviewer": name,
        "embeddings": account.embeddings,
        "window of chances": account.window,
        "chose": _choices(account, interview),
        "questions": "; ".join(distances),
        "fallbacks": _fallbacks(account),
        "cost": _cost(interview.costs),
    }


def _cost(costs: Costs) -> str:
    """Return ``subject 96 calls, 3100 tokens; interviewer 40 calls, 12000 tokens; 1.2e+12 FLOPs, ...``."""
    parts = []
    for role, spent in (("subject", costs.subject), ("interviewer", costs.interviewer)):
        if spent and spent.calls:
            text = f"{role} {counted(spent.calls, 'call')}, {spent.tokens:,} tokens"
            parts.append(text + (f", {spent.flops:.2g} FLOPs" if spent.flops else ""))
    if costs.relative is not None:
        parts.append(f"{100 * costs.relative:.1f} % of the FLOPs of asking the whole bank")
    return "; ".join(parts)


def _choices(account: InterviewerRecord, interview: EvaluationRecord) -> str:
    if account.chosen is None:
        return ""
    text = f"{account.chosen} times, in {counted(interview.asked, 'question')}"
    return text + (f"; the window was empty and widened {account.widened} times" if account.widened else "")


def _fallbacks(account: InterviewerRecord) -> str:
    agent = account.interviewer
    if account.fallbacks is None or not agent:
        return ""
    text = f"choices {account.fallbacks}" + listed_kinds(agent.fallbacks)
    if agent.category_fallbacks:
        text += f"; categories {account.fallback_counts[1]}{listed_kinds(agent.category_fallbacks)}"
    return text + (f"; asked again {agent.asked_again} times" if agent.asked_again else "")
