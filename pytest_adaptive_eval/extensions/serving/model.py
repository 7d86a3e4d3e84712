"""Models on servers that the run starts."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.serving.presets import PRESETS
from pytest_adaptive_eval.extensions.serving.server import START_TIMEOUT, Server
from pytest_adaptive_eval.models.base import SubjectIdentity
from pytest_adaptive_eval.models.checkpoint.folder import checkpoint_hash, file_hash
from pytest_adaptive_eval.models.endpoint.model import EndpointModel
from pytest_adaptive_eval.text import shown_command

#: Seconds for an answer: a server that ends is started again meanwhile, and loads its model.
TIMEOUT = 600.0


@dataclass(frozen=True, slots=True)
class _Launch:
    """A server to start, and the model to ask it for.

    Args:
        model: Name that requests carry; empty for the only model that the server lists.
        stated: What determines the model, in place of an address.
        weights: How well the weights are known, for the record.
    """

    command: list[str]
    model: str
    options: Mapping[str, Any]
    name: str
    stated: tuple[str, ...]
    weights: str

    @contextmanager
    def open(self, cache: Path | None) -> Iterator[tuple[Server, str]]:
        """Start the server, and yield it and the name of the model; an error within the context releases it."""
        if shutil.which(self.command[0]) is None:
            raise ConfigError(f"the server {self.command[0]!r} is not installed: no such program")
        server = Server.start(self.command, cache, self.options["start_timeout"])
        try:
            if self.model:
                models = [self.model]
            else:
                models = server.models()
            if len(models) != 1:
                names = ", ".join(models) or "none"
                raise ConfigError(f"the server lists several models or none ({names}); expected serve:COMMAND#MODEL")
            yield server, models[0]
        except BaseException:
            server.release()
            raise

    def identify(self, identity: SubjectIdentity) -> SubjectIdentity:
        """Return the identity of the endpoint without its address, which changes with every start."""
        environment = {
            **identity.environment,
            "served by": shlex.join(shown_command(self.command)),
            "weights": self.weights,
        }
        stated = json.dumps([*self.stated, self.options.get("revision", "")])
        return replace(
            identity,
            name=self.name or identity.name,
            checkpoint=hashlib.sha256(stated.encode()).hexdigest(),
            environment=environment,
            hashes_files=bool(self.name),
        )


def _launch(target: str, serve: str, serve_args: str, cache: Path | None, options: Mapping[str, Any]) -> _Launch:
    """Return the server to start for a command, or for a checkpoint folder and a preset."""
    options = {"start_timeout": START_TIMEOUT, "timeout": TIMEOUT, **options}
    further = _words("serve_args", serve_args)
    if not serve:
        match = re.fullmatch(r"(.*?)(?:#([^\s#]+))?", target, re.DOTALL)
        assert match is not None
        if match[1] in PRESETS and match[2]:  # serve:llama.cpp#model.gguf
            return _launch(match[2], match[1], serve_args, cache, options)
        command = [*_words("the command", match[1]), *further]
        if not any("{port}" in part for part in command):
            raise ConfigError(
                f"the command {' '.join(shown_command(command))!r} has no {{port}}: write {{port}} where the server "
                "takes its port, such as serve:vllm serve FOLDER --port {port}"
            )
        return _Launch(
            command, match[2] or "", options, "", ("serve", *command), "not known: a server is taken at its word"
        )
    if serve not in PRESETS:
        raise ConfigError(f"serve is {serve!r}, expected one of {', '.join(PRESETS)}, or the model serve:COMMAND")
    preset = PRESETS[serve]
    folder = Path(target).resolve()
    name = preset.served_name(folder)
    command = [*preset.command(folder, name), *further]
    weights = preset.weights(folder)
    if weights is None:
        checkpoint = checkpoint_hash(folder, cache=cache)
    else:
        checkpoint = file_hash(weights, cache=cache)
    aliases = preset.aliases(folder)
    accepted = [*options.get("accept_models", ()), *aliases]
    return _Launch(
        command,
        name,
        {**options, "accept_models": accepted},
        folder.name,
        ("serve", serve, *further, checkpoint),
        "read by the server from files of this hash",
    )


def _words(name: str, text: str) -> list[str]:
    """Split a command line into words, as a shell does, without a shell."""
    try:
        return shlex.split(text)
    except ValueError as error:
        command = " ".join(shown_command(text.split(" ")))
        raise ConfigError(f"{name} {command!r} cannot be split into words: {error}; fix its quotes") from None


class ServedModel(EndpointModel):
    """A model on a server that the run starts; created by `load`."""

    _server: Server

    @classmethod
    def load(  # type: ignore[override]  # other models are named by other texts
        cls, target: str, *, serve: str = "", serve_args: str = "", cache: Path | None = None, **options: Any
    ) -> Self:
        """Start a server, wait until it is healthy, and connect to its model.

        Args:
            target: Command with ``{port}`` in the place of the port, and ``#MODEL`` at its end where the server lists
                several models. With `serve`, a checkpoint folder.
            serve: A server of `pytest_adaptive_eval.extensions.serving.presets`.
            cache: Folder for hashes of files and the state of servers.
            **options: See `pytest_adaptive_eval.models.endpoint.model.EndpointModel.load`; ``start_timeout`` is 900.

        Raises:
            ConfigError: The server cannot be started, or as `EndpointModel.load`.
            CheckpointError: The folder is not a checkpoint.
        """
        launch = _launch(target, serve, serve_args, cache, options)
        with launch.open(cache) as (server, model):
            loaded = super().load(server.url, model, **launch.options)
        loaded._server = server
        loaded.identity = launch.identify(loaded.identity)
        return loaded

    def close(self) -> None:
        """Close the connections, and end the server if nobody else uses it."""
        super().close()
        self._server.release()
