"""The page on the design names files, functions, settings and hooks that exist, and its table has every hook."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

from rooms import FLOORS

from pytest_adaptive_eval.evaluation.tables import EvalTable, GateTable
from pytest_adaptive_eval.plugin.run_settings import RUN_SETTINGS, flag_name

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pytest_adaptive_eval"
PAGE = ROOT / "docs/concepts/design.md"
TEXT = PAGE.read_text("utf-8")
PROSE = re.sub(r"^```.*?^```", "", TEXT, flags=re.DOTALL | re.MULTILINE)
SPANS = sorted(set(re.findall(r"`([^`]+)`", PROSE)))
#: A row of the table of hooks: the class that has it, the hook, and when it runs among those of other plugins.
ROW = re.compile(r"^\| `(\w+)` \| `(pytest_\w+)` \|([^|]*)\|", re.MULTILINE)
#: Folders in which the page names files; a file of a folder of its own is named by its path.
FOLDERS = (ROOT, PACKAGE, ROOT / "tests")
#: A row of the table of rooms: a floor, and the rooms on it.
FLOOR = re.compile(r"^\| (\d+) \| ([^|]*) \|", re.MULTILINE)
FILES_ALONE = 3  #: Lowest floors, whose rooms are files.
#: Words of Python, pytest and numpy, and signs of the terminal, that the page names.
FOREIGN = {"SeedSequence", "random.Random", "numpy.random", "random", "torch", "tryfirst", "-k", "--lf", "+", "-"}


def syntax_trees(folder: Path) -> list[ast.Module]:
    return [ast.parse(path.read_text("utf-8")) for path in sorted(folder.rglob("*.py"))]


def defined_names() -> set[str]:
    """Return functions, classes, constants and their members, such as `Model` and `Model.request`."""
    names: set[str] = set()
    for tree in [*syntax_trees(PACKAGE), *syntax_trees(ROOT / "tests")]:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                names |= {f"{node.name}.{name}" for name in bound_in(node.body)}
        names |= bound_in(tree.body)
    return names


def bound_in(body: list[ast.stmt]) -> set[str]:
    """Return the names that the statements of a module or a class bind."""
    names: set[str] = set()
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(ast.unparse(node.target))
        elif isinstance(node, ast.Assign):
            names |= {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
    return names


def settings() -> set[str]:
    """Return keys of TOML files, flags, ini settings, and keys and groups of the project file."""
    names = {*EvalTable.__struct_fields__, *GateTable.__struct_fields__}
    names |= {flag_name(name) for name in RUN_SETTINGS} | {"--adaptive-eval"}
    names |= {f"adaptive_eval_{name}" for name in RUN_SETTINGS}
    return names | set(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"])


KNOWN = defined_names() | settings() | FOREIGN


def fault(span: str) -> str:
    """Return why a name of the page is wrong; empty for one that exists."""
    name = re.sub(r"^item\.", "AskedItem.", span)
    file, _, test = name.partition("::")
    if "/" not in file and not re.search(r"\.(py|toml|md|json|jsonl)$", file):
        return "" if name in KNOWN else f"nothing is called {name}"
    found = [folder / file for folder in FOLDERS if (folder / file).exists()]
    if not found:
        return f"there is no {file}"
    if test and f"def {test}(" not in found[0].read_text("utf-8"):
        return f"{file} has no {test}"
    return ""


def test_what_the_page_names_exists() -> None:
    assert len(SPANS) > 100
    faults = [fault(span) for span in SPANS if " " not in span and not span.startswith("pytest_")]
    assert list(filter(None, faults)) == []
    scripts = [span.split()[1] for span in SPANS if span.startswith("python ")]
    assert [script for script in scripts if not (ROOT / script).is_file()] == []


def test_a_name_that_does_not_exist_is_found() -> None:
    assert fault("Model.pop_completion") == "nothing is called Model.pop_completion"
    assert fault("plugin/ask/journal.py") == "there is no plugin/ask/journal.py"
    assert fault("tests/test_ties.py::test_nothing") == "tests/test_ties.py has no test_nothing"


def implemented() -> dict[tuple[str, str], str]:
    """Return the options of each hook of pytest in the plugin, by its class, or the file of its module, and name."""
    hooks: dict[tuple[str, str], str] = {}
    for path in sorted((PACKAGE / "plugin").rglob("*.py")):
        if path.stem == "hooks":  # what others implement
            continue
        tree = ast.parse(path.read_text("utf-8"))
        owners = [(path.stem, tree.body), *((n.name, n.body) for n in tree.body if isinstance(n, ast.ClassDef))]
        for owner, body in owners:
            for node in body:
                if isinstance(node, ast.FunctionDef) and re.match(r"pytest_(?!adaptive)", node.name):
                    hooks[owner, node.name] = options_of(node)
    return hooks


def options_of(function: ast.FunctionDef) -> str:
    """Return the options of a hook's decorator, such as ``wrapper, tryfirst``, without ``optionalhook``."""
    options = [
        keyword.arg
        for decorator in function.decorator_list
        if isinstance(decorator, ast.Call)
        for keyword in decorator.keywords
        if keyword.arg in ("wrapper", "tryfirst", "trylast")
    ]
    return ", ".join(sorted(map(str, options), reverse=True))


def test_the_table_has_every_hook_with_its_order() -> None:
    rows = {(owner, hook): when.strip() for owner, hook, when in ROW.findall(TEXT)}
    assert rows == implemented()


def test_the_table_of_rooms_is_that_of_the_architecture_test() -> None:
    named = {int(floor): re.findall(r"`(\w+)/`", rooms) for floor, rooms in FLOOR.findall(TEXT)}
    assert named == {number: list(rooms) for number, rooms in enumerate(FLOORS[:-1], 1) if number > FILES_ALONE}
