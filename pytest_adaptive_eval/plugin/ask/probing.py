"""Decide by probes whether the test of one interview checks the answers that it gets.

Each run of a question's test on other replies lies between two on the model's own, which the test has to take as it did
at first. So a test that takes nothing twice, such as one that keeps what it has seen, does not seem to check.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from pytest_adaptive_eval.banks.code import CODE
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.grading import JUDGE
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models.base import RequestLog
from pytest_adaptive_eval.plugin.ask.common_answers import CommonAnswers
from pytest_adaptive_eval.plugin.ask.donors import APART, Donor, Donors, key_of, refuses, shown
from pytest_adaptive_eval.plugin.ask.leaked_keys import LeakedKeys
from pytest_adaptive_eval.plugin.ask.probe import MADE_UP, Probe, ProbedItem, run_apart
from pytest_adaptive_eval.plugin.ask.question import NOT_ASKED, QuestionOwner, QuestionTest, find_model_fixture
from pytest_adaptive_eval.plugin.ask.replies import Replies, given_texts, holds

#: Items whose test accepts the answer to another question, from which on the test is unsound.
UNSOUND = 3
#: Items whose test refuses it, after which no further item is probed; and answers with a score of their own.
ENOUGH = 20
FEWEST_KEYS = 20  #: Items that are not asked, whose keys may be in a form that the test reads.
FLOOR_ITEMS = 100  #: Items on which answers to other questions are scored, where they get a part of the score.
SAME = 1e-9  #: Distance up to which two scores are the same.

WRONG_ANSWER = '@pytest.mark.adaptive_eval(..., wrong_answer="...")'  #: How to name an answer that a test must fail.
_HOW_TO_CHECK = (
    "write `assert item.grade(...)`, an assertion on the answer, or item.score(...); where good answers to all "
    f"questions pass alike, name one that must fail: {WRONG_ANSWER}"
)
_INVENTED = "made up"  #: Source of a donor that is right for no question.


class _Again:
    """The test of one question, run again on known replies while its fixtures are set up.

    Attributes:
        replies: What the model said.
        reason: Why the test cannot be probed; empty while it can.
    """

    def __init__(self, node: pytest.Function, test: QuestionTest) -> None:
        assert test.response is not None
        assert test.response.score is not None
        self._node = node
        self._test = test
        self.score = test.response.score
        self.replies: Replies = list(test.requests.replies)
        self.reason = _why_unprobed(test.asked.item) or ("the test asks several models" if _asks_others(test) else "")
        self._took_own = False  #: Whether the latest run took the model's own replies.

    @property
    def texts(self) -> tuple[str, ...]:
        """Texts of the model, each reply once."""
        return tuple(completion.text for completion in dict(self.replies).values())

    def run(
        self, replies: Replies, *, named: bool = True, grade_of_made_up: float = 0.0, item: Item | None = None
    ) -> Probe:
        """Run the test on replies, as the test of another item if one is given."""
        asked = self._test.asked
        probed = ProbedItem(item or asked.item, sample=asked.sample, named=named, grade_of_made_up=grade_of_made_up)
        if item is None:
            probed.known = {asked.text: asked.graded}
        probe = Probe.beside(self._node, self._test, probed, replies)
        self._took_own = False
        if other := probe.another_model:
            self.reason = f"the fixture {other!r} may ask another model"
            return probe
        probe.run_alone()
        if probed.told:
            self.reason = "the test reads item.probing before it asks"
        elif not probe.requests.count:
            self.reason = "a fixture asks in its place"
        return probe

    def takes_own(self) -> bool:
        """Return whether the test gives the model's own replies the same score once more."""
        if not self._took_own:
            if not self.replies:
                self.reason = self.reason or "the replies of its model are not seen: give it a method `generate`"
                return False
            probe = self.run(self.replies)
            if probe.requests.count != len(self.replies):
                self.reason = self.reason or "a fixture asks, or the test does not ask the same twice"
            elif not (probe.scored and abs(probe.score - self.score) <= SAME):
                self.reason = self.reason or "the test does not take the same answer twice"
            self._took_own = not self.reason
        return self._took_own

    def score_of(self, replies: Replies, *, named: bool = True) -> float | None:
        """Return the score of other replies, between two runs on the model's own; None where it means nothing."""
        has_replies = bool(self.replies)
        if self.reason or (has_replies and not self.takes_own()):
            return None
        score = self.run(replies, named=named).score
        # what it accepts, it accepts: a refusal alone may come of what the test has seen before
        if score < self.score:
            self.takes_own()
        return None if self.reason else score

    def accepts_as(self, item: Item) -> bool:
        """Return whether the test of another item gives the model's replies the same score."""
        return self.takes_own() and self.run(self.replies, item=item).score >= self.score

    def accepts(self, donor: Donor) -> bool | None:
        """Return whether the test gives wrong replies the score of the model's; None where nobody can say."""
        score = self.score_of(donor.replies, named=donor.source != _INVENTED)
        if score is None:
            return None
        return score >= self.score


