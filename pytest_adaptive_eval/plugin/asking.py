"""Ask the questions of one interview until its session ends."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.cat.stopping import StopReason, repeats
from pytest_adaptive_eval.errors import AdaptiveEvalError, ConfigError, JournalError, UsageError
from pytest_adaptive_eval.inference.design import Proposal
from pytest_adaptive_eval.inference.noise import item_score
from pytest_adaptive_eval.items.grading import JUDGE, needs_judge
from pytest_adaptive_eval.items.item import MISSING, Item, Response, Status, items_naming
from pytest_adaptive_eval.models.base import Completion, Subject, SubjectIdentity, Usage
from pytest_adaptive_eval.models.caps import Cap, recorded_caps
from pytest_adaptive_eval.plugin.decoding import DecodingCheck
from pytest_adaptive_eval.plugin.fingerprint import source_hash
from pytest_adaptive_eval.plugin.gate_plan import GatePlan
from pytest_adaptive_eval.plugin.live_line import LiveLine
from pytest_adaptive_eval.plugin.model_fixture import check_scope, find_model_fixture
from pytest_adaptive_eval.plugin.probe import check_test
from pytest_adaptive_eval.plugin.question import AskedItem, Draw, Question, question
from pytest_adaptive_eval.plugin.randomness import GeneratorStates
from pytest_adaptive_eval.plugin.recording import AnswerRecorder
from pytest_adaptive_eval.plugin.reuse import Reuse
from pytest_adaptive_eval.plugin.state import Finding, sets_up_only
from pytest_adaptive_eval.records.journal import Journal, interview_key
from pytest_adaptive_eval.records.run_record import Administration, plain

#: Names in the record of what a draw tells, and the columns of a `Proposal`.
_DRAW_COLUMNS = {
    "propensity": "propensities",
    "predicted": "predictions",
    **{name: name for name in ("rest", "variance", "down", "up")},
}
#: Seed suffix for drawing repeated items.
_REPEAT_SEED = 1


class Fault(NamedTuple):
    """Reason why an interview is void.

    Args:
        usage: Whether it is a mistake of the user.
    """

    sentence: str
    usage: bool
    stop: StopReason


@dataclass
class Respondent:
    """The subject that answers an interview, as the fixtures of the first question give it.

    Args:
        fixture: Name of the fixture.
        subject: Its value.
        decoding: Hash of the decoding settings.
        usage: Usage before the interview.
        noise_check: None where another run gives the same answers.
        own_cap: Cap of the subject outside of this interview, while the evaluation has one of its own.
    """

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
        if not isinstance(self.subject, Subject) or self.subject.cap is None:
            raise ConfigError(
                f"{name}: max_tokens is {max_tokens}, and nothing caps the answers of {self.fixture!r} "
                f"({type(self.subject).__name__}): remove it, or name a checkpoint or a server"
            )
        self.own_cap, self.subject.cap = self.subject.cap, Cap(max_tokens, chosen=True)

    def uncap(self) -> None:
        """Give the subject its own cap back."""
        if self.own_cap is not None:
            self.subject.cap, self.own_cap = self.own_cap, None

    def as_capped(self, identity: SubjectIdentity, items: Sequence[Item]) -> SubjectIdentity:
        """Return the subject's identity with the token caps of answers to these items: one number, or a list."""
        cap = self.subject.cap if isinstance(self.subject, Subject) else None
        if cap is None:
            return identity
        return identity.with_caps(recorded_caps(cap, items) or {cap.tokens})


