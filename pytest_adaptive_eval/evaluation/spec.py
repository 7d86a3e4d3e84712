"""Evaluations as written, settings of a run, and the kinds of evaluations.

A kind is a module that offers an `EvaluationKind`: its settings, its metrics, the construction of its evaluations, and
its section of the page.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.evaluation.lines import Lines, at_key
from pytest_adaptive_eval.models import resolve
from pytest_adaptive_eval.registry import INTERVIEW, evaluation_services
from pytest_adaptive_eval.typed_tables import located, read_table

if TYPE_CHECKING:
    from pytest_adaptive_eval.cat.selection import Selector
    from pytest_adaptive_eval.items.bank import ItemBank
    from pytest_adaptive_eval.reports.sections import Section
    from pytest_adaptive_eval.tasks import TaskFamily

Loaders = Mapping[str, Callable[[], "EvaluationKind"]]  #: Functions that load kinds, by name.


@dataclass(frozen=True, slots=True)
class Settings:
    """Flags and ini settings, which apply to every evaluation; None leaves a setting to the evaluation.

    Args:
        root: Folder for relative paths that do not exist beside the file.
        folder: Folder of the journal and the records.
        fresh: Start every interview over, whatever the journal holds.
        record, junit: Additional files for the run's record and the gate report.
        baseline: File that gates call ``"baseline"``: a run's record, a history of runs, or recorded answers.
        missing_baseline: Action if the baseline does not exist yet.
        required_gates: Node ids, or ends of them, of gates without whose results nothing is promoted.
        reuse: Store of answers that runs share; None where every answer is asked for.
        names_reuse: Whether a flag names that store, or it is that of one's own machine.
        side_by_side: Models that evaluations of TOML files ask side by side.
        drift: What the run does where the level of an evaluation fell below that of earlier runs.
    """

    root: Path
    folder: Path
    model: str | None = None
    budget: str | None = None
    seed: int | None = None
    fresh: bool = False
    record: Path | None = None
    junit: Path | None = None
    graders: tuple[str, ...] = ()
    baseline: str | None = None
    missing_baseline: str = "warn"
    html: Path | None = None
    unsafe_code: bool = False
    model_options: Mapping[str, Any] = field(default_factory=dict)
    required_gates: tuple[str, ...] = ()
    reuse: Path | None = None
    models: Mapping[str, str] = field(default_factory=dict)
    names_reuse: bool = False
    side_by_side: tuple[str, ...] = ()
    drift: str | None = None


def _families() -> Mapping[str, TaskFamily]:
    from pytest_adaptive_eval.tasks import FAMILIES

    return FAMILIES


@dataclass(frozen=True, slots=True)
class Context:
    """Sources of an evaluation: folders of relative paths, in order, task families, banks and selectors.

    Args:
        read: Reads a bank.
        selector: Finds a selector by name.
    """

    folders: tuple[Path, ...] = ()
    tasks: Callable[[], Mapping[str, TaskFamily]] = _families
    read: Callable[[Path], ItemBank] = read_bank
    selector: Callable[[str], Selector | None] = SELECTORS.get


class EvaluationKind(NamedTuple):
    """A kind of evaluation.

    Args:
        table: Its settings.
        metrics: Metrics of gates, the default one first; None for all metrics of banks.
        build: Makes the evaluation, after a check of every setting.
        check: Raises a ConfigError for settings that contradict each other.
        section: Makes its section of the page; None for one with rankings alone.
    """

    table: type[Any]
    metrics: tuple[str, ...] | None
    build: Callable[[EvalSpec, Settings, Context], Any]
    check: Callable[[Any, Mapping[str, Any]], None] = lambda _table, _data: None
    section: Callable[[], Section] | None = None


@dataclass(frozen=True, slots=True)
class EvalSpec:
    """One evaluation as written by the user, an interview unless `kind` is another; paths are relative to `base`.

    Args:
        lines: Lines of its keys in a TOML file, whose line `where` then ends with.
        group, variant: Name of an evaluation of several models or prompts, and the one that this interview asks.
        series: Its name with the place or the given name of its model, the same for other checkpoints.

    Raises:
        ConfigError: A setting is unknown or has a wrong value, or two settings exclude each other.
    """

    data: Mapping[str, Any]
    where: str
    base: Path
    kind: EvaluationKind = field(default_factory=INTERVIEW.load)
    lines: Lines = field(default_factory=Lines, repr=False, compare=False)
    group: str = ""
    variant: str = ""
    series: str = ""
    table: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        written = {key: value for key, value in self.data.items() if key != "gate"}  # gates have lines of their own
        object.__setattr__(self, "table", read_table(self.kind.table, written, self.where))
        with located(self.where):
            if self.asks_items:
                object.__setattr__(self, "table", self.table.with_files(self.base))
            self.kind.check(self.table, written)

    @contextlib.contextmanager
    def located(self, key: str = "") -> Iterator[None]:
        """Begin the message of a `ConfigError` with the place of the key that it names, else of `key` or the table."""
        with at_key(self.where, self.lines, key), located(self.where):
            yield

    @property
    def asks_items(self) -> bool:
        """Whether a test asks the items, each as a test of its own."""
        return self.kind.metrics is None

    @property
    def name(self) -> str:
        """The evaluation's own name, else one that follows from its settings."""
        return str(self.table.default_name if self.table.name is None else self.table.name)

    @property
    def parameter_id(self) -> str:
        """Id of an interview's placeholder among a function's parameters."""
        return "aeval:" + re.sub(r"[^A-Za-z0-9._+-]+", "_", self.table.stem)

    def seed(self, settings: Settings) -> int:
        """Return the seed of the run, else of the file."""
        seed: int = self.table.seed if settings.seed is None else settings.seed
        return seed

    def model_options(self, model: str, here: Path, root: Path) -> Mapping[str, Any]:
        """Return the options that a model of the command line takes: the ones of a model of the same kind.

        A revision names the weights of one model, so no other one takes it.

        Args:
            here: Folder in which the run was started.
        """
        written = self.table.model
        options = self.table.model_options
        if written is None or not options:
            return {}
        kinds = []
        for text, folder in ((written, self.base), (model, root)):
            try:
                kinds.append(resolve(text, [here, folder])[0])
            except ConfigError:  # a model that only a hook knows, or a mistake that loading reports
                return {}
        if kinds[0] is not kinds[1]:
            return {}
        return {name: value for name, value in options.items() if name != "revision"}

    def build(self, settings: Settings, context: Context = Context()) -> Any:
        """Return the `Evaluation` of the kind, after a check of every setting.

        Raises:
            ConfigError, BankError: Anything that the user can correct.
        """
        with self.located():
            return self.kind.build(self, settings, replace(context, folders=(self.base, *context.folders)))


def evaluation_kinds() -> Loaders:
    """Return the loaders of the built-in kinds, and of kinds that packages register."""
    return {name: kind.load for name, kind in evaluation_services().items()}


def merge_kinds(
    provided: Iterable[Mapping[str, Callable[[], EvaluationKind]]],
) -> dict[str, Callable[[], EvaluationKind]]:
    """Return the loaders of several plugins by kind.

    Raises:
        ConfigError: Two plugins provide one kind.
    """
    kinds: dict[str, Callable[[], EvaluationKind]] = {}
    for loaders in provided:
        for name, load in loaders.items():
            if name in kinds:
                raise ConfigError(f"plugins provide the kind {name!r} more than once: rename one of them")
            kinds[name] = load
    return kinds
