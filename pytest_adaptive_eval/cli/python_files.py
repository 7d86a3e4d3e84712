"""Interviews and model fixtures in the Python files of a project, found without running them."""

from __future__ import annotations

import ast
import configparser
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.inputs import read_regular

#: Files with settings of pytest and the tables in them, in the order in which pytest looks.
_SETTINGS = (
    ("pytest.toml", ("pytest",)),
    (".pytest.toml", ("pytest",)),
    ("pytest.ini", ("pytest",)),
    (".pytest.ini", ("pytest",)),
    ("pyproject.toml", ("tool", "pytest", "ini_options")),
    ("pyproject.toml", ("tool", "pytest")),
    ("tox.ini", ("pytest",)),
    ("setup.cfg", ("tool:pytest",)),
)
#: Bytes of a Python file or a file of settings, at most.
_SIZE = 1_000_000


@dataclass(frozen=True, slots=True)
class InterviewTests:
    """The tests of a file that are interviews.

    Args:
        count: Functions with the marker `adaptive_eval`.
        asks_model: Whether one of them takes the fixture `model`.
    """

    count: int
    asks_model: bool


def pytest_settings(root: Path) -> dict[str, Any]:
    """Return the settings that pytest reads in a folder: the first file that has some."""
    for name, keys in _SETTINGS:
        path = root / name
        text = _text(path) if path.is_file() else None
        if text is None:
            continue
        try:
            table: Any = tomllib.loads(text) if path.suffix == ".toml" else _ini(text)
        except (tomllib.TOMLDecodeError, configparser.Error):
            continue
        for key in keys:
            table = table.get(key) if isinstance(table, Mapping) else None
        if isinstance(table, Mapping):
            return dict(table)
    return {}


def _ini(text: str) -> dict[str, dict[str, str]]:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    return {name: dict(parser[name]) for name in parser.sections()}


def find_interviews(path: Path, root: Path, settings: Mapping[str, Any]) -> InterviewTests | None:
    """Return the interviews of a file; None without any, or if pytest does not collect it.

    Args:
        root: The folder in which pytest starts.
        settings: As `pytest_settings` gives them.
    """
    patterns = ini_words(settings.get("python_files")) or ["test_*.py", "*_test.py"]
    if not any(fnmatch(path.name, pattern) for pattern in patterns):
        return None
    folders = [root / name for name in ini_words(settings.get("testpaths"))]
    if folders and not any(path.is_relative_to(folder) for folder in folders):
        return None
    tree = _parsed(path)
    functions = list(_marked(tree, marked=_module_mark(tree))) if tree is not None else []
    if not functions:
        return None
    return InterviewTests(len(functions), any("model" in _arguments(function) for function in functions))


def ini_words(setting: object) -> list[str]:
    """Return the words of a setting of pytest, a text or a list."""
    if isinstance(setting, str):
        return setting.split()
    return [name for name in setting if isinstance(name, str)] if isinstance(setting, list) else []


def _parsed(path: Path) -> ast.Module | None:
    text = _text(path)
    if text is None:
        return None
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _text(path: Path) -> str | None:
    if path.stat().st_size > _SIZE:
        return None
    return read_regular(path).decode("utf-8", "replace")


def _marked(tree: ast.Module | ast.ClassDef, *, marked: bool) -> Iterator[ast.FunctionDef]:
    """Yield the tests that have the marker, themselves or by their class or module."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from _marked(node, marked=marked or any(map(_is_mark, node.decorator_list)))
        elif isinstance(node, ast.FunctionDef) and (
            any(map(_is_mark, node.decorator_list)) or (marked and "item" in _arguments(node))
        ):
            yield node


def _module_mark(tree: ast.Module | None) -> bool:
    """Return whether `pytestmark` of a file has the marker."""
    return tree is not None and any(
        isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets)
        and any(_is_mark(part) for part in ast.walk(node.value))
        for node in tree.body
    )


def _is_mark(node: ast.AST) -> bool:
    """Return whether an expression is `mark.adaptive_eval`, called or not."""
    if isinstance(node, ast.Call):
        node = node.func
    if not (isinstance(node, ast.Attribute) and node.attr == "adaptive_eval"):
        return False
    return "mark" in (getattr(node.value, "attr", ""), getattr(node.value, "id", ""))


def _arguments(function: ast.FunctionDef) -> set[str]:
    arguments = function.args
    return {argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}


def model_fixture(path: Path, root: Path) -> Path | None:
    """Return the file whose fixture `model` the evaluations of a file get; None for the plugin's own.

    Args:
        path: A Python or TOML file with evaluations.
        root: The folder in which pytest starts.
    """
    folders = [folder for folder in path.parents if folder.is_relative_to(root)]
    for source in ([path] if path.suffix == ".py" else []) + [folder / "conftest.py" for folder in folders]:
        tree = _parsed(source) if source.is_file() else None
        if tree is not None and any(_gives_model(node) for node in tree.body):
            return source
    return None


def _gives_model(node: ast.stmt) -> bool:
    """Return whether a statement of a file defines or imports the fixture, or may do so by a plugin."""
    if isinstance(node, ast.FunctionDef):
        return any(_is_fixture(decorator, node.name) for decorator in node.decorator_list)
    if isinstance(node, ast.ImportFrom):
        return any((name.asname or name.name) in ("model", "*") for name in node.names)
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Name) and target.id in ("model", "pytest_plugins") for target in node.targets)
    return False


def _is_fixture(decorator: ast.expr, function: str) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    if "fixture" not in (getattr(called, "attr", ""), getattr(called, "id", "")):
        return False
    keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
    names = [keyword.value for keyword in keywords if keyword.arg == "name"]
    return (names[0].value if names and isinstance(names[0], ast.Constant) else function) == "model"
