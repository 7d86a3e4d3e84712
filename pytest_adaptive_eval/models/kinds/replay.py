"""Recorded answers as a kind of model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_adaptive_eval.inputs import find_input
from pytest_adaptive_eval.models.kind import ModelKind


class ReplayKind(ModelKind):
    """Recorded answers, read from a file."""

    name = "replay"
    form = "replay:FILE[#NAME]"
    help = "recorded answers"
    prefixes = ("replay:",)
    chats = False
    model = "pytest_adaptive_eval.models.replay:ReplayModel"

    def locate(self, spec: str, folders: Sequence[Path]) -> str | None:
        """Return `spec` with the path of the first such file in `folders`; see `ModelKind`."""
        prefix, path = spec[: len(self.prefixes[0])], spec[len(self.prefixes[0]) :]
        if prefix not in self.prefixes:
            return None
        file = path.rpartition("#")[0] if "#" in path else path
        folder = next((folder for folder in folders if find_input(file, [folder]) or find_input(path, [folder])), None)
        return spec if folder is None else f"{prefix}{folder / path}"

    def arguments(self, spec: str) -> tuple[str, str | None]:
        """Return the file's path, and the subject's name if `spec` has one; a file name may contain ``#``."""
        path = spec.removeprefix(self.prefixes[0])
        if "#" in path and find_input(path, [Path()]) is None:
            file, _, subject = path.rpartition("#")
            return file, subject
        return path, None


REGISTERED = (ReplayKind(),)
