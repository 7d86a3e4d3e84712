"""The house: which part may import which, what the entry point may load, and the public names."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_adaptive_eval

PACKAGE = Path(pytest_adaptive_eval.__file__).parent
CORE = {"core", "errors", "inputs"}
#: What each part may import of the others.
MAY = {
    "errors": set(),
    "inputs": set(),
    "core": {"errors"},
    "retry_after": set(),
    "models": CORE | {"retry_after"},
    "grading": CORE | {"models"},
    "tasks": CORE | {"grading"},
    "banks": CORE | {"grading"},
    "calibration": CORE,
    "store": CORE,
    "reports": CORE,
    "sandbox": CORE,
    "alerts": CORE | {"reports", "retry_after"},
    "baseline": CORE | {"models", "store"},
    "rescore": CORE | {"baseline", "config"},
    "interview": CORE | {"tasks", "models"},
    "peers": CORE | {"models", "tasks"},
    "network": CORE | {"models", "tasks"},
    "config": CORE
    | {"interview", "banks", "models", "calibration", "network", "peers", "sandbox", "tasks", "store", "reports"},
    "plugin": CORE | {"baseline", "config", "banks", "models", "store", "reports", "tasks"},
    "cli": CORE
    | {"alerts", "config", "banks", "calibration", "interview", "models", "reports", "rescore", "store", "tasks"},
    "__init__": {"plugin"},
}
#: Packages that a part may import at its top level, besides the standard library.
OUTSIDE = {
    "core": {"numpy", "scipy"},
    "calibration": {"numpy", "scipy"},
    "tasks": {"numpy"},
    "banks": {"numpy"},
    "plugin": {"numpy", "pytest", "xdist"},
    "cli": set(),
    "alerts": set(),
    "retry_after": set(),
    "baseline": {"numpy"},
    "rescore": {"numpy"},
    "config": set(),
    "errors": set(),
    "inputs": set(),
    "grading": set(),
    "store": set(),
    "reports": set(),
    "sandbox": set(),
    "__init__": set(),
}
FILES = sorted(PACKAGE.rglob("*.py"))


def part(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0].removesuffix(".py")


def imports(path: Path, *, top_level: bool = False) -> list[str]:
    tree = ast.parse(path.read_text())
    nodes = ast.walk(tree) if not top_level else tree.body
    found = []
    for node in nodes:
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = (
                [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "pytest_adaptive_eval" else []
            )
            found += names or [str(node.module)]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_imports_follow_the_arrows(path: Path) -> None:
    here = part(path)
    for name in imports(path):
        if name.startswith("pytest_adaptive_eval."):
            there = name.split(".")[1]
            assert there in {here, "__version__"} or there in MAY[here], f"{here} must not import {name}"
    if here in OUTSIDE:
        for name in imports(path, top_level=True):
            root = name.split(".")[0]
            assert root in sys.stdlib_module_names | OUTSIDE[here] | {"pytest_adaptive_eval", "__future__"}, name


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_files_stay_small(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 600


def loaded_by(module: str) -> set[str]:
    code = f"import sys, {module}; print(*{{name.split('.')[0] for name in sys.modules}})"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_the_entry_point_is_light() -> None:
    assert not loaded_by("pytest_adaptive_eval.plugin.entry") & {
        "numpy",
        "scipy",
        "torch",
        "transformers",
        "junit_xml",
        "regex",
    }


def test_the_command_is_light_until_it_runs() -> None:
    assert not loaded_by("pytest_adaptive_eval.cli") & {"numpy", "scipy", "torch", "pytest", "junit_xml", "regex"}


def test_an_active_run_loads_no_model_library_by_itself() -> None:
    assert not loaded_by("pytest_adaptive_eval.plugin.run") & {
        "scipy",
        "torch",
        "transformers",
        "junit_xml",
        "PIL",
        "regex",
    }


def test_public_names_exist_and_are_documented() -> None:
    assert pytest_adaptive_eval.__all__ == sorted(pytest_adaptive_eval.__all__)
    for name in pytest_adaptive_eval.__all__:
        assert (getattr(pytest_adaptive_eval, name).__doc__ or "").strip(), name
    assert set(pytest_adaptive_eval.__all__) < set(dir(pytest_adaptive_eval))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pytest_adaptive_eval.nothing


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_every_module_says_what_it_is_and_what_it_offers(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree)
    exported = next(
        (n for n in tree.body if isinstance(n, ast.Assign) and getattr(n.targets[0], "id", "") == "__all__"), None
    )
    hooks = {"plugin/entry.py", "plugin/hooks.py"}
    if path.name != "__init__.py" and path.relative_to(PACKAGE).as_posix() not in hooks:
        assert exported is not None, "no __all__"
        names = {n.value for n in exported.value.elts}
        defined = {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
        assigned = {
            target.id
            for n in tree.body
            if isinstance(n, ast.Assign | ast.AnnAssign)
            for target in (n.targets if isinstance(n, ast.Assign) else [n.target])
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
