"""Recorded answers as a kind of model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from pytest_adaptive_eval.inputs import find_input
from pytest_adaptive_eval.mappings import ResponseMapping
from pytest_adaptive_eval.models.kind import ModelKind


class ReplayKind(ModelKind):
    """Recorded answers, read from a file."""

    name = "replay"
    form = "replay:FILE[#NAME]"
    help = "recorded answers: a matrix, JSON lines, a run's record, or finished logs of another tool"
    prefixes = ("replay:",)
    chats = False
    answers_ids = True
    model = "pytest_adaptive_eval.models.replay:ReplayModel"
    options = (
        *("format", "orientation", "metric", "filter", "ids", "partial", "edited"),
        *ResponseMapping.__struct_fields__,
    )

    def locate(self, spec: str, folders: Sequence[Path]) -> str | None:
        """Return `spec` with the path of the first such file in `folders`; see `ModelKind`."""
        prefix = spec[: len(self.prefixes[0])]
        path = spec[len(self.prefixes[0]) :]
        if prefix not in self.prefixes:
            return None
        folder = next((folder for folder in folders if find_input(path_and_name(path, folder)[0], [folder])), None)
        if folder is None:
            return spec
        return f"{prefix}{folder / path}"

    def arguments(self, spec: str) -> tuple[str, str | None]:
        """Return the file's path, and the subject's name if `spec` has one; a file name may contain ``#``."""
        path, subject = path_and_name(spec.removeprefix(self.prefixes[0]))
        return str(path), subject or None


def path_and_name(text: str, folder: Path = Path()) -> tuple[Path, str]:
    """Return the path in ``PATH#NAME`` and the name, empty without one; both may contain ``#``."""
    marks = [len(text), *(match.start() for match in re.finditer("#", text))]
    end = next((mark for mark in marks if find_input(text[:mark], [folder])), text.rfind("#"))
    return Path(text[:end] if end >= 0 else text), text[end + 1 :] if end >= 0 else ""


REGISTERED = (ReplayKind(),)
