"""Hash of the user's own code with which a test asks and grades; only answers of equal hashes are reused."""

from __future__ import annotations

import ast
import csv
import functools
import importlib
import inspect
import json
import re
import site
import sysconfig
import textwrap
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from hashlib import sha256
from importlib.metadata import Distribution
from pathlib import Path, PurePath, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import pytest

import pytest_adaptive_eval

#: Types whose `repr` is the same in every process.
_PLAIN = (str, int, float, complex, bool, bytes, Decimal, Fraction, PurePath, Enum)


def source_hash(node: pytest.Function, root: Path, graders: Sequence[str], answers: str) -> str:
    """Return a hash of the code that determines prompts and scores, as far as no other hash covers it.

    It covers the source of the test without its decorators; of its fixtures, except the model fixture `answers`, whose
    identity has a hash of its own; of the user's functions, classes and modules that these use, directly or not; the
    values that they use; and the grader modules.
    """
    starts: list[object] = [importlib.import_module(name) for name in graders]
    if not hasattr(node.obj, "adaptive_eval_where"):  # else from TOML: the package's own
        if not _source(node.obj):
            return ""
        starts += [node.obj, *(value for value in _fixtures(node, answers) if _of_the_user(value, str(root)))]
    if not starts:
        return ""
    text = "\0".join(_Reader(root).read(starts))
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _fixtures(node: pytest.Function, answers: str) -> list[object]:
    """Return the functions of all fixtures that a test uses, directly or through other fixtures."""
    info = node._fixtureinfo  # no public name tells which fixture a test gets
    functions: dict[str, Any] = {"item": None, answers: None}
    pending = list(info.argnames)
    while pending:
        name = pending.pop()
        if name not in functions and (definitions := info.name2fixturedefs.get(name)):
            functions[name] = definitions[-1].func
            pending += definitions[-1].argnames
    return [function for _, function in sorted(functions.items())]


class _Reader:
    """Reader of code and of what it uses; `root`, which differs between machines, is removed from texts."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._visited: dict[int, object] = {}  # referenced, so that no id is reused
        self._pending: list[Any] = []

    def read(self, starts: Iterable[object]) -> list[str]:
        texts = set()
        self._follow(starts)
        while self._pending:
            code = self._pending.pop()
            texts.add(_source(code))
            if inspect.ismodule(code) or inspect.isclass(code):  # the functions in it use names
                # a copy: looking at a value may load a module, which adds names to the one that is read
                members = [getattr(value, "__func__", value) for value in list(vars(code).values())]
                self._follow(value for value in members if self._is_user_code(value))
                continue
            for name, value in _named(code, self._root):
                if self._is_user_code(value):
                    self._follow([value])
                else:
                    texts.add(f"{name}={self._describe(value)}".replace(self._root, ""))
        return sorted(texts)

    def _follow(self, values: Iterable[object]) -> None:
        for value in values:
            if id(value) not in self._visited:
                self._visited[id(value)] = value
                self._pending.append(value)

    def _describe(self, value: Any) -> str:
        """Describe a value identically in every process.  Objects of foreign classes give only their class."""
        if value is None or isinstance(value, _PLAIN):
            return repr(value)
        if isinstance(value, re.Pattern):
            return f"{value.pattern!r} {value.flags}"
        if self._is_user_code(value):
            self._follow([value])
            return str(getattr(value, "__qualname__", ""))
        if isinstance(value, functools.partial):
            return self._describe([value.func, value.args, value.keywords])
        if id(value) in self._visited:
            return type(value).__qualname__
        self._visited[id(value)] = value
        if isinstance(value, Mapping):
            return f"{{{', '.join(f'{self._describe(k)}: {self._describe(v)}' for k, v in list(value.items()))}}}"
        if isinstance(value, list | tuple):
            return f"[{', '.join(map(self._describe, list(value)))}]"
        if isinstance(value, set | frozenset):
            return f"{{{', '.join(sorted(map(self._describe, list(value))))}}}"
        if not self._is_user_code(type(value)):
            return type(value).__qualname__
        self._follow([type(value)])
        return f"{type(value).__qualname__} {self._describe(getattr(value, '__dict__', None))}"

    def _is_user_code(self, value: object) -> bool:
        return _of_the_user(value, self._root)


def _source(code: object) -> str:
    """Return source from the line after its decorators; empty for code without source."""
    try:
        source = textwrap.dedent(inspect.getsource(code))  # type: ignore[arg-type]
        first = 0 if inspect.ismodule(code) else ast.parse(source).body[0].lineno - 1
    except (OSError, TypeError, SyntaxError):
        return ""
    return "".join(source.splitlines(keepends=True)[first:])


def _named(code: Any, root: str) -> Iterator[tuple[str, Any]]:
    """Yield names and values that a function looks up in its module, its closure, and modules that it names."""
    function = inspect.unwrap(getattr(code, "__func__", code))
    code_object: types.CodeType | None = getattr(function, "__code__", None)
    names = _names(code_object)
    namespace = dict(getattr(function, "__globals__", {}))
    for name, cell in zip(
        code_object.co_freevars if code_object else (), getattr(function, "__closure__", None) or (), strict=True
    ):
        try:
            namespace[name] = cell.cell_contents
        except ValueError:  # not yet set
            continue
        yield name, namespace[name]
    for name in sorted(names & namespace.keys()):
        yield name, namespace[name]
        if inspect.ismodule(namespace[name]) and _of_the_user(namespace[name], root):
            inner = dict(vars(namespace[name]))
            yield from ((part, inner[part]) for part in sorted(names & inner.keys()))


def _names(code: types.CodeType | None) -> set[str]:
    if code is None:
        return set()
    inner = (_names(part) for part in code.co_consts if isinstance(part, types.CodeType))
    return set(code.co_names).union(*inner)


def _of_the_user(value: object, root: str) -> bool:
    """Return whether a value is the user's code: not Python's, installed, or this package's."""
    if not (inspect.isroutine(value) or inspect.isclass(value) or inspect.ismodule(value)):
        return False
    try:
        file = inspect.getfile(value)
    except (OSError, TypeError):
        return False
    return not is_installed(file, root)


