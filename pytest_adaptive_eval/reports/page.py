"""The report as one self-contained HTML page that loads, runs and sends nothing but its own content.

Every text that the template inserts is cleaned and escaped, and a policy in the page's head lets a browser run and
style by the two blocks of this package alone.
"""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.errors import UsageError
from pytest_adaptive_eval.gates.condition import registered_metric
from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.outputs import write_whole
from pytest_adaptive_eval.records.run_record import GateRecord, InterviewRecord, RunRecord
from pytest_adaptive_eval.reports import plots, words
from pytest_adaptive_eval.reports.abilities import parted
from pytest_adaptive_eval.reports.figures import (
    FEWEST,
    KIND_WORDS,
    PANELS,
    history_legend,
    history_panels,
    history_rows,
    interview_figures,
)
from pytest_adaptive_eval.reports.markup import Markup, clean_html, unbroken
from pytest_adaptive_eval.reports.plots import Kind, minus, span_of
from pytest_adaptive_eval.reports.questions import QuestionList, question_lists, wrong_answers
from pytest_adaptive_eval.reports.studies import interval_of, study_view
from pytest_adaptive_eval.reports.words import as_list, as_mapping, number_or_dash, plottable
from pytest_adaptive_eval.text import clean_terminal, counted, number

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
        banks: Available banks by the interview's name. Without one, questions are shown by their ids, and the ability's
            interval at its end only.

    Raises:
        UsageError: jinja2 is missing.
    """
    template = _template()
    banks = {} if banks is None else banks
    groups, _ = words.gates_by_interview(record)
    style, script = Markup(asset("page.css")), Markup(asset("page.js"))
    interviews = [
        _interview(f"i{n}", record, interview, gates, banks.get(interview.name))
        for n, (interview, gates) in enumerate(zip(record.interviews, groups, strict=True), 1)
    ]
    titles = [(view["title"], interview) for view, interview in zip(interviews, record.interviews, strict=True)]
    page: str = template.render(
        style=style,
        script=script,
        policy=content_policy(style, script),
        record=record,
        verdict=_verdict(record),
        gates=[_gate(gate) for group in words.gate_groups(record) for gate in group],
        interviews=interviews,
        wrong=_wrong(record, banks),
        studies=[study_view(f"s{n}", study) for n, study in enumerate(record.studies, 1)],
        few=history_rows(record.run, series),
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
    return {"rows": rows, "which": which}


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


def _verdict(record: RunRecord) -> dict[str, Any]:
    outcomes = [words.outcome(gate) for gate in record.gates]
    names = [str(interview.subject.get("name") or "unnamed subject") for interview in record.interviews]
    names += [study.candidate for study in record.studies]
    subjects = [clean_terminal(name, _NAME, keep_end=True) for name in dict.fromkeys(names)]
    failed = {Outcome.FAIL, Outcome.ERROR} & set(outcomes)
    return {
        "class": "pass" if words.promoted(record) else "fail" if failed else "open",
        "title": words.promotion(record),
        "why": words.why(record),
        "subjects": ", ".join(subjects[:5]) + (f" and {len(subjects) - 5} more" if len(subjects) > 5 else ""),
        "counts": [(outcome.value, outcomes.count(outcome)) for outcome in Outcome],
    }


def _gate(gate: GateRecord) -> dict[str, Any]:
    outcome = words.outcome(gate)
    notes = list(dict.fromkeys(str(note) for note in as_list(gate.verdict.get("notes"))))
    return {
        "outcome": outcome.value,
        "glyph": _GLYPHS[outcome],
        "name": clean_html(gate.name, 200),
        "sentence": clean_html(words.sentence_without(gate, notes), _SENTENCE),
        "notes": [clean_html(note, _SENTENCE) for note in notes],
        "where": clean_html(f"{gate.file}:{gate.line}" if gate.file else gate.nodeid, 300),
        "bar": _gate_bar(gate.verdict),
    }


def _gate_bar(verdict: Mapping[str, Any]) -> Markup | None:
    interval, condition = interval_of(as_mapping(verdict.get("interval"))), as_mapping(verdict.get("condition"))
    threshold = plottable(condition.get("value", 0.0))  # a record leaves out default values
    if interval is None or threshold is None or condition.get("kind") not in ("at_least", "not_worse_than"):
        return None
    metric = registered_metric(condition.get("metric"))
    if condition.get("kind") == "not_worse_than":
        threshold = -threshold
    elif metric is not None and metric.is_share:
        return plots.interval_bar(*interval, target=threshold)
    span = span_of([*interval, threshold, *([0.0] if threshold < 0 else [])], 0.02)
    return plots.interval_bar(*interval, span, threshold)


def _interview(
    key: str, record: RunRecord, interview: InterviewRecord, gates: list[GateRecord], bank: ItemBank | None
) -> dict[str, Any]:
    subject = clean_terminal(interview.subject.get("name") or "unnamed subject", _NAME, keep_end=True)
    name = clean_terminal(words.bank_name(interview) or "unnamed bank", _NAME)
    figures, absent = interview_figures(key, interview, gates, bank)
    notes = words.standing_notes(replace(record, interviews=[interview], gates=gates))
    return {
        "key": key,
        "title": f"{subject} on {name}",
        "short": clean_terminal(interview.name or name, 24),
        "void": clean_html(words.void(interview), _SENTENCE),
        "facts": _facts(interview),
        "notes": [clean_html(note, _SENTENCE) for note in notes],
        "made": _setup(interview),
        "led": interviewer_section(interview),
        "parted": parted(key, interview, bank),
        "figures": figures,
        "absent": absent,
        "categories": _categories(interview),
        "sure": words.percent(interview),
    }


def _facts(interview: InterviewRecord) -> list[tuple[str, str, str]]:
    """Return name, value and remark of each figure in the head of an interview."""
    percent = words.percent(interview)
    title = "Accuracy over the whole bank"
    interval = as_mapping(interview.accuracy or interview.accuracy_conformal or interview.accuracy_model)
    value, more = words.accuracy(interview), ""
    if interview.levels:
        title, interval = "Area under the accuracy by level", as_mapping(interview.levels.get("auc"))
        value, _, more = value.partition(", last level")
        value, more = value.removeprefix("AUC "), f"last level{more}; " if more else ""
    seconds = plottable(interview.seconds)
    facts = []
    if interview.theta:
        unit = words.ability_unit([interview])
        facts.append(("Ability", minus(words.ability(interview)), f"{unit}, two-sided {percent}"))
    remark = f"{more}{interval.get('method')}, two-sided {percent}" if interval else more
    facts.append((title, value, remark))
    if noise := words.noise(interview):
        facts.append(("Decoding noise", noise, "standard error that it gives the accuracy; the interval allows for it"))
    facts.append(("Asked", words.share(interview), words.statuses(interview) or "each has a score"))
    agents = words.agent_usages(interview.costs)
    told = words.usage(interview.costs).removesuffix("; ".join(agents)).removesuffix("; ")
    for role, cost in [("subject", told), *(agent.split(" ", 1) for agent in agents)]:
        calls, _, rest = cost.partition(", ")
        if calls:
            facts.append((f"Cost of the {role}", calls, f"{rest}, in this run" if rest else "in this run"))
    facts.append(("Ended because", words.stop(interview), f"after {seconds:.1f} s" if seconds else ""))
    return [(name, clean_html(value, 200), clean_html(more, 300)) for name, value, more in facts]


def _setup(interview: InterviewRecord) -> list[tuple[str, str]]:
    subject, bank = interview.subject, interview.bank
    facts = {
        "evaluation": interview.name,
        "test": shlex.quote(interview.nodeid),
        "checkpoint": subject.get("checkpoint"),
        "decoding": words.settings(subject.get("decoding")) or subject.get("decoding_hash"),
        "environment": words.settings(subject.get("environment")),
        "bank": words.settings(
            {k: v for k, v in bank.items() if k in ("name", "size", "model", "content_hash", "scale")}
        ),
        "policy": words.settings(interview.policy),
    }
    return [(name, clean_html(value, _SENTENCE)) for name, value in facts.items() if value]


def _categories(interview: InterviewRecord) -> list[dict[str, Any]]:
    """Return the rows of the table of categories; levels have a figure instead."""
    rows = []
    for row in map(as_mapping, [] if interview.levels else interview.categories):
        interval = interval_of(words.category_accuracy(row))
        text = "-"
        if interval:
            low, estimate, high = map(number, interval)
            text = f"{estimate} [{low},\u00a0{high}]"
        asked = clean_html(f"{row.get('asked')}/{row.get('size')}", 40)
        bar = plots.interval_bar(*interval) if interval else None
        name = clean_html(row.get("category") or "none", 100)
        rows.append({"name": name, "asked": asked, "accuracy": text, "bar": bar})
    return rows


_ROWS = 40  #: Rows of the memory table, the most asked first.


@dataclass(frozen=True, slots=True)
class InterviewerSection:
    """Facts, and the memory table: category, questions, difficulties, share right."""

    facts: list[tuple[str, str]]
    memory: list[tuple[str, str, str, str]]


def interviewer_section(interview: InterviewRecord) -> InterviewerSection | None:
    """Return the section on the interviewer, None if a formula chose the questions."""
    account = as_mapping(interview.interviewer)
    if not account:
        return None
    interviewer = as_mapping(account.get("interviewer"))
    apart, off = (
        plottable((as_list(account.get(name)) or [None])[0]) for name in ("semantic_distance", "difficulty_distance")
    )
    distances = [] if apart is None else [f"{apart:.2f} apart on average by the embeddings (semantic distance)"]
    if off is not None:
        distances.append(f"difficulties {off:.2f} logits from the ability, past the first questions")
    name = "by code" if interviewer.get("name") == "deterministic" else str(interviewer.get("name") or "unnamed")
    facts = {
        "interviewer": name if interviewer else "none: drawn in the window",
        "embeddings": account.get("embeddings"),
        "window of chances": account.get("window"),
        "chose": _choices(account, interview),
        "questions": "; ".join(distances),
        "fallbacks": _fallbacks(account, interviewer),
        "cost": _cost(as_mapping(interview.costs)),
    }
    tables = as_list(account.get("memory")) or [[]]
    memory = sorted(map(as_mapping, as_list(tables[0])), key=lambda row: -(plottable(row.get("count")) or 0.0))
    return InterviewerSection(
        [(name, clean_html(value, 300)) for name, value in facts.items() if value],
        [_row(row) for row in memory[:_ROWS] if row],
    )


def _cost(costs: Mapping[str, Any]) -> str:
    """Return ``subject 96 calls, 3100 tokens; interviewer 40 calls, 12000 tokens; 1.2e+12 FLOPs, ...``."""
    parts = []
    for role in ("subject", "interviewer"):
        usage = as_mapping(costs.get(role))
        if calls := plottable(usage.get("calls")):
            tokens = sum(plottable(usage.get(name)) or 0.0 for name in ("prompt_tokens", "completion_tokens"))
            text = f"{role} {counted(int(calls), 'call')}, {tokens:,.0f} tokens"
            parts.append(text + (f", {flops:.2g} FLOPs" if (flops := plottable(usage.get("flops"))) else ""))
    relative = plottable(costs.get("relative"))
    if relative is not None:
        parts.append(f"{100 * relative:.1f} % of the FLOPs of asking the whole bank")
    return "; ".join(parts)


def _choices(account: Mapping[str, Any], interview: InterviewRecord) -> str:
    chosen, widened = plottable(account.get("chosen")), plottable(account.get("widened"))
    if chosen is None:
        return ""
    text = f"{int(chosen)} times, in {counted(interview.asked, 'question')}"
    return text + (f"; the window was empty and widened {int(widened)} times" if widened else "")


def _fallbacks(account: Mapping[str, Any], interviewer: Mapping[str, Any]) -> str:
    total = plottable(account.get("fallbacks"))
    if total is None or not interviewer:
        return ""
    again = plottable(interviewer.get("asked_again"))
    text = f"choices {int(total)}" + _kinds(interviewer.get("fallbacks"))
    if unsorted := as_mapping(interviewer.get("category_fallbacks")):
        text += f"; categories {sum(int(plottable(n) or 0) for n in unsorted.values())}{_kinds(unsorted)}"
    return text + (f"; asked again {int(again)} times" if again else "")


def _kinds(counts: object) -> str:
    kinds = ", ".join(f"{name} {n}" for name, n in as_mapping(counts).items())
    return f" ({kinds})" if kinds else ""


def _row(row: Mapping[str, Any]) -> tuple[str, str, str, str]:
    low, mean, high = (plottable(row.get(name)) for name in ("lowest", "mean", "highest"))
    difficulty = "-"
    if low is not None and mean is not None and high is not None:
        difficulty = minus(f"{mean:.1f} ({low:.1f} to {high:.1f})")
    count = plottable(row.get("count"))
    return (
        clean_html(row.get("name") or "none", 100),
        "-" if count is None else f"{count:.0f}",
        difficulty,
        number_or_dash(plottable(row.get("accuracy")), 2),
    )
