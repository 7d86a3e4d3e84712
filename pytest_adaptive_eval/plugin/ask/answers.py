"""The answers of one interview: the open questions, their completions, and the journal that keeps them."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.cat.stopping import StopReason
from pytest_adaptive_eval.errors import AdaptiveEvalError
from pytest_adaptive_eval.evaluation import Interview
from pytest_adaptive_eval.inference.design import Proposal
from pytest_adaptive_eval.items.item import Item, Status, cut_text
from pytest_adaptive_eval.models.base import (
    TIMED_OUT,
    Completion,
    Model,
    RequestLog,
    SubjectIdentity,
    Usage,
    asks_alike,
    drawn,
    summed_measures,
)
from pytest_adaptive_eval.models.exchange import Exchange
from pytest_adaptive_eval.models.images import question_hash
from pytest_adaptive_eval.models.request_keys import completion_key, identity_key, may_share, request_key
from pytest_adaptive_eval.models.store import CompletionStore, scored
from pytest_adaptive_eval.plugin.ask.open_questions import (
    LEAST,
    OpenQuestion,
    OpenQuestions,
    Prospect,
    QuestionState,
    TestFinding,
    known_scores,
)
from pytest_adaptive_eval.records.parts import ReuseRecord, plain
from pytest_adaptive_eval.records.run_record import Administration, Place, answer_values
from pytest_adaptive_eval.text import counted, relative
from pytest_adaptive_eval.types import Array

if TYPE_CHECKING:
    from pytest_adaptive_eval.plugin.ask.random_states import GeneratorStates

SENT_KEY = 24  #: Characters of the key of a request as it was sent.
NEAR = 2  #: Batches in prospect below which the session is told the scores one by one, so that it ends at once.
#: Longest wait, in seconds, for an answer that a certain verdict does not need.
PATIENCE = 2.0
#: Names in the record of what a draw tells, and the columns of a `Proposal`.
_DRAW_COLUMNS = {
    "propensity": "propensities",
    "predicted": "predictions",
    **{name: name for name in ("rest", "variance", "down", "up")},
}


class Answers:
    """The answers of one interview, from the draw of a question to the score that its session takes.

    A later run takes the completions from the journal, runs its tests again and grades by its own code.

    Args:
        finding: What made-up answers have shown of the tests.
        asks_items: Whether the tests do nothing but ask their items and grade the answers, as in TOML files.
        judged: Whether a gate judges the interview.

    Attributes:
        subject: Model under evaluation; None while it is unknown, or is not a `Model`.
        identity: Whose answers these are.
        journal: None where no answer may outlive the run.
        questions: Questions whose scores the session does not know.
        administrations: Questions whose tests have run, in their order.
        current: Question whose fixtures and test run now.
        unkept: Sentence on a model whose answers cannot be kept; empty for others.
        unrecorded: Names of fields that were not recorded when stored answers came.
        sent: Requests as they were sent, by their keys in the administrations.
        exchanges: What else went between model and run.
        spent: Cost of answers that came before the first test of the interview.
        usage_before: Usage of the subject that is not of this interview.
        call_sizes: Numbers of calls by the number of questions that they answer together.
    """

    def __init__(
        self, evaluation: Interview, session: Session, finding: TestFinding, *, asks_items: bool, judged: bool
    ) -> None:
        self.evaluation = evaluation
        self.session = session
        self.finding = finding
        self.asks_items, self.judged = asks_items, judged
        self.subject: Model | None = None
        self.identity = SubjectIdentity("")
        self.journal: CompletionStore | None = None
        self.questions = OpenQuestions()
        self.administrations: list[Administration] = []
        self.current: OpenQuestion | None = None
        self.unkept = ""
        self.unrecorded: set[str] = set()
        self.sent: dict[str, str] = {}
        self.exchanges: dict[Place, Exchange] = {}
        self.spent = self.usage_before = Usage()
        self.call_sizes: Counter[int] = Counter()
        self._prospect = Prospect()
        self._spends_to_a_limit = evaluation.spending.limited
        self._looked_at = 0  #: Number of drawn questions for which kept answers were looked up.
        self._slowest = 0.0  #: Longest time, in seconds, that an answer took.
        self._settled: float | None = None  #: Time at which the verdict became certain.
        self._numbers: Counter[str] = Counter()  #: Of equal calls of a watched function within one question.
        self._release: Callable[[], object] = lambda: None

    def close(self) -> None:
        """Close the journal, and give a user's model its own method back."""
        self._release()
        if self.journal is not None:
            self.journal.close()

    def adopt(self, ahead: Answers) -> None:
        """Go on with the journal and the open questions of what was asked before the tests of this interview."""
        self.journal, self.questions = ahead.journal, ahead.questions
        self.questions.reopen()
        self.usage_before -= ahead.spent

    @property
    def interview(self) -> str:
        """Name of the interview for files of its calls. With a journal it is the journal's unique name."""
        if self.journal is None:
            return self.evaluation.name
        return f"{self.evaluation.name} {self.journal.path.stem}"

    # What the tests ask.

    @property
    def asks_ahead(self) -> bool:
        """Whether questions may be asked before their tests run, since these ask nothing but their items."""
        asks_nothing_else = self.asks_items or bool(self.finding.asks_item)
        return asks_nothing_else and not self._spends_to_a_limit

    @property
    def grades_answers(self) -> bool:
        """Whether the tests give the answers to their items' graders as they are."""
        return self.asks_items or bool(self.finding.asks_item and self.finding.grades_answer)

    # Questions, in the order of the draws.

    @property
    def together(self) -> int:
        """Number of questions that are asked before the session knows their scores: one if the verdict may be near."""
        batch = self.evaluation.policy.batch
        is_near = self.session.decides and self.session.remaining() <= NEAR * batch
        if is_near:
            return 1
        return batch

    @property
    def ability(self) -> list[float] | None:
        """Current ability estimate, one value per dimension; None on an uncalibrated bank."""
        if not self.evaluation.bank.calibrated:
            return None
        ability: list[float] = plain(self.session.estimate.theta[0].tolist())
        return ability

    def proposed(self, proposal: Proposal) -> list[OpenQuestion]:
        """Return the questions of a proposal, each item's samples one after the other."""
        bank = self.evaluation.bank
        samples = self.evaluation.samples
        ability = self.ability
        items = proposal.items[0]
        columns = {}
        for name, column in _DRAW_COLUMNS.items():
            columns[name] = plain(getattr(proposal, column)[0].tolist())
        if bank.calibrated and bank.dimensions == 1:
            columns["difficulty"] = plain(bank.difficulty_of(items).tolist())
        questions = []
        for row, index in enumerate(items.tolist()):
            details = {name: column[row] for name, column in columns.items()}
            details |= {"theta_before": ability, "reason": self.session.reason(index)}
            for sample in range(samples):
                position = (self.session.asked + row) * samples + sample + 1
                questions.append(self.drawn(index, sample, position, **details))
        return questions

    def drawn(self, index: int, sample: int, position: int, **details: Any) -> OpenQuestion:
        """Return the open question of a bank's item, at a position of the interview from 1.

        Args:
            details: Fields of its administration that are known now.
        """
        question = self.questions.find(index, sample)
        if question is None:
            item = self.evaluation.bank.items[index]
            administration = Administration(
                position=position,
                item=item.id,
                item_hash=item.content_hash,
                question=question_hash(item),
                format=item.formats[0],
                sample=sample,
                category=list(item.category),
            )
            question = OpenQuestion(index, sample, item, administration)
            self.questions.add(question)
        for name, value in details.items():
            setattr(question.administration, name, value)
        return question

    def draw_ahead(self) -> None:
        """Draw further questions.

        It is done once before each question and so at the same points of an interview, however fast answers come.
        """
        if self.asks_ahead and self.subject is not None and self.subject.shared_batch:
            with contextlib.suppress(Exception):  # code of a user, such as a selector, which fails when its turn comes
                self.session.draw_ahead()

    def tell(self, scores: Sequence[float | None], values: Mapping[str, Array]) -> None:
        """Give the session the item scores of its proposal, and end it where an item that must pass is wrong.

        Args:
            values: Further values of the answers, see `records.run_record.answer_values`.
        """
        scores_of_session = np.array([[np.nan if score is None else score for score in scores]], dtype=float)
        self.session.tell(scores_of_session, {name: each[None] for name, each in values.items()})
        self.questions.forget_told()
        first = self.session.take_all
        ends = self.evaluation.policy.stop == "decision" and self.judged
        if self.evaluation.must_pass and ends and len(first) <= self.session.asked:
            must_pass = np.isin(first, self.evaluation.must_pass)
            if (self.session.log().scores[: len(first)][must_pass] < 1.0).any():
                self.session.end(StopReason.MUST_PASS)  # all gates fail

    # What is asked ahead.

    def next_ahead(self, capacity: int, *, share: float, least: int = LEAST) -> list[OpenQuestion]:
        """Return the next questions without an answer that may be asked before their tests run, up to `capacity`.

        Args:
            share: Share of the questions in prospect that may be asked ahead.
            least: Questions that are asked ahead in any case.
        """
        if capacity <= 0 or not self.asks_ahead or self.session.finished:
            return []
        try:
            self._look_at_draws()
            limit = self._most(share, least)
        except AdaptiveEvalError:  # such as a damaged journal, on which the test fails when its turn comes
            return []
        return self.questions.next_to_send(capacity, limit)

    def _look_at_draws(self) -> None:
        """Open the questions that were drawn, with the answers that earlier runs have kept."""
        first = max(self._looked_at, len(self.administrations))  # of those before, the tests have run
        drawn = itertools.product(self.session.drawn_items.tolist(), range(self.evaluation.samples))
        for position, (index, sample) in enumerate(itertools.islice(drawn, first, None), first):
            question = self.drawn(index, sample, position + 1)
            if question.state is QuestionState.DRAWN and self.restore(question):
                self._begin_to_judge(question)  # an interrupted run may not have graded it
        self._looked_at = self.session.drawn * self.evaluation.samples

    def _most(self, share: float, least: int) -> int:
        """Return the number of questions that may have a call or an answer now."""
        session = self.session
        samples = self.evaluation.samples
        if not session.adapts_length:
            return session.budget * samples

        def forecast() -> int:
            return (session.asked + session.remaining(self.scores())) * samples

        questions = self.questions
        return self._prospect.limit(
            scored=session.asked,
            begun=questions.begun,
            waiting=questions.waiting,
            share=share,
            least=least,
            forecast=forecast,
        )

    def scores(self) -> list[float]:
        """Return the scores of the open items up to the last known one; others are NaN."""
        session = self.session
        open_items = session.drawn_items[session.asked :].tolist()
        return known_scores([self.questions.find(index, 0) for index in open_items])

    def go_on(self) -> None:
        """Go through an interview whose tests do not run yet, up to the first answer without a known score.

        Its own session will draw the same questions when its tests run, and find their answers in its journal.
        """
        while self.evaluation.samples == 1 and not self.session.finished:
            try:
                proposal = self.session.ask(self.together)
            except Exception:  # code of a user, such as a selector, which fails when its turn comes
                return
            assert proposal is not None  # the session has not finished
            self.draw_ahead()
            self._look_at_draws()
            questions = []
            for index in proposal.items[0].tolist():
                questions.append(self.questions.find(index, 0))
            answered = [question for question in questions if question is not None and not np.isnan(question.score)]
            if len(answered) < len(questions):
                return
            for question in answered:
                assert question.completion is not None
                self._add_measures(question, question.completion)
                self.administrations.append(question.administration)
                self.questions.tell(question)
            values = answer_values([question.administration for question in answered], 1)
            self.tell([question.score for question in answered], values)

    def comes_soon(self) -> bool:
        """Whether no answer took longer than `PATIENCE`, and a certain verdict has not waited that long."""
        if self._settled is None:
            self._settled = clock.elapsed()
        return max(self._slowest, clock.elapsed() - self._settled) < PATIENCE

    # Completions.

    def keep(self, question: OpenQuestion, completion: Completion) -> bool:
        """Write a completion to the journal, from any thread; what cannot be written is left to the test.

        Return whether it was written.
        """
        written = False
        if self.journal is not None:
            with contextlib.suppress(AdaptiveEvalError):
                self._store(*self.keys(question), question.item, completion)
                written = True
        question.kept = True
        return written

    def arrived(self, question: OpenQuestion, completion: Completion) -> None:
        """Give a question its completion."""
        if not question.kept:
            self.keep(question, completion)
        if question.began is not None:
            self._slowest = max(self._slowest, clock.elapsed() - question.began)
        self.questions.arrive(question, completion)
        self._note_score(question, completion)
        self._begin_to_judge(question)

    def restore(self, question: OpenQuestion) -> bool:
        """Give a question the completion that an earlier run has kept.  Return whether there is one.

        Raises:
            UsageError: A file is damaged.
        """
        if self.journal is None:
            return False
        completion = self._lookup(*self.keys(question), question.item, question.administration)
        if completion is None:
            return False
        self.questions.arrive(question, completion)
        self._note_score(question, completion)
        return True

    def _note_score(self, question: OpenQuestion, completion: Completion) -> None:
        """Keep the score that the test of a question will find, for the forecast, where grading is quick."""
        if self.asks_items and question.item.custom is None and not question.sample:
            score = completion.response(question.item).score
            if score is not None:
                question.score = score

    def _begin_to_judge(self, question: OpenQuestion) -> None:
        """Have the judge of the evaluation, if there is one, begin to grade an answer as its test will."""
        judge = self.evaluation.judge
        completion = question.completion
        if judge is None or completion is None or not self.grades_answers:
            return
        is_text = completion.score is None and not completion.unread
        ahead = question.administration.position - len(self.administrations)
        if is_text and ahead > 0:
            judgments = judge.begin(question.item, completion.text, ahead)
            subject = self.subject
            if subject is not None and subject.waits_apart:
                question.judgments = judgments
                for judgment in judgments:
                    judgment.add_done_callback(lambda _: subject.wake())

    def complete(self, subject: Model, item: Item) -> Completion:
        """Return the completion of a request of the current test: its question's, a stored one, or a new one."""
        question = self.current
        if question is None:
            return subject.complete_anew(item)
        is_own = subject is self.subject
        completion = None
        if is_own and question.has_answer and asks_alike(question.item, item):
            completion = question.completion
        if completion is None:
            completion = self._ask(subject, item, question)
        if is_own:
            question.administration.reused |= completion.reused
            self.exchanges[question.administration.place] = Exchange.of(completion)
            question.administration.said = said(completion.text)
            if completion.request:
                question.administration.sent = request_key(completion.request)[:SENT_KEY]
                self.sent[question.administration.sent] = completion.request
            self._add_measures(question, completion)
            if completion.status is Status.TIMEOUT and not subject.gathers:  # else the time was that of a whole call
                question.administration.measures[TIMED_OUT] = 1.0
        if completion.likelihood:
            question.administration.likelihood = plain(completion.likelihood)
        return completion

    def _measures(self, completion: Completion) -> dict[str, float]:
        """Return what is known of an answer beside its score, with its cost by the evaluation's prices of tokens."""
        measures = dict(completion.measures)
        cost = self.evaluation.spending.cost_of(measures)
        if cost is not None:
            measures.setdefault("cost", cost)
        return measures

    def _add_measures(self, question: OpenQuestion, completion: Completion) -> None:
        """Add what is known of an answer to the measures of its question, which may take several calls."""
        before = question.administration.measures
        question.administration.measures = summed_measures([before, self._measures(completion)])

    def recorded_fields(self, question: OpenQuestion, fields: Mapping[str, float]) -> dict[str, float]:
        """Return the fields that a test recorded of an answer, as the run that asked for it recorded them.

        A test may measure time, and a stored answer takes none. A field that was not recorded then is missing.
        """
        stores: list[tuple[CompletionStore, str]] = []
        if fields and self.journal is not None:
            stores.append((self.journal, f"recorded {question.item.id} {question.sample}"))
            if self.journal.shared is not None and question.shared_key:
                stores.append((self.journal.shared, f"recorded {question.shared_key}"))
        recorded = dict(fields)
        if question.administration.resumed or question.administration.reused:
            earlier: dict[str, float] = {}
            for store, name in reversed(stores):
                earlier |= json.loads(store.fact(name) or "{}")
            recorded = {name: earlier[name] for name in fields if name in earlier}
            self.unrecorded.update(fields.keys() - earlier.keys())
        for store, name in stores:
            store.keep_fact(name, json.dumps(recorded), again=True)
        return recorded

    def _ask(self, subject: Model, item: Item, question: OpenQuestion) -> Completion:
        """Return the stored completion of a request of the current test, or ask for it and store it."""
        if self.journal is None or not subject.identity.checkpoint:
            return subject.complete_anew(item)
        identity = self.identity if subject is self.subject else subject.identity
        keys = self._keys(subject, identity, item, question)
        completion = self._lookup(*keys, item, question.administration)
        if completion is None:
            completion = subject.complete_anew(item)
            self._store(*keys, item, completion)
        return completion

    def keep_sent(self, store: CompletionStore | None) -> None:
        """Keep the requests as they were sent in the store that runs share, if there is one."""
        if store is not None and self.sent:
            store.keep_requests(self.sent)

    # The journal.

    def keys(self, question: OpenQuestion) -> tuple[str, str]:
        """Return the keys of a question's answer in the journal and among runs, for a test that asks its item."""
        if not question.key:
            assert self.subject is not None
            keys = self._keys(self.subject, self.identity, question.item, question)
            question.key, question.shared_key = keys
        return question.key, question.shared_key

    def _keys(self, subject: Model, identity: SubjectIdentity, item: Item, question: OpenQuestion) -> tuple[str, str]:
        """Return the keys of a request of a question's test; equal requests of other questions are drawn apart."""
        among_runs = completion_key(subject, drawn(item, question.sample), identity=identity)
        key = request_key(among_runs, question.item.id, question.sample)
        has_store = self.journal is not None and self.journal.shared is not None
        shares = has_store and subject is self.subject and not question.sample and may_share(subject, item)
        return key, among_runs if shares else ""

    def _lookup(self, key: str, shared_key: str, item: Item, administration: Administration) -> Completion | None:
        """Return a completion from the journal, or from other runs.

        Raises:
            UsageError: A file is damaged.
        """
        if self.journal is None:
            return None
        completion = scored(item, self.journal.lookup(key, shared_key))
        if completion is not None:
            administration.resumed |= self.journal.is_earlier(key)
        return completion

    def _store(self, key: str, shared_key: str, item: Item, completion: Completion) -> None:
        """Store a completion in the journal, unless a later run should ask again.

        Raises:
            JournalError: The journal cannot be written.
        """
        if self.journal is not None:
            self.journal.store(key, completion, item.id, shared_key)

    def share_seed(self, generators: GeneratorStates) -> None:
        """Go on with the random states of the run that began the journal, by which its tests may have asked."""
        if self.journal is None:
            return
        self.journal.keep_fact("seed", generators.seed)
        seed = self.journal.fact("seed")
        if seed != generators.seed:
            generators.resume(seed)

    def resume_opening(self) -> bool:
        """Have the subject ask in the form of the run that began the journal.  Return False where it cannot."""
        assert self.subject is not None
        if self.journal is None:
            opening = ""
        else:
            opening = self.journal.fact("opening")
        if not opening:
            return True
        self.subject.resume(json.loads(opening))
        return bool(self.subject.opening == json.loads(opening))

    def keep_opening(self) -> None:
        """Keep the form in which the subject is asked for a run that resumes this one."""
        assert self.subject is not None
        if self.journal is not None:
            self.journal.keep_fact("opening", json.dumps(dict(self.subject.opening)))

    # Models that are no `Model`.

    def watch(self, model: Any, identity: SubjectIdentity) -> bool:
        """Store what `generate` of a user's own model returns, until `close`.  Return whether that is possible.

        Texts are stored, for arguments that are JSON data or items.
        """
        try:
            function = model.generate
            is_own = "generate" in vars(model)
            stored = functools.partial(self._generate, function, identity_key(model, identity))
            model.generate = functools.wraps(function)(stored)
        except (AttributeError, TypeError):  # it has no such method, or the object is closed to changes
            self.unkept = (
                f"answers of {identity.name!r} are not kept for a later run, since it is asked by other ways than a "
                "method generate: give the model one, or make it a Model"
            )
            return False
        self._release = lambda: setattr(model, "generate", function) if is_own else delattr(model, "generate")
        return True

    def _generate(self, function: Callable[..., Any], whose: list[str], *args: Any, **kwargs: Any) -> Any:
        """Return what a watched function returns, or what it returned to the same call of the same question."""
        question = self.current
        arguments = _to_json([args, kwargs])
        if question is None or not arguments:
            return function(*args, **kwargs)
        if len(args) == 1 and not kwargs:
            alone = _item_of(args[0])
        else:
            alone = arguments
        if isinstance(alone, Item):
            asked = alone
        else:
            asked = Item("", alone if type(alone) is str else arguments)
        log = RequestLog.current
        if log is not None:
            log.note(asked)
        draw = request_key(whose, question.item.id, question.sample, arguments)
        self._numbers[draw] += 1
        key = request_key(draw, self._numbers[draw])
        stored = self._lookup(key, "", question.item, question.administration)
        if stored is not None:
            question.administration.said = said(stored.text)
            self._add_measures(question, stored)
            return stored.text
        begun = clock.elapsed()
        reply = function(*args, **kwargs)
        measures = {"seconds": clock.elapsed() - begun}
        if type(reply) is str:
            completion = Completion(cut_text(reply), measures=measures)
            question.administration.said = said(completion.text)
            self._add_measures(question, completion)
            self._store(key, "", question.item, completion)
        return reply