_PACKAGE_FOLDERS = frozenset(("site-packages", "dist-packages"))  #: Names of folders that only installers write to.
#: Metadata of a distribution.  A source tree that is installed as editable has an .egg-info without a version.
_METADATA = re.compile(r".+\.dist-info|.+-.+\.egg-info")


@functools.cache
def is_installed(file: str, root: str) -> bool:
    """Return whether a file belongs to Python, to this package, or to an installed distribution.

    Both the path of a link and its target count. An editable install is the user's own code, and so is a file of the
    user's project that a link in a package folder points to.
    """
    named, real = Path(file).absolute(), Path(file).resolve()
    if _in_package_folder(real, root) or _is_listed(real) or _is_listed(named):
        return True
    if not _in_package_folder(named, root):
        return False
    user_folders = [Path(root), *(project for folder in named.parents for project in _editable_projects(folder))]
    return not any(real.is_relative_to(project) for project in user_folders)


def _in_package_folder(file: Path, root: str) -> bool:
    # the project itself may lie in a package folder
    inner = file.relative_to(root) if file.is_relative_to(root) else file
    return not _PACKAGE_FOLDERS.isdisjoint(inner.parts) or any(
        file.is_relative_to(folder) for folder in _package_folders()
    )


@functools.cache
def _package_folders() -> tuple[Path, ...]:
    """Return folders whose files are all installed: their paths as named and with links resolved."""
    paths = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    paths += [*site.getsitepackages(), site.getusersitepackages()]
    folders = [*map(Path, paths), Path(pytest_adaptive_eval.__file__).parent]
    return tuple({form for folder in folders for form in (folder.absolute(), folder.resolve())})


def _is_listed(file: Path) -> bool:
    for folder in file.parents:
        files, modules = _contents(folder)
        inner = file.relative_to(folder)
        if (files or modules) and (inner.as_posix() in files or PurePosixPath(inner.parts[0]).stem in modules):
            return True
    return False


@functools.cache
def _contents(folder: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Return the files of the distributions in a folder, and the modules of those that list no files."""
    files: set[str] = set()
    modules: set[str] = set()
    for distribution in _distributions(folder):
        if record := distribution.read_text("RECORD"):
            files.update(row[0] for row in csv.reader(record.splitlines()) if row)
        elif listed := distribution.read_text("installed-files.txt"):
            files.update(line.removeprefix("../") for line in listed.splitlines())
        else:
            named = distribution.read_text("top_level.txt") or distribution.metadata["Name"] or ""
            modules.update(name.replace("-", "_") for name in named.split())
    return frozenset(files), frozenset(modules)


@functools.cache
def _editable_projects(folder: Path) -> tuple[Path, ...]:
    """Return the source folders of the editable distributions in a folder."""
    from urllib.request import url2pathname  # it takes a tenth of a second

    projects = []
    for distribution in _distributions(folder):
        try:
            origin = json.loads(distribution.read_text("direct_url.json") or "{}")
            if origin.get("dir_info", {}).get("editable"):
                projects.append(Path(url2pathname(urlsplit(origin["url"]).path)).resolve())
        except (ValueError, AttributeError, KeyError):  # a damaged file says nothing
            continue
    return tuple(projects)


def _distributions(folder: Path) -> Iterator[Distribution]:
    try:
        entries = list(folder.iterdir())
    except OSError:
        return
    yield from (Distribution.at(entry) for entry in entries if _METADATA.fullmatch(entry.name))
