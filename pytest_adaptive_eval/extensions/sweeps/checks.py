"""Checks before any cell of a sweep runs, on this machine and on nodes of a cluster."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_adaptive_eval import __version__
from pytest_adaptive_eval.errors import AdaptiveEvalError, ConfigError
from pytest_adaptive_eval.evaluation.toml import read_toml
from pytest_adaptive_eval.extensions.sweeps.cells import Cell, EvaluationFile, SweptModel
from pytest_adaptive_eval.extensions.sweeps.settings import ResourceTable, Sweep
from pytest_adaptive_eval.inputs import find_input, read_regular


@dataclass(frozen=True, slots=True)
class Machine:
    """Resources that a machine offers to cells.

    Args:
        cpus, memory: Cores, and GiB of main memory.
        gpus: Values for ``CUDA_VISIBLE_DEVICES``.
    """

    name: str
    cpus: float
    memory: float
    gpus: tuple[str, ...] = ()

    def lacks(self, needs: ResourceTable) -> str:
        """Return what a cell takes and the machine does not have; empty where there is enough."""
        rows = (
            ("GPUs", needs.gpus, len(self.gpus)),
            ("cores", needs.cpus, self.cpus),
            ("GiB", needs.memory, self.memory),
        )
        return ", ".join(f"{have:g} {name} of {required:g}" for name, required, have in rows if required > have)


def this_machine() -> Machine:
    """Return what this machine offers."""
    affinity = getattr(os, "sched_getaffinity", None)
    cpus = len(affinity(0)) if affinity else os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    visible, folder = os.environ.get("CUDA_VISIBLE_DEVICES"), Path("/proc/driver/nvidia/gpus")
    if visible is None:
        gpus = [str(number) for number in range(len(list(folder.iterdir())))] if folder.is_dir() else []
    else:
        gpus = [name.strip() for name in visible.split(",") if name.strip() not in ("", "-1")]
    return Machine(f"this machine ({socket.gethostname()})", cpus, memory, tuple(gpus))


def check_room(needs: ResourceTable, machines: Sequence[Machine], where: str) -> None:
    """Refuse a sweep whose cells no machine can hold.

    Raises:
        ConfigError: Names what each machine lacks.
    """
    lacking = [f"{machine.name} has {lack}" for machine in machines if (lack := machine.lacks(needs))]
    if len(lacking) == len(machines):
        raise ConfigError(f"{where}: no machine can hold a cell: {'; '.join(lacking[:5])}; change [resources]")


class Signatures:
    """Hashes of evaluation files and the banks that they name, and marks of checkpoints, each computed once.

    Args:
        base: Folder in which the commands run.
    """

    def __init__(self, base: Path) -> None:
        self._base = base
        self._banks: dict[Path, Mapping[str, str]] = {}
        self._checkpoints: dict[Path, str] = {}

    def checkpoint(self, path: Path | None) -> str:
        """Return a hash of names, sizes and times of change of a checkpoint's files."""
        if path is None:
            return ""
        if path not in self._checkpoints:
            files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
            stats = [(str(file.relative_to(path.parent)), file.stat()) for file in files]
            text = json.dumps([(name, status.st_size, status.st_mtime_ns) for name, status in stats])
            self._checkpoints[path] = hashlib.sha256(text.encode()).hexdigest()
        return self._checkpoints[path]

    def evaluation(self, file: EvaluationFile) -> Mapping[str, str]:
        """Return the hash of each input that an evaluation file names.

        Raises:
            ConfigError, OSError: The file is not an evaluation, or a bank is missing.
        """
        if file.path not in self._banks:
            self._banks[file.path] = file_hashes([file.path, *named_banks(file.path, self._base)])
        return self._banks[file.path]

    def files(self, cells: Iterable[Cell]) -> dict[str, str]:
        """Return the hash of each file that cells read, empty for checkpoints, which have only to be there."""
        hashes: dict[str, str] = {}
        for cell in cells:
            hashes |= self.evaluation(cell.evaluation)
            if cell.checkpoint.path is not None:
                hashes[str(cell.checkpoint.path)] = ""
        return hashes