def said(text: str) -> str:
    """Return the hash of a reply; empty for no text."""
    if text:
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:SENT_KEY]
    return ""


def _item_of(argument: Any) -> Any:
    return getattr(argument, "item", argument)  # a test's `item` wraps that of the bank


def _to_json(arguments: Any) -> str:
    """Return arguments as JSON, items by their content; empty if they are something else."""
    try:
        return json.dumps(arguments, sort_keys=True, default=lambda argument: _item_of(argument).to_json())
    except (AttributeError, TypeError, ValueError):
        return ""


#: Note of evaluations of several models in a run that shares answers.
SHARED_NOTE = (
    "--adaptive-eval-reuse shares replies of models that decode greedily and have a checkpoint "
    "hash or a revision; others are asked"
)


class Reuse:
    """Answers that one interview takes from other runs.

    Args:
        store: Store of other runs; None where every answer is asked for.
        root: Folder that the store's path is shown from.
        named: Whether a flag names the store; else nothing is said where no answer was taken.

    Attributes:
        refusal: Why the subject is always asked; empty if it is not.
    """

    def __init__(self, store: CompletionStore | None, root: Path, *, named: bool = True) -> None:
        self._store = store
        self.refusal = "the model is not a Model of this package"
        self._named = named
        if store is None:
            self._path = ""
        else:
            self._path = relative(store.path, root)

    def notes(self, administrations: Sequence[Administration], *, judged: bool) -> list[str]:
        """Return notes for any verdict: the number of such answers, and why others were not stored."""
        count = sum(entry.reused for entry in administrations)
        if not count and (self._store is None or self.refusal or not self._named):  # a warning has the reason
            return []
        verb = "was" if count == 1 else "were"
        source = self._path or "a store of earlier ones"
        sentence = f"{count} of {counted(len(administrations), 'answer')} {verb} not asked for but taken from {source}"
        if self._store is None:
            return [sentence]
        if judged and count:
            anew = "; its judge graded them again"
        else:
            anew = ""
        return [sentence + anew, *filter(None, [self._store.fault])]

    def record(self, administrations: Sequence[Administration]) -> ReuseRecord | None:
        """Return the facts for the record; None where nothing was to be reused."""
        count = sum(entry.reused for entry in administrations)
        if self._store is None or not (self._named or count):
            return None
        return ReuseRecord(self._path, count, self.refusal)
