"""Settings, and the assembly of an evaluation from them: one place for plugin and command line."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.core.bank import ItemBank
from pytest_adaptive_eval.core.conditions import KINDS, Condition
from pytest_adaptive_eval.core.estimation import ESTIMATORS
from pytest_adaptive_eval.core.selection import Selector
from pytest_adaptive_eval.core.selectors import SELECTORS
from pytest_adaptive_eval.core.session import FIXED_FORM, POLICIES, Policy
from pytest_adaptive_eval.errors import BankError, ConfigError

if TYPE_CHECKING:
    from pytest_adaptive_eval.core.record import RunRecord
    from pytest_adaptive_eval.models.base import Subject

__all__ = [
    "EVAL_KEYS",
    "EvalSpec",
    "Evaluation",
    "GateSpec",
    "Settings",
    "TomlEval",
    "bank_notes",
    "load_model",
    "read_toml",
    "recorded_banks",
]


@dataclass(frozen=True, slots=True)
class Settings:
    """What flags and ini settings say for every evaluation; None leaves it to the evaluation.

    Parameters
    ----------
    root : Path
        Folder that relative paths fall back to.
    folder : Path
        Where the journal and the records live.
    model : str or None
        Text that names the subject.
    budget : str or None
    seed : int or None
    fresh : bool
        Start every interview anew, whatever the journal holds.
    record, junit : Path or None
        Where to write the run's record and the gate report besides.
    graders : tuple of str
        Modules that the user trusts to grade.
    baseline : str or None
        What gates call ``"baseline"``: a run's record, a history of runs, or
        recorded answers.
    missing_baseline : {"warn", "record", "fail"}
        What happens where there is none yet.
    html : Path or None
        Where to write the report for people.
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


_NUMBER = (int, float)
#: What one evaluation may say, in a marker or in TOML, and the types it takes.
EVAL_KEYS: Mapping[str, tuple[type, ...]] = {
    "bank": (str,),
    "category": (str,),
    "name": (str,),
    "policy": (str,),
    "selector": (str,),
    "floor": _NUMBER,
    "budget": (int, str),
    "standard_error": _NUMBER,
    "batch": (int,),
    "estimator": (str,),
    "seed": (int,),
    "stop": (str,),
}
_TOML_KEYS = {**EVAL_KEYS, "kind": (str,), "model": (str,), "gate": (list,)}
_GATE_KEYS: Mapping[str, tuple[type, ...]] = {
    "metric": (str,),
    "at_least": _NUMBER,
    "not_worse_than": (str,),
    "margin": _NUMBER,
    "rank_within": (int,),
    "above": (str,),
    "confidence": _NUMBER,
    "probability": _NUMBER,
    "on_inconclusive": (str,),
    "method": (str,),
}


