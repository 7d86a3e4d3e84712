"""Expected answers of questions without choices, and the grader that fits each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import permutations
from statistics import median
from typing import Any, NamedTuple

from pytest_adaptive_eval.errors import DatasetError
from pytest_adaptive_eval.extensions.importing.values import as_list, as_text, flat_texts, literal, may_be_missing
from pytest_adaptive_eval.items.graders.kinds.words import normal_words
from pytest_adaptive_eval.items.grading import JUDGE
from pytest_adaptive_eval.items.reading.numbers import expected_numbers
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
_BRACKETED = re.compile(r"\s*\[\[([^\[\],]*)\]\]\s*")
#: Choices that a question lists, behind letters with a mark, or behind letters alone.
_BEFORE = r"(?<![A-Za-z0-9_])"
_MARKED = [re.compile(rf"{_BEFORE}[(\[]?[{letters}][)\].:、．：]\s*\S") for letters in ("Aa", "Bb")]
_LETTERED = [re.compile(rf"\s{letter}\s+\S") for letter in "ABC"]
#: A letter, one with the text of its choice, and several letters.
_LETTER = re.compile(r"\(?([A-Ja-j])\)?\.?")
_WITH_TEXT, _LETTERS = re.compile(r"[(\[]?([A-J])[)\].:]\s+\S.*", re.DOTALL), re.compile(r"[A-J]{2,10}")
#: Texts that are the same without punctuation only if they are.
_PLAIN = re.compile(r"[^\W_](?:[\w\s.,'’&/:-]*[\w.)'’])?\s*(?:\([^()]*\))?")
_MARKED_DIGITS = re.compile(r"\d[.,/:\-–]\d|\A[-+−]")
_ENTRIES = re.compile(r"[^\s,]{1,3}(?:\s?,\s?[^\s,]{1,3})+|\(.*,.*\)", re.DOTALL)
#: Numbers that may be one with a decimal comma, or two; and numbers that may mean classes.
_COMMA, _CODE = re.compile(r"-?\d+,(?!\d{3}(?:\D|\Z))\d+"), re.compile(r"\d{1,2}")
_CODED = re.compile(r"(?i)(.*[._ ])?(label|labels|class|gold|gold_label|sentiment|(coarse|fine)_label|intent|category)")
#: Pairs of words for yes and no, and the words of each value.
_TRUTHS = ({"yes", "no"}, {"true", "false"}, {"y", "n"}, {"t", "f"})
_YES, _NO = {"yes", "true", "y", "t"}, {"no", "false", "n", "f"}
#: Share of the answers that are of one kind; records from which letters, codes, or one answer to all are no answers.
_KIND, _LETTERS_FROM, _CODES_FROM, _SAME_FROM = 0.9, 3, 5, 10
#: Signs that may hide an answer.
_DASHES = ("-", "--", "–", "—", "?", "_")
#: Share of the answers that are -1 from which it may hide an answer.
_HIDDEN_SHARE = 0.05
#: Words of an answer above which no grader compares texts well; labels that a prompt can list; parts in any order.
_LONG_WORDS, _LABELS, _PARTS = 7, 12, 4
#: Answers for each label of a set.
_EACH_LABEL = 5


class Graded(NamedTuple):
    """Grading of one question.

    Args:
        choices: Labels of the data set, where its answers are a small set.
    """

    grader: str
    answers: tuple[str, ...]
    choices: tuple[str, ...] = ()


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
        accepted: Further values, each entry of which is right.

    Raises:
        DatasetError: The answer is an object, or a list that may be read in several ways.
    """
    texts = [*_texts_of(value, mapping), *flat_texts(accepted)]
    return list(dict.fromkeys(_without_solution(text) for text in texts if text))


def _texts_of(value: Any, mapping: ItemMapping) -> list[str]:
    """Return the accepted texts of an answer, as its mapping says how several parts are read."""
    parts, kind = as_list(value), mapping.answer_kind
    if kind == "any":
        return flat_texts(parts)
    if kind == "all":
        return _in_any_order(flat_texts(parts))
    if kind == "letters":
        return [", ".join(flat_texts(parts))]
    if has_end(value) or not parts:
        return [as_text(value)] if parts else []
    if not mapping.grader and any(isinstance(part, dict) for part in parts):
        raise DatasetError(
            f"its answer is an object, {value!r:.80}, which no grader compares; give --set "
            f"answer={mapping.answer or '$label'}.KEY, or --set grader=judge"
        )
    if isinstance(value, list) and len(parts) == 1:
        return flat_texts(parts)
    if kind != "list" and _is_open(value, mapping.grader):
        raise DatasetError(
            f"its answer is a list, {value!r:.80}; give --set answer_kind=any where each entry is right, all where "
            "all are wanted in any order, or list where they are wanted in this order"
        )
    return [as_text(value)]


