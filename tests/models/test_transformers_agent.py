"""Local checkpoints as agents: replies, ratings, and what is split from them and counted."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.errors import CheckpointError, ConfigError
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.items.reading.cleaning import split_reasoning
from pytest_adaptive_eval.models import load_model
from pytest_adaptive_eval.models.base import Completion, Message

torch: Any = pytest.importorskip("torch", reason="real checkpoints need torch (extra hf)")
transformers: Any = pytest.importorskip("transformers", reason="real checkpoints need transformers (extra hf)")

from pytest_adaptive_eval.models.checkpoint.generation import Generated  # noqa: E402
from pytest_adaptive_eval.models.checkpoint.model import TransformersModel  # noqa: E402

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
TEMPLATE = (
    "{% for m in messages %}<|{{ 'user' if m['role'] == 'user' else 'assistant' }}|>{{ m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
CHAT = [Message("user", "how many circles are there in the picture "), Message("assistant", "seven"),
        Message("user", "the question was two plus five ")]  # fmt: skip
CANDIDATES = ["a b c", "the answer is seven", "0 1 2 3 4", "how many"]


@pytest.fixture(scope="module", params=["llama", "gemma2", "mistral", "phi3"])
def folder(request: pytest.FixtureRequest, checkpoints: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Chat models; the windows of two of them are shorter than the prompts."""
    made: Path = checkpoints.copy(request.param, tmp_path_factory.mktemp("chat"))
    (made / "chat_template.jinja").write_text(TEMPLATE)
    return made


@pytest.fixture
def agent(checkpoints: Any) -> TransformersModel:
    return TransformersModel.load(checkpoints.text("qwen3"), device="cpu")


