"""Content of a folder that an evaluation can use: checkpoints, questions, logs, tests and continuous integration."""

from __future__ import annotations

import http.client
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from pytest_adaptive_eval.cli.python_files import InterviewTests, find_interviews, pytest_settings
from pytest_adaptive_eval.errors import AdaptiveEvalError
from pytest_adaptive_eval.inputs import read_regular
from pytest_adaptive_eval.registry import service

#: Levels of folders below the project that are looked at, and files of data at most.
_DEPTH, _FILES = 4, 200
#: Bytes of a file of data, and of a file of settings, at most.
_DATA_SIZE, _TEXT_SIZE = 200_000_000, 1_000_000
#: Folders that hold neither data nor models of the project.
_PASSED_OVER = {"node_modules", "venv", "env", "site-packages", "__pycache__", "build", "dist"}
_DATA_SUFFIXES = {".jsonl", ".json", ".csv", ".tsv", ".parquet"}
#: Files of settings in which the address of a server is looked for, by their suffix or name.
_SETTINGS = {".env", ".toml", ".yaml", ".yml", ".ini", ".cfg"}
_ADDRESS = re.compile(r"https?://[\w.-]+(?::\d+)?/v1\b")
_LOOPBACK = {"localhost", "127.0.0.1"}
#: Files that say which service runs the tests of a repository.
_SERVICES = {".github": "github", ".gitlab-ci.yml": "gitlab", "Jenkinsfile": "jenkins"}


class CheckpointFolder(NamedTuple):
    """A checkpoint folder.

    Args:
        folder: Relative to the project.
        pictures: Whether the model reads images.
        written: Time of the last change of its configuration.
    """

    folder: str
    pictures: bool
    written: float


class ServerAddress(NamedTuple):
    """An address of an OpenAI-compatible server in a file of settings.

    Args:
        models: Names of its models; empty unless it runs on this machine and answers.
    """

    address: str
    found_in: str
    models: tuple[str, ...]


class Data(NamedTuple):
    """Questions of the project.

    Args:
        path: Relative to the project.
        form: A bank folder, a JSONL of items, or a file that ``adaptive-eval import`` reads.
        questions: Their number.
        pictures: Whether the first of them has an image.
    """

    path: str
    form: str
    questions: int
    pictures: bool


@dataclass(frozen=True, slots=True)
class Project:
    """Content of a folder.

    Args:
        checkpoints: The last changed first.
        data: Banks first, then items, then benchmarks.
        logs: Files or folders of logs of evaluation tools.
        tests: Python files with evaluations.
        evaluations: TOML files with evaluations.
        service: ``github``, ``gitlab``, ``jenkins``, or empty.
    """

    root: Path
    checkpoints: tuple[CheckpointFolder, ...]
    servers: tuple[ServerAddress, ...]
    data: tuple[Data, ...]
    logs: tuple[str, ...]
    tests: Mapping[str, InterviewTests]
    evaluations: tuple[str, ...]
    service: str


def look_at(root: Path) -> Project:
    """Return the content of a folder; nothing in it is run or written."""
    checkpoints, data, files = [], [], []
    for folder, names in _folders(root):
        if (checkpoint := _checkpoint(root, folder, names)) is not None:
            checkpoints.append(checkpoint)
        elif (bank := _bank(root, folder, names)) is not None:
            data.append(bank)
        else:
            files += [folder / name for name in names]
    logs, rest = _logs(root, files)
    data += [found for path in rest[:_FILES] if (found := _questions(root, path)) is not None]
    forms = ("bank", "items", "benchmark")
    settings = pytest_settings(root)
    return Project(
        root,
        tuple(sorted(checkpoints, key=lambda found: (-found.written, found.folder))),
        tuple(_servers(files, root)),
        tuple(sorted(data, key=lambda found: (forms.index(found.form), -found.questions, found.path))),
        logs,
        {
            _relative(root, path): tests
            for path in files
            if path.suffix == ".py" and (tests := find_interviews(path, root, settings)) is not None
        },
        tuple(_relative(root, path) for path in files if path.name.endswith((".eval.toml", "adaptive-eval.toml"))),
        next((service for name, service in _SERVICES.items() if (root / name).exists()), ""),
    )


