"""The file of a sweep: its keys, and the cells that they name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.evaluation.toml import parse_toml
from pytest_adaptive_eval.extensions.sweeps.cells import Cell, EvaluationFile, SweptModel
from pytest_adaptive_eval.models import resolve
from pytest_adaptive_eval.text import shown_address
from pytest_adaptive_eval.typed_tables import Count, Index, Size, Table, described, read_table

_GLOB = re.compile(r"[*?\[]")
_REPLAY = "replay:"
#: Ends of the names of files with evaluations, which a name in the matrix leaves out.
_SUFFIXES = (".eval.toml", ".toml", ".py")


class ResourceTable(Table, frozen=True, kw_only=True):
    """``[resources]`` of a sweep: what each cell takes."""

    gpus: Annotated[Index, described("GPUs of a cell")] = 0
    cpus: Annotated[Count, described("cores of a cell")] = 1
    memory: Annotated[Size, described("GiB of main memory that a cell takes; it is reserved, not limited")] = 0.0


class SweepTable(Table, frozen=True, kw_only=True):
    """A sweep file."""

    checkpoints: Annotated[
        tuple[str, ...], described("folders, replay:FILE or URL#MODEL; patterns such as runs/step-*")
    ] = ()
    evaluations: Annotated[tuple[str, ...], described("files with evaluations, TOML or Python; patterns")] = ()
    seeds: Annotated[tuple[Index, ...], described("seeds; each makes its own cell")] = (0,)
    folder: Annotated[str, described("results of the sweep; a folder that all nodes see")] = ".adaptive-eval-sweep"
    arguments: Annotated[tuple[str, ...], described("further arguments of each pytest command")] = ()
    retries: Annotated[Index, described("times that a cell is run again whose process, worker or node died")] = 3
    resources: Annotated[ResourceTable, described("what each cell takes")] = ResourceTable()


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep, as read from its file.

    Args:
        checkpoints: In the order of their numbers.
        missing: Sentences on checkpoints and evaluations that are not there.
    """

    path: Path
    table: SweepTable
    checkpoints: tuple[SweptModel, ...]
    evaluations: tuple[EvaluationFile, ...]
    folder: Path
    missing: tuple[str, ...] = ()

    @property
    def base(self) -> Path:
        """Folder in which the commands run."""
        return self.path.parent

    @property
    def cells(self) -> list[Cell]:
        """All cells, checkpoint by checkpoint."""
        return [
            Cell(checkpoint, evaluation, seed)
            for checkpoint in self.checkpoints
            for evaluation in self.evaluations
            for seed in dict.fromkeys(self.table.seeds)
        ]


def read_sweep(path: Path) -> Sweep:
    """Read a sweep file.

    Raises:
        ConfigError: The file cannot be read, has unknown keys or values of a wrong type, or names no cell.
    """
    table = read_table(SweepTable, parse_toml(path)[1], str(path))
    for key, example in (
        ("checkpoints", '["runs/step-*"]'),
        ("evaluations", '["evals/*.eval.toml"]'),
        ("seeds", "[0]"),
    ):
        if not getattr(table, key):
            raise ConfigError(f"{path}: {key} is empty; write {key} = {example}")
    path = path.resolve()
    missing: list[str] = []
    checkpoints = _unique([c for text in table.checkpoints for c in _checkpoints(text, path.parent, missing)])
    evaluations = _evaluations(table.evaluations, path.parent, missing)
    return Sweep(path, table, tuple(checkpoints), tuple(evaluations), path.parent / table.folder, tuple(missing))


def natural(text: str) -> list[tuple[int, int | str]]:
    """Return a sort key by which step-9 comes before step-10."""
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in re.split(r"(\d+)", text) if part]


def _checkpoints(text: str, base: Path, missing: list[str]) -> Iterator[SweptModel]:
    """Yield the checkpoints of one text, or add a sentence to `missing`."""
    prefix = _REPLAY if text.startswith(_REPLAY) else ""
    file, _, row = text.removeprefix(prefix).partition("#") if prefix else (text, "", "")
    if "://" not in text and _GLOB.search(file):
        matches = sorted(_matches(base, file), key=lambda path: natural(str(path)))
        paths = [path for path in matches if path.is_file() == bool(prefix)]
        if not paths:
            sought = "recorded answers" if prefix else "checkpoint folder"
            missing.append(
                f"checkpoints {shown_address(text)!r}: no {sought} matches it in {base}; correct the pattern"
            )
        yield from (_at_path(prefix, path, row) for path in paths)
        return
    try:
        kind, located = resolve(text, [base])
    except ConfigError as error:
        missing.append(f"checkpoints {shown_address(text)!r}: {error}")
        return
    if prefix:
        path = Path(file if Path(file).is_absolute() else base / file)
        if not path.is_file():
            missing.append(f"checkpoints {shown_address(text)!r}: file {path} not found; correct the path")
            return
        yield _at_path(prefix, path, row)
    elif Path(located).is_dir():
        yield SweptModel(Path(located).resolve().name, str(Path(located).absolute()), Path(located).absolute())
    else:
        yield SweptModel(kind.label(located), located, None)


def _at_path(prefix: str, path: Path, row: str) -> SweptModel:
    """Return the checkpoint at a path, or one row of the recorded answers there."""
    return SweptModel(
        row or re.sub(r"\.(jsonl|csv|csv\.gz)$", "", path.name), f"{prefix}{path}" + (f"#{row}" if row else ""), path
    )


def _matches(base: Path, pattern: str) -> list[Path]:
    path = Path(pattern).expanduser()
    if not path.is_absolute():
        return list(base.glob(pattern))
    return list(Path(path.anchor).glob(str(path.relative_to(path.anchor))))


def _unique(checkpoints: Sequence[SweptModel]) -> list[SweptModel]:
    """Return each checkpoint once; equal names get as much of their paths as makes them distinct."""
    once = list({checkpoint.model: checkpoint for checkpoint in checkpoints}.values())
    for depth in range(2, 6):
        counts = Counter(checkpoint.name for checkpoint in once)
        if max(counts.values(), default=1) == 1:
            break
        once = [
            replace(c, name="/".join(c.path.parts[-depth:])) if counts[c.name] > 1 and c.path is not None else c
            for c in once
        ]
    counts = Counter(checkpoint.name for checkpoint in once)
    return [replace(c, name=c.model) if counts[c.name] > 1 else c for c in once]


def _evaluations(texts: Sequence[str], base: Path, missing: list[str]) -> list[EvaluationFile]:
    files: dict[str, Path] = {}
    for text in texts:
        pattern, colons, test = text.partition("::")
        paths = sorted(path for path in _matches(base, pattern) if path.is_file())
        if not paths:
            missing.append(f"evaluations {text!r}: no file matches it in {base}; correct the path")
        files |= {f"{path}{colons}{test}": path for path in paths}
    stems: dict[str, str] = {}
    for argument, path in files.items():
        suffix = next((suffix for suffix in _SUFFIXES if path.name.endswith(suffix)), "")
        stems[argument] = path.name.removesuffix(suffix) + argument.removeprefix(str(path))
    counts = Counter(stems.values())
    return [
        EvaluationFile(stem if counts[stem] == 1 else argument.removeprefix(f"{base}/"), argument, files[argument])
        for argument, stem in stems.items()
    ]
