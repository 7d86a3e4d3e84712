"""Rooms, floors and circles of the package, what its entry points load, and its public names."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from rooms import FLOORS, PACKAGE, Arrow, arrows, circles, modules, room_of, upward

import pytest_adaptive_eval

#: Rooms that measure: numpy and scipy alone, and nothing of the world around.
ENGINE = {"irt", "inference", "items", "claims", "cat", "ladder", "gates"}
#: Packages that a room may import at the top of a module, besides the standard library.
OUTSIDE = {
    **{room: {"numpy", "scipy"} for room in ENGINE},
    "calibration": {"msgspec", "numpy", "scipy"},
    "banks": {"jmespath", "msgspec", "numpy", "regex"},
    "records": {"msgspec", "numpy"},
    "reports": {"msgspec"},
    "tasks": {"numpy"},
    "plugin": {"msgspec", "numpy", "pytest", "xdist"},
    "cli": {"msgspec", "numpy"},
    **{room: set() for room in (*FLOORS[0], *FLOORS[1], *FLOORS[2], "evaluation")},
    "ties": {"numpy"},
    "typed_tables": {"msgspec"},
    "types": {"numpy"},
}
#: Packages that an engine room imports within functions, by module.
WITHIN = {"items/graders/kinds/pattern": {"regex"}, "items/graders/kinds/schema": {"jsonschema", "referencing"}}
#: Packages of modules that the worker process alone imports, by name.
IN_WORKER = {"items/graders/equivalence": {"math_verify", "sympy"}}
#: Modules of the standard library that tell of the world around: files, clocks, the environment, other processes.
WORLD = {"os", "pathlib", "io", "shutil", "tempfile", "time", "datetime", "socket", "subprocess", "threading"}
FILES = modules()
ARROWS = arrows()


def imports(path: Path, *, top_level: bool = False) -> list[str]:
    """Return the packages that a file imports."""
    tree = ast.parse(path.read_text("utf-8"))
    found = []
    for node in tree.body if top_level else ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name.partition(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append(str(node.module).partition(".")[0])
    return found


def test_every_room_stands_on_one_floor_and_is_there() -> None:
    placed = [room for rooms in FLOORS for room in rooms]
    assert sorted(placed) == sorted({room_of(module) for module in FILES})


def test_rooms_import_only_from_floors_below() -> None:
    assert [str(arrow) for arrow in upward(ARROWS)] == []


def test_rooms_of_the_plugin_import_only_from_those_below() -> None:
    order = ("shared", "ask", "report", "collect", "top")
    top = {"plugin/activation", "plugin/entry"}

    def place(module: str) -> int:
        _, room, *inside = module.split("/")
        if module in top:
            return order.index("top")
        return order.index(room) if inside and room in order else order.index("shared")

    own = [arrow for arrow in ARROWS if room_of(arrow.source) == room_of(arrow.target) == "plugin"]
    assert [str(arrow) for arrow in own if place(arrow.target) > place(arrow.source)] == []


def test_no_files_import_each_other_in_a_circle() -> None:
    assert [[str(arrow) for arrow in circle] for circle in circles(ARROWS)] == []


def test_an_upward_arrow_and_a_circle_are_found(tmp_path: Path) -> None:
    package = tmp_path / "package"
    texts = {
        "irt/__init__.py": "",
        "irt/model.py": "def later():\n    from package.items.bank import ItemBank\n",
        "items/__init__.py": "",
        "items/bank.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from package.items import item\n",
        "items/item.py": "import package.items.bank\n",
    }
    for name, text in texts.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    found = arrows(package)
    assert found == [
        Arrow("irt/model", "items/bank", 2),
        Arrow("items/bank", "items/item", 3),
        Arrow("items/item", "items/bank", 1),
    ]
    assert upward(found) == found[:1]
    assert circles(found) == [found[1:]]


def test_no_module_imports_what_the_worker_alone_loads() -> None:
    assert [arrow for arrow in ARROWS if arrow.target in IN_WORKER] == []


def test_time_passes_by_the_real_clock() -> None:
    clocks = {"clock", "extensions/serving/supervisor", "extensions/harness/supervisor"}
    found = re.compile(r"\btime\.(?:time|monotonic|perf_counter|sleep)\b|datetime\.now\b")
    assert [module for module in FILES.keys() - clocks if found.search(FILES[module].read_text("utf-8"))] == []


def test_a_room_imports_only_its_packages() -> None:
    faults = []
    for module, path in FILES.items():
        if (room := room_of(module)) not in OUTSIDE:
            continue
        own = {"pytest_adaptive_eval", "__future__"} | IN_WORKER.get(module, set())
        allowed = sys.stdlib_module_names | OUTSIDE[room] | own
        faults += [
            f"{module}.py imports {name} at its top" for name in imports(path, top_level=True) if name not in allowed
        ]
        if room in ENGINE:
            within = allowed | WITHIN.get(module, set())
            faults += [f"{module}.py imports {name}" for name in imports(path) if name not in within or name in WORLD]
    assert faults == []


def loaded_by(module: str) -> set[str]:
    code = f"import sys, {module}; print(*{{name.split('.')[0] for name in sys.modules}})"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize(
    ("module", "packages"),
    [
        ("plugin.entry", {"numpy", "scipy", "torch", "transformers", "junit_xml", "regex"}),
        ("cli", {"numpy", "scipy", "torch", "pytest", "junit_xml", "regex"}),
        ("plugin.activation", {"scipy", "torch", "transformers", "junit_xml", "PIL", "regex"}),
    ],
    ids=["entry-point", "command", "active-run"],
)
def test_an_entry_point_loads_no_heavy_package(module: str, packages: set[str]) -> None:
    assert not loaded_by(f"pytest_adaptive_eval.{module}") & packages


def test_public_names_exist_and_are_documented() -> None:
    assert pytest_adaptive_eval.__all__ == sorted(pytest_adaptive_eval.__all__)
    for name in pytest_adaptive_eval.__all__:
        assert (getattr(pytest_adaptive_eval, name).__doc__ or "").strip(), name
    assert set(pytest_adaptive_eval.__all__) < set(dir(pytest_adaptive_eval))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pytest_adaptive_eval.nothing


def test_every_module_has_a_docstring_and_only_packages_list_their_names() -> None:
    trees = {module: ast.parse(path.read_text("utf-8")) for module, path in FILES.items()}
    assert [module for module, tree in trees.items() if not ast.get_docstring(tree)] == []
    listing = [module for module, tree in trees.items() if any(_is_all(node) for node in tree.body)]
    assert [module for module in listing if not module.endswith("__init__")] == []
    for module in listing:
        dotted = ["pytest_adaptive_eval", *module.split("/")[:-1]]
        imported = importlib.import_module(".".join(dotted))
        assert [name for name in imported.__all__ if not hasattr(imported, name)] == [], module


def _is_all(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"


def test_the_package_is_the_one_that_is_imported() -> None:
    assert Path(pytest_adaptive_eval.__file__).resolve().parent == PACKAGE


def test_no_two_files_of_tests_have_one_name() -> None:
    """pytest imports files of folders without ``__init__.py`` by their names alone."""
    counted = Counter(path.name for path in Path(__file__).parent.rglob("test_*.py"))
    assert [name for name, count in counted.items() if count > 1] == []