class TestProbes:
    """Probes of the test of one interview.

    Args:
        items: Items of the bank.
        wrong_answer: Answer that the test has to fail, from the user; None for answers to other questions.
    """

    __test__ = False

    def __init__(self, items: Sequence[Item], wrong_answer: str | None) -> None:
        self._donors = Donors(items)
        self._common = CommonAnswers(items)
        self._leaks = LeakedKeys()
        self._wrong_answer = wrong_answer
        self._accepted: list[str] = []
        self._keyless: list[str] = []  #: Items whose test takes a wrong reply, whatever the key.
        self._refused = self._missed = self._turn = 0
        self._unprobed = self._unfloored = ""  #: Why an item was not probed, and why its score has no floor.
        self._first_due = False  #: Whether made-up answers are yet to be tried.
        self._asked: set[str] = set()
        self._floor: dict[str, float] = {}  #: Score of an answer to another question, by item.

    def caveat(self) -> str:
        """Return what readers of any verdict must know of the test; empty for most."""
        if self._refused or self._accepted:
            unprobed = ""
        else:
            unprobed = self._unprobed
        unfloored = "" if self._floor else self._unfloored
        reason = unfloored or unprobed
        if reason:
            not_probed = f"not probed with answers to other questions, since {reason}"
        else:
            not_probed = ""
        return "; ".join(filter(None, [not_probed, self._leaks.note()]))

    def floor(
        self, interview: QuestionOwner, node: pytest.Function, bank: ItemBank, seed: Sequence[int]
    ) -> list[tuple[int, float]]:
        """Return places of a bank's items in random order, with the scores that answers to other questions get there.

        It asks no model: the test runs on items that were not asked, too. Empty where such answers got nothing.
        """
        if not any(self._floor.values()):
            return []
        floor: list[tuple[int, float]] = []
        for index in np.random.default_rng(seed).permutation(len(bank))[:FLOOR_ITEMS].tolist():
            item = bank.items[index]
            if item.id not in self._asked:
                self._score_apart(interview, node, item)
            if item.id in self._floor:
                floor.append((index, self._floor[item.id]))
        return floor

    def _score_apart(self, interview: QuestionOwner, node: pytest.Function, item: Item) -> None:
        """Keep the score that the test of an item, which was not asked, gives an answer to another question."""
        if _why_unprobed(item) or _why_ungraded(item):
            donor = None
        else:
            donor = self._floor_donor(item)
        if donor is None:
            probe = None
        else:
            probe = run_apart(interview, node, ProbedItem(item), donor.replies)
        if isinstance(probe, Probe):
            self._floor[item.id] = probe.score

    def check_first(self, interview: QuestionOwner, node: pytest.Function, session: Session) -> str:
        """Run the test before the first question.  Return why its verdicts would mean nothing; empty if sound.

        The item is one that is never asked, since a test may keep what it has seen. Where each may be asked, a copy
        shows what the test asks, and made-up answers are tried on the first question that passes.
        """
        if indices := session.never_drawn(FEWEST_KEYS):
            item, *others = (session.bank.items[index] for index in indices)
            if _why_unprobed(item):
                key = None
            else:
                key = Donors(others).key_for(item)
            return self._try_made_up(item, key, lambda answer, asked: self._run_first(interview, node, asked, answer))
        self._first_due = True
        item = session.bank.items[0]
        copied = replace(item, id=f"{item.id}{APART}", prompt=item.prompt and f"{item.prompt} ")
        probe = self._run_first(interview, node, ProbedItem(copied, named=False), MADE_UP[0])
        if interview.finding.asks_item is None:  # it knows its items by name: nothing is asked ahead
            interview.finding.asks_item = False
        if probe is None or probe.asks:
            return ""
        return _fault(probe, MADE_UP[0], named=False)

    def _try_made_up(self, item: Item, key: Donor | None, run: Callable[[str, ProbedItem], Probe | None]) -> str:
        """Return why a test judges nothing that takes an answer which is right for no question, or the named one.

        Args:
            key: Key of another item, which may be in a form that the test reads.
        """
        if self._wrong_answer is not None:
            probe = run(self._wrong_answer, ProbedItem(item))
            if probe is None or (probe.asks and not probe.passed):
                return ""
            return _fault(probe, self._wrong_answer, named=True)
        partial: dict[float, str] = {}  # fault by score that a made-up answer got
        for answer, of_other_question in [
            *([(key.texts[0], True)] if key else []),
            *((text, False) for text in MADE_UP),
        ]:
            # where a made-up answer got a part of the score, another grade has to change it
            asked = ProbedItem(item, named=of_other_question, grade_of_made_up=float(bool(partial)))
            probe = run(answer, asked)
            if probe is None:
                return ""
            if not probe.asks:
                return _fault(probe, answer, named=False)
            if probe.error:
                continue  # it cannot read this answer
            if not probe.passed:
                return ""
            if of_other_question:
                continue  # one answer may be right by chance
            score = _varying_score(probe, partial)
            if score is None:
                return _fault(probe, answer, named=False)
            # such as a similarity; a constant is the same for all answers
            partial[score] = _fault(probe, answer, named=False)
        if len(partial) != 1:
            return ""
        ((same, fault),) = partial.items()
        right = None
        if item.answer.strip():
            right = run(item.answer, ProbedItem(item))
        # marks for the form are the same for all made-up answers, and have a `floor`
        if right is not None and right.passed and right.score != same:
            return ""
        return fault

    def _run_first(
        self, interview: QuestionOwner, node: pytest.Function, asked: ProbedItem, answer: str
    ) -> Probe | None:
        """Run one probe before the first question, and note what the test does.  Return None if it cannot be run."""
        probe = run_apart(interview, node, asked, given_texts(answer))
        if isinstance(probe, str):
            self._unprobed = probe
            return None
        finding = interview.finding
        if asked.derived or (asked.named and asked.graded is not None):
            finding.methods.add("grade")
        if asked.given is not None and probe.requests.count:
            finding.methods.add("score")
        finding.asks_item = probe.requests.asks(asked.item)
        finding.grades_answer = asked.text == answer
        if asked.told:
            self._unprobed = "the test reads item.probing before it asks"
            return None
        return probe

    def check(self, node: pytest.Function, test: QuestionTest) -> str:
        """Run the test of an answered question on other answers.  Return why it is unsound; empty if it may be sound.

        A question that passed counts as accepted where the test gives another answer the full score too. A part of the
        score may be reached by chance, such as by a similarity: it has a `floor`.
        """
        response = test.response
        item = test.asked.item
        if response is None or response.score is None:
            return ""
        self._asked.add(item.id)
        self._leaks.look(item, test.requests)
        again = _Again(node, test)
        fault = ""
        if response.score == 1.0:
            fault = self._check_right(item, again)
        if not fault and test.asked.given is not None and not test.asked.sample:
            self._find_floor(item, again)
        if again.reason:
            self._missed += 1
            self._unprobed = again.reason
        elif not self._enough or test.asked.given is not None:
            self._donors.add(item, again.texts, response.score)
        if fault:
            return f"{test.nodeid.partition('[')[0]}: {fault}"
        return ""

    def _check_right(self, item: Item, again: _Again) -> str:
        """Return why a test is unsound that counted an answer as right; empty if it may be sound."""
        if again.reason:
            return ""
        if fault := self._add_common(item, again.texts, again):
            return fault
        if self._enough:
            return ""
        if self._first_due and (not again.replies or again.takes_own()):
            self._first_due = False
            key = self._donors.key_for(item)
            if fault := self._try_made_up(item, key, lambda answer, asked: self._run_beside(again, asked, answer)):
                return fault
        for donor in self._donors_for(item):
            accepted = again.accepts(donor)
            if accepted and self._wrong_answer is None:
                if fault := self._add_common(item, donor.texts, again):
                    return fault
                bare = donor.without_key_of(item)
                # a test that looks for the key finds it in such an answer, too
                accepted = bare is not None and (bare.texts == donor.texts or again.accepts(bare))
            if accepted is None:
                return ""
            if accepted:
                self._accepted.append(f"{item.id!r} accepts {shown(donor.texts)} ({donor.source})")
                if len(self._accepted) >= UNSOUND:
                    return self._unsound()
                return ""
        self._refused += 1
        return self._check_key(item, again)

    def _check_key(self, item: Item, again: _Again) -> str:
        """Return why a test is unsound that does not look at the keys of items; empty if it may be sound.

        A reply that has the key may be right in a form that the item's own grader does not read.
        """
        if self._wrong_answer is not None or not item.answer.strip() or not refuses(item, again.texts):
            return ""
        if any(holds(text, answer) for text in again.texts for answer in item.answers):
            return ""
        other = self._donors.with_other_key(item, again.texts)
        if other is None or not again.accepts_as(other):
            return ""
        self._keyless.append(f"{item.id!r} accepts {shown(again.texts)} also if {other.answer!r} is expected")
        if len(self._keyless) < UNSOUND:
            return ""
        return (
            "the test accepts answers whatever is expected, and the items' own graders refuse them, so a model that is "
            f"always wrong would pass: {'; '.join(self._keyless)}: {_HOW_TO_CHECK}"
        )

    @property
    def _enough(self) -> bool:
        """Whether no further item is probed."""
        return max(self._refused, self._missed) >= ENOUGH

    def _add_common(self, item: Item, texts: Sequence[str], again: _Again) -> str:
        """Note that an answer counted as right for an item; return why the test is unsound, empty if it may be."""
        if self._wrong_answer is not None or again.reason or not any(texts):
            return ""
        return self._common.add(item, texts, lambda other: again.accepts(key_of(other)) is False)

    def _run_beside(self, again: _Again, asked: ProbedItem, answer: str) -> Probe | None:
        """Run the test of a question on a made-up answer.  Return None where that means nothing."""
        probe = again.run(given_texts(answer), named=asked.named, grade_of_made_up=asked.grade_of_made_up)
        if again.reason:
            return None
        return probe

    def _find_floor(self, item: Item, again: _Again) -> None:
        """Keep the score of an answer to another question."""
        if self._wrong_answer is not None or len(self._floor) >= ENOUGH:
            return
        reason = again.reason or _why_ungraded(item)
        if 0.0 < again.score < 1.0:
            self._unfloored = self._unfloored or reason
        if reason:
            return
        donor = self._floor_donor(item)
        if donor is None:
            score = None
        else:
            score = again.score_of(donor.replies)
        if score is not None:
            self._floor[item.id] = score

    def _floor_donor(self, item: Item) -> Donor | None:
        """Return an answer to another question; a made-up one where all questions have the same answer."""
        donor = self._donors.answer_for(item)
        if donor is None and self._donors.key_for(item) is None:
            return Donor(given_texts(MADE_UP[0]), _INVENTED)
        return donor

    def _donors_for(self, item: Item) -> list[Donor]:
        """Return wrong answers to an item: the named one, or an answer of the run and, in turn, a key, or a made-up."""
        if self._wrong_answer is not None:
            return [Donor(given_texts(self._wrong_answer), "the wrong_answer of its marker")]
        self._turn += 1
        answer = self._common.suspect_for(item) or self._donors.answer_for(item)
        key = None
        if answer is None or self._turn % 2:
            key = self._donors.key_for(item)
        donors = [donor for donor in (answer, key) if donor is not None]
        return donors or [Donor(given_texts(MADE_UP[0]), _INVENTED)]

    def _unsound(self) -> str:
        return (
            "the test accepts answers to other questions, so a model that is always wrong would pass: "
            f"{'; '.join(self._accepted)}: {_HOW_TO_CHECK}"
        )


