"""Answers worked out from what the questions say, by other methods than those of the families."""

from __future__ import annotations

import ast
import itertools
import re
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np

from pytest_adaptive_eval.extensions.sandbox import Run
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.tasks import Picture, TaskFamily
from pytest_adaptive_eval.tasks.distortions import DISTORTIONS
from pytest_adaptive_eval.tasks.pictures import SHAPES, icon
from pytest_adaptive_eval.tasks.words import LEXICON, WORDS
from tests.tasks.picture_solvers import SOLVERS as PICTURE_SOLVERS
from tests.tasks.picture_solvers import undistorted


def parts(pattern: str, prompt: str) -> tuple[str, ...]:
    """The groups of a pattern that is all of the prompt."""
    match = re.fullmatch(pattern, prompt, re.DOTALL)
    assert match, prompt
    return tuple(match.groups())


def counting(prompt: str) -> str:
    needle, hay = parts(r"How many (?:times does the letter )?([A-F]) (?:occur|are) in ([A-F]+)\?", prompt)
    return str(sum(1 for letter in hay if letter == needle))


def addition(prompt: str) -> str:
    first, second = parts(r"What is (\d+) \+ (\d+)\?", prompt)
    carry, digits = 0, ""
    for a, b in zip(reversed(first), reversed(second), strict=True):
        carry, digit = divmod(int(a) + int(b) + carry, 10)
        digits = str(digit) + digits
    return f"{carry or ''}{digits}"


def operations(prompt: str) -> str:
    if prompt.startswith("Calculate"):
        (expression,) = parts(r"Calculate ([-+* ()\d]+), with the usual order of operations\.", prompt)
        return str(eval(expression))
    (line,) = parts(r"Work from left to right: (\d(?: [-+*] \d)+) = \?", prompt)
    value, *rest = line.split()
    total = int(value)
    for operator, operand in zip(rest[::2], rest[1::2], strict=True):
        total = {"+": total + int(operand), "-": total - int(operand), "*": total * int(operand)}[operator]
    return str(total)


def post_order(prompt: str) -> str:
    before, within = parts(r"A tree has pre-order ([A-Z]+) and in-order ([A-Z]+)\. What is the post-order\?", prompt)

    def rebuild(before: str, within: str) -> str:
        if not before:
            return ""
        cut = within.index(before[0])
        return rebuild(before[1 : cut + 1], within[:cut]) + rebuild(before[cut + 1 :], within[cut + 1 :]) + before[0]

    return rebuild(before, within)


def unscramble(prompt: str) -> str:
    (mixed,) = re.findall(r"\b[A-Z]{3,}\b", prompt)
    (word,) = (word for word in WORDS[len(mixed)] if Counter(word) == Counter(mixed))
    return word


def cells(picture: Picture, n: int, step: int, margin: int) -> list[str]:
    """The shapes on a board, row by row, told apart by comparing each cell with every icon."""
    icons = {shape: icon(shape, step - 2 * margin) for shape in SHAPES}
    found = []
    for row, column in itertools.product(range(n), repeat=2):
        top, left = row * step + margin, column * step + margin
        cell = picture[top : top + step - 2 * margin, left : left + step - 2 * margin] > 128
        found.append(next(shape for shape, mask in icons.items() if (mask == cell).all()))
    return found


def grid(prompt: str, picture: Picture, level: int) -> str:
    shapes = Counter(cells(picture, level, 8, 1))
    if prompt == "Which shape is in one cell only?":
        (only,) = (shape for shape, count in shapes.items() if count == 1)
        return only
    return str(shapes[parts(r"How many cells show ([a-z]+)\?", prompt)[0]])


def icons(prompt: str, picture: Picture, level: int) -> str:
    (wanted,) = parts(r"How many ([a-z]+) icons are in the picture\? End with the number\.", prompt)
    return str(cells(picture, level + 1, 32, 2).count(wanted))


def caption(prompt: str, picture: Picture, level: int) -> str:
    _, row, column = parts(r"Row \d holds (.*)\. Which shape is in row (\d), column (\d)\?", prompt)
    return cells(picture, level, 8, 1)[(int(row) - 1) * level + int(column) - 1]


