"""Write llms.txt, the list of pages for assistants: ``python docs/_build/llms_pages.py``.

With a folder, such as ``python docs/_build/llms_pages.py site``, the pages themselves go there as Markdown, and all of them in
one file, llms-full.txt.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[1]


def navigation() -> Iterator[tuple[str, list[str]]]:
    """Yield each part of the site's navigation with its pages, in order."""
    settings = yaml.safe_load((FOLDER.parent / "mkdocs.yml").read_text("utf-8"))
    for entry in settings["nav"]:
        ((title, pages),) = entry.items()
        yield title, list(_flat(pages))


def _flat(pages: Any) -> Iterator[str]:
    if isinstance(pages, str):
        yield pages
    else:
        for page in pages.values() if isinstance(pages, dict) else pages:
            yield from _flat(page)


def describe(page: str) -> tuple[str, str]:
    """Return the title of a page and its first sentence, without links."""
    text = (FOLDER / page).read_text("utf-8")
    title, _, rest = text.removeprefix("# ").partition("\n")
    found = re.search(r"^[A-Z`*](?:.|\n(?!\n))*?(?:[.?](?=\s|$)|:(?=\n\n))", rest, re.MULTILINE)
    sentence = " ".join(found[0].split()).removesuffix(":") if found else ""
    return title.replace("`", ""), re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", sentence)


def list_of_pages() -> str:
    """Return llms.txt: every page by its part of the navigation, with its first sentence."""
    lines = ["# pytest-adaptive-eval", ""]
    lines += ["> A pytest plugin that gates model checkpoints in CI with few model calls.", ""]
    lines += ["All pages are Markdown.  `llms-full.txt` has all of them in one file.", ""]
    for title, pages in navigation():
        lines.append(f"## {title}\n")
        for page in pages:
            name, sentence = describe(page)
            lines.append(f"- [{name}]({page})" + (f": {sentence}" if sentence else ""))
        lines.append("")
    return "\n".join(lines)


def write_markdown(folder: Path) -> None:
    """Write each page as Markdown into `folder`, and all of them as llms-full.txt."""
    texts = []
    for _, pages in navigation():
        for page in pages:
            text = (FOLDER / page).read_text("utf-8")
            (folder / page).parent.mkdir(parents=True, exist_ok=True)
            (folder / page).write_text(text, "utf-8")
            texts.append(f"<!-- {page} -->\n\n{text.strip()}\n")
    (folder / "llms-full.txt").write_text("\n".join(texts), "utf-8")


if __name__ == "__main__":
    if sys.argv[1:]:
        write_markdown(Path(sys.argv[1]))
    else:
        (FOLDER / "llms.txt").write_text(list_of_pages(), "utf-8")
