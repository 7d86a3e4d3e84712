"""The report as one self-contained HTML page: nothing in it runs, loads or sends but what it was made with.

Every text that the template inserts is cleaned and escaped, and a policy in the page's head lets a browser run and
style by the two blocks of this package alone.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.errors import UsageError
from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.outputs import write_whole
from pytest_adaptive_eval.records.run_record import GateRecord, InterviewRecord, RunRecord
from pytest_adaptive_eval.reports import plots, words
from pytest_adaptive_eval.reports.abilities import parted
from pytest_adaptive_eval.reports.curves import Kind, real
from pytest_adaptive_eval.reports.figures import KINDS, PANELS, history_legend, history_panels, interview_figures, sure
from pytest_adaptive_eval.reports.interviewing import led
from pytest_adaptive_eval.reports.markup import Markup, clean_html
from pytest_adaptive_eval.reports.questions import question_lists
from pytest_adaptive_eval.reports.studies import study_view
from pytest_adaptive_eval.text import clean_terminal, number

if TYPE_CHECKING:
    from pytest_adaptive_eval.items.bank import ItemBank
    from pytest_adaptive_eval.records.drift import Alarm, Series

__all__ = ["html_page", "need_jinja2", "write_page"]

#: Longest name, sentence and any other text, in characters; the record has all of it.
_NAME, _SENTENCE, _TEXT = 80, 600, 10_000
#: Categories in the filter of questions.
_CATEGORIES = 200
_GLYPHS = {Outcome.PASS: "✓", Outcome.FAIL: "✕", Outcome.INCONCLUSIVE: "?", Outcome.ERROR: "!"}


def write_page(
    record: RunRecord,
    path: Path,
    *,
    banks: Mapping[str, ItemBank] | None = None,
    series: Sequence[Series] = (),
    alarms: Sequence[Alarm] = (),
) -> None:
    """Write the page, replacing what is there in one step; see `html_page`.

    Raises
    ------
    UsageError
        The file cannot be written, or jinja2 is missing.
    """
    data = html_page(record, banks=banks, series=series, alarms=alarms).encode("utf-8")
    write_whole(path, [data], "the page")


def html_page(
    record: RunRecord,
    *,
    banks: Mapping[str, ItemBank] | None = None,
    series: Sequence[Series] = (),
    alarms: Sequence[Alarm] = (),
) -> str:
    """The report of a run as one HTML page that needs no network.

    Parameters
    ----------
    record : RunRecord
    banks : mapping of str to ItemBank, optional
        By the interview's name, where at hand.  Without one, questions are
        shown by their ids, and the ability's interval at its end only.
    series : sequence of Series
        Of the run's history, this run included.
    alarms : sequence of Alarm
        On these series.

    Returns
    -------
    str
        The same arguments give the same page.

    Raises
    ------
    UsageError
        jinja2 is missing.
    """
    template = _template()
    banks = {} if banks is None else banks
    groups, alone = words.gates_by_interview(record)
    style, script = Markup(_asset("page.css")), Markup(_asset("page.js"))
    pairs = list(zip(record.interviews, groups, strict=True))
    interviews = [
        _interview(f"i{n}", record, interview, gates, banks.get(interview.name))
        for n, (interview, gates) in enumerate(pairs, 1)
    ]
    titles = [(view["title"], interview) for view, interview in zip(interviews, record.interviews, strict=True)]
    lists = question_lists(titles, banks)
    asked = [question for one in lists for question in one.questions]
    categories = sorted({question.broad for question in asked if question.broad})[:_CATEGORIES]
    page: str = template.render(
        style=style,
        script=script,
        policy=_policy(style, script),
        record=record,
        verdict=_verdict(record),
        gates=[_gate(gate) for group in (*groups, *words.gates_by_study(record), alone) for gate in group],
        interviews=interviews,
        studies=[study_view(f"s{n}", study) for n, study in enumerate(record.studies, 1)],
        panels=history_panels(record.run, series, alarms),
        panels_left=max(len(series) - PANELS, 0),
        lists=lists,
        asked=len(asked),
        kinds=[(kind, KINDS[kind], n) for kind in Kind if (n := sum(q.kind is kind for q in asked))],
        categories=categories,
        places={name: n for n, name in enumerate(categories, 1)},
        history_legend=history_legend(),
        versions=", ".join(f"{name} {version}" for name, version in record.versions.items()),
    )
    return page


def need_jinja2() -> None:
    """Refuse to go on where no page can be written.

    Raises
    ------
    UsageError
        jinja2 is missing.
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
    return environment.from_string(_asset("page.html.jinja"))


