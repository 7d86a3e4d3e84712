"""Ask the questions of one interview until its session ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec import structs

from pytest_adaptive_eval.api_keys import without_keys
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.cat.stopping import StopReason, repeats
from pytest_adaptive_eval.errors import AdaptiveEvalError, ConfigError, UsageError
from pytest_adaptive_eval.evaluation import Interview
from pytest_adaptive_eval.inference.design import Proposal
from pytest_adaptive_eval.inference.noise import ONE_WAY, item_score, one_way_changes
from pytest_adaptive_eval.items.item import Response, Status, length_note
from pytest_adaptive_eval.models.base import Completion, Model, SubjectIdentity
from pytest_adaptive_eval.models.caps import Cap, recorded_caps
from pytest_adaptive_eval.models.request_keys import identity_key, request_key
from pytest_adaptive_eval.models.store import CompletionStore
from pytest_adaptive_eval.outputs import make_private, replacing
from pytest_adaptive_eval.plugin.ask.answer_counts import Answered, too_many_errors
from pytest_adaptive_eval.plugin.ask.answers import Answers, Reuse
from pytest_adaptive_eval.plugin.ask.decoding_check import DecodingCheck, earlier_interviews
from pytest_adaptive_eval.plugin.ask.open_questions import OpenQuestion, TestFinding
from pytest_adaptive_eval.plugin.ask.pipeline import PIPELINE
from pytest_adaptive_eval.plugin.ask.probing import TestProbes
from pytest_adaptive_eval.plugin.ask.question import AskedItem, QuestionTest, check_scope, find_model_fixture
from pytest_adaptive_eval.plugin.ask.random_states import GeneratorStates
from pytest_adaptive_eval.plugin.notices import captured
from pytest_adaptive_eval.plugin.progress import QuestionProgress
from pytest_adaptive_eval.plugin.state import EvaluationTest, sets_up_only
from pytest_adaptive_eval.records.baseline import BaselineFile
from pytest_adaptive_eval.records.parts import PolicyRecord, PredictionRecord, plain
from pytest_adaptive_eval.records.run_record import UNKNOWN, answer_values
from pytest_adaptive_eval.text import counted

_REPEAT_SEED = 1  #: Seed suffix for drawing repeated items.
_FLOOR_SEED = 2  #: Seed suffix for drawing items on which answers to other questions are scored.
NAMED = 10  #: Number of changed items that an error names.
#: Why an answer that came too late for a verdict is missing.
NOT_NEEDED = "the verdict was certain before the answer came"
_CONDITIONAL_MARKS = ("skip", "skipif", "xfail")  #: Marks by which questions may not run, or run otherwise.


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
    whose: str = ""  #: See `EvaluationRecord.whose`; empty for a subject without an identity.
    decoding: str = ""
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
        self.own_cap = self.subject.cap
        self.subject.cap = Cap(max_tokens, chosen=True)

    def uncap(self) -> None:
        """Give the subject its own cap back."""
        if self.own_cap is not None:
            self.subject.cap, self.own_cap = self.own_cap, None


class AskingLoop:
    """Questions of one interview, in the order of its session, until the session or a fault ends it."""

    def __init__(self, node: EvaluationTest, interview: Interview) -> None:
        self.node = node
        self.gate_plan = node.gate_plan
        self.nodeid = node.nodeid
        self.evaluation, self.state = interview, node.state
        self.repeat = interview.repeat  #: Items that are asked again, see `Interview.repeat_of`.
        self.fault: VoidReason | None = None
        self.respondent = Respondent()
        self.answered: list[Answered] = []
        self._baselines: list[BaselineFile[Any]] = []
        self.reuse = Reuse(self.state.answers, node.config.rootpath, named=self.state.settings.names_reuse)
        self.generators = GeneratorStates(f"{node.nodeid} {self.evaluation.stream}")
        self.skipped, self.reruns = "", 0
        self.probes = TestProbes(self.evaluation.bank.items, self.evaluation.wrong_answer)
        self.floor: list[tuple[int, float]] = []  #: See `TestProbes.floor`.
        if interview.predictions is None:
            self.predictions = PredictionRecord()
        else:
            self.predictions = interview.predictions.source
        self.unneeded = 0  #: Calls whose answers the interview did not need.
        self._bound = False
        self._hook = node.ihook
        self._pipeline = node.config.stash[PIPELINE]
        self._setup_only = sets_up_only(node.config)
        self._on_worker = self.state.worker
        self._batch: list[QuestionTest] = []
        self._live: QuestionProgress
        self._shows_live = False
        self.session = self._open_session()
        self.finding = TestFinding()
        self.answers = Answers(
            interview, self.session, self.finding, asks_items=node.asks_items, judged=self.gate_plan.judged
        )

    def _open_session(self) -> Session:
        evaluation = self.evaluation
        try:
            # `_identify` sets the number of decodings where it depends on the subject
            if self.repeat is None:
                decodings = 0
            else:
                decodings = evaluation.decodings(self.repeat)
            arguments = {**evaluation.session_arguments(self.gate_plan, self.state.family), "decodings": decodings}
            return Session(evaluation.bank, evaluation.policy, seed=evaluation.stream, **arguments)
        except AdaptiveEvalError as error:
            self._end_by(error)
            return Session(evaluation.bank, evaluation.policy, seed=evaluation.stream)

    @property
    def decodings(self) -> int:
        """Number of answers that a score is the mean of, where decoding noise is measured; else 0."""
        return self.evaluation.decodings(self.repeat)

    def run(self) -> None:
        """Ask questions until the session ends.  An error of this package makes the interview void."""
        evaluation = self.evaluation
        budget = evaluation.budget * evaluation.samples
        self._live = QuestionProgress(self.node.config, evaluation.name, budget, evaluation.most_questions)
        self._shows_live = self._live.is_shown
        try:
            with self.generators.in_use():
                self._ask_proposals()
                self._repeat_items()
                self.floor = self.probes.floor(self, self.node, evaluation.bank, (evaluation.stream, _FLOOR_SEED))
        except AdaptiveEvalError as error:
            self._end_by(error)
        finally:
            self.unneeded = self._pipeline.finish(self.answers)
            self.respondent.uncap()
            self.answers.close()
            self._live.end()
            if evaluation.judge is not None:
                evaluation.judge.close()
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

    def _ask_proposals(self) -> None:
        answers = self.answers
        while not self._over and (proposal := self._propose()) is not None:
            if not (answers.administrations or answers.asks_items or self._setup_only):
                self._check_first()
            if not self._affordable(proposal.items.shape[1]):
                self.session.end(StopReason.COST)
                break
            asked_before = len(answers.administrations)
            responses = self._run_batch(list(map(self._test, answers.proposed(proposal))))
            if self._setup_only:
                break  # no question has a score
            answered = answers.administrations[asked_before:]
            values = answer_values(answered, self.evaluation.samples)
            if self.predictions.unused:
                self.session.forget_earlier()
            answers.tell(self.item_scores([response.score for response in responses]), values)
            ability = answers.ability
            for administration in answered:
                administration.theta_after = ability
            self._live.estimate(self.session)

    def _check_first(self) -> None:
        """Run the test on made-up answers before its first question; raise ConfigError if its verdicts mean nothing."""
        sentence = self.probes.check_first(self, self.node, self.session)
        if sentence:
            raise ConfigError(sentence)

    def _propose(self) -> Proposal | None:
        """Return the next questions of the session, for which a selector may load and ask a model."""
        with captured(self.node):
            return self.session.ask(self.answers.together)

    def _affordable(self, items: int) -> bool:
        """Return whether the next items fit into the budgets in tokens and money."""
        subject = self.answers.subject
        if subject is None:
            return True
        evaluation = self.evaluation
        following = items * evaluation.samples + repeats(self.repeat, self.session.asked + items)
        asked = len(self.answers.administrations)
        return evaluation.spending.allows(subject.usage - self.answers.usage_before, asked, following)

    def _repeat_items(self) -> None:
        """Administer some items once more, drawn uniformly, to measure decoding noise."""
        evaluation = self.evaluation
        answers = self.answers
        check = self.respondent.noise_check
        if check is not None and check.finds_changes(answers.administrations):
            self.repeat = evaluation.repeat_of(samples=True)
        items = self.session.log().items
        if self.session.finished:
            count = repeats(self.repeat, len(items))
        else:
            count = 0
        rng = np.random.default_rng((evaluation.stream, _REPEAT_SEED))
        if count:
            drawn = rng.choice(items, count, replace=False).tolist()
        else:
            drawn = []
        reason = "asked again, to measure the noise of decoding"
        while drawn and not self._over:
            details = {"reason": reason, "theta_before": answers.ability}
            first = len(answers.administrations) + 1
            batch = enumerate(drawn[: evaluation.policy.batch], first)
            again = []
            for position, index in batch:
                again.append(answers.drawn(index, evaluation.samples, position, **details))
            del drawn[: len(self._run_batch(list(map(self._test, again))))]
        if drawn:
            self.give_up("the run was interrupted before the items were asked again that measure the noise of decoding")
        self._check_changes()

    def _check_changes(self) -> None:
        """End the interview as void if the repeated answers show another model than the first ones."""
        first: dict[str, float] = {}
        changes: dict[str, float] = {}
        for answer in self.answers.administrations:
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
        if len(changed) > NAMED:
            more = f" and {len(changed) - NAMED} more"
        else:
            more = ""
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

    def _test(self, question: OpenQuestion) -> QuestionTest:
        test = QuestionTest.of(self.node, AskedItem(question.item, question.sample))
        test.interview, test.ihook = self, self._hook
        test.question, test.administration = question, question.administration
        return test

    def _run_batch(self, tests: list[QuestionTest]) -> list[Response]:
        """Run questions that are answered together, up to the last or to the end of the interview."""
        self._batch = tests
        responses = []
        for index, test in enumerate(tests):
            if not self._needs(tests[index:]):
                responses.append(response := Response(Status.NOT_AWAITED, detail=NOT_NEEDED))
                if self.session.awaited is None:
                    self.session.awaited = self.session.asked + index
                self._record(test, response)
                continue
            self._run_protocol(test)
            responses.append(response := self._take(test))
            test.keywords = {}  # pytest's refer back to the test, which would stay until the collector finds it
            if response.score is None:  # a wrong answer ends nothing
                most = self.evaluation.questions(self.repeat)
                subject = self.answers.subject
                asked_twice = subject is not None and subject.asks_twice
                fault = too_many_errors(self.answers.administrations, most, asked_twice=asked_twice)
                if fault:
                    self.give_up(fault, stop=StopReason.ERRORS)
            if self._over:
                break
        return responses

    def _needs(self, tests: Sequence[QuestionTest]) -> bool:
        """Whether the verdict needs the first question's answer, which is there then: not one that is slow to come."""
        evaluation, answers = self.evaluation, self.answers
        subject = answers.subject
        if subject is None or not subject.waits_apart or not self._bound:
            return True
        asks_plainly = answers.asks_items and answers.asks_ahead
        if not asks_plainly or evaluation.must_pass or evaluation.samples > 1 or self.session.finished:
            return True
        with captured(self.node):
            return self._pipeline.needs(answers, [test.question for test in tests])

    def _run_protocol(self, test: QuestionTest) -> None:
        # on a worker it replaces its interview meanwhile: xdist checks reports against that list
        items: list[Any] = self.node.session.items
        position = None
        if self._on_worker and self.node in items:
            position = items.index(self.node)
        if position is not None:
            items[position] = test
        self.answers.current = test.question
        try:
            self._hook.pytest_runtest_protocol(item=test, nextitem=self.node)
        finally:
            self.answers.current = None
            if position is not None:
                items[position] = self.node

    def _take(self, test: QuestionTest) -> Response:
        answers = self.answers
        taken = self.latest(test.requests.taken)
        if test.asked.read and taken is not None and test.asked.text != taken.text:
            self.finding.grades_answer = False
        response = test.response or Response(Status.ERROR, detail=test.fault or "the test did not run")
        if answers.journal is not None and (fault := answers.journal.fault):
            response = Response(Status.ERROR, None, response.text, fault)  # an answer that is not stored does not count
            self.give_up(fault, usage=True)
        self._record(test, response)
        request = test.requests.other_than(test.asked.item)
        if self.finding.random or (request is None and response.score is not None):
            request = UNKNOWN
        administration = test.administration
        administration.request = request or administration.request
        for file in self._baselines:
            file.check_requests([administration])
        earlier = self.evaluation.predictions
        if earlier is not None and not self.predictions.unused and earlier.asked_otherwise(administration):
            self.predictions = structs.replace(
                self.predictions, unused=f"its test asked {administration.item!r} otherwise"
            )
        if self._shows_live:
            self._live.count(len(answers.administrations))
        if self._pipeline.is_busy(answers):
            with captured(self.node):
                self._pipeline.advance(answers)
        return response

    def _record(self, test: QuestionTest, response: Response) -> None:
        """Add a response to the administrations."""
        administration, asked = test.administration, test.asked
        administration.status = response.status.value
        administration.score = response.score
        administration.text = response.text
        # a server, a harness or an exception may repeat a key; an answer is never edited
        administration.detail = without_keys(response.detail or test.fault or length_note(response.text))
        self.answers.administrations.append(administration)
        self.answers.questions.tell(test.question)
        self.answered.append(Answered(asked.item, response, first=not asked.sample, read=asked.read))

    def latest(self, taken: Sequence[tuple[Model, Completion]]) -> Completion | None:
        """Return the latest of the completions that the model under evaluation gave; None where that is unknown.

        A model that is no `Model` may ask one.
        """
        subject = self.respondent.subject
        is_model = isinstance(subject, Model)
        for source, completion in reversed(taken):
            if source is subject or not is_model:
                return completion
        return None

    def begin(self, test: QuestionTest) -> None:
        """Have a question answered before its test runs, if the test asks its item as it is."""
        if not self._bound:
            self._bind(test.funcargs)
        if self.answers.subject is not None and self._asks_by_itself(test):
            awaited = self._batch[self._batch.index(test) :]
            self._pipeline.answer(self.answers, [other.question for other in awaited])

    def check_passed(self, test: QuestionTest) -> None:
        """End the interview if the test of a question that passed accepts answers to other questions."""
        if self._over:
            return
        if sentence := self.probes.check(self.node, test):
            self.give_up(sentence, usage=True)

    def _asks_by_itself(self, test: QuestionTest) -> bool:
        """Whether the request of a test is known: that of its item, if made-up answers have shown it."""
        answers = self.answers
        if test not in self._batch or self.finding.asks_item is False:
            return False
        if answers.asks_items or (answers.asks_ahead and self.evaluation.policy.batch > 1):
            return True
        # no likelihoods of choices follow from a prompt alone, which a test may pass
        return len(self._batch) > 1 or test.asked.item.likelihood is not None

    def _followers(self, subject: Model) -> Iterator[tuple[str, Callable[[], Answers | None]]]:
        """Yield the later interviews that may be asked ahead of their tests, see `pipeline.Followers`."""
        items = self.node.session.items
        # an interview of one worker may be given to another
        if self._on_worker or not subject.shared_batch or self.node not in items:
            return
        for node in items[items.index(self.node) + 1 :]:
            if isinstance(node, EvaluationTest) and self._may_follow(node):
                yield node.nodeid, partial(self._follower, node)

    def _may_follow(self, node: EvaluationTest) -> bool:
        """Return whether an interview can be asked ahead: by the same fixtures, with nothing else to wait for."""
        if not node.evaluation.most_questions:
            return False
        if any(other.result is None for other in node.state.needs.get(node, ())):
            return False
        return _asks_alike(self.node, node)

    def _follower(self, node: EvaluationTest) -> Answers | None:
        """Return the answers of an interview that asks what this one asks; None where it cannot, or has no journal."""
        assert isinstance(node.evaluation, Interview)
        loop = AskingLoop(node, node.evaluation)
        try:
            if loop.fault is None:
                loop.follow(self)
        except Exception:  # it fails when its turn comes
            loop.answers.close()
            return None
        if loop.fault is not None or loop.answers.journal is None:
            return None
        return loop.answers

    def follow(self, leader: AskingLoop) -> None:
        """Identify the subject as that of an interview with the same cap and fixtures, which are set up.

        Raises:
            AdaptiveEvalError: The subject cannot answer this interview.
        """
        self._bound = True
        self.respondent.fixture = leader.respondent.fixture
        self.respondent.subject = leader.respondent.subject
        self._identify(leader.respondent.subject.identity, follows=True)

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
        self.answers.share_seed(self.generators)
        subject = self.answers.subject
        if subject is not None:
            self._pipeline.lead(self.answers, subject, self._followers(subject))

    def _identify(self, identity: SubjectIdentity, *, follows: bool = False) -> None:
        """Find out whose answers these are, in the form of the run that began the journal, if there was one.

        Args:
            follows: Whether the subject is asked by another interview now, whose form it keeps.
        """
        respondent = self.respondent
        answers = self.answers
        evaluation = self.evaluation
        subject = None
        if isinstance(respondent.subject, Model):
            subject = respondent.subject
        answers.subject = subject
        if identity.checkpoint:  # else answers could belong to another subject
            self._open_journal(identity)
        if subject is not None:
            identity = self._prepare(subject, follows=follows)
        respondent.decoding = identity.decoding_hash  # before the identity is set: not every identity has one
        respondent.identity = answers.identity = identity
        if identity.checkpoint:
            respondent.whose = request_key(identity_key(respondent.subject, identity))[:16]
        self._baselines = list(self.gate_plan.baselines(evaluation).values())
        for file in self._baselines:
            file.check(decoding=respondent.decoding, checkpoint=identity.checkpoint)
        self._check_predictions(identity)
        if evaluation.allows_for_noise and getattr(respondent.subject, "varies", True):
            respondent.noise_check = DecodingCheck(self.state.history, evaluation, identity, respondent.whose)
        self.repeat = evaluation.repeat_of(samples=bool(respondent.noise_check and respondent.noise_check.reason))
        self.session.decodings = self.decodings
        self.session.go_on_from(self._earlier_budgets(identity))
        if evaluation.judge is not None:
            evaluation.judge.check(evaluation.bank.items)  # by each run, so its journal comes after
            if answers.journal is not None:
                evaluation.judge.store = answers.journal
            if evaluation.judge.samples:  # a score is one draw of the judge even if the subject answers greedily
                self.session.decodings = max(self.session.decodings, 1)
        if subject is not None:
            self.reuse.refusal = subject.no_reuse

    def _check_predictions(self, identity: SubjectIdentity) -> None:
        """Keep the earlier answers if they predict for this subject, or drop them."""
        earlier = self.evaluation.predictions
        if earlier is None:
            return
        if refusal := earlier.refusal(identity, self.respondent.decoding):
            self.predictions = structs.replace(self.predictions, unused=refusal)
            self.session.forget_earlier()
            return
        path = self.node.predictions
        if path is not None and not Path(path).exists():
            make_private(Path(path).parent)
            with replacing(Path(path)) as file:
                file.write(json.dumps(earlier.to_json()).encode())

    def _prepare(self, subject: Model, *, follows: bool) -> SubjectIdentity:
        """Check a subject of this package before its first answer, and return its identity in the form it is asked."""
        evaluation = self.evaluation
        fixture = self.respondent.fixture
        items = self.evaluation.bank.items
        check_scope(self.node, fixture, evaluation.name)
        opening = subject.opening
        as_before = self.answers.resume_opening()
        if follows and subject.opening != opening:
            subject.resume(opening)
            as_before = False
        if follows and not as_before:
            raise ConfigError(
                f"{evaluation.name}: an earlier run asked in another form; this interview uses it when its turn comes"
            )
        self.answers.usage_before += subject.usage
        subject.prepare(items)
        self.answers.keep_opening()
        measures_noise = evaluation.repeat is not None and evaluation.decodings(evaluation.repeat) > 0
        if measures_noise and not subject.varies:
            raise ConfigError(
                f"{evaluation.name}: samples and repeat ask an item again, and {fixture!r} has one recorded "
                "answer to it: remove samples and repeat, or ask a model"
            )
        identity = subject.identity
        if subject.cap is not None:
            identity = identity.with_caps(recorded_caps(subject.cap, items) or {subject.cap.tokens})
        return replace(identity, decoding={**identity.decoding, **subject.form(items)})

    def _earlier_budgets(self, identity: SubjectIdentity) -> list[int]:
        """Return the budgets at which earlier runs judged the first of these draws, whose scores were the same.

        Bets that are judged at their budget alone end there, and nothing is left to go on with.
        """
        session = self.session
        varies = getattr(self.respondent.subject, "varies", True)
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
        for _, record in earlier_interviews(self.state.history, self.evaluation, self.respondent.whose):
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

    def _open_journal(self, identity: SubjectIdentity) -> None:
        """Open the journal of the interview, which belongs to the subject's files, or name, kind and version.

        How the subject decodes is in the keys of its answers, since a server may settle that when it is first asked.
        """
        evaluation = self.evaluation
        answers = self.answers
        subject = self.respondent.subject
        if answers.subject is None and not answers.watch(subject, identity):
            return
        policy = {**evaluation.policy.identity(), "budget": None}  # an interview may go on with a larger one
        key = request_key(
            *(self.nodeid, evaluation.name, evaluation.bank.content_hash, evaluation.bank.scale),
            *(policy, evaluation.policy.assisted_by(evaluation.bank)),
            *(evaluation.samples, str(evaluation.repeat), evaluation.must_pass_ids, evaluation.stream),
            identity_key(subject, replace(identity, decoding={})),
        )
        path = self.state.journal_path(key)
        self._pipeline.hand_over(self.nodeid, path, answers)
        if answers.journal is None:
            settings = self.state.settings
            shared = self.state.answers
            if answers.subject is not None and answers.subject.shares_by_flag and not settings.names_reuse:
                shared = None
            answers.journal = CompletionStore(path, shared=shared, fresh=settings.fresh)
            if answers.subject is not None and settings.fresh:
                answers.subject.forget(answers.interview)


def _asks_alike(first: EvaluationTest, second: EvaluationTest) -> bool:
    """Return whether the questions of two interviews get the same fixtures and cap, and nothing else ends them."""
    interview, other = first.evaluation, second.evaluation
    assert isinstance(interview, Interview)
    if not isinstance(other, Interview):
        return False
    if other.judge is not None or other.interviewer is not None or other.lead or other.spending.limited:
        return False
    if interview.max_tokens != other.max_tokens:
        return False
    if any(mark.name in _CONDITIONAL_MARKS for mark in second.iter_markers()):
        return False
    if len(first.ids) > 1 or len(second.ids) > 1 or first.own_model is not second.own_model:
        return False
    definitions = _definitions(first)
    if definitions != _definitions(second):
        return False
    return first.parent is second.parent or all(entry.scope == "session" for entry in definitions.values())


def _definitions(node: EvaluationTest) -> dict[str, Any]:
    """Return the fixtures of an interview's test by name."""
    info = node._fixtureinfo
    names = {*info.names_closure} & {*info.name2fixturedefs} - {"item"}
    return {name: info.name2fixturedefs[name][-1] for name in names}
