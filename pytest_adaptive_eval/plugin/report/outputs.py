"""Check the paths of a run's reports, and remove the reports of an earlier run."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_adaptive_eval.errors import ConfigError

if TYPE_CHECKING:
    from pytest_adaptive_eval.evaluation import Settings

#: Regular expressions for the beginning of each report, in lower case without white space.
_HEADS = {"record": rb'{"run":', "junit": rb"<\?xml", "html": rb"<!doctypehtml>"}
_HEAD = 200  #: Number of bytes that identify a report.


def outputs(settings: Settings) -> dict[str, Path]:
    """Return the paths of requested reports, by the end of their flag's name."""
    requested = {"record": settings.record, "junit": settings.junit, "html": settings.html}
    return {name: path for name, path in requested.items() if path is not None}


def check_outputs(config: pytest.Config, settings: Settings) -> None:
    """Refuse two reports with one path, and one with the baseline's.

    Raises:
        ConfigError: Two reports go to one file, or one to the baseline's.
    """
    folder = config.invocation_params.dir
    named = {f"--adaptive-eval-{name}": path for name, path in outputs(settings).items()}
    if (xml := getattr(config.option, "xmlpath", None)) is not None:
        named["--junitxml"] = folder / os.path.expandvars(Path(xml).expanduser())
    if settings.baseline is not None:
        named["--adaptive-eval-baseline"] = folder / settings.baseline
    flags: dict[Path, str] = {}
    for flag, path in named.items():
        with suppress(OSError, ValueError):  # not a valid path; its user reports that
            path = Path(os.path.realpath(path))  # unlike Path.resolve, it takes a circle of links
        other = flags.setdefault(path, flag)
        if other != flag:
            raise ConfigError(f"{other} and {flag} both name {path}: one would be lost, so name two files")


def clear_outputs(paths: Mapping[str, Path]) -> None:
    """Remove reports of an earlier run, see `outputs`: a run that dies must not seem to have passed.

    Raises:
        pytest.UsageError: The path holds another file, or cannot be written.
    """
    for name, path in paths.items():
        try:
            path = Path(os.path.realpath(path))  # the target of a link is removed, not the link
            if path.exists() and not path.is_file():
                raise OSError("it is not a regular file")
            if path.exists():
                with path.open("rb") as file:
                    head = re.sub(rb"\s", b"", file.read(_HEAD)).lower()
                if head and re.match(_HEADS[name], head) is None:
                    raise OSError("it holds something else, which would be lost")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            path.unlink()
        except OSError as error:
            raise pytest.UsageError(
                f"{path}: the report of this run could not be written there: {error.strerror or error}; choose another "
                "path"
            ) from None
