"""Accepted answers of questions without alternatives, and the graders that fit them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from pytest_adaptive_eval.banks.importing.answers import boxed, tail, yes_or_no
from pytest_adaptive_eval.banks.importing.choices import as_text, literal
from pytest_adaptive_eval.errors import DatasetError

__all__ = ["Free", "accepted_answers", "choose_grader"]

_NUMBER = re.compile(r"[-+−]?\s?[$€£¥]?\s?[-+−]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?(?:\s?/\s?\d+)?\s?%?")
_FORMULA = re.compile(r"\\[A-Za-z]+|\$.+\$|\^|[a-z]\s*=|√|π")
_SHOWN = re.compile(
    r"(?:\A|[\s(\[])[(\[]?A[)\].:、．]\s*\S.*?(?:[\s(\[])[(\[]?B[)\].:、．]\s*\S|\sA\s+\S.*?\sB\s+\S.*?\sC\s+\S",
    re.DOTALL,
)
#: Grader whose answers are written as yes or no, whatever the data set has.
_YES_OR_NO = "yesno"
_LETTER = re.compile(r"\(?([A-Z])\)?\.?")
#: Words of an answer above which no grader compares texts well, and classes that a prompt can list.
_LONG_WORDS, _CLASSES = 7, 12
#: Texts that are the same without punctuation only if they are; and first words of a question for yes or no.
_PLAIN = re.compile(r"[^\W_](?:[\w\s.,'’&/:-]*[\w.)'’])?\s*(?:\([^()]*\))?", re.UNICODE)
_ASKS = re.compile(
    r"(?i)(?:is|are|was|were|do|does|did|can|could|will|would|has|have|had|should|must|may|am)\b|.*\b(?:is|are|was|were|does|do|did|can|"
    r"has|have)\b[^.?!]*\?\s*\Z"
)
_CODES = re.compile(r"\d{1,2}")
#: Fields whose small numbers stand for classes.
_CODED = re.compile(
    r"(?i)(.*[._ ])?(label|labels|class|gold|gold_label|sentiment|coarse_label|fine_label|intent|category)"
)
#: Keys of an object that hold the answer, and other accepted ones.
_VALUE_KEYS = ("value", "answer", "text", "ground_truth", "exact_answer", "answer_text", "Value", "label")
_ALIAS_KEYS = ("aliases", "Aliases", "answer_aliases", "alternatives")


class Free(NamedTuple):
    """Grading of one question without alternatives.

    Parameters
    ----------
    grader : str
    answers : tuple of str
    classes : tuple of str
        All answers of the data set, where they are few.
    """

    grader: str
    answers: tuple[str, ...]
    classes: tuple[str, ...] = ()


def accepted_answers(value: Any) -> list[str]:
    r"""Return the accepted answers of a value: a text, number or truth value, a list, or an object that holds them.

    What stands after ``####`` or in the last ``\boxed{}`` of a solution is its answer.
    """
    return list(dict.fromkeys(text for text in _flat(value) if text))


def _flat(value: Any) -> list[str]:
    if isinstance(value, str):
        read = literal(value)
        if isinstance(read, list) and read and all(isinstance(entry, str) for entry in read):
            value = read
    if isinstance(value, list | tuple):
        return [text for entry in value for text in _flat(entry)]
    if isinstance(value, Mapping):
        return _of_object(value)
    text = as_text(value)
    return [tail(text) or boxed(text) or text]


def _of_object(value: Mapping[str, Any]) -> list[str]:
    if isinstance(value.get("output"), Mapping) and isinstance(value.get("tags"), list):  # a reference of HELM
        return _flat(value["output"].get("text", "")) if "correct" in value["tags"] else []
    if "spans" in value or "date" in value:
        return _of_drop(value)
    answer = next((value[key] for key in _VALUE_KEYS if value.get(key) not in (None, "", [])), None)
    others: Any = next((value[key] for key in _ALIAS_KEYS if value.get(key)), [])
    return ([] if answer is None else _flat(answer)) + _flat(list(others))


def _of_drop(value: Mapping[str, Any]) -> list[str]:
    """Return a number, a date or spans, as DROP gives them."""
    if as_text(value.get("number", "")):
        return [as_text(value["number"])]
    spans = value.get("spans") or []
    if spans:
        return [", ".join(map(as_text, spans))]
    date = value.get("date") or {}
    parts = [as_text(date.get(part, "")) for part in ("day", "month", "year")] if isinstance(date, Mapping) else []
    return [" ".join(filter(None, parts))]


def _is_number(text: str) -> bool:
    """Return whether a text is one number, with separators, a currency or a percent sign."""
    return bool(_NUMBER.fullmatch(text.strip().rstrip(".")))


def choose_grader(rows: Sequence[tuple[str, Sequence[str], Any]], given: str = "", name: str = "") -> list[Free]:
    """Return how each question is graded.

    Parameters
    ----------
    rows : sequence of (str, sequence of str, object)
        Question, accepted answers (at least one), and the answer as the data set writes it.
    given : str
        Grader that the user names; empty to choose.
    name : str
        Field of the answers.

    Raises
    ------
    DatasetError
        The answers are long texts, which no grader compares, or numbers that stand for classes without names.
    """
    if given:
        return _by_given_grader(rows, given)
    if all(yes_or_no(value) for _, _, value in rows):
        return [Free("yesno", (str(yes_or_no(value)),), ("yes", "no")) for _, _, value in rows]
    if _are_flags(rows):
        return [Free("yesno", ("yes" if answers[0] == "1" else "no",), ("yes", "no")) for _, answers, _ in rows]
    _refuse_codes(rows, name)
    if letters := _letters(rows):
        return [Free("choice", (letter,)) for letter in letters]
    if all(len(answers) == 1 for _, answers, _ in rows) and (classes := _classes(rows)):
        return [Free("exact", tuple(answers), classes) for _, answers, _ in rows]
    return _each(rows)


def _by_given_grader(rows: Sequence[tuple[str, Sequence[str], Any]], grader: str) -> list[Free]:
    words = [yes_or_no(value) if grader == _YES_OR_NO else None for _, _, value in rows]
    return [
        Free(grader, (word,) if word else tuple(answers)) for (_, answers, _), word in zip(rows, words, strict=True)
    ]


def _letters(rows: Sequence[tuple[str, Sequence[str], Any]]) -> list[str]:
    """Return the answers where all are letters, and most questions list choices with letters; else none."""
    letters = [_LETTER.fullmatch(answers[0]) for _, answers, _ in rows]
    with_choices = sum(bool(_SHOWN.search(question)) for question, _, _ in rows)
    return [letter[1] for letter in letters if letter] if all(letters) and with_choices >= 0.8 * len(rows) else []


def _are_flags(rows: Sequence[tuple[str, Sequence[str], Any]]) -> bool:
    """Return whether answers are 0 and 1, and most questions ask for yes or no."""
    if {answer for _, answers, _ in rows for answer in answers} != {"0", "1"}:
        return False
    return sum(bool(_ASKS.match(question.strip())) for question, _, _ in rows) >= 0.6 * len(rows)


def _refuse_codes(rows: Sequence[tuple[str, Sequence[str], Any]], name: str) -> None:
    """Refuse numbers that stand for classes whose names the data set does not give."""
    kinds = {answers[0] for _, answers, _ in rows}
    if _CODED.fullmatch(name) and all(map(_CODES.fullmatch, kinds)) and len(rows) >= 3 * len(kinds) > 3:
        listed = ",".join(f"'name of {kind}'" for kind in sorted(kinds, key=int))
        raise DatasetError(
            f"the numbers in {name!r} stand for {len(kinds)} classes, and the data set does not name them; give "
            f'--choices "{listed}" and --counted {min(map(int, kinds))}'
        )


def _classes(rows: Sequence[tuple[str, Sequence[str], Any]]) -> tuple[str, ...]:
    """Return the answers that a data set gives over and over; none if there are many, or they are numbers."""
    counts = Counter(answers[0] for _, answers, _ in rows)
    few = 2 <= len(counts) <= _CLASSES and len(rows) >= 5 * len(counts)
    return tuple(sorted(counts)) if few and not any(map(_is_number, counts)) and max(map(len, counts)) <= 40 else ()


def _each(rows: Sequence[tuple[str, Sequence[str], Any]]) -> list[Free]:
    """Return a grader for each answer: of numbers, of formulas, or of texts."""
    numbers = sum(all(map(_is_number, answers)) for _, answers, _ in rows)
    words = [min(map(_words, answers)) for _, answers, _ in rows if not all(map(_is_number, answers))]
    if words and median(words) > _LONG_WORDS and not _from_question(rows):
        raise DatasetError(
            f"the answers are texts of {median(words):g} words in the middle, which comparing does not grade: name a "
            "grader (--grader f1, contains, judge or python:module:function), or another field (--answer)"
        )
    formulas = _have_formulas(rows)
    numeric = formulas or numbers >= 0.2 * len(rows)
    plain = not words or median(words) <= _LONG_WORDS
    plain = plain and sum(all(map(_PLAIN.fullmatch, answers)) for _, answers, _ in rows) >= 0.5 * len(rows)

    def grader(answers: Sequence[str]) -> str:
        if numeric and all(map(_is_number, answers)):
            return "numeric"
        if formulas:
            return "math"
        return "exact_match" if plain and all(map(_PLAIN.fullmatch, answers)) else "exact"

    return [Free(grader(answers), tuple(answers)) for _, answers, _ in rows]


def _have_formulas(rows: Sequence[tuple[str, Sequence[str], Any]]) -> bool:
    """Return whether answers are formulas: one in ten looks like one, or any has a command of LaTeX."""
    texts = [answer for _, answers, _ in rows for answer in answers]
    return sum(bool(_FORMULA.search(text)) for text in texts) >= 0.1 * len(rows) or any("\\" in text for text in texts)


def _from_question(rows: Sequence[tuple[str, Sequence[str], Any]]) -> bool:
    """Return whether most answers are made of words of their questions, as where these are to be sorted."""

    def made(question: str, answer: str) -> bool:
        words = answer.split()
        return sum(word in question for word in words) >= 0.9 * len(words)

    return sum(made(question, answers[0]) for question, answers, _ in rows) >= 0.8 * len(rows)


def _words(answer: str) -> int:
    """Return the number of words of a text; two characters of a script without spaces are one."""
    wide = sum(ord(letter) >= 0x2E80 for letter in answer)
    return len(re.sub(r"[^\x00-\u2e7f]", " ", answer).split()) + (wide + 1) // 2
