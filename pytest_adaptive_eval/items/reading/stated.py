"""Find the places where a text states its answer: tags, tool calls, boxes, JSON fields and phrases."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from pytest_adaptive_eval.items.reading.constructions import word_pattern

_TAG = word_pattern(r"<(⟨answer_tags⟩)\b[^>]*>(.*?)(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_CALL = word_pattern(
    r"\bfinish\s*\[(.{1,400}?)\]|\b(?:final_answer|submit_answer|submit|return_answer)\s*\(\s*(?:answer\s*=\s*)?"
    r"(.{1,400}?)\s*\)\s*(?:$|\n|```)",
    re.IGNORECASE | re.DOTALL,
)
_FIELD = word_pattern(
    r"[{,\n]\s*[\"'](?P<key>⟨answer_keys⟩)[\"']\s*:\s*"
    r"(?:\"(?P<double>(?:\\.|[^\"\\])*)\"|'(?P<single>(?:\\.|[^'\\])*)'|\[(?P<several>[^\[\]]*)\]|(?P<bare>[^\s,}\n\"']+)"
    r"|\"(?P<open>(?:\\.|[^\"\\])*)\Z)",
    re.IGNORECASE,
)
_BOX = word_pattern(r"\\(?:boxed|fbox|framebox|mathboxed)\s*(?:\{|(?=[\dA-Za-z\\-]))")

_CUE = word_pattern(
    r"(?:⟨english_answer⟩)\s*:?|####+(?=\s*\S)|⟨answer_elsewhere⟩"
    r"|(?:^|(?<=[\s(\[*_]))⟨corrects⟩[*_\s]{0,4}:(?![^\n]{0,80}:)"
    r"|^[^\w\n]*(?:(?:the\s+)?(?:final|correct)\s+)?answer[^\w\n]*$",
    re.IGNORECASE | re.MULTILINE,
)
_LEADING = word_pattern(r"\A⟨concludes⟩\s*[:,]?[*_\s]*", re.IGNORECASE)
_NEGATED = word_pattern(r"\s*(?:⟨denies⟩|不)(?=\W*\w)", re.IGNORECASE)
_DENYING = word_pattern(r"\b(?:no|não|non|n'|ne)\s*(?:es|sería|é|è|est)\s*\Z", re.IGNORECASE)
_QUESTION = word_pattern(r"[^\n.!]*\?")
#: A line of a list: of options, or of parts of one answer.
_SHORT_LINE = word_pattern(r"[\s*-]*[(\[]?[A-Z][)\].:]+[\s*]*\S|[\s*•-]*(?:\d{1,2}[.)]\s+)?[^\s.:!?]{1,20}\s*\Z")
_MARKS = " *_`$\\[]()\"'#-=|"
#: What ends before "answer is" where the text does not think so, or names a wrong one.
_DISBELIEVED = word_pattern(
    r"\b(?:in(?:correct|valid|accurate)|wrong|false|worst)\s*\Z"
    r"|(?:(?:\bnot|n't)⟨think⟩|\b⟨doubt⟩)"
    r"(?:(?!\b(?:so|but|hence|therefore|thus|and|because|since)\b)[\w\s']){0,30}\Z",
    re.IGNORECASE,
)
_ASKING = word_pattern(r"\b(?:what|which|is|does|do)\b\s*(?:the)?\s*$", re.IGNORECASE)
#: A line or a bracket that says something about the answer, and is none.
_NOTE = word_pattern(
    r"^[^\w\n]*(?:(?:my\s+)?(?:overall\s+)?(?:confidence|certainty|probability|likelihood|conf)(?:\s+(?:level|score))?"
    r"|notes?|n\.b|source|sources|reference|references|p\.?s|disclaimer|check|verification|units?|tip|remark|caveat|difficulty|time|tokens"
    r"|置信度|备注|注|確信度|신뢰도|confianza|confiance|konfidenz|уверенность)\b\s*[*_]*\s*[:=(].*$"
    r"|[(\[][^()\[\]\n]{0,40}\b(?:confiden\w+|certain|sure|round\w+|probability)\b[^()\[\]\n]{0,80}[)\]]"
    r"|\b(?:i am|i'm|with)\s+(?:about\s+|roughly\s+|a\s+)?\d+(?:\.\d+)?\s?%\s+(?:sure|certain|confiden\w+|probab\w+)"
    r"|^[^\w\n]*(?:let me know|i hope|hope this|feel free|please (?:let|note|feel)|if you (?:have|need|want)"
    r"|is there anything|thank you|thanks|good luck|have a)\b.*$"
    r"|(?:^[^\w\n]*|(?<=[.!?$])\s+)⟨checks⟩\s*[*_]*\s*:.*$"
    r"|(?<=[.!])\s+(?:let me know|i hope|hope this|feel free|please (?:let|note|feel)|if you (?:have|need))\b.*$",
    re.IGNORECASE | re.MULTILINE,
)

#: Words with which a part begins that speaks of the answer and is none.
_ABOUT = word_pattern(
    r"(?:clear|obvious|simple|easy|as|given|found|below|above|here|this|that|these|those|it|correct|right|wrong|incorrect|false|true"
    r"|follow\w*|based|determined|calculated|obtained|shown|therefore|thus|so|because|since|in|on|at|by|to|for|from|of|with|if|when"
    r"|where|which|what|who|how|why|we|i|you|they|there|let|rounded|same|only|also|most|more|likely|usually|always|probably|sum|and|or"
    r"|not|never|unclear|your|my|our|her|his|its|their|one|better|best|worse|approximately|about|around|just|simply|a|an|the|(?-i:[a-z]+ing)|\.\.\.|_+)(?![^\W_])"
    r"|⟨concludes right wrong⟩|⟨deictic⟩(?=\W*\Z)",
    re.IGNORECASE,
)
_FIRST = word_pattern(r"(?<=[\w)}\]\"'*$])[.!?](?=\s|\Z)|\n|。")
_SAYS = word_pattern(r"\b(?:is|are|was|were|has|have|does|do|can|will|would|looks?|seems?)\b", re.IGNORECASE)
#: Words and characters of a part that is an answer of another kind.
_WORDS, _CHARACTERS = 4, 40


def is_definite(part: str) -> bool:
    """Return whether a part that gives the answer is one, of whatever kind: a few words, not a remark about it."""
    text = re.sub(r"\\(?:text\w{0,2}|math\w{2}|mbox)\s*\{", "", _FIRST.split(part.strip(), maxsplit=1)[0])
    text = text.strip(" *_`'\"$()[]{}<>\\")
    if not any(map(str.isalnum, text)) or text.endswith(":") or _ABOUT.match(text) or _SAYS.search(text):
        return False
    return len(text) <= _CHARACTERS and len(text.split()) <= _WORDS


def without_notes(text: str) -> str:
    """Return a text without confidences, notes and politeness."""
    return _NOTE.sub(" ", text)


def tag_parts(text: str) -> list[str]:
    """Return the content of tags and tool calls that give an answer, the last first."""
    parts = [(match.start(), match[2]) for match in _TAG.finditer(text)]
    for match in _CALL.finditer(text):
        parts.append((match.start(), match[1] or match[2]))
    return [part.strip(" \n\"'") for _, part in sorted(parts, reverse=True)]


_BOXED_WORD = word_pattern(r"\s*([^\s$.,]+)")
_BETWEEN_BOXES = word_pattern(r"[\s$\\()\[\]]*(?:[,;/&|]|⟨joined⟩)[\s$\\()\[\]]*")
#: Boxes of a text that are read, from its end.
_BOXES = 100


def boxes(text: str) -> list[str]:
    r"""Return the contents of ``\boxed{}``, the last first; boxes that a word joins are one."""
    parts: list[str] = []
    last = 0
    for match in list(_BOX.finditer(text))[-_BOXES:]:
        start = end = match.end()
        if match[0].endswith("{"):
            end = _closing(text, start)
        elif word := _BOXED_WORD.match(text, start):
            start, end = word.span(1)
        joined = parts and _BETWEEN_BOXES.fullmatch(text, last, match.start())
        if joined:
            before = f"{parts.pop()} or "
        else:
            before = ""
        parts.append(before + text[start:end])
        last = end + match[0].endswith("{")
    return parts[::-1]


def _closing(text: str, start: int) -> int:
    """Return the index of the brace that closes the one before `start`, or the length of the text."""
    depth = 1
    for match in re.finditer(r"\\.|[{}]", text[start : start + 2000]):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if not depth:
            return start + match.start()
    return len(text)


def json_fields(text: str) -> list[str]:
    """Return the values of fields of JSON objects that give an answer, the last first, also in broken JSON."""
    values = []
    for match in _FIELD.finditer(text):
        value = next(match[name] for name in ("double", "single", "several", "bare", "open") if match[name] is not None)
        if match["several"] is not None:
            value = " or ".join(part.strip(" \"'\n") for part in value.split(","))
        values.append(_unescaped(value))
    return values[::-1]


def fields_end(text: str) -> int:
    """Return where the object of the last such field ends; 0 without one."""
    last = max((match.end() for match in _FIELD.finditer(text)), default=0)
    if last:
        return text.find("}", last) + 1
    return 0


def boxes_end(text: str) -> int:
    """Return where the last box ends; 0 without one."""
    last = max((match.end() for match in _BOX.finditer(text)), default=0)
    if last:
        return _closing(text, last) + 1
    return 0


def _unescaped(value: str) -> str:
    """Return the text of a string of JSON."""
    if "\\u" in value:
        value = re.sub(r"\\u([0-9a-fA-F]{4})", lambda match: chr(int(match[1], 16)), value)
        value = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # two escapes may be one character
    return re.sub(r"\\([\"'/])", r"\1", value.replace("\\n", "\n").replace("\\\\", "\\"))


def cue_parts(text: str) -> Iterator[str]:
    """Yield the text after phrases for the answer, the last first: the rest of the line, or the next non-blank one."""
    return (part for _, part in announced_places(text))


def announced_places(text: str) -> Iterator[tuple[int, str]]:
    """Yield where such a text begins, and the text."""
    for match in reversed(list(_CUE.finditer(text))):
        end = match.start() + len(match[0].rstrip())
        rest = text[end:]
        line = rest.partition("\n")[0]
        if not line.strip(" *_`$\\[]()\":'=|"):
            lines = list(itertools.dropwhile(lambda line: not line.strip(_MARKS), rest.split("\n")[1:12]))
            listed = list(itertools.takewhile(_SHORT_LINE.match, lines))
            line = "\n".join(listed if len(listed) > 1 else lines[:1])
        if text[max(0, match.start() - 1) : match.start()] in ("(", "["):  # it ends with its bracket
            line = re.split(r"[)\]]", line, maxsplit=1)[0]
        line = _LEADING.sub("", line.strip().lstrip("*_: "), count=1)
        before = re.split(r"[.!?\n:]", text[max(0, match.start() - 80) : match.start()])[-1]
        asked = _QUESTION.match(line) and _ASKING.search(before)
        denied = _DENYING.search(match[0]) or _NEGATED.match(line) or _DISBELIEVED.search(before)
        if line and not asked and not denied:
            yield text.index(line, end), line
