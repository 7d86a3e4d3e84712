"""Rooms, floors and circles of the package, what its entry points load, and its public names."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from rooms import FLOORS, PACKAGE, Arrow, arrows, circles, modules, room_of, upward

import pytest_adaptive_eval

#: Rooms that measure: numpy and scipy alone, and nothing of the world around.
ENGINE = {"irt", "inference", "items", "claims", "cat", "ladder", "gates"}
#: Packages that a room may import at the top of a module, besides the standard library.
OUTSIDE = {
    **{room: {"numpy", "scipy"} for room in ENGINE},
    "calibration": {"numpy", "scipy"},
    "banks": {"numpy"},
    "records": {"numpy"},
    "tasks": {"numpy"},
    "plugin": {"numpy", "pytest", "xdist"},
    "cli": {"numpy"},
    "adapters": set(),
    **{room: set() for room in (*FLOORS[0], *FLOORS[1], *FLOORS[2], "config", "reports", "sandbox", "sweeps")},
    "ties": {"numpy"},
    "typed_tables": {"msgspec"},
}
#: Packages that an engine room imports within functions, by module.
WITHIN = {"items/patterns": {"regex"}}
#: Packages of modules that the worker process alone imports, by name.
IN_WORKER = {"items/graders/equivalence": {"math_verify"}}
#: Modules of the standard library that tell of the world around: files, clocks, the environment, other processes.
WORLD = {"os", "pathlib", "io", "shutil", "tempfile", "time", "datetime", "socket", "subprocess", "threading"}
FILES = modules()
ARROWS = arrows()
IDS = [f"{module}.py" for module in FILES]


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


@pytest.mark.parametrize(
    "module", [module for module in FILES if module not in ("clock", "subjects/serving/supervisor")]
)
def test_time_passes_by_the_real_clock(module: str) -> None:
    text = FILES[module].read_text("utf-8")
    assert re.findall(r"\btime\.(?:time|monotonic|perf_counter|sleep)\b|datetime\.now\b", text) == []


@pytest.mark.parametrize("module", FILES, ids=IDS)
def test_a_room_imports_only_its_packages(module: str) -> None:
    room = room_of(module)
    if room not in OUTSIDE:
        return
    allowed = (
        sys.stdlib_module_names | OUTSIDE[room] | {"pytest_adaptive_eval", "__future__"} | IN_WORKER.get(module, set())
    )
    for name in imports(FILES[module], top_level=True):
        assert name in allowed, f"{module}.py must not import {name} at its top"
    if room in ENGINE:
        for name in imports(FILES[module]):
            assert name in allowed | WITHIN.get(module, set()), f"{module}.py must not import {name}"
            assert name not in WORLD, (
                f"{module}.py must not import {name}: the engine knows nothing of the world around"
            )


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


@pytest.mark.parametrize("module", FILES, ids=IDS)
def test_every_module_has_a_docstring_and_lists_its_public_names(module: str) -> None:
    path = FILES[module]
    tree = ast.parse(path.read_text("utf-8"))
    assert ast.get_docstring(tree)
    exported: Any = next(
        (n for n in tree.body if isinstance(n, ast.Assign) and getattr(n.targets[0], "id", "") == "__all__"), None
    )
    without = {"__main__", "plugin/entry", "plugin/hooks"}
    if path.name != "__init__.py" and module not in without:
        assert exported is not None, "no __all__"
        names = {n.value for n in exported.value.elts}
        defined = {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
        assigned = {
            target.id
            for n in tree.body
            if isinstance(n, ast.Assign | ast.AnnAssign)
            for given in (n.targets if isinstance(n, ast.Assign) else [n.target])
            for target in (given.elts if isinstance(given, ast.Tuple) else [given])
            if isinstance(target, ast.Name)
        }
        by_platform = {
            n.name
            for block in tree.body
            if isinstance(block, ast.If | ast.Try)
            for n in ast.walk(block)
            if isinstance(n, ast.FunctionDef)
        }
        assert names <= defined | assigned | by_platform
        assert {n for n in defined if not n.startswith("_")} <= names, "a public name is missing from __all__"


def test_the_package_is_the_one_that_is_imported() -> None:
    assert Path(pytest_adaptive_eval.__file__).resolve().parent == PACKAGE


def test_documented_modules_are_found_by_their_earlier_names() -> None:
    for name in pytest_adaptive_eval._EARLIER:
        module = importlib.import_module(f"pytest_adaptive_eval.{name}")
        assert not hasattr(module, "nothing")
    found = importlib.import_module("pytest_adaptive_eval.models").load_agent
    assert found is pytest_adaptive_eval.load_agent
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("pytest_adaptive_eval.core.bank")


def test_no_two_files_of_tests_have_one_name() -> None:
    """pytest imports files of folders without ``__init__.py`` by their names alone."""
    counted = Counter(path.name for path in Path(__file__).parent.rglob("test_*.py"))
    assert [name for name, count in counted.items() if count > 1] == []
