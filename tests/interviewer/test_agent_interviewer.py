"""A language model as interviewer: its choices, fallbacks and account, and the checkpoint among the fixtures."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.interviewer.agent import OTHER, PATIENCE, SORTED_AT_ONCE, AgentInterviewer
from pytest_adaptive_eval.interviewer.interviewer import Candidate, CategoryRow, Interviewer, MemoryTable
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.models.base import Completion, Message, Model, Preference, SubjectIdentity, Usage
from pytest_adaptive_eval.models.recorded import RecordedModel
from pytest_adaptive_eval.models.store import CompletionStore

CHECKPOINT = Path(__file__).resolve().parents[2] / "fixtures" / "checkpoints" / "interviewer"
MEMORY = MemoryTable((CategoryRow("sums", 3, -1.0, 1.0, 0.0, 0.5),), 3)
CANDIDATES = [
    Candidate(n, Item(f"i{n}", f"question {n}"), ("sums",), 0.1 * n, 0.5, distance)
    for n, distance in enumerate([0.3, 0.9, 0.5, 0.1])
]
COST = Usage(1, 10, 5, 2, 0.5, 100.0)


@dataclass
class FakeAgent(Model):
    """An agent that says what a function tells it to, and remembers what it was asked."""

    say: Callable[[str], str | Completion] = lambda _: ""
    rating: Callable[[str], float] = lambda _: 0.0
    status: Status = Status.OK
    rates: bool = True
    closed: bool = False
    identity: SubjectIdentity = field(default_factory=lambda: SubjectIdentity("fake", "f" * 64))
    asked: list[list[Message]] = field(default_factory=list)
    rated: list[tuple[list[Message], list[str], str]] = field(default_factory=list)

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        raise AssertionError("it is asked in chats alone")

    def ask(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        schema: Mapping[str, Any] | None = None,
        draw: int = 0,
    ) -> Completion:
        self.asked.append(list(messages))
        said = self.say(messages[-1].text)
        return said if isinstance(said, Completion) else Completion(said, cost=COST)

    def prefer(self, messages: Sequence[Message], candidates: Sequence[str], label: str) -> Preference:
        self.rated.append((list(messages), list(candidates), label))
        if self.status is not Status.OK:
            return Preference((math.nan,) * len(candidates), self.status, "it broke", COST)
        return Preference(tuple(self.rating(candidate) for candidate in candidates), usage=COST)

    def close(self) -> None:
        self.closed = True


def choice(index: object) -> str:
    return json.dumps({"summary": "s", "think": "it is\nbest", "question_index": index})


def picks(wanted: str) -> Callable[[str], str]:
    """Reply with the number of the candidate whose text is wanted."""

    def say(prompt: str) -> str:
        line = next(line for line in prompt.splitlines() if wanted in line)
        return choice(int(line.partition(".")[0]))

    return say


def test_it_is_an_interviewer() -> None:
    interviewer = AgentInterviewer(FakeAgent())
    assert isinstance(interviewer, Interviewer)
    assert interviewer.name == "fake (rate, ffffffffffff)"
    interviewer.close()
    assert interviewer.agent.closed  # type: ignore[attr-defined]


def test_rating_takes_the_highest() -> None:
    agent = FakeAgent(rating=lambda text: -0.25 if "question 2" in text else -1.5)
    given = AgentInterviewer(agent).choose(CANDIDATES, MEMORY, 0.4)
    assert (given.index, given.fallback) == (2, "")
    assert given.reason == "chosen because fake rated it highest of 4 (log-likelihood -0.25, the next -1.50)"
    ((message,), continuations, label), *more = agent.rated
    assert not more
    assert label == "yes"
    assert "| sums | 3 |" in message.text
    assert not any("question" in line and line[0].isdigit() for line in message.text.splitlines())
    assert len(continuations) == 4


def test_a_useless_interviewer_is_given_up() -> None:
    agent = FakeAgent(say=lambda _: "the second")
    interviewer = AgentInterviewer(agent, mode="reply")
    given = [interviewer.choose(CANDIDATES, MEMORY, 0.4) for _ in range(PATIENCE + 3)]
    assert {one.index for one in given} == {1}, "the farthest"
    assert [one.fallback for one in given] == ["no-json"] * PATIENCE + ["given-up"] * 3
    assert len(agent.asked) == 2 * PATIENCE, "each choice has a second attempt"
    assert interviewer.account()["problem"] == "it has no JSON object"


def test_replies_that_fail_now_and_then_do_not_end_the_interviewer() -> None:
    says = iter([lambda _: "?", lambda _: "?", picks("question 2")] * 3 * PATIENCE)

    def say(prompt: str) -> str:
        return str(next(says)(prompt))

    interviewer = AgentInterviewer(FakeAgent(say=say), mode="reply")
    fallbacks = [interviewer.choose(CANDIDATES, MEMORY, 0.4).fallback for _ in range(2 * PATIENCE)]
    assert fallbacks == ["no-json", ""] * PATIENCE


def test_an_agent_that_reads_no_pictures_says_so_once(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"")
    items = [Item(f"i{n}", f"q {n}", images=("a.png",), root=str(tmp_path)) for n in range(2 * SORTED_AT_ONCE)]
    refusal = Completion("", Status.ERROR, detail="'fake' is shown no pictures in a chat")
    agent = FakeAgent(say=lambda _: refusal)
    interviewer = AgentInterviewer(agent, mode="reply")
    assert interviewer.categorise(items, []) == [(OTHER,)] * len(items)
    problem = "'fake' is shown no pictures in a chat; set visual = false in [eval.interview] if it reads no pictures"
    assert interviewer.account()["problem"] == problem


def test_replying_takes_what_was_said() -> None:
    agent = FakeAgent(say=picks("question 2"))
    given = AgentInterviewer(agent, mode="reply").choose(CANDIDATES, MEMORY, 0.4)
    assert (given.index, given.fallback) == (2, "")
    assert given.reason == "chosen because fake picked it: it is best; so far: s"


@given(order=st.permutations(range(4)), mode=st.sampled_from(["rate", "reply"]), favourite=st.integers(1, 4))
def test_the_order_of_candidates_changes_nothing(order: list[int], mode: Any, favourite: int) -> None:
    """Not even for an agent that always takes the same place, or finds all equally good."""

    def chosen(candidates: Sequence[Candidate]) -> tuple[Item, list[Any], str]:
        agent = FakeAgent(say=lambda _: choice(favourite))
        given = AgentInterviewer(agent, mode=mode).choose(candidates, MEMORY, 0.4)
        return candidates[given.index].item, agent.asked + agent.rated, given.reason

    assert chosen([CANDIDATES[i] for i in order]) == chosen(CANDIDATES)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("", "empty"),
        ("I would say the second", "no-json"),
        ('{"think": "none"}', "no-choice"),
        (choice(5), "outside"),
        (choice("i9"), "outside"),
        (Completion("", Status.EMPTY, detail="nothing"), "empty"),
        (Completion(choice(1), Status.TRUNCATED, detail="not finished after 512 tokens"), "truncated"),
        (Completion("", Status.REFUSED, detail="no"), "refused"),
    ],
)
def test_a_reply_of_no_use_is_asked_again_and_then_replaced(said: str | Completion, kind: str) -> None:
    agent = FakeAgent(say=lambda _: said)
    interviewer = AgentInterviewer(agent, mode="reply")
    given = interviewer.choose(CANDIDATES, MEMORY, 0.4)
    assert (given.index, given.fallback) == (1, kind)  # the most distant
    assert given.reason.startswith("chosen because it is the farthest candidate; fake made no choice (")
    assert len(agent.asked) == 2
    first, second = agent.asked
    assert second[:1] == first
    assert [message.role for message in second] == ["user", "assistant", "user"]
    assert second[2].text.startswith("That cannot be used: ")
    account = interviewer.account()
    assert account["fallbacks"] == {kind: 1}
    assert account["asked_again"] == 1
    interviewer.choose(CANDIDATES, MEMORY, 0.4)
    assert interviewer.account()["fallbacks"] == {kind: 2}  # a failure is no decision to keep


def test_a_second_reply_counts() -> None:
    agent = FakeAgent(say=lambda text: choice("i3") if text.startswith("That cannot be used") else "hm")
    interviewer = AgentInterviewer(agent, mode="reply")
    assert interviewer.choose(CANDIDATES, MEMORY, 0.4).index == 3
    account = interviewer.account()
    assert (account["asked_again"], account["fallbacks"], account["usage"]["calls"]) == (1, {}, 2)


@pytest.mark.parametrize("status", [Status.TIMEOUT, Status.ERROR])
def test_a_fault_of_the_back_end_is_not_asked_again(status: Status) -> None:
    agent = FakeAgent(say=lambda _: Completion("", status, detail="server \x1b[31mgone"), status=status)
    for mode in ("rate", "reply"):
        interviewer = AgentInterviewer(agent, mode=mode)
        given = interviewer.choose(CANDIDATES, MEMORY, 0.4)
        assert (given.index, given.fallback) == (1, status.value)
        assert given.reason.isprintable()
        assert interviewer.account()["fallbacks"] == {status.value: 1}
    assert len(agent.asked) == len(agent.rated) == 1


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_ratings_that_are_no_numbers(score: float) -> None:
    interviewer = AgentInterviewer(FakeAgent(rating=lambda text: score if "question 2" in text else -1.0))
    assert interviewer.choose(CANDIDATES, MEMORY, 0.4).fallback == "error"


def test_a_decision_is_made_once() -> None:
    kept = CompletionStore()
    for mode in ("rate", "reply"):
        agent = FakeAgent(say=picks("question 2"), rating=lambda text: float("question 2" in text))
        interviewer = AgentInterviewer(RecordedModel(agent, kept), mode=mode)
        first = interviewer.choose(CANDIDATES, MEMORY, 0.4)
        assert interviewer.choose(CANDIDATES[::-1], MEMORY, 0.4).reason == first.reason
        assert len(agent.asked + agent.rated) == 1
        assert interviewer.account()["recalled"] == 1
        assert interviewer.account()["usage"]["calls"] == 1
        later = AgentInterviewer(RecordedModel(FakeAgent(), kept), mode=mode)
        assert later.choose(CANDIDATES, MEMORY, 0.4) == first
        other = FakeAgent(say=picks("question 1"), identity=SubjectIdentity("fake", "e" * 64))
        AgentInterviewer(RecordedModel(other, kept), mode=mode).choose(CANDIDATES, MEMORY, 0.4)
        assert len(other.asked + other.rated) == 1
        interviewer.choose(CANDIDATES, MEMORY, 0.5)
        assert len(agent.asked + agent.rated) == 2


def test_the_first_items_are_sorted_together_and_later_ones_alone() -> None:
    def say(prompt: str) -> str:
        if "Question: " in prompt:
            return '{"category": ["SUMS", "new"]}'
        return '{"1": "sums", "2": "trees", "3": ["Sums", "shapes"], "9": "x"}'

    agent = FakeAgent(say=say)
    interviewer = AgentInterviewer(agent)
    items = [candidate.item for candidate in CANDIDATES]
    assert interviewer.categorise(items, []) == [("sums",), ("trees",), ("sums", "shapes"), (OTHER,)]
    assert len(agent.asked) == 1
    assert interviewer.account()["category_fallbacks"] == {"unsorted": 1}
    assert interviewer.account()["fallbacks"] == {}
    later = [Item("j1", "question 5"), items[0], Item("j2", "question 6")]
    assert interviewer.categorise(later, ["sums"]) == [("sums", "new"), ("sums",), ("sums", "new")]
    assert len(agent.asked) == 3  # what was sorted once is known
    assert "Categories so far: sums, new.\n" in agent.asked[-1][0].text
    assert interviewer.categorise([Item("j3", "question 7")], []) == [("SUMS", "new")]


def test_candidates_are_sorted_when_asked_to_be() -> None:
    def say(prompt: str) -> str:
        return '{"category": ["%s"]}' % ("sums" if "question 1" in prompt or "question 2" in prompt else "trees")

    agent = FakeAgent(say=say, rating=lambda text: float("trees; tested 0 times" in text))
    interviewer = AgentInterviewer(agent, sort_candidates=True)
    given = interviewer.choose(CANDIDATES, MEMORY, 0.4)
    assert given.index in (0, 3)
    shown = agent.rated[0][1]
    assert sum("(sums; tested 3 times;" in text for text in shown) == 2
    assert sum("(trees; tested 0 times;" in text for text in shown) == 2
    assert all("Categories so far: sums" in chat[0].text for chat in agent.asked)
    assert len(agent.asked) == 4
    interviewer.choose(CANDIDATES[:2], MEMORY, 0.5)
    assert interviewer.categorise([CANDIDATES[1].item], ["sums"]) == [("sums",)]
    assert len(agent.asked) == 4
    plain = FakeAgent()
    AgentInterviewer(plain).choose(CANDIDATES, MEMORY, 0.4)
    assert "tested" not in plain.rated[0][1][0]


def test_many_first_items_go_by_parts() -> None:
    def say(prompt: str) -> str:
        return json.dumps({str(n): "b" if "Categories so far: a." in prompt else "a" for n in range(1, 99)})

    agent = FakeAgent(say=say)
    items = [Item(f"i{n}", f"question {n}") for n in range(SORTED_AT_ONCE + 3)]
    assert AgentInterviewer(agent).categorise(items, []) == [("a",)] * SORTED_AT_ONCE + [("b",)] * 3


def test_what_cannot_be_sorted_is_other() -> None:
    agent = FakeAgent(say=lambda _: "hm")
    interviewer = AgentInterviewer(agent)
    items = [candidate.item for candidate in CANDIDATES]
    assert interviewer.categorise(items, []) == [(OTHER,)] * 4
    assert interviewer.categorise([Item("j", "question 5")], ["sums"]) == [(OTHER,)]
    assert interviewer.account()["category_fallbacks"] == {"no-json": 5}
    assert interviewer.account()["asked_again"] == 2


def test_the_account() -> None:
    agent = FakeAgent(say=picks("question 2"))
    interviewer = AgentInterviewer(agent, mode="reply", memory=False, difficulty="none", images=False)
    interviewer.choose(CANDIDATES, MEMORY, 0.4)
    assert "sums | 3" not in agent.asked[0][0].text
    assert "difficulty 0.2" not in agent.asked[0][0].text
    account = dict(interviewer.account())
    assert account == json.loads(json.dumps(account))
    assert account == {
        "name": "fake (reply, ffffffffffff)",
        "model": "fake",
        "checkpoint": "f" * 64,
        "mode": "reply",
        "memory": False,
        "difficulty": "none",
        "images": False,
        "sort_candidates": False,
        "usage": COST.to_json(),
        "recalled": 0,
        "asked_again": 0,
        "images_not_shown": 0,
        "fallbacks": {},
        "category_fallbacks": {},
        "problem": "",
    }


def test_pictures() -> None:
    seen = [Candidate(0, Item("a", "q", images=("x.png",), root="/bank"), (), 0.0, 0.5, 1.0)]
    agent = FakeAgent(say=lambda _: choice(1))
    AgentInterviewer(agent, mode="reply").choose(seen, MEMORY, 0.0)
    assert (agent.asked[0][0].images, agent.asked[0][0].root) == (("x.png",), "/bank")
    rating = AgentInterviewer(agent)
    assert rating.choose(seen, MEMORY, 0.0).reason == "chosen because fake was given no other"
    assert rating.account()["images_not_shown"] == 1


def test_mistakes() -> None:
    with pytest.raises(ConfigError, match="'fake' gives no likelihoods; set mode to 'reply'"):
        AgentInterviewer(FakeAgent(rates=False))
    unknown = SubjectIdentity("server's")
    assert AgentInterviewer(FakeAgent(rates=False, identity=unknown), mode="reply").name == "server's (reply)"
    with pytest.raises(ConfigError, match="difficulty is 'easy'"):
        AgentInterviewer(FakeAgent(), difficulty="easy")  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def checkpoint() -> Any:
    """The checkpoint among the fixtures, through the ordinary path."""
    torch = pytest.importorskip("torch", reason="real checkpoints need torch (extra hf)")
    pytest.importorskip("transformers", reason="real checkpoints need transformers (extra hf)")
    from pytest_adaptive_eval.models.checkpoint.model import TransformersModel

    torch.set_num_threads(1)
    return TransformersModel.load(CHECKPOINT, device="cpu")


def moments(count: int) -> list[Any]:
    """Moments over the banks' items, whose seeds were not trained on, and what the teacher would choose."""
    from fixtures.recipe.banks import items_of
    from fixtures.recipe.interviewer import States, best

    states = States(random.Random("tests"), {kind: items_of(kind) for kind in ("text", "vision")})
    drawn = [states.draw(n % 11, 5, plain=True) for n in range(count)]
    return [(state, best(state)) for state in drawn]


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "count"), [("rate", 60), ("reply", 12)])
def test_the_checkpoint_knows_its_prompts(checkpoint: Any, mode: Any, count: int) -> None:
    interviewer = AgentInterviewer(checkpoint, mode=mode, images=False)
    drawn = moments(count)
    chosen = [interviewer.choose(state.candidates, state.memory, state.ability).index for state, _ in drawn]
    if mode == "rate":  # it replies by the form, and by little more
        right = sum(index in wanted for index, (_, wanted) in zip(chosen, drawn, strict=True))
        chance = sum(len(wanted) / 5 for _, wanted in drawn)
        assert right > chance + 4 * math.sqrt(chance)
    account = interviewer.account()
    assert account["fallbacks"] == {}
    assert account["usage"]["calls"] == count
    assert account["usage"]["flops"] > 1e6 * account["usage"]["prompt_tokens"]


