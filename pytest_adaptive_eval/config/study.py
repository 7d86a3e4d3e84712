"""Evaluations that are no interview of one subject, as written in TOML: their kinds, their models, their gates.

A kind is a module that offers a `StudyKind`: what it may say, what it measures, and how a plan is made of it.  The
kinds are registered in `config.studies`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pytest_adaptive_eval.checks import check_keys
from pytest_adaptive_eval.config.evaluation import Settings
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.studies.result import STUDY_KINDS, StudyCondition

if TYPE_CHECKING:
    from pytest_adaptive_eval.items.bank import ItemBank
    from pytest_adaptive_eval.studies.result import StudyResult
    from pytest_adaptive_eval.subjects.agent import Agent
    from pytest_adaptive_eval.subjects.base import Subject
    from pytest_adaptive_eval.tasks import TaskFamily

__all__ = [
    "Around",
    "Member",
    "Progress",
    "StudyKind",
    "StudyPlan",
    "StudySpec",
    "loader",
    "members",
    "study_gate",
]

#: Takes how much is done, of how much, and what is done now.
Progress = Callable[[int, int, str], None]

_NUMBER = (int, float)
#: What a study of any kind may say.
_KEYS: Mapping[str, tuple[type, ...]] = {
    "kind": (str,),
    "name": (str,),
    "model": (str,),
    "model_options": (dict,),
    "memory": (int,),
    "seed": (int,),
    "gate": (list,),
}
_GATE_KEYS: Mapping[str, tuple[type, ...]] = {
    "metric": (str,),
    "subject": (str,),
    "at_least": _NUMBER,
    "rank_within": (int,),
    "above": (str,),
    "confidence": _NUMBER,
    "probability": _NUMBER,
    "on_inconclusive": (str,),
}
#: Options of a subject that an agent has not: its callers say how long a reply may be, and those in memory do not draw.
_OF_SUBJECTS, _OF_SUBJECTS_HERE = ("max_tokens", "batch_size"), ("temperature", "seed")


class StudyPlan(Protocol):
    """A study that is ready to be held."""

    @property
    def name(self) -> str:
        """Of the evaluation."""

    @property
    def candidate(self) -> str:
        """The subject that gates are about when they name no other."""

    @property
    def subjects(self) -> tuple[str, ...]:
        """All of them."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """What gates may be set on, the leading one first."""

    @property
    def roles(self) -> Sequence[tuple[Member, bool]]:
        """The models that take part, and whether each is asked as a subject; the others are agents."""

    @property
    def outlook(self) -> str:
        """Who takes part and about what it will cost, in a sentence."""

    def to_json(self) -> dict[str, Any]:
        """Return all that replies depend on, except the models.  A run with equal data continues an interrupted one."""

    def hold(self, replies: MutableMapping[str, str], progress: Progress) -> StudyResult:
        """Hold it, with replies that are known already; a fault of the run is an error."""

    def check(self, condition: StudyCondition) -> None:
        """Refuse a gate on what is not measured, with `ConfigError`."""

    def void(self, error: str) -> StudyResult:
        """Return the result of a study that could not run."""

    def restore(self, data: Mapping[str, Any]) -> StudyResult:
        """Restore a result of another process from its `StudyResult.to_json`."""


@dataclass(frozen=True, slots=True)
class Around:
    """What a study is made from besides what it says.

    Parameters
    ----------
    folders : tuple of Path
        What relative paths may be relative to, in order.
    tasks : callable
        Gives the task families by name.
    read : callable
        Gives the bank at a path.
    """

    folders: tuple[Path, ...]
    tasks: Callable[[], Mapping[str, TaskFamily]]
    read: Callable[[Path], ItemBank]


class StudyKind(NamedTuple):
    """A kind of study.

    Parameters
    ----------
    keys : mapping
        What it may say besides what all may, and the types.
    metrics : tuple of str
    build : callable
        Makes the plan from what was written, the settings, and what is around.
    """

    keys: Mapping[str, tuple[type, ...]]
    metrics: tuple[str, ...]
    build: Callable[[StudySpec, Settings, Around], StudyPlan]


@dataclass(frozen=True, slots=True)
class StudySpec:
    """One study as written by the user.

    Parameters
    ----------
    data : mapping
    where : str
        File and line, for errors.
    base : Path
        Folder of the file.
    kind : StudyKind
        How such a study is made.

    Raises
    ------
    ConfigError
        A key is not known, or a value has another type than expected.
    """

    data: Mapping[str, Any]
    where: str
    base: Path
    kind: StudyKind

    def __post_init__(self) -> None:
        check_keys(self.data, {**_KEYS, **self.kind.keys}, self.where)
        if "model_options" in self.data and "model" not in self.data:
            raise ConfigError(f"{self.where}: model_options goes with a model, and there is none")

    @property
    def name(self) -> str:
        """The evaluation's name: its own, else its kind."""
        return str(self.data.get("name", self.data["kind"]))

    def build(self, settings: Settings, context: Around) -> StudyPlan:
        """Check every setting, and find the models that it names.

        Parameters
        ----------
        settings : Settings
        context : Around
            Its folders besides that of the file.

        Raises
        ------
        ConfigError
            Anything that the user can mend.
        """
        try:
            seed = self.data.get("seed", 0)
            if seed < 0:
                raise ConfigError(f"the seed is {seed}, expected a whole number of at least 0")
            return self.kind.build(self, settings, replace(context, folders=(self.base, *context.folders)))
        except ConfigError as error:
            text = str(error)
            raise ConfigError(text if text.startswith(self.where) else f"{self.where}: {text}") from None


