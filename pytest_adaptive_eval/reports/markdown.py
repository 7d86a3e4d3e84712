r"""The summary of a run in GitHub's Markdown, for the page of a workflow or a pull request.

Text from elsewhere is shown as it is and never works: it cannot leave its cell
or its fence, name a person, refer to an issue, or become a link, an image or
HTML.  Where a backslash or an entity is not enough, because GitHub looks for
names and addresses in the finished page, an invisible space parts them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.records.run_record import Administration, GateRecord, InterviewRecord, RunRecord, StudyRecord
from pytest_adaptive_eval.reports import words
from pytest_adaptive_eval.reports.markup import clean_html
from pytest_adaptive_eval.reports.questions import AskedItems, asked_text, expected_answer
from pytest_adaptive_eval.text import number

if TYPE_CHECKING:
    from pytest_adaptive_eval.items.bank import ItemBank
    from pytest_adaptive_eval.records.drift import Alarm

__all__ = ["WORST_FIRST", "summary_markdown"]

#: Outcomes in the order in which a reader wants them.
WORST_FIRST = (Outcome.ERROR, Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS)
_SIGNS = {Outcome.PASS: "✅", Outcome.FAIL: "❌", Outcome.INCONCLUSIVE: "❔", Outcome.ERROR: "🛑"}
_LET_THROUGH = "⚠️"
#: Longest name, sentence and question, in characters; what is cut is in the record.
_NAME, _SENTENCE, _QUESTION = 100, 600, 300
#: Rows of a table, and lines of a list.
_ROWS = 200
#: Wrong answers shown, and of each the characters and lines.
_WRONG, _ANSWER, _LINES = 5, 600, 12
#: In bytes, enough for the headline and for telling what was left out.
_LEAST = 2_000

#: What Markdown or GitHub takes for more than text.
_ACTIVE = re.compile(
    r"(?P<name>[@#](?=\S)|\bgh-(?=\d)|:(?=//|[\w+-]*[a-z_+-][\w+-]*:|100:|1234:)|www(?=\.))|(?P<mark>[\\*_~\[\]])"
    r"|(?P<sign>[<>&|`$])",
    re.IGNORECASE,
)
#: How a list, a heading or a rule begins, if nothing stands before it.
_BLOCKS = (*"-+=#0123456789", "")
_WRITTEN = {
    "<": "&lt;",
    ">": "&gt;",
    "&": "&amp;",
    "|": "&#124;",
    "`": "&#96;",
    "$": "<span>$</span>",  # as GitHub has it, which takes dollars for mathematics
}
#: Parts what GitHub would join to a name or an address, and cannot be seen.
_GAP = "&#8203;"


def summary_markdown(
    record: RunRecord,
    *,
    banks: Mapping[str, ItemBank] = MappingProxyType({}),
    alarms: Sequence[Alarm] = (),
    limit: int = 900_000,
) -> str:
    """A run for people who read the page of a workflow or a pull request.

    Parameters
    ----------
    record : RunRecord
    banks : mapping of str to ItemBank
        By the interview's name, where at hand: wrong answers are then shown with what was asked and expected.
    alarms : sequence of Alarm
        That this run raised.
    limit : int
        Bytes in UTF-8, at least 2000.  Sections that do not fit are left out
        whole, and the summary says which.  GitHub drops a summary of more
        than 1 MiB, and refuses a comment of more than 65,536 characters.
    """
    notes = _notes(record)
    sections = [
        ("", _headline(record)),
        ("gates", _gates(record.gates, notes)),
        ("drift", _listed("Drift", [alarm.sentence for alarm in alarms])),
        ("interviews", _interviews(record.interviews)),
        ("studies", "\n".join(filter(None, map(_study, record.studies[:_ROWS])))),
        ("notes", _listed("Notes", notes)),
        ("accuracy by category", "\n".join(filter(None, map(_categories, record.interviews[:_ROWS])))),
        ("wrong answers", _wrong(record.interviews, banks)),
    ]
    room = max(limit, _LEAST) - len(_left_out([name for name, _ in sections]).encode())
    shown, left_out = [], []
    for name, text in sections:
        size = len(text.encode()) + 1
        if size > room:
            left_out.append(name)
        elif text:
            shown.append(text)
            room -= size
    if left_out:
        shown.append(_left_out(left_out))
    return "\n".join(shown)


def _left_out(names: Sequence[str]) -> str:
    return f"Left out for its length: {', '.join(names)}. The record and the HTML report have everything.\n"


def _headline(record: RunRecord) -> str:
    sign = "✅" if words.promoted(record) else "⛔"
    about = [f"run {_inline(record.run, _NAME)}", f"started {_inline(record.started, _NAME)}"]
    if record.seconds:
        about.append(f"{record.seconds:.0f} s")
    warned = "".join(f"> {_LET_THROUGH} {_inline(text, _SENTENCE)}\n\n" for text in record.warnings)
    return f"## {sign} {words.promotion(record)}\n\n{words.why(record)}\n\n{warned}<sub>{', '.join(about)}</sub>\n"


def _gates(gates: Sequence[GateRecord], told: Sequence[str]) -> str:
    """What the gates found, without what the notes tell once for all of them."""
    if not gates:
        return ""
    ordered = sorted(gates, key=lambda gate: WORST_FIRST.index(words.outcome(gate)))
    rows = []
    for gate in ordered[:_ROWS]:
        outcome = words.outcome(gate)
        sentence = str(gate.verdict.get("sentence") or "the record holds no verdict for this gate")
        for note in told:
            sentence = sentence.replace(f"; {' '.join(str(note).split())}", "")
        rows.append(
            (
                f"{_LET_THROUGH if gate.let_through else _SIGNS[outcome]} {outcome.value}",
                _inline(gate.name, _NAME),
                _inline(sentence.removeprefix(f"{outcome.value} "), _SENTENCE),
            )
        )
    return _table(("verdict", "gate", "what was found"), rows, len(gates))


def _interviews(interviews: Sequence[InterviewRecord]) -> str:
    if not interviews:
        return ""
    rows = []
    for interview in interviews[:_ROWS]:
        missing, error = words.missing(interview), words.void(interview)
        end = words.stop(interview) + (f" (no score: {missing})" if missing else "")
        rows.append(
            (
                _inline(interview.subject.get("name") or "-", _NAME),
                _inline(words.bank_name(interview) or "-", _NAME),
                _inline(words.ability(interview)),
                _inline(words.accuracy(interview)),
                _inline(words.share(interview)),
                _inline(end, _SENTENCE) + (f"<br>**void**: {_inline(error, _SENTENCE)}" if error else ""),
            )
        )
    table = _table(("subject", "bank", "ability", "accuracy", "asked", "ended because"), rows, len(interviews))
    percents = sorted({f"{200 * words.confidence(interview) - 100:.4g} %" for interview in interviews})
    text = f"intervals are two-sided at {' and '.join(percents)}"
    if unit := words.ability_unit(interviews):
        text = f"{unit}; {text}"
    return f"{table}\n<sub>{text}</sub>\n"


def _study(study: StudyRecord) -> str:
    """What a study found: a table of its subjects, best first."""
    told = "; ".join(filter(None, (words.study_line(study), words.study_cost(study))))
    text = f"### {_inline(words.study_name(study), _NAME)}\n\n{_inline(told, _SENTENCE)}\n\n"
    if study.error:
        text += f"**void**: {_inline(study.error, _SENTENCE)}\n\n"
    for metric, given in words.quantities(study).items():
        ranked = any("rank" in row or "error" in row for row in given)
        heads = ("subject", f"{_inline(metric, _NAME)}, {words.sure(given)}", "standard error", "rank")
        rows = []
        for row in words.ranked(given):
            mark = "**" if row.get("subject") == study.candidate else ""
            cells = (f"{mark}{_inline(row.get('subject'), _NAME)}{mark}", *map(_inline, words.quantity(row)))
            rows.append(cells if ranked else cells[:2])
        text += _table(heads if ranked else heads[:2], rows[:_ROWS], len(rows)) + "\n"
    return text


def _categories(interview: InterviewRecord) -> str:
    """Folded; empty where the bank has no categories."""
    if not interview.categories:
        return ""
    rows = []
    for row in interview.categories[:_ROWS]:
        i = row.get("accuracy")
        shown = f"{number(i['estimate'])} [{number(i['low'])}, {number(i['high'])}]" if i else "-"
        asked = f"{row.get('asked')}/{row.get('size')}"
        rows.append((_inline(row.get("category") or "none", _NAME), _inline(asked), _inline(shown)))
    table = _table(("category", "asked", "accuracy"), rows, len(interview.categories))
    return _details(f"Accuracy by category: {_inline(interview.name or words.bank_name(interview), _NAME)}", table)


def _notes(record: RunRecord) -> list[str]:
    """The standing notes, and what several gates note."""
    given = (gate.verdict.get("notes") for gate in record.gates)
    each = Counter(note for notes in given if isinstance(notes, list) for note in dict.fromkeys(map(str, notes)))
    return list(dict.fromkeys([*words.standing_notes(record), *(note for note, n in each.items() if n > 1)]))


def _wrong(interviews: Sequence[InterviewRecord], banks: Mapping[str, ItemBank]) -> str:
    """Some wrong answers, first those that were least expected."""
    wrong = [
        (interview, asked)
        for interview in interviews
        for asked in interview.administrations
        if asked.score is not None and asked.score < 0.5
    ]
    if not wrong:
        return ""
    least = sorted(wrong, key=lambda pair: -(pair[1].predicted or 0.0))[:_WRONG]
    several = len(interviews) > 1
    text = "\n".join(
        _answer(interview, asked, banks.get(interview.name), several=several) for interview, asked in least
    )
    how_many = f", the {len(least)} least expected of {len(wrong)}" if len(wrong) > len(least) else ""
    return _details(f"Wrong answers{how_many}", text)


def _answer(interview: InterviewRecord, asked: Administration, bank: ItemBank | None, *, several: bool) -> str:
    of = f" of {_inline(interview.name or words.bank_name(interview), _NAME)}" if several else ""
    foretold = None if interview.bank.get("calibrated") is False else asked.predicted
    chance = "" if foretold is None else f", right with a chance of {number(foretold, 2)}"
    lines = [f"**{_inline(words.asked_item(asked), _NAME)}**{of}{chance}"]
    item, _ = AskedItems(interview, bank).find(asked)
    if item is not None:
        lines += [
            f"asked: {_inline(asked_text(item), _QUESTION)}",
            f"expected: {_inline(expected_answer(item), _NAME)}",
        ]
    if not asked.text.strip():
        return "\n\n".join([*lines, "an empty answer\n"])
    return "\n\n".join([*lines, "answered:", _fenced(asked.text)])


def _listed(title: str, texts: Sequence[str]) -> str:
    if not texts:
        return ""
    shown = [_inline(text, _SENTENCE) for text in texts[:_ROWS]]
    # no list, heading or rule within the list
    lines = [f"- {_GAP if text[:1] in _BLOCKS else ''}{text}\n" for text in shown]
    if len(texts) > _ROWS:
        lines.append(f"- and {len(texts) - _ROWS} more in the record\n")
    return f"### {title}\n\n{''.join(lines)}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], total: int) -> str:
    lines = [f"| {' | '.join(cells)} |\n" for cells in (heads, ["---"] * len(heads), *rows)]
    more = f"\nand {total - _ROWS} more in the record\n" if total > _ROWS else ""
    return "".join(lines) + more


def _details(summary: str, text: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{text}\n</details>\n"


def _fenced(text: str) -> str:
    """A block of foreign text, within more backticks than it has in a row."""
    shown = clean_html(text, _ANSWER)
    lines = shown.split("\n")
    if len(lines) > _LINES:
        shown = "\n".join([*lines[:_LINES], f"… ({len(lines) - _LINES} more lines)"])
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", shown)), default=0))
    return f"{fence}text\n{shown}\n{fence}\n"


def _inline(text: Any, limit: int | None = None) -> str:
    """Foreign text within a line, a cell or a list."""
    return _ACTIVE.sub(_inert, " ".join(clean_html(text, limit).split()))


def _inert(match: re.Match[str]) -> str:
    found = match[0]
    if match.lastgroup == "name":
        return found + _GAP
    return _WRITTEN.get(found) or f"\\{found}"
