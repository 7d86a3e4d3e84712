"""Early stopping of tasks of Inspect: the draws, the stop and the verdicts of an interview."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.checks import check_faults
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.evaluation.interview import Interview
from pytest_adaptive_eval.evaluation.spec import Settings
from pytest_adaptive_eval.evaluation.toml import TomlEval, read_toml
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Status

if TYPE_CHECKING:
    import anyio

    from pytest_adaptive_eval.gates.condition import Condition
    from pytest_adaptive_eval.gates.verdict import Verdict


class GateStopping:
    """Early stopping of an Inspect task by the gates of an evaluation in TOML.

    It implements ``inspect_ai.util.EarlyStopping``. The task asks the samples that an interview under pytest draws,
    with the same seed, and stops when the gates are decided. Samples wait until they are drawn or the gates are
    decided, so the task needs ``max_samples`` of at least the number of its samples; ``max_connections`` limits how
    many requests are sent together.

    Args:
        path: File with the evaluation, as pytest reads it. The bank's items have the ids of the samples.
        evaluation: Name of the evaluation; optional where the file has one.
        scorer: Name of the scorer that counts; optional where the task has one.

    Attributes:
        verdicts: One for each gate, at the end of the task.

    Raises:
        ConfigError: The file has no such evaluation, or a gate needs a baseline, a ladder or another part of a run
            under pytest.
    """

    def __init__(self, path: str | Path, evaluation: str = "", scorer: str = "") -> None:
        path = Path(path)
        entry = _chosen(path, evaluation)
        settings = Settings(path.parent, path.parent / ".adaptive-eval")
        self.evaluation: Interview = entry.spec.build(settings)
        self._scorer = scorer
        self.conditions = [gate.condition for gate in entry.gates]
        _check_supported(path, self.evaluation, self.conditions)
        self._family = sum(condition.denials(self.evaluation.bank) for condition in self.conditions)
        self.session = _session(self.evaluation, self.conditions, self._family)
        self.verdicts: list[Verdict] = []
        self._positions: dict[str, int] = {}
        self._drawn: dict[int, float | None] = {}
        self._asked: set[int] = set()
        self._changed: anyio.Event | None = None

    async def start_task(self, task: Any, samples: Sequence[Any], epochs: int) -> str:
        """Check that the samples are the bank's items, and draw the first; see ``EarlyStopping``.

        Raises:
            ConfigError: The samples are others, or the task runs in a way in which samples could not wait for their
                turn.
        """
        import anyio

        check_faults(_task_faults(task.config, len(samples), epochs))
        self._positions = self._matched(samples)
        self._changed = anyio.Event()
        self._draw()
        return "pytest-adaptive-eval"

    async def schedule_sample(self, id: str | int, epoch: int) -> Any:
        """Wait until the sample is drawn, or the gates are decided; see ``EarlyStopping``."""
        from inspect_ai.util import EarlyStop

        position = self._positions[str(id)]
        while position not in self._drawn and position not in self._asked:
            if self.session.finished:
                return EarlyStop(id=id, epoch=epoch, reason=self._reason())
            assert self._changed is not None
            await self._changed.wait()
        return None

    async def complete_sample(self, id: str | int, epoch: int, scores: Mapping[str, Any]) -> None:  # noqa: ARG002
        """Record the score of a sample; see ``EarlyStopping``."""
        position = self._positions[str(id)]
        if position not in self._drawn:
            return
        self._drawn[position] = self._score(scores)
        values = [value for value in self._drawn.values() if value is not None]
        if len(values) < len(self._drawn):
            return
        self.session.tell([values])
        self._asked |= self._drawn.keys()
        self._draw()
        import anyio

        changed = self._changed
        self._changed = anyio.Event()
        assert changed is not None
        changed.set()

    async def complete_task(self) -> dict[str, Any]:
        """Judge the gates; see ``EarlyStopping``."""
        log = self.session.log()
        missing = int(sum(map(math.isnan, log.scores.tolist())))
        counts = {Status.OK.value: len(log) - missing, Status.ERROR.value: missing}
        choices = []
        for index in log.items.tolist():
            choices.append(len(self.evaluation.bank.items[index].choices))
        # unknown if one item has no choices to guess among
        chance = None
        if choices and all(choices):
            chance = sum(1.0 / count for count in choices) / len(choices)
        result = SessionResult.of(
            self.evaluation.name,
            self.session,
            statuses={status: count for status, count in counts.items() if count},
            notes=self.evaluation.notes,
            planned=tuple(self.conditions),
            family=self._family,
            chance=chance,
        )
        self.verdicts = [result.judge(condition) for condition in self.conditions]
        return {
            "asked": len(log),
            "stop": self._reason(),
            "verdicts": [verdict.sentence for verdict in self.verdicts],
            "passed": bool(self.verdicts) and all(map(bool, self.verdicts)),
        }

    def _matched(self, samples: Sequence[Any]) -> dict[str, int]:
        """Return the place in the bank of each sample by its id: that of the same id, or of the same row and text."""
        bank = self.evaluation.bank
        ids = [str(sample.id) for sample in samples]
        positions = {item: position for position, item in enumerate(bank.ids)}
        if not positions.keys() & set(ids):
            positions = _positions_by_row(bank, samples)
        others = [sample for sample in ids if sample not in positions]
        missing = len(bank) - len(positions.keys() & set(ids))
        if missing or others:
            if others:
                example = f", such as {others[0]!r}"
            else:
                example = ""
            raise ConfigError(
                f"the samples are not the items of the bank {bank.name!r}: {missing} of {len(bank)} items have no "
                f"sample, and {len(others)} of {len(ids)} samples no item{example}; "
                "import the task with adaptive-eval import inspect:FILE.py@TASK, and leave its samples in their order"
            )
        return positions

    def _draw(self) -> None:
        proposal = self.session.ask()
        if proposal is None:
            self._drawn = {}
        else:
            self._drawn = dict.fromkeys(proposal.items[0].tolist())

    def _score(self, scores: Mapping[str, Any]) -> float:
        """Return the score in [0, 1], NaN where there is none."""
        from inspect_ai.scorer import value_to_float

        if not scores:
            return math.nan
        name = self._scorer or next(iter(scores))
        if name not in scores or (not self._scorer and len(scores) > 1):
            raise ConfigError(
                f"the task has the scorers {', '.join(scores)}: name one of them, GateStopping(scorer=...)"
            )
        value = float(value_to_float()(scores[name].score.value))
        if 0.0 <= value <= 1.0:
            return value
        return math.nan

    def _reason(self) -> str:
        stop = self.session.stop[0]
        if stop:
            return stop.value
        return "the task ended before the interview"


def _task_faults(config: Any, samples: int, epochs: int) -> Iterator[str]:
    if epochs != 1:
        yield f"the task has {epochs} epochs, and gates are decided on one: set epochs=1"
    if config.max_samples is None or config.max_samples < samples:
        yield (
            f"max_samples is {config.max_samples}, and samples wait until they are drawn: set max_samples={samples} "
            "(max_connections limits the requests)"
        )
    if config.fail_on_error not in (None, True) and not config.score_on_error:
        yield (
            f"fail_on_error is {config.fail_on_error}, with which Inspect does not report failed samples: leave it "
            "out, or set score_on_error=True"
        )


def _check_supported(path: Path, evaluation: Interview, conditions: Sequence[Condition]) -> None:
    """Refuse gates that compare with another run, and interviews that do not draw items one by one."""
    for condition in conditions:
        condition.check(evaluation.bank)
        condition.measure.check_samples(condition, evaluation.samples)
        if not condition.measure.by_scores:
            raise ConfigError(
                f"{path}: the gate {condition.label!r} is on {condition.metric}, and early stopping gets scores alone: "
                "remove it, or run the task by harness:inspect"
            )
        if condition.name:
            raise ConfigError(
                f"{path}: the gate {condition.label!r} compares with another run; stop by the others, and compare "
                "finished logs with adaptive-eval gate LOGS --baseline LOGS"
            )
    policy = evaluation.policy
    if policy.levelled is not None or policy.design_based or evaluation.samples > 1 or evaluation.judge:
        raise ConfigError(
            f"{path}: {evaluation.name}: early stopping takes an evaluation of a bank with drawn items, one "
            "sample of each, and no judge"
        )


def _session(evaluation: Interview, conditions: Sequence[Condition], family: int) -> Session:
    """Return the session, which ends early by its gates if none of them needs the whole budget."""
    bank = evaluation.bank
    claims = []
    for c in conditions:
        if c.by_draws:
            for claim in c.claims(bank, {}):
                claims.append(claim)
    if any(c.whole for c in conditions):
        claims = []
    return Session(bank, evaluation.policy, seed=evaluation.stream, claims=claims, family=family)


def _positions_by_row(bank: ItemBank, samples: Sequence[Any]) -> dict[str, int]:
    """Return the place in the bank of each sample whose row and text an item has."""
    positions = {}
    for position, item in enumerate(bank.items):
        row = item.meta.get("row")
        if isinstance(row, int) and row < len(samples):
            asked = samples[row].input
            # a chat's last message is the question
            if isinstance(asked, str):
                text = asked
            else:
                text = asked[-1].text
            if item.prompt.startswith(str(text)):
                positions[str(samples[row].id)] = position
    return positions


def _chosen(path: Path, name: str) -> TomlEval:
    interviews = []
    for entry in read_toml(path).evaluations:
        if entry.spec.asks_items:
            interviews.append(entry)
    evaluations = [entry for entry in interviews if name in ("", entry.spec.name)]
    if len(evaluations) != 1:
        names = ", ".join(entry.spec.name for entry in interviews)
        raise ConfigError(f"{path}: {len(evaluations)} evaluations are named {name!r}; name one of {names}")
    return evaluations[0]