def _check(data: Mapping[str, Any], keys: Mapping[str, tuple[type, ...]], where: str) -> None:
    for name, value in data.items():
        if name not in keys:
            raise ConfigError(f"{where}: unknown setting {name!r}; known are {', '.join(keys)}")
        if not isinstance(value, keys[name]) or isinstance(value, bool):
            expected = " or ".join(kind.__name__ for kind in keys[name])
            hint = ' (a share is written in quotes: "15%")' if name == "budget" else ""
            raise ConfigError(f"{where}: {name} is {value!r}, expected {expected}{hint}")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A bank, a policy and a seed, ready for a `Session`.

    Parameters
    ----------
    name : str
    bank : ItemBank
    policy : Policy
    seed : int
        As the user set it; recorded.
    stream : int
        Seed of this evaluation's own draws, from `seed` and `name`.
    budget : int
        Administrations.
    notes : tuple of str
        What a reader of any verdict must know.
    path : Path or None
        Of the bank.
    """

    name: str
    bank: ItemBank
    policy: Policy
    seed: int
    stream: int
    budget: int
    notes: tuple[str, ...] = ()
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class EvalSpec:
    """One evaluation as written by the user.

    Parameters
    ----------
    data : mapping
        Settings by name, see `EVAL_KEYS`.
    where : str
        File and line, for errors.
    base : Path
        Folder that the bank's path is relative to.
    """

    data: Mapping[str, Any]
    where: str
    base: Path

    def __post_init__(self) -> None:
        _check(self.data, EVAL_KEYS, self.where)
        if not self.data.get("bank"):
            raise ConfigError(f'{self.where}: bank is missing; name a bank folder or a JSONL of items: bank="my.bank"')

    @property
    def bank_stem(self) -> str:
        """The bank's file name without its suffixes."""
        stem = Path(str(self.data["bank"])).name
        for suffix in (".bank", ".jsonl", ".items"):
            stem = stem.removesuffix(suffix)
        return stem

    @property
    def name(self) -> str:
        """The evaluation's name: its own, else the bank's stem, with the category."""
        category = self.data.get("category")
        return str(self.data.get("name", f"{self.bank_stem}-{category}" if category else self.bank_stem))

    @property
    def parameter_id(self) -> str:
        """Id of the placeholder among a function's parameters."""
        return "aeval:" + re.sub(r"[^A-Za-z0-9._+-]+", "_", self.bank_stem)

    def build(
        self,
        settings: Settings,
        *,
        read: Callable[[Path], ItemBank] | None = None,
        selector: Callable[[str], Selector | None] = SELECTORS.get,
    ) -> Evaluation:
        """Read the bank and check every setting against it.

        Parameters
        ----------
        settings : Settings
        read : callable, optional
            Gives the bank at a path.
        selector : callable, optional
            Gives selectors that are not built in, by name.

        Raises
        ------
        ConfigError, BankError
            Anything the user can mend.
        """
        try:
            path = self._bank_path(settings.root)
            bank = read(path) if read else read_bank(path, graders=settings.graders)
            if "category" in self.data:
                bank = bank.only(self.data["category"])
            policy = self._policy(settings, bank, selector)
            budget = policy.budget_on(bank)
            if (seed := self.data.get("seed", 0)) < 0:
                raise ConfigError(f"the seed is {seed}, expected a whole number of at least 0")
        except ConfigError as error:
            text = str(error)
            raise ConfigError(text if text.startswith(self.where) else f"{self.where}: {text}") from None
        fixed = self.data.get("policy") == FIXED_FORM
        seed = settings.seed if settings.seed is not None and not fixed else seed
        stream = int.from_bytes(hashlib.sha256(f"{seed}:{self.name}".encode()).digest()[:8])
        if bank.report.get("textless"):
            raise ConfigError(
                f"{self.where}: the bank {path} was calibrated without texts, so there is nothing to ask: calibrate it "
                "with --items ITEMS.jsonl"
            )
        notes = bank_notes(bank)
        if fixed:
            notes.insert(0, "a fixed form, drawn once: every checkpoint gets the same items, and shares their luck")
        return Evaluation(self.name, bank, policy, seed, stream, budget, tuple(notes), path)

    def _bank_path(self, root: Path) -> Path:
        written = Path(self.data["bank"]).expanduser()
        for base in (self.base, root):
            if (base / written).exists():
                return base / written
        tried = dict.fromkeys(str(base / written) for base in (self.base, root))
        raise ConfigError(
            f"{self.where}: there is no bank at {' or '.join(tried)}: give a folder NAME.bank or a JSONL file of items"
        )

    def _policy(self, settings: Settings, bank: ItemBank, more: Callable[[str], Selector | None]) -> Policy:
        data = self.data
        name = data.get("policy", "decide")
        if name not in POLICIES:
            raise ConfigError(f"{self.where}: policy {name!r} is not known; use {', '.join(POLICIES)}")
        policy = POLICIES[name]
        if not bank.calibrated and "selector" not in data:
            policy = replace(policy, selector=SELECTORS["random"])
        changes: dict[str, Any] = {
            k: data[k] for k in ("floor", "standard_error", "batch", "budget", "stop") if k in data
        }
        if name == FIXED_FORM and (own := [k for k in ("selector", "floor", "stop", "standard_error") if k in data]):
            raise ConfigError(f"{self.where}: a fixed form is drawn uniformly and asked in full: remove {own[0]}")
        if "selector" in data:
            chosen = SELECTORS.get(data["selector"]) or more(data["selector"])
            if chosen is None:
                raise ConfigError(
                    f"{self.where}: selector {data['selector']!r} is not known; use {', '.join(SELECTORS)} or install "
                    "a plugin that provides it"
                )
            changes["selector"] = chosen
        if "estimator" in data:
            if data["estimator"] not in ESTIMATORS:
                raise ConfigError(
                    f"{self.where}: estimator {data['estimator']!r} is not known; use {', '.join(ESTIMATORS)}"
                )
            changes["estimator"] = ESTIMATORS[data["estimator"]]()
        if settings.budget is not None:
            changes["budget"] = settings.budget
        return replace(policy, **changes)