def named_banks(path: Path, base: Path) -> list[Path]:
    """Return the banks that a TOML file of evaluations names; a Python file's are unknown before it runs.

    Raises:
        ConfigError: The file has a mistake, or a bank is not there.
    """
    if path.suffix != ".toml":
        return []
    banks = []
    for evaluation in read_toml(path).evaluations:
        if not evaluation.spec.is_interview or not (text := evaluation.spec.data.get("bank")):
            continue
        bank = find_input(str(text), [path.parent, base])
        if bank is None:
            raise ConfigError(f"{path}:{evaluation.line}: bank {text!r} not found; correct the path")
        banks.append(bank)
    return banks


def file_hashes(paths: Iterable[Path]) -> dict[str, str]:
    """Return the hash of each file's content, of a bank folder that of the files in it; empty for a missing one."""
    hashes = {}
    for path in paths:
        digest = hashlib.sha256()
        try:
            for file in sorted(file for file in path.iterdir() if file.is_file()) if path.is_dir() else [path]:
                digest.update(file.name.encode() + b"\0" + read_regular(file))
        except OSError:
            hashes[str(path)] = ""
        else:
            hashes[str(path)] = digest.hexdigest()
    return hashes


def startable(sweep: Sweep, signatures: Signatures, *, keep_going: bool) -> tuple[list[Cell], list[str]]:
    """Return the cells that can start, and a sentence on each reason why others cannot.

    Args:
        keep_going: Leave out what cannot start instead of refusing the sweep.

    Raises:
        ConfigError: Something cannot start, or nothing can.
    """
    complaints = list(sweep.missing)
    bad: set[EvaluationFile | SweptModel] = set()
    for evaluation in sweep.evaluations:
        try:
            signatures.evaluation(evaluation)
        except (AdaptiveEvalError, OSError) as error:
            complaints.append(str(error))
            bad.add(evaluation)
    for checkpoint in sweep.checkpoints:
        path = checkpoint.path
        if path is None or path.is_file():
            continue
        if not any((path / name).exists() for name in ("config.json", "snapshots")) and not list(path.glob("*.gguf")):
            complaints.append(f"checkpoint {path}: no config.json in it; complete or remove the folder")
            bad.add(checkpoint)
    cells = [cell for cell in sweep.cells if cell.evaluation not in bad and cell.checkpoint not in bad]
    if complaints and not (keep_going and cells):
        listed = "\n  ".join(complaints)
        advice = "" if not cells else "; or leave out such cells with --keep-going"
        raise ConfigError(f"{sweep.path}: cells that cannot start, and none was run{advice}:\n  {listed}")
    return cells, complaints


def fingerprint(cell: Cell, arguments: Sequence[str], signatures: Signatures) -> str:
    """Return the hash of everything known beforehand that a cell's result depends on."""
    parts = [
        __version__,
        cell.checkpoint.name if cell.checkpoint.path else cell.checkpoint.model,
        signatures.checkpoint(cell.checkpoint.path),
        sorted(signatures.evaluation(cell.evaluation).values()),
        cell.evaluation.argument.rpartition("::")[2] if "::" in cell.evaluation.argument else "",
        cell.seed,
        list(arguments),
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


def node_complaints(name: str, version: str | None, found: Mapping[str, str], expected: Mapping[str, str]) -> list[str]:
    """Return why a node cannot run cells, as sentences with its name.

    Args:
        version: Of this package on the node; None where it is not installed.
        found, expected: Hash of each file there and here, empty where it is missing.
    """
    if version is None:
        return [f"node {name}: pytest-adaptive-eval is not installed; install version {__version__} there"]
    if version != __version__:
        return [f"node {name}: it has pytest-adaptive-eval {version}, and here is {__version__}; install the same"]
    complaints = []
    for path, digest in expected.items():
        if not (there := found.get(path, "")):
            complaints.append(f"node {name}: there is no {path}; mount the folder there")
        elif digest and there != digest:
            complaints.append(f"node {name}: {path} differs from the one here; copy it again")
    return complaints