def _is_open(value: Any, grader: str) -> bool:
    """Return whether an answer is a list, or a text that holds one, and the grader does not say how it is read."""
    if isinstance(value, list):
        return not (ungraded(grader) or grader in ("literal", "json"))
    return not grader and isinstance(literal(value), list)


def _in_any_order(parts: Sequence[str]) -> list[str]:
    if len(parts) > _PARTS:
        raise DatasetError(f"its answer has {len(parts)} parts, at most {_PARTS} are read in any order")
    return [", ".join(order) for order in permutations(parts)]


def _without_solution(text: str) -> str:
    """Return the end of a solution, without the command that marks a text in LaTeX."""
    ended = next((end for find in (_tail, boxed, _bracketed) if (end := find(text))), text)
    plain = _TEXT_COMMAND.fullmatch(ended.strip("$ "))
    return plain[1].strip() if plain else ended


def has_end(answer: Any) -> bool:
    """Return whether an answer is a solution that marks its end."""
    return isinstance(answer, str) and bool(_tail(answer) or boxed(answer) or _bracketed(answer))


def _tail(text: str) -> str:
    """Return the text after the last ``####``."""
    before, mark, after = text.rpartition("####")
    return after.strip() if mark and (before or len(after) < 60) else ""


def _bracketed(text: str) -> str:
    """Return the text in double square brackets; none for lists of lists."""
    match = _BRACKETED.fullmatch(text)
    return match[1].strip() if match else ""


def boxed(text: str) -> str:
    r"""Return the content of the last ``\boxed{}`` with its braces matched; empty if there is none."""
    start = max(text.rfind("\\boxed{"), text.rfind("\\fbox{"))
    if start < 0:
        match = re.search(r"\\boxed\s+(\S+?)[.$]*\Z", text)
        return match[1] if match else ""
    at = start = text.index("{", start) + 1
    depth = 1
    while at < len(text):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if not depth:
            return text[start:at].strip()
        at += 1
    return ""


def yes_or_no(answer: Any) -> str:
    """Return ``yes`` or ``no`` for a truth value or a text that is one, else nothing."""
    if isinstance(answer, bool):
        return "yes" if answer else "no"
    word = as_text(answer).strip(" .").casefold()
    return "yes" if word in _YES else "no" if word in _NO else ""


def is_number(text: str) -> bool:
    """Return whether a text is one number, with separators, a currency, a percent sign or a unit."""
    plain = text.strip().strip("$").strip()
    return bool(_NUMBER.fullmatch(plain)) and bool(expected_numbers(text))


def _is_formula(text: str) -> bool:
    """Return whether a text is an expression or has commands of LaTeX."""
    if _COMMANDS.search(text):
        return True
    operated = _SIGNS.fullmatch(text) and _OPERATED.search(text)
    return bool(operated) and bool(re.search(r"[^\W_]", text))


def is_list(text: str) -> bool:
    """Return whether a text is a list or an object as JSON or Python write it, or short entries with commas."""
    return isinstance(literal(text), list | tuple | dict) or bool(_ENTRIES.fullmatch(text.strip()))


def how_to_say(word: str) -> str:
    """Return the options that say what a text means."""
    return f"give --set missing={word} if it does, or --set missing= if it is a text"


