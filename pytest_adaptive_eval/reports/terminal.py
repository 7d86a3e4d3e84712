"""The summary at the end of a run, for a terminal or a log."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from pytest_adaptive_eval.gates.verdict import Outcome, claim_in_words
from pytest_adaptive_eval.records.run_record import EvaluationRecord, GateRecord, RunRecord
from pytest_adaptive_eval.reports import words
from pytest_adaptive_eval.reports.questions import AnswerList, ShownAnswer, answer_lists
from pytest_adaptive_eval.reports.side_by_side import side_by_side_lines
from pytest_adaptive_eval.reports.verdict_text import Step, VerdictText, next_steps, verdict_text
from pytest_adaptive_eval.reports.view import ReportView, standing_notes, views
from pytest_adaptive_eval.text import clean_terminal, columns, wrap

if TYPE_CHECKING:
    from pytest_adaptive_eval.items.bank import ItemBank

Markup = Mapping[str, bool]
Line = Sequence[tuple[str, Markup]]  #: Parts of one line with their markup, as pytest's terminal writer takes it.

_PLAIN: Markup = {}
_BOLD: Markup = {"bold": True}
_MARKUP: Mapping[Outcome, Markup] = {
    Outcome.PASS: {"green": True, "bold": True},
    Outcome.FAIL: {"red": True, "bold": True},
    Outcome.INCONCLUSIVE: {"yellow": True, "bold": True},
    Outcome.ERROR: {"red": True, "bold": True},
}
_HEADS = ("subject", "bank", "ability", "accuracy", "asked")
_END = "ended because"  #: Head of the last column, which moves to a second line in a narrow terminal.
_RIGHT = ("ability", "asked")  #: Columns that are aligned to the right.
WRONG, WRONG_LINES = 5, 2  #: Wrong answers, and lines of a question or an answer.
_NAME, _SENTENCE = 60, 600  #: Columns of a name, and of an error or a note; the record has all of it.


def write_lines(lines: Iterable[Line], write: Callable[..., object]) -> None:
    """Write lines by ``write(text, **markup)``, as of pytest's terminal writer, which decides whether colours show."""
    for line in lines:
        for text, markup in line:
            write(text, **markup)
        write("\n")


def summary_lines(
    record: RunRecord,
    width: int,
    *,
    written: Mapping[str, str | Path] | None = None,
    details: bool = True,
    banks: Mapping[str, ItemBank] = MappingProxyType({}),
    steps: Sequence[Step] | None = None,
) -> list[Line]:
    """Return the summary of a run: evaluations, gates, notes, and written files.

    Args:
        written: Files written, by their content, such as ``{"JUnit report": path}``.
        details: The table of interviews, whole verdicts, wrong answers and all notes; otherwise a line for each gate,
            and for each interview that no gate judges, and wrong answers of gates that did not hold.
        banks: Available banks by the interview's name; they add questions and expected answers to wrong answers.
        steps: What to do next, where it is not what follows from the verdicts.
    """
    width = max(width, 40)
    if steps is None:
        steps = next_steps(record)
    if details:
        blocks = _detailed_blocks(record, width, banks)
    else:
        blocks = _brief_blocks(record, width, banks)
    ends = _cost_lines(record.interviews, width)
    reused = words.reused(record.interviews)
    if reused:
        ends += wrap(clean_terminal(reused, _SENTENCE), width, "  ", "reuse: ")
    flaky = words.flaky(record.interviews)
    if flaky:
        ends += wrap(clean_terminal(flaky, _SENTENCE), width, "  ", "flaky: ")
    for name, path in (written or {}).items():
        ends += wrap(clean_terminal(str(path)), width, "  ", f"{name}: ")
    lines: list[Line] = []
    for block in filter(None, [*blocks, _next_lines(steps, width), _styled(ends)]):
        if lines:
            lines.append(())
        lines += block
    return lines


def _cost_lines(interviews: Sequence[EvaluationRecord], width: int) -> list[str]:
    """Return the cost in one sentence, or as a table of several models where it fits."""
    costs = [words.COST_HEADS, *words.cost_rows(interviews)]
    if all(row[-1] == "-" for row in costs[1:]):  # no price is known
        costs = [row[:-1] for row in costs]
    rows = []
    for row in costs:
        rows.append(tuple(clean_terminal(cell, _NAME) for cell in row))
    widths = []
    for column in zip(*rows, strict=True):
        widths.append(max(map(columns, column)))
    table_width = sum(widths) + 2 * (len(widths) - 1)
    if len(rows) <= 2 or table_width > width:
        spent = clean_terminal(words.run_usage(interviews), _SENTENCE)
        if spent:
            return wrap(spent, width, "  ", "cost: ")
        return []
    lines = []
    for name, *numbers in rows:
        padded = []
        for cell, size in zip(numbers, widths[1:], strict=True):
            padded.append(" " * (size - columns(cell)) + cell)
        lines.append("  ".join([name + " " * (widths[0] - columns(name)), *padded]))
    return lines


