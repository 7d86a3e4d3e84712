"""Ask the questions of one interview until its session ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.cat.stopping import StopReason, repeats
from pytest_adaptive_eval.errors import AdaptiveEvalError, ConfigError, JournalError, UsageError
from pytest_adaptive_eval.evaluation import Interview
from pytest_adaptive_eval.inference.design import Proposal
from pytest_adaptive_eval.inference.noise import ONE_WAY, DecodingNoise, item_score, one_way_changes
from pytest_adaptive_eval.items.item import Item, Response, Status
from pytest_adaptive_eval.models.base import Completion, Model, SubjectIdentity, Usage
from pytest_adaptive_eval.models.caps import Cap, recorded_caps
from pytest_adaptive_eval.models.images import question_hash
from pytest_adaptive_eval.models.request_keys import identity_key, request_key
from pytest_adaptive_eval.models.store import CompletionStore
from pytest_adaptive_eval.plugin.ask.answer_counts import AnswerCounts, too_many_errors
from pytest_adaptive_eval.plugin.ask.answer_recorder import NOT_NEEDED, AnswerRecorder, Reuse
from pytest_adaptive_eval.plugin.ask.probe import TestProbes
from pytest_adaptive_eval.plugin.ask.question import (
    AskedItem,
    Draw,
    QuestionTest,
    TestFinding,
    check_scope,
    find_model_fixture,
)
from pytest_adaptive_eval.plugin.ask.random_states import GeneratorStates
from pytest_adaptive_eval.plugin.notices import captured
from pytest_adaptive_eval.plugin.progress import QuestionProgress
from pytest_adaptive_eval.plugin.state import EvaluationTest, sets_up_only
from pytest_adaptive_eval.records.parts import PolicyRecord, plain
from pytest_adaptive_eval.records.run_record import UNKNOWN, Administration, EvaluationRecord, RunRecord
from pytest_adaptive_eval.text import counted

if TYPE_CHECKING:
    from pytest_adaptive_eval.records.history import History


class DecodingCheck:
    """Evidence that another run would give other answers."""

    def __init__(self, history: History | None, evaluation: Interview, identity: SubjectIdentity) -> None:
        self._by_default = evaluation.repeat is None
        self._samples = identity.samples
        self.reason = "decoding samples" if self._samples else ""
        self._earlier: EvaluationRecord | None = None
        if not self._samples and identity.checkpoint and (self._by_default or not evaluation.decodings):
            self._earlier = _latest(history, evaluation, identity)
            noise = self._earlier.decoding_noise if self._earlier is not None else None
            if noise is not None and noise.variance:
                self.reason = "an earlier run of this checkpoint gave different answers to the same item"

    def add_repeats(self, evaluation: Interview, answers: Sequence[Administration]) -> Interview:
        """Return the evaluation, with repeated items if these answers differ from an earlier run's."""
        if self._earlier is None or self.reason:
            return evaluation
        requests = self._earlier.requests
        earlier = {entry.place: entry for entry in self._earlier.administrations}
        alike = [answer for answer in answers if answer.request == requests.get(answer.place, UNKNOWN) != UNKNOWN]
        both = [(earlier[answer.place], answer) for answer in alike if answer.score is not None]
        # another grader is no other answer; of some tests the score is all that is known
        scored = [(old, new) for old, new in both if old.score is not None and bool(old.text) == bool(new.text)]
        if differ := sum((old.text or old.score) != (new.text or new.score) for old, new in scored):
            self.reason = (
                f"an earlier run of this checkpoint answered {differ} of {counted(len(scored), 'item')} differently"
            )
            return replace(evaluation, repeat=None).for_subject(samples=True) if self._by_default else evaluation
        return evaluation

    def notes(self, noise: DecodingNoise | None, *, whole: bool) -> list[str]:
        """Return notes for readers of any verdict; of a `whole` bank nothing but the noise is uncertain."""
        if noise is not None:
            if not self.reason or self._samples:
                return []
            # a cause that varies between runs, such as a server, need not vary within one
            return [self.reason + (": another run may decide otherwise" if noise.variance == 0 else "")]
        if self.reason:
            return [
                f"{self.reason}, and the noise was not measured: another run may decide otherwise; remove repeat = 0, "
                "or set samples"
            ]
        if whole and self._samples is None:
            return [
                "the model does not say how it decodes: where it samples, another run may decide otherwise; set "
                "repeat, or give its identity a temperature"
            ]
        return []


