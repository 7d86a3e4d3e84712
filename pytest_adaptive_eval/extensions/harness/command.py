"""The command of a harness: its words, its environment and its identity."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.api_keys import HIDDEN, hide_from_now_on, without_keys
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.harness.row import Harness, find_harness
from pytest_adaptive_eval.extensions.harness.settings import HarnessSettings
from pytest_adaptive_eval.models.base import SubjectIdentity
from pytest_adaptive_eval.models.checkpoint.folder import checkpoint_hash, file_hash
from pytest_adaptive_eval.records.baseline import HARNESS_VERSION
from pytest_adaptive_eval.text import shown_command
from pytest_adaptive_eval.typed_tables import read_options, suggestion

#: What a call replaces, and what of it says which items to run.
PLACEHOLDERS = ("items", "ids", "regex", "samples", "tasks", "ids_file", "output", "checkpoint", "seed", "parallel")
_CHOOSING = ("items", "ids", "regex", "samples", "ids_file")
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_PYTHON = re.compile(r"python[\d.]*")
#: Names of variables whose values are not shown.
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
VERSION_SECONDS = 60.0  #: For a harness to print its version.


@dataclass(frozen=True, slots=True)
class Command:
    """The command of a harness.

    Args:
        words: With placeholders.
        checkpoint: Value of ``{checkpoint}``.
    """

    harness: Harness
    settings: HarnessSettings
    words: Sequence[str]
    checkpoint: str

    def filled(self, items: Sequence[str], values: Mapping[str, object]) -> list[str]:
        """Return the words of a call.

        Args:
            items: Ids to run.
            values: Values of the placeholders that are not made from the ids.
        """
        written = [self.harness.written(item) for item in items]
        spread = {"{items}": self._with_options(written)}
        if self.harness.separator == " ":
            spread["{ids}"] = written
        texts = {
            **values,
            "ids": self.harness.separator.join(written),
            "regex": f"^({'|'.join(map(re.escape, items))})$",
            "checkpoint": self.checkpoint,
            "parallel": self.settings.parallel,
        }
        words = []
        for word in self.words:
            if word in spread:
                words += spread[word]
            else:
                words.append(_PLACEHOLDER.sub(lambda match: str(texts[match[1]]), word))
        return words

    def for_item(self, item: str) -> list[str]:
        """Return the words that run one item, with the placeholders that only a call fills."""
        return self.filled([item], {name: f"{{{name}}}" for name in PLACEHOLDERS})

    def _with_options(self, written: Sequence[str]) -> list[str]:
        words = []
        for item in written:
            words += [self.harness.option, item]
        return words

    def environment(self) -> dict[str, str]:
        """Return the variables of a call: without the keys of this run's other models, and with the setting's."""
        variables = {}
        for name, value in os.environ.items():
            if without_keys(value.strip()) != HIDDEN:
                variables[name] = value
        return {**variables, **dict(self._added())}

    def _added(self) -> Iterator[tuple[str, str]]:
        for name, written in self.settings.env.items():
            value = written
            if written.startswith("$"):
                value = os.environ.get(written[1:], "")
                if not value:
                    raise ConfigError(
                        f"env: {name} takes the variable {written[1:]!r}, which is not set, or empty: set it"
                    )
            if written.startswith("$") or _SECRET.search(name):
                hide_from_now_on(value)
            yield name, value

    def stated(self) -> dict[str, Any]:
        """Return harness, command without paths, and environment without secrets, as JSON data."""
        variables = {}
        for name, written in self.settings.env.items():
            is_secret = written.startswith("$") or _SECRET.search(name) is not None
            variables[name] = "" if is_secret else written
        words = [_without_path(word) for word in self.words]
        stated: dict[str, Any] = {"harness": self.harness.name, "command": shown_command(words), "env": variables}
        for name in ("grade", "metric", "filter"):
            value = getattr(self.settings, name)
            if value:
                stated[name] = value
        return stated

    def identity(self, cache: Path | None) -> SubjectIdentity:
        """Return whose answers these are: by the checkpoint's files where it is a folder, else by its name."""
        is_folder = bool(self.checkpoint) and Path(self.checkpoint).is_dir()
        if is_folder:
            name = Path(self.checkpoint).resolve().name
            weights = checkpoint_hash(self.checkpoint, cache=cache)
            origin = "files of this hash"
        else:
            name = self.checkpoint or self.harness.name
            weights = f"{self.checkpoint} {self.settings.revision}"
            origin = "not known: the harness is taken at its word"
        environment = {"weights": origin, "revision": self.settings.revision, HARNESS_VERSION: self.version()}
        answering = [self.harness.name, weights, *(file_hash(path, cache=cache) for path in self.files())]
        return SubjectIdentity(
            name,
            hashlib.sha256(json.dumps(answering).encode()).hexdigest(),
            self.stated(),
            environment,
            hashes_files=is_folder,
        )

    def files(self) -> list[Path]:
        """Return the files that the command names: scripts and settings, without the program of a known harness."""
        words = list(self.words)
        if self.harness.version or _PYTHON.fullmatch(Path(words[0]).name):
            del words[0]
        paths = [Path(_value_of(word)) for word in words]
        return [path for path in paths if path.is_file()]

    def version(self) -> str:
        """Return the harness's version; empty where it does not say."""
        if not self.harness.version:
            return ""
        values = {"program": self.words[0], "python": self.python()}
        words = [_PLACEHOLDER.sub(lambda match: values[match[1]], word) for word in shlex.split(self.harness.version)]
        if not words[0]:
            return ""
        try:
            ended = subprocess.run(
                words, capture_output=True, text=True, env=self.environment(), timeout=VERSION_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        if ended.returncode:
            return ""
        return ended.stdout.strip().rpartition("\n")[2][:80]

    def python(self) -> str:
        """Return the Python interpreter that runs the program: the program itself, or by its first line; else empty."""
        if _PYTHON.fullmatch(Path(self.words[0]).name):
            return self.words[0]
        program = shutil.which(self.words[0])
        if program is None:
            return ""
        with Path(program).open("rb") as file:
            first = file.readline(1024).decode("utf-8", "replace").strip()
        interpreter = first.removeprefix("#!").split(" ")[0]
        if first.startswith("#!") and "python" in Path(interpreter).name:
            return interpreter
        return ""


def _script_of(words: Sequence[str]) -> str:
    """Return the script that Python runs; empty for a module, code, or another program."""
    if len(words) < 2 or not _PYTHON.fullmatch(Path(words[0]).name):
        return ""
    script = words[1]
    if script.startswith("-") or _PLACEHOLDER.search(script):
        return ""
    return script


def _value_of(word: str) -> str:
    """Return what follows ``--option=``, else the word."""
    return word.rpartition("=")[2]


def _without_path(word: str) -> str:
    """Return a word with the last part of a path in place of it; of ``--option=PATH`` too."""
    value = _value_of(word)
    is_path = value.startswith(("/", "./", "../", "~")) or ("/" in value and Path(value).exists())
    if is_path:
        return word.removesuffix(value) + Path(value).name
    return word


def read_command(name: str, checkpoint: str, options: Mapping[str, Any]) -> Command:
    """Return the command of a harness.

    Raises:
        ConfigError: The harness or program is unknown, or the command does not say which items to run.
    """
    harness = find_harness(name)
    settings = read_options(HarnessSettings, options, f"harness:{name}")
    where = f"harness:{name}: command"
    if not settings.command:
        raise ConfigError(f'{where} is missing: write model_options = {{ command = "..." }}')
    try:
        words = shlex.split(settings.command)
    except ValueError as error:
        raise ConfigError(f"{where} cannot be split into words: {error}; fix its quotes") from None
    checkpoint = checkpoint or settings.checkpoint
    for fault in _faults(harness, words, checkpoint):
        raise ConfigError(f"{where} {fault}")
    for variable in settings.env:
        if not _NAME.fullmatch(variable):
            raise ConfigError(f"harness:{name}: env: {variable!r:.80} is not the name of a variable")
    command = Command(harness, settings, words, checkpoint)
    command.environment()
    if harness.id_map and not command.python():
        raise ConfigError(
            f"{where} begins with {words[0]!r}, which names no Python interpreter; begin with the program itself, or "
            "with PYTHON -m MODULE, whose interpreter finds the numbers of the documents"
        )
    return command


def _faults(harness: Harness, words: Sequence[str], checkpoint: str) -> Iterator[str]:
    """Yield what is wrong with a command, the first that matters first."""
    if not words or shutil.which(words[0]) is None:
        yield f"begins with {''.join(words[:1])!r}, and no such program is installed: install it, or write its path"
    used = {name for word in words for name in _PLACEHOLDER.findall(word)}
    for name in sorted(used - {*PLACEHOLDERS}):
        yield f"has {{{name}}}, which is not known; {suggestion(name, PLACEHOLDERS)}"
    if used.isdisjoint(_CHOOSING):
        choices = ", ".join(f"{{{name}}}" for name in _CHOOSING)
        yield f"does not say which items to run, so it would run them all: it needs one of {choices}"
    if "output" not in used:
        yield "has no {output}: write it where the harness takes the folder of its log"
    if "samples" in used and not harness.id_map:
        yield "has {samples}, which is for lm-eval"
    if harness.id_map and not {"samples", "tasks"} <= used:
        yield "needs {samples} and {tasks}: a task that --samples does not name runs all of its documents"
    if "items" in used and not harness.option:
        yield f"has {{items}}, and harness:{harness.name} has no option for an item: write {{ids}} or {{ids_file}}"
    if "items" in used and "{items}" not in words:
        yield "has {items} within a word: it becomes several words, so write it between spaces"
    if "checkpoint" in used and not checkpoint:
        yield "has {checkpoint}, and none is given: write model = 'harness:NAME#CHECKPOINT' or checkpoint = ..."
    script = _script_of(words)
    if script and not Path(script).is_file():
        yield f"runs {script!r}, and there is no such file in {Path.cwd()}: correct its name or path"
