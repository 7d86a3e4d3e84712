"""Expected answers of questions without choices, and the grader that fits each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from statistics import median
from typing import Any, NamedTuple

from pytest_adaptive_eval.banks.expressions import as_path
from pytest_adaptive_eval.checks import check_faults
from pytest_adaptive_eval.errors import DatasetError
from pytest_adaptive_eval.extensions.importing.undecided import Advice, Undecided
from pytest_adaptive_eval.extensions.importing.values import (
    as_list,
    as_text,
    flat_texts,
    is_missing,
    literal,
    may_be_missing,
    may_mean_none,
    without_place,
)
from pytest_adaptive_eval.items.graders.kinds.words import normal_words
from pytest_adaptive_eval.items.grading import JUDGE
from pytest_adaptive_eval.items.reading.numbers import expected_numbers
from pytest_adaptive_eval.items.reading.stated import boxes
from pytest_adaptive_eval.items.reading.truth import truth_of
from pytest_adaptive_eval.mappings import ItemMapping

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:[ '\u2009\u202f]\d{3})+|\d+(?:\.\d+)?|\.\d+)"
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
_DELIMITED = re.compile(
    r"\$\$?([^$]+)\$\$?|\\\(((?:(?!\\\)).)+)\\\)|\\\[((?:(?!\\\]).)+)\\\]|\\boxed\{(.+)\}", re.DOTALL
)
_ANNOUNCED = re.compile(r"(?i)\A\s*(?:the )?(?:final |correct )?answer(?: is)?\s*[:：]\s*(?=\S)")
_BRACKETED = re.compile(r"\s*\[\[([^\[\],]*)\]\]\s*")
#: Choices that a question lists, behind letters with a mark, or behind letters alone.
_BEFORE = r"(?<![A-Za-z0-9_])"
_MARKED = [re.compile(rf"{_BEFORE}[(\[]?[{letters}][)\].:、．：]\s*\S") for letters in ("Aa", "Bb")]
_LETTERED = [re.compile(rf"\s{letter}\s+\S") for letter in "ABC"]
#: A letter, one with the text of its choice, and several letters.
_LETTER = re.compile(r"\(?([A-Ja-j])\)?\.?")
_WITH_TEXT, _LETTERS = re.compile(r"[(\[]?([A-J])[)\].:]\s+\S.*", re.DOTALL), re.compile(r"[A-J]{2,10}")
#: A code with its name, and several codes in one text.
_NAMED_CODE = re.compile(r"([A-Z][A-Za-z]{0,9}[-. ]?\d[\w.-]*)\s*(?::|\s[-–—])\s+[^\W\d_].*")
_CODES = re.compile(r"[A-Z][A-Za-z]{0,9}-?\d[\w.-]*(?:\s*[;,|/]\s*[A-Z][A-Za-z]{0,9}-?\d[\w.-]*)+")
#: Texts that are the same without punctuation only if they are.
_PLAIN = re.compile(r"[^\W_](?:[\w\s.,'’&/:-]*[\w.)'’])?\s*(?:\([^()]*\))?")
_MARKED_DIGITS = re.compile(r"\d[.,/:\-–]\d|\A[-+−]")
#: Groups of words in brackets, and what regular expressions have, of which one in so many answers may be one.
_PATTERN, _PATTERNS = re.compile(r"\\[bBdDsSwW](?![A-Za-z])|\(\?[:i=!]|\.[*+](?!\w)"), 20
_GROUPED = re.compile(r"\(.*[^\W\d_]{3}.*,.*\)", re.DOTALL)
_ENTRIES = re.compile(r"[^\s,]{1,3}(?:\s?,\s?[^\s,]{1,3})+|\(.*,.*\)", re.DOTALL)
#: Numbers that may be one with a decimal comma, or two; and numbers that may mean classes.
_COMMA, _CODE = re.compile(r"-?\d+,(?!\d{3}(?:\D|\Z))\d+"), re.compile(r"\d{1,2}")
_CODED = re.compile(r"(?i)(.*[._ ])?(label|labels|class|gold|gold_label|sentiment|(coarse|fine)_label|intent|category)")
#: Pairs of words for yes and no, and the words of each value.
_TRUTHS = ({"yes", "no"}, {"true", "false"}, {"y", "n"}, {"t", "f"})
_YES, _NO = {"yes", "true", "y", "t"}, {"no", "false", "n", "f"}
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+")
#: Share of the answers that are of one kind; records from which codes, or one answer to all are no answers.
_KIND, _CODES_FROM, _SAME_FROM = 0.9, 5, 10
#: Signs that may hide an answer.
_DASHES = ("-", "--", "–", "—", "?", "_")
#: Characters after ``####`` in a text that has nothing before it.
_END = 60
#: Words above which no grader compares texts well; labels that a prompt can list, and answers for each; parts in any
#: order.
_LONG_WORDS, _LABELS, _EACH_LABEL, _PARTS = 7, 12, 4, 4
#: Answers for each number that may mean a class.
_EACH_CODE = 3
#: How an answer of several parts may be read.
_PART_KINDS = {
    "all": "where all are wanted in any order",
    "any": "where each entry is right",
    "list": "where they are wanted in this order",
}
#: Graders of texts that differ from their key in words, and when each is right.
_OF_TEXTS = {
    "judge": "where a model judges them",
    "f1": "for the share of common words",
    "contains": "where an answer has to repeat them",
}
#: Sentences that say how a question for a grader is answered.
INSTRUCTIONS = {
    "choice": "Answer with the letter of the right choice.",
    "several": "Answer with the letters of all right choices.",
    "order": "End with a line `Answer: <letters in order, such as B, A, C>`.",
    "yesno": "Answer yes or no.",
    "numeric": "End with a line `Answer: <number>`.",
    "math": "End with a line `Answer: <expression>`.",
    "exact_match": "Answer with a few words.",
    "exact": "End with a line `Answer: <answer>`.",
}


class Graded(NamedTuple):
    """Grading of one question.

    Args:
        choices: Of the question, or labels of the data set where its answers are a small set.
        listed: Whether the question lists its choices after its text.
        instruction: Sentence after the question.
    """

    grader: str
    answers: tuple[str, ...]
    choices: tuple[str, ...] = ()
    listed: bool = False
    instruction: str = ""


class Key(NamedTuple):
    """Question, its accepted answers (at least one), and the answer as the data set writes it."""

    question: str
    answers: Sequence[str]
    value: Any


def ungraded(grader: str) -> bool:
    """Return whether a grader needs no answer."""
    return grader in ("code", JUDGE) or grader.startswith("python:")


def accepted_texts(value: Any, accepted: Sequence[Any], mapping: ItemMapping) -> list[str]:
    r"""Return the accepted answers of a question: what follows ``####``, or is in ``\boxed{}``, in a solution.

    Args:
        value: The answer; a list is read as ``answer_kind`` says.
        accepted: Further values; each entry is right.

    Raises:
        DatasetError: The answer is an object, or a list that may be read in several ways.
    """
    if any(isinstance(part, Mapping) for part in accepted) and not mapping.grader:
        raise _of_parts(accepted, accepted[0], mapping)
    texts = []
    for text in filter(None, [*_texts_of(value, mapping), *flat_texts(accepted)]):
        texts.append(_without_solution(text))
        named_code = _NAMED_CODE.fullmatch(texts[-1])
        if named_code and not mapping.grader:
            texts.append(named_code[1])
    return list(dict.fromkeys(texts))


def _texts_of(value: Any, mapping: ItemMapping) -> list[str]:
    """Return the accepted texts of an answer, as its mapping says how several parts are read."""
    value = without_place(value)
    entries = as_list(value)
    kind = mapping.answer_kind
    grader = mapping.grader
    if grader == "calls" and not is_missing(value):
        return [as_text(value)]  # a list of calls, or of none, is one answer
    parts = flat_texts(entries)
    objects = not grader and any(isinstance(entry, Mapping) for entry in entries)
    is_codes = isinstance(value, str) and bool(_CODES.fullmatch(value.strip()))
    if is_codes:
        entries = parts = re.split(r"\s*[;,|/]\s*", value.strip())
    if kind == "all" and len(parts) > _PARTS:
        raise DatasetError(f"its answer has {len(parts)} parts, at most {_PARTS} are read in any order")
    alone = isinstance(value, list) and len(value) == 1 and not objects
    if kind == "any" or not parts or alone:
        return parts
    if kind == "all":
        signs = [", ", "; "] if is_codes else [", "]
        return [sign.join(order) for sign in signs for order in permutations(parts)]
    if kind == "letters":
        return [", ".join(parts)]
    if grader or has_end(value):
        opened = value
    else:
        opened = literal(value)
    whole = kind == "list" or ungraded(grader) or grader in ("literal", "json")
    if objects or ((is_codes or isinstance(opened, list)) and not (whole or grader)):
        raise _of_parts(entries, value, mapping)
    return [as_text(value)]


def _of_parts(entries: Sequence[Any], value: Any, mapping: ItemMapping) -> Undecided:
    """Return the error on an answer of several parts: an object, a list, or codes in one text."""
    name = as_path(mapping.answer or next(iter(mapping.accepted), "$label"))
    if isinstance(value, list):
        step = "[*]"
    else:
        step = ""
    if isinstance(entries[0], Mapping):
        return Undecided(
            f"its answer is an object, {value!r:.80}: write --set answer={name}{step}.KEY for the part that is the "
            "answer, or --set grader=judge"
        )
    kinds = list(_PART_KINDS)
    words = [set(as_text(entry).casefold().split()) for entry in entries]
    even = False
    if words[0].intersection(*words[1:]) or any(map(yes_or_no, entries)):  # spellings of one answer
        kinds = ["any", "all", "list"]
    elif isinstance(value, str) and isinstance(literal(value), list):
        kinds = ["list", "all", "any"]
    else:
        even = True
    advice = [Advice({"answer_kind": kind}, _PART_KINDS[kind]) for kind in kinds]
    return Undecided(f"its answer is a list, {value!r:.80}", *advice, even=even)


def _without_solution(text: str) -> str:
    """Return the end of a solution, without the words that announce it or the command that marks a text in LaTeX."""
    ended = _ANNOUNCED.sub("", _end_of(text) or text)
    plain = _TEXT_COMMAND.fullmatch(ended.strip("$ "))
    if plain:
        return plain[1].strip()
    return formula_in(ended) or ended


def formula_in(text: str) -> str:
    """Return the formula that a text puts between signs of LaTeX; empty for other texts."""
    match = _DELIMITED.fullmatch(text.strip().rstrip("."))
    if match is None:
        return ""
    return str(next(filter(None, match.groups()))).strip()


def has_end(answer: Any) -> bool:
    """Return whether an answer is a solution that marks its end."""
    return isinstance(answer, str) and bool(_end_of(answer))


def _end_of(text: str) -> str:
    """Return what follows the last ``####``, or is in the last box or in double brackets; empty if nothing is."""
    before, mark, after = text.rpartition("####")
    if mark and (before or len(after) < _END):
        return after.strip()
    bracketed = _BRACKETED.fullmatch(text)
    return next((box.strip() for box in boxes(text)), bracketed[1].strip() if bracketed else "")