def _detailed_blocks(record: RunRecord, width: int, banks: Mapping[str, ItemBank]) -> list[list[Line]]:
    notes = []
    for note in standing_notes(record):
        notes += wrap(clean_terminal(note, _SENTENCE), width, "  ", "- ")
    interviews = [view for view in views(record) if view.end]
    return [
        _interviews(interviews, width),
        _styled(side_by_side_lines(record)),
        _lines_of_others(record, width),
        change_lines(record, width),
        _answers(_lost_or_wrong(record, banks), width, several=len(record.interviews) > 1, named=True),
        _styled(notes),
        warning_lines(record, width),
        verdict_lines(record, width, details=True),
    ]


def _brief_blocks(record: RunRecord, width: int, banks: Mapping[str, ItemBank]) -> list[list[Line]]:
    unjudged = []
    for line, is_void in unjudged_lines(record, width):
        if is_void:
            markup = _MARKUP[Outcome.ERROR]
        else:
            markup = _PLAIN
        unjudged.append(((line, markup),))
    return [
        [*_lines_of_others(record, width), *unjudged, *verdict_lines(record, width)],
        change_lines(record, width),
        _wrong_of_gates(record, width, banks),
        _styled(side_by_side_lines(record)),
        warning_lines(record, width),
    ]


def _wrong_of_gates(record: RunRecord, width: int, banks: Mapping[str, ItemBank]) -> list[Line]:
    """Return some answers for which gates did not hold, on banks at hand: of comparisons with a baseline those lost."""
    kinds: dict[str, set[str]] = {}
    for gate in record.gates:
        if not gate.holds:
            by_baseline = gate.verdict.condition.get("kind") == "not_worse_than"
            kinds.setdefault(gate.interview, set()).add("lost" if by_baseline else "wrong")
    interviews = [interview for interview in record.interviews if interview.name in kinds.keys() & banks.keys()]
    wanted_kinds = set().union(*kinds.values())
    lists = [entry for entry in answer_lists(interviews, banks, WRONG) if entry.kind in wanted_kinds]
    return _answers(lists, width, several=len(interviews) > 1, named=False)


def _lost_or_wrong(record: RunRecord, banks: Mapping[str, ItemBank]) -> list[AnswerList]:
    return [entry for entry in answer_lists(record.interviews, banks, WRONG) if entry.kind != "gained"]


def _answers(lists: Sequence[AnswerList], width: int, *, several: bool, named: bool) -> list[Line]:
    """Return answers, each with its question and the expected answer if the bank is at hand.

    Args:
        several: Whether names of evaluations follow.
        named: Whether node ids of the questions follow.
    """
    lines: list[Line] = []
    for entry in lists:
        title = f"{entry.title[:1].lower()}{entry.title[1:]}"
        lines += [((line, _BOLD),) for line in wrap(clean_terminal(title, _SENTENCE), width, "  ", "")]
        for answer in entry.answers:
            lines += _answer(answer, width, several=several, named=named)
    return lines


def _answer(answer: ShownAnswer, width: int, *, several: bool, named: bool) -> list[Line]:
    name = words.asked_item(answer.asked)
    if several:
        name += f" of {answer.interview.name}"
    lines = _styled([f"  {clean_terminal(name, width - 2)}"])
    answer_text = answer.asked.text.strip() or "nothing"
    parts = {"asked": answer.question, "answered": answer_text, "expected": answer.expected}
    for name, part in parts.items():
        if part:
            line = clean_terminal(" ".join(part.split()), 3 * width)
            wrapped = wrap(line, width, " " * 14, f"    {name}: ".ljust(14))
            if len(wrapped) > WRONG_LINES:
                wrapped[WRONG_LINES:] = [f"{'':14}…"]
            lines += _styled(wrapped)
    if named and answer.nodeid:  # in one piece, to be pasted; two colons are a command at the start of a line alone
        nodeid = "::".join(map(clean_terminal, shlex.quote(answer.nodeid).split("::")))
        lines += _styled([f"    node id:  {nodeid}"])
    return lines


def _styled(texts: Iterable[str], markup: Markup = _PLAIN) -> list[Line]:
    return [((text, markup),) for text in texts]


