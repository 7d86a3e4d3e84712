"""Log-likelihoods of choices on servers: equal to the local checkpoint's, and refused where they cannot be trusted."""

from __future__ import annotations

import copy
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

from faulty_server import FaultyServer, Request, replies, says, send, serving
from real_servers import CHECKPOINT

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.items.likelihood import BitsPerByte, ChoiceLikelihood
from pytest_adaptive_eval.models import load_model
from pytest_adaptive_eval.models.base import Model

#: Replies of vLLM 0.32 with the checkpoint `text-late`, see `benchmarks/served_likelihood.py --record`.
RECORDED = json.loads((Path(__file__).parent / "vllm_replies.json").read_text())
ITEMS = [
    Item(entry["id"], entry["prompt"], entry["answer"], "choice", choices=tuple(entry["choices"]))
    for entry in RECORDED["items"]
]
#: The server lists the model that was recorded.
LISTING = replies({"object": "list", "data": [{"id": "text-late"}]})
Change = Callable[[dict[str, Any]], object]


def asked(normalization: str = "pmi") -> list[Item]:
    scoring = ChoiceLikelihood(normalization)
    return [
        Item(item.id, item.prompt, item.answer, "choice", choices=item.choices, likelihood=scoring) for item in ITEMS
    ]


def recorded(change: Change = lambda _: None) -> Callable[[socket.socket, Request], None]:
    """Replies as recorded, by the prompt and the way that it is asked in; `change` changes a copy of each."""

    def handle(connection: socket.socket, request: Request) -> None:
        way = "echo" if request.body.get("echo") else "prompt_logprobs"
        if not (request.body.get("echo") or "prompt_logprobs" in request.body):
            way = "plain"
        prompt = "Hi" if way == "plain" else request.body["prompt"]
        reply = RECORDED["replies"][way].get(prompt)
        if reply is None:
            says(400, f"not recorded: {prompt!r}")(connection, request)
            return
        reply = copy.deepcopy(reply)
        if way != "plain":
            change(reply)
        send(connection, reply)

    return handle


@pytest.fixture
def vllm() -> Iterator[FaultyServer]:
    with serving(listing=LISTING, handle=recorded()) as server:
        yield server


def subject(server: FaultyServer, **options: Any) -> Model:
    return load_model(
        f"{server.url}#text-late", **{"api": "completions", "retries": 0, "begin_text": "</s>", **options}
    )


@pytest.mark.parametrize("likelihoods", ["prompt_logprobs", "echo"])
def test_vllm_gives_the_log_likelihoods_of_the_local_checkpoint(vllm: FaultyServer, likelihoods: str) -> None:
    pytest.importorskip("torch", reason="the local checkpoint needs torch (extra hf)")
    texts = [Item("t", ITEMS[0].prompt, grader="bits_per_byte", likelihood=BitsPerByte())]
    served = subject(vllm, likelihoods=likelihoods)
    served.prepare([*asked(), *texts])
    local = load_model(str(CHECKPOINT)).answer([*asked(), *texts])
    for here, there in zip(local, served.answer([*asked(), *texts]), strict=True):
        assert (there.status, there.text) == (Status.OK, here.text), there.detail
        for name in ("log_likelihoods", "unconditional"):
            assert there.likelihood.get(name, []) == pytest.approx(here.likelihood.get(name, []), abs=1e-4)
    assert served.usage.prompt_tokens > 0


def test_shared_texts_are_sent_once(vllm: FaultyServer) -> None:
    served = subject(vllm)
    served.prepare(asked("raw"))
    before = len(vllm.chats)
    served.answer(asked("raw")[:1])
    assert len(vllm.chats) - before == 1 + len(ITEMS[0].choices)


def test_written_answers_and_likelihoods_share_a_batch(vllm: FaultyServer) -> None:
    served = subject(vllm)
    rated, written = served.answer([asked("raw")[0], Item("w", "Hi", "x")])
    assert rated.likelihood
    assert not written.likelihood
    assert written.status in (Status.OK, Status.TRUNCATED)


# what cannot be trusted


def prompt_logs(reply: dict[str, Any]) -> list[Any]:
    return reply["choices"][0]["prompt_logprobs"]


def same_figures(reply: dict[str, Any]) -> None:
    reply["choices"][0]["prompt_logprobs"] = [None, *({"1": {"logprob": -1.0}} for _ in prompt_logs(reply)[1:])]