def bank_notes(bank: ItemBank) -> list[str]:
    """What a reader of any verdict must know of its bank."""
    if not bank.calibrated:
        return ["uncalibrated bank, uniform draws"]
    if bank.report.get("trusted") is False:
        return ["the bank failed its quality checks and was written by force"]
    return []


@dataclass(frozen=True, slots=True)
class GateSpec:
    """One ``[[eval.gate]]``.

    Parameters
    ----------
    condition : Condition
    line : int
        In the file, from 1.
    """

    condition: Condition
    line: int = 0

    @property
    def name(self) -> str:
        """As the test is called."""
        return self.condition.label


@dataclass(frozen=True, slots=True)
class TomlEval:
    """One ``[[eval]]`` of a TOML file, with its gates."""

    spec: EvalSpec
    model: str | None
    gates: tuple[GateSpec, ...] = field(default=())
    line: int = 0


def _lines(text: str) -> list[tuple[str, int]]:
    """Headers ``[[eval]]`` and ``[[eval.gate]]`` with their lines, since the parser tells none."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        head = line.split("#")[0].replace(" ", "").strip()
        if head in ("[[eval]]", "[[eval.gate]]"):
            found.append((head, number))
    return found


def read_toml(path: Path) -> list[TomlEval]:
    """The evaluations of ``adaptive-eval.toml`` or ``*.eval.toml``.

    Raises
    ------
    ConfigError
        Not TOML, unknown keys, wrong types, two evaluations of one name, or none.
    """
    import tomllib  # only where there is a file to read: it takes as long to load as a small bank

    try:
        text = path.read_text(encoding="utf-8")
        data = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: not readable as TOML: {error}") from None
    if unknown := sorted(set(data) - {"eval"}):
        raise ConfigError(f"{path}: unknown table {unknown[0]!r}; evaluations stand under [[eval]]")
    tables = data.get("eval")
    if not isinstance(tables, list) or not tables or not all(isinstance(t, dict) for t in tables):
        raise ConfigError(f"{path}: no evaluation; write [[eval]] (in double brackets) with a bank")
    heads = _lines(text)
    eval_lines = [line for head, line in heads if head == "[[eval]]"]
    gate_lines = iter([line for head, line in heads if head == "[[eval.gate]]"])
    out: list[TomlEval] = []
    for number, table in enumerate(tables):
        line = eval_lines[number] if number < len(eval_lines) else 0
        where = f"{path}:{line}"
        _check(table, _TOML_KEYS, where)
        if table.get("kind", "bank") != "bank":
            raise ConfigError(f"{where}: kind {table['kind']!r} is not known; use 'bank'")
        gates = tuple(_gate(gate, path, next(gate_lines, line)) for gate in table.get("gate", []))
        spec = EvalSpec({k: v for k, v in table.items() if k in EVAL_KEYS}, where, path.parent)
        if any(character in spec.name for character in "[]") or "::" in spec.name or not spec.name.strip():
            raise ConfigError(f"{where}: name {spec.name!r} cannot name a test: leave out '::' and square brackets")
        if any(other.spec.name == spec.name for other in out):
            raise ConfigError(f"{where}: two evaluations of the name {spec.name!r}; give one a name of its own")
        names = [gate.name for gate in gates]
        if len(set(names)) < len(names):
            raise ConfigError(f"{where}: two gates of {spec.name!r} are the same")
        out.append(TomlEval(spec, table.get("model"), gates, line))
    return out


def _gate(data: Any, path: Path, line: int) -> GateSpec:
    where = f"{path}:{line}"
    if not isinstance(data, dict):
        raise ConfigError(f"{where}: a gate is written [[eval.gate]] with metric and at_least")
    _check(data, _GATE_KEYS, where)
    kinds = [kind for kind in KINDS if kind in data]
    if len(kinds) != 1:
        found = " and ".join(kinds) or "none"
        raise ConfigError(
            f"{where}: a gate has one condition of {', '.join(KINDS)}; found {found}: write at_least = 0.6"
        )
    (kind,) = kinds
    if (kind == "not_worse_than") != ("margin" in data):
        raise ConfigError(f"{where}: not_worse_than and margin go together: margin = 0.02 allows a loss of 2 points")
    more: dict[str, Any] = {k: data[k] for k in ("on_inconclusive", "method") if k in data}
    for name, kinds_of in (("confidence", ("at_least", "not_worse_than")), ("probability", ("rank_within", "above"))):
        if name in data:
            if kind not in kinds_of:
                raise ConfigError(f"{where}: {name} does not go with {kind}; it goes with {' and '.join(kinds_of)}")
            more[name] = float(data[name])
    if kind == "not_worse_than":
        more |= {"value": float(data["margin"]), "name": data[kind]}
    else:
        more["name" if kind == "above" else "value"] = data[kind]
    try:
        return GateSpec(Condition(data.get("metric", "accuracy"), kind, **more), line)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def load_model(spec: str, folders: Sequence[Path], cache: Path) -> Subject:
    """The subject that a text names.

    Parameters
    ----------
    spec : str
        A checkpoint folder, or ``replay:FILE[#NAME]``.
    folders : sequence of Path
        What a relative path may be relative to, in order.
    cache : Path
        Where checkpoint hashes are kept.

    Raises
    ------
    ConfigError, CheckpointError
        No such folder, or one that cannot be loaded safely.
    """
    from pytest_adaptive_eval.models import REPLAY, load_subject

    kind = REPLAY if spec.startswith(REPLAY) else ""
    path = spec.removeprefix(kind)
    whole = path.rpartition("#")[0] if kind and "#" in path else path
    folder = next((f for f in folders if (f / whole).exists() or (f / path).exists()), None)
    found = spec if folder is None else f"{kind}{folder / path}"
    return load_subject(found) if kind else load_subject(found, cache=cache)


def recorded_banks(
    record: RunRecord, folders: Sequence[Path], paths: Mapping[str, Path] | None = None, graders: Sequence[str] = ()
) -> dict[str, ItemBank]:
    """The banks of a record's interviews that are at hand.

    Parameters
    ----------
    record : RunRecord
    folders : sequence of Path
        What the paths in the record may be relative to, in order.
    paths : mapping, optional
        Where the bank of an evaluation is now, by the evaluation's name.
    graders : sequence of str
        Modules whose functions may grade.

    Returns
    -------
    dict of str to ItemBank
        By the evaluation's name; one whose bank is gone is left out.

    Raises
    ------
    BankError
        A bank that `paths` names cannot be read.
    """
    found: dict[str, ItemBank] = {}
    for interview in record.interviews:
        if (given := (paths or {}).get(interview.name)) is not None:
            found[interview.name] = read_bank(given, graders=graders)
            continue
        written = str(interview.bank.get("path") or "")
        place = next((folder / written for folder in folders if written and (folder / written).exists()), None)
        if place is not None:
            with suppress(BankError, OSError):  # shown without its texts
                found[interview.name] = read_bank(place, graders=graders)
    return found
