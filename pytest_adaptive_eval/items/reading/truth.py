"""Read yes, no or unknown that a text gives as its answer, in many languages."""

from __future__ import annotations

import functools
import re

from pytest_adaptive_eval.items.reading.constructions import WORDS, word_pattern
from pytest_adaptive_eval.items.reading.denial import abstains
from pytest_adaptive_eval.items.reading.reader import Parser, Reading, read_answer, read_once
from pytest_adaptive_eval.items.reading.restating import content_words, is_negated, is_uncertain
from pytest_adaptive_eval.items.reading.stated import without_notes
from pytest_adaptive_eval.items.reading.statements import Chosen, read_statements, symbol

_AFTER = r"(?![^\W\d_])"
_BEFORE = r"(?<![^\W_])"


def _pattern(name: str) -> str:
    """Return a pattern of whole words; scripts without spaces have no borders of words."""
    spaced: list[str] = []
    others: list[str] = []
    for word in sorted("|".join(WORDS[name].values()).split("|"), key=len, reverse=True):
        (others if "\u2e80" <= word[0] <= "\uffff" else spaced).append(re.escape(word))
    return "|".join(filter(None, (f"{_BEFORE}(?:{'|'.join(spaced)}){_AFTER}", "|".join(others))))


_TOKEN = word_pattern(
    rf"(?P<unknown>{_pattern('says_unknown')})|(?P<no>{_pattern('says_no')})|(?P<yes>{_pattern('says_yes')})",
    re.IGNORECASE,
)
#: What is before and after a word that is an answer: "no" before another word mostly is none, nor is "on the right".
_BEFORE_WORD = word_pattern(
    r"(?:\A|[^\w\s]|\n|\b(?:is|was|be|say|think|believe|guess|so|thus|hence|therefore|answer|probably|likely|definitely|clearly|actually"
    r"|certainly|indeed|also|it's|that's|a|an|or|and|but|not|either|maybe|with|response|es|est|é|è|ist|lautet"
    r"|initially|edit|wait|oh|well|hmm|ah|are|that|que|di|dass|че)\s"
    r"|(?:⟨states links chooses concludes surely contrasts and⟩)\s?)\s*\Z",
    re.IGNORECASE,
)
_AFTER_WORD = word_pattern(
    r"\s*(?:[^\w\s]|\n|\Z|[^\x00-\x7f])|\s+(?:it|there|that|this|i|we|you|he|she|they|the|or|and|because|since"
    r"|but|is|would|rather|nor|indeed|of|definitely|hoor|wirklich|eh)\b|\s+⟨because contrasts and⟩",
    re.IGNORECASE,
)
_COPULA = r"(?:is|was|are|were|does|do|did|can|could|would|will|has|have)"
_SUBJECT = r"(?:it|that|this|there|he|she|they|the\s+(?:statement|claim|sentence|answer|assertion))"
#: Phrases that say no or yes, the first that fits, and phrases that say neither though they begin with "no".
_PHRASE = word_pattern(
    r"(?P<none>\b(?:yes|no)\s+(?:is|would\s+be|seems)\s+(?:\w+ly\s+)?(?:wrong|incorrect|false|not)\b|\bno\s+way\s+(?:to|of)\b"
    r"|\bno\s+(?:\w+\s+){0,2}(?:idea|clue|comment|answer|opinion|information|data|evidence|image|one|conclusion|response|reply)\b|\bnobody\b"
    r"|\bno\s+(?:lo\s+s|s[eé]\b|hay|es\s+posible|tengo)|\bnão\s+s|\bnon\s+lo\s+so\b|\bнет\s+\w|لا\s+أ[عد]|\bkhông\s+\w|\bnie\s+w|不知|没有信|\bno\s+doubt|पता\s+नहीं)"
    r"|(?P<no>\bnot\s+(?:really|at\s+all|quite|exactly|necessarily)\b|\b(?:certainly|definitely|absolutely|of\s+course|probably|likely|clearly|obviously|i\s+(?:think|believe|guess|say)"
    r"|i'?m\s+afraid)\s+not\b(?=\W|$)(?!\s+\w)|\bi\s+(?:do\s+not|don't)\s+(?:think|believe)\s+so\b|(?:^|(?<=[.!?]\s))(?:never|none|nah|no\s+way|nee|not\s+that\s+i\s+can\s+see|not\s+in\s+(?:this|the)\s+\w+)\b(?=\W*$)|\bstimmt\s+nicht\b"
    rf"|\b(?:{_SUBJECT}(?:'s|\s+{_COPULA})(?:\s+not|n?'t)|{_SUBJECT}\s+cannot)(?:\s+\w+ly)?(?:\s+(?:true|correct|right|accurate|the\s+case|there|visible|present))?(?=\s*(?:[.,;!\n]|$))"
    r"|⟨not⟩\s+⟨links⟩(?:\s+\w+)?\s+⟨right⟩"
    r"|⟨not⟩\s+(?:lo\s+)?⟨states links⟩(?=\s*(?:[.;!\n]|$))"
    r"|⟨states links⟩\s+(?:es\s+|das\s+|het\s+)?⟨not⟩(?=\s*(?:[.;!\n]|$)))"
    r"|(?P<yes>(?:^|(?<=[.!?:]\s))(?:indeed|certainly|definitely|absolutely|of\s+course|sure|surely)\b(?=[.!]?\s*\Z|[,.!]?\s+(?:there|it|yes|the)\b)|\bi\s+(?:think|believe|guess)\s+so\b|\bdas\s+stimmt\b(?!\s+nicht)"
    rf"|\b{_SUBJECT}(?:'s|(?:\s+\w+ly)?\s+{_COPULA})(?:\s+indeed)?(?:\s+the\s+case)?(?=\s*(?:[.!\n]|$)))",
    re.IGNORECASE | re.MULTILINE,
)
#: Statements that something is there or not.
_EXISTS = word_pattern(
    r"(?P<says>(?:^|(?<=[.!?]\s))no\b|\bthere(?:'s|\s+(?:is|are|was|were))(?:n't|\s+not?\b)?|\bi\s+(?:can\s+)?(?:(?:do\s+not|don't|cannot|can't|can\s+not)\s+)?(?:see|spot|find)(?:\s+no\b)?"
    r"|\bthe\s+(?:image|picture|photo|text|passage)\s+(?:(?:does\s+not|doesn't)\s+)?(?:shows?|contains?|depicts?|includes?|mentions?)(?:\s+no\b)?)(?P<what>\s+[\w\s]{1,80})",
    re.IGNORECASE | re.MULTILINE,
)
_DENIED = word_pattern(r"\bno\b|not\b|n't\b", re.IGNORECASE)
_SHOWN = word_pattern("⟨shown⟩", re.IGNORECASE)
#: A question for what is there, and statements about it in other languages, whose nouns cannot be compared with it.
_ASKS_EXISTENCE = word_pattern(r"\b(?:is|are)\s+there\b", re.IGNORECASE)
_EXISTS_ELSEWHERE = word_pattern("⟨exists⟩", re.IGNORECASE)
_VALUES = ("yes", "no", "unknown")
#: Where a clause ends, and the questions of a prompt.
_SEPARATOR = word_pattern(r"[.,;:!?\n。，！？]|⟨because contrasts concludes⟩|\b(?:and|und)\b|\Z", re.IGNORECASE)
_ASKED = word_pattern(r"[^.!?\n。！？]+[?？]")
#: A verb that a text repeats from its question.
_ECHO = word_pattern(r"\W*(?:[a-zà-ӿ]{4,}|\w{0,2}[过了有会能])\W*", re.IGNORECASE)
_ASKS_OR = word_pattern("⟨or⟩", re.IGNORECASE)
_PAST = word_pattern("⟨former past⟩", re.IGNORECASE)