def other_text(reply: dict[str, Any]) -> None:
    for place in prompt_logs(reply)[1:]:
        for entry in place.values():
            entry["decoded_token"] = "x"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda reply: reply["choices"][0].pop("prompt_logprobs"), "no log-probabilities of the prompt came"),
        (lambda reply: reply["choices"][0].update(prompt_logprobs=None), "no log-probabilities of the prompt came"),
        (lambda reply: prompt_logs(reply).pop(), r"\d+ log-probabilities came for a prompt of \d+ tokens"),
        (lambda reply: prompt_logs(reply).pop(0), "the first token, and no other, must lack"),
        (other_text, "the tokens spell"),
        (same_figures, "two different texts have the same log-probabilities"),
        (
            lambda reply: prompt_logs(reply)[1].update({"1": {"logprob": 3.0}}),
            "no log-probabilities of the prompt came",
        ),
    ],
)
def test_figures_that_cannot_be_those_of_the_texts_are_refused(change: Change, problem: str) -> None:
    with serving(listing=LISTING, handle=recorded(change)) as server:
        served = subject(server)
        with pytest.raises(ConfigError, match=f"does not give them by prompt_logprobs: .*{problem}"):
            served.prepare(asked("raw"))


def test_no_echo_is_sent_unless_it_is_asked_for() -> None:
    """An echo ends some servers."""
    with serving(
        listing=LISTING, handle=recorded(lambda reply: reply["choices"][0].pop("prompt_logprobs", None))
    ) as server:
        with pytest.raises(ConfigError, match='with likelihoods = "echo"'):
            subject(server).prepare(asked("raw"))
        assert not any(request.body.get("echo") for request in server.chats)
        assert all(isinstance(request.body["prompt"], str) for request in server.chats)


def test_a_server_that_ignores_the_echo_is_refused() -> None:
    def ignore(reply: dict[str, Any]) -> None:
        logs = reply["choices"][0]["logprobs"]
        for name in ("tokens", "token_logprobs"):
            logs[name] = logs[name][-1:]

    with (
        serving(listing=LISTING, handle=recorded(ignore)) as server,
        pytest.raises(ConfigError, match=r"by echo: .* must lack"),
    ):
        subject(server, likelihoods="echo").prepare(asked("raw"))


def without_texts(reply: dict[str, Any]) -> None:
    """The form of FastChat: figures without the texts of the tokens."""
    reply["choices"][0]["logprobs"].update(tokens=None, text_offset=None, top_logprobs=None)


def one_too_many(reply: dict[str, Any]) -> None:
    """The form of MAX: no entry for the first token, and one too many at the end."""
    without_texts(reply)
    logs = reply["choices"][0]["logprobs"]["token_logprobs"]
    logs[:] = [*logs[1:], -1.0, -1.0]


def test_figures_without_texts_are_counted() -> None:
    with serving(listing=LISTING, handle=recorded(without_texts)) as server:
        served = subject(server, likelihoods="echo")
        served.prepare(asked("raw"))
        answers = served.answer(asked("raw"))
    with serving(listing=LISTING, handle=recorded()) as server:
        complete = subject(server).answer(asked("raw"))
    for answer, other in zip(answers, complete, strict=True):
        assert answer.likelihood["log_likelihoods"] == pytest.approx(other.likelihood["log_likelihoods"], abs=1e-6)


def test_figures_at_other_places_are_refused() -> None:
    with (
        serving(listing=LISTING, handle=recorded(one_too_many)) as server,
        pytest.raises(ConfigError, match=r"by echo: .* must lack"),
    ):
        subject(server, likelihoods="echo").prepare(asked("raw"))


def test_a_path_for_chats_is_refused() -> None:
    with serving() as server:
        served = load_model(f"{server.url}#tiny", retries=0)
        with pytest.raises(ConfigError, match='is asked by chats: set api = "completions"'):
            served.prepare(asked("raw"))


def test_a_text_without_a_prompt_needs_the_token_that_begins_a_text(vllm: FaultyServer) -> None:
    served = subject(vllm, begin_text="")
    served.prepare(asked("raw"))
    with pytest.raises(ConfigError, match="puts none there: set begin_text"):
        subject(vllm, begin_text="").prepare(asked("pmi"))


def test_a_failed_request_is_an_error_of_its_item(vllm: FaultyServer) -> None:
    unknown = Item("u", "never recorded", "a", "choice", choices=("a", "b"), likelihood=ChoiceLikelihood())
    bad, good = subject(vllm).answer([unknown, asked("raw")[0]])
    assert (bad.status, good.status) == (Status.ERROR, Status.OK)
    assert "not recorded" in bad.detail


@pytest.mark.parametrize(
    ("option", "problem"), [("logits", "likelihoods is 'logits', expected 'echo' or 'prompt_logprobs'")]
)
def test_another_way_is_refused(vllm: FaultyServer, option: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        subject(vllm, likelihoods=option)
