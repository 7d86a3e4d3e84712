"""Evaluations of the kind ``peers``: models set each other tasks, answer them and judge all answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar, Literal

from pytest_adaptive_eval.errors import AdaptiveEvalError, BaselineError, ConfigError
from pytest_adaptive_eval.evaluation.evaluation import Evaluation, Progress
from pytest_adaptive_eval.evaluation.spec import Context, EvalSpec, EvaluationKind, Settings
from pytest_adaptive_eval.evaluation.tables import KindTable
from pytest_adaptive_eval.extensions.studies.peers.assessment import FIRST_ROUNDS, MemberCall, assess
from pytest_adaptive_eval.extensions.studies.peers.result import Assessment, Attempt
from pytest_adaptive_eval.extensions.studies.peers.settings import Difficulty, PeerSettings
from pytest_adaptive_eval.extensions.studies.several import (
    Member,
    MemberTable,
    costs_of,
    members,
    model_pool,
    population_key,
)
from pytest_adaptive_eval.faults import FaultLimit
from pytest_adaptive_eval.gates.quantities import Measured
from pytest_adaptive_eval.gates.result import Result
from pytest_adaptive_eval.models import resolve
from pytest_adaptive_eval.models.base import Completion
from pytest_adaptive_eval.models.pool import ModelPool
from pytest_adaptive_eval.models.recorded import RecordedModel
from pytest_adaptive_eval.models.store import CompletionStore
from pytest_adaptive_eval.registry import Service
from pytest_adaptive_eval.text import counted, number
from pytest_adaptive_eval.typed_tables import Number, Table

_METRICS = ("score",)
#: Concurrent requests to servers.
_AT_ONCE = 8
#: Share of missing judgments above which a note is added.
_MISSING = 0.05
#: Topics that a note names.
_TOPICS = 10
#: Note of each verdict.
_OPINION = "scores are a panel's opinion: no answer was checked against a truth"


@dataclass(frozen=True, slots=True)
class PanelEvaluation(Evaluation):
    """A peer assessment that is ready to run.

    Args:
        models: The candidate first.
    """

    kind = "peers"
    name: str
    models: tuple[Member, ...]
    settings: PeerSettings
    memory: int | None
    cache: Path

    @property
    def candidate(self) -> str:
        """Name of the first model."""
        return self.models[0].name

    @property
    def subjects(self) -> tuple[str, ...]:
        """Names of the panel."""
        return tuple(member.name for member in self.models)

    @property
    def roles(self) -> tuple[tuple[Member, bool], ...]:
        """The models, all of them agents, since they set tasks and judge too."""
        return tuple((member, False) for member in self.models)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The score; none in mode ``paper``, whose scores have no standard errors."""
        if self.settings.mode == "reliability":
            return _METRICS
        return ()

    @property
    def calls(self) -> int:
        """Number of calls if each first task is accepted."""
        n = len(self.models)
        judges = n if self.settings.judge is None else 1
        return self.settings.rounds * (1 + judges + n + judges * n)

    @property
    def outlook(self) -> str:
        """A sentence on the panel and the cost of its rounds."""
        here = sum(not member.remote for member in self.models)
        memory = ""
        if self.memory is not None and self.memory < here:
            memory = f", {self.memory} of {here} in memory at once"
        peers = self.subjects[1:]
        rounds = self.settings.rounds
        return (
            f"{self.candidate} and {counted(len(peers), 'peer')} ({', '.join(peers)}), {counted(rounds, 'round')} of "
            f"about {self.calls // rounds} calls{memory}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the settings and the names."""
        return {"settings": self.settings.to_json(), "subjects": list(self.subjects)}

    def void(self, error: str) -> Result:
        """Return the result of an assessment that could not run."""
        return self.void_result(error, size=self.settings.rounds, seed=self.settings.seed)

    @property
    def population(self) -> str:
        """Key of the settings and of the peers; the candidate may change."""
        settings = self.settings.to_json()
        del settings["seed"]
        return population_key({"settings": settings, "peers": list(self.subjects[1:])})

    def recall(self, account: Mapping[str, Any]) -> Result:
        """Return an earlier run of the same panel as a baseline."""
        try:
            assessment = Assessment.from_json(account)
        except ConfigError as error:
            raise BaselineError(f"the record's panel cannot be read: {error}") from None
        new = replace(self.settings, seed=0)
        old = replace(assessment.settings, seed=0)
        if new != old or assessment.names[1:] != self.subjects[1:]:
            raise BaselineError(
                "the baseline's panel had other settings or other peers; its scores are not comparable: record it again"
            )
        quantities, unsure = _quantities(assessment, self.metrics)
        result = replace(self.void(assessment.fault), quantities=quantities, unsure=unsure, account=account)
        return replace(result, candidate=assessment.names[0], subjects=assessment.names)

    def hold(self, replies: CompletionStore, progress: Progress) -> Result:
        """Run all rounds."""
        with model_pool(self, self.memory, self.cache) as pool:
            panel = [RecordedModel(pool.model(name), replies, name) for name in self.subjects]
            asking = _Asking(self, pool, progress)
            assessment = assess(panel, self.settings, asking=asking)
        error = ""
        if assessment.fault:
            error = assessment.fault + _reasons(assessment)
        quantities, unsure = _quantities(assessment, self.metrics)
        return replace(
            self.void(error),
            quantities=quantities,
            asked=assessment.accepted,
            unsure=unsure,
            notes=(_OPINION, *_notes(assessment)),
            account=assessment.to_json(),
            costs=costs_of(self.models, assessment.by_member, pool.loads),
            members=tuple(assessment.models),
        )


def _quantities(assessment: Assessment, metrics: Sequence[str]) -> tuple[dict[str, Measured], str]:
    """Return the measured quantities, and the reason why they carry no claim, if any."""
    fit = assessment.reliability
    if assessment.fault:
        return {}, ""
    if fit is None or not metrics:
        n = len(assessment.models)
        unknown = [[float("nan")] * n] * n
        return {"score": Measured(assessment.scores, unknown)}, ""
    # a threshold is not compared with the panel's mean, but with a number
    covariance = fit.covariance + fit.level_error**2
    score = Measured(fit.qualities, covariance, freedom=fit.freedom, value_freedom=fit.value_freedom)
    quantities = {"score": score}
    if assessment.accepted < FIRST_ROUNDS:
        return quantities, f"it takes {FIRST_ROUNDS} rounds with a task to estimate how sure a score is"
    if not fit.converged:
        return quantities, f"the fit did not settle in {fit.sweeps} sweeps"
    return quantities, ""


_DEFAULTS = PeerSettings()


class PanelTable(Table, frozen=True, kw_only=True):
    """``[eval.panel]``: tasks, rounds and scores of a panel.

    Args:
        mode: Weights of votes and scores.
        topics: Topics of tasks, dealt in turn in a random order; in mode paper drawn.
        difficulties: Names of difficulties, or a table of names and shares.
        criteria: Criteria that answers are judged by.
        rounds: Rounds, accepted or not.
        retries: Attempts at a task in a round, each by another generator.
        mean: Least weighted mean of the votes on a task.
        median: Least weighted median of the votes on a task.
        judge: The only judge, in mode paper.
        task_tokens: Longest task, in tokens; the model's cap by default.
        answer_tokens: Longest answer, in tokens; the model's cap by default.
        rank_tokens: Longest judgment, in tokens; the model's cap by default.
    """

    mode: Literal["reliability", "paper"] = _DEFAULTS.mode
    topics: tuple[str, ...] = tuple(_DEFAULTS.topics)
    difficulties: tuple[str, ...] | dict[str, Number] | None = None
    criteria: tuple[str, ...] = tuple(_DEFAULTS.criteria)
    rounds: int = _DEFAULTS.rounds
    retries: int = _DEFAULTS.retries
    mean: Number = _DEFAULTS.mean
    median: Number = _DEFAULTS.median
    judge: str | None = None
    task_tokens: int | None = _DEFAULTS.task_tokens
    answer_tokens: int | None = _DEFAULTS.answer_tokens
    rank_tokens: int | None = _DEFAULTS.rank_tokens


class PeersTable(KindTable, frozen=True, kw_only=True):
    """``[[eval]]`` of the kind ``peers``.

    Args:
        peers: The other members of the panel.
        panel: Settings of the assessment.
    """

    gone: ClassVar[Mapping[str, str]] = {"content_filter": "filter texts in the server; the record has what was said"}

    kind: Literal["peers"]
    peers: list[str | MemberTable] = []
    panel: PanelTable = PanelTable()


def _build(spec: EvalSpec, settings: Settings, context: Context) -> PanelEvaluation:
    table = spec.table
    assert isinstance(table, PeersTable)
    models = members(table, settings, table.peers, context.folders)
    options = {name: getattr(table.panel, name) for name in PanelTable.__struct_fields__}
    shares = options.pop("difficulties")
    if isinstance(shares, dict):
        options["difficulties"] = [Difficulty(name, float(share)) for name, share in shares.items()]
    elif shares is not None:
        options["difficulties"] = [Difficulty(name) for name in shares]
    panel = PeerSettings(**options, seed=spec.seed(settings))
    panel.check_panel([member.name for member in models])
    models = [_sampling(model, panel) for model in models]
    plan = PanelEvaluation(spec.name, tuple(models), panel, table.memory, settings.folder / "cache")
    if spec.data.get("gate") and not plan.metrics:
        raise ConfigError(
            "mode 'paper' has no errors of its scores, so they cannot feed a gate: leave "
            'the gates out, or use mode = "reliability"'
        )
    return plan


def _sampling(model: Member, panel: PeerSettings) -> Member:
    """Return a member with the mode's sampling, if its kind has such options and it sets none of its own."""
    kind, _ = resolve(model.spec, chats=True)
    sampling = {name: value for name, value in panel.sampling.items() if name in kind.options}
    return replace(model, options={**sampling, **model.options})


_SECTION = Service("peers", "pytest_adaptive_eval.extensions.studies.report_sections.peers:SECTION")
PEERS = EvaluationKind(PeersTable, _METRICS, _build, section=_SECTION.load)


class _Asking:
    """Asks model by model, loaded models first, while servers work on theirs; ends a hopeless run."""

    def __init__(self, plan: PanelEvaluation, pool: ModelPool, progress: Progress) -> None:
        self._plan = plan
        self._pool = pool
        self._progress = progress
        self._limit = FaultLimit(plan.calls, "replies", "calls")

    def __call__(self, calls: Sequence[MemberCall]) -> Iterator[tuple[int, Completion]]:
        names = self._plan.subjects
        now = calls[0].position[0] + 1
        rounds = self._plan.settings.rounds
        self._progress(now, rounds, f"round {now} of {rounds}")
        local: defaultdict[str, list[int]] = defaultdict(list)
        remote: defaultdict[str, list[int]] = defaultdict(list)
        for index, call in enumerate(calls):
            name = names[call.model]
            if name in self._pool.remote:
                remote[name].append(index)
            else:
                local[name].append(index)
        executor = ThreadPoolExecutor(_AT_ONCE)
        try:
            sent = {}
            for index in chain.from_iterable(remote.values()):
                future = executor.submit(calls[index].make)
                sent[future] = index

            def landed(done: Future[Completion]) -> tuple[int, Completion]:
                index = sent.pop(done)
                return index, self._checked(names[calls[index].model], done.result())

            for name in self._pool.first(local):
                for index in local[name]:
                    yield index, self._checked(name, calls[index].make())
                    arrived = [done for done in sent if done.done()]
                    yield from map(landed, arrived)  # to be kept before more is asked
            yield from map(landed, as_completed(list(sent)))
        finally:
            executor.shutdown(wait=False, cancel_futures=True)  # closing the pool ends what is under way

    def _checked(self, name: str, reply: Completion) -> Completion:
        fault = None
        if reply.status.infrastructure:
            fault = reply.detail.strip() or reply.status.value
        reason = self._limit.add(fault, name)
        if reason:
            raise AdaptiveEvalError(reason)
        return reply


def _reasons(assessment: Assessment) -> str:
    """Return the reasons for rejected tasks and unusable replies."""
    text = ""
    attempts: list[Attempt] = []
    for panel_round in assessment.rounds:
        attempts += panel_round.attempts
    votes: list[int] = []
    for attempt in attempts:
        votes += [vote for vote in attempt.votes if vote is not None]
    if not assessment.accepted:
        text = _rejected(attempts, votes, assessment.settings.mean)
    useless = _useless(assessment)
    if useless:
        text += f"; unusable: {useless}"
    if not votes and attempts:
        caps = "task_tokens and rank_tokens"
        text += f". Choose chat models that follow instructions; if replies are truncated, raise {caps} in [eval.panel]"
    return text


def _rejected(attempts: Sequence[Attempt], votes: Sequence[int], least: float) -> str:
    came = sum(bool(attempt.task) for attempt in attempts)
    text = f": {came} of {counted(len(attempts), 'attempt')} gave a task"
    if votes:
        text += f", and the votes had a mean of {number(fmean(votes), 1)} where {number(least, 1)} is needed"
    return text


def _useless(assessment: Assessment, most: int = 4) -> str:
    """Describe unusable replies by model and kind, the most frequent first."""
    counts = []
    for name, roles in assessment.missing.items():
        for role, kinds in roles.items():
            for kind, n in kinds.items():
                counts.append((n, name, role, kind))
    counts.sort(key=lambda row: (-row[0], row[1:]))
    text = ", ".join(f"{counted(n, role)} of {name} ({kind})" for n, name, role, kind in counts[:most])
    more = sum(row[0] for row in counts[most:])
    if more:
        text += f" and {more} more"
    return text


def _notes(assessment: Assessment) -> list[str]:
    notes = []
    if assessment.missing_share > _MISSING:
        notes.append(f"{assessment.missing_share:.0%} of the judgments are missing; unusable: {_useless(assessment)}")
    if not assessment.fault:
        notes += _topic_notes(assessment)
    if not assessment.fault and assessment.settings.mode == "reliability":
        notes += _judge_notes(assessment)
    return notes


def _topic_notes(assessment: Assessment) -> Iterator[str]:
    for topics, reason in zip(assessment.absent_topics(), ("not drawn", "without an accepted task"), strict=True):
        if topics:
            named = ", ".join(topics[:_TOPICS])
            if len(topics) > _TOPICS:
                named += ", ..."
            every = counted(len(assessment.settings.topics), "topic")
            yield f"{len(topics)} of {every} {reason}: {named}"


def _judge_notes(assessment: Assessment) -> Iterator[str]:
    fit = assessment.reliability
    if fit is None:
        return
    for i, name in enumerate(assessment.names):
        words = fit.flags.words(i)
        if words:
            more = ": its scores do not count" if fit.flags.silent[i] else ""
            yield f"the judge {name} is {' and '.join(words)}{more}"