def yes_or_no(answer: Any) -> str:
    """Return ``yes`` or ``no`` for a truth value or a text that is one, else nothing."""
    word = as_text(answer).strip(" .").casefold()
    if word in _YES:
        return "yes"
    if word in _NO:
        return "no"
    return ""


def is_number(text: str) -> bool:
    """Return whether a text is one number, with separators, a currency, a percent sign or a unit."""
    return bool(_NUMBER.fullmatch(text.strip(" \n$"))) and bool(expected_numbers(text))


def _is_formula(text: str) -> bool:
    """Return whether a text is an expression, has commands of LaTeX, or is numbers in brackets."""
    if _COMMANDS.search(text):
        return True
    sign = r"\d" if text[:1] + text[-1:] == "()" else r"[^\W_]"
    operated = text[:1] + text[-1:] == "()" or _OPERATED.search(text)
    return bool(operated and _SIGNS.fullmatch(text) and re.search(sign, text))


def is_list(text: str) -> bool:
    """Return whether a text is a list or an object as JSON or Python write it, or short entries with commas."""
    return not isinstance(literal(text), str) or bool(_ENTRIES.fullmatch(text.strip()))


class GraderChoice:
    """The grader of each question of a data set, from the kinds of its answers; `keys` are all of them."""

    def __init__(self, keys: Sequence[Key], mapping: ItemMapping) -> None:
        self._mapping = mapping
        self._name = mapping.answer or ", ".join(mapping.accepted)
        firsts = []
        for key in keys:
            firsts.append(as_text(key.value) if isinstance(key.value, bool) else key.answers[0])
        self._lettered = len(list(filter(_LETTER.fullmatch, firsts))) >= _KIND * len(firsts)
        words = list(filter(_is_label, firsts))
        self._labels = _labels_of(words, len(firsts))
        self._truths = any({word.strip(" .").casefold() for word in words} <= pair for pair in _TRUTHS)
        questions = [key.question for key in keys]
        stated = mapping.grader or mapping.answer_kind == "letters"
        if stated:
            self._problem = None
        else:
            self._problem = next(_problems(firsts, questions, self._name), None)

    def grade(self, key: Key) -> Graded:
        """Return how a question is graded.

        Raises:
            DatasetError: No grader fits its answer.
        """
        check_faults(self._faults(key), error=DatasetError)
        is_stated = self._mapping.grader or self._mapping.answer_kind == "letters"
        if is_stated:
            graded = self._by_given(key)
        else:
            graded = self._by_kind(key)
        first = graded.answers[0]
        written = key.value
        if first in graded.choices and graded.choices != ("yes", "no"):
            return graded._replace(instruction=f"Answer with one of: {', '.join(graded.choices)}.")
        if graded.grader == "yesno" and isinstance(written, str) and written.strip().casefold() in ("true", "false"):
            return graded._replace(instruction="Answer true or false.")
        several = graded.grader == "choice" and len(first) > 1
        return graded._replace(instruction=INSTRUCTIONS.get("several" if several else graded.grader, ""))

    def _faults(self, key: Key) -> Iterator[str]:
        """Yield why an answer cannot be graded, or may mean no value."""
        grader = self._mapping.grader
        if self._problem:
            raise self._problem
        if self._mapping.missing is None and (grader == JUDGE or not (ungraded(grader) or grader == "literal")):
            words = []
            for text in key.answers:
                if may_be_missing(text) or text in _DASHES:
                    words.append(text)
            if words:
                raise may_mean_none("answer", words[0])
        for other in key.answers if grader == "numeric" else ():
            if not is_number(other):
                yield f"the answer {other!r:.60} is not one number"

    def _by_given(self, key: Key) -> Graded:
        grader = self._mapping.grader
        if self._mapping.answer_kind == "letters":
            return together(key.answers[0])
        if grader == "yesno" and (word := yes_or_no(key.value)):
            return Graded(grader, (word,), ("yes", "no"))
        return Graded(grader, tuple(key.answers))

    def _by_kind(self, key: Key) -> Graded:
        answers = tuple(key.answers)
        first = key.answers[0]
        word = yes_or_no(key.value)
        if word and len(answers) == 1 and (isinstance(key.value, bool) or self._truths):
            return Graded("yesno", (word,), ("yes", "no"))
        if letter := self._letter(key.question, first.strip()):
            return Graded("choice", (letter,))
        if first in self._labels and len(answers) == 1:
            return Graded(_grader_of_labels(self._labels), answers, self._labels)
        if _COMMA.fullmatch(first):
            raise Undecided(
                f"the answer {first!r:.40} may have a decimal comma, or be two numbers",
                Advice({"grader": "exact"}, "to compare the texts"),
            )
        is_formula = len(first) > 1 and (formula_in(as_text(key.value)) or _end_of(as_text(key.value)) == f"${first}$")
        if is_formula and not any(map(is_number, answers)):
            return Graded("math", answers)
        return Graded(_grader_of_texts(answers), answers)

    def _letter(self, question: str, text: str) -> str:
        """Return the letter of a choice that a question lists and its answer names; empty for other answers.

        Raises:
            DatasetError: The answer may name choices, or be a text or a number.
        """
        marked = _come_in_order(_MARKED, question)
        listed = marked or _come_in_order(_LETTERED, question)
        match = _LETTER.fullmatch(text) or (_WITH_TEXT.fullmatch(text) if listed else None)
        if match:
            letter = match[1].upper()
        else:
            letter = ""
        named = rf"{_BEFORE}[(\[]?[{letter}{letter.lower()}](?:[)\].:、．：]|\s)"
        if letter and listed and re.search(named, question):
            return letter
        several = listed and _LETTERS.fullmatch(text) and list(text) == sorted(set(text))
        if several or (letter and (listed or self._lettered)) or (marked and re.fullmatch(r"\d", text)):
            raise self._may_name_choices(text, listed=listed)
        return ""

    def _may_name_choices(self, text: str, *, listed: bool) -> Undecided:
        """Return the error on an answer that may name choices, and has none to ask with."""
        if not listed:
            return Undecided(
                f"the answer {text!r:.40} may name choices, which the question does not list: write --set "
                "choices=FIELD,.. where fields have them, or --set grader=exact where a letter is asked for"
            )
        problem = f"the answer {text!r:.40} may name choices, or be a text or a number"
        if not text.isdigit():
            letters = Advice({"answer_kind": "letters"}, "where it is letters of choices in the question")
            return Undecided(problem, letters, Advice({"grader": "exact"}, "where it is a text"))
        name = as_path(self._name)
        return Undecided(
            problem,
            Advice({"answer": f"letter({name}, `1`)"}, "where it counts the choices from 1"),
            Advice({"answer": f"letter({name})"}, "where it counts them from 0"),
            Advice({"grader": "numeric"}, "where it is a number"),
        )


