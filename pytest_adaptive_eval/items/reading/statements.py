"""Read what the statements of a text affirm and deny.

Each option that a text names is one character, its symbol, before any word is interpreted: the words of an option are
never read as words of the text. The text is divided into statements. A statement announces an option, judges it,
consists of it, begins with it, or only mentions it. The strongest kind of statement counts. A correction outweighs
what precedes it. Announcements are ordered, the last counts; other statements that affirm different options are several
answers.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from pytest_adaptive_eval.items.reading.constructions import word_pattern
from pytest_adaptive_eval.items.reading.denial import abstains, without_denied
from pytest_adaptive_eval.items.reading.stated import announced_places, is_definite

#: Indexes of the options that are given together, sorted; empty for an answer that is none of them.
Chosen = tuple[int, ...]

_FIRST, _WEAK = 0x20000, 0x400
_NEXT = word_pattern(r"⟨joint⟩(?P<symbol>⟨symbol⟩)", re.IGNORECASE)
_SYMBOL = word_pattern("⟨symbol⟩")
#: A symbol of an option that only its letter in brackets, or with a word, can be.
_STRONG = word_pattern("[\U00020000-\U000203ff]")
#: Where one statement ends and another begins.
_BREAK = word_pattern(
    r"\n|(?:\.{2,}|…)\s*|[.!?;](?=[\s)\"'*]|\Z|[^\x00-\x7f])|[。！？；，]|,(?!⟨symbol⟩)(?=[^\x00-ӿ])|\s[–]\s|\s?—\s?"
    r"|(?:が|けど|けれど|ので|から)、|(?<!\bif)(?:,|(?<!\s))\s+(?=(?:however|yet)\b|⟨contrasts concludes⟩)"
    r"|,\s*(?=(?:(?:while|whereas|although|though|it|that|this|here|actually|wait|no|now|i|we|however|leaving|which)\b|the\s+(?:\w+\s+)?(?:answer|option|choice)\b"
    r"|⟨symbol⟩\s*(?:[-:(]|(?:is|was|fits|seems|works|does)\b)))",
    re.IGNORECASE,
)
_ANNOUNCED = word_pattern(r"(?:⟨cue⟩)⟨then⟩(?=⟨symbol⟩)", re.IGNORECASE)
#: "A is wrong" is left only where the question asks for what is wrong.
_VERDICT = word_pattern(r"⟨symbol⟩(?:⟨judged⟩|\s*[:–-]\s*⟨bad⟩)", re.IGNORECASE)
#: One option is better than another.
_BETTER = word_pattern(
    r"(⟨symbol⟩)[^\n\U00020000-\U000207ff]{0,30}?\b(?:(?P<less>less\s+⟨quality⟩|worse|weaker)|(?:more\s+⟨quality⟩|better|stronger|likelier|preferable|superior|beats))(?:\s+\w+){0,2}?(?:\s+(?:than|to)\b)?⟨marks⟩{0,6}(⟨symbol⟩)",
    re.IGNORECASE,
)
_LEADING = word_pattern(
    r"(?:⟨marks⟩|⟨surely articles option chooses concludes contrasts states⟩"
    r"|\b(?:(?:i\s+(?:would\s+)?)?(?:think|believe|guess|say|feel)|my\s+(?:best\s+)?guess\s+is|not\s+(?:sure|certain)"
    r"|and|also|it\s+(?:could|may|might|can)\s+be|it's|it\s+is|edit|no|wait|sorry|hmm+|on\s+second\s+thoughts?|correction|rather)\b){0,16}"
    r"(?=⟨symbol⟩)",
    re.IGNORECASE,
)
#: What follows an option that its statement begins with.
_ENDED = word_pattern(
    r"[\s\"'`$*_)\]}>]{0,6}(?:[.,:;!?(\n–—=|/\[-]|\Z|[^\x00-ӿ]|⟨because⟩|\b(?:i\s+think|i\s+guess|is\s+my)\b)",
    re.I,
)
_ONLY_SYMBOLS = word_pattern(r"(?:⟨marks⟩|⟨option articles surely⟩|\b(?:and|or|also|answer)\b|[|;,&+]|⟨symbol⟩)+", re.I)
_CONCLUDED = word_pattern(r"\W*⟨concludes⟩", re.IGNORECASE)
#: A verdict beside an option. A space or a full stop may be the option's own, unless several options have one.
_MARKED = word_pattern(
    r"(⟨symbol⟩)(?P<mark>[\x20\"'*_)\]]*(?:\?|[:=→|>–—-]+|(?=[.(✓✔✅✗✘❌]|\x20\w|正确|错误))[\x20.|\"'*_(\[]*)(?:(?P<good>correct|right|yes|true|✓|✔|✅|正确)|"
    r"(?P<bad>incorrect|wrong|no|false|✗|✘|❌|错误|0(?:\.0+)?\s*%))(?=[\x20).|*_\"']*(?:[.,;:!|，。；]|$|⟨symbol⟩))",
    re.IGNORECASE | re.MULTILINE,
)
#: A line of an option that ends with such a mark.
_TICKED = word_pattern(r"^(\W*⟨symbol⟩)[^\n\U00020000-\U000207ff]*?(?:(?P<good>[✓✔✅])|[✗✘❌])\s*$", re.MULTILINE)
_SURELY = word_pattern(r"[?:=→|>✓✔✅✗✘❌–—-]")
_CONTRAST = word_pattern(r"\W*(?:⟨contrasts concludes⟩|(?:however|yet)\b)", re.IGNORECASE)
#: Statements that affirm nothing.
_SUPPOSED = word_pattern(
    r"^\W*(?:(?:but|so|and|now|even|only|then)\s+)*if\b(?!\s+(?:we|you|i)\b)|\bif\b(?!\s+(?:we|you|i)\b).*\b(?:would|were|had)\b|\b(?:would|were|had)\b.*\bif\b(?!\s+(?:we|you|i)\b)|\b(?:suppose|supposing|assum(?:e|ing)|unless(?!\s+(?:we|you|i)\b)|whether|otherwise|imagine|it\s+depends)\b|\bwould\s+be\s+(?:right|correct|true)\s+if\b"
    r"|^\W*⟨supposes⟩",
    re.IGNORECASE,
)
_CONCESSION = word_pattern(r"\W*(?:⟨contrasts⟩\s+)?⟨concedes because⟩[^,]*,", re.I)
_CONCEDED = word_pattern(
    r"^\W*(?:(?:but|and|so)\s+)?(?:many|most\s+(?:people|would)|some|one\s+(?:might|may|could|would)|you\s+(?:might|may|could|would)"
    r"|people|anyone|at\s+first|initially|first|originally|i\s+(?:\w+\s+)?(?:thought|was\s+going|have\s+said|considered|wanted))\b"
    r"|⟨seemed⟩|^\W*⟨concedes⟩[^,]*$"
    r"|^\W*(?:between|of|among)\s+(?:\w+\s+){0,2}⟨symbol⟩"
    r"|⟨symbol⟩[^\n\U00020000-\U000207ff.,(]{0,30}\b(?:are|is|seems?|looks?)\s+(?:both\s+|all\s+|equally\s+|very\s+|also\s+|a\s+)*(?:tempting|plausible|possible|close|candidates?|contenders?)\b|\b(?:(?<!second\s)thought|as\s+likely\s+as|need\s+to|have\s+to\s+(?:choose|decide)\s+between|choose\s+between|at\s+first|(?:often|commonly|frequently|usually)\s+(?:attributed|named|said|called|thought)|(?:(?<!no\s)doubt|unlikely|false|wrong|untrue)\s+that)\b|\blet(?:'s|\s+me|\s+us)\s+(?:look|consider|start|check|see|examine|begin)\b",
    re.IGNORECASE,
)
_CORRECTION = word_pattern(
    r"^\W*(?:(?:but|hm+|oh|ah|and)\b\W*)*⟨takes_back⟩"
    r"|\b(?:that|this|it)(?:'s|\s+is|\s+was|\s+would\s+be)\s+(?:a\s+mistake|wrong|incorrect|not(?:\s+(?:right|correct|true))?\s*[.!]?\s*$)",
    re.IGNORECASE,
)
#: Texts of options alone that affirm none: a way from one to another, and an option or its opposite.
_UNDECIDED = word_pattern(
    r"\W*(?:(?:the\s+)?answer\s*(?:is|:)\W*)?(?:⟨symbol⟩(?:\s*(?:→|⇒|⟶|[-=]{1,2}>)\s*⟨symbol⟩)+|(?:either\s+)?(⟨symbol⟩)\s+or\s+not\s+\1|⟨symbol⟩⟨marks⟩{0,6}\?)\W*",
    re.IGNORECASE,
)
_OR = word_pattern(r"\W*(?:or|and\s+(?:maybe|perhaps|possibly))\b", re.IGNORECASE)
_CONFIRMED = word_pattern(r"\b(?<!not\s)(?:right|correct|yes|fine|true)\b", re.IGNORECASE)
_SHARE = word_pattern(
    r"(?P<before>\d{1,3}(?:\.\d+)?\s*%)\s+(?:on|for|to)\s+(?P<after>⟨symbol⟩)|(⟨symbol⟩)[^\n\U00020000-\U000207ff%\d]{0,30}(\d{1,3}(?:\.\d+)?\s*%|[01]?\.\d+)"
)
#: A verdict that rejects the option before it.
_REJECTED = word_pattern(
    r"⟨symbol⟩⟨close⟩{0,6}[:=–—-]\s*(?:no|not|incorrect|wrong|false|✗|✘|❌|0(?:\.0+)?\s*%)(?!\w)[^\n.;,\U00020000-\U000207ff]{0,80}"
    r"|⟨symbol⟩[^\n.;\U00020000-\U000207ff]{0,200},?\s*\bso\s+(?:no|not)\b|⟨symbol⟩(?:项|选项)?(?:是)?(?:错误|错|不对|不正确)的?",
    re.IGNORECASE,
)
#: The same by what the option is not.
_IS_NOT = word_pattern(
    r"⟨symbol⟩⟨close⟩{0,6}(?:\b(?:is|was|does|do|did|can|could|would|will|has|may|might|should)(?:n't|\s+not|not|\s+never|\s+neither)\b"
    r"|⟨links⟩\s+(?:es\s+|het\s+|das\s+)?⟨not⟩|⟨not⟩\s+⟨links⟩|n'(?:en\s+)?\w+\s+pas\b|ne\s+(?:\S+\s+)?\S+\s+pas\b|[はが][^\n.;,。]{0,8}(?:ない|ません)|并?不[是对会算属])"
    r"(?!\s+(?:⟨only certain wrong⟩|bad\b))[^\n.;,\U00020000-\U000207ff]{0,80}|⟨symbol⟩\s+never\b",
    re.IGNORECASE,
)
#: Options that are denied together.
_DENIED_LIST = word_pattern(
    r"\b(?:(?:none\s+of|neither|nor|rul(?:e[sd]?|ing)\s+out|eliminat\w+|exclud\w+|except)⟨marks⟩{1,6}|(?:incorrect|wrong|false|rejected|eliminated|ruled\s+out)\s*:\s*)"
    r"⟨symbol⟩(?:⟨close⟩{0,4}(?:,|,?\s+(?:and|or|nor))\s*⟨open⟩{0,4}⟨symbol⟩)+"
    r"|⟨denies⟩⟨marks⟩{0,6}⟨symbol⟩(?:⟨close⟩{0,4},\s*⟨open⟩{0,4}⟨symbol⟩){0,9}⟨close⟩{0,4},?\s*⟨joined⟩\s*⟨open⟩{0,4}⟨symbol⟩",
    re.IGNORECASE,
)
#: What is left when all others are ruled out.
_ALL_BUT = word_pattern(
    r"\b(?:all|every\w*|any\w*)\b[^\n.\U00020000-\U000207ff]{0,40}\b(?:except|but|other\s+than|apart\s+from)\b⟨marks⟩{0,6}(?=⟨symbol⟩⟨close⟩{0,4}\s(?:is|are|(?:can|could|has|have)\s+be\w*)\s(?:in|not|wrong|false|ruled|elim|excl))",
    re.IGNORECASE,
)
_TERMINAL = word_pattern(r"[\n.!?;。！？；]")


#: Characters of a line that say what a correction is about.
_LINE = 200


class Strength(enum.IntEnum):
    """Strength with which a statement affirms options, from the weakest."""

    MENTIONED = 0
    BEGINS = 1
    CONSISTS = 2
    JUDGED = 3
    ANNOUNCED = 4


@dataclass(frozen=True, slots=True)
class Affirmation:
    """Options that a statement affirms, at a place of the text. Several values are joined by "or"."""

    values: tuple[Chosen, ...]
    strength: Strength
    start: int
    end: int


#: How strongly a statement affirms, and the values of each affirmation.
_Stated = tuple[Strength, list[tuple[Chosen, ...]]]


def symbol(index: int, *, weak: bool = False) -> str:
    """Return the character of an option; a weak one may be a word or the letter of something else."""
    return chr(_FIRST + index + _WEAK * weak)


def option_of(character: str) -> int:
    """Return the index of the option of a symbol."""
    return (ord(character) - _FIRST) % _WEAK


def read_statements(
    text: str,
    equal: Callable[[str], Chosen | None] = lambda _: None,
    *,
    wrong: bool = False,
    negative: bool = False,
    mentions: int = 0,
) -> list[Chosen]:
    """Return the different options that a text affirms; an empty tuple for another answer that it announces.

    Args:
        text: With symbols in place of options, see `symbol`.
        equal: Returns the option that an announced text equals in another notation, if any.
        wrong: Whether the text answers a question for what is wrong: "A is wrong" then affirms A.
        negative: Whether the text answers a question for what is not so: "A is not round" then does not deny A.
        mentions: Characters of a text up to which an option that is only mentioned is its answer.
    """
    if _UNDECIDED.fullmatch(text):
        return []
    affirmations = _Statements(text, equal, wrong, negative, mentions).affirmations()
    strength = max((each.strength for each in affirmations), default=Strength.MENTIONED)
    strongest = [each for each in affirmations if each.strength == strength]
    if strength is Strength.ANNOUNCED:
        strongest = strongest[-1:]
    if strength in (Strength.MENTIONED, Strength.JUDGED) and abstains(_SYMBOL.split(text)[-1]):
        return []
    values = list(dict.fromkeys(value for each in strongest for value in each.values))
    last = text.rstrip().rpartition("\n")[2]
    if strength is Strength.MENTIONED and len(values) != 1 and last != text and not _LEADING.match(last):
        return read_statements(last, equal, wrong=wrong, negative=negative, mentions=mentions)
    return values


class _Statements:
    """Statements of one text, and what they affirm."""

    def __init__(
        self, text: str, equal: Callable[[str], Chosen | None], wrong: bool, negative: bool, mentions: int
    ) -> None:
        self.equal = equal
        self.short = len(text) <= mentions
        self.first = len(text) - len(text.lstrip())
        self.text = text = _with_verdicts(text)
        remaining = _ALL_BUT.sub(_spaces, text)
        for pattern, counts in ((_DENIED_LIST, True), (_REJECTED, not wrong), (_IS_NOT, not wrong and not negative)):
            if counts:
                remaining = pattern.sub(_spaces, remaining)
        self.affirmed = without_denied(remaining, subjects=not wrong)
        self.announced = dict(self._announced())
        self.announced.update({match.end(): ((option_of(text[match.end()]),),) for match in _ALL_BUT.finditer(text)})

    def _group(self, start: int) -> tuple[tuple[Chosen, ...], int]:
        """Return the options at a place, and where they end."""
        indexes = [option_of(self.affirmed[start])]
        end = start + 1
        either = False
        while match := _NEXT.match(self.affirmed, end):
            indexes.append(option_of(match["symbol"]))
            either = either or any(match[name] for name in ("or", "bar", "also"))
            end = match.end()
        if either:
            return tuple((index,) for index in dict.fromkeys(indexes)), end
        return (tuple(sorted(set(indexes))),), end

    def _groups(self, start: int, end: int) -> Iterator[tuple[tuple[Chosen, ...], int]]:
        """Yield the options that are joined in a statement, and where they end."""
        while match := _SYMBOL.search(self.affirmed, start, end):
            values, start = self._group(match.start())
            yield values, start

    def _announced(self) -> Iterator[tuple[int, tuple[Chosen, ...]]]:
        """Yield places and options of announced answers; an empty tuple of options is another answer."""
        for match in _ANNOUNCED.finditer(self.affirmed):
            values, end = self._group(match.end())
            if match["firm"] or _ENDED.match(self.affirmed, end):
                yield match.end(), values
        for start, part in announced_places(self.affirmed):
            leading = _LEADING.match(part)
            if leading and not _names_several(part):
                yield start + leading.end(), self._group(start + leading.end())[0]
            else:
                yield from self._announced_part(start, part)

    def _announced_part(self, start: int, part: str) -> Iterator[tuple[int, tuple[Chosen, ...]]]:
        """Yield the options of an announced part that does not begin with one."""
        named = _named(part)
        if len(named) == 1 or _names_several(part):
            yield start, (tuple(sorted(map(option_of, named))),)
            return
        whole = self.equal(part)
        if whole is not None:
            yield start, (whole,)
        elif not named and is_definite(part):
            yield start, ((),)

    def affirmations(self) -> list[Affirmation]:
        """Return what statements affirm, without what later ones take back."""
        shared = self._shares()
        if shared:
            return shared
        affirmations: list[Affirmation] = []
        taken = 0
        keeps = True
        supposed = False
        for start, end in self._spans():
            statement = self.text[start:end]
            supposed = bool(_SUPPOSED.search(statement)) or (supposed and not self._ends_sentence(start))
            corrects = bool(_CORRECTION.search(statement))
            if corrects:
                affirmations = _without_taken(affirmations, taken, keeps)
                taken = len(affirmations)
                keeps = self._names_or_confirms(start)
            if concession := _CONCESSION.match(self.text, start, end):
                start = concession.end()
            if supposed or self._is_aside(start, end):
                continue
            stated = self._stated(start, end)
            if affirmations and _OR.match(statement):
                stated = [_or_else(affirmations[-1], each) for each in stated]
            elif corrects and len(stated) == 1:
                stated = [replace(stated[0], strength=max(stated[0].strength, Strength.BEGINS))]
            affirmations += stated
        return _without_taken(affirmations, taken, keeps)

    def _names_or_confirms(self, start: int) -> bool:
        """Return whether the line of a correction names an option, or confirms what was said."""
        line = self.text[start : min(_line_end(self.text, start), start + _LINE)]
        return bool(_SYMBOL.search(line)) or bool(_CONFIRMED.search(line))

    def _is_aside(self, start: int, end: int) -> bool:
        """Return whether a statement is a question, or concedes something."""
        statement = self.text[start:end]
        asked = self.text[end : end + 1] == "?" and not _ONLY_SYMBOLS.fullmatch(statement)
        return asked or _CONCEDED.search(statement) is not None

    def _spans(self) -> Iterator[tuple[int, int]]:
        """Yield where statements begin and end."""
        start = 0
        for match in _BREAK.finditer(self.text):
            if self.text[start : match.start()].strip():
                yield start, match.start()
            start = match.end()
        if self.text[start:].strip():
            yield start, len(self.text)

    def _ends_sentence(self, start: int) -> bool:
        """Return whether a new sentence, or "but", is at a place."""
        before = self.text[max(0, start - _LINE) : start].rstrip(" ")[-1:]
        return not before or _TERMINAL.match(before) is not None or _CONTRAST.match(self.text, start) is not None

    def _shares(self) -> list[Affirmation]:
        """Return the option with the highest share of a text that gives each option a share."""
        shares = {}
        for match in _SHARE.finditer(self.text):
            shares[option_of(match["after"] or match[3])] = float((match["before"] or match[4]).rstrip("% "))
        if len(shares) < 2 or max(shares.values()) == 0 or self.announced:
            return []
        best = []
        for index, share in shares.items():
            if share == max(shares.values()):
                best.append((index,))
        return [Affirmation(tuple(best), Strength.JUDGED, 0, 0)]

    def _stated(self, start: int, end: int) -> list[Affirmation]:
        """Return what one statement affirms, by its strongest form."""
        for form in (self._by_announcement, self._by_comparison, self._by_verdicts, self._by_beginning, self._by_names):
            strength, options = form(start, end)
            if options:
                return [Affirmation(values, strength, start, end) for values in options]
        return []

    def _by_announcement(self, start: int, end: int) -> _Stated:
        starts = []
        for position in self.announced:
            if start <= position < end:
                starts.append(position)
        return Strength.ANNOUNCED, [self.announced[position] for position in starts]

    def _by_comparison(self, start: int, end: int) -> _Stated:
        better = _BETTER.search(self.text, start, end)
        if better is None:
            return Strength.JUDGED, []
        best = better[3] if better["less"] else better[1]
        return Strength.JUDGED, [((option_of(best),),)]

    def _by_verdicts(self, start: int, end: int) -> _Stated:
        groups = self._groups(start, end)
        return Strength.JUDGED, [values for values, after in groups if _VERDICT.match(self.affirmed, after - 1)]

    def _by_beginning(self, start: int, end: int) -> _Stated:
        """Return the options that a statement begins with, as "B is closer." or "B, because ..."."""
        leading = _LEADING.match(self.affirmed, start, end)
        if leading is None:
            return Strength.BEGINS, []
        values, after = self._group(leading.end())
        line = self.affirmed[_line_start(self.text, start) : _line_end(self.text, start)]
        ended = _ENDED.match(self.affirmed, after) is not None
        alone = len(line) <= _LINE and _ONLY_SYMBOLS.fullmatch(line) is not None
        if alone or (start <= self.first and not ended):
            return Strength.CONSISTS, [values]
        return Strength.BEGINS, [values] if ended else []

    def _by_names(self, start: int, end: int) -> _Stated:
        """Return the options that a statement names: one that it concludes with, or all that it mentions."""
        if abstains(self.text[start:end]):
            symbols = []
        else:
            symbols = _SYMBOL.findall(self.affirmed[start:end])
        if len(symbols) == 1 and _CONCLUDED.match(self.text, start):
            return Strength.JUDGED, [((option_of(symbols[0]),),)]
        named = dict.fromkeys(option_of(each) for each in symbols if self.short or _STRONG.match(each))
        return Strength.MENTIONED, [((index,),) for index in named]


def _or_else(first: Affirmation, second: Affirmation) -> Affirmation:
    """Return the second of two affirmations, which a statement with "or" adds to the first."""
    return replace(second, values=(*first.values, *second.values), strength=first.strength)


def _with_verdicts(text: str) -> str:
    """Return a text with a line for each verdict beside an option."""
    several = len({match[1] for match in _MARKED.finditer(text)}) > 1

    def verdict(match: re.Match[str]) -> str:
        is_verdict = several or _SURELY.search(match[0])
        if is_verdict:
            return f"{match[1]}: {'yes' if match['good'] else 'no'}\n"
        return match[0]

    text = _TICKED.sub(lambda match: f"{match[1]}: {'yes' if match['good'] else 'no'}", text)
    return _MARKED.sub(verdict, text)


def _named(part: str) -> set[str]:
    """Return the symbols of an announced part: of all its lines, or of its first sentence."""
    return set(_SYMBOL.findall(part if "\n" in part else _TERMINAL.split(part, maxsplit=1)[0]))


def _names_several(part: str) -> bool:
    """Return whether a part lists options in several lines."""
    return "\n" in part and len(_named(part)) > 1


def _spaces(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _line_start(text: str, position: int) -> int:
    return text.rfind("\n", 0, position) + 1


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    if end < 0:
        return len(text)
    return end


def _without_taken(affirmations: list[Affirmation], taken: int, keeps: bool) -> list[Affirmation]:
    """Return affirmations without the first ones if a correction affirms others, or takes them back."""
    replaced = any(each.strength > Strength.MENTIONED for each in affirmations[taken:])
    if replaced or not keeps:
        return affirmations[taken:]
    return affirmations
