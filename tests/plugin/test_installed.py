"""Installed code is told from the user's own, wherever and however it is installed."""

from __future__ import annotations

import json
import os
import site
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_adaptive_eval.plugin import fingerprint
from pytest_adaptive_eval.plugin.fingerprint import is_installed

MODULE = "judgelib/core.py"


def install(folder: Path, *, record: bool = True) -> Path:
    """A library with the metadata that an installer writes; its module."""
    (folder / "judgelib").mkdir(parents=True)
    (folder / MODULE).write_text("def right(text): return text == 'right'\n")
    info = folder / "judgelib-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: judgelib\nVersion: 1.0\n")
    if record:
        (info / "RECORD").write_text(f"{MODULE},sha256=x,1\njudgelib-1.0.dist-info/RECORD,,\n")
    return folder / MODULE


def in_target(tmp: Path) -> Path:
    return install(tmp / "target")


def in_target_without_a_list_of_files(tmp: Path) -> Path:
    return install(tmp / "target", record=False)


def in_target_as_egg(tmp: Path) -> Path:
    module = install(tmp / "target", record=False)
    info = (tmp / "target/judgelib-1.0.dist-info").rename(tmp / "target/judgelib-1.0-py3.11.egg-info")
    (info / "METADATA").rename(info / "PKG-INFO")
    (info / "installed-files.txt").write_text(f"../{MODULE}\nPKG-INFO\n")
    return module


def in_the_project(tmp: Path) -> Path:
    return install(tmp / "project")


def in_another_environment(tmp: Path) -> Path:
    return install(tmp / "environment/lib/python3.11/site-packages", record=False)


def in_debian(tmp: Path) -> Path:
    return install(tmp / "usr/lib/python3/dist-packages", record=False)


def by_a_link(tmp: Path) -> Path:
    install(tmp / "store")
    (tmp / "links").mkdir()
    (tmp / "links/judgelib").symlink_to(tmp / "store/judgelib")
    return tmp / "links" / MODULE


def by_a_link_in_a_package_folder(tmp: Path) -> Path:
    (tmp / "store/judgelib").mkdir(parents=True)
    (tmp / "store" / MODULE).touch()
    (tmp / "site-packages").mkdir()
    (tmp / "site-packages/judgelib").symlink_to(tmp / "store/judgelib")
    return tmp / "site-packages" / MODULE


def by_a_copy_of_links(tmp: Path) -> Path:
    install(tmp / "cache")
    (tmp / "copy/judgelib").mkdir(parents=True)
    (tmp / "copy" / MODULE).symlink_to(tmp / "cache" / MODULE)
    return tmp / "copy" / MODULE


def as_the_users_module(tmp: Path) -> Path:
    return tmp / "project/rules.py"


def beside_libraries(tmp: Path) -> Path:
    install(tmp / "project")
    return tmp / "project/rules.py"


def as_editable(tmp: Path) -> Path:
    (tmp / "own/src/own").mkdir(parents=True)
    (info := tmp / "own/src/own.egg-info").mkdir()
    (info / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    (info / "top_level.txt").write_text("own\n")
    (info / "SOURCES.txt").write_text("src/own/rules.py\n")
    return tmp / "own/src/own/rules.py"


def as_an_editable_link(tmp: Path) -> Path:
    (tmp / "own").mkdir()
    (tmp / "own/rules.py").touch()
    (info := tmp / "site-packages/own-1.0.dist-info").mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    (info / "RECORD").write_text("own-1.0.dist-info/RECORD,,\n")
    (info / "direct_url.json").write_text(json.dumps({"url": (tmp / "own").as_uri(), "dir_info": {"editable": True}}))
    (tmp / "site-packages/rules.py").symlink_to(tmp / "own/rules.py")
    return tmp / "site-packages/rules.py"


def as_a_link_to_the_project(tmp: Path) -> Path:
    (tmp / "project/rules.py").touch()
    (tmp / "site-packages").mkdir()
    (tmp / "site-packages/rules.py").symlink_to(tmp / "project/rules.py")
    return tmp / "site-packages/rules.py"


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        *((place, True) for place in (in_target, in_target_without_a_list_of_files, in_target_as_egg, in_the_project)),
        *((place, True) for place in (in_another_environment, in_debian)),
        *((place, True) for place in (by_a_link, by_a_link_in_a_package_folder, by_a_copy_of_links)),
        *((place, False) for place in (as_the_users_module, beside_libraries, as_editable, as_an_editable_link)),
        (as_a_link_to_the_project, False),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_file_is_installed_or_the_users(tmp_path: Path, place: Callable[[Path], Path], expected: bool) -> None:
    (tmp_path / "project").mkdir()
    assert is_installed(str(place(tmp_path)), str(tmp_path / "project")) is expected


def test_python_and_the_user_site_are_installed(tmp_path: Path) -> None:
    files = [os.__file__, pytest.__file__, fingerprint.__file__, f"{site.getusersitepackages()}/judgelib/core.py"]
    assert all(is_installed(str(file), str(tmp_path)) for file in files)


def test_a_project_in_a_folder_named_like_a_package_folder_is_the_users(tmp_path: Path) -> None:
    root = tmp_path / "site-packages/project"
    assert not is_installed(str(root / "rules.py"), str(root))
    assert is_installed(str(root / ".venv/lib/site-packages/judgelib.py"), str(root))


HASHED = """
import sys
from pathlib import Path
from types import SimpleNamespace as Node
import test_it
from pytest_adaptive_eval.plugin.fingerprint import source_hash
node = Node(obj=test_it.test_it, _fixtureinfo=Node(argnames=(), name2fixturedefs={}))
print(source_hash(node, Path.cwd(), (), "model"))
"""


@pytest.mark.slow
def test_one_hash_wherever_a_library_is_installed(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "test_it.py").write_text("from judgelib.core import right\ndef test_it(item): assert right(item)\n")

    def hashed(folder: Path) -> str:
        path = os.pathsep.join(map(str, [project, folder, *filter(None, sys.path)]))
        done = subprocess.run(
            [sys.executable, "-c", HASHED],
            cwd=project,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    install(tmp_path / "venv/site-packages")
    install(tmp_path / "target")
    (tmp_path / "own/judgelib").mkdir(parents=True)
    (tmp_path / "own" / MODULE).write_text((tmp_path / "target" / MODULE).read_text())
    environment, target, own = (hashed(tmp_path / name) for name in ("venv/site-packages", "target", "own"))
    assert environment == target != own
    (tmp_path / "own" / MODULE).write_text("def right(text): return True\n")
    assert hashed(tmp_path / "own") != own


def test_a_module_that_grows_while_it_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = types.ModuleType("growing")
    module.__file__ = str(tmp_path / "growing.py")
    monkeypatch.setitem(sys.modules, "growing", module)

    class Lazy:
        """Loads something when it is looked at."""

        @property  # type: ignore[misc]
        def __class__(self) -> type:
            setattr(module, f"loaded{len(vars(module))}", 1)
            return object

    module.first, module.second = Lazy(), Lazy()  # type: ignore[attr-defined]
    names = len(vars(module))
    assert fingerprint._Reader(tmp_path).read([module]) == [""]
    assert len(vars(module)) > names
