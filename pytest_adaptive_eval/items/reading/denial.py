"""Find denials: values that a text rules out as its answer."""

from __future__ import annotations

import re

from pytest_adaptive_eval.items.reading.constructions import word_pattern

_UNEQUAL = word_pattern(r"(?:≠|!=|\\neq?(?![a-z])|\\not\s*=)\s*[^\s$,;。，；]*")
_BEFORE = word_pattern("⟨denying⟩", re.IGNORECASE)
#: Where what such words deny ends.
_END = word_pattern(
    r"(?:[,;:!?。，；]|\.)(?=\s|\Z|[^\x00-\x7f])|\n|(?<!\([A-Za-z])[)\]]"
    r"|\s+(?=(?:because|since|so|therefore|hence|thus|while|whereas|que|and\s+(?:the|it|i|we|so|thus)|is|are|was|it's)\b)"
    r"|(?<=\w)\s+(?=(?:ist|sind|est|sont|es|son|è|sono|é|são|zijn|jest|są|это)\b)"
    r"|\s*(?=⟨contrasts⟩)|—|–",
    re.IGNORECASE,
)
#: Words after what they deny, in one sentence with it.
_AFTER = word_pattern(
    r"⟨links⟩⟨adverbs⟩(?:⟨wrong⟩|⟨not_right⟩)"
    r"|⟨not⟩\s+⟨links⟩⟨adverbs⟩⟨right possible⟩"
    r"|\b(?:is|are|was|were)n'?t⟨adverbs⟩⟨right possible⟩|⟨denied⟩"
    r"|\?\s*⟨asked_and_denied⟩",
    re.IGNORECASE,
)
#: The same where what replaces the denied text follows at once.
_REPLACED = word_pattern(
    r"⟨replaces⟩|\?[\s\"')]{0,4}⟨asked_and_denied⟩\s?[,:;.!–—-]{1,3}\s?(?=\S{1,40}(?:[^\S\n]+\S{1,40}){0,3}\s*(?:\Z|\n|(?<=[.;!])\s))",
    re.IGNORECASE,
)
#: The same, and words that name what is wrong, before it.
_BEFORE_OR_NAMED = word_pattern(
    r"\b(?:in(?:correct|valid|accurate)|wrong|false|worst)\s+(?:answer|option|choice|one|value|result)s?\s*"
    r"(?:(?:is|are|would\s+be)\b|:)\s*:?"
    r"|^[^\w\n]{0,10}(?:in(?:correct|valid)|wrong|false|eliminated|excluded|rejected|discarded|ruled\s+out)\s*:"
    r"|⟨denying⟩",
    re.IGNORECASE | re.MULTILINE,
)
#: Where the reason of such words ends.
_REASON = word_pattern(
    r",(?=\s*⟨remains⟩)"
    r"|[;!?。；\n]|\.(?=\s|\Z)|,(?=\s*(?:so|but|hence|thus|therefore|leaving|which\s+leaves|and|while|whereas|it)\b|\s*(?:\w+\s+){0,2}\(?[A-Z]\)?\s+is)"
    r"|\s(?=(?:but|while|whereas|so|hence|therefore|and)\b)|，"
)
_HERE = word_pattern("")
#: Characters before a denial that are its subject, and words of one part of a list.
_LONGEST, _SHORT_PART = 300, 4
_SENTENCE = word_pattern(
    r"[;!?。；\n:]|\.(?=\s)|,(?![\U00020000-\U000207ff])(?=[^\x00-ӿ])|\b(?:but|so|while|whereas|since|because|as|that|and\s+(?:the|it|i|we))\b",
    re.I,
)
_VERB = word_pattern(
    r"\b(?:is|are|was|were|be|it's|choose|pick|select|take|answer|answers|go|think|believe|has|have)\b|[=:]", re.I
)


def without_denied(text: str, *, subjects: bool = True) -> str:
    """Return a text with spaces in place of what it denies.

    Args:
        text: In plain characters.
        subjects: Whether "A is wrong" denies A, which is the answer to a question for what is wrong.
    """
    text = _UNEQUAL.sub(lambda match: " " * len(match[0]), text)
    directions = [(_REPLACED, _HERE)]
    if subjects:
        directions += [(_AFTER, _REASON), (_BEFORE_OR_NAMED, _END)]
    else:
        directions += [(_BEFORE, _END)]
    for pattern, ends in directions:
        letters = list(text)
        done = 0
        for match in pattern.finditer(text):
            if match.end() <= done:
                continue  # its end is that of the one before
            if pattern in (_AFTER, _REPLACED):
                start = _subject(text, match.start())
            else:
                start = match.start()
            end = ends.search(text, match.end())
            if end:
                stop = end.start()
            else:
                stop = len(text)
            letters[start:stop] = [" " if letter != "\n" else letter for letter in letters[start:stop]]
            done = max(done, stop)
        text = "".join(letters)
    return text


def _subject(text: str, end: int) -> int:
    """Return where the subject of a denial begins: the words before it, and a list of short parts."""
    starts = []
    for match in _SENTENCE.finditer(text, max(0, end - _LONGEST), end):
        starts.append(match.end())
    *parts, last = text[starts[-1] if starts else max(0, end - _LONGEST) : end].split(", ")
    length = len(last)
    for part in reversed(parts):
        if len(part.split()) > _SHORT_PART or _VERB.search(part):
            break
        length += len(part) + 2
    return end - length


#: Characters of an answer, from its end, that are searched.
_CHARACTERS = 400
_ABSTENTION = word_pattern("⟨abstains⟩", re.IGNORECASE)


def abstains(text: str) -> bool:
    """Return whether an answer says that its author does not know or is not sure."""
    return _ABSTENTION.search(text[-_CHARACTERS:].replace("\u2019", "'")) is not None