def _asset(name: str) -> str:
    return files("pytest_adaptive_eval.reports").joinpath(name).read_text("utf-8")


def _cleaned(value: Any) -> Any:
    """What jinja2 does with a value before escaping it: no text gets around this."""
    return value if hasattr(value, "__html__") or not isinstance(value, str) else clean_html(value, _TEXT)


def _policy(style: str, script: str) -> str:
    """The content security policy: nothing is loaded, and only these two blocks style and run."""

    def hashed(block: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(block.encode()).digest()).decode()}'"

    return (
        f"default-src 'none'; img-src data:; style-src {hashed(style)}; script-src {hashed(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _verdict(record: RunRecord) -> dict[str, Any]:
    """Whether the checkpoint may be promoted, and why."""
    found = [words.outcome(gate) for gate in record.gates]
    names = [str(interview.subject.get("name") or "unnamed subject") for interview in record.interviews]
    names += [study.candidate for study in record.studies]
    subjects = [clean_terminal(name, _NAME, keep_end=True) for name in dict.fromkeys(names)]
    return {
        "class": "pass" if words.promoted(record) else "fail" if {Outcome.FAIL, Outcome.ERROR} & set(found) else "open",
        "title": words.promotion(record),
        "why": words.why(record),
        "subjects": ", ".join(subjects[:5]) + (f" and {len(subjects) - 5} more" if len(subjects) > 5 else ""),
        "counts": [(outcome.value, found.count(outcome)) for outcome in Outcome],
    }


def _gate(gate: GateRecord) -> dict[str, Any]:
    outcome, verdict = words.outcome(gate), gate.verdict
    given = verdict.get("notes")
    notes = [str(note) for note in given] if isinstance(given, list | tuple) else []
    sentence = str(verdict.get("sentence") or "the record holds no verdict for this gate")
    sentence = sentence.removeprefix(f"{outcome.value} ")
    for note in notes:
        sentence = sentence.replace(f"; {' '.join(note.split())}", "")
    return {
        "outcome": outcome.value,
        "glyph": _GLYPHS[outcome],
        "name": clean_html(gate.name, 200),
        "sentence": clean_html(sentence, _SENTENCE),
        "notes": [clean_html(note, _SENTENCE) for note in notes],
        "where": clean_html(f"{gate.file}:{gate.line}" if gate.file else gate.nodeid, 300),
        "bar": _gate_bar(verdict),
    }


def _gate_bar(verdict: Mapping[str, Any]) -> Markup | None:
    """The interval that was found against what was required."""
    interval, condition = _mapping(verdict.get("interval")), _mapping(verdict.get("condition"))
    low, estimate, high = (real(interval.get(name)) for name in ("low", "estimate", "high"))
    value = real(condition.get("value", 0.0))  # a record leaves out what is at its default
    if low is None or estimate is None or high is None or value is None:
        return None
    if condition.get("kind") not in ("at_least", "not_worse_than"):
        return None
    if condition.get("kind") == "not_worse_than":
        value = -value
    elif condition.get("metric") == "accuracy":
        return plots.interval_bar(low, estimate, high, target=value)
    span = plots.span_of([low, estimate, high, value, *([0.0] if value < 0 else [])], 0.02)
    return plots.interval_bar(low, estimate, high, span, value)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _interview(
    key: str, record: RunRecord, interview: InterviewRecord, gates: list[GateRecord], bank: ItemBank | None
) -> dict[str, Any]:
    """One interview: who, on what, the numbers, the figures."""
    subject = clean_terminal(interview.subject.get("name") or "unnamed subject", _NAME, keep_end=True)
    name = clean_terminal(words.bank_name(interview) or "unnamed bank", _NAME)
    figures, absent = interview_figures(key, interview, gates, bank)
    return {
        "key": key,
        "title": f"{subject} on {name}",
        "short": clean_terminal(interview.name or name, 24),
        "void": clean_html(words.void(interview), _SENTENCE),
        "facts": _facts(interview),
        "notes": [
            clean_html(note, _SENTENCE)
            for note in words.standing_notes(replace(record, interviews=[interview], gates=gates))
        ],
        "made": _made(interview),
        "led": led(interview),
        "parted": parted(key, interview, bank),
        "figures": figures,
        "absent": absent,
        "categories": _categories(interview),
        "sure": sure(interview),
    }


def _facts(interview: InterviewRecord) -> list[tuple[str, str, str]]:
    """Name, value, and what must be known of it."""
    shown = _mapping(interview.accuracy or interview.accuracy_conformal or interview.accuracy_model)
    what = "Accuracy over the whole bank"
    if interview.levels:
        what, shown = "Area under the accuracy by level", _mapping(_mapping(interview.levels).get("auc"))
    missing, seconds = words.missing(interview), real(interview.seconds)
    facts = [
        (
            what,
            words.accuracy(interview),
            f"{shown.get('method')}, two-sided {sure(interview)}" if shown else "",
        )
    ]
    if interview.theta:
        facts.insert(
            0,
            (
                "Ability",
                words.ability(interview).replace("-", "−"),
                f"{words.ability_unit([interview])}, two-sided {sure(interview)}",
            ),
        )
    if told := words.noise(interview):
        facts.append(("Decoding noise", told, "standard error that it gives the accuracy; the interval allows for it"))
    facts.append(("Asked", words.share(interview), f"no score: {missing}" if missing else "each has a score"))
    facts.append(("Ended because", words.stop(interview), f"after {seconds:.1f} s" if seconds else ""))
    return [(name, clean_html(value, 200), clean_html(more, 300)) for name, value, more in facts]


def _made(interview: InterviewRecord) -> list[tuple[str, str]]:
    """What the interview was held with."""
    subject, bank = interview.subject, interview.bank
    facts = {
        "evaluation": interview.name,
        "test": interview.nodeid,
        "checkpoint": subject.get("checkpoint"),
        "decoding": _flat(subject.get("decoding")) or subject.get("decoding_hash"),
        "environment": _flat(subject.get("environment")),
        "bank": _flat({k: v for k, v in bank.items() if k in ("name", "size", "model", "content_hash", "scale")}),
        "policy": _flat(interview.policy),
    }
    return [(name, clean_html(value, _SENTENCE)) for name, value in facts.items() if value]


def _flat(value: Any) -> str:
    return ", ".join(f"{name} {one}" for name, one in _mapping(value).items() if one not in (None, ""))


def _categories(interview: InterviewRecord) -> list[dict[str, Any]]:
    if interview.levels:  # a figure of their own
        return []
    rows = []
    for given in interview.categories:
        row = _mapping(given)
        interval = _mapping(row.get("accuracy"))
        low, estimate, high = (real(interval.get(name)) for name in ("low", "estimate", "high"))
        shown, bar = "-", None
        if low is not None and estimate is not None and high is not None:
            shown = f"{number(estimate)} [{number(low)},\u00a0{number(high)}]"
            bar = plots.interval_bar(low, estimate, high)
        asked = f"{row.get('asked')}/{row.get('size')}"
        name = clean_html(row.get("category") or "none", 100)
        rows.append({"name": name, "asked": clean_html(asked, 40), "accuracy": shown, "bar": bar})
    return rows
