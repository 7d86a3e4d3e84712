"""Settings of a run, and the assembly of an evaluation from what the user wrote."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.cat.selection import MODES, Selector
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.cat.session import FIXED_FORM, POLICIES, Policy
from pytest_adaptive_eval.cat.stopping import repeats
from pytest_adaptive_eval.checks import check_count, check_keys
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.inputs import find_input
from pytest_adaptive_eval.irt.estimation import ESTIMATORS
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.ladder.policy import LADDER, LADDER_POLICY, AdaptiveClimb, Climb

if TYPE_CHECKING:
    from pytest_adaptive_eval.tasks import TaskFamily

__all__ = ["EVAL_KEYS", "EvalSpec", "Evaluation", "Settings", "bank_notes"]


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
    unsafe_code : bool
        Run code that a model wrote without a sandbox.
    model_options : mapping
        How the subject is loaded or reached.
    required_gates : tuple of str
        Node ids, or ends of them, of gates without whose results nothing is promoted.
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


#: The selector that is led by an interviewer.
AUTOJUDGER = "autojudger"
_NUMBER = (int, float)
#: What one evaluation may say, in a marker or in TOML, and the types it takes.
EVAL_KEYS: Mapping[str, tuple[type, ...]] = {
    "bank": (str,),
    "task": (str,),
    "levels": (int,),
    "queries": (int,),
    "stop_at": _NUMBER,
    "settle": (bool,),
    "width": _NUMBER,
    "scale": (str,),
    "category": (str,),
    "values": (str,),
    "formats": (str, list, tuple),
    "name": (str,),
    "policy": (str,),
    "selector": (str,),
    "interview": (dict,),
    "floor": _NUMBER,
    "budget": (int, str),
    "standard_error": _NUMBER,
    "batch": (int,),
    "estimator": (str,),
    "seed": (int,),
    "stop": (str,),
    "samples": (int,),
    "repeat": (int, str),
}
_TASK_KEYS = ("levels", "queries", "stop_at", "settle", "width", "scale")
#: Of which those that only a climb has.
_CLIMB_KEYS = ("stop_at", "settle", "width")
#: Questions a level: of a climb, as MACEval asks them, and of a population that is drawn from.
_QUERIES, _POPULATION = 10, 50


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
    lead : str
        Who leads the interview and by what embeddings, where someone does.
    samples : int
        Times that each item is put to the subject; its score is the mean.
    repeat : int, str or None
        Items that are asked again at the end, to measure the noise of decoding: a count, or a share of those asked.
        None until it is known who answers, where the user sets nothing; see `for_subject` and `stopping.repeats`.
    interviewer : tuple or None
        Spec and options of the model that leads the interview; None where no model does.
    """

    name: str
    bank: ItemBank
    policy: Policy
    seed: int
    stream: int
    budget: int
    notes: tuple[str, ...] = ()
    path: Path | None = None
    lead: str = ""
    samples: int = 1
    repeat: int | str | None = 0
    interviewer: tuple[str, Mapping[str, Any]] | None = None

    @property
    def allows_for_noise(self) -> bool:
        """Whether intervals of this policy can allow for the noise of decoding.

        A ladder takes the questions of a level as draws from the task, and the luck of decoding with them; of other
        policies without an interval by the draws no verdict depends on it.
        """
        return self.policy.levelled is None and not self.policy.design_based

    def for_subject(self, *, samples: bool) -> Evaluation:
        """Return the evaluation of a subject whose decoding samples, or does not."""
        return self if samples or self.repeat is not None else replace(self, repeat=0)

    @property
    def questions(self) -> int:
        """Questions at most: samples and repeats of the items in the budget."""
        return self.budget * self.samples + repeats(self.repeat, self.budget)

    @property
    def decodings(self) -> int:
        """Answers that a score is the mean of, where the noise of decoding is measured; else 0."""
        return self.samples if self.questions > self.budget else 0


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
        check_keys(self.data, EVAL_KEYS, self.where)
        if not self.data.get("bank") and not self.data.get("task"):
            raise ConfigError(
                f'{self.where}: bank is missing; name a bank folder or a JSONL of items: bank="my.bank", or a task '
                'that is generated: task="addition"'
            )
        if conflicts := [
            key for key in ("bank", "category", "values", "formats") if key in self.data and "task" in self.data
        ]:
            raise ConfigError(f"{self.where}: {conflicts[0]} and task exclude each other: remove one of them")
        if conflicts := [key for key in _TASK_KEYS if key in self.data and "task" not in self.data]:
            raise ConfigError(f"{self.where}: {conflicts[0]} goes with a task, and there is none")

    @property
    def bank_stem(self) -> str:
        """The task, or the bank's file name without its suffixes."""
        if "task" in self.data:
            return str(self.data["task"])
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
        tasks: Callable[[], Mapping[str, TaskFamily]] | None = None,
    ) -> Evaluation:
        """Read the bank and check every setting against it.

        Parameters
        ----------
        settings : Settings
        read : callable, optional
            Gives the bank at a path.
        selector : callable, optional
            Gives selectors that are not built in, by name.
        tasks : callable, optional
            Gives the task families by name; those that are built in when omitted.

        Raises
        ------
        ConfigError, BankError
            Anything the user can mend.
        """
        try:
            if (seed := self.data.get("seed", 0)) < 0:
                raise ConfigError(f"the seed is {seed}, expected a whole number of at least 0")
            path = None
            if "task" in self.data:
                bank = self._task(settings, seed if settings.seed is None else settings.seed, tasks)
            else:
                path = self._bank_path("bank", settings.root)
                bank = read(path) if read else read_bank(path, graders=settings.graders)
            if "category" in self.data:
                bank = bank.only(self.data["category"])
            if "values" in self.data:
                from pytest_adaptive_eval.tasks.twin import twin_bank

                bank = twin_bank(bank, self.data["values"], seed if settings.seed is None else settings.seed)
            if "formats" in self.data:
                from pytest_adaptive_eval.items.modalities import asked_in_formats

                bank = asked_in_formats(bank, self.data["formats"])
            lead, interviewer = "", None
            if self.data.get("selector") == AUTOJUDGER:
                led, interviewer, lead = self._interviewer(settings, bank)
                selector = {AUTOJUDGER: led}.get
            policy = self._policy(settings, bank, selector)
            budget = policy.budget_on(bank)
            samples, repeat = self._decodings(bank, policy)
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
        notes = bank_notes(bank, policy.selector.name, climbed=policy.levelled is not None)
        if fixed:
            notes.insert(0, "a fixed form, drawn once: every checkpoint gets the same items, and shares their luck")
        return Evaluation(
            self.name, bank, policy, seed, stream, budget, tuple(notes), path, lead, samples, repeat, interviewer
        )

    def _decodings(self, bank: ItemBank, policy: Policy) -> tuple[int, int | str | None]:
        """Return how often each item is asked, and how many are asked again at the end."""
        samples = self.data.get("samples", 1)
        check_count("samples", samples)
        by_default = samples == 1 and policy.levelled is None and not policy.design_based
        repeat = self.data.get("repeat", None if by_default else 0)
        if samples == 1 and repeats(repeat, len(bank)) == 0:
            return 1, 0
        item_id = next((item.id for item in bank.items if "sample" in item.meta), None)
        if item_id is not None:
            if repeat is None:
                return 1, 0
            raise ConfigError(
                f"item {item_id!r} sets meta.sample, which samples and repeat count by: remove it from the bank, or "
                "remove samples and repeat"
            )
        return samples, repeat

    @property
    def _policy_name(self) -> str:
        return str(self.data.get("policy", LADDER if "task" in self.data else "decide"))

    def _task(self, settings: Settings, seed: int, tasks: Callable[[], Mapping[str, TaskFamily]] | None) -> ItemBank:
        from pytest_adaptive_eval.tasks import FAMILIES
        from pytest_adaptive_eval.tasks.bank import task_bank

        families = FAMILIES if tasks is None else tasks()
        name = self.data["task"]
        if name not in families:
            raise ConfigError(
                f"{self.where}: task {name!r} is not known; use {', '.join(families)}, or install a plugin"
            )
        scaled: dict[str, Any] = {}
        if "scale" in self.data:
            from pytest_adaptive_eval.tasks.difficulty import level_parameters

            reference = read_bank(self._bank_path("scale", settings.root), graders=settings.graders)
            levels = self.data.get("levels", families[name].levels)
            scaled = {"difficulty": level_parameters(reference, name, levels), "scale": reference.scale}
        return task_bank(
            families[name],
            queries=self.data.get("queries", self._questions),
            levels=self.data.get("levels"),
            seed=seed,
            pictures=settings.folder / "pictures",
            **scaled,
        )

    @property
    def _questions(self) -> int:
        """Questions a level that a task has when nothing is said."""
        return _QUERIES if self._policy_name == LADDER and "width" not in self.data else _POPULATION

    def _bank_path(self, key: str, root: Path) -> Path:
        written = Path(self.data[key]).expanduser()
        if (path := find_input(written, (self.base, root))) is not None:
            return path
        tried = dict.fromkeys(str(base / written) for base in (self.base, root))
        raise ConfigError(
            f"{self.where}: there is no bank at {' or '.join(tried)}: give a folder NAME.bank or a JSONL file of items"
        )

    def _interviewer(
        self, settings: Settings, bank: ItemBank
    ) -> tuple[Selector, tuple[str, Mapping[str, Any]] | None, str]:
        from pytest_adaptive_eval.config.interviewing import interviewed

        seed = self.data.get("seed", 0) if settings.seed is None else settings.seed
        name = hashlib.sha256(f"{seed}:{self.name}".encode()).hexdigest()[:16]
        return interviewed(
            self.data.get("interview", {}),
            bank,
            self.where,
            (self.base, settings.root),
            cache=settings.folder / "cache",
            decisions=settings.folder / "decisions" / f"{name}.jsonl",
            fresh=settings.fresh,
            seed=seed,
        )

    def _climb(self, bank: ItemBank) -> Policy:
        data = self.data
        if "task" not in data:
            raise ConfigError(f"{self.where}: the policy 'ladder' climbs the levels of a task, and a bank has none")
        if conflicts := [k for k in ("selector", "floor", "stop", "standard_error", "batch", "budget") if k in data]:
            raise ConfigError(f"{self.where}: a ladder is asked level by level: remove {conflicts[0]}; set queries")
        if conflicts := [k for k in ("samples", "repeat") if k in data]:
            raise ConfigError(
                f"{self.where}: a ladder asks each of its questions once, and its intervals know no noise of decoding: "
                f"remove {conflicts[0]}, or draw from the task with the policy 'decide'"
            )
        queries = data.get("queries", self._questions)
        ladder: Climb | AdaptiveClimb
        if "width" in data:
            if conflicts := [k for k in ("stop_at", "settle") if k in data]:
                raise ConfigError(f"{self.where}: with a width all levels are asked: remove {conflicts[0]}")
            ladder = AdaptiveClimb(queries, float(data["width"]), float(bank.report.get("guess", 0.0)))
        else:
            ladder = Climb(queries, float(data.get("stop_at", 0.0)), data.get("settle", False))
        return replace(LADDER_POLICY, selector=ladder, batch=ladder.batch)

    def _policy(self, settings: Settings, bank: ItemBank, more: Callable[[str], Selector | None]) -> Policy:
        data = self.data
        name = self._policy_name
        if name == LADDER:
            return self._climb(bank)
        if name not in POLICIES:
            names = ", ".join([*POLICIES, LADDER])
            raise ConfigError(f"{self.where}: policy {name!r} is not known; use {names}")
        policy = POLICIES[name]
        if conflicts := [k for k in _CLIMB_KEYS if k in data]:
            raise ConfigError(f"{self.where}: {conflicts[0]} goes with the policy 'ladder'")
        if not bank.calibrated and "selector" not in data:
            policy = replace(policy, selector=SELECTORS["random"])
        elif bank.parts and "selector" not in data and name != FIXED_FORM:
            policy = replace(policy, selector=SELECTORS["information"])  # which tells more of every part
        changes: dict[str, Any] = {
            k: data[k] for k in ("floor", "standard_error", "batch", "budget", "stop") if k in data
        }
        if name == FIXED_FORM and (
            conflicts := [k for k in ("selector", "floor", "stop", "standard_error") if k in data]
        ):
            raise ConfigError(f"{self.where}: a fixed form is drawn uniformly and asked in full: remove {conflicts[0]}")
        if data.get("selector") == AUTOJUDGER:
            changes.setdefault("batch", 1)  # so that each choice is made with all answers before it known
        elif "interview" in data:
            raise ConfigError(f"{self.where}: interview goes with selector = '{AUTOJUDGER}'")
        if "selector" in data:
            chosen = SELECTORS.get(data["selector"]) or more(data["selector"])
            if chosen is None:
                raise ConfigError(
                    f"{self.where}: selector {data['selector']!r} is not known; use {', '.join(SELECTORS)}, "
                    f"{AUTOJUDGER}, or install a plugin that provides it"
                )
            if isinstance(chosen, type) or not isinstance(chosen, Selector) or chosen.mode not in MODES:
                raise ConfigError(
                    f"{self.where}: selector {data['selector']!r}: a plugin gave {chosen!r:.80}, expected an object "
                    f"with name, mode ({' or '.join(map(repr, MODES))}), needs_calibration and criterion(view)"
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


def bank_notes(bank: ItemBank, selector: str, *, climbed: bool) -> list[str]:
    """Return notes on the bank for readers of any verdict, by its selector or ladder."""
    if not bank.calibrated and not climbed:
        return ["uncalibrated bank, uniform draws" if selector == "random" else "uncalibrated bank"]
    if bank.report.get("trusted") is False:
        return ["the bank failed its quality checks and was written by force"]
    return []
