"""Read which of several choices a text gives as its answer: by its letter or by its text."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from pytest_adaptive_eval.items.reading.cleaning import ends_word, plain_characters, whole_words
from pytest_adaptive_eval.items.reading.denial import abstains, without_denied
from pytest_adaptive_eval.items.reading.expression import normal_expression
from pytest_adaptive_eval.items.reading.numbers import expected_number, is_lone_number
from pytest_adaptive_eval.items.reading.reader import Parser, Reading, read_answer
from pytest_adaptive_eval.items.reading.truth import read_truth, truth_of
from pytest_adaptive_eval.lazy_pattern import lazy_pattern

#: Indexes of the choices that are given together, sorted.
Chosen = tuple[int, ...]

_WORD = (
    r"(?:(?:the\s+)?(?:options?|choices?|letters?|answers?|output|alternative|image|picture|candidate|statement|point|box|panel|region|opción|opção|option|"
    r"вариант|буква|pilihan|opsi)(?![^\W_])|选项|選択肢|选择|选|項目|보기|विकल्प|الخيار|বিকল্প)"
)
_OPEN = r"[\s\"'`$*_(\[{<:：「『【|~.=>-]*+"
#: A letter alone, wrapped, before punctuation or at the end of its line; "A" and "I" before another word are words.
_LEADING = lazy_pattern(
    rf"{_OPEN}(?:(?:either|both)\s+)?(?:{_WORD}[\s_:#-]*)?{_OPEN}(?!I'[a-z])"
    r"([A-Z](?=[)\]}>*:,;$\"'`|/&」』】、。．]|\.(?![A-Z]\.)|\s*$|\s+[-=(\[{\u2013\u2014<|]|[^\x00-\x7f])"
    r"|(?-i:[B-HJ-Z])(?=\s)|(?-i:A)(?=\s+(?:is|because|since|as|and|or|with|i\.e|was|seems)\b))",
    re.IGNORECASE | re.MULTILINE,
)
_MORE = lazy_pattern(
    rf"[\s)\]}}>*'\"$.]*(?:,?\s*(?P<or>or|oder|ou|или|o|vs\.?|或|又は|または)\s+"
    r"|,?\s*(?:and|as well as|und|et|и|y|e)\s+"
    r"|\s*(?:(?P<bar>[|/])|[,;&+、和及与,])\s*(?:and\s+|(?P<also>or)\s+)?)"
    rf"(?:(?:maybe|perhaps|possibly|probably|even|else)\s+)?(?i:{_WORD}[\s_]*)?[\s(\[{{<*'\"$]*([A-Z])(?![A-Za-z0-9'])(?!\s+[a-z])"
)
#: A letter that ends a sentence.
_ENDING = r"(?=[\s(\[*\"'$`]*(?-i:[A-Z])[)\]*\"'$`]*(?:[.,;!:\n]|\s*\Z))"
_CUE = (
    r"\b(?:i|we)(?:'d|'ll|\s+would|\s+will|\s+must|\s+have\s+to|\s+should|\s+can)?(?:\s+therefore|\s+thus)?\s+"
    r"(?:choose|chose|pick|select|go\s+with|opt\s+for|conclude(?:\s+that)?|guess|say)\b\s*(?:that\s+)?(?:it\s+is\s+)?(?:the\s+)?"
    r"|\b(?:thus|so|hence|therefore),?\s+(?=(?:the\s+)?(?:option|choice)\b)"
    rf"|\b(?:(?:thus|so|hence|therefore|then),?|it(?:'s|\s+is|\s+(?:must|should|has\s+to)\s+be)|my\s+(?:guess|choice|pick|vote)\s*(?:is|:)?)\s*{_ENDING}"
    r"|\b(?:leaving|leaves)\s+(?:us\s+)?(?:with\s+)?(?:only\s+)?(?=\W*(?:the\s+)?(?:option|choice)\b|\W*(?-i:[A-Z])\b)"
    r"|(?:故选|应选|因此选|所以选|选择|我选|选)(?!项|择题)\s*[:：]?"
)
_CUES = lazy_pattern(_CUE, re.IGNORECASE)
#: The same where a question asks for what is wrong.
_CUES_FOR_WRONG = lazy_pattern(
    rf"{_CUE}|\b(?:in(?:correct|valid|accurate)|wrong|false)\s+(?:answer|option|choice|statement|one)\s+is\s*:?",
    re.IGNORECASE,
)
_SUFFIX = lazy_pattern(
    rf"(?:{_WORD}[\s_]{{0,4}})?[(\[*\"'$]{{0,5}}"
    r"(?<![A-Za-z0-9])(?<!nor )([A-Z]|(?<=[(\[])[a-z](?=[)\]]))(?![A-Za-z0-9'])[)\]*\"'$]{0,5}"
    r"(?:\s{0,3}[(\[][^()\[\]\n]{0,80}[)\]]|\s+(?:(?![(\[][A-Za-z][)\]])[^\n.!?]){0,60}?)?[*,]{0,3}\s{0,3}"
    r"(?:(?:is|would\s+be|must\s+be|seems|appears\s+to\s+be|should\s+be)\s+(?:therefore\s+|thus\s+|likely\s+|probably\s+|"
    r"indeed\s+|also\s+|clearly\s+)?(?:the\s+)?(?:only\s+|most\s+)?(?:one\s+)?"
    r"(?:correct|right|best|better|true|accurate|answer|closest|appropriate|likely|suitable|preferred|superior|valid|consistent)\b"
    r"(?!\s+(?:than|for\s+the\s+first))|[-\u2013\u2014:(]\s{0,2}(?:correct|right)\b|是?(?:正确|对|最佳)的?|が正しい|este\s+correct)"
)
#: A line of a list of choices.
_LISTED = lazy_pattern(r"\s*(?:[-*]\s+)?(?i:choice[\s_]*)?[(\[]?[A-Z][)\].:]\s*\S")
_LETTER = lazy_pattern(r"(?<![A-Za-z0-9'\\])([A-Z])(?![A-Za-z0-9'])")
_WRAPPED = lazy_pattern(
    r"[(\[]\s{0,2}((?-i:[A-Z]))\s{0,2}[)\]]"
    rf"|\b{_WORD}[\s_]{{0,4}}(?:[(\[]([a-z])[)\]]|[(\[*\"']{{0,5}}((?-i:[A-Z]))(?![A-Za-z0-9]))",
    re.IGNORECASE,
)
#: A small letter that only its brackets make a choice's.
_BRACKETED = lazy_pattern(r"(?<![A-Za-z0-9])[(\[]([a-z])[)\]]")
#: Characters of a text of which any single letter may be the answer.
_SHORT = 200
#: Part of a question that an answer repeats.
_SUBQUESTION = lazy_pattern(r"\A\s*\([a-z]\)\s")
_NONE = lazy_pattern(
    r"\b(?:none|neither|no one) of (?:the|these|those)\b[^.\n]{0,40}\b(?:options|choices|answers|above)\b", re.I
)
#: What ends a choice that a line begins with.
_ENDED = lazy_pattern(r"[\s\"')\]*]*(?:[.,:;!(\n\u2013\u2014-]|\Z)")
#: A line that is a choice with its letter, short and without a sentence.
_LABELLED = lazy_pattern(r"(?:[-*]\s+)?[(\[]?([A-Z])[)\].:]+\s*\S[^.!?]{0,60}[.]?")
#: A choice that is an expression, which is written in several ways.
_FORMULA = lazy_pattern(r"[\d\\^_=+*/√π<>]")
#: Characters of a text that may be a list of choices.
_LONGEST_LIST = 400
#: A question for what is wrong.
_ASKS_WRONG = lazy_pattern(
    r"\b(?:not|never|except|least|in(?:correct|valid|accurate)|false|wrong|untrue|cannot|n't|unlikely|excluded?)\b",
    re.IGNORECASE,
)
_ARTICLE = lazy_pattern(r"\A(?:an?|the)\s+", re.IGNORECASE)
_LATEX = lazy_pattern(
    r"\\(?:text|textbf|mathbf|mathrm|textit|mbox|bf|rm|mathit|boldsymbol|bold|mathsf|displaystyle|left|right)\b"
    r"|\\[()\[\] ,;!]"
)
_LOOKALIKES = str.maketrans("АВСЕ", "ABCE")


def _bare(text: str) -> str:
    """Return a text without LaTeX formatting and emphasis marks."""
    return _LATEX.sub(" ", text).replace("**", "").replace("\\(", " ")


def _normal(text: str) -> str:
    return _cased(text).casefold()


def _cased(text: str) -> str:
    return " ".join(_bare(text).split()).strip(" .!,;:\"'`*$(){}[]")


class _Choices:
    """Choices of an item, in the form searched for."""

    def __init__(self, texts: tuple[str, ...], *, subjects: bool = True) -> None:
        self.subjects = subjects
        self.raw = [plain_characters(text) for text in texts]
        self.texts = [_normal(text) for text in self.raw]
        self._expressions = [normal_expression(text) if _FORMULA.search(text) else "" for text in self.raw]
        numbers = [expected_number(text) if is_lone_number(text) else None for text in self.raw]
        self._numbers = [None if number is None else number.values[0] for number in numbers]
        truths = [truth_of(text) for text in self.raw]
        #: Truth values of the choices, if each is another one.
        self.truths = truths if None not in truths and len(set(truths)) == len(truths) > 1 else []
        self.count = len(texts) or 26

    def letter(self, letter: str) -> int | None:
        index = ord(letter.upper()) - ord("A")
        return index if index < self.count else None

    def equal(self, text: str) -> int | None:
        """Return the choice that a text equals, ignoring articles, and case if choices stay distinct."""
        if len(_normal(text)) > 1 < self.texts.count(_normal(text)):  # a single letter rather names a choice
            exact = [index for index, choice in enumerate(self.raw) if _cased(choice) == _cased(text)]
            if len(exact) == 1:
                return exact[0]
        for form in dict.fromkeys((_normal(text), _normal(_ARTICLE.sub("", text.strip(" *\"'$"))))):
            if form and self.texts.count(form) == 1:
                index = self.texts.index(form)
                if len(form) > 1 or not form.isalpha() or self.raw[index].strip(" ()[].") in text:
                    return index
        return self._equivalent(text)

    def _equivalent(self, text: str) -> int | None:
        """Return the choice that is the same expression, number or truth value."""
        expression = normal_expression(text.strip(" *\"'"))
        if len(expression) > 1 and self._expressions.count(expression) == 1:
            return self._expressions.index(expression)
        if any(number is not None for number in self._numbers) and is_lone_number(text):
            number = expected_number(text)
            if number is not None and self._numbers.count(number.values[0]) == 1:
                return self._numbers.index(number.values[0])
        truth = truth_of(text) if self.truths else None
        return self.truths.index(truth) if truth in self.truths else None

    def begins(self, text: str) -> int | None:
        """Return the longest choice that a text begins with."""
        for form in (_normal(text), _normal(_ARTICLE.sub("", text.strip(" *\"'$")))):
            fitting = [
                choice for choice in self.texts if choice and form.startswith(choice) and ends_word(form, len(choice))
            ]
            if fitting and self.texts.count(max(fitting, key=len)) == 1:
                return self.texts.index(max(fitting, key=len))
        return None

    def within(self, text: str) -> list[int]:
        """Return the choices whose texts occur in a text, except as part of another choice."""
        form = " ".join(_bare(text).casefold().split())
        spans: list[tuple[int, int, int]] = []
        for index, choice in enumerate(self.texts):
            if not choice or (len(choice) < 2 and not choice.isdigit()):
                continue
            spans += [(start, start + len(choice), index) for start in whole_words(choice, form)]
        return sorted(
            {
                index
                for start, end, index in spans
                if not any(s <= start and end <= e and e - s > end - start for s, e, _ in spans)
            }
        )

    def stated(self, text: str) -> list[Chosen]:
        """Return the choices at the start of a part that gives the answer."""
        if (equal := self.equal(text)) is not None:
            return [(equal,)]
        text = _bare(text).translate(_LOOKALIKES) if not text.isascii() else _bare(text)
        if (equal := self.equal(text)) is not None:
            return [(equal,)]
        if self._refuses(text):
            return [()]
        text = self._affirmed(text)
        if several := self._listed(text):
            return several
        if letters := self._letters(text):
            return letters
        if self.truths and (truths := self._truth(text)):
            return truths
        if (begin := self.begins(text)) is not None:
            others = set(self.within(re.split(r"[.\n]", text)[0])) - {begin}
            return [(begin,)] if not others else [(begin,), *((other,) for other in sorted(others))]
        if run := self._run(text):
            return [run]
        sentence = re.split(r"(?<=[a-z)])[.!?](?:\s|$)|\n", text)[0]
        wrapped = {index for pair in _WRAPPED.findall(sentence) if (index := self.letter("".join(pair))) is not None}
        if len(wrapped) == 1:
            return [(wrapped.pop(),)]
        inside = self.within(sentence)
        return [(inside[0],)] if len(inside) == 1 else []

    def _refuses(self, text: str) -> bool:
        """Return whether a text says that no choice is right, and no choice says so."""
        return _NONE.search(text) is not None and not any(map(_NONE.search, self.texts))

    def _run(self, text: str) -> Chosen:
        """Return the choices of letters in a row, such as ABD; empty if a text does not begin with them."""
        match = re.match(r"[\s(\[*\"'<]*([A-Z]{2,10})(?![A-Za-z])", text)
        if match is None or list(match[1]) != sorted(set(match[1])) or len(match[1]) > self.count:
            return ()
        indexes = [self.letter(letter) for letter in match[1]]
        return tuple(index for index in indexes if index is not None) if None not in indexes else ()

    def _letters(self, text: str) -> list[Chosen]:
        """Return the letters at the start of a text: one, or several joined by a word or a comma."""
        match = _LEADING.match(text)
        if not match or (first := self.letter(match[1])) is None:
            return []
        indexes, end, either = [first], match.end(1), False
        while more := _MORE.match(text, self._past(text, indexes[-1], end)):
            if (index := self.letter(more[4])) is None:
                break
            indexes.append(index)
            either = either or bool(more["or"] or more["bar"] or more["also"])
            end = more.end(4)
        return [(index,) for index in dict.fromkeys(indexes)] if either else [tuple(sorted(set(indexes)))]

    def _past(self, text: str, index: int, end: int) -> int:
        """Return the end of a choice's text after its letter, or of a few words before another letter in brackets."""
        after = re.match(r"[)\]}.:\s*-]*", text[end:])
        start = end + (after.end() if after else 0)
        choice = self.raw[index] if index < len(self.raw) else ""
        if choice and text[start : start + len(choice)].casefold() == choice.casefold():
            return start + len(choice)
        words = re.match(r"[^\n.!?(]{0,60}?(?=\s(?:or|and)\s+\([A-Z]\))", text[start:])
        return start + words.end() if words else end

    def _affirmed(self, text: str) -> str:
        return without_denied(text, self.texts, subjects=self.subjects)

    def _truth(self, text: str) -> list[Chosen]:
        return [(self.truths.index(value),) for value in read_truth(text).values if value in self.truths]

    def _listed(self, text: str) -> list[Chosen]:
        """Return the choices of a text that lists several of them and nothing else, whatever separates them."""
        lines = [line.strip() for line in text.split("\n") if line.strip()]
        labels = [_LABELLED.fullmatch(line) for line in lines]
        if len(lines) > 1 and all(labels):
            letters = {index for label in labels if label and (index := self.letter(label[1])) is not None}
            return [tuple(sorted(letters))] if len(letters) > 1 else []
        rest = " ".join(text.casefold().split())
        inside = self.within(text) if len(rest) <= _LONGEST_LIST else []
        if len({self.texts[index] for index in inside}) < 2:
            return []
        for choice in sorted((self.texts[index] for index in inside), key=len, reverse=True):
            rest = rest.replace(choice, " ")
        if re.sub(
            r"\b(?:[a-z](?=[).:\s|]|\Z)|or|and|either|both|maybe|perhaps|possibly|the|an?|option|oder|und|ou|et|o|y)\b|\W",
            "",
            rest,
        ):
            return []
        return [(index,) for index in inside]

    def loose(self, text: str) -> list[Chosen]:
        """Return the choice of a text that does not mark its answer."""
        if (equal := self.equal(text)) is not None:
            return [(equal,)]
        bare = _bare(text)
        if self._refuses(bare):
            return self._suffix(bare)
        bare = self._affirmed(bare).strip()
        if several := self._listed(bare):
            return several
        if len(bare) > _SHORT:
            bare = _SUBQUESTION.sub("", bare)
        for find in (self._suffix, self._leading, self._truth, self._last_line, self._only):
            if chosen := find(bare):
                return chosen
        return []

    def _suffix(self, text: str) -> list[Chosen]:
        indexes = [index for match in _SUFFIX.finditer(text) if (index := self.letter(match[1])) is not None]
        return [(indexes[-1],)] if indexes else []

    def _leading(self, text: str) -> list[Chosen]:
        if chosen := self._letters(text):
            return chosen
        line = text.strip().partition("\n")[0]
        begin = self.begins(line)
        if begin is None or not _ENDED.match(_after(line, self.texts[begin])):
            return []
        return [(begin,)]

    def _last_line(self, text: str) -> list[Chosen]:
        lines = text.rstrip().split("\n")
        listed = sum(bool(_LISTED.match(line)) for line in lines[-12:])
        return [] if listed > 2 else self.stated(lines[-1])

    def _only(self, text: str) -> list[Chosen]:
        """Return the only choice named in a text, by letter or by text."""
        if abstains(text) and not any(map(abstains, self.texts)):
            return []
        for pattern in (_WRAPPED, _BRACKETED, _LETTER) if len(text) <= _SHORT else (_WRAPPED,):
            letters = {"".join(match.groups("")).upper() for match in pattern.finditer(text)}
            indexes = {index for letter in letters - {"I"} if (index := self.letter(letter)) is not None}
            if pattern is _LETTER:
                indexes -= {0}
            if len(indexes) == 1:
                return [(indexes.pop(),)]
            if indexes:
                return []
        inside = self.within(text) if len(text) <= 2 * _SHORT else []
        return [(inside[0],)] if len(inside) == 1 else []


