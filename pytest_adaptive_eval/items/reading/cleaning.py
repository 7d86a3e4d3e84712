"""Clean model texts: remove reasoning, chat tokens, and the next question of a base model."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator

from pytest_adaptive_eval.lazy_pattern import lazy_pattern

_REASONING = "think|thinking|thought|thoughts|reasoning|reason|scratchpad|reflection|analysis|rationale|seed:think"
#: A closed piece of reasoning.
_CLOSED = lazy_pattern(
    rf"<({_REASONING})>(?:(?!<\1>).)*?</\1>"
    r"|\[(THINK|REASONING)\].*?\[/\2\]|◁think▷.*?◁/think▷|<unused94>.*?<unused95>"
    r"|<\|channel\|>(?:analysis|commentary)\b.*?(?=<\|channel\|>final|\Z)|<\|begin_of_thought\|>.*?<\|end_of_thought\|>",
    re.DOTALL | re.IGNORECASE,
)
#: The end of reasoning whose begin was in the prompt.
_END = lazy_pattern(rf"</(?:{_REASONING})>|\[/THINK\]|◁/think▷|<unused95>|<\|end_of_thought\|>", re.IGNORECASE)
#: The begin of reasoning that was cut.
_BEGIN = lazy_pattern(rf"<(?:{_REASONING})>|\[THINK\]|◁think▷|<unused94>|<\|begin_of_thought\|>", re.IGNORECASE)
_FINAL, _MESSAGE = lazy_pattern(r"<\|channel\|>final\b"), "<|message|>"
#: Tokens at which a turn ends, and tokens that say nothing.
_STOP = lazy_pattern(
    r"<\|(?:im_end|eot_id|end_of_text|endoftext|end|eom_id|return|end_of_turn|END_OF_TURN_TOKEN)\|>|<end_of_turn>|</s>"
    r"|<｜end▁of▁sentence｜>|<eoa>|\[/?INST\]"
)
_SILENT = lazy_pattern(r"<s>|<pad>|<bos>|<eoe>|<\|(?:im_start|start_header_id)\|>assistant(?:<\|end_header_id\|>)?")
_NEXT = lazy_pattern(
    r"(?:\n\s*|(?<=[.!?。]) {0,2}(?=(?:Question|Human|User|Problem)\b))[#*<\[(]{0,4}\s*"
    r"(?:(?:next|new)\s+)?"
    r"(?:(?:question|problem|exercise|task|human|user|instruction|q|example|input|问题|題目|题目|问|例题|pregunta|frage|"
    r"pergunta|domanda|вопрос|質問|질문|문제|سؤال|प्रश्न|pertanyaan)\s*(?:[#№]?\s*\d+\s*[*\])]*\s*[:：.)]|[*\])]*\s*[:：])"
    r"|###\s*(?:instruction|question|problem|user|human|input)\b)",
    re.IGNORECASE,
)

#: Characters of Markdown that are written with a backslash.
_ESCAPED = lazy_pattern(r"\\([_*#])")
#: Text that is struck out.
_STRUCK = lazy_pattern(
    r"~~(?=\S)[^\n]{1,400}?(?<=\S)~~|<(del|strike)>.{0,400}?</\1>|(?<=\S)\s*<s>[^<\n]{1,400}</s>"
    r"|\\(?:sout|st|xout)\s*\{[^{}]{0,400}\}|(?:\S\u0336\s?)+",
    re.DOTALL | re.IGNORECASE,
)
_STATEMENT = lazy_pattern(
    r"^[ \t]*(?:import\s\w|from\s\w+\simport|def\s\w|for\s\w.*:$|while\s.*:$|(?:el)?if\s.*:$|else:$|print\s*\("
    r"|return\s|"
    r"[a-z_]\w*\s*=\s)",
    re.MULTILINE,
)
_LAST_STATEMENT = lazy_pattern(
    r"(?:print\s*\(.*\)|return\b(?!\s+(?:the|a|to)\b).*|\w+\s*=\s*[\w.]+[(\[].*|(?:el)?if\s.*)\s*\Z"
)

_PLAIN = str.maketrans(
    {
        **{chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},
        **dict.fromkeys("\N{MINUS SIGN}\N{HYPHEN}\N{NON-BREAKING HYPHEN}\N{FIGURE DASH}\N{SMALL HYPHEN-MINUS}", "-"),
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2039\u203a\u02bc\u02b9\u00b4", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u301d\u301e\u301f", '"'),
        **dict.fromkeys("\u2028\u2029\x85\x0b\x0c\r", "\n"),
        "\N{ARABIC DECIMAL SEPARATOR}": ".", "\N{ARABIC THOUSANDS SEPARATOR}": ",", "\N{ARABIC PERCENT SIGN}": "%",
    }
)  # fmt: skip
#: Invisible characters that join others to one picture or form, and stay.
_JOINERS = "\N{ZERO WIDTH JOINER}"
#: Marks that open a line: of a heading, a list, a quotation, a table.
_LINE_MARKS = lazy_pattern(r"\A(?:[#>|*•‣▪·–-]+\s+|\d{1,2}[.)]\s+)+")
#: What surrounds an answer and is no part of it, by pairs.
_WRAPPERS = lazy_pattern(
    r"\A(?:```[\w+-]*\n(?P<block>.*?)\n?```|\\\[(?P<display>.*)\\\]|\\\((?P<inline>.*)\\\)|\$\$(?P<dollars>[^$]*)\$\$"
    r"|\$(?P<dollar>[^$]*)\$|\*\*(?P<bold>.*)\*\*|__(?P<under>.*)__|\*(?P<italic>[^*]*)\*|_(?P<line>[^_]*)_"
    r"|`(?P<code>[^`]*)`|\[(?P<list>[^\[\]]*|\[[^\[\]]*\])\]|\((?P<round>[^()]*)\)|\{(?P<brace>[^{}]*)\}|<(?P<angle>[^<>]*)>"
    r"|'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\"|「(?P<corner>[^「」]*)」|『(?P<white>[^『』]*)』|【(?P<lens>[^【】]*)】"
    r"|\\(?:boxed|text\w{0,2}|math\w{2}|mbox|operatorname)\s*\{(?P<command>[^{}]*)\})\Z",
    re.DOTALL,
)

_EMPHASIS = lazy_pattern(r"(?<![\w*\\^])(\*{1,3}|_{1,3}|`)(?=[^\s*_`])([^\n*_`]{1,200}?)(?<=\S)\1(?![\w*])")


def plain_characters(text: str) -> str:
    """Return a text as people read it, in composed characters (NFC).

    Full-width forms, Unicode digits, spaces, signs and quotation marks get their ASCII form. Invisible characters, such
    as marks of direction and of byte order, are left out.
    """
    if text.isascii():
        if "\r" in text:
            return text.replace("\r\n", "\n").replace("\r", "\n")
        return text
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").translate(_PLAIN))
    return "".join(_plain(letter) if letter > "\x7f" else letter for letter in text)


@functools.lru_cache(maxsize=4096)
def _plain(letter: str) -> str:
    """Return the ASCII form of a decimal digit or a space, nothing for an invisible character, else the character."""
    value = unicodedata.decimal(letter, None)
    if value is not None:
        return str(value)
    category = unicodedata.category(letter)
    if category == "Zs":
        return " "
    if category == "Cf" and letter not in _JOINERS:
        return ""
    if "\U0001d400" <= letter <= "\U0001d7ff":  # mathematical letters
        return unicodedata.normalize("NFKC", letter)
    return letter


def unwrapped(text: str) -> list[str]:
    """Return a text in plain characters, and its versions as marks, brackets and quotes around it are removed."""
    forms = [text.strip()]
    while True:
        bare = _LINE_MARKS.sub("", forms[-1], count=1).strip()
        if match := _WRAPPERS.match(bare):
            bare = next(part for part in match.groups() if part is not None).strip()
        if not bare or bare == forms[-1]:
            ended = forms[-1].rstrip(" .,;:!")
            if not ended or ended == forms[-1] or ended[-1] not in "`*_'\")]}>$」』】":
                return forms
            bare = ended
        forms.append(bare)


def without_reasoning(text: str) -> str:
    """Return a text without reasoning and tokens of chats.

    Reasoning that does not end leaves nothing, since what it considers is not an answer.
    """
    if not ("<" in text or "[" in text or "◁" in text):
        return text
    text = _final_message(_CLOSED.sub("\n", text))
    if ends := list(_END.finditer(text)):
        text = text[ends[-1].end() :]
    if begin := _BEGIN.search(text):
        text = text[: begin.start()]
    text = _SILENT.sub(" ", text)
    stop = next((match for match in _STOP.finditer(text) if text[: match.start()].strip()), None)
    if stop:
        text = text[: stop.start()]
    return _STOP.sub(" ", text)


def _final_message(text: str) -> str:
    """Return the last message of the final channel, else the text."""
    channels = list(_FINAL.finditer(text[: max(0, text.rfind(_MESSAGE))]))
    if channels:
        return text[text.index(_MESSAGE, channels[-1].end()) + len(_MESSAGE) :]
    return text


def answer_part(text: str) -> str:
    """Return a text in plain characters without reasoning, tokens of chats and what is struck out."""
    return _ESCAPED.sub(r"\1", _STRUCK.sub(" ", plain_characters(without_reasoning(text)))).strip()


def is_program(text: str) -> bool:
    """Return whether a text is a program, or ends as one, without stating its result."""
    last = text.rstrip(" \n`").rpartition("\n")[2].strip()
    return _LAST_STATEMENT.match(last) is not None and len(_STATEMENT.findall(text)) > 1


def before_next_question(text: str) -> str:
    """Return the part of a text before the first question that follows something; the whole if there is none."""
    for match in _NEXT.finditer(text):
        if text[: match.start()].strip():
            return text[: match.start()].strip()
    return text


def without_emphasis(text: str) -> str:
    """Return a text without the marks of Markdown around emphasized words."""
    return _EMPHASIS.sub(r"\2", text)


def whole_words(part: str, text: str) -> Iterator[int]:
    """Yield where a part occurs in a text, not within a word or a number; scripts without spaces have no words."""
    for match in re.finditer(re.escape(part), text):
        if ends_word(text, match.end()) and (match.start() == 0 or not _joins(text[match.start() - 1], part[:1])):
            yield match.start()


def _joins(before: str, after: str) -> bool:
    """Return whether two letters side by side are within a word or a number."""
    return (before.isalnum() and after.isalnum() and before < "\u2e80") or (before in ".,-" and after.isdigit())


def ends_word(text: str, end: int) -> bool:
    """Return whether a word or a number ends at a place in a text."""
    if end >= len(text):
        return True
    if text[end - 1].isdigit() and re.match(r"[.,]\d", text[end:]):
        return False
    return not (text[end].isalnum() and text[end - 1].isalnum() and text[end] < "\u2e80")


#: The two spellings in use.  Where a chat template opens the span, the model writes the closing tag alone.
_TAG = re.compile(r"<(/?)(?:think|thinking)>", re.IGNORECASE)


def split_reasoning(text: str) -> tuple[str, str, bool]:
    """Split think spans from a completion.

    Returns:
        answer: Text outside the spans, stripped; the whole text unchanged without spans.
        reasoning: Text inside the spans, one paragraph per span. A closing tag without an opening one ends a span that
            began with the text.
        closed: False if the last span does not end; then no answer follows it.
    """
    first = _TAG.search(text)
    if first is None:
        return text, "", True
    answer: list[str] = []
    reasoning: list[str] = []
    depth = 1 if first[1] else 0
    for number, piece in enumerate(_TAG.split(text)):
        if number % 2:  # a tag, by its slash
            if piece:
                depth = max(0, depth - 1)
            else:
                depth = depth + 1
        else:
            (reasoning if depth else answer).append(piece)
    paragraphs = "\n\n".join(part.strip() for part in reasoning if part.strip())
    return "".join(answer).strip(), paragraphs, depth == 0