def _earlier_interviews(
    history: History | None, evaluation: Interview, identity: SubjectIdentity
) -> Iterator[tuple[RunRecord, EvaluationRecord]]:
    """Yield the interviews, not void, of the same checkpoint, decoding and bank with their runs, latest first."""
    same = (identity.checkpoint, identity.decoding_hash, evaluation.bank.content_hash)
    for run, record in reversed(list(history.evaluations())) if history is not None else ():
        of_record = (record.subject.checkpoint, record.subject.decoding_hash, record.bank.content_hash)
        if of_record == same and not (record.error or run.copied_from):
            yield run, record


def _latest(history: History | None, evaluation: Interview, identity: SubjectIdentity) -> EvaluationRecord | None:
    """Return the latest of the earlier interviews with its answers, None without any."""
    for run, record in _earlier_interviews(history, evaluation, identity):
        assert history is not None
        try:
            whole = history.whole(run.run)
        except JournalError:  # removed or damaged meanwhile
            return None
        return next((other for other in whole.interviews if other.nodeid == record.nodeid), None)
    return None


#: Names in the record of what a draw tells, and the columns of a `Proposal`.
_DRAW_COLUMNS = {
    "propensity": "propensities",
    "predicted": "predictions",
    **{name: name for name in ("rest", "variance", "down", "up")},
}
_REPEAT_SEED = 1  #: Seed suffix for drawing repeated items.
NAMED = 10  #: Number of changed items that an error names.
NEAR = 2  #: Batches in prospect below which the session is told the scores one by one, so that it ends at once.


class VoidReason(NamedTuple):
    """Reason why an interview is void; `usage` for a mistake of the user."""

    sentence: str
    usage: bool
    stop: StopReason


@dataclass
class Respondent:
    """The subject of an interview, as the first fixtures give it; `own_cap` is its cap outside of this interview."""

    fixture: str = "model"
    subject: Any = None
    identity: SubjectIdentity = field(default_factory=lambda: SubjectIdentity(""))
    decoding: str = ""
    usage: Usage = field(default_factory=Usage)
    noise_check: DecodingCheck | None = None
    own_cap: Cap | None = None

    def cap(self, max_tokens: int | None, name: str) -> None:
        """Set the evaluation's cap on the answers of the subject, until `uncap`.

        Raises:
            ConfigError: Nothing caps the answers of this subject.
        """
        if max_tokens is None:
            return
        if not isinstance(self.subject, Model) or self.subject.cap is None:
            raise ConfigError(
                f"{name}: max_tokens is {max_tokens}, and nothing caps the answers of {self.fixture!r} "
                f"({type(self.subject).__name__}): remove it, or name a checkpoint or a server"
            )
        self.own_cap, self.subject.cap = self.subject.cap, Cap(max_tokens, chosen=True)

    def uncap(self) -> None:
        """Give the subject its own cap back."""
        if self.own_cap is not None:
            self.subject.cap, self.own_cap = self.own_cap, None


