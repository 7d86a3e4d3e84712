"""A model that is asked its bare prompt by the completions path of a server."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

from faulty_server import MODEL, FaultyServer, Request, replies, says, send, serving
from faulty_server import completion as chat_completion
from real_servers import CHECKPOINT, RealServer, llama_cpp, write_gguf

from pytest_adaptive_eval.banks import read_bank
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.models import load_model
from pytest_adaptive_eval.models.endpoint.chat import read_completion
from pytest_adaptive_eval.models.endpoint.opening import NEUTRAL
from pytest_adaptive_eval.models.endpoint.outcome import Delivery

BANK = Path(__file__).parents[2] / "fixtures" / "banks" / "text.bank"


def completion(text: Any = "blue", finish: Any = "stop", **changes: Any) -> dict[str, Any]:
    """A reply of the completions path."""
    return {
        "id": "x",
        "object": "text_completion",
        "model": MODEL,
        "choices": [{"index": 0, "text": text, "finish_reason": finish, "logprobs": None}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 5},
        **changes,
    }


def echo(connection: socket.socket, request: Request) -> None:
    if request.path != "/v1/completions":
        says(404)(connection, request)
    else:
        send(connection, completion(f"echo {request.body['prompt']}"))


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with serving(handle=echo) as running:
        yield running


def test_a_prompt_is_sent_bare(server: FaultyServer) -> None:
    subject = load_model(f"{server.url}#{MODEL}", api="completions", retries=0)
    assert subject.generate(Item("a", " how many?\n", meta={"max_tokens": 9})) == "echo  how many?\n"
    assert server.chats[-1].path == "/v1/completions"
    assert server.chats[-1].body == {
        "model": MODEL,
        "prompt": " how many?\n",
        "stream": False,
        "max_tokens": 9,
        "temperature": 0.0,
        **NEUTRAL,
    }


def test_the_path_is_part_of_the_decoding(server: FaultyServer) -> None:
    completions = load_model(f"{server.url}#{MODEL}", api="completions", retries=0)
    with serving() as other:
        chat = load_model(f"{other.url}#{MODEL}", retries=0)
    assert (completions.identity.decoding["template"], chat.identity.decoding["template"]) == ("raw", "chat")
    assert completions.identity.decoding_hash != chat.identity.decoding_hash


def test_a_chat_is_an_error_of_its_item(server: FaultyServer) -> None:
    subject = load_model(f"{server.url}#{MODEL}", api="completions", retries=0)
    chat, plain = subject.answer([Item("a", messages=({"role": "user", "content": "q"},)), Item("b", "q")])
    assert (chat.status, plain.text) == (Status.ERROR, "echo q")
    assert "item 'a' has messages, and api = \"completions\" sends one text" in chat.detail


def test_a_bank_with_pictures_is_refused_before_the_first_question(server: FaultyServer) -> None:
    subject = load_model(f"{server.url}#{MODEL}", api="completions", retries=0)
    with pytest.raises(ConfigError, match='the bank has pictures, and /completions takes one text: use api = "chat"'):
        subject.prepare(read_bank(BANK.parent / "vision.bank").items[:3])


@pytest.mark.parametrize(
    ("payload", "status", "detail"),
    [
        (completion(), "ok", ""),
        (completion(finish="length"), "truncated", "not finished after 5 tokens"),
        (completion(finish="content_filter"), "refused", "the server's filter cut the answer"),
        (completion(" \n"), "empty", "nothing but white space"),
        (completion(None), "empty", "nothing but white space"),
        (completion("<think>hm"), "empty", "its reasoning does not end"),
        (completion(finish="abort"), "error", "finish_reason is 'abort'"),
        (completion(object="chat.completion"), "ok", "object is 'chat.completion', expected 'text_completion'"),
        (completion(choices=[]), "error", "does not follow the protocol"),
        (completion(error={"message": "no memory"}), "error", "an error came as a success: 'no memory'"),
        (completion("\ud800"), "error", "half a surrogate pair"),
    ],
)
def test_what_a_reply_means(payload: dict[str, Any], status: str, detail: str) -> None:
    reply = read_completion(Delivery(Status.OK, payload, code=200))
    assert reply.status == status
    assert detail in reply.detail


def test_reasoning_is_told_from_the_answer() -> None:
    reply = read_completion(Delivery(Status.OK, completion("<think>2+2</think>4"), code=200))
    assert (reply.text, reply.reasoning, reply.status) == ("4", "2+2", Status.OK)


def test_a_server_without_the_path_is_refused_by_its_name() -> None:
    with (
        serving(handle=replies(chat_completion())) as chats,
        pytest.raises(ConfigError, match=r"missing required field `text`.*/v1/completions"),
    ):
        load_model(f"{chats.url}#{MODEL}", api="completions", retries=0)
    with (
        serving(handle=replies({"error": {"message": "unknown url"}}, 404)) as nothing,
        pytest.raises(ConfigError, match="/v1/completions: start the server again, or fix the path"),
    ):
        load_model(f"{nothing.url}#{MODEL}", api="completions", retries=0)


def test_another_path_and_an_agent_without_chats_are_refused(server: FaultyServer) -> None:
    with pytest.raises(ConfigError, match="api is 'responses', expected 'chat' or 'completions'"):
        load_model(f"{server.url}#{MODEL}", api="responses")
    with pytest.raises(ConfigError, match="its option api has another value than 'chat': remove it"):
        load_model(f"{server.url}#{MODEL}", api="completions", chats=True)


@pytest.fixture(scope="module")
def base_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    """llama.cpp with a checkpoint that has no chat template."""
    for package in ("gguf", "xllamacpp", "safetensors"):
        pytest.importorskip(package, reason=f"a base model behind llama.cpp needs {package}")
    folder = tmp_path_factory.mktemp("base")
    write_gguf(CHECKPOINT, folder / "text-late.gguf", template="")
    server = llama_cpp(folder / "text-late.gguf", folder / "log.txt")
    server.start()
    yield server
    server.kill()


@pytest.mark.slow
def test_a_base_model_behind_llama_cpp_answers_as_the_local_checkpoint(base_server: RealServer) -> None:
    pytest.importorskip("torch", reason="the local checkpoint needs torch (extra hf)")
    items = list(read_bank(BANK).items)[::6]
    expected = [answer.text for answer in load_model(str(CHECKPOINT)).answer(items)]
    served = load_model(base_server.spec, api="completions").answer(items)
    assert [answer.text for answer in served] == expected
    # without a template llama.cpp puts the prompt into one that the model never saw
    chat = [answer.text for answer in load_model(base_server.spec).answer(items[:20])]
    assert chat != expected[:20]