class GraderChoice:
    """The grader of each question of a data set, from the kinds of its answers.

    Args:
        keys: All questions without choices.
        given: Grader that the mapping names; empty for none.
        name: Field of the answers, for messages.
        missing_stated: Whether the mapping says which texts mean no value.
    """

    def __init__(self, keys: Sequence[Key], given: str, name: str, *, missing_stated: bool) -> None:
        self._given, self._name, self._missing_stated = given, name, missing_stated
        firsts = [as_text(key.value) if isinstance(key.value, bool) else key.answers[0] for key in keys]
        self._hides = _may_hide(firsts)
        letters = sum(bool(_LETTER.fullmatch(text)) for text in firsts)
        self._lettered = len(keys) >= _LETTERS_FROM and letters >= _KIND * len(keys)
        words = [text for text in firsts if _is_label(text) and not (self._lettered and _LETTER.fullmatch(text))]
        self._labels = _labels_of(words, len(firsts))
        self._grader_of_labels = _grader_of_labels(self._labels)
        self._truths = any({word.strip(" .").casefold() for word in words} <= pair for pair in _TRUTHS)
        self._problem = "" if given else _problem_of(firsts, [key.question for key in keys], name)

    def grade(self, key: Key) -> Graded:
        """Return how a question is graded.

        Raises:
            DatasetError: No grader fits its answer.
        """
        if self._problem:
            raise DatasetError(self._problem)
        if not (self._missing_stated or ungraded(self._given) or self._given == "literal"):
            self._check_present(key)
        return self._by_given(key) if self._given else self._by_kind(key)

    def _check_present(self, key: Key) -> None:
        """Refuse an answer that may mean no value."""
        words = [text for text in key.answers if may_be_missing(text) or text in _DASHES]
        word = words[0] if words else "-1" if self._hides and key.answers[0] == "-1" else ""
        if word:
            raise DatasetError(f"the answer {word!r} may mean no value: {how_to_say(word)}")

    def _by_given(self, key: Key) -> Graded:
        grader = self._given
        if grader == "yesno" and (word := yes_or_no(key.value)):
            return Graded(grader, (word,), ("yes", "no"))
        if grader == "numeric" and (other := next((text for text in key.answers if not is_number(text)), "")):
            raise DatasetError(f"the answer {other!r:.60} is not one number")
        return Graded(grader, tuple(key.answers))

    def _by_kind(self, key: Key) -> Graded:
        answers, first = tuple(key.answers), key.answers[0]
        word = yes_or_no(key.value)
        if word and len(answers) == 1 and (isinstance(key.value, bool) or self._truths):
            return Graded("yesno", (word,), ("yes", "no"))
        if letters := self._letters(key):
            return Graded("choice", (letters,))
        if first in self._labels and len(answers) == 1:
            return Graded(self._grader_of_labels, answers, self._labels)
        if _COMMA.fullmatch(first):
            raise DatasetError(
                f"the answer {first!r:.40} may have a decimal comma, or be two numbers; write it with a point, or give "
                "--set grader=exact to compare the texts"
            )
        return Graded(_grader_of_texts(answers), answers)

    def _letters(self, key: Key) -> str:
        """Return the letters of choices that a question lists and its answer names; empty for other answers."""
        text = key.answers[0].strip()
        listed = _come_in_order(_MARKED, key.question) or _come_in_order(_LETTERED, key.question)
        if re.fullmatch(r"\d", text) and _come_in_order(_MARKED, key.question):
            raise DatasetError(
                f"the answer is the number {text}, and the question lists choices by letters; give --set "
                f"answer='letter({self._name})' where they count from 0, or 'letter({self._name}, `1`)', or --set "
                "grader=numeric where a number is asked for"
            )
        match = _LETTER.fullmatch(text) or (_WITH_TEXT.fullmatch(text) if listed else None)
        if match is None:
            return self._several(text) if listed else ""
        letter = str(match[1]).upper()
        if listed and re.search(rf"{_BEFORE}[(\[]?[{letter}{letter.lower()}](?:[)\].:、．：]|\s)", key.question):
            return letter
        if listed or self._lettered:
            raise DatasetError(
                f"the answer is the letter {letter}, and the question lists no such choice; give --set "
                "choices=FIELD,.. or --set grader=exact where a letter is the answer"
            )
        return ""

    def _several(self, text: str) -> str:
        if _LETTERS.fullmatch(text) and list(text) == sorted(set(text)):
            raise DatasetError(
                f"the answer {text!r} may be several letters of choices that are right together, or a text; give --set "
                "answer_kind=letters, or --set grader=exact"
            )
        return ""


def _may_hide(firsts: Sequence[str]) -> bool:
    """Return whether -1 may hide answers: it is common, and no other answer is negative."""
    others = any(text.startswith(("-", "−")) and text != "-1" for text in firsts)
    return not others and firsts.count("-1") > max(2, _HIDDEN_SHARE * len(firsts))