class AskingLoop:
    """Questions of one interview, in the order of its session, until the session or a fault ends it."""

    def __init__(self, node: EvaluationTest, interview: Interview) -> None:
        self.node, self.gate_plan, self.nodeid = node, node.gate_plan, node.nodeid
        self.evaluation, self.state = interview, node.state
        self.fault: VoidReason | None = None
        self.respondent = Respondent()
        self.recorder, self.counts = AnswerRecorder(), AnswerCounts()
        self.reuse = Reuse(self.state.answers, node.config.rootpath, named=self.state.settings.names_reuse)
        self.generators = GeneratorStates(f"{node.nodeid} {self.evaluation.stream}")
        self.skipped, self.reruns, self.finding = "", 0, TestFinding()
        self.probes = TestProbes(self.evaluation.bank.items, self.evaluation.wrong_answer)
        self.unneeded = 0  #: Calls whose answers the interview did not need.
        self.call_sizes: Counter[int] = Counter()  #: Calls that answer several questions, by their number.
        self._bound = False
        self._hook = node.ihook
        self._setup_only = sets_up_only(node.config)
        self._spends_to_a_limit = self.evaluation.spending.limited
        self._batch: list[QuestionTest] = []
        self._live: QuestionProgress
        self.session = self._open_session()

    def _open_session(self) -> Session:
        evaluation = self.evaluation
        try:
            # `bind` sets the number of decodings where it depends on the subject
            decodings = 0 if evaluation.repeat is None else evaluation.decodings
            arguments = {**evaluation.session_arguments(self.gate_plan, self.state.family), "decodings": decodings}
            return Session(evaluation.bank, evaluation.policy, seed=evaluation.stream, **arguments)
        except AdaptiveEvalError as error:
            self._end_by(error)
            return Session(evaluation.bank, evaluation.policy, seed=evaluation.stream)

    def run(self) -> None:
        """Ask questions until the session ends.  An error of this package makes the interview void."""
        evaluation = self.evaluation
        budget = evaluation.budget * evaluation.samples
        self._live = QuestionProgress(self.node.config, evaluation.name, budget, evaluation.most_questions)
        try:
            with self.generators.in_use():
                self._ask_proposals()
                self._repeat_items()
        except AdaptiveEvalError as error:
            self._end_by(error)
        finally:
            self.unneeded = self.state.pipeline.finish(self)
            self.respondent.uncap()
            self.recorder.close()
            self._live.end()
            if self.evaluation.judge is not None:
                self.evaluation.judge.close()
        if not (self.session.finished or self._setup_only):
            self.session.end(self.fault.stop if self.fault else StopReason.INTERRUPTED)
            self.give_up("the run was interrupted before the interview ended")

    def give_up(self, sentence: str, *, usage: bool = False, stop: StopReason = StopReason.GIVEN_UP) -> None:
        """End the interview as void; the first reason is kept."""
        if self.fault is None:
            self.fault = VoidReason(sentence, usage, stop if self._bound else StopReason.UNASKED)

    def _end_by(self, error: AdaptiveEvalError) -> None:
        self.give_up(str(error), usage=isinstance(error, UsageError))

    @property
    def _over(self) -> bool:
        """Whether no further question may be asked, whatever the session needs."""
        run = self.node.session
        return bool(self.fault or run.shouldstop or run.shouldfail)

    @property
    def _ability(self) -> list[float] | None:
        """Current ability estimate, one value per dimension; None on an uncalibrated bank."""
        return plain(self.session.estimate.theta[0].tolist()) if self.evaluation.bank.calibrated else None

    def _ask_proposals(self) -> None:
        while not self._over and (proposal := self._propose()) is not None:
            if not (self.recorder.administrations or self.asks_items or self._setup_only):
                item = self.evaluation.bank.items[int(proposal.items[0, 0])]
                if sentence := self.probes.check_first(self, self.node, item):
                    raise ConfigError(sentence)
            if not self._affordable(proposal.items.shape[1]):
                self.session.end(StopReason.COST)
                break
            asked_before = len(self.recorder.administrations)
            responses = self._run_batch(list(map(self._test, self.draws(proposal))))
            if self._setup_only:
                break  # no question has a score
            self.tell(self.item_scores([response.score for response in responses]))
            ability = self._ability
            for administration in self.recorder.administrations[asked_before:]:
                administration.theta_after = ability
            self._live.estimate(self.session)

    def _propose(self) -> Proposal | None:
        """Return the next questions of the session, for which a selector may load and ask a model."""
        with captured(self.node):
            return self.session.ask(self.together)

    @property
    def together(self) -> int:
        """How many questions are asked before the session knows their scores: one where the verdict may be near."""
        batch = self.evaluation.policy.batch
        return 1 if self.session.decides and self.session.remaining() <= NEAR * batch else batch

    def _affordable(self, items: int) -> bool:
        """Return whether the next items fit into the budgets in tokens and money."""
        subject, asked = self.respondent.subject, len(self.recorder.administrations)
        if not isinstance(subject, Model):
            return True
        evaluation = self.evaluation
        following = items * evaluation.samples + repeats(evaluation.repeat, self.session.asked + items)
        return evaluation.spending.allows(subject.usage - self.respondent.usage, asked, following)

    def tell(self, scores: Sequence[float | None]) -> None:
        """Give the session the item scores of its proposal, and end it where an item that must pass is wrong."""
        self.session.tell(np.array([[np.nan if score is None else score for score in scores]], dtype=float))
        first, ends = self.session.take_all, self.gate_plan.judged and self.evaluation.policy.stop == "decision"
        if self.evaluation.must_pass and ends and len(first) <= self.session.asked:
            must_pass = np.isin(first, self.evaluation.must_pass)
            if (self.session.log().scores[: len(first)][must_pass] < 1.0).any():
                self.session.end(StopReason.MUST_PASS)  # all gates fail

    def _repeat_items(self) -> None:
        """Administer some items once more, drawn uniformly, to measure decoding noise."""
        if self.respondent.noise_check is not None:
            self.evaluation = self.respondent.noise_check.add_repeats(self.evaluation, self.recorder.administrations)
        evaluation = self.evaluation
        items = self.session.log().items
        count = repeats(evaluation.repeat, len(items)) if self.session.finished else 0
        rng = np.random.default_rng((evaluation.stream, _REPEAT_SEED))
        drawn = rng.choice(items, count, replace=False).tolist() if count else []
        reason = "asked again, to measure the noise of decoding"
        while drawn and not self._over:
            details = {"reason": reason, "theta_before": self._ability}
            batch = enumerate(drawn[: evaluation.policy.batch], 1)
            questions = [self._test(self.draw(i, evaluation.samples, offset, **details)) for offset, i in batch]
            del drawn[: len(self._run_batch(questions))]
        if drawn:
            self.give_up("the run was interrupted before the items were asked again that measure the noise of decoding")
        self._check_changes()

    def _check_changes(self) -> None:
        """End the interview as void if the repeated answers show another model than the first ones."""
        first: dict[str, float] = {}
        changes: dict[str, float] = {}
        for answer in self.recorder.administrations:
            if answer.score is None:
                continue
            if answer.sample == self.evaluation.samples and answer.item in first:
                changes[answer.item] = answer.score - first[answer.item]
            elif not answer.sample:
                first[answer.item] = answer.score
        changed = one_way_changes(changes)
        if not changed:
            return
        before, after = ("right", "wrong") if changes[changed[0]] < 0 else ("wrong", "right")
        more = f" and {len(changed) - NAMED} more" if len(changed) > NAMED else ""
        self.give_up(
            f"{len(changed)} of {counted(len(changes), 'repeated item')} went from {before} to {after} "
            f"({', '.join(changed[:NAMED])}{more}). Noise goes both ways (sign test at {ONE_WAY:g}), so the model "
            "changed during the run: find out why, and run it again with --adaptive-eval-fresh"
        )

    def item_scores(self, response_scores: Sequence[float | None]) -> list[float | None]:
        """Return the score of each item from its samples; the last item may lack some."""
        samples = self.evaluation.samples
        padded = [*response_scores, *[None] * (-len(response_scores) % samples)]
        return [item_score(padded[n : n + samples]) for n in range(0, len(padded), samples)]

    def draws(self, proposal: Proposal) -> list[Draw]:
        """Return the questions of a proposal, each item's samples one after the other."""
        bank, samples = self.evaluation.bank, self.evaluation.samples
        ability, items = self._ability, proposal.items[0]
        columns = {name: plain(getattr(proposal, column)[0].tolist()) for name, column in _DRAW_COLUMNS.items()}
        if bank.calibrated and bank.dimensions == 1:
            columns["difficulty"] = plain(bank.difficulty_of(items).tolist())
        draws: list[Draw] = []
        for row, i in enumerate(items.tolist()):
            details = {name: column[row] for name, column in columns.items()}
            details |= {"theta_before": ability, "reason": self.session.reason(i)}
            for sample in range(samples):
                draws.append(self.draw(i, sample, len(draws) + 1, **details))
        return draws

    def draw(self, index: int, sample: int, offset: int = 1, **details: Any) -> Draw:
        """Return the question of a bank's item, `offset` places (from 1) after the latest administration."""
        item = self.evaluation.bank.items[index]
        administration = Administration(
            position=len(self.recorder.administrations) + offset,
            item=item.id,
            item_hash=item.content_hash,
            question=question_hash(item),
            format=item.formats[0],
            sample=sample,
            category=list(item.category),
            **details,
        )
        return Draw(AskedItem(item, sample), administration)

    def _test(self, draw: Draw) -> QuestionTest:
        test = QuestionTest.of(self.node, AskedItem(draw.asked.item, draw.asked.sample))
        test.interview, test.ihook, test.administration = self, self._hook, draw.administration
        return test

    def _run_batch(self, questions: list[QuestionTest]) -> list[Response]:
        """Run questions that are answered together, up to the last or to the end of the interview."""
        self._batch = questions
        responses = []
        for place, test in enumerate(questions):
            if not self._needs(questions[place:]):
                responses.append(response := Response(Status.NOT_AWAITED, detail=NOT_NEEDED))
                if self.session.awaited is None:
                    self.session.awaited = self.session.asked + place
                self._record(test, response)
                continue
            self._run_protocol(test)
            responses.append(response := self._take(test))
            test.keywords = {}  # pytest's refer back to the test, which would stay until the collector finds it
            if response.status.infrastructure:
                fault = too_many_errors(self.recorder.administrations, self.evaluation.most_questions)
                if fault:
                    self.give_up(fault, stop=StopReason.ERRORS)
            if self._over:
                break
        return responses

    def _needs(self, questions: Sequence[QuestionTest]) -> bool:
        """Whether the verdict needs the first question's answer, which is there then: not one that is slow to come."""
        evaluation, subject = self.evaluation, self.respondent.subject
        plain = self._bound and self.asks_items and self.asks_ahead and not evaluation.must_pass
        if not (plain and evaluation.samples == 1 and isinstance(subject, Model) and subject.waits_apart):
            return True
        with captured(self.node):
            return bool(self.session.finished or self.state.pipeline.needs(self, subject, questions))

    def _run_protocol(self, test: QuestionTest) -> None:
        # on a worker it replaces its interview meanwhile: xdist checks reports against that list
        items: list[Any] = self.node.session.items
        position = items.index(self.node) if self.state.worker and self.node in items else None
        if position is not None:
            items[position] = test
        self.recorder.current = test
        try:
            self._hook.pytest_runtest_protocol(item=test, nextitem=self.node)
        finally:
            self.recorder.current = None
            if position is not None:
                items[position] = self.node

    def _take(self, test: QuestionTest) -> Response:
        taken = self.latest(test.requests.taken)
        if test.asked.read and taken is not None and test.asked.text != taken.text:
            self.finding.grades_answer = False
        response = test.response or Response(Status.ERROR, detail=test.fault or "the test did not run")
        if self.recorder.journal is not None and (fault := self.recorder.journal.fault):
            response = Response(Status.ERROR, None, response.text, fault)  # an answer that is not stored does not count
            self.give_up(fault, usage=True)
        self._record(test, response)
        administration = test.administration
        request = test.requests.other_than(test.asked.item)
        if self.finding.random or (request is None and response.score is not None):
            request = UNKNOWN
        administration.request = request or administration.request
        for file in self.gate_plan.baselines(self.evaluation).values():
            file.check_requests([administration])
        self._live.count(len(self.recorder.administrations))
        self.state.pipeline.advance(self)
        return response

    def _record(self, test: QuestionTest, response: Response) -> None:
        self.recorder.add(test, response)
        asked = test.asked
        self.counts.add(asked.item, response, first=not asked.sample, read=asked.read)

    def latest(self, taken: Sequence[tuple[Model, Completion]]) -> Completion | None:
        """Return the latest of the completions that the model under evaluation gave; None where that is unknown.

        A model that is no `Model` may ask one.
        """
        subject = self.respondent.subject
        known = isinstance(subject, Model)
        return next((completion for source, completion in reversed(taken) if source is subject or not known), None)

    def begin(self, test: QuestionTest) -> None:
        """Have a question answered before its test runs, if the test asks its item as it is."""
        if not self._bound:
            self._bind(test.funcargs)
        subject = self.respondent.subject
        if isinstance(subject, Model) and self._asks_by_itself(test):
            self.state.pipeline.answer(self, subject, self._batch[self._batch.index(test) :])

    def check_passed(self, test: QuestionTest) -> None:
        """End the interview if the test of a question that passed accepts answers to other questions."""
        if self.asks_items or self._over:
            return
        latest = self.latest(test.requests.taken)
        if sentence := self.probes.check_passed(self.node, test, latest.text if latest else ""):
            self.give_up(sentence, usage=True)

    def complete(self, subject: Model, item: Item) -> Completion:
        """Return the completion of a request that the test of the current question makes."""
        return self.recorder.complete(subject, item)

    def _asks_by_itself(self, test: QuestionTest) -> bool:
        """Whether the request of a test is known: that of its item, if made-up answers have shown it."""
        if test not in self._batch or self.finding.asks_item is False:
            return False
        if self.asks_items or (self.asks_ahead and self.evaluation.policy.batch > 1):
            return True
        # no likelihoods of choices follow from a prompt alone, which a test may pass
        return len(self._batch) > 1 or test.asked.item.likelihood is not None

    @property
    def asks_ahead(self) -> bool:
        """Whether questions may be asked before their tests run, since these ask nothing but their items."""
        return (self.asks_items or bool(self.finding.asks_item)) and not self._spends_to_a_limit

    @property
    def asks_items(self) -> bool:
        """Whether the tests do nothing but ask their items and grade the answers, as in TOML files."""
        return self.node.asks_items

    @property
    def grades_answers(self) -> bool:
        """Whether the tests give the answers to their items' graders as they are."""
        return self.asks_items or bool(self.finding.asks_item and self.finding.grades_answer)

    def follow(self, leader: AskingLoop) -> None:
        """Identify the subject as that of an interview with the same cap and fixtures, which are set up.

        A loop for the same interview has its journal.

        Raises:
            AdaptiveEvalError: The subject cannot answer this interview.
        """
        self._bound = True
        self.respondent.fixture, self.respondent.subject = leader.respondent.fixture, leader.respondent.subject
        if leader.node is self.node:
            self.recorder.journal = leader.recorder.journal
        self._identify(self.respondent.subject.identity)

    def _bind(self, funcargs: dict[str, Any]) -> None:
        """Identify the subject once the first question's fixtures are set up, and open the journal."""
        self._bound = True
        respondent = self.respondent
        respondent.fixture, respondent.subject, identity = find_model_fixture(funcargs)
        if self._batch[0].asked.item.likelihood is not None and not getattr(respondent.subject, "rates_texts", False):
            raise ConfigError(
                f"{self.evaluation.name}: items are scored by the likelihoods of texts, which {respondent.fixture!r} "
                f"({type(respondent.subject).__name__}) does not give: name a checkpoint or a server, or ask for "
                "written answers"
            )
        respondent.cap(self.evaluation.max_tokens, self.evaluation.name)
        self._identify(identity)
        self.recorder.share_seed(self.generators)

    def _identify(self, identity: SubjectIdentity) -> None:
        respondent = self.respondent
        if isinstance(respondent.subject, Model):
            if (cap := respondent.subject.cap) is not None:
                identity = identity.with_caps(recorded_caps(cap, self.evaluation.bank.items) or {cap.tokens})
            respondent.usage = respondent.subject.usage
            self._prepare(respondent.subject)
            self.recorder.subject = respondent.subject
        respondent.decoding = identity.decoding_hash  # before the identity is set: not every identity has one
        respondent.identity = identity
        for file in self.gate_plan.baselines(self.evaluation).values():
            file.check(decoding=respondent.decoding, checkpoint=identity.checkpoint)
        if self.evaluation.allows_for_noise and getattr(respondent.subject, "varies", True):
            respondent.noise_check = DecodingCheck(self.state.history, self.evaluation, identity)
        self.evaluation = self.evaluation.for_subject(
            samples=bool(respondent.noise_check and respondent.noise_check.reason)
        )
        self.session.decodings = self.evaluation.decodings
        self.session.go_on_from(self._earlier_budgets(identity))
        judge, items = self.evaluation.judge, self.evaluation.bank.items
        if judge is not None:
            judge.check(items)
        if isinstance(respondent.subject, Model):
            self.reuse.refusal = respondent.subject.no_reuse
        if identity.checkpoint and self.recorder.journal is None:  # else answers could belong to another subject
            self._open_journal(respondent)

    def _prepare(self, subject: Model) -> None:
        """Check a subject of this package before its first answer."""
        evaluation, fixture = self.evaluation, self.respondent.fixture
        check_scope(self.node, fixture, evaluation.name)
        subject.prepare(evaluation.bank.items)
        if evaluation.repeat is not None and evaluation.decodings and not subject.varies:
            raise ConfigError(
                f"{evaluation.name}: samples and repeat ask an item again, and {fixture!r} has one recorded "
                "answer to it: remove samples and repeat, or ask a model"
            )

    def _earlier_budgets(self, identity: SubjectIdentity) -> list[int]:
        """Return the budgets at which earlier runs judged the first of these draws, whose scores were the same.

        Bets that are judged at their budget alone end there, and nothing is left to go on with.
        """
        session, varies = self.session, getattr(self.respondent.subject, "varies", True)
        same_answers = identity.samples is False or not varies
        if not (
            identity.checkpoint
            and same_answers
            and self.gate_plan.judged
            and session.sequential
            and session.policy.draws_ahead
        ):
            return []
        policy = self.policy_record()
        budgets: list[int] = []
        for _, record in _earlier_interviews(self.state.history, self.evaluation, identity):
            if record.nodeid == self.nodeid and record.policy.draws_alike(policy):
                budgets += [*record.policy.earlier, record.planned]
        return budgets

    def policy_record(self) -> PolicyRecord:
        """Return the settings that determine the draws and at what the bets aim."""
        evaluation, session = self.evaluation, self.session
        settings = {
            **session.policy.to_json(),
            **evaluation.policy.assisted_by(evaluation.bank),
            "seed": evaluation.seed,
            "stream": str(evaluation.stream),
            "asked_first": [str(evaluation.bank.ids[n]) for n in session.take_all.tolist()],
            "must_pass": evaluation.must_pass_ids,
            "horizon": None if session.fixed else session.horizon,
            "earlier": session.earlier,
        }
        return PolicyRecord.from_json(plain(settings))

    def _open_journal(self, respondent: Respondent) -> None:
        subject, identity = respondent.subject, respondent.identity
        if not (isinstance(subject, Model) or self.recorder.watch(subject, identity)):
            return
        evaluation = self.evaluation
        policy = {**evaluation.policy.identity(), "budget": None}  # an interview may go on with a larger one
        key = request_key(
            *(self.nodeid, evaluation.name, evaluation.bank.content_hash, evaluation.bank.scale),
            *(policy, evaluation.policy.assisted_by(evaluation.bank)),
            *(evaluation.samples, str(evaluation.repeat), evaluation.must_pass_ids),
            *(evaluation.stream, identity_key(subject, identity)),
        )
        path = self.state.journal_path(key)
        journal, spent = self.state.pipeline.hand_over(self.nodeid, path)
        respondent.usage -= spent
        if journal is None:
            journal = CompletionStore(path, shared=self.state.answers, fresh=self.state.settings.fresh)
        self.recorder.journal = journal
        if evaluation.judge is not None:
            evaluation.judge.store = journal