def _kind(match: re.Match[str]) -> str:
    return next(kind for kind in _VALUES if match[kind])


def _symbols(text: str, question: str) -> str:
    """Return a text with a symbol in place of each word and phrase that says yes, no or unknown."""
    asked = set(_words(question))

    def existence(match: re.Match[str]) -> str:
        words = set(_words(match["what"]))
        denied = _DENIED.search(match["says"])
        if words and words <= asked:
            return symbol(_VALUES.index("no" if denied else "yes"))
        return match[0]

    def phrase(match: re.Match[str]) -> str:
        if match["none"]:
            return " ... "
        return symbol(_VALUES.index("no" if match["no"] else "yes"))

    def word(match: re.Match[str]) -> str:
        before = text[max(0, match.start() - 24) : match.start()]
        alone = _BEFORE_WORD.search(before) and _AFTER_WORD.match(text, match.end())
        if alone or match["unknown"] or " " in match[0]:
            return symbol(_VALUES.index(_kind(match)))
        return match[0]

    text = re.sub(r"\\(?:text|textbf|mathbf|mathrm)\b|[{}$\\]", " ", text)
    text = _PHRASE.sub(phrase, _EXISTS.sub(existence, text))
    return _TOKEN.sub(word, text)


def _restated(text: str, question: str) -> str:
    """Return a text with a symbol in place of the last statement that repeats the question, affirmed or denied."""
    *_, asked = ("", *_ASKED.findall(question))
    order = _words(asked)
    words_of_question = {*_words(question), *order}
    if len(order) > 1:
        predicate = order[-2:] if order[-1] > "\u2e80" else order[1:]
    else:
        predicate = order
    span = None
    start = 0
    supposed, mark = False, ""
    other_text = question.replace(asked, " ")
    for separator in _SEPARATOR.finditer(text):
        clause, limits = text[start : separator.start()], (start, separator.start())
        start = separator.end()
        words = _words(clause)
        repeats = bool(predicate) and set(words) <= words_of_question and set(predicate) <= set(words)
        rest = order[1:]  # a question may begin with its verb
        in_order = [word for word in rest if word in words] == [word for word in words if word in rest]
        elsewhere = _ASKS_EXISTENCE.search(asked) and _EXISTS_ELSEWHERE.search(clause)
        supposed = is_uncertain(clause) or (supposed and mark == ",")
        mark = separator[0]
        unsure = supposed or (_PAST.search(clause) and not _PAST.search(asked))
        is_echo = (
            not limits[0] and _ECHO.fullmatch(clause) and clause.strip().lower() in asked and not _ASKS_OR.search(asked)
        )
        is_statement = (elsewhere or is_echo or (repeats and in_order)) and not unsure and mark != "?"
        if is_statement and clause.strip() not in other_text:
            span = limits
    if span is None:
        return text
    value = "no" if is_negated(text[slice(*span)]) else "yes"
    return f"{text[: span[0]]} {symbol(_VALUES.index(value))}{text[span[1] :]}"


