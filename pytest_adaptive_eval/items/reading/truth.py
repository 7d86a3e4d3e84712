"""Read yes, no or unknown that a text gives as its answer, in many languages."""

from __future__ import annotations

import re

from pytest_adaptive_eval.items.reading.denial import abstains
from pytest_adaptive_eval.items.reading.reader import Parser, Reading, read_answer
from pytest_adaptive_eval.lazy_pattern import lazy_pattern

_YES = (
    "yes|yeah|yep|yup|true|correct|affirmative|right|entailment|是的|是|对的|对|正确|有|可以|sí|si|verdadero|cierto|correcto|हाँ|हां|"
    "सही|सत्य|نعم|صحيح|صواب|oui|vrai|exact|sim|verdadeiro|correto|да|верно|правда|истина|はい|真|正しい|ja|wahr|richtig|"
    "korrekt|예|네|참|맞습니다|ya|benar|sì|vero|হ্যাঁ|সত্য|evet|doğru|có|đúng|tak|prawda"
)
_NO = (
    "no|nope|false|incorrect|negative|wrong|untrue|contradiction|不是|不对|不正确|错误|错|否|没有|不|falso|incorrecto|नहीं|"
    "गलत|असत्य|لا|خطأ|non|faux|não|нет|неверно|ложь|いいえ|偽|誤り|間違い|nein|falsch|아니요|아니오|거짓|tidak|salah|"
    "না|মিথ্যা|hayır|yanlış|không|sai|nie|fałsz"
)
_UNKNOWN = (
    "unknown|uncertain|undetermined|undecided|indeterminate|neutral|maybe|not given|not enough information|"
    "cannot be determined|can't be determined|can not be determined|cannot say|unclear|"
    "未知|不确定|无法确定|desconocido|"
    "inconnu|unbekannt|неизвестно|不明|알 수 없음"
)
_NEGATED = (
    r"(?:is|was|are|does|do|can|would|could)(?:\s+not|n't)\s+(?:\w+\s+)?(?:true|correct|right|accurate|the case)"
    r"|not\s+(?:true|correct|right)"
)
_AFTER = r"(?![^\W\d_])"
_BEFORE = r"(?<![^\W_])"


def _pattern(words: str) -> str:
    """Return a pattern of whole words; scripts without spaces have no borders of words."""
    spaced: list[str] = []
    others: list[str] = []
    for word in sorted(words.split("|"), key=len, reverse=True):
        (others if "\u2e80" <= word[0] <= "\uffff" else spaced).append(re.escape(word))
    return "|".join(filter(None, (f"{_BEFORE}(?:{'|'.join(spaced)}){_AFTER}", "|".join(others))))


_WORDS = "|".join(
    (
        rf"(?P<negated>\b(?:{_NEGATED})\b)",
        rf"(?P<unknown>{_pattern(_UNKNOWN)})",
        rf"(?P<no>{_pattern(_NO)})",
        rf"(?P<yes>{_pattern(_YES)})",
    )
)
_TOKEN = lazy_pattern(_WORDS, re.IGNORECASE)
_OPEN = r"[\s\"'`$*_(\[{<:「【|#.=>-]*+"
#: A letter of a choice may stand before the word.
_LEADING = lazy_pattern(rf"{_OPEN}(?:(?:option\s+)?[A-D](?:\s?[).:]|\s(?=\())+{_OPEN})?(?:{_WORDS})", re.IGNORECASE)
#: "no" before another word is mostly no answer, nor is "right" or "there are".
_ALONE = lazy_pattern(r"[\s]*(?:[.,!;:)\]}*\"'`|<$\n—–-]|\Z|[^\x00-\x7f])")
#: What follows a word that is no answer: "No answer", "Yes is wrong".
_UNMEANT = lazy_pattern(
    r"\s+(?:(?:answer|comment|response|reply|opinion)\b"
    r"|(?:is|would\s+be|seems)\s+(?:\w+ly\s+)?(?:wrong|incorrect|false|not)\b)",
    re.IGNORECASE,
)
#: Characters of a text whose first word is its answer though a sentence follows.
_SHORT = 200
_CLAIM = lazy_pattern(
    r"(?:statement|claim|sentence|assertion|hypothesis|proposition|it|that|this|which|answer)\s+"
    r"(?:is|was|must be|would be)\s+"
    r"(?:therefore\s+|thus\s+|indeed\s+|definitely\s+|clearly\s+|actually\s+)?"
    r"(?P<word>true|false|correct|incorrect|not\s+true|not\s+correct|untrue|wrong|unknown|uncertain)\b",
    re.IGNORECASE,
)