def _problems(firsts: Sequence[str], questions: Sequence[str], name: str) -> Iterator[Undecided]:
    """Yield why no answer of a data set can be graded."""
    kinds = sorted(set(firsts))
    if len(kinds) == 1 and len(firsts) >= _SAME_FROM:
        yield Undecided(
            f"the answers of {name!r} are all {firsts[0]!r:.60}, as where they are hidden: write --set answer=FIELD, "
            "or --set grader=NAME to keep them"
        )
    flags = kinds == ["0", "1"] and len(firsts) >= _CODES_FROM
    coded = _CODED.fullmatch(name) and len(firsts) >= _EACH_CODE * len(kinds) > _EACH_CODE
    if all(map(_CODE.fullmatch, kinds)) and (flags or coded):
        listed = ",".join(f"'name of {kind}'" for kind in sorted(kinds, key=int))
        yield Undecided(
            f"the numbers in {name!r} may mean {len(kinds)} classes, whose names no field has: write --set "
            f'choices="{listed}" and --set counted={min(map(int, kinds))}, or --set grader=numeric where a number is '
            "asked for"
        )
    addresses = list(filter(_ADDRESS.fullmatch, firsts))
    if len(addresses) * 2 > len(firsts):
        yield Undecided(
            f"the answers are addresses, such as {addresses[0]!r:.60}, and no texts: write --set answer=FIELD, or "
            "--labels FILE with their names, or --set grader=exact where an address is asked for"
        )
    words = []
    for text in firsts:
        if not (is_list(text) or is_number(text) or _is_formula(text)):
            words.append(count_words(text))
    sorted_words = sum(map(is_made_of, firsts, questions)) >= _KIND * len(firsts)
    advice = [Advice({"grader": grader}, meaning) for grader, meaning in _OF_TEXTS.items()]
    are_long = len(words) * 2 > len(firsts) and median(words) > _LONG_WORDS
    longer = sum(count > 2 * _LONG_WORDS for count in words)
    if (are_long or longer * 4 > len(firsts)) and not sorted_words:
        many = f"{longer} of {len(firsts)} answers are texts of more than {2 * _LONG_WORDS} words"
        if are_long:
            many = f"the answers are texts of {median(words):g} words in the middle"
        yield Undecided(f"{many}, which comparing does not grade", *advice)
    patterns = list(filter(_PATTERN.search, firsts))
    if len(patterns) * _PATTERNS > len(firsts):
        yield Undecided(
            f"{len(patterns)} of {len(firsts)} answers, such as {patterns[0]!r:.60}, may be regular expressions",
            Advice({"grader": "regex"}, "where they are"),
            Advice({"grader": "exact"}, "where they are texts"),
        )
    if sum(map(bool, map(_GROUPED.fullmatch, firsts))) * 2 > len(firsts):
        yield Undecided("the answers are groups of words in brackets, whose order and form nothing says", *advice)


