"""The summary at the end of a run, for a terminal or a log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.records.run_record import GateRecord, InterviewRecord, RunRecord, StudyRecord
from pytest_adaptive_eval.reports import words
from pytest_adaptive_eval.text import clean_terminal, columns, wrap

__all__ = ["Line", "Markup", "summary_lines", "verdict_lines", "write_lines"]

Markup = Mapping[str, bool]
#: Parts of one line with their markup, as pytest's terminal writer takes it.
Line = Sequence[tuple[str, Markup]]

_PLAIN: Markup = {}
_BOLD: Markup = {"bold": True}
_MARKUP: Mapping[Outcome, Markup] = {
    Outcome.PASS: {"green": True, "bold": True},
    Outcome.FAIL: {"red": True, "bold": True},
    Outcome.INCONCLUSIVE: {"yellow": True, "bold": True},
    Outcome.ERROR: {"red": True, "bold": True},
}
_HEADS = ("subject", "bank", "ability", "accuracy", "asked")
#: Head of the last column, which gives way to a second line where the terminal is narrow.
_END = "ended because"
#: Columns whose cells end at the same place.
_RIGHT = ("ability", "asked")
#: Names are not shown longer than this; what is cut is in the record.
_NAME = 60
#: An error or a note ends after this many columns; the record has all of it.
_SENTENCE = 600


def write_lines(lines: Iterable[Line], write: Callable[..., object]) -> None:
    """Write lines; whether colours show is the writer's choice.

    Parameters
    ----------
    lines : iterable of Line
    write : callable
        ``write(text, **markup)``, as of pytest's terminal reporter or terminal writer.
    """
    for line in lines:
        for text, markup in line:
            write(text, **markup)
        write("\n")


def summary_lines(
    record: RunRecord, width: int, *, written: Mapping[str, str | Path] | None = None, ascii_only: bool = False
) -> list[Line]:
    """What a run found: interviews, gates, notes, and where it was written.

    Parameters
    ----------
    record : RunRecord
    width : int
        Columns of the terminal.
    written : mapping, optional
        Files written, by what they are, such as ``{"JUnit report": path}``.
    ascii_only : bool
        For a terminal that cannot show other characters.

    Returns
    -------
    list of Line
        For `write_lines`; empty when there is nothing to tell.
    """
    width = max(width, 40)
    lines: list[Line] = []
    if record.interviews:
        lines += _interviews(record.interviews, width)
    if record.studies:
        lines += [*([()] if lines else []), *_studies(record.studies, width)]
    if record.gates:
        lines += [*([()] if lines else []), *verdict_lines(record, width, brief=True)]
    for warning in _warnings(record, width):
        lines += [*([()] if lines else []), *warning]
    notes = [wrap(clean_terminal(note, _SENTENCE), width, "  ", "- ") for note in words.standing_notes(record)]
    files = [wrap(clean_terminal(str(path)), width, "  ", f"{name}: ") for name, path in (written or {}).items()]
    for block in (notes, files):
        if block:
            lines += [*([()] if lines else []), *(((text, _PLAIN),) for group in block for text in group)]
    return [_as_ascii(line) for line in lines] if ascii_only else lines


def verdict_lines(record: RunRecord, width: int, *, brief: bool = False) -> list[Line]:
    """One verdict a gate, for the summary, or for ``-q`` with the warnings.

    Parameters
    ----------
    record : RunRecord
    width : int
    brief : bool
        Leave out what the rest of the summary says already: its notes and warnings.
    """
    told = words.standing_notes(record) if brief else []
    name_it = len(record.interviews) + len(record.studies) > 1
    head = max((len(words.outcome(gate).value) for gate in record.gates), default=0)
    lines: list[Line] = []
    for gate in record.gates:
        outcome = words.outcome(gate)
        of = f" ({clean_terminal(gate.interview, _NAME)})" if name_it and gate.interview not in ("", gate.name) else ""
        text = f"{clean_terminal(gate.name, _NAME, keep_end=True)}{of}: {_claim(gate, told)}"
        first, *more = wrap(text, width, " " * (head + 2), outcome.value.ljust(head + 2))
        lines.append(((first[:head], _MARKUP[outcome]), (first[head:], _PLAIN)))
        lines += (((line, _PLAIN),) for line in more)
    if not brief:
        lines += [line for warning in _warnings(record, width) for line in warning]
    return lines


def _warnings(record: RunRecord, width: int) -> list[list[Line]]:
    """What whoever promotes must know, each as its lines."""
    wrapped = [wrap(clean_terminal(warning, _SENTENCE), width, "  ", "WARNING: ") for warning in record.warnings]
    return [[((line, _MARKUP[Outcome.INCONCLUSIVE]),) for line in lines] for lines in wrapped]


def _claim(gate: GateRecord, told: Sequence[str]) -> str:
    """The verdict's sentence without its outcome and without the notes in `told`."""
    sentence = str(gate.verdict.get("sentence") or "the record holds no verdict for this gate")
    sentence = sentence.removeprefix(f"{gate.verdict.get('outcome')} ")
    for note in told:
        sentence = sentence.replace(f"; {note}", "")
    return clean_terminal(sentence, _SENTENCE)


