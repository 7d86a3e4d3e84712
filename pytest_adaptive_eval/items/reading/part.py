"""Read whether a text gives an expected text as its answer, somewhere in its sentences."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from pytest_adaptive_eval.items.reading.cleaning import is_program, whole_words
from pytest_adaptive_eval.items.reading.constructions import pattern_in, word_pattern
from pytest_adaptive_eval.items.reading.denial import abstains
from pytest_adaptive_eval.items.reading.language import languages_of
from pytest_adaptive_eval.items.reading.reader import Parser, read_answer
from pytest_adaptive_eval.items.reading.restating import content_words, is_negated, is_uncertain
from pytest_adaptive_eval.items.reading.stated import is_definite, without_notes
from pytest_adaptive_eval.items.reading.statements import Chosen, read_statements, symbol

_SYMBOL = word_pattern("⟨symbol⟩")
#: Characters of a text whose language a few words show.
_FEW_CHARACTERS = 60
_QUESTION = word_pattern(r"[^.!?\n]{1,400}\?")


#: The expected text beside others, in a list or joined by "or", or named as absent.
_LISTED = (
    r"\b(?:one|any)\s+of\s+⟨symbol⟩(?!'s)|\d[.)]\s*⟨symbol⟩[^\n\d]{0,40}\s\d[.)]\s|\beither\b[^\n.!?;]{0,80}⟨symbol⟩"
    r"|\bno\s+⟨symbol⟩|\b(?:maybe|perhaps)\s+⟨symbol⟩\W{1,4}(?:maybe|perhaps)\b"
    r"|⟨symbol⟩[\s\"'*)]*(?:[,;]\s*⟨a_part⟩\s*){0,9},?\s+⟨or or_here⟩\s+(?!⟨symbol⟩|so\b|rather\b)"
    r"|⟨or or_here⟩\s+⟨an⟩⟨symbol⟩|⟨symbol⟩\s*(?:或者?|还是|または|か(?=\w))|(?:或者?|还是|または)\s*⟨symbol⟩"
    r"|⟨symbol⟩\s*[/|]\s*\w|\w\s*[/|]\s*⟨symbol⟩"
    r"|(?:^|:|\b(?:be|both)\b|⟨states measures exists⟩)\s*(?:⟨an⟩⟨a_part⟩\s*[,;]\s*){0,9}"
    r"(?:⟨an⟩⟨symbol⟩(?:\s*[,;]\s*⟨also⟩?⟨short_part⟩){2,9}(?:\s+⟨also⟩⟨a_part⟩)?"
    r"|⟨an⟩⟨a_part⟩\s*[,;]\s*⟨also⟩?⟨a_part⟩\s*[,;]\s*⟨an⟩⟨symbol⟩"
    r"|⟨an⟩⟨symbol⟩(?:\s*[,;]\s*⟨a_part⟩){0,9},?\s+⟨also⟩⟨a_part⟩|⟨a_part⟩,?\s+⟨also⟩⟨an⟩⟨symbol⟩)⟨end_of_list⟩"
)
#: The expected text as what was, as what another thing is near or kin to, or as a part of another name. A group is the
#: words that make it so.
_OTHER = (
    r"(⟨former⟩)⟨gap⟩⟨symbol⟩|⟨symbol⟩⟨gap⟩(⟨former⟩)"
    r"|(⟨relates⟩)\s*(?:⟨articles⟩\s+)?⟨symbol⟩|(⟨kin⟩)(?:\s+(?:of|to|von|d[ei]|do|da|van)\s+|,\s+|\s+d')⟨symbol⟩"
    r"|⟨symbol⟩(⟨related⟩|(?:'s\s+(?:\w+\s+)?|的|の)⟨kin⟩)"
    r"|(⟨names_another⟩)[\s-]⟨symbol⟩|⟨symbol⟩[\s-](jr|sr|ii|iii|iv|junior|senior|⟨directions⟩)(?!\w)"
)
#: A clause that says what its subject is, not where it is or what was done to it.
_SAYS = (
    r"(?:\A|(?<=[.;,:\n!?。，、])|⟨contrasts⟩\s)(?P<subject>[^.;,:\n!?。，、]{0,40}?)"
    r"\s*⟨states⟩\s*(?P<value>[^.;,:\n。，、]{1,40})(?=[.;,:\n。，、]|\Z)"
)
#: The expected text within a clause about another thing.
_SUBORDINATE = r",\s*⟨relatives⟩(?!\s+⟨states⟩)[^,;.:!?\n\U00020000-\U000207ff]*⟨symbol⟩"
_CONCLUSION = r"⟨concludes⟩\s*[:,、]?\s*(?:[^.;\n。]*⟨states⟩\s+)?([^.;\n。]+)"
_PAST = word_pattern("⟨former⟩", re.IGNORECASE)
_ROLE = word_pattern("⟨roles option⟩", re.IGNORECASE)
ASKS_WHO = word_pattern("⟨asks_who⟩", re.IGNORECASE)
_SURNAME = word_pattern(r"(?<=\s)[^\W\d_]{4,}\Z")
_CIRCUMSTANCE = word_pattern("⟨asks_circumstance⟩")
#: A statement that is a few words, before one that goes on about something else.
_ALONE = (
    r"\W*(?!⟨seemed⟩)((?:⟨articles⟩\s+)?[^\s;,.:!?。，\U00020000-\U000207ff]+"
    r"(?:\s[^\s;,.:!?。，\U00020000-\U000207ff]+)?)(?:;|[,，]\s*⟨contrasts⟩\s)"
)
_BOLD = word_pattern(r"\*\*([^*\n]{1,60})\*\*")
#: A line of a list: of other words, or of the expected text.
_ITEM = word_pattern(r"[\s*•>-]*(?:\d{1,2}[.)]\s+)?⟨a_part⟩[.,;]?\s*")
_NAMED = word_pattern(r"[\s*•>-]*(?:\d{1,2}[.)]\s+)?⟨symbol⟩[.,;]?\s*")


def gives_part(text: str, answers: Sequence[str], question: str, *, within_words: bool = False) -> bool:
    """Return whether a text affirms one of the expected texts: not only as the question's, denied, or one of several.

    Args:
        text: Folded, as the expected texts are.
        question: Text that was asked, whose questions do not count where the text repeats them.
    """
    for asked in (question, *_QUESTION.findall(question)):
        if any(answer in asked and answer != asked.strip() for answer in answers):
            text = text.replace(asked.strip(), "\n")
    for answer in answers:
        if within := re.search(rf"\w+\s\w+\s{re.escape(answer)}(?!\w)", question):  # the state of the asked city
            text = text.replace(within[0], "...")
    if ASKS_WHO.search(question):
        answers = [*answers, *(name for answer in answers if answer in text for name in _SURNAME.findall(answer))]
    marked = with_symbols(text, answers, within_words=within_words)
    if marked == text or is_program(text):
        return marked != text
    read = functools.partial(_read, question=question, languages=languages_of(f"{question} {text}", text))
    return read_answer(marked, Parser(read)).values == ((0,),)


def with_symbols(text: str, answers: Sequence[str], *, within_words: bool = False) -> str:
    """Return a text with a symbol in place of the expected texts, the longest first."""
    for answer in sorted(answers, key=len, reverse=True):
        line = text.replace("\n", " ")
        if within_words:
            starts = [line.find(answer)]
        else:
            starts = list(whole_words(answer, line))
        parts, end = [], 0
        for start in [start for start in starts if start >= 0]:
            parts += [text[end:start], symbol(0)]
            end = start + len(answer)
        text = "".join((*parts, text[end:]))
    return text


def _claims_another(text: str, question: str, languages: frozenset[str]) -> bool:
    """Return whether a text says what is asked for without the expected text, and nowhere with it."""
    if _CIRCUMSTANCE.search(question):
        asked = set()
    else:
        asked = set(content_words(question))
    claims = []
    for match in pattern_in(languages, _SAYS).finditer(text):
        if _PAST.search(match[0]) or is_uncertain(match[0]):
            continue
        subject, value = match.group("subject", "value")
        is_pronoun = not match.start() and not content_words(subject) and not is_negated(subject)
        if content_words(value) and asked.issuperset(content_words(value)):
            claims.append(subject)
        elif _SYMBOL.search(subject):
            continue
        elif is_pronoun or asked.intersection(content_words(subject)) or _ROLE.search(subject):
            claims.append(value)
    if alone := pattern_in(languages, _ALONE).match(text):
        claims.append(alone[1])
    claims += _BOLD.findall(text[text.rstrip().rfind("\n") + 1 :])
    another = [_is_another(claim, asked) for claim in claims if not is_negated(claim)]
    return any(another) and not any(map(_SYMBOL.search, claims))


def _is_another(claim: str, asked: set[str]) -> bool:
    """Return whether a claim is an answer in words that the question does not hold."""
    is_new = not asked.issuperset(content_words(claim))
    return is_new and not _SYMBOL.search(claim) and is_definite(claim)


def _read(text: str, question: str, languages: frozenset[str]) -> list[Chosen]:
    def unless_asked(match: re.Match[str]) -> str:
        asked_for = next(filter(None, match.groups())) in question
        if asked_for:
            return match[0]
        return " "

    if len(text) > _FEW_CHARACTERS:
        known = languages
    else:
        known = frozenset()
    text = pattern_in(known, _OTHER).sub(unless_asked, text)
    text = pattern_in(languages, _SUBORDINATE).sub(" ", text)
    if abstains(text[text.rfind(symbol(0)) :]):
        return []
    *_, conclusion = ("", *pattern_in(languages, _CONCLUSION).findall(text))
    if _claims_another(text, question, languages) or _is_another(conclusion, set(content_words(question))):
        return []
    lines = without_notes(text).split("\n")
    outside_lists = []
    for number, line in enumerate(lines):
        if not _in_list(lines, number):
            outside_lists.append(line)
    listed = pattern_in(languages, _LISTED, re.IGNORECASE | re.MULTILINE)
    return read_statements(listed.sub(" ", "\n".join(outside_lists)), mentions=len(text))


def _in_list(lines: list[str], number: int) -> bool:
    """Return whether a line is one of several that have a few words each."""
    neighbours = lines[max(0, number - 1) : number] + lines[number + 1 : number + 2]
    item = _NAMED.fullmatch(lines[number])
    return item is not None and any(_ITEM.fullmatch(line) for line in neighbours)