@dataclass(frozen=True, slots=True)
class Member:
    """A model that takes part.

    Parameters
    ----------
    name : str
        Unique in its study.
    spec : str
        A checkpoint folder, as it is found, or ``http://HOST:PORT/v1#MODEL``.
    options : mapping
        How it is loaded or reached.
    """

    name: str
    spec: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def remote(self) -> bool:
        """Whether it is behind a server and holds no memory here."""
        return self.spec.startswith(_endpoints())


def _endpoints() -> tuple[str, ...]:
    from pytest_adaptive_eval.subjects import ENDPOINT

    return ENDPOINT


def members(spec: StudySpec, settings: Settings, others: Sequence[Any], folders: Sequence[Path]) -> list[Member]:
    """Return the candidate, which `settings` may name, and the other members of a study.

    Parameters
    ----------
    spec : StudySpec
    settings : Settings
    others : sequence
        Specs, or dicts with ``model`` and perhaps ``name`` and ``options``.
    folders : sequence of Path
        What relative paths may be relative to, in order: that of the file first, which for a model on the command line
        is the last.

    Raises
    ------
    ConfigError
        There is no candidate, two have one name, or one is neither a folder that is there nor on a server.
    """
    if settings.model is not None:
        options = {name: value for name, value in settings.model_options.items() if name not in _OF_SUBJECTS}
        if not settings.model.startswith(_endpoints()):
            options = {name: value for name, value in options.items() if name not in _OF_SUBJECTS_HERE}
        candidate = _member({"model": settings.model, "options": options}, (*folders[1:], *folders[:1]))
    elif "model" in spec.data:
        candidate = _member({"model": spec.data["model"], "options": spec.data.get("model_options", {})}, folders)
    else:
        raise ConfigError("there is no candidate: name one with --adaptive-eval-model, or in this file (model = ...)")
    models = [candidate, *(_member(entry, folders) for entry in others)]
    names = [member.name for member in models]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(
                f'{names.count(name)} models are called {name!r}: give them names, {{ name = "...", model = "..." }}'
            )
    return models


def _member(entry: Any, folders: Sequence[Path]) -> Member:
    data: Any = {"model": entry} if isinstance(entry, str) else entry
    if not isinstance(data, Mapping) or not isinstance(data.get("model"), str) or not data["model"].strip():
        raise ConfigError(f'{entry!r} is no model: write "FOLDER", "http://HOST:PORT/v1#MODEL" or {{ model = ... }}')
    keys: Mapping[str, tuple[type, ...]] = {"name": (str,), "model": (str,), "options": (dict,)}
    check_keys(data, keys, f"the model {str(data['model']).rpartition('@')[2]!r}")
    spec: str = data["model"]
    options: Mapping[str, Any] = data.get("options", {})
    if spec.startswith(_endpoints()):
        name = spec.partition("#")[2].strip()
        if not name:
            raise ConfigError(f"{spec.rpartition('@')[2]!r} names no model: write http://HOST:PORT/v1#MODEL")
    else:
        path = Path(spec).expanduser()
        checkpoint = next((folder / path for folder in folders if (folder / path).is_dir()), None)
        if checkpoint is None:
            raise ConfigError(
                f"the model {spec!r} is no folder here: expected an existing checkpoint folder (nothing is downloaded) "
                "or http://HOST:PORT/v1#MODEL"
            )
        name, spec = checkpoint.resolve().name, str(checkpoint)
    member_name: str = data.get("name", name)
    if not member_name.strip():
        raise ConfigError(f"the model {spec.rpartition('@')[2]!r} has an empty name")
    return Member(member_name, spec, options)


def loader(member: Member, cache: Path, subject: bool = False) -> Callable[[], Agent | Subject]:
    """Return a function that loads a model of a study, as an agent or as a subject.

    Parameters
    ----------
    member : Member
    cache : Path
        Where hashes of checkpoints are kept.
    subject : bool
    """
    from pytest_adaptive_eval.subjects import load_agent, load_subject

    more = {**({} if member.remote else {"cache": cache}), **member.options}
    return partial(load_subject if subject else load_agent, member.spec, **more)


def study_gate(data: Any, where: str, metrics: tuple[str, ...]) -> StudyCondition:
    """Parse one ``[[eval.gate]]`` of a study; the metric ``rank`` is the rank by the first metric.

    Raises
    ------
    ConfigError
        Names file and line, and what to write.
    """
    if not isinstance(data, dict):
        raise ConfigError(f"{where}: a gate is written [[eval.gate]] with metric and at_least")
    check_keys(data, _GATE_KEYS, where)
    kinds = [kind for kind in STUDY_KINDS if kind in data]
    if len(kinds) != 1:
        written = " and ".join(kinds) or "none"
        raise ConfigError(f"{where}: a gate has one condition of {', '.join(STUDY_KINDS)}; found {written}")
    (kind,) = kinds
    metric = data.get("metric", metrics[0])
    if metric == "rank":
        if kind == "at_least":
            raise ConfigError(f"{where}: a rank has no at_least: write rank_within = 2")
        metric = metrics[0]
    if metric not in metrics:
        raise ConfigError(f"{where}: metric {metric!r} is not known; use {', '.join(metrics)} or rank")
    unfit = "probability" if kind == "at_least" else "confidence"
    if unfit in data:
        raise ConfigError(f"{where}: {unfit} does not go with {kind}")
    more: dict[str, Any] = {name: float(data[name]) for name in ("confidence", "probability") if name in data}
    more |= {name: data[name] for name in ("subject", "on_inconclusive") if name in data}
    try:
        return StudyCondition(metric, kind, **more, **{"name" if kind == "above" else "value": data[kind]})
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