def _grader_of_labels(labels: Sequence[str]) -> str:
    """Return the grader for labels: of truth values, of letters that name no choice, or of choices."""
    truths = {truth_of(label) for label in labels}
    if len(truths) == len(labels) and None not in truths:
        return "yesno"
    if min(map(len, labels)) == 1:
        return "exact"
    return "choice"


def _come_in_order(patterns: Sequence[re.Pattern[str]], text: str) -> bool:
    """Return whether a text has a match of each pattern after the one before."""
    at = 0
    for pattern in patterns:
        match = pattern.search(text, at)
        if match is None:
            return False
        at = match.end() - 1
    return True


def together(answer: str) -> Graded:
    """Return the grading of letters of choices that are right together, such as ``ABD`` or ``A, B``.

    Raises:
        DatasetError: The answer is of another form.
    """
    letters = re.sub(r"[\s,;、/&|]+|and", "", answer).strip("()[].")
    if not re.fullmatch(r"[A-Z]{1,26}", letters):
        raise DatasetError(f"the answer {answer!r:.60} is not letters of choices, such as ABD")
    return Graded("choice", ("".join(sorted(set(letters))),))


def _is_label(text: str) -> bool:
    """Return whether a text may be a label: no dash, number, formula or list."""
    return not (len(text) > 40 or text in _DASHES or is_number(text) or _is_formula(text) or is_list(text))


