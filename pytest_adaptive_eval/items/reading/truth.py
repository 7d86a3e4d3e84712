"""Read yes, no or unknown that a text gives as its answer, in many languages."""

from __future__ import annotations

import functools
import re

from pytest_adaptive_eval.items.reading.constructions import WORDS, word_pattern
from pytest_adaptive_eval.items.reading.denial import abstains
from pytest_adaptive_eval.items.reading.reader import Parser, Reading, read_answer, read_once
from pytest_adaptive_eval.items.reading.restating import content_words, is_negated, is_uncertain, shared_words
from pytest_adaptive_eval.items.reading.stated import without_notes
from pytest_adaptive_eval.items.reading.statements import Chosen, option_of, read_statements, symbol

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
    r"\s*(?:[^\w\s]|\n|\Z|です|だ|[\uac00-\ud7afとよねの的了啊吧呢哦呀]|(?<=[\u3040-\u30ff])[\u3400-\u9fff]|(?<=[\x00-\u2e7f])[^\x00-\x7f])|\s+(?:it|there|that|this|i|we|you|he|she|they|the|or|and|because|since"
    r"|but|is|would|rather|nor|indeed|of|definitely|hoor|wirklich|eh)\b|\s+⟨because contrasts and⟩",
    re.IGNORECASE,
)
#: Phrases that say no or yes, the first that fits, and phrases that say neither though they begin with "no".
_PHRASE = word_pattern(
    r"(?P<none>\b(?:yes|no)\s+(?:is|would\s+be|seems)\s+(?:\w+ly\s+)?(?:wrong|incorrect|false|not)\b|\bno\s+way\s+(?:to|of)\b"
    r"|\bno\s+(?:\w+\s+){0,2}(?:idea|clue|comment|answer|opinion|information|data|evidence|image|one|conclusion|response|reply)\b|\bnobody\b"
    r"|\bno\s+(?:lo\s+s|s[eé]\b|hay|es\s+posible|tengo)|\bnão\s+s|\bnon\s+lo\s+so\b|\bнет\s+\w|لا\s+أ[عد]|\bkhông\s+\w|\bnie\s+w|不知|没有信|पता\s+नहीं)"
    r"|(?P<no>⟨negates⟩|\bnot\s+(?:really|at\s+all|quite|exactly|necessarily)\b|\b(?:certainly|definitely|absolutely|of\s+course|probably|likely|clearly|obviously|i\s+(?:think|believe|guess|say)"
    r"|i'?m\s+afraid)\s+not\b(?=\W|$)(?!\s+\w)|\bi\s+(?:do\s+not|don't)\s+(?:think|believe)\s+so\b|(?:^|(?<=[.!?]\s))(?:never|none|nah|no\s+way|nee|not\s+that\s+i\s+can\s+see|not\s+in\s+(?:this|the)\s+\w+)\b(?=\W*$)|\bstimmt\s+nicht\b"
    r"|\b(?:⟨subject⟩(?:'s|\s+⟨auxiliary⟩)(?:\s+not|n?'t)|⟨subject⟩\s+cannot)(?:\s+\w+ly)?(?:\s+(?:true|correct|right|accurate|the\s+case|there|visible|present))?(?=\s*(?:[.,;!\n]|$))"
    r"|⟨not⟩\s+⟨links⟩(?:\s+\w+)?\s+⟨right⟩"
    r"|⟨not⟩\s+(?:lo\s+)?⟨states links⟩(?=\s*(?:[.;!\n]|$))"
    r"|⟨states links⟩\s+(?:es\s+|das\s+|het\s+)?⟨not⟩(?=\s*(?:[.;!\n]|$)))"
    r"|(?P<yes>⟨affirms⟩|(?:^|(?<=[.!?:]\s))(?:indeed|certainly|definitely|absolutely|of\s+course|sure|surely)\b(?!\W+(?:i|let|here|we)\b)(?=\s*[,.!:;—–-]|\s*\Z|\s+(?:there|it|yes|the)\b)|\bi\s+(?:think|believe|guess)\s+so\b|\bdas\s+stimmt\b(?!\s+nicht)"
    r"|\b⟨subject⟩(?:'s|(?:\s+\w+ly)?\s+⟨auxiliary⟩)(?:\s+indeed)?(?:\s+the\s+case)?(?=\s*(?:[.!\n]|$)))",
    re.IGNORECASE | re.MULTILINE,
)
#: Statements that something is there or not.
_EXISTS = word_pattern(
    r"(?P<says>(?:^|(?<=[.!?]\s))no\b|\bthere(?:'s|\s+(?:is|are|was|were))(?:n't|\s+not?\b)?|\bi\s+(?:can\s+)?(?:(?:do\s+not|don't|cannot|can't|can\s+not)\s+)?(?:see|spot|find)(?:\s+no\b)?"
    r"|\bthe\s+(?:image|picture|photo|text|passage)\s+(?:(?:does\s+not|doesn't)\s+)?(?:shows?|contains?|depicts?|includes?|mentions?)(?:\s+no\b)?)(?P<what>\s+[\w\s]{1,80})",
    re.IGNORECASE | re.MULTILINE,
)
_DENIED = word_pattern(r"\bno\b|not\b|n't\b", re.IGNORECASE)
_VALUES = ("yes", "no", "unknown")
#: Kinds of words in "yes or no".
_BOTH = 2
_SYMBOLS = {value: symbol(index) for index, value in enumerate(_VALUES)}
#: A last statement that is one word, which outweighs what precedes it.
_LAST = word_pattern(r"[.!?:;\n–—→。！？：；…][\s\"'*_(]*(⟨symbol⟩)[\s\"'*_.!)。！]*\Z")
#: Where a clause ends, and the questions of a prompt.
_SEPARATOR = word_pattern(
    r"[.,;:!?\n。，！？：]|(?<=が)、|(?<=ので)、|(?<=から)、|⟨because contrasts⟩|\b(?:and|und)\b|\Z", re.IGNORECASE
)
_ASKED = word_pattern(r"[^.!?\n。！？]+[?？]")
#: A verb that a text repeats from its question.
_ECHO = word_pattern(r"\W*(?:⟨not⟩\s+)?([a-zà-ӿ]{3,}|\w{0,2}[过了有会能])\W*", re.IGNORECASE)
_CARRIED = word_pattern("⟨surely concludes pronouns and⟩", re.IGNORECASE)
_PRONOUN = word_pattern(r"\W*(?:⟨concludes⟩\W*)?⟨pronouns⟩", re.IGNORECASE)
_SENTENCE = word_pattern(r"[.!\n。！：:;；]")
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
            return _SYMBOLS["no" if denied else "yes"]
        return match[0]

    def phrase(match: re.Match[str]) -> str:
        if match["none"]:
            return " ... "
        return _SYMBOLS["no" if match["no"] else "yes"]

    def word(match: re.Match[str]) -> str:
        before = text[max(0, match.start() - 24) : match.start()]
        alone = _BEFORE_WORD.search(before) and _AFTER_WORD.match(text, match.end())
        if alone or match["unknown"] or " " in match[0]:
            return _SYMBOLS[_kind(match)]
        return match[0]

    text = re.sub(r"\\(?:text|textbf|mathbf|mathrm)\b|[{}$\\]", " ", text)
    text = _PHRASE.sub(phrase, _EXISTS.sub(existence, text))
    return _TOKEN.sub(word, text)