def _after(text: str, start: str) -> str:
    """Return the rest of a text after a choice at its start."""
    words = len(start.split())
    return re.sub(r"\A\W*(?:(?:an?|the)\s+)?", "", text, flags=re.IGNORECASE)[len(start) :] if words else text


@functools.lru_cache(maxsize=256)
def _parser(choices: tuple[str, ...], subjects: bool) -> Parser[Chosen]:
    listed = _Choices(choices, subjects=subjects)
    return Parser(listed.stated, listed.loose, _CUES if subjects else _CUES_FOR_WRONG)


def read_choice(text: str, choices: Sequence[str] = (), question: str = "") -> Reading[Chosen]:
    """Return the choices that a text gives as its answer; any letter is one if the prompt lists them.

    "A is wrong" denies A unless the question asks for what is wrong.
    """
    return read_answer(text, _parser(tuple(choices), not _ASKS_WRONG.search(question)))


def choice_of(answer: str, choices: Sequence[str] = ()) -> Chosen | None:
    """Return the choices that an expected answer names by text, letter or letters, or None."""
    listed = _Choices(tuple(choices))
    answer = plain_characters(answer).strip()
    if answer in choices:
        return (list(choices).index(answer),)
    letters = re.findall(r"\b[A-Z]\b", answer)
    if len(letters) > len(set(letters)):
        return None  # a sequence
    stated = listed.stated(answer)
    return stated[0] if len(stated) == 1 else None
