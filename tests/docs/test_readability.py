"""Every page of the documentation is short, in short sentences.

A sentence has at most 15 words on average, and at most 8 % of a page's sentences have more than 25. A page that
is read through has at most 1500 words. One in which rules or figures are looked up has 2500, and so has the design.
Code, tables and headings are not sentences, but their words count towards the length of the page.
"""

from __future__ import annotations

import re
from pathlib import Path
from statistics import mean

import pytest

ROOT = Path(__file__).parents[2]
OTHERS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "fixtures/README.md")]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *OTHERS, *sorted((ROOT / "examples").glob("*/README.md"))]
#: Pages that the code writes.
WRITTEN = {"api.md", "command.md", "settings.md"}
MEAN, LONG, SHARE = 15, 25, 0.08
#: Most words of a page by its folder or name: rules and figures are searched, not read through.
WORDS = {"reference": 2500, "methods": 2500, "design.md": 2500}
FENCE = re.compile(r"^( *)(```|~~~).*?^ *\2[^\n]*$", re.DOTALL | re.MULTILINE)
ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.) ")
END = re.compile(r"[.!?][\"')\]*_]*$")
ABBREVIATION = re.compile(r"\W*(al|e\.g|i\.e|cf|vs|eq|sec|no|s\.e|s\.d|\.+)\.$", re.IGNORECASE)


def paragraphs(text: str) -> list[str]:
    """Return paragraphs and list items without code blocks, tables, headings and images; inline code is one word."""
    text = re.sub(r"``?[^`]+``?", "CODE", FENCE.sub("", re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)))
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)).replace(" ·", ".")
    found: list[str] = [""]
    blank, code = True, False
    for line in text.splitlines():
        code = line.startswith("    ") and (blank or code) and bool(line.strip())
        blank = not line.strip()
        if blank or code or line.lstrip().startswith(("|", "#")):
            found.append("")
        elif ITEM.match(line):
            found.append(ITEM.sub("", line))
        else:
            found[-1] += " " + line.strip()
    return [paragraph for paragraph in found if paragraph.strip()]


def lengths(text: str) -> dict[str, int]:
    """Return the sentences of a page of two words or more, and their number of words."""
    counts: dict[str, int] = {}
    for paragraph in paragraphs(text):
        sentence: list[str] = []
        tokens = paragraph.split()
        for i, token in enumerate(tokens, 1):
            sentence.append(token)
            if i == len(tokens) or (END.search(token) and not ABBREVIATION.match(token)):
                count = sum(bool(re.search(r"\w", word)) for word in sentence)
                if count > 1:
                    counts[" ".join(sentence)] = count
                sentence = []
    return counts


def most_words(page: Path) -> int:
    return WORDS.get(page.name) or WORDS.get(page.parent.name, 1500)


def test_sentences_of_a_page_are_counted() -> None:
    text = "# A heading of four words\n\nOne two.  `some code` is [one word](x.md) here!\n- an item\n\n| a | table |\n"
    text += "\n    some code\n\n```bash\nls -l\n```\n<!-- not run: a remark -->\nGroups, e.g. these, stay whole.\n"
    assert list(lengths(text).values()) == [2, 5, 2, 5]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_page_has_short_sentences_and_few_words(page: Path) -> None:
    text = page.read_text("utf-8")
    counts = lengths(text)
    long = {sentence: count for sentence, count in counts.items() if count > LONG}
    assert not counts or mean(counts.values()) <= MEAN, f"mean words a sentence: {mean(counts.values()):.1f}"
    assert len(long) <= SHARE * len(counts), f"sentences of more than {LONG} words: {long}"
    assert page.name in WRITTEN or len(text.split()) <= most_words(page), "split the page by topic"
