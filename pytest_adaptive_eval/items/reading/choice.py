"""Read which of several choices a text gives as its answer: by its letter or by its text."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pytest_adaptive_eval.items.reading.cleaning import answer_part, plain_characters
from pytest_adaptive_eval.items.reading.constructions import with_words, word_pattern
from pytest_adaptive_eval.items.reading.counts import with_digits
from pytest_adaptive_eval.items.reading.expression import normal_expression
from pytest_adaptive_eval.items.reading.labels import labels_of, with_capitals
from pytest_adaptive_eval.items.reading.numbers import expected_number, is_lone_number
from pytest_adaptive_eval.items.reading.reader import Parser, Reading, read_answer, read_once
from pytest_adaptive_eval.items.reading.stated import without_notes
from pytest_adaptive_eval.items.reading.statements import Chosen, read_statements, symbol
from pytest_adaptive_eval.items.reading.truth import read_truth, truth_of

#: What stands between the letter of a choice and its text.
_BETWEEN = word_pattern(r"[\s:.)\]*\"'(=\u2013\u2014-]{0,8}")
#: A letter before an option in a prompt, and the text up to the next.
_INLINED = word_pattern(r"(?<!\w)[(\[]?([A-J])[)\].:]\s*([^\n]*?)(?=[\s,;]*(?<!\w)[(\[]?[B-J][)\].:]\s|\s*(?:\n|\Z))")
#: The verb of a question for one of several: a form with s, or its last word in other languages.
_ASKED_VERB = word_pattern(
    r"⟨asks_which⟩\s+\w+\s[^?\n]*?\b([a-z]+[^\W\duias]s)\b"
    r"|⟨asks_which -en⟩\s[^?\n]*\b(\w{3,})\s*\?",
    re.IGNORECASE,
)
#: Words of a choice that may stand for it: the only one, or those of a name; and a name in four characters.
_NAMES = word_pattern(r"\A\s*[^\W\d_]+\s*\Z|(?<!\w)[^\W\d_a-zß-öø-ÿа-я][^\W\d_]+(?=\s*\Z)")
_UNSPACED_NAMES = word_pattern(
    r"\A[\u3400-\u9fff]{2}(?=[\u3400-\u9fff]{2}\Z)|(?<=\A[\u3400-\u9fff]{2})[\u3400-\u9fff]{2}\Z"
)
#: Letters of a word without its end.
_STEM = 4
#: A choice that is an expression, which is written in several ways.
_FORMULA = word_pattern(r"[\d\\^_=+*/√π<>]")
#: A question for what is wrong, and one for what is not so.
_ASKS_WRONG = word_pattern(
    r"\b(?:except|least|in(?:correct|valid|accurate)|false|wrong|untrue|(?:not|n't)\s+(?:\w+\s+)?(?:true|correct|right|valid|accurate))\b",
    re.IGNORECASE,
)
_ASKS_NOT = word_pattern(r"\b(?:not|never|cannot|unlikely|excluded?)\b|n't\b", re.IGNORECASE)
_ARTICLE = word_pattern(r"\A(?:an?|the)\s+", re.IGNORECASE)
_LATEX = word_pattern(
    r"\\(?:text|textbf|mathbf|mathrm|textit|mbox|bf|rm|mathit|boldsymbol|bold|mathsf|displaystyle|left|right)\b"
    r"|\\[()\[\] ,;!]"
)
_LOOKALIKES = str.maketrans("АВСЕ", "ABCE")
#: Characters of a text whose only mention of a choice may be its answer.
_SHORT = 400


class Mark(NamedTuple):
    """Place of a choice in a text."""

    start: int
    end: int
    option: int
    weak: bool


def _is_one(text: str, first: Mark, second: Mark) -> bool:
    """Return whether two places are a letter and the text of the same choice."""
    return first.option == second.option and _BETWEEN.fullmatch(text, first.end, second.start) is not None


def _bare(text: str) -> str:
    """Return a text without LaTeX formatting and emphasis marks."""
    return _LATEX.sub(" ", text).replace("**", "").replace("\\(", " ")


def _words(text: str) -> str:
    return " ".join(_bare(text).split()).strip(" .!,;:\"'`*$(){}[]")


def _cased(text: str) -> str:
    """Return the words of a text; none for a single letter, which rather names a choice."""
    words = _words(text)
    if len(words) == 1 and words.isalpha():
        return ""
    return words


def _normal(text: str) -> str:
    return _cased(text).casefold()


def _without_article(text: str) -> str:
    return _ARTICLE.sub("", _normal(text))


def _expression(text: str) -> str | None:
    if _FORMULA.search(text):
        return normal_expression(text.strip(" *\"'"))
    return None


def _number(text: str) -> str | None:
    number = None
    if is_lone_number(text):
        number = expected_number(text)
    if number:
        return str(number.values[0])
    return None


_Form = Callable[[str], str | None]
#: Forms in which a text may equal a choice, from the strictest.
_FORMS: tuple[_Form, ...] = (_cased, _normal, _expression, _number)


def _in_words(form: str, pattern: str) -> str:
    """Return a pattern that begins and ends where words and numbers do; scripts without spaces have no words."""
    if form[0].isalnum() and form[0] < "\u2e80":
        start = "(?<!⟨latin⟩)"
    else:
        start = ""
    if form[-1].isalnum() and form[-1] < "\u2e80":
        end = "(?!⟨latin⟩)"
    else:
        end = ""
    return f"{start}{'(?<![.,-])' * form[0].isdigit()}{pattern}{end}{'(?![.,][0-9])' * form[-1].isdigit()}"


def _distinct_truths(texts: Sequence[str]) -> list[str | None]:
    """Return the truth values of texts, if each is another one; else an empty list."""
    truths = [truth_of(text) for text in texts]
    distinct = len(set(truths)) == len(truths) > 1
    if distinct and None not in truths:
        return truths
    return []


def _single_letters(words: Sequence[str]) -> dict[str, int]:
    """Return the indexes of choices that are single letters, which no other choice is."""
    folded = [word.casefold() for word in words]
    letters = {}
    for index, word in enumerate(words):
        if len(word) == 1 and word.isalpha() and folded.count(folded[index]) == 1:
            letters[word] = index
    return letters


class _Choices:
    """Choices of an item, in the form searched for."""

    def __init__(self, texts: tuple[str, ...]) -> None:
        self.raw = [plain_characters(text) for text in texts]
        self.texts = [_normal(text) for text in self.raw]
        #: Truth values of the choices, if each is another one.
        self.truths = _distinct_truths(self.raw)
        #: Forms of a text, with what it equals for each choice, if any choice has that form.
        forms: list[tuple[_Form, Sequence[str | None]]] = []
        for form in _FORMS:
            forms.append((form, [form(text) for text in self.raw]))
        forms += [(_without_article, self.texts), (truth_of, self.truths)]
        self._forms = [(form, values) for form, values in forms if any(values)]
        self.count = len(texts) or 26
        #: Choices that are single letters.
        self._letters = _single_letters([_words(text) for text in self.raw])
        #: Choices whose texts are searched in texts, the longest first.
        named = [index for index, form in enumerate(self.texts) if len(form) > 1 or form.isdigit()]
        self._indexes = sorted(named, key=lambda index: -len(self.texts[index]))

    @functools.cached_property
    def _pattern(self) -> re.Pattern[str]:
        """Return the pattern of the texts of choices in whole words, a group for each, and of letters."""
        groups = []
        for index in self._indexes:
            alike = self.texts.count(self.texts[index]) > 1
            if alike:
                form = _cased(self.raw[index])
            else:
                form = _ARTICLE.sub("", self.texts[index])
            words = r"\s+".join(map(re.escape, form.split()))
            if alike:
                words = rf"((?-i:{words}))"
            else:
                words = rf"((?:\b(?:an?|the)\s+)?{'|'.join((words, *self._short_forms(index)))})"
            groups.append(_in_words(form, words))
        return re.compile(with_words("|".join((*groups, "⟨label⟩"))), re.IGNORECASE)

    def _short_forms(self, index: int) -> list[str]:
        """Return patterns of a choice in part: its word with another end, or a name of a person, if no other has it."""
        parts = [
            f"{re.escape(word[: max(_STEM, len(word) - 2)])}[a-zà-ӿ]{{0,3}}"
            for word in _NAMES.findall(self.raw[index])
            if len(word) > _STEM
        ]
        parts += _UNSPACED_NAMES.findall(self.raw[index])
        others = " ".join(self.raw[:index] + self.raw[index + 1 :])
        return [part for part in parts if not re.search(part, others, re.IGNORECASE)]

    def equal(self, text: str) -> int | None:
        """Return the choice that a text equals in a form that no other choice has."""
        letter = self._letters.get(_words(text))
        if letter is not None:
            return letter
        for form, form_choices in self._forms:
            value = form(text)
            if value and form_choices.count(value) == 1:
                return form_choices.index(value)
        return None

    def verbatim(self, text: str) -> int | None:
        """Return the choice that a text is word for word."""
        equal = [index for index, choice in enumerate(self.raw) if choice.strip() == text]
        if len(equal) == 1 and len(text) > 1:
            return equal[0]
        return None

    def symbols(self, text: str) -> str:
        """Return a bare text with a symbol in place of each choice, named by letter, by text, or by both."""
        parts = []
        end = 0
        for mark in self._marks(text):
            parts += [text[end : mark.start], symbol(mark.option, weak=mark.weak)]
            end = mark.end
        return "".join((*parts, text[end:]))

    def _marks(self, text: str) -> list[Mark]:
        """Return the places of choices in a text; a letter and the same choice's text are one."""
        marks: list[Mark] = []
        texts = len(self._indexes)
        for match in self._pattern.finditer(text):
            group = match.lastindex
            if group is None:
                continue
            letter = match[group].translate(_LOOKALIKES)
            is_text = group <= texts
            if is_text:
                option = self._indexes[group - 1]
            else:
                option = self._letters.get(letter, ord(letter.upper()) - ord("A"))
            mark = Mark(match.start(), match.end(), option, weak=is_text or group > texts + 2)
            if marks and _is_one(text, marks[-1], mark):
                marks[-1] = Mark(marks[-1].start, mark.end, option, weak=marks[-1].weak and mark.weak)
            elif option < self.count and not (is_text and self.truths):  # "no" is a word of the text
                marks.append(mark)
        return marks

    def stated(self, text: str, *, wrong: bool = False, negative: bool = False) -> list[Chosen]:
        """Return the choices that a text, or a part that gives the answer, affirms."""
        bare = _bare(text)
        for form in (text, bare):
            chosen = self.whole(form)
            if chosen is not None:
                return [chosen]
        body = without_notes(self.symbols(bare))
        affirmations = read_statements(body, self.whole, wrong=wrong, negative=negative, mentions=_SHORT)
        return affirmations or self._unstated(bare)

    def _unstated(self, bare: str) -> list[Chosen]:
        """Return the choices that a bare text gives without affirming one: truth values, none, or its last line."""
        if all(map(str.isdecimal, self.raw)) and (digits := with_digits(bare)) != bare:
            return self.stated(digits)
        if self.truths:
            return [(self.truths.index(value),) for value in read_truth(bare).values if value in self.truths]
        chosen = self.whole(bare.rstrip().rpartition("\n")[2])
        if chosen is None:
            return []
        return [chosen]

    def whole(self, text: str) -> Chosen | None:
        """Return what a text is as a whole: a choice, or letters in a row, such as ABD; a single one may be small."""
        equal = self.equal(text)
        if equal is not None:
            return (equal,)
        match = re.fullmatch(r"[\W_]*(?:([A-Z]{2,10})|([a-z]))[\W_]*", text)
        if match:
            letters = match[1] or match[2].upper()
        else:
            letters = ""
        indexes = [ord(letter) - ord("A") for letter in letters]
        ascending = bool(indexes) and indexes == sorted(set(indexes)) and indexes[-1] < self.count
        if ascending:
            return tuple(indexes)
        return None


