"""Accepted answers of questions without alternatives, and the graders that fit them."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from pytest_adaptive_eval.errors import DatasetError
from pytest_adaptive_eval.extensions.importing.answers import boxed, bracketed, tail, yes_or_no
from pytest_adaptive_eval.extensions.importing.choices import as_text, is_missing, literal, may_be_missing
from pytest_adaptive_eval.items.graders.kinds.words import normal_words
from pytest_adaptive_eval.items.reading.numbers import expected_numbers

#: Share of the answers that are of one kind, above which the others are refused one by one.
_KIND = 0.9
#: Grader of answers that are lists or objects, of which every entry counts in its order.
_OF_LISTS = "literal"
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:[ '\u2009\u202f]\d{3})+|(?:0|[1-9]\d*)(?:\.\d+)?|\.\d+)"
#: Word or sign of a unit: no variable, month or half of a day.
_UNIT = (
    r"(?!(?:[xyznkabti]|[ap]\.?m\.?|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*)\b)"
    r"(?:[^\W\d_]|[°%/µ$€£¥₹'\"])(?:[^\W\d_](?:\^?\d)?|[/²³·*.-])*"
)
_NUMBER = re.compile(
    rf"[-+−]?\s?(?:\\?[$€£¥₹]|US\$|USD|EUR)?\s?[-+−]?{_DIGITS}(?:[eE][-+]?\d+|\s?(?:[×x*·]|\\times|\\cdot)\s?10\s?(?:\^|\*\*)\s?\{{?-?\d+\}}?)?"
    rf"(?:\s\d+/\d+)?(?:\s?/\s?\d+)?(?:\s?\\?%|\s?{_UNIT}(?:\s{_UNIT})?|\s?\([^()]{{1,40}}\))?\.?",
    re.IGNORECASE,
)
_COMMANDS = re.compile(
    r"(?<!:)\\(?:[dtc]?frac|sqrt|cdot|times|div|pi|infty|left|right|begin|circ|leq?|geq?|neq?|pm|mp|cup|cap|in|theta|alpha|beta|"
    r"gamma|delta|lambda|mu|sigma|omega|phi|sum|prod|int|lim|log|ln|sin|cos|tan|exp|overline|binom|pmod|equiv|langle|"
    r"boxed|mathbb|mathcal|angle|emptyset|varnothing|[lc]?dots|to|sec|csc|cot|arc(?:sin|cos|tan))(?![A-Za-z])"
)
#: Numbers, single letters and names of functions with signs between them; and the signs of an expression among these.
_SIGNS = re.compile(
    r"(?:[\s\d.,()\[\]{}+\-−*/^=<>≤≥|!√π∞°\\$]|(?<![A-Za-z])[A-Za-z](?![A-Za-z])|sqrt|sin|cos|tan|log|ln|exp|pi)+"
)
_OPERATED = re.compile(r"[\^√π∞=<>≤≥]|\d\s?[a-z](?![A-Za-z])|[a-z)]\s?[+*/−-]\s?[\da-z(]|sqrt|\d\s?pi")
_TEXT_COMMAND = re.compile(r"\\(?:text|mathrm|textbf|mbox)\s*\{([^{}\\]*)\}")
_SHOWN = re.compile(
    r"(?:\A|[\s(\[])[(\[]?[Aa][)\].:、．]\s*\S.*?(?:[\s(\[])[(\[]?[Bb][)\].:、．]\s*\S|\sA\s+\S.*?\sB\s+\S.*?\sC\s+\S",
    re.DOTALL,
)
_LETTER = re.compile(r"\(?([A-Ja-j])\)?\.?")
#: Records from which letters, and from which the same answer to everything, are no answers.
_LETTERS_FROM, _CONSTANT_FROM = 3, 10
#: Number that hides an answer where no other answer is negative: least count, and share of the records.
_HIDDEN, _HIDDEN_COUNT, _HIDDEN_SHARE = "-1", 3, 0.05
#: Signs that hide an answer where all others are words.
_DASHES = ("-", "--", "–", "—", "?", "_")
#: Words of an answer above which no grader compares texts well, and classes that a prompt can list.
_LONG_WORDS, _CLASSES = 7, 12
#: Texts that are the same without punctuation only if they are; and first words of a question for yes or no.
_PLAIN = re.compile(r"[^\W_](?:[\w\s.,'’&/:-]*[\w.)'’])?\s*(?:\([^()]*\))?", re.UNICODE)
_MARKED_DIGITS = re.compile(r"\d[.,/:\-–]\d|\A[-+−]")
_ENTRIES = re.compile(r"[^\s,]{1,3}(?:\s?,\s?[^\s,]{1,3})+|\(.*,.*\)", re.DOTALL)
_ASKS = re.compile(
    r"(?i)(?:is|are|was|were|do|does|did|can|could|will|would|has|have|had|should|must|may|am)\b|.*\b(?:is|are|was|were|does|do|did|can|"
    r"has|have)\b[^.?!]*\?\s*\Z"
)
#: Numbers that may be one with a decimal comma, or two.
_COMMA = re.compile(r"-?\d+,(?!\d{3}(?:\D|\Z))\d+")
_CODES = re.compile(r"\d{1,2}")
#: Fields whose small numbers stand for classes.
_CODED = re.compile(
    r"(?i)(.*[._ ])?(label|labels|class|gold|gold_label|sentiment|coarse_label|fine_label|intent|category)"
)
#: Pairs of words for yes and no, of which a data set uses one.
_TRUTHS = ({"yes", "no"}, {"true", "false"}, {"y", "n"}, {"t", "f"})
#: Keys of an object that hold the answer, and other accepted ones.
_VALUE_KEYS = ("value", "answer", "text", "ground_truth", "exact_answer", "answer_text", "Value", "label")
_ALIAS_KEYS = ("aliases", "Aliases", "answer_aliases", "alternatives")


class Free(NamedTuple):
    """Grading of one question without alternatives.

    Args:
        classes: All answers of the data set, where they are few.
    """

    grader: str
    answers: tuple[str, ...]
    classes: tuple[str, ...] = ()


class Row(NamedTuple):
    """Question, accepted answers (at least one), and the answer as the data set writes it."""

    question: str
    answers: Sequence[str]
    value: Any


def accepted_answers(values: Sequence[Any], accepted: Sequence[Sequence[Any]]) -> list[list[str]]:
    r"""Return the accepted answers of all questions.

    A list is one answer, except a list of objects, and lists that all have one text. The text after ``####`` or in the
    last ``\boxed{}`` is the answer where most answers are such solutions.

    Args:
        values: Answer of each question: a text, number or truth value, a list, or an object that holds it; None for
            none.
    """
    lists = [value for value in values if isinstance(value, list) and value]
    unwrapped = all(len(value) == 1 and isinstance(value[0], str) for value in lists) and [] not in values
    texts = [_texts(value, unwrapped=unwrapped) + _each(more) for value, more in zip(values, accepted, strict=True)]
    firsts = [each[0] for each in texts if each]
    ends = [
        find for find in (tail, boxed, bracketed) if sum(find(text) is not None for text in firsts) * 2 > len(firsts)
    ]
    return [list(dict.fromkeys(_without_solution(text, ends) for text in each if text)) for each in texts]


def _without_solution(text: str, ends: Sequence[Any]) -> str:
    ended = next((end for find in ends if (end := find(text))), text)
    plain = _TEXT_COMMAND.fullmatch(ended.strip("$ "))
    return plain[1].strip() if plain else ended


def _texts(value: Any, *, unwrapped: bool) -> list[str]:
    if isinstance(value, list) and not (unwrapped or all(isinstance(entry, Mapping) for entry in value)):
        return [as_text(value)]
    return _each(value)


def _each(value: Any) -> list[str]:
    """Return the texts of all entries of a list, at any depth."""
    if isinstance(value, Mapping):
        if isinstance(value.get("output"), Mapping) and isinstance(value.get("tags"), list):  # a reference of HELM
            return _each(value["output"].get("text", "")) if "correct" in value["tags"] else []
        if "spans" in value or "date" in value:
            return _of_drop(value)
        if not holds_answer(value):
            return [as_text(value)]
        answer = next((value[key] for key in _VALUE_KEYS if not is_missing(value.get(key))), None)
        others: Any = next((value[key] for key in _ALIAS_KEYS if value.get(key)), [])
        return _each(answer) + _each(list(others))
    if isinstance(value, list | tuple):
        return [text for entry in value for text in _each(entry)]
    return [] if is_missing(value) else [as_text(value)]


def _of_drop(value: Mapping[str, Any]) -> list[str]:
    """Return a number, a date or spans, as DROP gives them."""
    if as_text(value.get("number", "")):
        return [as_text(value["number"])]
    spans = value.get("spans") or []
    if spans:
        return [", ".join(map(as_text, spans))]
    date = value.get("date") or {}
    parts = [as_text(date.get(part, "")) for part in ("day", "month", "year")] if isinstance(date, Mapping) else []
    return [text] if (text := " ".join(filter(None, parts))) else []


def holds_answer(value: Any) -> bool:
    """Return whether an object has a part that is the answer."""
    if not isinstance(value, Mapping):
        return False
    known = (*_VALUE_KEYS, *_ALIAS_KEYS, "spans", "date", "output")
    return any(key in value for key in known) or not value


def _is_number(text: str) -> bool:
    """Return whether a text is one number, with separators, a currency, a percent sign or a unit."""
    plain = text.strip().strip("$").strip()
    return bool(_NUMBER.fullmatch(plain)) and bool(expected_numbers(text))


def _is_formula(text: str) -> bool:
    """Return whether a text is an expression or has commands of LaTeX."""
    return bool(_COMMANDS.search(text)) or bool(
        _SIGNS.fullmatch(text) and _OPERATED.search(text) and re.search(r"[^\W_]", text)
    )


def is_list(text: str) -> bool:
    """Return whether a text is a list or an object as JSON or Python write it, or short entries with commas."""
    return isinstance(literal(text), list | dict) or bool(_ENTRIES.fullmatch(text.strip()))


def _truth_words(rows: Sequence[Row]) -> list[str | None]:
    """Return yes or no for each answer; None for one that is neither, or in other words than most."""
    texts = [as_text(row.value).strip(" .").casefold() for row in rows]
    best = max(_TRUTHS, key=lambda words: sum(text in words for text in texts))
    return [
        yes_or_no(row.value) if isinstance(row.value, bool) or text in best else None
        for row, text in zip(rows, texts, strict=True)
    ]


def choose_grader(
    rows: Sequence[Row],
    given: str = "",
    name: str = "",
    *,
    told: bool = False,
    mixed: bool = False,
    of_code: bool = False,
) -> list[Free | str]:
    """Return how each question is graded, or why it cannot be.

    Args:
        told: Whether the user says which texts mean a missing value.
        mixed: Whether other questions of the data set have alternatives.
        of_code: Whether the questions show programs, whose outputs are literals.

    Raises:
        DatasetError: The answers are long texts, which no grader compares; numbers that stand for classes without
            names; letters without choices; or the same for all questions.
    """
    if not given and rows and (of_code or _are_literals(rows)):
        given, told = _OF_LISTS, True  # None and -1 are values of a program
    reasons = [""] * len(rows) if told else _hidden(rows)
    known = [row for row, reason in zip(rows, reasons, strict=True) if not reason]
    chosen: list[Free | str] = []
    if known:
        chosen = [_given(row, given) for row in known] if given else _chosen(known, name, mixed=mixed)
    graded = iter(chosen)
    return [reason or next(graded) for reason in reasons]


def _are_literals(rows: Sequence[Row]) -> bool:
    """Return whether nearly all answers are literals of Python or JSON, and some are quoted texts, lists or objects."""
    kinds = [_literal_kind(row.answers[0]) for row in rows if len(row.answers) == 1]
    marked = sum(kind in (str, list, tuple, dict, set, bytes) for kind in kinds)
    return (
        len(kinds) >= _KIND * len(rows) > 0 and sum(map(bool, kinds)) >= _KIND * len(rows) and marked >= len(rows) / 10
    )


def _literal_kind(text: str) -> type | None:
    """Return the type of a literal of Python or JSON; None for other texts, and for entries with commas alone."""
    if _ENTRIES.fullmatch(text.strip()) and not text.lstrip().startswith(("(", "[", "{")):
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            return type(read(text.strip()))
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
    return None


def _hidden(rows: Sequence[Row]) -> list[str]:
    """Return why answers may be hidden or missing; empty for the others."""
    firsts = [row.answers[0] for row in rows]
    count = firsts.count(_HIDDEN)
    only = not any(text != _HIDDEN and text.startswith(("-", "−")) for text in firsts)
    hidden = only and count >= max(_HIDDEN_COUNT, _HIDDEN_SHARE * len(rows))
    named = [text for text in firsts if text not in _DASHES]
    dashes = _DASHES if named and all(any(map(str.isalpha, text)) for text in named) else ()
    reasons = []
    for row in rows:
        word = next((text for text in row.answers if may_be_missing(text) or text in dashes), "")
        if hidden and row.answers[0] == _HIDDEN:
            word = _HIDDEN
        reasons.append(word and f"the answer {word!r} may stand for no value: {how_to_tell(word)}")
    return reasons


def how_to_tell(word: str) -> str:
    """Return the options that say what a text stands for."""
    return f"give --set missing={word} if it does, or --set missing= if it is a text"


def _given(row: Row, grader: str) -> Free | str:
    if grader == "yesno" and (word := yes_or_no(row.value)):
        return Free(grader, (word,), ("yes", "no"))
    if grader == "numeric" and (other := next((text for text in row.answers if not _is_number(text)), "")):
        return f"the answer {other!r:.60} is not one number"
    return Free(grader, tuple(row.answers))


def _chosen(rows: Sequence[Row], name: str, *, mixed: bool) -> list[Free | str]:
    words = _truth_words(rows)
    if sum(map(bool, words)) >= _KIND * len(rows):
        return [
            Free("yesno", (word,), ("yes", "no"))
            if word
            else f"the answer {row.answers[0]!r:.60} is neither yes nor no"
            for word, row in zip(words, rows, strict=True)
        ]
    _refuse_flags(rows, name)
    _refuse_codes(rows, name)
    _refuse_indexes(rows, name)
    _refuse_commas(rows, name)
    if letters := _letters(rows, mixed=mixed):
        return letters
    kinds = Counter(row.answers[0] for row in rows)
    if len(kinds) == 1 and len(rows) >= _CONSTANT_FROM:
        raise DatasetError(
            f"the answers of {name!r} are all {rows[0].answers[0]!r:.60}, as where they are hidden; give --set answer="
            "FIELD, or --set grader=NAME to keep them"
        )
    few = 2 <= len(kinds) <= _CLASSES and len(rows) >= 5 * len(kinds) and max(map(len, kinds)) <= 40
    if few and all(len(row.answers) == 1 for row in rows) and not any(map(_is_number, kinds)):
        return [Free("exact", tuple(row.answers), tuple(sorted(kinds))) for row in rows]
    return _by_kind(rows)


def _letters(rows: Sequence[Row], *, mixed: bool) -> list[Free | str]:
    """Return the letters of choices that the questions list; none if the answers are not letters."""
    letters = [_LETTER.fullmatch(row.answers[0]) for row in rows]
    shown = [bool(_SHOWN.search(row.question)) for row in rows]
    if sum(map(bool, letters)) < _KIND * len(rows) or (len(rows) < _LETTERS_FROM and not (mixed or all(shown))):
        return []
    if not (mixed or any(shown)):
        raise DatasetError(
            f"the answers are letters such as {rows[0].answers[0]!r}, and no choices are found; give --set choices="
            "FIELD,.. or --set grader=exact where a letter is the answer"
        )
    graded: list[Free | str] = []
    for row, match, lists in zip(rows, letters, shown, strict=True):
        letter = match[1].upper() if match else ""
        if not match:
            graded.append(f"the answer {row.answers[0]!r:.60} is no letter")
        elif lists and re.search(rf"(?:\A|[\s(\[])[(\[]?[{letter}{letter.lower()}](?:[)\].:、．]|\s)", row.question):
            graded.append(Free("choice", (letter,)))
        else:
            graded.append(f"the answer is the letter {letter}, and the question lists no such choice")
    return graded


def _refuse_flags(rows: Sequence[Row], name: str) -> None:
    """Refuse answers 0 and 1 where most questions ask for yes or no."""
    if {answer for row in rows for answer in row.answers} != {"0", "1"}:
        return
    if sum(bool(_ASKS.match(row.question.strip())) for row in rows) >= 0.6 * len(rows):
        raise DatasetError(
            f"the answers of {name!r} are 0 and 1, and the questions ask for yes or no; give --set answer="
            f"\"lookup({name}, '0=no,1=yes')\", or --set grader=numeric"
        )


def _refuse_codes(rows: Sequence[Row], name: str) -> None:
    """Refuse numbers that stand for classes whose names the data set does not give."""
    kinds = {row.answers[0] for row in rows}
    if _CODED.fullmatch(name) and all(map(_CODES.fullmatch, kinds)) and len(rows) >= 3 * len(kinds) > 3:
        listed = ",".join(f"'name of {kind}'" for kind in sorted(kinds, key=int))
        raise DatasetError(
            f"the numbers in {name!r} stand for {len(kinds)} classes, and the data set does not name them; give "
            f'--set choices="{listed}" and --set counted={min(map(int, kinds))}'
        )


def _refuse_indexes(rows: Sequence[Row], name: str) -> None:
    """Refuse small numbers as answers to questions that list choices by letters."""
    shown = sum(bool(_SHOWN.search(row.question)) for row in rows)
    if len(rows) >= _LETTERS_FROM and shown >= _KIND * len(rows) and all(len(row.answers[0]) == 1 for row in rows):
        numbers = {row.answers[0] for row in rows}
        if all(map(str.isdigit, numbers)):
            raise DatasetError(
                f"the answers of {name!r} are numbers from {min(numbers)} to {max(numbers)}, and the questions list "
                f"choices by letters; give --set answer='letter({name})' where they count from 0, or 'letter({name}, "
                "`1`)', or --set grader=numeric where a number is asked for"
            )


def _refuse_commas(rows: Sequence[Row], name: str) -> None:
    """Refuse numbers with a comma that may be a decimal one."""
    unsure = [row.answers[0] for row in rows if _COMMA.fullmatch(row.answers[0].strip())]
    if len(unsure) * 2 > len(rows):
        raise DatasetError(
            f"the answers of {name!r} such as {unsure[0]!r:.40} may have a decimal comma, or be two numbers; write "
            "them with a point, or give --set grader=exact to compare the texts"
        )


def _by_kind(rows: Sequence[Row]) -> list[Free | str]:
    """Return a grader for each answer: of numbers where all are, of formulas where some are, or of texts."""
    numbers = [all(map(_is_number, row.answers)) for row in rows]
    formulas = [not number and all(map(_is_formula, row.answers)) for row, number in zip(rows, numbers, strict=True)]
    share = (sum(numbers) + sum(formulas)) / len(rows)
    if sum(formulas) >= 0.1 * len(rows) or (any(formulas) and share >= _KIND):
        others = iter(_of_texts([row for row in rows if not _is_mathematical(row)]))
        return [Free("math", tuple(row.answers)) if _is_mathematical(row) else next(others) for row in rows]
    if sum(numbers) >= _KIND * len(rows):
        return [
            Free("numeric", tuple(row.answers))
            if number
            else f"the answer {row.answers[0]!r:.60} is not one number, as most are; --set grader=exact keeps all"
            for row, number in zip(rows, numbers, strict=True)
        ]
    return list(_of_texts(rows))


def _is_mathematical(row: Row) -> bool:
    """Return whether all answers are numbers, expressions, or these with commas and brackets."""
    return all(
        _is_number(text) or _is_formula(text) or (bool(_SIGNS.fullmatch(text)) and bool(re.search(r"\d", text)))
        for text in row.answers
    )


def _of_texts(rows: Sequence[Row]) -> list[Free]:
    """Return a grader for each answer that is a text."""
    words = [min(map(_words, row.answers)) for row in rows if not any(is_list(t) or _is_number(t) for t in row.answers)]
    if words and median(words) > _LONG_WORDS and sum(map(_from_question, rows)) < 0.8 * len(rows):
        raise DatasetError(
            f"the answers are texts of {median(words):g} words in the middle, which comparing does not grade: name a "
            "grader (--set grader=f1, contains, judge or python:module:function), or another field (--set answer=FIELD)"
        )
    # whether the answers stay the same without punctuation and articles
    plain = [
        all(
            _PLAIN.fullmatch(text) and normal_words(text) and not (_MARKED_DIGITS.search(text) or is_list(text))
            for text in row.answers
        )
        for row in rows
    ]
    by_words = sum(plain) >= 0.5 * len(rows)
    return [
        Free(
            _OF_LISTS if any(map(is_list, row.answers)) else "exact_match" if by_words and words_only else "exact",
            tuple(row.answers),
        )
        for row, words_only in zip(rows, plain, strict=True)
    ]


def _from_question(row: Row) -> bool:
    """Return whether an answer is made of words of its question, as where these are to be sorted."""
    words = row.answers[0].split()
    return sum(word in row.question for word in words) >= 0.9 * len(words)


def _words(answer: str) -> int:
    """Return the number of words of a text; two characters of a script without spaces are one."""
    wide = sum(ord(letter) >= 0x2E80 for letter in answer)
    return len(re.sub(r"[^\x00-\u2e7f]", " ", answer).split()) + (wide + 1) // 2