def _asked(question: str) -> str:
    """Return the last question of a prompt, or its last sentence, that asks for more than yes or no."""
    sentences = [each for each in _ASKED.findall(question) or _SENTENCE.split(question) if _words(each)]
    others = [each for each in sentences if len({_kind(match) for match in _TOKEN.finditer(each)}) < _BOTH]
    return [question, *sentences, *others][-1]


def _restated(text: str, question: str) -> str:
    """Return a text with a symbol in place of the last statement that repeats the question, affirmed or denied."""
    asked = _asked(question)
    order = _words(asked)
    spans: dict[str, tuple[int, int]] = {}
    start = 0
    supposed, mark = False, ""
    other_text = question.replace(asked, " ")
    for separator in _SEPARATOR.finditer(text):
        clause, limits = text[start : separator.start()], (start, separator.start())
        start = separator.end()
        supposed = is_uncertain(clause) or (supposed and mark == ",")
        mark = separator[0]
        unsure = supposed or (_PAST.search(clause) and not _PAST.search(asked))
        if unsure or mark == "?" or clause.strip() in other_text:
            continue
        if _repeats(clause, asked, order, set(_words(question)), is_first=not limits[0]):
            spans["repeated"] = limits
        elif is_negated(clause):
            words = _words(clause)
            shares = 2 * shared_words(words, order) > len(words)
            if shares or (not words and _PRONOUN.match(clause)):
                spans["denied"] = limits
    span = spans.get("repeated") or spans.get("denied")
    if span is None:
        return text
    if is_negated(text[slice(*span)]):
        value = "no"
    else:
        value = "yes"
    return f"{text[: span[0]]} {_SYMBOLS[value]}{text[span[1] :]}"


def _repeats(clause: str, asked: str, order: list[str], known: set[str], *, is_first: bool) -> bool:
    """Return whether a clause says again what is asked: its verb, a pronoun and some words, or all but the first."""
    verb = _ECHO.fullmatch(clause)
    if verb and is_first and verb[1].lower() in asked.lower():
        return True
    words = _words(clause)
    if not words or not known.issuperset(words):
        return False
    if _PRONOUN.match(clause):
        return True
    if len(order) > 1:
        predicate = order[-2:] if order[-1] > "\u2e80" else order[1:]
    else:
        predicate = order
    return set(predicate) <= set(words)


def _words(text: str) -> list[str]:
    """Return the words of a text that mean something, in order, without adverbs and pronouns."""
    return content_words(_CARRIED.sub(" ", text))


def _values(text: str, question: str = "") -> list[str]:
    """Return the truth values that a text, or a part that gives the answer, affirms."""
    if len(letter := text.strip(" .!*()\"'")) == 1:
        text = next((match[0] for match in _TOKEN.finditer(question) if match[0][0].lower() == letter.lower()), text)
    marked = without_notes(_symbols(text, question))
    if last := _LAST.search(marked):
        return [_VALUES[option_of(last[1])]]
    affirmations = read_statements(marked, _whole, mentions=len(text))
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