@functools.lru_cache(maxsize=256)
def _inlined(question: str) -> tuple[str, ...]:
    """Return the options that a prompt lists behind the letters A, B and so on, of the last list; empty without one."""
    options: list[str] = []
    for match in _INLINED.finditer(question):
        if match[1] == "A":
            options = []
        if ord(match[1]) - ord("A") == len(options) and match[2].strip(" ,;"):
            options.append(match[2].strip(" ,;"))
    if len(set(options)) == len(options) > 1:
        return tuple(options)
    return ()


@functools.lru_cache(maxsize=256)
def _listed(choices: tuple[str, ...]) -> _Choices:
    return _Choices(choices)


@read_once
def read_choice(text: str, choices: Sequence[str] = (), question: str = "") -> Reading[Chosen]:
    """Return the choices that a text gives as its answer; any letter is one if the prompt lists them.

    A text that is a choice, word for word, gives it. "A is wrong" denies A unless the question asks for what is wrong.
    """
    options = tuple(choices) or _inlined(question)
    listed = _listed(options)
    if (index := listed.verbatim(answer_part(text))) is not None:
        return Reading(((index,),))
    text = with_capitals(text, labels_of(question, options), listed.count)
    for choice in options:
        question = question.replace(choice, " ")
    if verb := _ASKED_VERB.search(question):
        text = re.sub(rf"(?<!\w)A(?=\s+{verb[1] or verb[2]}\b)", "(A)", text)
    wrong = bool(_ASKS_WRONG.search(question))
    negative = bool(_ASKS_NOT.search(question))
    read = functools.partial(listed.stated, wrong=wrong, negative=negative)
    return read_answer(text, Parser(read))


def choice_of(answer: str, choices: Sequence[str] = (), question: str = "") -> Chosen | None:
    """Return the choices that an expected answer names by text, letter or letters, or None.

    Args:
        question: Text that may show the choices with other labels, such as digits. The answer may then be a digit.
    """
    listed = _listed(tuple(choices))
    answer = plain_characters(answer).strip()
    if (index := listed.verbatim(answer)) is not None:
        return (index,)
    labels = labels_of(question, tuple(choices))
    if answer in labels:
        return (labels.index(answer),)
    letters = re.findall(r"\b[A-Z]\b", answer)
    if len(letters) > len(set(letters)):
        return None  # a sequence
    stated = listed.stated(answer)
    if len(stated) == 1:
        return stated[0]
    return None
