"""Pictures that are dropped, prompts that are cut, and answers that are cut without a word are no answers."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

from faulty_server import MODEL, Handler, Request, completion, replies, says, send, serving

from pytest_adaptive_eval.errors import AdaptiveEvalWarning, ConfigError
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.models import load_model

OURS: dict[str, Any] = {"retries": 0, "timeout": 10.0}


def counts(prompt: int, answer: int, *, capped: bool = False) -> Handler:
    """Count tokens; with `capped`, say so where one token is all that was asked for."""

    def handle(connection: socket.socket, request: Request) -> None:
        finish = "length" if capped and request.body["max_tokens"] == 1 else "stop"
        send(connection, completion(finish=finish, usage={"prompt_tokens": prompt, "completion_tokens": answer}))

    return handle


def lists(**entry: Any) -> Handler:
    return replies({"object": "list", "data": [{"id": MODEL, **entry}]})


@pytest.mark.parametrize(
    ("prompt", "answer", "cap", "status"),
    [
        (100, 20, 64, Status.OK),
        (448, 20, 64, Status.ERROR),  # cut to what the cap leaves
        (447, 20, 64, Status.OK),
        (600, 5, 64, Status.ERROR),  # run over
        (500, 13, 64, Status.OK),
        (500, 14, 64, Status.ERROR),
    ],
)
@pytest.mark.parametrize("entry", [{"max_model_len": 512}, {"meta": {"n_ctx": 512, "n_ctx_train": 4096}}])
def test_a_prompt_that_does_not_fit_the_context_is_an_error(
    prompt: int, answer: int, cap: int, status: Status, entry: dict[str, Any]
) -> None:
    with serving(handle=counts(prompt, answer, capped=True), listing=lists(**entry)) as server:
        subject = load_model(f"{server.url}#{MODEL}", max_tokens=cap, **OURS)
        (given,) = subject.answer([Item("a", "q")])
    assert given.status is status
    assert subject.identity.environment["context"] == 512
    assert ("the server's context" in given.detail) == (status is Status.ERROR)


@pytest.mark.parametrize(("capped", "status"), [(True, Status.OK), (False, Status.TRUNCATED)])
def test_an_answer_at_its_cap_counts_where_the_server_says_when_it_cuts(capped: bool, status: Status) -> None:
    with serving(handle=counts(9, 20, capped=capped)) as server:
        subject = load_model(f"{server.url}#{MODEL}", **OURS)
        at, below = subject.answer([Item("a", "q", meta={"max_tokens": 20}), Item("b", "q", meta={"max_tokens": 21})])
    assert (at.status, below.status) == (status, Status.OK)


def test_a_server_that_tells_neither_caps_nor_tokens_is_warned_of() -> None:
    with serving(handle=counts(0, 0)) as server, pytest.warns(AdaptiveEvalWarning, match="cut answer counts"):
        load_model(f"{server.url}#{MODEL}", **OURS)


# pictures


@pytest.fixture
def items(tmp_path: Path) -> list[Item]:
    image = pytest.importorskip("PIL.Image", reason="pictures need pillow")
    for number in range(3):
        image.new("RGB", (8, 8), (80 * number, 0, 0)).save(tmp_path / f"{number}.png")
    return [
        Item("text", "no picture"),
        *(
            Item(f"p{n}", "which colour?", images=(f"{n}.png",), formats=("image",), root=str(tmp_path))
            for n in range(3)
        ),
    ]


def looks(tokens: Callable[[int], int], say: Callable[[Request], str]) -> Handler:
    def handle(connection: socket.socket, request: Request) -> None:
        usage = {"prompt_tokens": tokens(request.pictures), "completion_tokens": 1}
        finish = "length" if request.body["max_tokens"] == 1 else "stop"
        send(connection, completion(say(request), finish=finish, usage=usage))

    return handle


def first_picture(request: Request) -> str:
    content = request.body["messages"][-1]["content"]
    urls = [] if isinstance(content, str) else [x["image_url"]["url"] for x in content if x["type"] == "image_url"]
    return urls[0][-60:] if urls else "none"


@pytest.mark.parametrize(
    ("handle", "calls"),
    [
        (looks(lambda pictures: 10 + 64 * pictures, lambda _: "blue"), 2),
        (looks(lambda _: 0, first_picture), 8),
        (looks(lambda pictures: 10 + 3 * pictures, first_picture), 8),
    ],
    ids=["by tokens", "by answers, uncounted", "by answers, few tokens"],
)
def test_a_server_that_shows_pictures_is_accepted(handle: Handler, calls: int, items: list[Item]) -> None:
    with serving(handle=handle) as server:
        subject = load_model(f"{server.url}#{MODEL}", **OURS)
        before = len(server.chats)
        subject.prepare(items)
        subject.prepare(items)
        assert len(server.chats) - before == calls == subject.usage.calls - before


@pytest.mark.parametrize(
    "handle",
    [
        looks(lambda _: 10, lambda _: "blue"),
        looks(lambda pictures: 10 + 6 * pictures, lambda _: "blue"),
        looks(lambda _: 0, lambda request: str(request.pictures)),
    ],
    ids=["dropped", "a placeholder", "counted and not shown"],
)
def test_a_server_that_drops_pictures_is_refused_before_the_first_question(handle: Handler, items: list[Item]) -> None:
    with serving(handle=handle) as server:
        subject = load_model(f"{server.url}#{MODEL}", **OURS)
        with pytest.raises(ConfigError, match=r"nothing shows that 'tiny' at http.* looks at them"):
            subject.answer(items)
        for one in ([items[1]], items[1:2]):
            with pytest.raises(ConfigError, match="the answers to 1 questions do not change"):
                subject.prepare(one)
        assert subject.answer([items[0]])[0].status is Status.OK


def test_a_server_that_refuses_pictures_is_refused(items: list[Item]) -> None:
    def handle(connection: socket.socket, request: Request) -> None:
        (says(500, "no mmproj") if request.pictures else replies(completion()))(connection, request)

    with serving(handle=handle) as server:
        subject = load_model(f"{server.url}#{MODEL}", **OURS)
        with pytest.raises(ConfigError, match=r"gives no answer to an item with one: HTTP 500.*no mmproj"):
            subject.prepare(items)


def test_pictures_are_read_when_they_are_sent(items: list[Item]) -> None:
    shown = looks(lambda pictures: 10 + 64 * pictures, lambda _: "blue")

    def handle(connection: socket.socket, request: Request) -> None:
        if request.prompt == items[0].prompt:
            (Path(items[3].root) / "2.png").unlink()
        shown(connection, request)

    with serving(handle=handle) as server:
        subject = load_model(f"{server.url}#{MODEL}", concurrency=1, **OURS)
        answers = subject.answer(items)
    assert [answer.status for answer in answers] == [Status.OK] * 3 + [Status.ERROR]
    assert "2.png" in answers[3].detail


def test_a_bank_without_pictures_costs_no_look(items: list[Item]) -> None:
    with serving() as server:
        subject = load_model(f"{server.url}#{MODEL}", **OURS)
        before = len(server.chats)
        subject.prepare([items[0]])
        assert len(server.chats) == before
