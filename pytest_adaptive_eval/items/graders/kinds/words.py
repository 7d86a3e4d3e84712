"""Graders that compare texts: the whole, a part, or their words."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter

from pytest_adaptive_eval.items.graders.kind import Asked, GraderKind, Leniency
from pytest_adaptive_eval.items.reading.cleaning import answer_part, plain_characters, whole_words, without_reasoning
from pytest_adaptive_eval.items.reading.constructions import pattern_in, word_pattern
from pytest_adaptive_eval.items.reading.language import languages_of
from pytest_adaptive_eval.items.reading.part import ASKS_WHO, gives_part, with_symbols
from pytest_adaptive_eval.items.reading.reader import emphasized, stated_texts, states_answer
from pytest_adaptive_eval.items.reading.restating import restates
from pytest_adaptive_eval.items.reading.statements import symbol

#: An article before another word; a capital A within a sentence is a letter.
_ARTICLE = re.compile(r"(?<![^\s\"'(\[])(?:a|[Aa]n|[Tt]he|(?:(?<=\A)|(?<=[.!?]\s))A)\s+(?=\W?[^\W_]{2})")
_SHOUTED = re.compile(r"(?<![^\s\"'(\[])(?:A|AN|THE)\s+(?=\W?[^\W_]{2})")
_PUNCTUATION = set(string.punctuation) | set("‘’´`“”„«»–—…。，！？；：、（）《》【】")
#: What follows an answer and is no part of it: its reason, a remark in brackets, or the end of a polite sentence.
_ADDED = word_pattern(
    r"(?:[,;]?\s⟨because⟩\s.*"
    r"|\s*\((?![^()]*⟨corrects hedges⟩)[^()]*\s[^()]*\)|⟨ends⟩)?[\s.!*_]*\Z",
    re.DOTALL,
)
#: An answer beside another one.
_BESIDE = word_pattern(
    r"⟨symbol⟩\W*(?:[/;&]|\b⟨joined⟩\b)\s*\w|\w\s*(?:[/;&]|\b⟨joined⟩)\W*⟨symbol⟩|⟨symbol⟩\s*,\s*\w+\W*\Z"
)
_STATEMENT = word_pattern(r"(?<=[^\W\d])[.!?](?=\s)|[.!?]\Z|\n|[。！？;]")
_TAKEN = word_pattern(r"[-*•\d]|\W*⟨takes_back corrects contrasts hedges⟩")
#: Characters from which what follows a statement explains it; less may be another answer.
_EXPLANATION = 12
#: Key of ``meta`` with which `contains` accepts an answer within a word.
_WITHIN_WORDS = "within_words"
#: A name, and a clause behind it of which the answer is the subject.
_NEXT_CLAUSE = (
    r"(?<!\S)(?P<before>\S+)\s(?P<name>(?:⟨name⟩\s?){{1,4}})[;,]\s(?:[^\W\d_]{{1,4}}\s)?"
    r"{key}(?=\s[a-zß-öø-ÿа-я])"
)
_NO_VERB = word_pattern("⟨articles accompanies relates denies⟩", re.IGNORECASE)
#: Lists of characters without spaces, of names, and of words.  A list is looked for at its first member alone: each
#: later one would read the rest of the text again.
_UNSPACED_LIST = r"(?<![\w、])⟨cjk⟩(?:、⟨cjk⟩)*?(?:⟨or and⟩|、)⟨cjk⟩(?!\w)"
_NAMES_LIST = r"(?<!\w)(?<!,\s)⟨names⟩(?:,\s(?:an?\s|à\s)?⟨names⟩)*?,?\s⟨or or_here and⟩\s(?:an?\s|à\s)?⟨names⟩(?!\w)"
_WORDS_LIST = r"(?<!\w)(?<!,\s)⟨word⟩(?:,\s⟨word⟩)*?,\s⟨word⟩,?\s⟨or or_here and⟩\s⟨word⟩(?!\w)"
#: Letters of the longest words between members.
_JOINER = 3
#: What makes another name of a name in Chinese and Japanese, behind it.
_UNSPACED_NAME = r"(?<=[\u3400-\u9fff])[\u30a1-\u30fa\u30fc]{2,}|[区县岸路街站港]"


def folded(text: str) -> str:
    """Return a text in plain characters and lower case, with single spaces."""
    return " ".join(plain_characters(text).replace("\N{EN DASH}", "-").split()).casefold()


def _normal(text: str) -> str:
    return folded(text).strip(" .!,;:\"'*`「」『』、。")


def _lines(text: str) -> str:
    """Return the folded lines of a text."""
    return "\n".join(map(folded, text.splitlines()))


def _comparable(answer: str, text: str) -> tuple[str, str]:
    """Return an accepted answer and a text as they are compared; punctuation counts if it is all of the answer."""
    expected = _normal(answer)
    if expected:
        return (expected, _normal(text))
    return (folded(answer), folded(text))


def _is_accepted(question: Asked, text: str) -> bool:
    """Return whether a text equals an accepted answer."""
    if text in question.answers:
        return True
    for answer in question.answers:
        expected, read = _comparable(answer, text)
        if expected == read:
            return True
    return False


def _exact(question: Asked, text: str) -> float:
    """Return 1 if the text, or the answer that it states, equals an accepted one."""
    if _is_accepted(question, text):  # most right answers are the expected text alone
        return 1.0
    for stated in stated_texts(text):
        if _is_accepted(question, stated):
            return 1.0
    words = []
    for answer in question.answers:
        word = _normal(answer)
        if any(map(str.isalnum, word)):  # signs alone are compared as a whole
            words.append(word)
    plain = answer_part(text)
    if _is_accepted(question, emphasized(plain, question.prompt)):
        return 1.0
    marked = with_symbols(_lines(plain), words)  # the words of an answer deny nothing
    forms = stated_texts(marked)
    bare = [_normal(_ADDED.sub("", form)) for form in forms]
    if symbol(0) in (*bare, *map(_normal, forms)):
        return 1.0
    return float(_restates(marked, question.prompt, with_symbols(folded(question.prompt), words)))


def _restates(marked: str, question: str, marked_question: str) -> bool:
    """Return whether a text with symbols of its answer begins by saying it, alone or in words of the question."""
    first, *others = _STATEMENT.split(marked, maxsplit=1)
    rest = "".join(others).strip()
    is_taken = bool(rest) and (_TAKEN.match(rest) is not None or len(rest.partition("\n")[0]) < _EXPLANATION)
    is_asked = marked[len(first) : len(first) + 1] == "?"
    statement = _ADDED.sub("", first)
    if first.strip() in marked_question:  # a list of options that is repeated says none of them
        return False
    if not statement.isprintable():  # a half of a character, or a control code, is no word of the question
        return False
    if statement.count(symbol(0)) != 1 or is_taken or is_asked or _BESIDE.search(statement) or states_answer(marked):
        return False
    return restates(statement.replace(symbol(0), " "), folded(question))


def _contains(question: Asked, text: str) -> float:
    """Return 1 if the text contains an accepted answer, in whole words unless ``meta.within_words`` is true."""
    text = without_reasoning(text)
    part = question.meta.get(_WITHIN_WORDS, False)
    if not isinstance(part, bool):
        raise ValueError(f"meta.{_WITHIN_WORDS} is {part!r:.80}, expected true or false")
    answers = [_normal(answer) or folded(answer) for answer in question.answers]
    text = _without_longer_names(text, question)
    return float(gives_part(_lines(text), answers, folded(question.prompt), within_words=part))


def _list_like(answer: str) -> str:
    """Return the pattern of lists whose members are written as an answer is."""
    if answer[:1] > "\u2e80":
        return _UNSPACED_LIST
    if answer[:1].isupper():
        return _NAMES_LIST
    return _WORDS_LIST


def _without_longer_names(text: str, question: Asked) -> str:
    """Return a text without names that begin as an accepted one and go on: "Ada Finch Miller" is not "Ada Finch"."""
    asked = set(normal_words(" ".join((question.prompt, *question.answers))))
    languages = languages_of(f"{question.prompt} {text}", text)

    def unless_asked(match: re.Match[str]) -> str:
        if asked.intersection(normal_words(match[1])):
            return match[0]
        return "..."

    def unless_named(match: re.Match[str]) -> str:
        is_other = not _NO_VERB.fullmatch(match["before"]) and not asked.intersection(normal_words(match["name"]))
        if is_other:
            return f"{match['name']}, ..."
        return match[0]

    for answer in question.answers:
        text = re.sub(rf"{re.escape(answer)}(?:{_UNSPACED_NAME})", "...", text)
        for listed in pattern_in(languages, _list_like(answer), 0).findall(text):
            if answer in listed and not asked.issuperset(word for word in normal_words(listed) if len(word) > _JOINER):
                text = text.replace(listed, "...")
        text = word_pattern(_NEXT_CLAUSE.format(key=re.escape(answer))).sub(unless_named, text)
        if answer[:1].isupper() and not text.isupper() and (" " in answer or not ASKS_WHO.search(question.prompt)):
            longer = word_pattern(rf"\b{re.escape(answer)}[ -](⟨capital⟩[^\W\d_]+)\b(?! ⟨capital⟩)")
            text = longer.sub(unless_asked, text)
    return text


def shows_answer(question: Asked) -> bool:
    """Return whether a prompt holds an accepted answer in whole words. A reply may then repeat it."""
    prompt = folded(question.prompt)
    for answer in question.answers:
        if _normal(answer):
            if next(whole_words(_normal(answer), prompt), None) is not None:
                return True
    return False


def _only_punctuation(question: Asked, answer: str) -> Leniency | None:  # noqa: ARG001 - has the form of a check
    if all(unicodedata.category(letter)[0] in "PZC" for letter in answer):
        return Leniency("is only punctuation", "use the grader 'exact', which compares the whole answer")
    return None


def normal_words(text: str) -> list[str]:
    """Return the words of a text as SQuAD and TriviaQA compare them: in lower case, no punctuation, no articles.

    The letter A is an article only before a word, and not as a capital within a sentence.
    """
    text = plain_characters(text)
    bare = (_SHOUTED if text.isupper() else _ARTICLE).sub("", text)
    if any(map(str.isalnum, bare)):
        text = bare
    return "".join(
        "" if letter in _PUNCTUATION and letter not in "_," else " " if letter in "_," else letter
        for letter in text.casefold()
    ).split()


def _forms(text: str, *, loose: bool = True) -> list[list[str]]:
    """Return the words of a text, and of the answer that it may state."""
    return [normal_words(form) for form in (without_reasoning(text), *stated_texts(text, loose=loose))]


def _exact_match(question: Asked, text: str) -> float:
    """Return 1 if the words of the text, or of the answer that it states, equal an accepted answer's."""
    forms = [words for words in _forms(text) if words]
    return float(any(normal_words(answer) in forms for answer in question.answers))


