"""Write benchmarks/README.md, the index of measurements by page: ``python docs/_build/benchmark_index.py``."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
BENCHMARKS, DOCS = ROOT / "benchmarks", ROOT / "docs"
#: A script in a command, in an import, or as a file of the folder.
NAMED = re.compile(r"""\bbenchmarks[/.](\w+)|\bbenchmarks" / "(\w+)\.py""")
IMPORTED = re.compile(r"^(?:from|import) (?:benchmarks import |benchmarks\.)?(\w+)", re.MULTILINE)
#: Where else a script is used; the first file that names it counts.
USERS = ("CONTRIBUTING.md", ".github", "tests", "benchmarks", "docs/concepts")


@functools.cache
def scripts() -> dict[str, str]:
    """Return the first sentence of each script's docstring, by its name."""
    return {path.stem: summary(path) for path in sorted(BENCHMARKS.glob("*.py"))}


def summary(path: Path) -> str:
    """Return the first line of a script's docstring, without its full stop and its command."""
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    line = docstring.partition("\n")[0]
    return line.partition(": ``python")[0].rstrip(".").replace("``", "`")


def pages() -> Iterator[str]:
    """Yield the pages of the site, in the order of its navigation."""
    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"]
    yield from re.findall(r"[\w/-]+\.md", str(navigation))


def named(path: Path) -> set[str]:
    """Return the scripts that a file names or imports, besides itself."""
    text = path.read_text("utf-8")
    found = {name for pair in NAMED.findall(text) for name in pair}
    if path.parent == BENCHMARKS:
        found |= set(IMPORTED.findall(text))
    return (found & set(scripts())) - {path.stem}


def users() -> dict[str, str]:
    """Return the first file that uses each script, of all files in `USERS`."""
    found: dict[str, str] = {}
    for user in USERS:
        place = ROOT / user
        files = sorted(place.rglob("*")) if place.is_dir() else [place]
        for path in files:
            if path.suffix in (".py", ".md", ".yml") and path != BENCHMARKS / "README.md":
                for name in named(path):
                    found.setdefault(name, path.relative_to(ROOT).as_posix())
    return found


def index() -> str:
    """Return the index: scripts by the page that has their figures, then scripts that others use."""
    summaries = scripts()
    measured = [page for page in pages() if not page.startswith("concepts/")]
    by_page = {page: sorted(named(DOCS / page)) for page in measured}
    rest = sorted(set(summaries) - {script for found in by_page.values() for script in found})
    lines = ["# Measurements by page", ""]
    lines += [
        "This index is written by `python docs/_build/benchmark_index.py`.  A page names the command beside each figure.",
        "",
    ]
    for page, found in by_page.items():
        if found:
            title = (DOCS / page).read_text("utf-8").partition("\n")[0].removeprefix("# ")
            lines += [f"## [{title}](../docs/{page})", "", *(f"- `{name}.py`: {summaries[name]}" for name in found), ""]
    lines += ["## On no page", "", "| script | content | used by |", "| --- | --- | --- |"]
    used_by = users()
    for name in rest:
        if name not in used_by:
            raise ValueError(f"nothing names benchmarks/{name}.py: put its figures and command on a page, or delete it")
        lines.append(f"| `{name}.py` | {summaries[name]} | [{used_by[name]}](../{used_by[name]}) |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    (BENCHMARKS / "README.md").write_text(index(), "utf-8")
