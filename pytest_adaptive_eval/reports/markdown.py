r"""The summary of a run in GitHub's Markdown, for the page of a workflow or a pull request.

Foreign text is shown literally and has no effect: it cannot leave its cell or its fence, mention a person, refer to an
issue, or become a link, an image or HTML. GitHub searches the finished page for names and addresses, where an escape is
not enough; an invisible space splits them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.records.run_record import EvaluationRecord, RunRecord
from pytest_adaptive_eval.reports import words
from pytest_adaptive_eval.reports.markup import clean_html
from pytest_adaptive_eval.reports.questions import ShownAnswer, answer_lists
from pytest_adaptive_eval.reports.side_by_side import PAIRS, VARIANTS, SideBySide, side_by_side
from pytest_adaptive_eval.reports.verdict_text import WORST_FIRST, Step, next_steps, sentence_and_formula
from pytest_adaptive_eval.reports.view import ReportView, shared_notes, standing_notes, views
from pytest_adaptive_eval.text import number

if TYPE_CHECKING:
    from pytest_adaptive_eval.items.bank import ItemBank
    from pytest_adaptive_eval.records.drift import Alarm

COMMENT_MARK = "<!-- adaptive-eval -->"  #: First line of a comment, by which a later one replaces it.
_COMMENT = 60_000  #: Bytes of a comment; GitHub refuses one of more than 65,536 characters.
_LINK = re.compile(r"https?://[\w.:/-]+")
_SIGNS = {Outcome.PASS: "✅", Outcome.FAIL: "❌", Outcome.INCONCLUSIVE: "❔", Outcome.ERROR: "🛑"}
_LET_THROUGH = "⚠️"
#: Longest name, sentence and question, in characters; what is cut is in the record.
_NAME, _SENTENCE, _QUESTION = 100, 600, 300
_ROWS = 200  #: Rows of a table, and lines of a list.
_WRONG, _ANSWER, _LINES = 5, 600, 12  #: Wrong answers shown, and of each the characters and lines.
_LEAST = 2_000  #: Smallest limit in bytes, enough for the headline and for the names of omitted sections.

#: Text with an effect in Markdown or on GitHub.
_ACTIVE = re.compile(
    r"(?P<name>[@#](?=\S)|\bgh-(?=\d)|:(?=//|[\w+-]*[a-z_+-][\w+-]*:|100:|1234:)|www(?=\.))|(?P<mark>[\\*_~\[\]])"
    r"|(?P<sign>[<>&|`$])",
    re.IGNORECASE,
)
#: First characters of a list, a heading or a rule.
_BLOCKS = (*"-+=#0123456789", "")
_ESCAPES = {
    "<": "&lt;",
    ">": "&gt;",
    "&": "&amp;",
    "|": "&#124;",
    "`": "&#96;",
    "$": "<span>$</span>",  # GitHub reads dollars as mathematics
}
#: Invisible character that splits names and addresses.
_GAP = "&#8203;"


def summary_markdown(
    record: RunRecord,
    *,
    banks: Mapping[str, ItemBank] = MappingProxyType({}),
    alarms: Sequence[Alarm] = (),
    limit: int = 900_000,
) -> str:
    """Return the summary of a run for the page of a workflow or a pull request.

    Args:
        banks: Available banks by the interview's name; they add questions and expected answers to wrong answers.
        limit: Bytes in UTF-8, at least 2000. Sections that do not fit are left out whole, and named. GitHub drops a
            summary of more than 1 MiB, and refuses a comment of more than 65,536 characters.
    """
    notes = list(dict.fromkeys([*standing_notes(record), *shared_notes(record)]))
    entries = views(record)
    interviews = [view for view in entries if view.end]
    others = [view for view in entries if not view.end]
    categories = filter(None, map(_categories, record.interviews[:_ROWS]))
    sections = [
        ("", _headline(record)),
        ("gates", _gates(record, notes)),
        ("next steps", "".join(map(_step, next_steps(record, alarms)))),
        ("drift", _listed("Drift", [alarm.sentence for alarm in alarms])),
        ("changes", _listed("Since the last run", words.changes(record))),
        ("interviews", _interviews(interviews)),
        ("other evaluations", "\n".join(map(_rows, others[:_ROWS]))),
        ("side by side", "\n".join(map(_side_by_side, side_by_side(record)))),
        ("notes", _listed("Notes", notes)),
        ("accuracy by category", "\n".join(categories)),
        ("wrong answers", _wrong(record.interviews, banks)),
    ]
    return _within(sections, max(limit, _LEAST))


def _side_by_side(compared: SideBySide) -> str:
    """Return the tables of one evaluation of several models or prompts."""
    text = f"### Side by side: {_inline(compared.name, _NAME)}\n\n"
    for heads, rows in ((VARIANTS, compared.variants), (PAIRS, compared.pairs)):
        if rows:
            cells = []
            for row in rows:
                cells.append([_inline(cell, _NAME) for cell in row])
            text += _table(heads, cells, 0) + "\n"
    return text


def _within(sections: Sequence[tuple[str, str]], limit: int) -> str:
    """Return the sections that fit into so many bytes, and name the others."""
    free = limit - len(_omission([name for name, _ in sections]).encode())
    texts = []
    omitted = []
    for name, text in sections:
        size = len(text.encode()) + 1
        if size > free:
            omitted.append(name)
        elif text:
            texts.append(text)
            free -= size
    if omitted:
        texts.append(_omission(omitted))
    return "\n".join(texts)


def comment_markdown(
    record: RunRecord, *, banks: Mapping[str, ItemBank], alarms: Sequence[Alarm] = (), link: str = ""
) -> str:
    """Return the summary for a comment of a pull request, with `COMMENT_MARK`, and a link if it is an http address."""
    text = summary_markdown(record, banks=banks, alarms=alarms, limit=_COMMENT)
    comment = f"{COMMENT_MARK}\n{text}"
    if _LINK.fullmatch(link):
        comment += f"\n[The whole report]({link})\n"
    return comment


def _omission(names: Sequence[str]) -> str:
    return f"Left out for its length: {', '.join(names)}. The record and the HTML report have everything.\n"


def _headline(record: RunRecord) -> str:
    if words.promoted(record):
        sign = "✅"
    else:
        sign = "⛔"
    facts = [f"run {_inline(record.run, _NAME)}", f"started {_inline(record.started, _NAME)}"]
    if record.seconds:
        facts.append(f"{record.seconds:.0f} s")
    text = f"## {sign} {words.promotion(record)}\n\n{words.why(record)}\n\n"
    for warning in record.warnings:
        text += f"> {_LET_THROUGH} {_inline(warning, _SENTENCE)}\n\n"
    return f"{text}<sub>{', '.join(facts)}</sub>\n"


def _gates(record: RunRecord, notes: Sequence[str]) -> str:
    """Return the table of gates, without notes that are listed below it."""
    if not record.gates:
        return ""
    rows = []
    for gate in sorted(record.gates, key=lambda gate: WORST_FIRST.index(gate.outcome))[:_ROWS]:
        sign = _SIGNS[gate.outcome]
        if gate.verdict.allowed:
            sign = _LET_THROUGH
        text, formula = sentence_and_formula(record, gate, notes)
        found = _inline(text.sentence, _SENTENCE)
        if formula:
            found = f"**{found}**<br>{_inline(formula, _SENTENCE)}"
        rows.append((f"{sign} {gate.outcome.value}", _inline(gate.name, _NAME), found))
    return _table(("verdict", "gate", "what was found"), rows, len(record.gates))


def _step(step: Step) -> str:
    return f"**Next:** {_inline(step.text, _SENTENCE)}\n\n{_fenced(step.command)}\n"


def _interviews(entries: Sequence[ReportView]) -> str:
    if not entries:
        return ""
    rows = []
    for view in entries[:_ROWS]:
        end = _inline(view.end, _SENTENCE)
        error = view.record.void
        if error:
            end += f"<br>**void**: {_inline(error, _SENTENCE)}"
        names = [_inline(name or "-", _NAME) for name in (view.subject, view.place)]
        rows.append((*names, *map(_inline, (view.ability, view.result, view.asked)), end))
    table = _table(("subject", "bank", "ability", "accuracy", "asked", "ended because"), rows, len(entries))
    interviews = [view.record for view in entries]
    costs = words.cost_rows(interviews)
    cost_sentence = ""
    if len(costs) > 1:
        cost_cells = [list(map(_inline, row)) for row in costs[:_ROWS]]
        table += "\n" + _table(words.COST_HEADS, cost_cells, len(costs))
    elif costs:
        cost_sentence = f"Cost: {_inline(words.run_usage(interviews), _SENTENCE)}.  "
    return f"{table}\n<sub>{cost_sentence}{words.interval_note(interviews, ' ')}</sub>\n"


def _rows(view: ReportView) -> str:
    """Return the results of several models: a table of its subjects, best first."""
    evaluation = view.record
    text = f"### {_inline(view.place, _NAME)}\n\n{_inline(view.line, _SENTENCE)}\n\n"
    if evaluation.void:
        text += f"**void**: {_inline(evaluation.void, _SENTENCE)}\n\n"
    for metric, quantity in evaluation.metrics.items():
        percent = words.quantity_percent(quantity)
        heads = ["subject", f"{_inline(metric, _NAME)}, {percent}"]
        if any(row.rank or row.error is not None for row in quantity):
            heads += ["standard error", "rank"]
        rows = []
        for row in words.ranked(quantity):
            name = _inline(row.subject, _NAME)
            if row.subject == evaluation.subject.name:
                name = f"**{name}**"
            cells = (name, *map(_inline, words.quantity(row)))
            rows.append(cells[: len(heads)])
        text += _table(heads, rows[:_ROWS], len(rows)) + "\n"
    return text


def _categories(interview: EvaluationRecord) -> str:
    """Return the folded table of categories; an empty text for a bank without categories."""
    if not interview.categories:
        return ""
    rows = []
    for row in interview.categories[:_ROWS]:
        interval = words.category_accuracy(row, interview)
        if interval:
            accuracy = interval.in_words()
        else:
            accuracy = "-"
        asked = words.count(row.asked, row.size)
        counts = words.category_counts(row)
        rows.append((_inline(row.category or "none", _NAME), asked, counts, _inline(accuracy)))
    table = _table(("category", "asked", "right", "accuracy"), rows, len(interview.categories))
    return _folded(f"Accuracy by category: {_inline(interview.name or words.bank_name(interview), _NAME)}", table)


def _wrong(interviews: Sequence[EvaluationRecord], banks: Mapping[str, ItemBank]) -> str:
    texts = []
    for entry in answer_lists(interviews, banks, _WRONG):
        paragraphs = []
        if entry.note:
            paragraphs.append(entry.note)
        for answer in entry.answers:
            paragraphs.append(_answer(answer, several=len(interviews) > 1))
        texts.append(_folded(_inline(entry.title, _SENTENCE), "\n".join(paragraphs)))
    return "\n".join(texts)


def _answer(answer: ShownAnswer, *, several: bool) -> str:
    """Return one wrong answer with its question, and with its evaluation if the record has several."""
    interview, asked = answer.interview, answer.asked
    title = f"**{_inline(words.asked_item(asked), _NAME)}**"
    if several:
        title += f" of {_inline(interview.name or words.bank_name(interview), _NAME)}"
    if answer.chance is not None:
        title += f", right with a chance of {number(answer.chance, 2)}"
    lines = [title]
    if answer.question:
        lines += [f"asked: {_inline(answer.question, _QUESTION)}", f"expected: {_inline(answer.expected, _NAME)}"]
    if not asked.text.strip():
        return "\n\n".join([*lines, "an empty answer\n"])
    return "\n\n".join([*lines, "answered:", _fenced(asked.text)])


def _listed(title: str, texts: Sequence[str]) -> str:
    if not texts:
        return ""
    lines = []
    for text in texts[:_ROWS]:
        entry = _inline(text, _SENTENCE)
        if entry[:1] in _BLOCKS:  # an entry must not begin a list, a heading or a rule of its own
            entry = f"{_GAP}{entry}"
        lines.append(f"- {entry}\n")
    if len(texts) > _ROWS:
        lines.append(f"- and {len(texts) - _ROWS} more in the record\n")
    return f"### {title}\n\n{''.join(lines)}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], total: int) -> str:
    lines = []
    for cells in (heads, ["---"] * len(heads), *rows):
        lines.append(f"| {' | '.join(cells)} |\n")
    if total > _ROWS:
        lines.append(f"\nand {total - _ROWS} more in the record\n")
    return "".join(lines)


def _folded(summary: str, text: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{text}\n</details>\n"


def _fenced(text: str) -> str:
    """Return a block of foreign text, between longer fences than it contains."""
    content = clean_html(text, _ANSWER)
    lines = content.split("\n")
    if len(lines) > _LINES:
        content = "\n".join([*lines[:_LINES], f"… ({len(lines) - _LINES} more lines)"])
    longest_run = max(map(len, re.findall("`+", content)), default=0)
    fence = "`" * max(3, 1 + longest_run)
    return f"{fence}text\n{content}\n{fence}\n"


def _inline(text: Any, limit: int | None = None) -> str:
    """Return foreign text for a line, a cell or a list."""
    return _ACTIVE.sub(_escaped, " ".join(clean_html(text, limit).split()))


def _escaped(match: re.Match[str]) -> str:
    if match.lastgroup == "name":
        return match[0] + _GAP
    return _ESCAPES.get(match[0]) or f"\\{match[0]}"