def matched(picture: Picture, level: int) -> str:
    """The shape and place whose pixels stand out most, by as much as they would: about the best that can be seen."""
    spread = np.random.default_rng(0).normal(0.0, 50 * (level - 1), 100_000)
    half = (np.clip(40 + spread, 0, 255).mean() + np.clip(220 + spread, 0, 255).mean()) / 2
    windows = np.lib.stride_tricks.sliding_window_view(picture - half, (24, 24))
    scores = {shape: float(np.tensordot(windows, icon(shape, 24).astype(float), axes=2).max()) for shape in SHAPES}
    return max(scores, key=scores.__getitem__)


def noise(name: str, picture: Picture, level: int) -> str:
    """The one shape that is left when the noise, drawn again, is taken off where it did not clip."""
    rng = Random(name)
    rng.choice(SHAPES), rng.randrange(25), rng.randrange(25)
    sums = np.frombuffer(rng.randbytes(12 * 48 * 48), dtype=np.uint8).reshape(-1, 12).sum(axis=1, dtype=int)
    clean = picture.astype(int) - (sums.reshape(48, 48) - 1530) * (50 * (level - 1)) // 256
    clear = (picture > 0) & (picture < 255)
    assert set(np.unique(clean[clear])) <= {40, 220}
    bright, dark = clear & (clean == 220), clear & (clean == 40)
    windows = np.lib.stride_tricks.sliding_window_view(bright.astype(float) - dark, (24, 24))
    # Every bright pixel lies in the shape and no dark one does.
    fits = [s for s in SHAPES if np.tensordot(windows, icon(s, 24).astype(float), axes=2).max() == bright.sum()]
    (shape,) = fits
    return shape


def after(prompt: str, picture: Picture, level: int) -> str:
    """The shape that a matched filter sees, counted on from in the order that the prompt names."""
    order, steps = parts(r"In the order (.*), and round again: which shape comes (\d) after the one.*\?", prompt)
    shapes = order.split(", ")
    return shapes[(shapes.index(matched(picture, 2)) + int(steps)) % len(shapes)]


def restore(prompt: str, *, tolerant: bool = False) -> str:
    """Each word replaced by the one that the lexicon has for it; a tolerant reader leaves the others as they are."""
    _, text = prompt.split("\n\n", 1)
    hidden = "asterisk" in prompt

    def put_right(match: re.Match[str]) -> str:
        word = match[0].lower()
        if hidden:
            known = [w for w in LEXICON if re.fullmatch(word.replace("*", "."), w)]
        else:
            known = [w for w in LEXICON if sorted(w) == sorted(word)]
        if word in known:
            known = [word]
        if tolerant and len(known) != 1:
            return match[0]
        (right,) = known
        return right.capitalize() if match[0][0].isupper() else right

    return re.sub(r"[A-Za-z*]+", put_right, text)


def parsing(prompt: str) -> str:
    outer, inner, ask, record = parts(
        r"A record consists of groups separated by '(.)'; a group consists of fields separated by '(.)'\. Which "
        r"(?:is )?(.*) in this record\?\n(\S+)",
        prompt,
    )
    fields = re.split(f"[{re.escape(inner + outer)}]", record)

    def field(ask: str) -> str:
        numbers = [int(n) for n in re.findall(r"(\d+)(?:st|nd|rd|th)", ask)]
        if "right after" in ask:
            return fields[fields.index(ask.split()[-1]) + 1]
        if "group" in ask:
            return record.split(outer)[numbers[1] - 1].split(inner)[numbers[0] - 1]
        return fields[numbers[0] - 1 if "from the left" in ask else len(fields) - numbers[0]]

    return ", ".join(field(part) for part in re.split(r", | and ", ask.removeprefix("are, in this order, ")))


def decimals(prompt: str) -> str:
    a, b = parts(r"What is ([\d.]+) \* ([\d.]+)\? Give the exact decimal number\.", prompt)
    return f"{Context(prec=60).multiply(Decimal(a), Decimal(b)):f}"


