"""Distinguish installed files from the user's own code."""

from __future__ import annotations

import csv
import functools
import json
import re
import site
import sysconfig
from collections.abc import Iterator
from importlib.metadata import Distribution
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import pytest_adaptive_eval

#: Names of folders that only installers write to.
_PACKAGE_FOLDERS = frozenset(("site-packages", "dist-packages"))
#: Metadata of a distribution.  A source tree that is installed as editable has an .egg-info without a version.
_METADATA = re.compile(r".+\.dist-info|.+-.+\.egg-info")


@functools.cache
def is_installed(file: str, root: str) -> bool:
    """Return whether a file belongs to Python, to this package, or to an installed distribution.

    Both the path of a link and its target count. An editable install is the user's own code, and so is a file of the
    user's project that a link in a package folder points to.

    Args:
        file: Path of a source file.
        root: The folder of the user's project.
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
    """Return whether a distribution in a folder above the file lists it as its own."""
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