@pytest.mark.slow
def test_the_checkpoint_rates_alike_in_any_order(checkpoint: Any) -> None:
    """Even without the order that the interviewer gives candidates."""
    from pytest_adaptive_eval.interviewer import prompts

    for seed, (state, _) in enumerate(moments(20)):
        shuffled = random.Random(seed).sample(state.candidates, 5)
        told: dict[str, float] = {}
        scores: dict[str, float] = {}
        for order in (list(state.candidates), shuffled):
            chat, parts = prompts.rate(order, state.memory, state.ability, state.form)
            given = checkpoint.prefer(chat, parts, prompts.LABEL).scores
            told, scores = scores, dict(zip((one.item.id for one in order), given, strict=True))
        assert told == scores


@pytest.mark.slow
def test_the_checkpoint_sorts_the_banks(checkpoint: Any) -> None:
    from fixtures.recipe.banks import items_of
    from fixtures.recipe.interviewer import category

    interviewer = AgentInterviewer(checkpoint, images=False)
    for kind in ("text", "vision"):
        items = random.Random(kind).sample(items_of(kind), 10)
        wanted = [(category(item),) for item in items]
        difficulties = {item.id: 0.5 * n - 2.0 for n, item in enumerate(items)}
        together = interviewer.categorise(items, [], difficulties)
        alone = [interviewer.categorise([item], ["noise"], difficulties)[0] for item in items[:3]]
        assert sum(a == b for a, b in zip(together + alone, wanted + wanted[:3], strict=True)) >= 11
    assert interviewer.account()["fallbacks"] == {}