def _kind(match: re.Match[str]) -> str:
    if match["negated"]:
        return "no"
    return next(kind for kind in ("unknown", "no", "yes") if match[kind])


def _stated(text: str) -> list[str]:
    """Return the word at the start of a part that gives the answer, with joined ones."""
    text = re.sub(r"\\(?:text|textbf|mathbf|mathrm)\b|[{}$\\]", " ", text)
    match = _LEADING.match(text)
    if not match:
        claims = {_claimed(claim["word"]) for claim in _CLAIM.finditer(text)}
        tokens = {_kind(token) for token in _TOKEN.finditer(text) if _stands_alone(text, token)}
        return sorted(claims or tokens)
    kinds = [_kind(match)]
    rest = re.match(r"[\s\"'*)]*(?:or|and|/|,|\||;|oder|ou|或|o|y)[\s\"'*(]*", text[match.end() :], re.IGNORECASE)
    if rest and (other := _LEADING.match(text, match.end() + rest.end())) and _ALONE.match(text, other.end()):
        kinds.append(_kind(other))
    return list(dict.fromkeys(kinds))


def _claimed(word: str) -> str:
    match = _TOKEN.match(word)
    return _kind(match) if match else "no"


def _stands_alone(text: str, match: re.Match[str]) -> bool:
    """Return whether a word is an answer of its own, and not part of a sentence."""
    before = text[: match.start()].rstrip(" *\"'`(")
    return (not before or before[-1] in ".,:;!?\n。，：—–-|=") and _ALONE.match(text, match.end()) is not None


def _loose(text: str) -> list[str]:
    """Return the truth values of a text that does not mark its answer."""
    match = _LEADING.match(text)
    if match and _UNMEANT.match(text, match.end()):
        return []
    lines = [words for line in text.split("\n") if line.strip() for words in [_LEADING.match(line)]]
    if len(lines) > 1 and all(words and not words.string[words.end() :].strip(" .*)\"'") for words in lines):
        return list(dict.fromkeys(_kind(words) for words in lines if words))
    if match and _ALONE.match(text, match.end()):
        return _stated(text.partition("\n")[0])
    last = text.rstrip().rpartition("\n")[2]
    for part in (last, text):
        claims = [_claimed(claim["word"]) for claim in _CLAIM.finditer(part)]
        if claims:
            return claims[-1:]
        tokens = {_kind(token) for token in _TOKEN.finditer(part) if _stands_alone(part, token)}
        if tokens:
            return sorted(tokens)
    if match and len(text) < _SHORT:
        return _stated(text.partition("\n")[0])
    return ["unknown"] if abstains(text) else []


_PARSER = Parser(_stated, _loose)


def read_truth(text: str) -> Reading[str]:
    """Return ``yes``, ``no`` or ``unknown`` as a text gives it."""
    return read_answer(text, _PARSER)


def truth_of(answer: str) -> str | None:
    """Return the truth value that an expected answer is, or None."""
    match = _TOKEN.fullmatch(answer.strip(" .!\"'"))
    if match is None:
        return {"1": "yes", "0": "no", "y": "yes", "n": "no", "t": "yes", "f": "no"}.get(answer.strip().lower())
    return _kind(match)