def by_hand(folder: Path, candidate: str, label: str) -> float:
    """The label's log-likelihood by one pass over everything."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    chat = [{"role": m.role, "content": m.text} for m in CHAT]
    chat[-1]["content"] += candidate
    head = tokenizer(tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True))["input_ids"]
    tail = tokenizer(label, add_special_tokens=False)["input_ids"]
    with torch.inference_mode():
        words = model(torch.tensor([head + tail])).logits[0].log_softmax(-1)
    return sum(float(words[len(head) - 1 + i, token]) for i, token in enumerate(tail))


def test_an_agent_is_one(agent: TransformersModel) -> None:
    assert agent.rates
    known = {"max_tokens": 1024, "temperature": 0.0, "seed": None, "template": "chat", "template_date": "2025-01-01"}
    assert agent.identity.decoding == known
    assert len(agent.identity.checkpoint) == 64


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize("label", ["seven", "the answer is seven"])
def test_ratings_are_the_likelihoods_of_whole_prompts(folder: Path, label: str, no_network: list[object]) -> None:
    agent = TransformersModel.load(folder, device="cpu")
    expected = [by_hand(folder, candidate, label) for candidate in CANDIDATES]
    for _ in range(2):  # the second time with a warm cache
        assert agent.prefer(CHAT, CANDIDATES, label).scores == pytest.approx(expected, abs=1e-3)
    assert max(expected) - min(expected) > 0.1
    assert agent.prefer(CHAT, CANDIDATES[:1], label).scores == pytest.approx(expected[:1], abs=1e-3)


def test_neither_order_nor_company_matters(agent: TransformersModel) -> None:
    expected = dict(zip(CANDIDATES, agent.prefer(CHAT, CANDIDATES, "seven").scores, strict=True))

    @given(st.permutations(CANDIDATES))
    def same(order: list[str]) -> None:
        fresh = agent.prefer(CHAT, order, "seven").scores
        assert dict(zip(order, fresh, strict=True)) == expected  # to the last bit

    same()
    for candidate, score in expected.items():
        assert agent.prefer(CHAT, [candidate], "seven").scores == pytest.approx([score], abs=1e-4)


def test_what_two_calls_share_is_read_once(agent: TransformersModel) -> None:
    first = agent.prefer(CHAT, CANDIDATES, "seven").usage
    again = agent.prefer(CHAT, CANDIDATES, "seven")
    longer = [*CHAT[:-1], Message("user", CHAT[-1].text + "and the answer is ")]
    later = agent.prefer(longer, CANDIDATES, "seven")
    fresh = TransformersModel.load(agent._open().info.folder, device="cpu").prefer(longer, CANDIDATES, "seven")
    assert again.usage.prompt_tokens < first.prompt_tokens
    assert later.usage.prompt_tokens < fresh.usage.prompt_tokens
    assert later.scores == pytest.approx(fresh.scores, abs=1e-4)
    assert first.calls == 1
    assert first.completion_tokens == 0
    parameters = agent._open().loaded.model.num_parameters()
    assert first.flops == 2 * parameters * first.prompt_tokens


def test_a_window_that_slid_is_read_anew(checkpoints: Any, tmp_path: Path) -> None:
    folder = checkpoints.copy("mistral", tmp_path)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    agent = TransformersModel.load(folder, device="cpu")
    others = [Message("user", CHAT[0].text * 2)]
    expected = agent.prefer(CHAT, CANDIDATES, "seven").scores
    agent.prefer(others, CANDIDATES, "seven")
    assert agent.prefer(CHAT, CANDIDATES, "seven").scores == pytest.approx(expected, abs=1e-4)


def test_a_reply_is_the_greedy_one(checkpoints: Any, agent: TransformersModel) -> None:
    subject = TransformersModel.load(checkpoints.text("qwen3"), device="cpu")
    chat = tuple({"role": m.role, "content": m.text} for m in CHAT)
    (expected,) = subject.answer([Item("a", messages=chat, meta={"max_tokens": 9})])
    reply = agent.ask(CHAT, max_tokens=9)
    assert (reply.text, reply.status, reply.detail) == (expected.text, expected.status, expected.detail)
    assert reply.cost.calls == 1
    assert reply.cost.completion_tokens <= 9
    assert reply.cost.seconds > 0
    parameters = agent._open().loaded.model.num_parameters()
    assert reply.cost.flops == 2 * parameters * (reply.cost.prompt_tokens + reply.cost.completion_tokens)


@pytest.mark.parametrize(
    ("said", "status", "text", "reasoning", "after"),
    [
        ("<think>two plus five</think>seven", Status.OK, "seven", "two plus five", Status.OK),
        ("<think>two plus five</think> ", Status.OK, "", "two plus five", Status.EMPTY),
        ("<think>two plus", Status.OK, "", "two plus", Status.EMPTY),
        ("<think>two plus", Status.TRUNCATED, "", "two plus", Status.TRUNCATED),
        ("seven", Status.OK, "seven", "", Status.OK),
    ],
)
def test_reasoning_is_split_off_and_counted(
    agent: TransformersModel,
    monkeypatch: pytest.MonkeyPatch,
    said: str,
    status: Status,
    text: str,
    reasoning: str,
    after: Status,
) -> None:
    monkeypatch.setattr(agent._open(), "generated", lambda _: Generated(Completion(said, status), 30, 12))
    reply = agent.ask(CHAT)
    assert (reply.text, reply.reasoning, reply.status) == (text, reasoning, after)
    assert (reply.cost.reasoning_tokens > 0) == bool(reasoning)
    assert reply.cost.completion_tokens == 12


def test_a_template_that_begins_to_think(checkpoints: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = checkpoints.copy("llama", tmp_path)
    (folder / "chat_template.jinja").write_text(TEMPLATE + "<think>\n")
    agent = TransformersModel.load(folder, device="cpu")
    monkeypatch.setattr(agent._open(), "generated", lambda _: Generated(Completion("two plus"), 30, 12))
    assert agent.ask(CHAT).status is Status.EMPTY
    (folder / "chat_template.jinja").write_text(TEMPLATE + "<think>\n\n</think>\n\n")
    closed = TransformersModel.load(folder, device="cpu")
    told = agent.prefer(CHAT, CANDIDATES, "seven").scores
    assert told == pytest.approx(closed.prefer(CHAT, CANDIDATES, "seven").scores, abs=1.0)
    assert all(math.isfinite(score) for score in told)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ("", "", True)),
        (" as it came ", (" as it came ", "", True)),
        ("<think>x</think> y", ("y", "x", True)),
        ("x</think>y", ("y", "x", True)),
        ("<think>x", ("", "x", False)),
        ("a<thinking>x</thinking>b<THINK>y", ("ab", "x\n\ny", False)),
        ("<think>a<think>b</think>c</think>d", ("d", "a\n\nb\n\nc", True)),
        ("<think></think>", ("", "", True)),
    ],
)
def test_splitting_reasoning(text: str, expected: tuple[str, str, bool]) -> None:
    assert split_reasoning(text) == expected


@given(st.lists(st.sampled_from(["<think>", "</think>", "a", " ", "\n", "<think", "thinking>"]), max_size=12))
def test_no_tag_is_left_and_nothing_is_lost(parts: list[str]) -> None:
    text = "".join(parts)
    answer, reasoning, closed = split_reasoning(text)
    assert text.count("a") == (answer + reasoning).count("a")
    if "<think>" not in text and "</think>" not in text:
        assert (answer, reasoning, closed) == (text, "", True)
    if text.endswith("<think>"):
        assert not closed


def test_images(no_network: list[object]) -> None:
    folder, root = FIXTURES / "checkpoints" / "vision-late", str(FIXTURES / "banks")
    agent = TransformersModel.load(folder, device="cpu")
    subject = TransformersModel.load(folder, device="cpu")
    for name in ("vision-images/caption-6-1.png", "vision-images/grid-1-1.png"):
        text = "Which shape is in one cell only?"
        reply = agent.ask([Message("user", text, (name,), root)], max_tokens=8)
        (expected,) = subject.answer([Item("a", text, images=(name,), root=root, meta={"max_tokens": 8})])
        assert reply.text == expected.text
    seen = agent.prefer([Message("user", "", (name,), root)], [text, "Which shape is in the noise?"], reply.text)
    blind = agent.prefer([Message("user", "")], [text, "Which shape is in the noise?"], reply.text)
    assert seen.status is blind.status is Status.OK
    assert seen.scores[0] > math.log(0.3)  # it is what the model says by itself
    assert seen.scores[0] > blind.scores[0]
    lost = agent.prefer([Message("user", "", ("../secret.png",), root)], [text], "disc")
    assert lost.status is Status.ERROR
    assert "secret.png" in lost.detail


def test_faults_are_statuses(agent: TransformersModel, monkeypatch: pytest.MonkeyPatch) -> None:
    pictured = [Message("user", "what is this", ("a.png",))]
    for outcome in (agent.ask(pictured), agent.prefer(pictured, ["a"], "seven")):
        assert outcome.status is Status.ERROR
        assert "reads text only" in outcome.detail
    endless = [Message("user", "seven " * 300)]
    for outcome in (agent.ask(endless), agent.prefer(endless, CANDIDATES, "seven")):
        assert outcome.status is Status.ERROR
        assert "the model reads at most 128" in outcome.detail
    assert agent.prefer(CHAT, ["a"], "").status is Status.ERROR
    assert agent.prefer(CHAT, [], "seven").scores == ()
    assert agent.prefer(CHAT, CANDIDATES, "seven").status is Status.OK

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(agent._open().loaded.model, "forward", interrupt)
    with pytest.raises(KeyboardInterrupt):
        agent.prefer(CHAT, CANDIDATES, "five")


def test_ratings_that_are_not_finite(checkpoints: Any, tmp_path: Path, edit_weights: Callable[..., None]) -> None:
    folder = checkpoints.copy("qwen3", tmp_path)
    edit_weights(folder, **{"model.norm.weight": torch.full((32,), 3e38)})
    given = TransformersModel.load(folder, device="cpu").prefer(CHAT, CANDIDATES, "seven")
    assert (given.status, given.detail) == (Status.ERROR, "non-finite logits behind a candidate")
    assert all(math.isnan(score) for score in given.scores)


def test_what_is_no_agent(checkpoints: Any, agent: TransformersModel) -> None:
    with pytest.raises(CheckpointError, match="has no chat template, which a model that works for the run needs"):
        load_model(str(checkpoints.text("llama")), chats=True, device="cpu")
    agent.close()
    with pytest.raises(ConfigError, match="was closed"):
        agent.ask(CHAT)
    with pytest.raises(ConfigError, match="was closed"):
        agent.prefer(CHAT, CANDIDATES, "seven")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_a_gpu_rates_as_the_cpu_does(folder: Path) -> None:
    cpu = TransformersModel.load(folder, device="cpu", dtype="float32").prefer(CHAT, CANDIDATES, "seven")
    gpu = TransformersModel.load(folder, device="cuda", dtype="float32").prefer(CHAT, CANDIDATES, "seven")
    assert gpu.scores == pytest.approx(cpu.scores, abs=1e-2)


def test_an_agent_samples_by_its_seed(checkpoints: Any) -> None:
    folder = checkpoints.text("qwen3")

    def said(**options: Any) -> str:
        agent = TransformersModel.load(folder, device="cpu", **options)
        return agent.ask(CHAT, max_tokens=12).text

    greedy = said()
    assert said(temperature=2.0, top_p=0.001, seed=5) == greedy  # the likeliest token alone is left
    drawn = [said(temperature=2.0, seed=seed) for seed in (1, 1, 2, 3)]
    assert drawn[0] == drawn[1]
    assert len({greedy, *drawn}) > 2
    sampling: dict[str, Any] = {"device": "cpu", "temperature": 2.0, "seed": 3, "max_tokens": 12}
    (first,) = TransformersModel.load(folder, **sampling).answer([Item("a", "which answer is right")])
    agent = TransformersModel.load(folder, **sampling)  # it draws as a subject does at first
    assert agent.ask([Message("user", "which answer is right")]).text == first.text
    decoding = TransformersModel.load(folder, device="cpu", temperature=0.8, top_p=0.9, seed=4).identity.decoding
    assert [decoding[name] for name in ("temperature", "top_p", "seed")] == [0.8, 0.9, 4]


@pytest.mark.parametrize(
    ("options", "message"), [({"top_p": 0.0}, "top_p is 0.0"), ({"temperature": -1}, "at least 0")]
)
def test_sampling_that_cannot_be(checkpoints: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TransformersModel.load(checkpoints.text("qwen3"), device="cpu", **options)


def test_a_nucleus_holds_the_likeliest_tokens_up_to_its_share() -> None:
    from pytest_adaptive_eval.models.checkpoint.generation import _nucleus

    logits = torch.log(torch.tensor([[0.1, 0.5, 0.15, 0.25], [0.97, 0.01, 0.01, 0.01]]))
    kept = torch.isfinite(_nucleus(logits, 0.7))
    assert kept.tolist() == [[False, True, False, True], [True, False, False, False]]
    assert torch.isfinite(_nucleus(logits, 1.0)).all()