def equations(prompt: str) -> str:
    """By elimination below the diagonal and substitution from the last line up."""
    rows = []
    lines = prompt.split("\n")[1:-1]
    names = re.findall("[a-z]", lines[0])
    for line in lines:
        left, right = line.split(" = ")
        terms = {name: Fraction(c) for c, name in re.findall(r"(-?\d+)([a-z])", left.replace("- ", "-"))}
        rows.append([*(terms[name] for name in names), Fraction(right)])
    for i in range(len(rows)):
        best = max(range(i, len(rows)), key=lambda k: abs(rows[k][i]))
        rows[i], rows[best] = rows[best], rows[i]
        for k in range(i + 1, len(rows)):
            factor = rows[k][i] / rows[i][i]
            rows[k] = [x - factor * y for x, y in zip(rows[k], rows[i], strict=True)]
    values: dict[int, Fraction] = {}
    for i in reversed(range(len(rows))):
        known = sum(rows[i][k] * values[k] for k in range(i + 1, len(rows)))
        values[i] = (rows[i][-1] - known) / rows[i][i]
    return ", ".join(f"{name} = {values[i].numerator}/{values[i].denominator}" for i, name in enumerate(names))


def shortest_way(prompt: str) -> str:
    """Floyd and Warshall's algorithm, over all pairs."""
    roads, start, end = parts(
        r"Roads join towns, each with its length: (.*)\. How long is the shortest way from ([A-Z]) to ([A-Z])\?",
        prompt,
    )
    listed = [(a, b, int(n)) for a, b, n in re.findall(r"([A-Z])-([A-Z]) (\d+)", roads)]
    towns = sorted({town for a, b, _ in listed for town in (a, b)})
    far = np.full((len(towns), len(towns)), 10**6)
    np.fill_diagonal(far, 0)
    for a, b, length in listed:
        i, j = towns.index(a), towns.index(b)
        far[i, j] = far[j, i] = length
    for k in range(len(towns)):
        far = np.minimum(far, far[:, k, None] + far[None, k, :])
    return str(far[towns.index(start), towns.index(end)])


def comprehension(prompt: str) -> str:
    text, ask = prompt.split("\n\n")
    thing = re.findall(r"the (\w+)(?: is kept with[^?]*)?\? (?:Answer|Choose)", ask)[0]
    kept: dict[str, str] = dict(re.findall(r"The (\w+) is kept with the (\w+)\.", text))
    holder = {thing: being for being, thing in re.findall(r"The (\w+) has the (\w+)\.", text)}
    place: dict[str, str] = dict(re.findall(r"The (\w+) is in the (\w+)\.", text))
    while thing in kept:
        thing = kept[thing]
    being = holder[thing]
    return being if ask.startswith("Who") else place[being]


def retelling(prompt: str) -> str:
    text, ask = prompt.split("\n\n")
    (being,) = re.findall(r"what the (\w+) did", ask)
    deeds = re.findall(rf"The {being} \w+ the (\w+) \w+ the (\w+)\.", text)
    return "\n".join(f"- At the {place}, something happened to the {thing}." for thing, place in deeds)


#: What a step may say, and the Python that it means.
SAID = (
    (r"add the distance between (.+) and (\d+) to the total", "total = total + max({0} - {1}, {1} - {0})"),
    (
        r"make the total the remainder of (\d+) times the total plus (.+) when divided by (\d+)",
        "total = (total * {0} + {1}) % {2}",
    ),
    (r"add (\d+) times (.+) to the total", "total = total + {1} * {0}"),
    (r"subtract (\d+) times (.+) from the total", "total = total - {1} * {0}"),
    (r"add (\d+) to the total", "total = total + {0}"),
    (r"subtract (\d+) from the total", "total = total - {0}"),
    (r"multiply the total by (\d+)", "total = total * {0}"),
    (r"halve the total, rounding down", "total = (total - total % 2) // 2"),
)
ASKED = (
    (r"(.+) is above (\d+)", "not {0} <= {1}"),
    (r"(.+) is below (\d+)", "not {0} >= {1}"),
    (r"(.+) leaves the remainder (\d+) when divided by (\d+)", "({0} - {1}) % {2} == 0"),
)


