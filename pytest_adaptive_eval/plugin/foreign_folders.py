"""Keep pytest out of checkpoint and bank folders: it would import the Python files of whoever made them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_adaptive_eval.inputs import files_of_pytest


def _is_foreign(folder: Path) -> bool:
    """Return whether a folder is a bank, or a checkpoint with its configuration and weights or tokenizer."""
    with contextlib.suppress(OSError):
        if (folder / "bank.json").is_file():
            return (folder / "items.jsonl").is_file()
        if (folder / "config.json").is_file() or (folder / "open_clip_config.json").is_file():
            for path in folder.iterdir():
                if path.suffix == ".safetensors" or path.name.startswith("tokenizer"):
                    return True
            return False
    return False


def check_arguments(config: pytest.Config) -> None:
    """Refuse arguments within such a folder: pytest imports their conftest files before it collects anything.

    Raises:
        pytest.UsageError: Names the folder and a file in it.
    """
    for path in _initial_paths(config):
        for folder in (path, *path.parents):
            if folder == config.invocation_params.dir or folder in config.invocation_params.dir.parents:
                break
            if (files := files_of_pytest(folder)) and _is_foreign(folder):
                raise pytest.UsageError(
                    f"{folder} is a checkpoint or bank folder, and pytest would run its {files[0]}: leave the folder "
                    "out of the arguments, and move tests of your own out of it"
                )


def _initial_paths(config: pytest.Config) -> Iterator[Path]:
    """Yield the paths whose conftest files pytest imports at its start."""
    here = config.invocation_params.dir
    plain = [path for path in config.getini("testpaths") if not {*"*?["} & {*path}]
    named = config.known_args_namespace.file_or_dir or [config.rootpath / path for path in plain]
    for argument in named or [here]:
        path = Path(os.path.abspath(here / str(argument).partition("::")[0]))  # noqa: PTH100 - links stay as named
        with contextlib.suppress(OSError):
            yield path
            yield from (inner for inner in path.glob("test*") if inner.is_dir())


class ForeignFolders:
    """Hooks that leave such folders out of collection, and say so where that matters."""

    def __init__(self, config: pytest.Config) -> None:
        named = [config.getini("adaptive_eval_model"), *(config.getoption("adaptive_eval_models", None) or ())]
        paths = set()
        for text in named:
            if text:
                for part in (text, text.split("=")[-1]):
                    paths.add(config.invocation_params.dir / part)
        self._named = {path for path in paths if path != config.rootpath}
        self._left_out: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Leave out folders that hold a checkpoint or a bank, and the model that the run names."""
        if collection_path not in self._named and not _is_foreign(collection_path):
            return None
        if not collection_path.is_dir():
            return None
        if files := files_of_pytest(collection_path):
            self._left_out.append(f"{os.path.relpath(collection_path)} ({', '.join(files[:3])})")
        return True

    def pytest_report_collectionfinish(self) -> list[str]:
        """Report the folders with files that pytest would have run."""
        if not self._left_out:
            return []
        from pytest_adaptive_eval.text import guard

        return [guard(f"adaptive-eval: no test of a checkpoint or bank folder is run: {', '.join(self._left_out[:3])}")]
