"""Read whether a text gives an expected text as its answer, somewhere in its sentences."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from pytest_adaptive_eval.items.reading.cleaning import is_program, whole_words
from pytest_adaptive_eval.items.reading.constructions import word_pattern
from pytest_adaptive_eval.items.reading.denial import abstains
from pytest_adaptive_eval.items.reading.reader import Parser, read_answer
from pytest_adaptive_eval.items.reading.restating import content_words, is_negated
from pytest_adaptive_eval.items.reading.stated import is_definite, without_notes
from pytest_adaptive_eval.items.reading.statements import SYMBOL, Chosen, read_statements, symbol

_SYMBOL = word_pattern(SYMBOL)
_QUESTION = word_pattern(r"[^.!?\n]{1,400}\?")
_PART = rf"(?!{SYMBOL})[^\W_][^\s,;/|.:!?]*(?:\s(?!{SYMBOL})[^\s,;/|.:!?]+){{0,2}}"
_SHORT = _PART[:-5] + "?"
_OR = "⟨or⟩"
_AND = r"and\s+(?!not\b|so\b|it\b|that\b|this\b|is\b|was\b|has\b)"
_BEGIN, _END = r"(?:^|:|\b(?:is|are|be|both))\s*", r"\s*\.?\s*$"
_THE = r"(?:the\s+|an?\s+)?"
#: The expected text beside others, in a list or joined by "or", or named as absent.
_LISTED = word_pattern(
    rf"\b(?:one|any)\s+of\s+{SYMBOL}(?!'s)|\d[.)]\s*{SYMBOL}[^\n\d]{{0,40}}\s\d[.)]\s|\beither\b[^\n.!?;]{{0,80}}{SYMBOL}|\bno\s+{SYMBOL}|\b(?:maybe|perhaps)\s+{SYMBOL}\W{{1,4}}(?:maybe|perhaps)\b"
    rf"|{SYMBOL}[\s\"'*)]*(?:[,;]\s*{_PART}\s*){{0,9}},?\s+{_OR}\s+(?!{SYMBOL}|so\b|rather\b)|{_OR}\s+{_THE}{SYMBOL}"
    rf"|{SYMBOL}\s*(?:或者?|还是|または|か(?=\w))|(?:或者?|还是|または)\s*{SYMBOL}"
    rf"|{SYMBOL}\s*[/|]\s*\w|\w\s*[/|]\s*{SYMBOL}"
    rf"|{_BEGIN}(?:{_THE}{_PART}\s*[,;]\s*){{0,9}}{_THE}{SYMBOL}(?:\s*[,;]\s*(?:{_AND})?{_SHORT}){{2,9}}(?:\s+{_AND}{_PART})?{_END}"
    rf"|{_BEGIN}(?:{_THE}{_PART}\s*[,;]\s*){{1,9}}(?:{_AND})?{_PART}\s*[,;]\s*{_THE}{SYMBOL}{_END}"
    rf"|{_BEGIN}{_THE}{SYMBOL}(?:\s*[,;]\s*{_PART}){{0,9}},?\s+{_AND}{_PART}{_END}"
    rf"|{_BEGIN}(?:{_THE}{_PART}\s*[,;]\s*){{0,9}}{_PART},?\s+{_AND}{_THE}{SYMBOL}{_END}",
    re.IGNORECASE | re.MULTILINE,
)
#: The expected text as what was, as what another thing is near or kin to, or as a part of another name.
_OTHER = word_pattern(
    rf"⟨former⟩[^,;.、，。\n{SYMBOL[1:-1]}]{{0,40}}{SYMBOL}|{SYMBOL}[^,;.、，。\n{SYMBOL[1:-1]}]{{0,40}}⟨former⟩"
    rf"|⟨relates⟩\s*(?:⟨articles⟩\s+)?{SYMBOL}|{SYMBOL}⟨related⟩"
    rf"|⟨names_another⟩[\s-]{SYMBOL}|{SYMBOL}[\s-](?:jr|sr|ii|iii|iv|junior|senior)\b",
    re.IGNORECASE,
)
#: A clause that says what its subject is, not where it is or what was done to it.
_SAYS = word_pattern(
    rf"(?:\A|(?<=[.;,:\n!?。，])|\bbut\s)(?P<subject>[^.;,:\n!?。，]{{0,40}}?)\s*⟨states⟩\s*(?P<value>[^.;,\n。，{SYMBOL[1:-1]}]{{1,40}})(?=[.;,\n。，]|\Z)"
    rf"(?<!{SYMBOL})",
    re.IGNORECASE,
)
#: The expected text within a clause about another thing.
_SUBORDINATE = word_pattern(rf"[,;]\s*⟨relatives⟩(?!\s+⟨states⟩)[^,;.:!?\n{SYMBOL[1:-1]}]*{SYMBOL}", re.I)
_STATED = word_pattern(r"⟨states⟩\s*(?:⟨articles⟩\s+)?[\"'*]*\Z", re.IGNORECASE)
_CONCLUSION = word_pattern(r"⟨concludes⟩\s*[:,]?\s*([^.;\n。]+)", re.IGNORECASE)
_PLACED = word_pattern(r"⟨accompanies⟩|\b(?:to|as|not)\b", re.IGNORECASE)
_PAST = word_pattern("⟨former⟩")
_CIRCUMSTANCE = word_pattern("⟨asks_circumstance⟩")
_WORD = word_pattern(r"[^\W\d_]{4,}|[\u3400-\u9fff]{2}")
#: A line of a list: of other words, or of the expected text.
_ITEM = word_pattern(rf"[\s*•>-]*(?:\d{{1,2}}[.)]\s+)?{_PART}[.,;]?\s*")
_NAMED = word_pattern(rf"[\s*•>-]*(?:\d{{1,2}}[.)]\s+)?{SYMBOL}[.,;]?\s*")
#: A title or a quotation, whose words are not the text's.
_QUOTED = word_pattern(rf"\"[^\"\n{SYMBOL[1:-1]}]{{1,120}}\"")


def gives_part(text: str, answers: Sequence[str], question: str, *, within_words: bool = False) -> bool:
    """Return whether a text affirms one of the expected texts: not only as the question's, denied, or one of several.

    Args:
        text: Folded, as the expected texts are.
        question: Text that was asked, whose questions do not count where the text repeats them.
    """
    for asked in (question, *_QUESTION.findall(question)):
        if any(answer in asked and answer != asked.strip() for answer in answers):
            text = text.replace(asked.strip(), "\n")
    marked = with_symbols(text, answers, within_words=within_words)
    if marked == text or is_program(text):
        return marked != text
    if _CIRCUMSTANCE.search(question):
        asked = set()
    else:
        asked = set(_WORD.findall(question))
    read = functools.partial(_read, asked=asked)
    return read_answer(marked, Parser(read)).values == ((0,),)


def with_symbols(text: str, answers: Sequence[str], *, within_words: bool = False) -> str:
    """Return a text with a symbol in place of the expected texts, the longest first."""
    for answer in sorted(answers, key=len, reverse=True):
        line = text.replace("\n", " ")
        if within_words:
            starts = [line.find(answer)]
        else:
            starts = list(whole_words(answer, line))
        for start in reversed([start for start in starts if start >= 0]):
            text = f"{text[:start]}{symbol(0)}{text[start + len(answer) :]}"
    return text


def _says_another(text: str, asked: set[str]) -> bool:
    """Return whether a text says what the subject of the question is, without the expected text."""
    for match in _SAYS.finditer(text):
        subject, value = match.group("subject", "value")
        is_other = _SYMBOL.search(subject) or _PAST.search(match[0])
        is_pronoun = not match.start() and not content_words(subject) and not is_negated(subject)
        is_asked = (is_pronoun or asked.intersection(_WORD.findall(subject))) and not is_other
        is_new = set(_WORD.findall(value)) - asked and not _PLACED.search(value)
        if is_asked and is_new and is_definite(value) and not is_negated(value):
            return True
    return False


def _concludes_another(text: str, asked: set[str]) -> bool:
    """Return whether the last conclusion of a text is behind the expected text and has words of its own."""
    *_, last = ("", *_CONCLUSION.findall(text))
    return bool(set(_WORD.findall(last)) - asked) and not _SYMBOL.search(last) and is_definite(last)


def _read(text: str, asked: set[str]) -> list[Chosen]:
    def unless_asked(match: re.Match[str]) -> str:
        return match[0] if asked.intersection(_WORD.findall(match[0])) else " "

    def unless_stated(match: re.Match[str]) -> str:
        return match[0] if _STATED.search(match[0][:-1]) else " "

    text = _SUBORDINATE.sub(unless_stated, _OTHER.sub(unless_asked, text))
    if abstains(text[text.rfind(symbol(0)) :]):
        return []
    if _says_another(text, asked) or _concludes_another(text, asked):
        return []
    lines = _QUOTED.sub('"title"', without_notes(text)).split("\n")
    outside_lists = []
    for number, line in enumerate(lines):
        if not _in_list(lines, number):
            outside_lists.append(line)
    return read_statements(_LISTED.sub(" ", "\n".join(outside_lists)), mentions=len(text))


def _in_list(lines: list[str], number: int) -> bool:
    """Return whether a line is one of several that have a few words each."""
    neighbours = lines[max(0, number - 1) : number] + lines[number + 1 : number + 2]
    item = _NAMED.fullmatch(lines[number])
    return item is not None and any(_ITEM.fullmatch(line) for line in neighbours)