def verdict_lines(record: RunRecord, width: int, *, details: bool = False) -> list[Line]:
    """Return each gate's formula and count, and beneath its sentence for anybody and the reason in at most two lines.

    The line of the outcome has the figures, since scripts look for them there.

    Args:
        details: Whole verdicts, without notes that the rest of the summary has, in place of formula and reason.
    """
    standing = standing_notes(record)
    head = max((len(gate.outcome.value) for gate in record.gates), default=0) + 2
    lines: list[Line] = []
    for gate in record.gates:
        outcome = gate.outcome
        title = gate.name
        if len(record.evaluations) > 1:
            title += _interview_of(gate)
        title = clean_terminal(title, max(width - head, NAME), keep_end=True)
        text = verdict_text(record, gate)
        sentence = clean_terminal(text.sentence, CLAIM)
        reason = "; ".join(reason for reason in _reasons(gate, standing) if reason not in sentence)
        if details:
            figures, reason = _whole(gate, standing), ""
        else:
            figures = _formula(record, gate, text)
        beneath = [reason]
        if text.number:
            beneath.insert(0, sentence)
        most = CLAIM if details else REASON_LINES
        interval = figures[: figures.find("]") + 1]
        first = f"{title}: {figures}"
        if columns(f"{title}: {interval}") > width - head:  # an interval is in one line
            beneath.insert(0, figures)
            first = title
        first, *rest = _cut([first], width, " " * head, most)
        lines.append(((outcome.value.ljust(head), _MARKUP[outcome]), (first.lstrip(), _PLAIN)))
        lines += _styled(rest)
        for line in beneath:
            lines += _styled(_cut([line], width, " " * head, most))
    return lines


def change_lines(record: RunRecord, width: int) -> list[Line]:
    """Return how evaluations changed since the last run, a line for each."""
    wrapped = [wrap(clean_terminal(text, _SENTENCE), width, "  ", "") for text in words.changes(record)]
    return [line for lines in wrapped for line in _styled(lines)]


def _whole(gate: GateRecord, standing: Sequence[str]) -> str:
    sentences = filter(None, [words.sentence_without(gate, standing), words.decided(gate)])
    return clean_terminal("; ".join(sentences), _SENTENCE)


def _formula(record: RunRecord, gate: GateRecord, text: VerdictText) -> str:
    """Return what was found and required in figures, or the verdict's only sentence, and the count."""
    verdict = gate.verdict
    parts = []
    if text.number:
        parts.append(_claim(gate, gate.outcome))
    else:
        parts.append(clean_terminal(text.sentence, CLAIM))
    if verdict.size:
        calls = words.calls(record.evaluation_named(gate.interview))
        parts.append(f"{words.count(verdict.asked, verdict.size, verdict.unit)}{calls}")
    return ", ".join(parts)


def warning_lines(record: RunRecord, width: int) -> list[Line]:
    """Return the run's warnings."""
    lines = []
    for warning in record.warnings:
        lines += wrap(clean_terminal(warning, _SENTENCE), width, "  ", "WARNING: ")
    return _styled(lines, _MARKUP[Outcome.INCONCLUSIVE])


def _interviews(views: Sequence[ReportView], width: int) -> list[Line]:
    """Return a table where it fits, else a block per interview; then the meaning of the columns."""
    if not views:
        return []
    rows = [_cells(view) for view in views]
    ends = [clean_terminal(view.end, _SENTENCE) for view in views]
    heads = {name: name for name in _HEADS}
    widths = {}
    for name in _HEADS:
        widths[name] = max(columns(row[name]) for row in (heads, *rows))
    table_width = sum(widths.values()) + 2 * (len(_HEADS) - 1)
    end_width = width - table_width - 2
    end_column = end_width >= max(len(_END), min(map(columns, ends)))
    lines: list[Line] = []
    fits = table_width <= width
    if fits:
        head = _row(heads, widths)
        if end_column:
            head += f"  {_END}"
        lines.append(((head, _BOLD),))
    for view, row, ending in zip(views, rows, ends, strict=True):
        if not fits:
            lines += _block(row, ending, width)
        elif end_column and columns(ending) <= end_width:
            lines += _styled([f"{_row(row, widths)}  {ending}"])
        else:
            lines += _styled([_row(row, widths).rstrip(), *wrap(ending, width, "    ")])
        lines += _void(view.record.void, width)
    note = words.interval_note([view.record for view in views], "")
    return [*lines, *_styled(wrap(note, width), {"light": True})]


def _void(error: str, width: int) -> list[Line]:
    if not error:
        return []
    text = f"void: {clean_terminal(error, _SENTENCE)}"
    return _styled(wrap(text, width, "    "), _MARKUP[Outcome.ERROR])


def _lines_of_others(record: RunRecord, width: int) -> list[Line]:
    """Return lines on evaluations of several models: the candidate's results, cost and error."""
    lines: list[Line] = []
    for view in views(record):
        if view.end:
            continue
        name = clean_terminal(view.place, _NAME)
        first, *more = wrap(clean_terminal(view.line, _SENTENCE), width, "    ", f"{name}: ")
        lines += [((first[: len(name)], _BOLD), (first[len(name) :], _PLAIN)), *_styled(more)]
        lines += _void(view.record.void, width)
    return lines