def meaning(words: str, known: Sequence[tuple[str, str]]) -> str:
    names = {"the value": "v", "the total": "total", "i": "i"}
    for pattern, code in known:
        if match := re.fullmatch(pattern, words):
            return code.format(*(names.get(group, group) for group in match.groups()))
    raise AssertionError(words)


def mended(lines: Sequence[str]) -> list[str]:
    """Lines of a step that lacks one of the words for, in and else, or a colon."""
    found = []
    for line, after in itertools.zip_longest(lines, lines[1:], fillvalue=""):
        depth = (len(line) - len(line.lstrip())) // 4 * 4
        text = " ".join(line.replace("____", " ").split())
        if len(after) - len(after.lstrip()) > depth + 1:
            text = text.rstrip(" :") + ":"
            text = "else:" if text == ":" else text
            text = re.sub(r"^(?:for )?(value|i) (?:in )?(values|range)\b", r"for \1 in \2", text)
        found.append(" " * depth + text)
    return found


def program(prompt: str, source: str = "") -> str:
    """Python made from the steps as they are told, and, for those that are not, from the lines of a source."""
    statements = ast.parse(source).body[0].body[1:-1] if source else []  # type: ignore[attr-defined]  # a function
    (start,) = re.findall(r"begins with a total of k plus (\d+)", prompt)
    lines = ["def solve(values, k):", f"  total = {start} + k"]
    for number, step in enumerate(re.findall(r"^\d+\. (.*)\.$", prompt, re.MULTILINE)):
        if step == "This step is in the code alone":
            lines += [f"  {line}" for line in ast.unparse(statements[number]).splitlines()]
        elif match := re.fullmatch(r"As long as (.+?), (.+)", step):
            lines += [f"  while {meaning(match[1], ASKED)}:", f"    {meaning(match[2], SAID)}"]
        elif match := re.fullmatch(r"If (.+?), (.+); otherwise (.+)", step):
            lines += [f"  if {meaning(match[1], ASKED)}:", f"    {meaning(match[2], SAID)}"]
            lines += ["  else:", f"    {meaning(match[3], SAID)}"]
        else:
            head, rest = step.split(": ", 1)
            lines.append("  for v in values:" if "list" in head else "  for i in range(1, 1 + k):")
            for part in rest.split("; then "):
                if match := re.fullmatch(r"if (.+?), (.+)", part):
                    lines += [f"    if {meaning(match[1], ASKED)}:", f"      {meaning(match[2], SAID)}"]
                else:
                    lines.append(f"    {meaning(part, SAID)}")
    return "```python\n" + "\n".join([*lines, "  return total"]) + "\n```"


def ran(outputs: Sequence[Any] = (), status: Status = Status.OK, detail: str = "") -> Run:
    """Return the result of a call."""
    return Run(status, tuple(outputs), detail)


class InProcess:
    """Runs programs of these tests, and never any other, without a sandbox."""

    def call(self, code: str, function: str, arguments: Sequence[Sequence[Any]]) -> Run:
        names: dict[str, Any] = {"__builtins__": {"abs": abs, "range": range, "max": max}}
        try:
            exec(compile(code, "solution", "exec"), names)
            return ran([names[function](*each) for each in arguments])
        except Exception as error:
            return ran(status=Status.ERROR, detail=repr(error))


