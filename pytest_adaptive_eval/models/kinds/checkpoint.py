"""Checkpoint folders as a kind of model."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.inputs import find_input
from pytest_adaptive_eval.models.checkpoint.placement import CheckpointSettings
from pytest_adaptive_eval.models.kind import ModelKind
from pytest_adaptive_eval.registry import service
from pytest_adaptive_eval.typed_tables import read_options

if TYPE_CHECKING:
    from pytest_adaptive_eval.models.base import Model


class CheckpointKind(ModelKind):
    """A local folder in Hugging Face format."""

    name = "checkpoint"
    form = "FOLDER"
    help = "a checkpoint folder"
    model = "pytest_adaptive_eval.models.checkpoint.model:TransformersModel"
    options = ("serve", *CheckpointSettings.__struct_fields__, "cache")
    extra = "hf"
    hashes_files = True

    def locate(self, spec: str, folders: Sequence[Path]) -> str | None:
        """Return the first such folder in `folders`, or `spec` if it is a folder; see `ModelKind`."""
        if not spec:
            return None
        path = Path(spec).expanduser()
        path = find_input(path, folders) or path
        if path.is_dir():
            return str(path)
        return None

    def suggestion(self, spec: str) -> str:
        """Return how a model of the hub becomes a folder; see `ModelKind`."""
        owner, slash, name = spec.partition("/")
        is_hub = re.fullmatch(r"\w[\w.-]*", owner) and re.fullmatch(r"\w[\w.-]*", name)
        if slash and is_hub:
            return f"if it is a model of the hub, run `hf download {spec} --local-dir {name}` and give {name!r}. Else "
        return ""

    def model_name(self, spec: str) -> str:
        """Return the folder's name."""
        return Path(spec).resolve().name

    def load(self, spec: str, options: Mapping[str, Any], cache: Path | None = None, *, chats: bool = False) -> Model:
        """Load the model, or with the option ``serve`` start a server for it; see `ModelKind`."""
        if "serve" in options:
            server: ModelKind = service("managed_server", "serving")
            return server.load(spec, options, cache, chats=chats)
        return super().load(spec, options, cache, chats=chats)

    def examine(
        self, spec: str, options: Mapping[str, Any], cache: Path | None = None, *, chats: bool = False
    ) -> Model | None:
        """Check the options and the folder's files without loading the weights; see `ModelKind`.

        A device is not opened: loading the weights in every process that collects would fill a GPU. With the option
        ``serve`` the server is started, which all processes share.
        """
        if "serve" in options:
            server: ModelKind = service("managed_server", "serving")
            return server.examine(spec, options, cache, chats=chats)
        for package in ("torch", "transformers"):
            if importlib.util.find_spec(package) is None:
                raise self.missing_package(spec, ImportError(f"No module named {package!r}"))
        self.check_names(spec, options)
        known_options = {}
        for name, value in options.items():
            if name != "cache":
                known_options[name] = value
        settings = read_options(CheckpointSettings, known_options, "a checkpoint")
        from pytest_adaptive_eval.models.checkpoint.folder import preflight

        preflight(spec, cache=cache)
        if settings.device.startswith("cuda"):
            from pytest_adaptive_eval.models.checkpoint.loading import check_present

            check_present(settings.device)
        return None


REGISTERED = (CheckpointKind(),)