def _folders(root: Path) -> Iterator[tuple[Path, list[str]]]:
    """Yield the folders of a project with the names of their files, except inside checkpoints and banks."""
    for base, folders, names in os.walk(root):
        folder = Path(base)
        whole = {"config.json", "bank.json"} & set(names)
        folders[:] = sorted(
            name
            for name in folders
            if not (name.startswith(".") or name in _PASSED_OVER or (folder / name / "pyvenv.cfg").exists())
        )
        if whole or len(folder.relative_to(root).parts) >= _DEPTH:
            folders.clear()
        yield folder, sorted(name for name in names if (folder / name).is_file())


def _relative(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix() or "."


def _checkpoint(root: Path, folder: Path, names: list[str]) -> CheckpointFolder | None:
    from pytest_adaptive_eval.models.checkpoint.folder import reads_images
    from pytest_adaptive_eval.models.checkpoint.weights import read_object

    if "config.json" not in names or not any(name.endswith(".safetensors") for name in names):
        return None
    path = folder / "config.json"
    try:
        config = read_object(path)
    except AdaptiveEvalError:
        return None
    if not config.get("model_type"):
        return None
    return CheckpointFolder(_relative(root, folder), reads_images(config), path.stat().st_mtime)


def _bank(root: Path, folder: Path, names: list[str]) -> Data | None:
    from pytest_adaptive_eval.banks.reader import read_bank

    if "bank.json" not in names:
        return None
    try:
        bank = read_bank(folder)
        return Data(_relative(root, folder), "bank", len(bank), bool(bank.items[0].images))
    except AdaptiveEvalError:
        return None


def _logs(root: Path, files: list[Path]) -> tuple[tuple[str, ...], list[Path]]:
    """Return the logs among files, each as the folder below the project that holds them, and the other data files."""
    logs: dict[str, None] = {}
    rest = []
    for path in files:
        suffix = path.suffix.lower()
        if suffix not in (*_DATA_SUFFIXES, ".eval") or path.stat().st_size > _DATA_SIZE:
            continue
        if _is_log(path):
            logs[path.relative_to(root).parts[0]] = None
        else:
            rest.append(path)
    return tuple(logs), [path for path in rest if path.relative_to(root).parts[0] not in logs]


def _is_log(path: Path) -> bool:
    from pytest_adaptive_eval.banks.responses import is_responses

    try:
        return is_responses(path)
    except AdaptiveEvalError:
        return False


def _questions(root: Path, path: Path) -> Data | None:
    """Return the questions of a file; None without any that can be read."""
    from pytest_adaptive_eval.banks.reader import read_bank

    if path.suffix == ".jsonl":
        try:
            bank = read_bank(path)
            return Data(_relative(root, path), "items", len(bank), bool(bank.items[0].images))
        except AdaptiveEvalError:
            pass
    try:
        with service("import_items", "importing")(str(path)) as imported:
            service("check_refused", "importing")(imported, str(path))
            items = imported.items
            return Data(_relative(root, path), "benchmark", len(items), bool(items[0].images)) if items else None
    except AdaptiveEvalError:
        return None


def _servers(files: list[Path], root: Path) -> Iterator[ServerAddress]:
    """Yield the servers that files of settings name, those first that answer."""
    settings = [path for path in files if path.suffix in _SETTINGS or path.name.startswith(".env")]
    named_in: dict[str, str] = {}
    for path in settings:
        if path.stat().st_size <= _TEXT_SIZE:
            for address in _ADDRESS.findall(read_regular(path).decode("utf-8", "replace")):
                named_in.setdefault(address, _relative(root, path))
    servers = [ServerAddress(address, name, _models(address)) for address, name in named_in.items()]
    yield from sorted(servers, key=lambda server: not server.models)


def _models(address: str) -> tuple[str, ...]:
    """Return the models of a server on this machine; other servers are never asked."""
    url = urlsplit(address)
    if url.scheme != "http" or url.hostname not in _LOOPBACK:
        return ()
    connection = http.client.HTTPConnection(url.hostname, url.port or 80, timeout=2.0)
    try:
        connection.request("GET", f"{url.path}/models")
        reply = connection.getresponse()
        entries = json.loads(reply.read(_TEXT_SIZE))["data"] if reply.status == 200 else []
        return tuple(name for entry in entries if isinstance(name := entry["id"], str) and name.isprintable())
    except (OSError, http.client.HTTPException, ValueError, TypeError, KeyError, RecursionError):
        return ()
    finally:
        connection.close()