def _why_unprobed(item: Item) -> str:
    """Return why the test of an item is not probed; empty if it is."""
    if item.grader in (JUDGE, CODE):
        return f"its items have the grader {item.grader!r}"
    if item.likelihood is not None or item.turns:
        return "an item takes more than one text"
    return ""


def _why_ungraded(item: Item) -> str:
    """Return why no answer is known to be wrong for an item; empty where its grader says so."""
    if item.answer.strip() or item.custom is not None:
        return ""
    return "its items have no expected answer"


def _asks_others(test: QuestionTest) -> bool:
    """Return whether a test asked another model than the one under evaluation, such as a judge of its own."""
    if len(test.requests.replies) < 2:
        return False
    _, model, _ = find_model_fixture(test.funcargs)
    asked = {id(source) for source, _ in test.requests.taken}
    if RequestLog.sees(model):
        return bool(asked - {id(model)})
    # Calls of a user's model have numbers.
    kinds_of_calls = {isinstance(content, int) for content, _ in test.requests.replies}
    return len(asked) > 1 or len(kinds_of_calls) > 1


def _varying_score(probe: Probe, partial: Mapping[float, str]) -> float | None:
    """Return the score of a made-up answer that another one, or another grade, may change; else None."""
    score = probe.asked.given
    varies = score is not None and probe.requests.count and (partial or score < 1 or probe.asked.derived)
    if varies:
        return score
    return None


def _fault(probe: Probe, made_up: str, *, named: bool) -> str:
    """Return why a test that passed on a made-up answer judges nothing."""
    asked = probe.asked
    test = probe.nodeid.partition("[")[0]
    if not probe.has_model:
        return (
            f"{test}: the test takes no model, so nobody can see whether it asks one: give it a fixture that answers, "
            "such as `model`"
        )
    if not probe.requests.count:
        return f"{test}: {NOT_ASKED}"
    if asked.derived and asked.given is None:
        how = "although item.grade(...) gave 0"
    elif asked.graded is not None and not named:
        how = "since item.grade(...) got a text that does not come from the model"
    else:
        how = "and checked nothing"
    if named:
        answer = "on the wrong_answer of its marker"
    else:
        answer = f"on the made-up answer {made_up!r}"
    if named:
        hint = ""
    else:
        hint = f"; if such an answer is right, name a wrong one: {WRONG_ANSWER}"
    return (
        f"{test}: the test passed {answer} {how}, so every answer would count as right: write `assert "
        f"item.grade(...)`, an assertion on the answer, or item.score(...){hint}"
    )