def _interviews(interviews: Sequence[InterviewRecord], width: int) -> list[Line]:
    """A table where it fits, else a block an interview; then what the columns mean."""
    rows = [_cells(interview) for interview in interviews]
    ends = [_end(interview) for interview in interviews]
    wide = {name: max(len(name), *(columns(row[name]) for row in rows)) for name in _HEADS}
    table = sum(wide.values()) + 2 * (len(_HEADS) - 1)
    room = width - table - 2
    one_line = room >= max(len(_END), min(map(columns, ends)))
    lines: list[Line] = []
    if table <= width:
        head = _row({name: name for name in _HEADS}, wide) + (f"  {_END}" if one_line else "")
        lines.append(((head, _BOLD),))
    for interview, row, end in zip(interviews, rows, ends, strict=True):
        if one_line and columns(end) <= room:
            lines.append(((f"{_row(row, wide)}  {end}", _PLAIN),))
        elif table <= width:
            lines.append(((_row(row, wide).rstrip(), _PLAIN),))
            lines += (((line, _PLAIN),) for line in wrap(end, width, "    "))
        else:
            lines += _block(row, end, width)
        if error := words.void(interview):
            text = wrap(f"void: {clean_terminal(error, _SENTENCE)}", width, "    ")
            lines += (((line, _MARKUP[Outcome.ERROR]),) for line in text)
    return [*lines, *_legend(interviews, width)]


def _studies(studies: Sequence[StudyRecord], width: int) -> list[Line]:
    """What each study is, what it found of the candidate, what it cost, and why it is void."""
    lines: list[Line] = []
    for study in studies:
        name = clean_terminal(words.study_name(study), _NAME)
        told = "; ".join(filter(None, (words.study_line(study), words.study_cost(study))))
        first, *more = wrap(clean_terminal(told, _SENTENCE), width, "    ", f"{name}: ")
        lines += [((first[: len(name)], _BOLD), (first[len(name) :], _PLAIN)), *(((line, _PLAIN),) for line in more)]
        if study.error:
            text = wrap(f"void: {clean_terminal(study.error, _SENTENCE)}", width, "    ")
            lines += (((line, _MARKUP[Outcome.ERROR]),) for line in text)
    return lines


def _cells(interview: InterviewRecord) -> dict[str, str]:
    return {
        "subject": clean_terminal(interview.subject.get("name") or "-", _NAME, keep_end=True),
        "bank": clean_terminal(words.bank_name(interview) or "-", _NAME),
        "ability": words.ability(interview),
        "accuracy": words.accuracy(interview),
        "asked": words.share(interview),
    }


def _end(interview: InterviewRecord) -> str:
    missing, noise = words.missing(interview), words.noise(interview)
    told = [f"no score: {missing}"] if missing else []
    told += [f"decoding noise {noise}"] if noise else []
    return clean_terminal(words.stop(interview) + (f" ({'; '.join(told)})" if told else ""), _SENTENCE)


def _row(cells: Mapping[str, str], wide: Mapping[str, int]) -> str:
    return "  ".join(_padded(name, cells[name], space) for name, space in wide.items())


def _padded(name: str, text: str, space: int) -> str:
    room = " " * (space - columns(text))
    return room + text if name in _RIGHT else text + room


def _block(row: Mapping[str, str], end: str, width: int) -> list[Line]:
    """Who and on what, the numbers with their names, why it ended."""
    lines: list[Line] = [((line, _BOLD),) for line in wrap(f"{row['subject']} on {row['bank']}", width, "  ", "")]
    text = "  "
    for field in (*(f"{name} {row[name]}" for name in ("ability", "accuracy", "asked")), end):
        if text.strip() and columns(text) + 3 + columns(field) > width:
            lines.append(((text, _PLAIN),))
            text = "  "
        text += field if not text.strip() else f" · {field}"
    return [*lines, *(((line, _PLAIN),) for line in wrap(text.strip(), width, "  "))]


def _legend(interviews: Sequence[InterviewRecord], width: int) -> list[Line]:
    percents = sorted({f"{200 * words.confidence(interview) - 100:.4g}%" for interview in interviews})
    text = f"intervals are two-sided at {' and '.join(percents)}"
    if unit := words.ability_unit(interviews):
        text = f"{unit}; {text}"
    return [((line, {"light": True}),) for line in wrap(text, width)]


def _as_ascii(line: Line) -> Line:
    return [(_ascii(text), markup) for text, markup in line]


def _ascii(text: str) -> str:
    for ours, plain in ((" ± ", " +- "), (" · ", ", "), ("…", "...")):
        text = text.replace(ours, plain)
    return text.encode("ascii", "backslashreplace").decode("ascii")