def _f1(question: Asked, text: str) -> float:
    """Return the highest F1 score of the words, over accepted answers."""
    return max(
        (_overlap(normal_words(answer), words) for answer in question.answers for words in _forms(text, loose=False)),
        default=0.0,
    )


def _overlap(expected: list[str], words: list[str]) -> float:
    common = sum((Counter(expected) & Counter(words)).values())
    if common:
        return 2.0 * common / (len(expected) + len(words))
    return 0.0


def _no_words(question: Asked, answer: str) -> str:  # noqa: ARG001 - has the form of a check
    if normal_words(answer):
        return ""
    return "holds no words: use the grader 'exact'"


#: Graders that find an answer within a sentence.
_WITHIN = ("yesno", "numeric", "contains")

REGISTERED = (
    GraderKind(
        "exact", "the answer equals an accepted one, but for case and punctuation around it", _exact, within=_WITHIN
    ),
    GraderKind(
        "contains", "the text contains an accepted answer in whole words", _contains, leniency=_only_punctuation
    ),
    GraderKind(
        "exact_match",
        "the words equal an accepted answer's (SQuAD, TriviaQA)",
        _exact_match,
        check=_no_words,
        within=_WITHIN,
    ),
    GraderKind("f1", "share of common words with the best accepted answer, a score (SQuAD)", _f1, check=_no_words),
)