def _words(text: str) -> list[str]:
    """Return the words of a text that mean something, in order, without those for where it is seen."""
    return content_words(text)


def _values(text: str, question: str = "") -> list[str]:
    """Return the truth values that a text, or a part that gives the answer, affirms."""
    affirmations = read_statements(without_notes(_symbols(text, question)), _whole, mentions=len(text))
    if not any(affirmations):
        restated = _restated(text, question)
        if restated != text:
            affirmations = read_statements(without_notes(_symbols(restated, question)), _whole, mentions=len(text))
    if not affirmations and abstains(text):
        return ["unknown"]
    return [_VALUES[index] if len(chosen) == 1 else "several" for chosen in affirmations for index in chosen[:1]]


def _whole(text: str) -> Chosen | None:
    """Return the index of the truth value that a text is as a whole, if any."""
    match = _TOKEN.fullmatch(re.sub(r"(?:です|입니다)?[\W_]*\Z", "", text.strip(" \"'*")))
    if match:
        return (_VALUES.index(_kind(match)),)
    return None


@read_once
def read_truth(text: str, question: str = "") -> Reading[str]:
    """Return ``yes``, ``no`` or ``unknown`` as a text gives it.

    Args:
        question: Question that it answers: "There is no dog" says no where it asks for a dog.
    """
    read = functools.partial(_values, question=question)
    return read_answer(text, Parser(read))


def truth_of(answer: str) -> str | None:
    """Return the truth value that an expected answer is, or None."""
    match = _TOKEN.fullmatch(answer.strip(" .!\"'"))
    if match is None:
        return {"1": "yes", "0": "no", "y": "yes", "n": "no", "t": "yes", "f": "no"}.get(answer.strip().lower())
    return _kind(match)