def _cells(view: ReportView) -> dict[str, str]:
    return {
        "subject": clean_terminal(view.subject or "-", _NAME, keep_end=True),
        "bank": clean_terminal(view.place or "-", _NAME),
        "ability": view.ability,
        "accuracy": view.result,
        "asked": view.asked,
    }


def _row(cells: Mapping[str, str], widths: Mapping[str, int]) -> str:
    padded = []
    for name, width in widths.items():
        cell = cells[name]
        padding = " " * (width - columns(cell))
        if name in _RIGHT:
            padded.append(padding + cell)
        else:
            padded.append(cell + padding)
    return "  ".join(padded)


def _block(row: Mapping[str, str], end: str, width: int) -> list[Line]:
    """Return subject and bank, the named numbers, and the reason of the end."""
    lines: list[Line] = _styled(wrap(f"{row['subject']} on {row['bank']}", width, "  ", ""), _BOLD)
    fields = [f"{name} {row[name]}" for name in ("ability", "accuracy", "asked")]
    text = ""
    for field in (*fields, end):
        longer = f"{text} · {field}"
        if not text:
            text = field
        elif columns(longer) + 2 > width:
            lines += _styled([f"  {text}"])
            text = field
        else:
            text = longer
    return [*lines, *_styled(wrap(text, width, "  "))]


REASON_LINES, NAME, CLAIM = 2, 60, 600  #: Most lines of a reason, columns of a name, and characters of a claim.


def _next_lines(steps: Sequence[Step], width: int) -> list[Line]:
    """Return what to do next; a command has its own line, from which it can be copied."""
    lines: list[Line] = []
    for step in steps:
        first, *more = wrap(step.text, width, "  ", "next: ")
        command = "::".join(map(clean_terminal, step.command.split("::")))  # two colons are a node id's here
        lines += [((first[:6], _BOLD), (first[6:], _PLAIN)), *_styled([*more, f"  {command}"])]
    return lines


def _reasons(gate: GateRecord, standing: Sequence[str]) -> list[str]:
    """Return a verdict's unanswered questions, its caveat, and without a decision the first note no other line has."""
    reasons = [gate.verdict.unanswered, gate.verdict.caveat]
    if gate.outcome in (Outcome.INCONCLUSIVE, Outcome.ERROR):
        reasons += [note for note in gate.verdict.notes if note not in standing][:1]
    return [clean_terminal(reason, CLAIM) for reason in reasons if reason]


def _interview_of(gate: GateRecord) -> str:
    """Return the name of a gate's interview in brackets, unless the gate's name, as of TOML files, has it."""
    name_says_it = gate.interview in ("", gate.name) or gate.name.startswith(f"{gate.interview}-")
    if name_says_it:
        return ""
    return f" ({clean_terminal(gate.interview, NAME)})"


def _claim(gate: GateRecord, outcome: Outcome) -> str:
    """Return what was found and what is required, as short as it can be said."""
    verdict = gate.verdict
    interval = verdict.interval
    if verdict.stated or not verdict.metric:
        return clean_terminal(verdict.stated or words.sentence_without(gate, ()), CLAIM)
    if interval is None:
        return clean_terminal(f"{verdict.metric} {verdict.requirement} required", CLAIM)
    bounds = interval.estimate, interval.low, interval.high
    claim = claim_in_words(outcome, verdict.metric, verdict.requirement, bounds, interval.method)
    return clean_terminal(claim, CLAIM)


def _cut(texts: Sequence[str], width: int, indent: str, most: int = REASON_LINES) -> list[str]:
    """Return texts in at most so many lines; an ellipsis marks a cut, which is between words."""
    lines = []
    for text in texts:
        if text:
            lines += wrap(text, width, indent)
    if len(lines) > most:
        last = lines[most - 1]
        while columns(last) + 2 > width and " " in last.strip():
            last = last.rpartition(" ")[0]
        lines[most - 1 :] = [f"{last} …"]
    return lines


def unjudged_lines(record: RunRecord, width: int) -> list[tuple[str, bool]]:
    """Return a line for each interview that no gate judges or that is void, and whether it is void."""
    lines: list[tuple[str, bool]] = []
    for view in views(record):
        interview = view.record
        is_void = bool(interview.void)
        if not view.end or (view.gates and not is_void):
            continue
        if is_void:
            text = f"void: {interview.void}"
        else:
            label = "" if interview.levels else "accuracy "
            text = f"{label}{view.result}, {view.asked}, {words.stop(interview)}"
        subject = clean_terminal(view.subject or "-", NAME, keep_end=True)
        title = f"{subject} on {clean_terminal(view.place or '-', NAME)}"
        for line in _cut([f"{title}: {clean_terminal(text, CLAIM)}"], width, ""):
            lines.append((line, is_void))
    return lines
