"""The report as one self-contained HTML page that loads, runs and sends nothing but its own content.

Every text that the template inserts is cleaned and escaped, and a policy in the page's head lets a browser run and
style by the two blocks of this package alone.
"""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.errors import UsageError
from pytest_adaptive_eval.gates.condition import registered_metric
from pytest_adaptive_eval.gates.verdict import Outcome, Verdict
from pytest_adaptive_eval.outputs import write_whole
from pytest_adaptive_eval.records.run_record import GateRecord, RunRecord
from pytest_adaptive_eval.reports import plots, words
from pytest_adaptive_eval.reports.figures import (
    FEWEST,
    KIND_WORDS,
    PANELS,
    history_legend,
    history_panels,
    level_figures,
)
from pytest_adaptive_eval.reports.markup import Markup, clean_html, unbroken
from pytest_adaptive_eval.reports.plots import Kind, kind_of, span_of
from pytest_adaptive_eval.reports.questions import AnswerList, QuestionList, QuestionRow, answer_lists, question_lists
from pytest_adaptive_eval.reports.sections import Table, interval_of, section_of
from pytest_adaptive_eval.reports.side_by_side import (
    PAIRS,
    VARIANTS,
    ItemAnswers,
    SideBySide,
    answers_of_all,
    side_by_side,
)
from pytest_adaptive_eval.reports.verdict_text import WORST_FIRST, next_steps, sentence_and_formula
from pytest_adaptive_eval.reports.view import ReportView, shared_notes, views
from pytest_adaptive_eval.reports.words import plottable
from pytest_adaptive_eval.text import clean_terminal, counted

if TYPE_CHECKING:
    from pytest_adaptive_eval.items.bank import ItemBank
    from pytest_adaptive_eval.records.drift import Alarm, Series

#: Longest name, sentence and any other text, in characters; the record has all of it.
_NAME, _SENTENCE, _TEXT, _SUBJECTS = 80, 600, 10_000, 5
_WRONG, _CELL = 10, 300  #: Wrong answers in the first table, and characters of a cell.
_COMPARED, _COMPARED_TEXT = 200, 200  #: Questions that are compared side by side, and characters of an answer.
_CATEGORIES = 200  #: Categories in the filter of questions.
#: Sign of each outcome.
GLYPHS = {Outcome.PASS: "✓", Outcome.FAIL: "✕", Outcome.INCONCLUSIVE: "?", Outcome.ERROR: "!"}


