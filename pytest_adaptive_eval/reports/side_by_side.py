"""Tables of models or prompts that one evaluation asked side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.records.pairs import CONFIDENCE
from pytest_adaptive_eval.records.parts import Pair
from pytest_adaptive_eval.records.run_record import Administration, RunRecord
from pytest_adaptive_eval.reports import words
from pytest_adaptive_eval.reports.history import aligned
from pytest_adaptive_eval.reports.questions import AskedItems, asked_text, expected_answer
from pytest_adaptive_eval.text import clean_terminal, counted, number

if TYPE_CHECKING:
    from pytest_adaptive_eval.items.bank import ItemBank

_NAME = 60  #: Columns of a name.
VARIANTS = ("model or prompt", "accuracy", "asked")  #: Heads of the table of results.
PAIRS = ("better", "than", "by", "interval (* excludes 0)", "basis")  #: Heads of the table of differences.


class SideBySide(NamedTuple):
    """One evaluation of several models or prompts: cells of `VARIANTS` and `PAIRS`, and the interval of each pair."""

    name: str
    variants: list[list[str]]
    pairs: list[list[str]]
    intervals: list[Interval | None]


class ItemAnswers(NamedTuple):
    """Answers of all models or prompts to one item, by their names in order; None for one that was not asked it.

    Args:
        question, expected: Empty where the bank is not at hand.
    """

    item: str
    question: str
    expected: str
    answers: list[Administration | None]

    @property
    def agreement(self) -> int:
        """0 where results differ, 1 where texts do, else 2."""
        given = [answer for answer in self.answers if answer is not None]
        if len({answer.score for answer in given}) > 1:
            return 0
        if len({answer.text for answer in given}) > 1:
            return 1
        return 2


def answers_of_all(record: RunRecord, group: str, banks: Mapping[str, ItemBank]) -> tuple[list[str], list[ItemAnswers]]:
    """Return the models or prompts of an evaluation, and their answers by item: items with different results first."""
    interviews = [interview for interview in record.interviews if interview.group == group]
    by_item: dict[str, list[Administration | None]] = {}
    texts: dict[str, tuple[str, str]] = {}
    for n, interview in enumerate(interviews):
        items = AskedItems(interview, banks.get(interview.name))
        for asked in interview.administrations:
            if asked.sample:
                continue
            by_item.setdefault(asked.item, [None] * len(interviews))[n] = asked
            item, _ = items.find(asked)
            if item is not None:
                texts.setdefault(asked.item, (asked_text(item, last=True), expected_answer(item)))
    rows = [ItemAnswers(item, *texts.get(item, ("", "")), answers) for item, answers in by_item.items()]
    return [interview.variant for interview in interviews], sorted(rows, key=lambda row: row.agreement)


def side_by_side(record: RunRecord) -> list[SideBySide]:
    """Return the evaluations of several models or prompts, in order."""
    variants: dict[str, list[list[str]]] = {}
    for interview in record.interviews:
        if interview.group:
            row = [interview.variant, words.accuracy(interview), words.share(interview)]
            variants.setdefault(interview.group, []).append(row)
    tables = []
    for name, rows in variants.items():
        pairs = []
        intervals = []
        for pair in record.differences:
            if pair.evaluation == name:
                intervals.append(pair.interval)
                better, other, difference, interval, star, basis = pair_cells(pair)
                starred = " ".join(filter(None, [interval, star]))
                pairs.append([better, other, difference, starred, basis])
        tables.append(SideBySide(name, rows, pairs, intervals))
    return tables


def side_by_side_lines(record: RunRecord) -> list[str]:
    """Return the tables as lines of a terminal."""
    lines: list[str] = []
    for table in side_by_side(record):
        rows = []
        for row in table.variants:
            rows.append([clean_terminal(cell, _NAME) for cell in row])
        lines += [f"side by side: {clean_terminal(table.name, _NAME)}"]
        for line in aligned([list(VARIANTS), *rows], [], "  "):
            lines.append(f"  {line}")
        if table.pairs:
            for line in aligned([list(PAIRS), *table.pairs], [2], "  "):
                lines.append(f"  {line}")
    return lines


def pair_lines(pairs: Sequence[Pair]) -> list[str]:
    """Return the table of all pairs of subjects, by evaluation."""
    compared = sum(pair.interval is not None for pair in pairs)
    lines = [f"{counted(compared, 'pair')}; all intervals together hold with {100 * CONFIDENCE:g} %, * excludes 0"]
    for name in dict.fromkeys(pair.evaluation for pair in pairs):
        rows = [["better", "than", "accuracy", "", "", ""]]
        for pair in pairs:
            if pair.evaluation == name:
                rows.append(pair_cells(pair))
        lines += ["", clean_terminal(name, _NAME), *aligned(rows, [2], "  ")]
    return lines


def pair_cells(pair: Pair) -> list[str]:
    """Return better, other, difference, interval, a star where it excludes 0, and basis."""
    names = []
    for name in pair.subjects:
        names.append(clean_terminal(name, _NAME, keep_end=True))
    if pair.interval is None:
        return [*names, "", "", "", f"not compared: {clean_terminal(pair.refused)}"]
    if pair.shared:
        basis = f"paired on {counted(pair.shared, 'item')}"
    else:
        basis = "each by its own draws"
    interval = pair.interval
    sign = "+" if interval.estimate >= 0 else ""
    return [*names, f"{sign}{number(interval.estimate)}", interval.bounds_in_words(), "*" * pair.decided, basis]
