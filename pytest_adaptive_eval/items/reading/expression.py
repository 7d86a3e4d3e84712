r"""Read a mathematical expression that a text gives as its answer."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import Counter

from pytest_adaptive_eval.items.reading.cleaning import plain_characters
from pytest_adaptive_eval.items.reading.constructions import either, replaced, replacements, word_pattern
from pytest_adaptive_eval.items.reading.denial import without_denied
from pytest_adaptive_eval.items.reading.numbers import expected_numbers, plain_numbers, with_powers
from pytest_adaptive_eval.items.reading.reader import Parser, Reading, read_answer, read_once

#: Characters of a sentence that are searched for formulas.
_LONGEST = 300
#: Between formulas of one list.
_LISTED = word_pattern(r"\s*(?:,|\b⟨joined_formulas⟩\b|⟨joined_formulas⟩|∨)\s*", re.IGNORECASE)
#: A word that joins formulas within a sentence, where a letter of the next would be part of the one before.
_JOINS = word_pattern(
    r"(?<=[\w)}\]])\s*∨\s*|(?<=[\w)}\]])\s+⟨joined_formulas⟩\s+(?=[-\u2212+±√\d\\(]|[A-Za-z][\w₀-₉]*\s*=|(?<=\w\w\s)[A-Za-z](?![^\W\d_]))|(?<=[\w)}\]])(?:または|或者?|和|と)(?=[-\d√]|[a-z]\s*=)",
    re.IGNORECASE,
)
#: A formula in a sentence that does not mark it, with a digit or an operator.
_PLAIN_FORMULA = word_pattern(
    r"(?=[^\n]{0,80}?[\d=^+*/<>≤≥√π∞∅(])(?:[-\u2212+(\[{|⟨]\s?)*(?:⟨atom⟩)(?:\s?(?:⟨atom⟩|[-\u2212+*/^=<>≤≥≠·⋅×÷(){}\[\]⟨⟩|!_,;'′:]))*"
)
_WORDY = word_pattern(
    r"(?<!\\left)\((?=[^()]*(?<![\\A-Za-z])[^\W\d_]{3})(?![^()]*(?:⟨functions⟩)\b)[^()]*\)|\b(?:where|for|with|für|mit|pour|avec|para|con|per|com|voor|dla|при|где)\s.*"
)
_PROSE = word_pattern(r"(?<!\d)[^\W\d_]{3,}|(?<!\S)[^\W\d_]{2}(?!\S)|[\u3040-\u9fff]")
#: A letter that is a word at the begin or the end of what was taken for a formula.
_LONE = word_pattern(r"\A[aeiouyAEIOY]\s+(?=[\w(\\√]|-\d)|(?<=[\w)}\]])\s+[aeiouyAEIOY]\Z")
_ACCOMPANIED = word_pattern(r"⟨accompanies⟩\s+\Z", re.IGNORECASE)
#: Several values, each with its name.
_VALUES = word_pattern(
    r"=[^=]*(?:(?<!\\)[,;∨]|\\{2}|\\q?quad|\\lor|\\vee|\b⟨joined_formulas⟩\b|または|或者?)(?:[\s}]|\\q?quad)*"
    r"(?:\\[a-z]+\s+)?[a-z](?:_\{?\w+\}?|[₀-₉])?(?:\(\w\))?\s*=",
    re.IGNORECASE,
)
_FORMULA = word_pattern(r"\$\$(.+?)\$\$|\\\[(.+?)\\\]|\$(.+?)\$|\\\((.+?)\\\)", re.DOTALL)
_SENTENCE = word_pattern(r"(?<=[\w)}\]])(?:[.?](?=\s|$)|!(?=\s+[A-Z]))|\n|。")
_FRACTION = word_pattern(r"\\[dtc]?frac\s*(?:\{([^{}]*)\}|(\w))\s*(?:\{([^{}]*)\}|(\w))")
_ROOT = word_pattern(r"(?:\\sqrt\s*(?:\{([^{}]*)\}|(\w))|√\s*\(?(\w+)\)?|sqrt\s*\(([^()]*)\))")
_POWER = word_pattern(r"\^\s*(?:\{([^{}]*)\}|(\d+|\w))")
_LOOKS = replacements(r"""
\\(?:cdot|times)(?![a-z])|×|· => *
_\{(\w{2,})\} => _(\1)
\\(?:left|right|displaystyle|limits|mathrm|mathbf|boldsymbol|quad|qquad|[bB]igg?)(?![a-z])|\\[!,;: ()\[\]]|[{}\s$]|~ =>
\\(?:text\w{0,2}|mbox)(?![a-z]) =>
(?:\^\(?\\circ\)?|\\degree|°)(?!\d) =>
(?<=\d)\s*\*\s*(?=[^\W\d]|[\\(√]) =>
\\%|% =>
\\\$ =>
\\leq?(?![a-z])|\\leqslant => ≤
\\geq?(?![a-z])|\\geqslant => ≥
\\neq?(?![a-z])|!= => ≠
\\pm(?![a-z]) => ±
\\(?:emptyset|varnothing)(?![a-z]) => ∅
\\pi(?![a-z]) => π
\\infty(?![a-z]) => ∞
\A[A-Za-z](?:\\in|=|∈)(?=.) =>
""")


def _commas(column: str) -> str:
    """Return the entries of a column with commas."""
    return ",".join(entry.strip() for entry in column.split("\\\\") if entry.strip())


#: Notations of one expression, in the order of replacement.
_CANONICAL = replacements(
    r"""
\u2013 => -
\\[tdc]frac(?![a-z]) => \\frac
(?<=\d)\{,\}(?=\d) => .
\\?sqrt\s*\(([^()]*)\) => \\sqrt{\1}
\\?exp\s*\(([^()]*)\) => e^{\1}
\s*(?:∨|\\lor(?![a-z])|\\vee(?![a-z])|,\s*\\q?quad(?![a-z]))\s* => ,␣
\\q?quad(?![a-z]) => ␣
\\begin\{(?:cases|aligned|array)\}(?:\{[lcr|]+\})?(.*?)\\end\{(?:cases|aligned|array)\} => @commas
\\langle => ⟨
\\rangle => ⟩
# an angle is open beside a square bracket, as in Dutch, and closed beside a round one, as in Polish
⟨([^⟨⟩]*)\] => (\1]
\[([^⟨⟩]*)⟩ => [\1)
⟨([^⟨⟩]*)\)\s*\Z => [\1)
\A\s*\(([^⟨⟩]*)⟩ => (\1]
⟨(.*?)⟩ => (\1)
[⁰¹²³⁴⁵⁶⁷⁸⁹⁻ⁿ]+ => @powers
[·⋅] => \\cdot␣
# math-verify takes letters at the end for a unit
(?<=\d)([a-z])([a-z])(?![A-Za-z]) => \1*\2
[½⅓⅔¼¾⅙⅛] => @fraction
(?<![\\A-Za-z])(⟨functions⟩)(?![A-Za-z]) => \\\1␣
(?<![\d,(\[{])(\d+),(\d+)(?=\s*(?:[·*×a-zπ√]|\\[a-z])) => \1.\2
\A(\s*(?:[A-Z]\s*=)?\s*)\{([^{}]*[,;][^{}]*)\}\s*\Z => \1\\{\2\\}
\*\* => ^
\+/- => \\pm␣
√\s*\(?(\w+)\)? => \\sqrt{\1}
∞ => \\infty␣
∪ => \\cup␣
(?<=[\w)}])\s+(?:oder|und|et|ou|lub)\s+(?=[-\d\\({]) => ,␣
(\\\{[^{};]*);(?=[^{}]*\\\}) => \1,
# the letters e and i are numbers, in whatever type they are set; others may be units
\\(?:math\w{2}|operatorname|text\w{0,2})\s*\{\s*([ei])\s*\} => {\1}
\\text\w{0,2}\s*\{\s*(?:⟨joined_formulas⟩|of)\s*\} => ,␣
\A\s*⟨empty_set⟩\s*\Z => \\emptyset
∅ => \\emptyset␣
(?<=[\w)}])\s*(?:,?\s\b⟨joined_formulas⟩\b\s|または|或者?|和|と)\s*(?=[a-z](?:_\{?\w\}?)?\s*=) => ,␣
\A\s*\\?\{\s*[a-z]\s*(?:\||:|\\mid)\s*(.*?)\\?\}\s*\Z => \1
(?<=\d)_\s*\{\s*\\text\w{0,2}\s*\{\s*(\w+)\s*\}\s*\} => @base
\\left(?![a-z])|\\right(?![a-z]) =>
\A\s*\\(?:vec|overrightarrow)\s*(?:\{[^{}]*\}|[a-zA-Z])\s*=?\s*(?=\\begin|\(|\\?\{) =>
\\begin\{[pb]?matrix\}([^&]*?\\\\[^&]*?)\\end\{[pb]?matrix\} => @column
\A\s*⟨named⟩?\](?P<low>[^\[\]()]*[,;][^\[\]()]*)(?=[\[\])]\s*\Z) => (\g<low>
\A(\s*[(\[][^\[\]()]*)[,;]([^\[\]()]*)\[\s*\Z => \1,\2)
\\frac\s*(\\[A-Za-z]+)\s*(\w) => \\frac{\1}{\2}
# values of several names are a tuple
\A\s*([a-z])\s*=([^=,;]+)[,;]\s*(?!\1)[a-z]\s*=([^=,;]+)\Z => (\2,\3)
\A\s*⟨named⟩ =>
\A\s*[A-Z]\s*(?=\([^()]*[|;,][^()]*\)\s*\Z) =>
\A(\s*[(\[][^\[\]();|]*)[;|]([^\[\]();|]*[)\]]\s*)\Z => \1,\2
(?<=[,;])\s*[a-z](?:_\{?\w\}?|[₀-₉])?\s*= =>
\A([^±,]*)(?:\\pm(?![a-z])|±)\s*([^±,]*)\Z => \1+\2, \1-\2
\A([^()\[\]{};]+;[^()\[\]{};]+)\Z => @decimals
\A(?!.*\d,\d)(.*)\Z => @commas_of
(?<=[,(\[])\s*\+(?=\\infty) =>
\\(?:leq|leqslant|le)(?![a-z])|<= => ≤
\\(?:geq|geqslant|ge)(?![a-z])|>= => ≥
\\lt(?![a-z]) => <
\\gt(?![a-z]) => >
""",
    powers=lambda match: with_powers(match[0]),
    fraction=lambda match: f"({unicodedata.normalize('NFKC', match[0])})".replace("\u2044", "/"),
    base=lambda match: f"_{{{plain_numbers(match[1])}}}",
    commas=lambda match: _commas(match[1].replace("&", "")),
    decimals=lambda match: match[1].replace(",", ".").replace(";", ","),
    column=lambda match: f"({_commas(match[1])})",
    commas_of=lambda match: match[1].replace(";", ","),
)
#: The base of a number.
_BASE = word_pattern(r"(?<=\d)_\s*\{?\s*(?:\\text\w{0,2}\s*\{)?\s*(\w+)")
#: A unit at the end of an expression.
_UNIT = word_pattern(
    r"\\(?:text\w{0,2}|mathrm|mbox)\s*\{\s*([A-Za-z/ .]+)\}\s*(?:\^\s*\{?\d\}?)?\s*\Z|\s([a-z]{4,}(?: [a-z]+){0,3})\Z"
)
#: Relations, and characters that algebra does not read.
_RELATION = word_pattern(r"[<:';]|\.\.|[^\x00-\x7f√π∞∪]")
#: Characters that are not brackets or commas of a list: braces of LaTeX, sizes, spaces and separators of thousands.
_UNLISTED = word_pattern(
    r"(?<!\\)[{}]|\\(?=[{}])|\\(?:left|right|[bB]igg?)(?![a-z])|\\[,;:! ]|\$|(?<=\d),(?=\d{3}(?!\d))"
)
_INNERMOST = word_pattern(r"([(\[{\]])([^()\[\]{}]*)([)\]}\[])")
#: Fractions, roots and powers within each other that are read.
_NESTED = 8
#: Words that join several expressions.
_OR = word_pattern(r"(?:\\text\s*\{\s*)?\b(?:or|and)\b(?:\s*\})?", re.IGNORECASE)
_WITHOUT_LETTERS = word_pattern(
    r"\\(?:begin|end)\s*\{\w+\}(?:\{[lcr|]+\})?|_\s*\{\s*\\text\w{0,2}\s*\{\w+\}\s*\}|\\[A-Za-z]+"
)
#: A word that is the name of a function or a number.
_NAME = word_pattern("⟨functions⟩|sup|inf|deg", re.IGNORECASE)
_COMMAND = word_pattern(r"\\(?:text\w{0,2}|math\w{2}|mbox|boxed|left|right|displaystyle)(?![a-z])|\\[(){}\[\],;:! ]|\$")


def canonical_expression(text: str) -> str:
    """Return an expression in one notation, without a name assigned to it and without a unit."""
    text = plain_characters(text)
    text = replaced(text, _CANONICAL)
    unit = _UNIT.search(text)
    if unit and list(expected_numbers(f"1 {unit[1] or unit[2]}")) == [1]:
        text = text[: unit.start()]
    return text


#: A bound of one letter, with the letter before or behind, or two of them.
_BOUND = word_pattern(
    r"\s*(?:(?P<low>[^<>≤≥=,]+)(?P<above>[<≤]))?\s*[a-z]\s*(?:(?P<below>[<≤])(?P<high>[^<>≤≥=,]+))?"
    r"|\s*(?:[a-z]\s*(?P<over>[>≥])(?P<least>[^<>≤≥=,]+)|(?P<most>[^<>≤≥=,]+)(?P<under>[>≥])\s*[a-z])\s*"
)
_OPEN, _CLOSED = {"<": "(", ">": "(", "≤": "[", "≥": "["}, {"<": ")", ">": ")", "≤": "]", "≥": "]"}
_INTERVALS = word_pattern(r"\s*[(\[][^()\[\]]*,[^()\[\]]*[)\]]\s*(?:\\cup\s*[(\[][^()\[\]]*,[^()\[\]]*[)\]]\s*)*")
_BRACED = word_pattern(r"\\?\{([^{}]*;[^{}]*?)\\?\}\s*\Z")
_VECTOR = word_pattern(r"\\vec(?![a-z])|\\overrightarrow|ve[ck]t[eo]|wektor|вектор|向量|ベクトル", re.IGNORECASE)
_BINOMIAL = word_pattern(r"\\binom\s*\{([^{}]*)\}\s*\{([^{}]*)\}|\[([^\[\],;]*(?:[,;][^\[\],;]*)+)\]")
#: All numbers but some.
_WITHOUT = word_pattern(
    r"\s*(?:\\(?:mathbb|mathbf|Bbb)\s*\{?R\}?|ℝ|R)\s*(?:\\setminus|\\backslash|∖|\\|-)\s*\\?\{([^{}]*?)\\?\}\s*"
)


def as_intervals(expression: str) -> str:
    """Return a canonical expression of all numbers but some as intervals."""
    without = _WITHOUT.fullmatch(expression)
    if without is None:
        return expression
    ends = ["-\\infty", *re.split(r"\s*[,;]\s*", without[1]), "\\infty"]
    return "\\cup ".join(f"({low},{high})" for low, high in itertools.pairwise(ends))


def in_form_of(expression: str, other: str) -> str:
    """Return a canonical expression with intervals in place of bounds if the other one is of intervals."""
    if not _INTERVALS.fullmatch(other):
        return expression
    intervals = list(map(_interval, _OR.sub(",", expression).split(",")))
    if all(intervals):
        return "\\cup ".join(intervals)
    return expression


def _interval(text: str) -> str:
    """Return the interval that a bound describes; empty for other texts."""
    bound = _BOUND.fullmatch(text)
    if bound is None:
        return ""
    low, high = bound["low"] or bound["least"], bound["high"] or bound["most"]
    if not (low or high):
        return ""
    begin, end = "(-\\infty", "\\infty)"
    if low:
        begin = _OPEN[bound["above"] or bound["over"]] + low.strip()
    if high:
        end = high.strip() + _CLOSED[bound["below"] or bound["under"]]
    return f"{begin},{end}"


def as_vector(expression: str) -> str:
    """Return an expression with other notations of a column as round brackets."""
    return _BINOMIAL.sub(lambda match: f"({match[3] or f'{match[1]},{match[2]}'})", expression)


def with_braced_vector(expression: str, question: str) -> str:
    """Return an expression with round brackets in place of braces, where a vector is asked for: ``{3; 4}``."""
    if _VECTOR.search(question):
        return _BRACED.sub(lambda match: f"({match[1].replace(';', ',')})", expression)
    return expression


def is_vector(expression: str) -> bool:
    """Return whether an expression is a column or a vector, and no pair or interval."""
    return re.search(r"\\begin\{[pb]?matrix\}[^&]*\\end|\\langle|⟨", expression) is not None


def is_equation(expression: str) -> bool:
    """Return whether an expression is one equation of two letters or more, such as that of a line."""
    return (
        len(re.findall(r"(?<![<>≤≥!\\])=", expression)) == 1 and len(_letters(expression)) > 1 and "," not in expression
    )


def normal_expression(text: str) -> str:
    """Return an expression without formatting, and without a name assigned to it."""
    text = plain_characters(text).strip().strip(".,;:")
    text = with_powers(text).replace("**", "^")
    for _ in range(_NESTED):
        simple = _FRACTION.sub(lambda match: f"{_operand(match[1] or match[2])}/{_operand(match[3] or match[4])}", text)
        simple = _ROOT.sub(lambda match: f"√({next(filter(None, match.groups()), '')})", simple)
        simple = _POWER.sub(lambda match: f"^{_operand(match[1] or match[2] or '')}", simple)
        if simple == text:
            break
        text = simple
    return replaced(text, _LOOKS).casefold()


def _operand(text: str) -> str:
    """Return a part of an expression in round brackets, unless it is one number or one name."""
    text = text.strip()
    if re.fullmatch(r"\d+(?:\.\d+)?|[A-Za-z]", text):
        return text
    return f"({text})"


def form_of(expression: str) -> tuple[Counter[str], Counter[str]]:
    """Return the brackets around lists and intervals, and the relations of an expression.

    Expressions of different forms differ: a pair and a closed interval, a number and a bound. A list without brackets
    is a set; ``a < b`` and ``b > a`` are the same relation.
    """
    text = _UNLISTED.sub("", _OR.sub(",", expression))
    if text.count("|") == 1:
        text = text.replace("|", ",")
    brackets: Counter[str] = Counter()
    while inner := _INNERMOST.search(text):
        brackets[inner[1] + inner[3]] += "," in inner[2]
        text = text[: inner.start()] + text[inner.end() :]
    brackets["{}"] += "," in text
    relations = Counter(_RELATION.findall(normal_expression(expression).replace(">", "<").replace("≥", "≤")))
    relations.update(plain_numbers(base) for base in _BASE.findall(expression))
    return +brackets, relations + _letters(expression)


def _letters(expression: str) -> Counter[str]:
    """Return the letters of an expression, each once, without commands and names of functions."""
    words = re.findall("[A-Za-z]+", _WITHOUT_LETTERS.sub(" ", _OR.sub(",", expression)))
    return Counter({letter for word in words if not _NAME.fullmatch(word) for letter in word})


def is_words(answer: str) -> bool:
    """Return whether an expression is of words, or a list of letters, which no algebra compares."""
    text = _COMMAND.sub(" ", plain_characters(answer)).replace("{", " ").replace("}", " ").strip(" .")
    if not text or re.search(r"[\d+*/^=<>≤≥≠_\\|∞π√-]", text):
        return False
    words = re.findall(r"[^\W\d_]+", text)
    if any(len(word) > 1 or (not word.isascii() and word >= "\u2e80") for word in words if not _NAME.fullmatch(word)):
        return True
    return len(words) > 1 and re.fullmatch(r"[A-Z](?:\s*,?\s*[A-Z])+", text.strip("()[] ")) is not None


def _formulas(text: str) -> list[str]:
    """Return the formulas of a text. Formulas that a comma or a word such as "and" joins are one."""
    formulas: list[str] = []
    end = 0
    for match in _FORMULA.finditer(text):
        formula = next(filter(None, match.groups())).strip()
        if formulas and _LISTED.fullmatch(text, end, match.start()):
            formula = f"{formulas.pop()}, {formula}"
        formulas.append(formula)
        end = match.end()
    return formulas


def _has_value(formula: str) -> bool:
    """Return whether a formula is more than the letter of a variable."""
    return any(letter.isdigit() or letter in "\\=^+-(√π∞∅½⅓⅔¼¾" for letter in formula)


#: Signs of mathematics in words, between or before operands.
_SPOKEN = (
    ("empty_set", "∅"),
    ("root", "√"),
    ("pi", "π"),
    ("infinity", "∞"),
    ("squared", "^2"),
    ("times", "*"),
    ("over", "/"),
    ("minus", "-"),
    ("plus", "+"),
)


def _written(line: str) -> str:
    """Return a line with signs in place of mathematics in words."""
    number = plain_numbers(line)
    written = number
    for name, sign in _SPOKEN:
        end = "" if sign in "π∞∅^2" else r"(?=[\w(√π\\-])"
        start = "" if sign in "√π∞∅-" else r"(?<=[\w)π])"
        written = re.sub(
            rf"{start}\s*{either(name)}\s*{end}", sign if sign in "π∞∅^2" else f" {sign}", written, flags=re.IGNORECASE
        )
    if written == number:
        return line
    return written


def _plain_formulas(line: str) -> list[str]:
    """Return the formulas that a line without their marks holds, else none."""
    if not any(not _NAME.fullmatch(word) for word in _PROSE.findall(_WITHOUT_LETTERS.sub(" ", line))):
        if any(map(str.isalnum, line)):
            return [line]
        return []
    line = _JOINS.sub(", ", _written(line.rstrip("。. ")))
    formulas = []
    for match in _PLAIN_FORMULA.finditer(line):
        formula = _LONE.sub("", match[0].strip(" ,;:.'|")).strip(" ,;:.'")
        formula = formula.rstrip("-+*/=^")
        if formula.count("{") != formula.count("}"):  # it would end within a command with a word
            return [line]
        if _has_value(formula):
            formulas.append((formula, bool(_ACCOMPANIED.search(line[: match.start()]))))
    return [formula for formula, accompanies in formulas if not accompanies] or [formula for formula, _ in formulas]


def _stated(text: str) -> list[str]:
    """Return the formula of a statement, or its first sentence."""
    formulas = _formulas(text)
    if formulas:
        return formulas[:1]
    text = without_denied(text)
    sentence = _SENTENCE.split(text.strip().strip("*`\"' "), maxsplit=1)[0].strip().strip("*`\"' ").rstrip(".,;")
    if is_words(sentence):
        return [sentence]
    bare = _WORDY.sub("", sentence)
    return (_plain_formulas(bare) or _plain_formulas(sentence) or [sentence] * bool(sentence))[-1:]


def _last(text: str) -> list[str]:
    """Return the last formula of a text: in marks of LaTeX, or of its last line that holds one; else its last line."""
    formulas = _formulas(text)
    if formulas:
        return ([each for each in formulas if _has_value(each)] or formulas)[-1:]
    lines = [line.strip(" *`") for line in text.strip().split("\n")]
    for line in reversed(lines):
        for sentence in reversed(_SENTENCE.split(line)):
            formulas = _plain_formulas(_WORDY.sub("", sentence[-_LONGEST:])) or _plain_formulas(sentence[-_LONGEST:])
            if formulas:
                return formulas[-1:]
    return lines[-1:]


def _loose(text: str) -> list[str]:
    """Return the last formula of a text, of an equation the last side."""
    last = "".join(_last(without_denied(text)))
    if not _VALUES.search(last):
        last = re.split(r"(?<![<>≤≥!\\])=(?!=)", last)[-1]
    last = last.strip().rstrip(".,;")
    if last:
        return [last]
    return []


_PARSER, _EQUATIONS = Parser(_stated, _loose), Parser(_stated, _last)


@read_once
def read_expression(text: str, *, equation: bool = False) -> Reading[str]:
    """Return the expressions that a text gives as its answer.

    Args:
        equation: Whether an equation is expected, whose last side alone is not the answer.
    """
    return read_answer(text, _EQUATIONS if equation else _PARSER)