def write_page(
    record: RunRecord,
    path: Path,
    *,
    banks: Mapping[str, ItemBank] | None = None,
    series: Sequence[Series] = (),
    alarms: Sequence[Alarm] = (),
    requests: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write the page, replacing an earlier one in one step; see `html_page`.

    Raises:
        UsageError: The file cannot be written, or jinja2 is missing.
    """
    page = html_page(record, banks=banks, series=series, alarms=alarms, requests=requests)
    write_whole(path, [page.encode("utf-8")], "the page")


def html_page(
    record: RunRecord,
    *,
    banks: Mapping[str, ItemBank] | None = None,
    series: Sequence[Series] = (),
    alarms: Sequence[Alarm] = (),
    requests: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return the report of a run as one HTML page that needs no network.

    Args:
        banks: Available banks by the interview's name. Without one, questions are shown by their ids.
        requests: Requests as they were sent, by their keys in the record; without one, none is shown.

    Raises:
        UsageError: jinja2 is missing.
    """
    template = _template()
    banks = banks or {}
    entries = views(record)
    style = Markup(asset("page.css"))
    script = Markup(asset("page.js"))
    shared = shared_notes(record)
    evaluations = [_evaluation(f"i{n}", view, shared) for n, view in enumerate(entries, 1)]
    titles = []
    for entry, view in zip(evaluations, entries, strict=True):
        if view.end:
            titles.append((entry["title"], view.record))
    gates: list[dict[str, Any]] = []
    for view in entries:
        gates += [_gate(record, gate, shared) for gate in view.gates]
    gates += [_gate(record, gate, shared) for gate in record.judged()[1]]
    gates.sort(key=lambda gate: WORST_FIRST.index(gate["outcome"]))
    seconds = plottable(record.seconds)
    if seconds is None:
        took = "-"
    else:
        took = f"{seconds:.1f}"
    series_with_panels = [entry for entry in series if len(entry.points) >= FEWEST]
    page: str = template.render(
        style=style,
        script=script,
        policy=content_policy(style, script),
        record=record,
        verdict=_verdict(record, entries),
        changes=words.changes(record),
        level_figures=level_figures(record.evaluations),
        gates=gates,
        notes=[clean_html(note, _SENTENCE) for note in shared],
        steps=next_steps(record, alarms),
        evaluations=evaluations,
        answers=[_answers(record, entry) for entry in answer_lists(record.interviews, banks, _WRONG)],
        side_by_side=[
            _side_by_side(f"beside{n}", table, record, banks) for n, table in enumerate(side_by_side(record), 1)
        ],
        # 2031-05-06 07:08 UTC
        started=re.sub(r"^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)[\d:.]*(?:Z|\+00:00)$", r"\1 \2 UTC", record.started),
        seconds=took,
        panels=history_panels(record.run, series, alarms),
        panels_left=max(len(series_with_panels) - PANELS, 0),
        history_legend=history_legend(),
        versions=", ".join(f"{name} {version}" for name, version in record.versions.items()),
        **_questions(question_lists(titles, banks, requests)),
    )
    return page


def _side_by_side(key: str, compared: SideBySide, record: RunRecord, banks: Mapping[str, ItemBank]) -> dict[str, Any]:
    """Return the tables of one evaluation of several models or prompts, and the answers to each question."""
    tables = [Table("Results", VARIANTS, compared.variants), _differences(compared)]
    names, items = answers_of_all(record, compared.name, banks)
    differing = sum(entry.agreement == 0 for entry in items)
    note = f"{differing} of {counted(len(items), 'question')} got different results; these come first."
    if len(items) > _COMPARED:
        note += f" The first {_COMPARED} are shown."
    return {
        "key": key,
        "name": clean_html(compared.name, 60),
        "tables": [table for table in tables if table.rows],
        "heads": [clean_html(name, 60) for name in names],
        "items": [_item_answers(entry) for entry in items[:_COMPARED]],
        "note": note,
    }


def _differences(compared: SideBySide) -> Table:
    """Return the paired differences with a bar each, on one scale around 0."""
    ends = [0.0]
    for interval in compared.intervals:
        if interval is not None:
            ends += (interval.low, interval.high)
    span = span_of(ends, 0.02)
    rows = []
    for cells, interval in zip(compared.pairs, compared.intervals, strict=True):
        bar = Markup()
        bounds = interval_of(interval)
        if bounds:
            bar = plots.difference_bar(*bounds, span)
        rows.append((*cells, bar))
    return Table("Differences", (*PAIRS, ""), rows)


def _item_answers(entry: ItemAnswers) -> dict[str, Any]:
    answers = []
    for asked in entry.answers:
        if asked is None:
            answers.append({"kind": "", "text": "not asked"})
        else:
            answers.append({"kind": kind_of(asked).value, "text": clean_html(asked.text, _COMPARED_TEXT) or "no text"})
    return {
        "item": clean_html(entry.item, 130),
        "question": clean_html(entry.question, _CELL),
        "expected": clean_html(entry.expected, _CELL),
        "answers": answers,
    }


def _answers(record: RunRecord, entry: AnswerList) -> dict[str, Any]:
    """Return a list of answers as the template takes it."""
    several = len(record.interviews) > 1
    rows = []
    for answer in entry.answers:
        evaluation = answer.interview.name if several else ""
        rows.append(
            {
                "item": clean_html(words.asked_item(answer.asked), 130),
                "of": clean_html(evaluation, 60),
                "question": clean_html(answer.question, _CELL),
                "answer": clean_html(answer.asked.text, _CELL),
                "expected": clean_html(answer.expected, _CELL),
            }
        )
    heads = []
    for head in ("question", "answer", "expected"):
        if head == "answer" or any(row[head] for row in rows):
            heads.append(head)
    return {"title": clean_html(entry.title, 200), "note": entry.note, "rows": rows, "heads": heads}


def _questions(lists: list[QuestionList]) -> dict[str, Any]:
    questions: list[QuestionRow] = []
    for entry in lists:
        questions += entry.questions
    categories = sorted({question.broad for question in questions if question.broad})[:_CATEGORIES]
    counts = Counter(question.kind for question in questions)
    return {
        "lists": lists,
        "asked": len(questions),
        "kinds": [(kind, KIND_WORDS[kind], counts[kind]) for kind in Kind if counts[kind]],
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
    if hasattr(value, "__html__") or not isinstance(value, str):
        return value
    return clean_html(value, _TEXT)


def content_policy(style: str, script: str) -> str:
    """Return the content security policy of a page: nothing is loaded, and only these two blocks style and run."""
    hashes = []
    for block in (style, script):
        digest = hashlib.sha256(block.encode()).digest()
        hashes.append(base64.b64encode(digest).decode())
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
    """Return the head of the page.  Where only some of several subjects did not pass, it names these alone."""
    outcomes = {gate.outcome for gate in record.gates}
    names = dict.fromkeys(view.shown_subject for view in entries)
    holding: dict[str, bool] = {}
    for view in entries:
        for gate in view.gates:
            holding[view.shown_subject] = holding.get(view.shown_subject, True) and gate.holds
    passed = [name for name in names if holding.get(name)]
    shown = [*names]
    why = words.why(record)
    if words.promoted(record):
        style_class = "pass"
    elif outcomes & {Outcome.FAIL, Outcome.ERROR}:
        style_class = "fail"
    else:
        style_class = "open"
    if style_class != "pass" and 0 < len(passed) < len(names):
        shown = [name for name in names if name not in passed]
        why += f" Passed: {', '.join(_brief_names(passed))}."
    return {"class": style_class, "title": words.promotion(record), "why": why, "subjects": _brief_names(shown)}


def _brief_names(subjects: Sequence[str]) -> list[str]:
    """Return a few names of subjects, and how many more there are."""
    names = [clean_terminal(name, _NAME, keep_end=True) for name in subjects[:_SUBJECTS]]
    if len(subjects) > _SUBJECTS:
        names.append(f"and {len(subjects) - _SUBJECTS} more")
    return names


def _gate(record: RunRecord, gate: GateRecord, shared: Collection[str]) -> dict[str, Any]:
    outcome = gate.outcome
    notes = list(dict.fromkeys(gate.verdict.notes))
    text, formula = sentence_and_formula(record, gate, notes)
    own_notes = [note for note in notes if note not in shared]
    all_notes = filter(None, [*own_notes, words.decided(gate), words.beside_interval(gate.verdict)])
    return {
        "outcome": outcome.value,
        "glyph": GLYPHS[outcome],
        "name": clean_html(gate.name, 200),
        "quantity": clean_html(text.quantity),
        "number": clean_html(text.number),
        "sentence": clean_html(text.rest, _SENTENCE),
        "formula": clean_html(formula, _SENTENCE),
        "notes": [clean_html(note, _SENTENCE) for note in all_notes],
        "where": clean_html(gate.where, 300),
        "bar": _gate_bar(gate.verdict),
    }


def _gate_bar(verdict: Verdict) -> Markup | None:
    interval = interval_of(verdict.interval)
    condition = verdict.condition
    threshold = words.threshold_of(verdict)
    if interval is None or threshold is None:
        return None
    metric = registered_metric(condition.get("metric"))
    is_share = bool(condition.get("within")) or (metric is not None and metric.is_share)
    if is_share and condition.get("kind") != "not_worse_than":
        return plots.interval_bar(*interval, target=threshold)
    values = [*interval, threshold]
    if threshold < 0:
        values.append(0.0)  # a margin below the baseline: the bar shows where both are equal
    span = span_of(values, 0.02)
    return plots.interval_bar(*interval, span, threshold)


def _evaluation(key: str, view: ReportView, shared: Collection[str]) -> dict[str, Any]:
    """Return an evaluation as the template takes it."""
    evaluation = view.record
    subject = clean_terminal(view.shown_subject, _NAME, keep_end=True)
    name = clean_terminal(view.shown_place, _NAME)
    parts = section_of(evaluation.kind).parts(key, view)
    facts = []
    for fact, value, remark in parts["facts"]:
        facts.append((clean_html(fact, 100), clean_html(value, 200), clean_html(remark, 300)))
    sources = {"evaluation": evaluation.name, "test": shlex.quote(evaluation.nodeid), **parts["made"]}
    provenance = []
    for source, value in sources.items():
        if value:
            provenance.append((source, clean_html(value, _SENTENCE)))
    return {
        **parts,
        "key": key,
        "title": f"{subject} {view.on} {name}",
        "short": clean_terminal(evaluation.name or name, 24),
        "void": clean_html(evaluation.void, _SENTENCE),
        "facts": facts,
        "notes": [clean_html(note, _SENTENCE) for note in dict.fromkeys(parts["notes"]) if note not in shared],
        "made": provenance,
    }