class AskingLoop:
    """Questions of one interview, in the order of its session, until the session or a fault ends it.

    Args:
        node: The placeholder, from which the questions are made.
    """

    def __init__(self, node: pytest.Function, gate_plan: GatePlan) -> None:
        self.node, self.gate_plan, self.nodeid = node, gate_plan, node.nodeid
        self.evaluation, self.state = gate_plan.evaluation, gate_plan.state
        self.fault: Fault | None = None
        self.respondent = Respondent()
        self.recorder = AnswerRecorder(self.evaluation.unanswered)
        self.reuse = Reuse(self.state.answers, node.config.rootpath)
        self.generators = GeneratorStates(f"{node.nodeid} {self.evaluation.stream}")
        self.skipped, self.reruns, self.finding = "", 0, Finding()
        self._bound = False
        self._hook = node.ihook
        self._setup_only = sets_up_only(node.config)
        self._batch: list[Question] = []
        self._live: LiveLine
        self.session = self._open_session()

    def _open_session(self) -> Session:
        """Create the session, with the gate conditions that could be read."""
        evaluation = self.evaluation
        try:
            # `bind` sets the number of decodings where it depends on the subject
            decodings = 0 if evaluation.repeat is None else evaluation.decodings
            arguments = {**self.gate_plan.session_arguments(), "decodings": decodings}
            return Session(evaluation.bank, evaluation.policy, seed=evaluation.stream, **arguments)
        except AdaptiveEvalError as error:
            self._end_by(error)
            return Session(evaluation.bank, evaluation.policy, seed=evaluation.stream)

    def run(self) -> None:
        """Ask questions until the session ends.  An error of this package makes the interview void."""
        evaluation = self.evaluation
        budget = evaluation.budget * evaluation.samples
        self._live = LiveLine(self.node.config, evaluation.name, budget, evaluation.questions)
        try:
            self._ask_proposals()
            self._repeat_items()
            if (doubt := self.finding.doubt) and self.recorder.all_right:
                raise ConfigError(f"{self.nodeid}: {doubt}")
        except AdaptiveEvalError as error:
            self._end_by(error)
        finally:
            self.respondent.uncap()
            self.recorder.close()
            self._live.end()
            if self.evaluation.judge is not None:
                self.evaluation.judge.close()
        if not (self.session.finished or self._setup_only):
            self.session.end(self.fault.stop if self.fault else StopReason.INTERRUPTED)
            self.give_up("the run was interrupted before the interview ended")

    def give_up(self, sentence: str, *, usage: bool = False, stop: StopReason = StopReason.GIVEN_UP) -> None:
        """End the interview as void; the first reason stands."""
        if self.fault is None:
            self.fault = Fault(sentence, usage, stop if self._bound else StopReason.UNASKED)

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
        while not self._over and (proposal := self.session.ask()) is not None:
            if not (self.recorder.administrations or self.asks_items or self._setup_only):
                self._check_test(self.evaluation.bank.items[int(proposal.items[0, 0])])
            if not self._affordable(proposal.items.shape[1]):
                self.session.end(StopReason.COST)
                break
            asked_before = len(self.recorder.administrations)
            scores = self._scores(proposal)
            if self._setup_only:
                break  # no question has a score
            self.tell(scores)
            ability = self._ability
            for administration in self.recorder.administrations[asked_before:]:
                administration.theta_after = ability
            self._live.estimate(self.session)

    def _check_test(self, item: Item) -> None:
        """Refuse a test that passes whatever the model says, before the first question.

        Raises:
            ConfigError: It does.
        """
        if sentence := check_test(self, self.node, item, self.evaluation.wrong_answer):
            raise ConfigError(sentence)

    def _affordable(self, items: int) -> bool:
        """Return whether the next items fit into the budgets in tokens and money."""
        subject, asked = self.respondent.subject, len(self.recorder.administrations)
        if not isinstance(subject, Subject):
            return True
        evaluation = self.evaluation
        following = items * evaluation.samples + repeats(evaluation.repeat, self.session.asked + items)
        return evaluation.spending.allows(subject.usage - self.respondent.usage, asked, following)

    def tell(self, scores: Sequence[float | None]) -> None:
        """Give the session the item scores of its proposal, and end it where an item that must pass is wrong."""
        self.session.tell(np.array([[np.nan if score is None else score for score in scores]], dtype=float))
        self._end_at_failure()

    def _end_at_failure(self) -> None:
        """End an interview for decisions once all items that must pass are asked and one is wrong: all gates fail."""
        plan, count = self.gate_plan, len(self.evaluation.must_pass)
        if not (count and plan.judged and self.evaluation.policy.stop == "decision"):
            return
        if len(self.session.take_all) <= self.session.asked:
            scores = self.session.log().scores[: len(self.session.take_all)]
            first = np.isin(self.session.take_all, self.evaluation.must_pass)
            if (scores[first] < 1.0).any():
                self.session.end(StopReason.MUST_PASS)

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
            questions = [self._test(self._draw(i, offset, evaluation.samples, details)) for offset, i in batch]
            del drawn[: len(self._run_batch(questions))]
        if drawn:
            self.give_up("the run was interrupted before the items were asked again that measure the noise of decoding")

    def _scores(self, proposal: Proposal) -> list[float | None]:
        """Return item scores of one proposal, up to the end of the batch or of the interview."""
        return self.item_scores(
            [response.score for response in self._run_batch(list(map(self._test, self.draws(proposal))))]
        )

    def item_scores(self, response_scores: Sequence[float | None]) -> list[float | None]:
        """Return the score of each item from those of its samples; the last item may lack some."""
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
                draws.append(self._draw(i, len(draws) + 1, sample, details))
        return draws

    def _draw(self, index: int, offset: int, sample: int, details: dict[str, Any]) -> Draw:
        """Return the question of a bank's item.

        Args:
            index: Position of the item in the bank.
            offset: Number of questions from the latest administration to this one, from 1.
            details: Fields of its `Administration` that its draw sets.
        """
        item = self.evaluation.bank.items[index]
        administration = Administration(
            position=len(self.recorder.administrations) + offset,
            item=item.id,
            item_hash=item.content_hash,
            format=item.formats[0],
            sample=sample,
            category=list(item.category),
            **details,
        )
        return Draw(AskedItem(item, sample), administration)

    def _test(self, draw: Draw) -> Question:
        """Create the test of a question."""
        test = question(self.node, draw.asked.item, draw.asked.sample)
        test.interview, test.ihook, test.administration = self, self._hook, draw.administration
        return test

    def _run_batch(self, questions: list[Question]) -> list[Response]:
        """Run questions that are answered together, up to the last or to the end of the interview."""
        self._batch = questions
        responses = []
        for test in questions:
            self._run_protocol(test)
            responses.append(response := self._take(test))
            test.keywords = {}  # pytest's refer back to the test, which would stay until the collector finds it
            if response.status.infrastructure:
                self._check_errors()
            if self._over:
                break
        return responses

    def _check_errors(self) -> None:
        if sentence := self.recorder.too_many_errors(self.evaluation.questions):
            self.give_up(sentence, stop=StopReason.ERRORS)

    def _run_protocol(self, test: Question) -> None:
        """Run a question in pytest's own protocol."""
        # on a worker it replaces its interview meanwhile: xdist checks reports against that list
        items: list[Any] = self.node.session.items
        position = items.index(self.node) if self.state.worker and self.node in items else None
        if position is not None:
            items[position] = test
        try:
            self._hook.pytest_runtest_protocol(item=test, nextitem=self.node)
        finally:
            if position is not None:
                items[position] = self.node

    def _take(self, test: Question) -> Response:
        """Record the response of a question that has run."""
        self.reuse.mark(test.administration)
        response = test.response or Response(Status.ERROR, detail=test.fault or "the test did not run")
        try:
            self.recorder.keep(test, response)
        except JournalError as error:  # an answer that could not be kept does not count
            response = Response(Status.ERROR, None, response.text, str(error))
            self.give_up(str(error), usage=True)
        self.recorder.add(test, response)
        self._live.count(len(self.recorder.administrations))
        if self.state.companions is not None:
            self.state.companions.advance(self)
        return response

    @property
    def unanswered(self) -> str:
        """What an unanswered question counts as, see `items.item.Response.of`."""
        return self.evaluation.unanswered

    def latest(self, taken: Sequence[tuple[Subject, Completion]]) -> Completion | None:
        """Return the latest of the completions that the model under evaluation gave, as far as that is known.

        A model that is no `Subject` may ask one.
        """
        subject = self.respondent.subject
        known = isinstance(subject, Subject)
        return next((completion for source, completion in reversed(taken) if source is subject or not known), None)

    def recall(self, test: Question) -> Response | None:
        """Return the answer that an interrupted run of this interview left, if any."""
        if not self._bound:
            self._bind(test.funcargs)
        if (response := self.recorder.stored_response(test)) is not None:
            return response
        subject = self.respondent.subject
        # the first question of the batch that an answer is missing for
        if test in self._batch and isinstance(subject, Subject):
            self._answer(subject, self._batch[self._batch.index(test) :])
        return None

    def _answer(self, subject: Subject, questions: Sequence[Question]) -> None:
        """Have the questions of the batch answered together, as far as their tests ask the items themselves."""
        batch, self._batch = self._batch, []
        if len(batch) == 1 and not self.asks_items and batch[0].asked.item.likelihood is None:
            return  # a test may pass the prompt alone, from which no likelihoods of choices follow
        if self.state.companions is not None:
            self.state.companions.prefetch(self, subject, questions)
        elif len(batch) > 1 or batch[0].asked.item.likelihood is not None:
            self.recorder.prefetch(subject, questions)
        else:
            self.recorder.unanswered(subject, questions)  # another run may have asked it together with others

    @property
    def asks_items(self) -> bool:
        """Whether the tests do nothing but ask their items and grade the answers, as those of TOML files."""
        return hasattr(self.node.function, "adaptive_eval_where")

    def follow(self, leader: AskingLoop) -> None:
        """Identify the subject as that of an interview with the same cap and fixtures, which are set up.

        A loop for the same interview has its journal.

        Raises:
            AdaptiveEvalError: The subject cannot answer this interview.
        """
        self._bound = True
        self.respondent.fixture, self.respondent.subject = leader.respondent.fixture, leader.respondent.subject
        if leader.node is self.node and (journal := leader.recorder.journal) is not None:
            identity = leader.respondent.identity
            self.recorder.open(journal, checkpoint=identity.checkpoint, decoding=leader.respondent.decoding)
        self._identify(self.respondent.subject.identity)

    def _bind(self, funcargs: dict[str, Any]) -> None:
        """Identify the subject once the first question's fixtures are set up, and open the journal."""
        self._bound = True
        respondent = self.respondent
        respondent.fixture, respondent.subject, identity = find_model_fixture(funcargs)
        self._check_likelihood(respondent)
        respondent.cap(self.evaluation.max_tokens, self.evaluation.name)
        self._identify(identity)

    def _identify(self, identity: SubjectIdentity) -> None:
        """Check the subject and its identity against the evaluation, and open the journal."""
        respondent = self.respondent
        identity = respondent.as_capped(identity, self.evaluation.bank.items)
        if isinstance(respondent.subject, Subject):
            respondent.usage = respondent.subject.usage
            self._prepare(respondent.subject)
        respondent.decoding = identity.decoding_hash  # before the identity is set: not every identity has one
        respondent.identity = identity
        for file in self.gate_plan.baselines().values():
            file.check(decoding=respondent.decoding, prompt=self.prompt_hash, unanswered=self.unanswered)
        if self.evaluation.allows_for_noise and getattr(respondent.subject, "varies", True):
            respondent.noise_check = DecodingCheck(self.state.folder, self.evaluation, identity, self.prompt_hash)
        self.evaluation = self.evaluation.for_subject(
            samples=bool(respondent.noise_check and respondent.noise_check.reason)
        )
        self.session.decodings = self.evaluation.decodings
        self._check_judge()
        self.reuse.bind(respondent.subject)
        if identity.checkpoint and self.recorder.journal is None:  # else answers could belong to another subject
            self._open_journal(respondent)

    def _check_judge(self) -> None:
        """Have the judge rank a few answers.  A TOML file without a judge may have no items that only one grades.

        Raises:
            ConfigError: There is none, or it gives no rank.
        """
        evaluation = self.evaluation
        if evaluation.judge is not None:
            evaluation.judge.check(evaluation.bank.items)
        elif self.asks_items:
            for item in items_naming(evaluation.bank.items, JUDGE):
                if item.custom is needs_judge:
                    needs_judge(item, "")

    def _check_likelihood(self, respondent: Respondent) -> None:
        """Refuse a model that cannot score items by likelihood, if the first item needs it.

        Raises:
            ConfigError: It cannot.
        """
        first = self._batch[0].asked.item
        if first.likelihood is not None and not getattr(respondent.subject, "rates_texts", False):
            raise ConfigError(
                f"{self.evaluation.name}: items are scored by the likelihoods of texts, which {respondent.fixture!r} "
                f"({type(respondent.subject).__name__}) does not give: name a checkpoint or a server, or ask for "
                "written answers"
            )

    def _prepare(self, subject: Subject) -> None:
        """Check a subject of this package before its first answer.

        Raises:
            ConfigError: Its fixture's scope is too narrow, or it has one recorded answer where several are needed.
        """
        evaluation, fixture = self.evaluation, self.respondent.fixture
        check_scope(self.node, fixture, evaluation.name)
        subject.prepare(evaluation.bank.items)
        if evaluation.repeat is not None and evaluation.decodings and not subject.varies:
            raise ConfigError(
                f"{evaluation.name}: samples and repeat ask an item anew, and {fixture!r} has one recorded "
                "answer to it: remove samples and repeat, or ask a model"
            )

    def _open_journal(self, respondent: Respondent) -> None:
        evaluation, checkpoint = self.evaluation, respondent.identity.checkpoint
        key = interview_key(
            name=f"{self.nodeid} {evaluation.name} {self.prompt_hash}",
            bank=evaluation.bank.content_hash,
            scale=evaluation.bank.scale,
            policy={
                **evaluation.policy.identity(),
                **evaluation.policy.assisted_by(evaluation.bank),
                "budget": evaluation.budget,
                "samples": evaluation.samples,
                "repeat": str(evaluation.repeat),
                **({"unanswered": MISSING} if evaluation.unanswered == MISSING else {}),
                **({"must_pass": evaluation.must_pass_ids} if evaluation.must_pass else {}),
            },
            seed=evaluation.stream,
            checkpoint=checkpoint,
            decoding=respondent.decoding,
        )
        path = self.state.folder / "journal" / f"{key}.jsonl"
        journal = None
        if self.state.companions is not None:
            journal, spent = self.state.companions.hand_over(self.nodeid, path)
            respondent.usage -= spent
        if journal is None:
            journal = Journal(path, fresh=self.state.settings.fresh)
        self.recorder.open(journal, checkpoint=checkpoint, decoding=respondent.decoding)

    @functools.cached_property
    def prompt_hash(self) -> str:
        """Hash of the code that determines prompts and scores; see `source_hash`."""
        graders = self.state.settings.graders
        return source_hash(self.node, self.node.config.rootpath, graders, self.respondent.fixture)