def written(prompt: str) -> str:
    """A text that keeps all the rules of the prompt, of no sense."""
    rules = re.findall(r"^\d+\. (.*)$", prompt, re.MULTILINE)

    def said(pattern: str) -> tuple[str, ...] | None:
        found = [match.groups() for rule in rules if (match := re.fullmatch(pattern, rule))]
        assert len(found) <= 1
        return found[0] if found else None

    def number(pattern: str, otherwise: int) -> int:
        found = said(pattern)
        return int(found[0]) if found else otherwise

    middle: list[str] = [match[1] for rule in rules if (match := re.fullmatch(r"the word (\w+) stands in it", rule))]
    if repeat := said(r"the word (\w+) stands in it exactly (\d+) times"):
        middle += [repeat[0]] * int(repeat[1])
    if capitals := said(r"([A-Z]+) stands in it once, in capital letters, and no other word .*"):
        middle.append(capitals[0])
    quoted = said(r'("\w+ \w+") stands in it, in these double quotation marks')
    starts = number(r"exactly (\d+) of its words begin with s", -1)
    if starts >= 0:
        middle += ["so"] * (starts - sum(word[0].lower() == "s" for word in middle))
    if long := said(r"exactly (\d+) of its words have ten letters or more"):
        middle += ["everything"] * int(long[0])
    between = said(r"it has (\d+) to (\d+) words")
    count = number(r"it has exactly (\d+) words", int(between[1]) if between else 90)
    head = [
        (said(r"its first word is (\w+)") or ("no",))[0],
        "no",
        "no",
        (said(r"its fourth word is (\w+)") or ("no",))[0],
    ]
    last = (said(r"its last word is (\w+)") or ("no",))[0]
    count -= len(head) + len(middle) + (2 if quoted else 0) + 1
    assert count >= 0
    tokens = head + middle + ["no"] * count
    questions = number(r"it has exactly (\d+) question marks", 0)
    short = "no sentence has more than 12 words" in rules
    sentences = number(r"it has exactly (\d+) sentences", 1 if "it has exactly one sentence" in rules else -1)
    if sentences < 0:
        sentences = max(questions, 1) + (len(tokens) // 8 if short else 0)
    free = list(range(len(tokens)))
    ends = [free[len(free) * i // sentences] for i in range(1, sentences)]
    for n, i in enumerate(ends):
        tokens[i] += "?" if n < questions else "."
    free = [i for i in free if i not in ends]
    for mark, pattern in ((",", r"it has exactly (\d+) commas"), (";", r"it has exactly (\d+) semicolons")):
        for i in free[: number(pattern, 0)]:
            tokens[i] += mark
        free = free[number(pattern, 0) :]
    for i in free[: number(r"it has exactly (\d+) round brackets that open, and as many that close", 0)]:
        tokens[i] = f"({tokens[i]})"
    if quoted:
        tokens.append(quoted[0])
    if figure := said(r"(\d+) is the only number in it, once"):
        tokens.append(figure[0])
    tokens.append(last + ("?" if questions == sentences else "."))
    lines = number(r"it has exactly (\d+) lines, blank ones not counted", 1)
    cuts = [len(tokens) * i // lines for i in range(lines + 1)]
    return "\n".join(" ".join(tokens[a:b]) for a, b in itertools.pairwise(cuts))


SOLVERS: dict[str, Callable[..., str]] = {
    "counting": counting,
    "addition": addition,
    "operations": operations,
    "post_order": post_order,
    "unscramble": unscramble,
    "grid": grid,
    "caption": caption,
    "icons": icons,
    "noise": noise,
    "after": after,
    "scrambled": restore,
    "masked": restore,
    "parsing": parsing,
    "decimals": decimals,
    "equations": equations,
    "path_nodes": shortest_way,
    "path_density": shortest_way,
    "comprehension": comprehension,
    "retelling": retelling,
    "code_generation": program,
    "code_repair": program,
    "instructions": written,
    "writing": written,
}


def without_form(family: TaskFamily, prompt: str) -> str:
    """A prompt without the form of the answer."""
    return prompt.removesuffix(family.form).rstrip() if family.form else prompt


def solve(family: TaskFamily, level: int, seed: int) -> str:
    """The answer to a question of a built-in family."""
    prompt = without_form(family, family.question(level, seed).prompt)
    if family.pixels is not None:
        shown = undistorted(family, level, seed) if family.name in DISTORTIONS else family.picture(level, seed)
        return PICTURE_SOLVERS[family.name](prompt, shown, level)
    if family.name == "noise":
        return noise(family.item_id(level, seed), family.picture(level, seed), level)
    if family.pictorial:
        return SOLVERS[family.name](prompt, family.picture(level, seed), level)
    if family.name == "code_repair":
        return program(prompt, family.question(level, seed).answer)
    return SOLVERS[family.name](prompt)