def _problem_of(firsts: Sequence[str], questions: Sequence[str], name: str) -> str:
    """Return why no answer of a data set can be graded; empty if there is no reason."""
    kinds = set(firsts)
    if len(kinds) == 1 and len(firsts) >= _SAME_FROM:
        return (
            f"the answers of {name!r} are all {firsts[0]!r:.60}, as where they are hidden; give --set answer=FIELD, or "
            "--set grader=NAME to keep them"
        )
    if all(map(_CODE.fullmatch, kinds)):
        return _problem_of_codes(kinds, len(firsts), name)
    words = [count_words(text) for text in firsts if not (is_list(text) or is_number(text) or _is_formula(text))]
    sorted_words = sum(map(_is_from_question, firsts, questions)) >= _KIND * len(firsts)
    if len(words) * 2 > len(firsts) and median(words) > _LONG_WORDS and not sorted_words:
        return (
            f"the answers are texts of {median(words):g} words in the middle, which comparing does not grade: name a "
            "grader (--set grader=f1, contains, judge or python:module:function), or another field (--set answer=FIELD)"
        )
    return ""


def _problem_of_codes(kinds: Collection[str], count: int, name: str) -> str:
    """Return that small numbers may mean classes, by the name of their field or since they are 0 and 1."""
    flags = set(kinds) == {"0", "1"} and count >= _CODES_FROM
    if not (flags or (_CODED.fullmatch(name) and count >= 3 * len(kinds) > 3)):
        return ""
    listed = ",".join(f"'name of {kind}'" for kind in sorted(kinds, key=int))
    return (
        f'the numbers in {name!r} may mean {len(kinds)} classes; give --set choices="{listed}" and --set '
        f"counted={min(map(int, kinds))}, or --set grader=numeric where a number is asked for"
    )


def _grader_of_labels(labels: Sequence[str]) -> str:
    """Return the grader for labels: of truth values, of letters that name no choice, or of choices."""
    truths = {truth_of(label) for label in labels}
    if len(truths) == len(labels) and None not in truths:
        return "yesno"
    return "exact" if min(map(len, labels), default=0) == 1 else "choice"


def _come_in_order(patterns: Sequence[re.Pattern[str]], text: str) -> bool:
    """Return whether a text has a match of each pattern after the one before."""
    at = 0
    for pattern in patterns:
        match = pattern.search(text, at)
        if match is None:
            return False
        at = match.end() - 1
    return True


def together(answers: Sequence[str]) -> Graded:
    """Return the grading of letters of choices that are right together, such as ``ABD`` or ``A, B``.

    Raises:
        DatasetError: The answer is of another form.
    """
    letters = re.sub(r"[\s,;、/&|]+|and", "", answers[0]).strip("()[].")
    if not re.fullmatch(r"[A-Z]{1,26}", letters):
        raise DatasetError(f"the answer {answers[0]!r:.60} is not letters of choices, such as ABD")
    return Graded("choice", ("".join(sorted(set(letters))),))


def _is_label(text: str) -> bool:
    """Return whether a text may be a label: no number, formula or list."""
    return not (len(text) > 40 or is_number(text) or _is_formula(text) or is_list(text))


def _labels_of(words: Sequence[str], count: int) -> tuple[str, ...]:
    """Return the labels of a data set whose answers are a small set of texts; none for other answers."""
    kinds = Counter(words)
    few = 2 <= len(kinds) <= _LABELS and len(words) >= _EACH_LABEL * len(kinds)
    return tuple(sorted(kinds)) if few and len(words) >= _KIND * count else ()


def _grader_of_texts(answers: Sequence[str]) -> str:
    """Return the grader for texts of one kind: numbers, formulas, lists, plain words or others."""
    if all(map(is_number, answers)):
        return "numeric"
    if all(is_number(text) or _is_formula(text) or _is_tuple(text) for text in answers):
        return "math"
    if any(map(is_list, answers)):
        return "literal"
    return "exact_match" if all(map(_is_plain, answers)) else "exact"


def _is_tuple(text: str) -> bool:
    return text[:1] + text[-1:] == "()" and bool(_SIGNS.fullmatch(text)) and bool(re.search(r"\d", text))


def _is_plain(text: str) -> bool:
    """Return whether an answer stays the same without punctuation and articles."""
    if not _PLAIN.fullmatch(text) or _MARKED_DIGITS.search(text):
        return False
    return bool(normal_words(text))


def _is_from_question(answer: str, question: str) -> bool:
    """Return whether an answer is made of words of its question, as where these are to be sorted."""
    words = answer.split()
    return sum(word in question for word in words) >= _KIND * len(words)


def count_words(answer: str) -> int:
    """Return the number of words of a text; two characters of a script without spaces are one."""
    wide = sum(ord(letter) >= 0x2E80 for letter in answer)
    return len(re.sub(r"[^\x00-\u2e7f]", " ", answer).split()) + (wide + 1) // 2
