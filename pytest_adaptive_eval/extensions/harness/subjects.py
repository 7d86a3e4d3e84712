"""Harnesses as a kind of model."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.extensions.harness.settings import HarnessSettings
from pytest_adaptive_eval.models.kind import ModelKind

if TYPE_CHECKING:
    from pytest_adaptive_eval.extensions.harness.command import Command
    from pytest_adaptive_eval.items.item import Item
    from pytest_adaptive_eval.models.base import Model


class HarnessKind(ModelKind):
    """A harness that runs the drawn items by a command."""

    name = "harness"
    form = "harness:NAME[#CHECKPOINT]"
    help = "an evaluation harness that runs the drawn items"
    prefixes = ("harness:",)
    chats = False
    model = "pytest_adaptive_eval.extensions.harness.model:HarnessModel"
    options = (*HarnessSettings.__struct_fields__, "cache")
    remote = True
    hashes_files = True
    answers_ids = True

    def arguments(self, spec: str) -> tuple[str, str]:
        """Return the name of the harness, and the checkpoint that it is given."""
        name, _, checkpoint = spec.removeprefix(self.prefixes[0]).partition("#")
        return name, checkpoint

    def model_name(self, spec: str) -> str:
        """Return the last part of the checkpoint's name, else the harness's."""
        name, checkpoint = self.arguments(spec)
        return Path(checkpoint).name or name

    def examine(
        self,
        spec: str,
        options: Mapping[str, Any],
        cache: Path | None = None,  # noqa: ARG002 -- of all kinds alike
        *,
        chats: bool = False,  # noqa: ARG002
    ) -> Model | None:
        """Check the command without asking the harness for its version, which takes seconds; see `ModelKind`."""
        self._read(spec, options)
        return None

    def check_items(self, spec: str, items: Sequence[Item]) -> None:
        """Raise ConfigError for an id that the harness cannot be given."""
        from pytest_adaptive_eval.extensions.harness.row import find_harness

        find_harness(self.arguments(spec)[0]).check_ids(item.id for item in items)

    def command(self, spec: str, options: Mapping[str, Any], item: str) -> str:
        """Return the command that runs an item, with the names of files and folders that a call has of its own."""
        return shlex.join(self._read(spec, options).for_item(item))

    def _read(self, spec: str, options: Mapping[str, Any]) -> Command:
        from pytest_adaptive_eval.extensions.harness.command import read_command

        self.check_names(spec, options)
        harness_options = {name: value for name, value in options.items() if name != "cache"}
        return read_command(*self.arguments(spec), harness_options)


REGISTERED = (HarnessKind(),)
