r"""Read a mathematical expression that a text gives as its answer."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from pytest_adaptive_eval.items.reading.cleaning import plain_characters, without_checks
from pytest_adaptive_eval.items.reading.constructions import either, with_words, word_pattern
from pytest_adaptive_eval.items.reading.denial import without_denied
from pytest_adaptive_eval.items.reading.numbers import expected_numbers, plain_numbers, with_powers
from pytest_adaptive_eval.items.reading.reader import Parser, Reading, read_answer, read_once
from pytest_adaptive_eval.items.reading.stated import JOINED

#: Characters of a sentence that are searched for formulas.
_LONGEST = 300
#: Between formulas of one list.
_LISTED = word_pattern(rf"\s*(?:,|\b{JOINED}\b|{JOINED}|∨)\s*", re.IGNORECASE)
#: A word that joins formulas within a sentence, where a letter of the next would be part of the one before.
_JOINS = word_pattern(
    rf"(?<=[\w)}}\]])\s*∨\s*|(?<=\d)\s+of\s+(?=[a-z]\s*=)|(?<=[\w)}}\]])\s+{JOINED}\s+(?=[-\u2212+±√\d\\(]|[A-Za-z][\w₀-₉]*\s*=|(?<=\w\w\s)[A-Za-z](?![^\W\d_]))|(?<=[\w)}}\]])(?:または|或者?|和|と)(?=[-\d√]|[a-z]\s*=)",
    re.IGNORECASE,
)
_WORD_NAMES = (
    "sin|cos|tan|cot|sec|csc|arc(?:sin|cos|tan)|[sct](?:in|os|an)h|log|ln|exp|lim|max|min|mod|gcd|lcm|det|pi|sqrt|sgn"
)
_LETTER = "[A-Za-zÀ-ӿ]"
_ATOM = (
    rf"\\[A-Za-z]+|\\[,;:!{{}}|]|\d+(?:[.,]\d+)*(?:[A-Za-z]{{1,2}}(?!{_LETTER}))?"
    rf"|(?<!{_LETTER})(?<!')(?:[A-Za-zα-ω]|{_WORD_NAMES})(?!{_LETTER}|'\w)"
    r"|[πθ∞√∛ℝℤ∅½⅓⅔¼¾⅙⅛°%∈∪∩±⁰¹²³⁴-⁹⁻ⁿ₀-₉]"
)
#: A formula in a sentence that does not mark it, with a digit or an operator.
_PLAIN_FORMULA = word_pattern(
    rf"(?=[^\n]{{0,80}}?[\d=^+*/<>≤≥√π∞∅(])(?:[-\u2212+(\[{{|\u27e8]\s?)*(?:{_ATOM})(?:\s?(?:{_ATOM}|[-\u2212+*/^=<>≤≥≠·⋅×÷(){{}}\[\]|!_,;'′:\u27e9]))*"
)
_WORDY = word_pattern(
    rf"(?<!\\left)\((?=[^()]*(?<![\\A-Za-z])[^\W\d_]{{3}})(?![^()]*(?:{_WORD_NAMES})\b)[^()]*\)|\b(?:where|for|with|für|mit|pour|avec|para|con|per|com|voor|dla|при|где)\s.*"
)
_PROSE = word_pattern(r"(?<!\d)[^\W\d_]{3,}|(?<!\S)[^\W\d_]{2}(?!\S)|[\u3040-\u9fff]")
#: A letter that is a word at the begin or the end of what was taken for a formula.
_LONE = word_pattern(r"\A[aeiouyAEIOY]\s+(?=[\w(\\√]|-\d)|(?<=[\w)}\]])\s+[aeiouyAEIOY]\Z")
_ACCOMPANIED = word_pattern(r"⟨accompanies⟩\s+\Z", re.IGNORECASE)
#: Several values, each with its name.
_VALUES = word_pattern(
    rf"=[^=]*(?:(?<!\\)[,;∨]|\\{{2}}|\\q?quad|\\lor|\\vee|\b{JOINED}\b|または|或者?)(?:[\s}}]|\\q?quad)*"
    r"(?:\\[a-z]+\s+)?[a-z](?:_\{?\w+\}?|[₀-₉])?(?:\(\w\))?\s*=",
    re.IGNORECASE,
)
_FORMULA = word_pattern(r"\$\$(.+?)\$\$|\\\[(.+?)\\\]|\$(.+?)\$|\\\((.+?)\\\)", re.DOTALL)
_SENTENCE = word_pattern(r"(?<=[\w)}\]])(?:[.?](?=\s|$)|!(?=\s+[A-Z]))|\n|。")
_FRACTION = word_pattern(r"\\[dtc]?frac\s*(?:\{([^{}]*)\}|(\w))\s*(?:\{([^{}]*)\}|(\w))")
_ROOT = word_pattern(r"(?:\\sqrt\s*(?:\{([^{}]*)\}|(\w))|√\s*\(?(\w+)\)?|sqrt\s*\(([^()]*)\))")
_POWER = word_pattern(r"\^\s*(?:\{([^{}]*)\}|(\d+|\w))")
_LOOKS = (
    (r"\\(?:cdot|times)(?![a-z])|×|·", "*"),
    (r"_\{(\w{2,})\}", r"_(\1)"),
    (
        r"\\(?:left|right|displaystyle|limits|mathrm|mathbf|boldsymbol|quad|qquad|[bB]igg?)(?![a-z])"
        r"|\\[!,;: ()\[\]]|[{}\s$]|~",
        "",
    ),
    (r"\\(?:text\w{0,2}|mbox)(?![a-z])", ""),
    (r"(?:\^\(?\\circ\)?|\\degree|°)(?!\d)", ""),
    (r"(?<=\d)\s*\*\s*(?=[^\W\d]|[\\(√])", ""),
    (r"\\%|%", ""),
    (r"\\\$", ""),
    (r"\\leq?(?![a-z])|\\leqslant", "≤"),
    (r"\\geq?(?![a-z])|\\geqslant", "≥"),
    (r"\\neq?(?![a-z])|!=", "≠"),
    (r"\\pm(?![a-z])", "±"),
    (r"\\(?:emptyset|varnothing)(?![a-z])", "∅"),
    (r"\\pi(?![a-z])", "π"),
    (r"\\infty(?![a-z])", "∞"),
    (r"\A[A-Za-z](?:\\in|=|∈)(?=.)", ""),
)
#: The name of what an expression gives, and the sign behind it.
_NAME_BEFORE = (
    r"(?:(?:\(\s*[a-z](?:\s*,\s*[a-z])+\s*\)|[a-zA-Z](?:_\{?\w\}?|[₀-₉])?(?:\([a-z]\))?|\\theta)"
    r"\s*(?:=|\\in(?![a-z])|∈))"
)


def _commas(column: str) -> str:
    """Return the entries of a column with commas."""
    return ",".join(entry.strip() for entry in column.split("\\\\") if entry.strip())


def _decimal(number: str) -> str:
    """Return a number beside a semicolon with a point for its comma."""
    return number.replace(",", ".")


_JOINED = with_words(JOINED)
_REALS = r"(?:\\math(?:bb|bf|rm)\s*\{?\s*R\s*\}?|ℝ|R)"
#: Notations of one expression, in the order of replacement.
_CANONICAL = (
    ("\u2013", "-"),
    (r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁻ⁿ]+", lambda match: with_powers(match[0])),
    (r"[·⋅]", r"\\cdot "),
    (r"\\[dtc]frac(?![a-z])", r"\\frac"),
    (r"(?<=\d)\{,\}(?=\d)", "."),
    (r"\\?sqrt\s*\(([^()]*)\)", r"\\sqrt{\1}"),
    (r"\\?exp\s*\(([^()]*)\)", r"e^{\1}"),
    (r"\s*(?:∨|\\lor(?![a-z])|\\vee(?![a-z])|,\s*\\q?quad(?![a-z]))\s*", ", "),
    # an angle is the other end than the bracket that faces it
    (r"\\langle(?![a-z])", "\u27e8"),
    (r"\\rangle(?![a-z])", "\u27e9"),
    (r"\u27e8(?=[^()\[\]\u27e9]*[\[\]])", "("),
    (r"\u27e8(?=[^()\[\]\u27e9]*\))", "["),
    (r"(\([^()\[\]\u27e8]*)\u27e9", r"\1]"),
    (r"(\[[^()\[\]\u27e8]*)\u27e9", r"\1)"),
    (r"\u27e8(.*?)\u27e9", r"(\1)"),
    # math-verify takes letters at the end for a unit
    (r"(?<=\d)([a-z])([a-z])(?![A-Za-z])", r"\1*\2"),
    (r"[½⅓⅔¼¾⅙⅛]", lambda match: "\\frac{{{}}}{{{}}}".format(*unicodedata.normalize("NFKC", match[0]).split("\u2044"))),
    (rf"(?<![\\A-Za-z])({_WORD_NAMES})(?![A-Za-z])", r"\\\1 "),
    (r"(?<![\d,(\[{])(\d+),(\d+)(?=\s*(?:[·*×a-zπ√]|\\[a-z]))", r"\1.\2"),
    (r"\A(\s*(?:[A-Z]\s*=)?\s*)\{([^{}]*[,;][^{}]*)\}\s*\Z", r"\1\\{\2\\}"),
    (r"\*\*", "^"),
    (r"\+/-", r"\\pm "),
    (r"√\s*\(?(\w+)\)?", r"\\sqrt{\1}"),
    ("∞", r"\\infty "),
    ("∪", r"\\cup "),
    (r"(?<=[\w)}])\s+(?:oder|und|et|ou|lub)\s+(?=[-\d\\({])", ", "),
    (r"(\\\{[^{};]*);(?=[^{}]*\\\})", r"\1,"),
    # the letters e and i are numbers, in whatever type they are set; others may be units
    (r"\\(?:math\w{2}|operatorname|text\w{0,2})\s*\{\s*([ei])\s*\}", r"{\1}"),
    (rf"\\text\w{{0,2}}\s*\{{\s*(?:{_JOINED}|of)\s*\}}", ", "),
    (r"(?<=\d)\s+of\s+(?=[a-z]\s*=)", ", "),
    (rf"\A\s*{either('empty_set')}\s*\Z", r"\\emptyset"),
    ("∅", r"\\emptyset "),
    (rf"(?<=[\w)}}])\s*(?:,?\s\b{_JOINED}\b\s|または|或者?|和|と)\s*(?=[a-z](?:_\{{?\w\}}?)?\s*=)", ", "),
    (r"\A\s*\\?\{\s*[a-z]\s*(?:\||:|\\mid)\s*(.*?)\\?\}\s*\Z", r"\1"),
    (r"(?<=\d)_\s*\{\s*\\text\w{0,2}\s*\{\s*(\w+)\s*\}\s*\}", lambda match: f"_{{{plain_numbers(match[1])}}}"),
    (r"\\left(?![a-z])|\\right(?![a-z])", ""),
    (
        r"\\begin\{(?:cases|aligned|array)\}(?:\{[lcr|]+\})?(.*?)\\end\{(?:cases|aligned|array)\}",
        lambda match: _commas(match[1].replace("&", "")),
    ),
    (r"\A\s*\\(?:vec|overrightarrow)\s*(?:\{[^{}]*\}|[a-zA-Z])\s*=?\s*(?=\\begin|\(|\\?\{)", ""),
    (r"\\begin\{[pb]?matrix\}([^&]*?\\\\[^&]*?)\\end\{[pb]?matrix\}", lambda match: f"({_commas(match[1])})"),
    (rf"\A\s*{_NAME_BEFORE}?\](?P<low>[^\[\]()]*[,;][^\[\]()]*)(?=[\[\])]\s*\Z)", r"(\g<low>"),
    (r"\A(\s*[(\[][^\[\]()]*)[,;]([^\[\]()]*)\[\s*\Z", r"\1,\2)"),
    (r"\\frac\s*(\\[A-Za-z]+)\s*(\w)", r"\\frac{\1}{\2}"),
    # values of several names are a tuple
    (r"\A\s*([a-z])\s*=([^=,;]+)[,;]\s*(?!\1)[a-z]\s*=([^=,;]+)\Z", r"(\2,\3)"),
    (rf"\A\s*{_NAME_BEFORE}", ""),
    (r"\A\s*[A-Z]\s*(?=\([^()]*[|;,][^()]*\)\s*\Z)", ""),
    (r"\A(\s*[(\[][^\[\]();|]*)[;|]([^\[\]();|]*[)\]]\s*)\Z", r"\1,\2"),
    (r"(?<=[,;])\s*[a-z](?:_\{?\w\}?|[₀-₉])?\s*=", ""),
    (r"\A([^()\[\]{};]+);([^()\[\]{};]+)\Z", lambda match: f"{_decimal(match[1])},{_decimal(match[2])}"),
    (r"\A([^±,]*)(?:\\pm(?![a-z])|±)\s*([^±,]*)\Z", r"\1+\2, \1-\2"),
    (r"(?<=[,(\[])\s*\+(?=\\infty)", ""),
    (r"\\(?:leq|leqslant|le)(?![a-z])|<=", "≤"),
    (r"\\(?:geq|geqslant|ge)(?![a-z])|>=", "≥"),
    (r"\\lt(?![a-z])", "<"),
    (r"\\gt(?![a-z])", ">"),
    (
        rf"\A\s*(?:{_REALS}\s*(?:\\setminus|\\backslash|\\|-|∖)\s*\\?\{{|[a-z]\s*(?:≠|!=|\\neq?(?![a-z])))\s*([^{{}},\\]+?)\s*(?:\\?\}})?\s*\Z",
        r"(-\\infty,\1)\\cup (\1,\\infty)",
    ),
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
_NAME = word_pattern(f"{_WORD_NAMES}|sup|inf|deg", re.IGNORECASE)
_COMMAND = word_pattern(r"\\(?:text\w{0,2}|math\w{2}|mbox|boxed|left|right|displaystyle)(?![a-z])|\\[(){}\[\],;:! ]|\$")


def canonical_expression(text: str) -> str:
    """Return an expression in one notation, without a name assigned to it and without a unit."""
    text = plain_characters(text)
    for pattern, replacement in _CANONICAL:
        text = re.sub(pattern, replacement, text)
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
_BINOMIAL = word_pattern(r"\\binom\s*\{([^{}]*)\}\s*\{([^{}]*)\}|\[([^\[\],]*(?:,[^\[\],]*)+)\]")


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
    return re.search(r"\\begin\{[pb]?matrix\}[^&]*\\end|\\langle", expression) is not None


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
    for pattern, replacement in _LOOKS:
        text = re.sub(pattern, replacement, text)
    return text.casefold()


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
        end = "" if sign in "∅π^2" else r"(?=[\w(√π\\-])"
        start = "" if sign in "∅√π-" else r"(?<=[\w)π])"
        written = re.sub(
            rf"{start}\s*{either(name)}\s*{end}", sign if sign in "∅π^2" else f" {sign}", written, flags=re.IGNORECASE
        )
    return line if written == number else written


def _plain_formulas(line: str) -> list[str]:
    """Return the formulas that a line without their marks holds, else none."""
    if not any(not _NAME.fullmatch(word) for word in _PROSE.findall(_WITHOUT_LETTERS.sub(" ", line))):
        return [line] if any(map(str.isalnum, line)) else []
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
    formulas = _plain_formulas(_WORDY.sub("", sentence)) or _plain_formulas(sentence)
    return (formulas or [sentence] * bool(sentence))[-1:]


def _last(text: str) -> list[str]:
    """Return the last formula of a text: in marks of LaTeX, or of its last line that holds one; else its last line."""
    text = without_checks(text)
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
    return [last] if last else []


_PARSER, _EQUATIONS = Parser(_stated, _loose), Parser(_stated, _last)


@read_once
def read_expression(text: str, *, equation: bool = False) -> Reading[str]:
    """Return the expressions that a text gives as its answer.

    Args:
        equation: Whether an equation is expected, whose last side alone is not the answer.
    """
    return read_answer(text, _EQUATIONS if equation else _PARSER)
