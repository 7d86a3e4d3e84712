"""Recognition of answers that say that the subject does not know: wrong answers, and no fault of the prompt."""

from __future__ import annotations

import re

from pytest_adaptive_eval.lazy_pattern import lazy_pattern

#: Characters of an answer, from its end, that are searched.
_CHARACTERS = 400
#: Patterns in languages with spaces, and phrases in others.
_PATTERNS = (
    r"i(?: a|')m (?:not (?:\w+ )?(?:sure|certain|able)|unsure|unable|afraid|sorry)",
    r"i (?:do not|don'?t)(?: really)? (?:know|have (?:an|the) answer|have enough)",
    r"i have no (?:idea|answer)",
    r"i (?:cannot|can not|can't|could not|couldn't) (?:answer|say|tell|determine|solve|find|compute|calculate|do)",
    r"(?:cannot|can not|can't|impossible to|not possible to) (?:be )?(?:determined?|answered?|said|say|tell|know)",
    r"(?:no idea|not sure|unsure|insufficient information|not enough information)",
    r"je ne (?:sais pas|suis pas sûre?)",
    r"(?:ich weiß (?:es )?nicht|ich bin (?:mir )?nicht sicher|keine ahnung)",
    r"(?:no lo sé|no sé|no estoy segur[oa])",
    r"(?:não sei|não tenho certeza)",
    r"(?:non lo so|non sono sicur[oa])",
    r"(?:не знаю|не уверена?)",
)
_PHRASES = ("不知道", "不确定", "无法确定", "无法回答", "わかりません", "分かりません", "모르겠")
_ABSTENTION = lazy_pattern(rf"\b(?:{'|'.join(_PATTERNS)})\b|{'|'.join(_PHRASES)}", re.IGNORECASE)


def abstains(text: str) -> bool:
    """Return whether an answer says that its author does not know, is not sure or cannot tell."""
    return _ABSTENTION.search(text[-_CHARACTERS:].replace("\u2019", "'")) is not None