def _labels_of(words: Sequence[str], count: int) -> tuple[str, ...]:
    """Return the labels of a data set whose answers are a small set of texts; none for other answers."""
    kinds = sorted(set(words))
    few = 2 <= len(kinds) <= _LABELS and len(words) >= _EACH_LABEL * len(kinds)
    if few and len(words) >= _KIND * count:
        return tuple(kinds)
    return ()


def _grader_of_texts(answers: Sequence[str]) -> str:
    """Return the grader for texts of one kind: numbers, formulas, lists, plain words or others."""
    if all(map(is_number, answers)):
        return "numeric"
    if all(is_number(text) or _is_formula(text) for text in answers):
        return "math"
    if any(map(is_list, answers)):
        return "literal"
    if all(map(_is_plain, answers)):
        return "exact_match"
    return "exact"


def _is_plain(text: str) -> bool:
    """Return whether an answer stays the same without punctuation and articles."""
    return bool(_PLAIN.fullmatch(text) and not _MARKED_DIGITS.search(text) and normal_words(text))


def is_made_of(answer: str, question: str) -> bool:
    """Return whether an answer is made of words of a question, as where these are to be sorted."""
    words = answer.split()
    return sum(word in question for word in words) >= _KIND * len(words)


def count_words(answer: str) -> int:
    """Return the number of words of a text; two characters of a script without spaces are one."""
    wide = sum(ord(letter) >= 0x2E80 for letter in answer)
    return len(re.sub(r"[^\x00-\u2e7f]", " ", answer).split()) + (wide + 1) // 2
