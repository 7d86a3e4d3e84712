"""A model on a server as a subject and as an agent: what it is sent, who it is, what its replies mean."""

from __future__ import annotations

import base64
import io
import json
import math
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

from faulty_server import MODEL, FaultyServer, Request, choice, completion, replies, says, send, serving
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.errors import AdaptiveEvalWarning, ConfigError
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.models import load_model
from pytest_adaptive_eval.models.base import Message, Usage
from pytest_adaptive_eval.models.endpoint.chat import first_token, read_reply
from pytest_adaptive_eval.models.endpoint.model import EndpointModel
from pytest_adaptive_eval.models.endpoint.opening import NEUTRAL
from pytest_adaptive_eval.models.endpoint.outcome import Delivery
from pytest_adaptive_eval.models.recorded import RecordedModel
from pytest_adaptive_eval.models.store import CompletionStore

KEY = "sk-0123456789abcdef"


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyServer]:
    with serving() as running:
        yield running


@pytest.fixture
def subject(server: FaultyServer) -> Iterator[EndpointModel]:
    made = load_model(f"{server.url}#{MODEL}", retries=0, timeout=10.0)
    assert isinstance(made, EndpointModel)
    yield made
    made.close()


def read(payload: dict[str, Any], seconds: float = 0.0) -> Any:
    return read_reply(Delivery(Status.OK, payload, code=200, seconds=seconds))


# what is sent


def test_a_prompt_is_a_greedy_chat(server: FaultyServer, subject: EndpointModel) -> None:
    assert subject.generate(Item("a", "how many?", meta={"max_tokens": 9})) == "echo how many?"
    assert server.chats[-1].body == {
        "model": MODEL,
        "messages": [{"role": "user", "content": "how many?"}],
        "stream": False,
        "max_tokens": 9,
        "temperature": 0.0,
        **NEUTRAL,
    }


def test_messages_keep_their_roles(server: FaultyServer, subject: EndpointModel) -> None:
    messages = ({"role": "system", "content": "be short"}, {"role": "user", "content": [{"type": "text", "text": "q"}]})
    assert subject.generate(Item("a", messages=messages)) == "echo q"
    assert server.chats[-1].body["messages"] == [
        {"role": "system", "content": "be short"},
        {"role": "user", "content": "q"},
    ]


def test_images_are_sent_decoded_and_in_their_places(
    server: FaultyServer, subject: EndpointModel, tmp_path: Path
) -> None:
    image = pytest.importorskip("PIL.Image")
    for name, colour in (("red.png", (255, 0, 0)), ("blue.webp", (0, 0, 255))):
        image.new("RGB", (5, 4), colour).save(tmp_path / name, lossless=True)
    parts = [{"type": "image"}, {"type": "text", "text": "or"}, {"type": "image"}, {"type": "text", "text": "which?"}]
    item = Item(
        "a", messages=({"role": "user", "content": parts},), images=("red.png", "blue.webp"), root=str(tmp_path)
    )
    assert subject.generate(item) == "echo which?"
    content = server.chats[-1].body["messages"][0]["content"]
    assert [part["type"] for part in content] == ["image_url", "text", "image_url", "text"]
    colours = []
    for part in content[::2]:
        head, _, data = part["image_url"]["url"].partition(",")
        assert head == "data:image/png;base64"
        with image.open(io.BytesIO(base64.b64decode(data)), formats=["PNG"]) as sent:
            colours.append(sent.getpixel((2, 2)))
    assert colours == [(255, 0, 0), (0, 0, 255)]


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        (Item("a", "x", images=("missing.png",), root="/tmp"), "is not in the folder"),
        (Item("a", "x", images=("../x.png",), root="/tmp"), "leads out of the bank's folder"),
        (Item("a", "x", images=("http://127.0.0.1:9/x.png",), root="/tmp"), "a URL, expected"),
        (Item("a", "x", meta={"max_tokens": 0}), "meta.max_tokens is 0"),
        (Item("a", "x", meta={"sample": "one"}), "meta.sample is 'one'"),
        (Item("a", messages=({"role": "user", "content": object()},)), "message content"),
        (Item("a", messages=({"role": "user", "content": "x", "name": object()},)), "not JSON serializable"),
    ],
)
def test_an_item_that_cannot_be_asked_is_an_error_of_its_own(
    server: FaultyServer, subject: EndpointModel, item: Item, problem: str
) -> None:
    before = len(server.chats)
    wrong, right = subject.answer([item, Item("b", "y")])
    assert (wrong.status, right.text) == (Status.ERROR, "echo y")
    assert problem in wrong.detail
    assert len(server.chats) == before + 1


@given(st.text())
def test_any_prompt_arrives_as_it_is(text: str) -> None:
    from pytest_adaptive_eval.models.endpoint.chat import chat_of_item

    assert json.loads(json.dumps(chat_of_item(Item("a", text)))) == [{"role": "user", "content": text}]


def test_samples_of_a_prompt_have_seeds_of_their_own(server: FaultyServer) -> None:
    subject = EndpointModel.load(server.url, MODEL, temperature=0.7, seed=3)
    subject.answer([Item("a", "x", meta={"sample": sample}) for sample in (0, 1)])
    seeds = {request.body["seed"] for request in server.chats[-2:]}
    assert len(seeds) == 2
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert subject.identity.decoding["seed"] == 3
    subject.close()


def test_further_fields_are_sent_and_recorded(server: FaultyServer) -> None:
    extra = {"reasoning_effort": "low", "temperature": None}
    subject = EndpointModel.load(server.url, MODEL, extra=extra)
    subject.generate("x")
    assert server.chats[-1].body["reasoning_effort"] == "low"
    assert "temperature" not in server.chats[-1].body
    assert subject.identity.decoding["extra"] == extra
    subject.close()


# who it is


def test_identity_is_what_is_known_of_the_model(server: FaultyServer, subject: EndpointModel) -> None:
    def checkpoint(**options: Any) -> str:
        made = EndpointModel.load(server.url, MODEL, **options)
        made.close()
        return made.identity.checkpoint

    assert subject.identity.name == MODEL
    assert subject.identity.environment["endpoint"] == server.url
    assert "not known" in subject.identity.environment["weights"]
    assert re.fullmatch("[0-9a-f]{64}", subject.identity.checkpoint)
    assert checkpoint() == checkpoint(max_tokens=3, temperature=0.5, timeout=9.0) == subject.identity.checkpoint
    assert checkpoint(revision="step 100") != subject.identity.checkpoint
    assert subject.identity.decoding == {
        "max_tokens": 1024,
        "temperature": 0.0,
        "seed": None,
        "template": "chat",
        "images": "png",
    }


def test_what_the_server_says_of_a_model_is_part_of_it_and_the_time_is_not() -> None:
    said: dict[str, Any] = {"id": MODEL, "created": 1, "root": "/weights/a", "permission": [{"id": "x"}]}
    seen = []
    with serving(listing=lambda c, _: send(c, {"data": [{"id": "other"}, said]})) as running:
        for change in ({}, {"created": 2, "permission": [{"id": "y"}]}, {"root": "/weights/b"}):
            said.update(change)
            subject = EndpointModel.load(running.url, MODEL)
            subject.close()
            seen.append(subject.identity.checkpoint)
    assert seen[0] == seen[1] != seen[2]


@pytest.mark.parametrize(
    "listing", [says(404), replies({}), replies({"data": 3}), replies({"data": [None, {"id": 3}]}), replies([])]
)
def test_a_server_without_a_list_of_models_will_do(listing: Any) -> None:
    with serving(listing=listing) as running:
        subject = EndpointModel.load(running.url, MODEL, retries=0)
        assert subject.generate("x") == "echo x"
        subject.close()


def test_the_key_is_sent_and_never_shown(server: FaultyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    subject = EndpointModel.load(server.url, MODEL, key_env="THE_KEY")
    subject.generate("x")
    assert server.seen[-1].headers["authorization"] == f"Bearer {KEY}"

    def everything(thing: object, depth: int = 5) -> str:
        inner = getattr(thing, "__dict__", {}) if depth else {}
        return repr(thing) + "".join(everything(value, depth - 1) for value in inner.values())

    shown = everything(subject, 1) + repr(subject._endpoint) + repr(subject._endpoint.wire.__dict__)
    assert KEY not in shown + json.dumps(subject.identity.to_json())
    subject.close()


# what replies mean


@pytest.mark.parametrize(
    ("message", "finish", "status", "text", "reasoning"),
    [
        ({"content": "blue"}, "stop", "ok", "blue", ""),
        ({"content": " blue\n"}, "stop", "ok", " blue\n", ""),
        ({"content": "<think>hm</think>\n\nblue"}, "stop", "ok", "blue", "hm"),
        ({"content": "hm</think>blue"}, "stop", "ok", "blue", "hm"),
        ({"content": "blue", "reasoning_content": "hm"}, "stop", "ok", "blue", "hm"),
        ({"content": "blue", "reasoning": "hm"}, "stop", "ok", "blue", "hm"),
        ({"content": "blue", "reasoning_content": None, "refusal": None, "tool_calls": []}, "stop", "ok", "blue", ""),
        ({"content": "<think>red</think>"}, "stop", "empty", "", "red"),
        ({"content": "<think>red"}, "stop", "empty", "", "red"),
        ({"content": "is it <think>red"}, "stop", "empty", "is it", "red"),
        ({"content": None, "reasoning_content": "red"}, "stop", "empty", "", "red"),
        ({"content": "<think>red"}, "length", "truncated", "", "red"),
        ({"content": "", "reasoning": "red"}, "length", "truncated", "", "red"),
        ({"content": "bl"}, "length", "truncated", "bl", ""),
        ({"content": None, "refusal": "no"}, "stop", "refused", "", ""),
        ({"content": "bl"}, "content_filter", "refused", "bl", ""),
    ],
)
def test_reasoning_is_no_answer(message: dict[str, Any], finish: str, status: str, text: str, reasoning: str) -> None:
    reply = read(choice(message=message, finish_reason=finish))
    assert (reply.status.value, reply.text, reply.reasoning) == (status, text, reasoning)
    assert bool(reply.detail) == (status != "ok")


def test_reasoning_tokens_are_the_servers_or_a_share() -> None:
    told = {"prompt_tokens": 3, "completion_tokens": 40, "completion_tokens_details": {"reasoning_tokens": 30}}
    assert read(completion("blue", usage=told, reasoning_content="x" * 12), 0.5).cost == Usage(1, 3, 40, 30, 0.5)
    told = {"prompt_tokens": 3, "completion_tokens": 40, "completion_tokens_details": None}
    assert read(completion("blue", usage=told, reasoning_content="x" * 12)).cost.reasoning_tokens == 30
    assert read(completion("blue", usage=told)).cost.reasoning_tokens == 0
    assert read(completion("blue", usage=None, reasoning_content="hm")).cost == Usage(1)
    assert (
        "behind 30 tokens of reasoning"
        in read(completion("", usage=told | {"completion_tokens": 30}, reasoning="x")).detail
    )


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(["choices", "usage", "object", "error", "model"]), json_values)
def test_no_field_of_any_kind_is_a_fault_of_ours(name: str, value: Any) -> None:
    reply = read(completion() | {name: value})
    assert isinstance(reply.status, Status)
    assert reply.status is Status.OK or reply.detail


@given(st.sampled_from(["content", "role", "refusal", "reasoning", "tool_calls"]), json_values, json_values)
def test_no_message_of_any_kind_is_a_fault_of_ours(name: str, value: Any, finish: Any) -> None:
    reply = read(choice(message={"role": "assistant", "content": "x", name: value}, finish_reason=finish))
    assert finish is None or isinstance(finish, str) or reply.status is Status.ERROR
    assert isinstance(reply.text, str)
    reply.text.encode()


def test_usage_adds_up(subject: EndpointModel) -> None:
    assert (subject.usage.calls, subject.usage.prompt_tokens) == (1, 7)
    subject.answer([Item(str(n), "x") for n in range(3)])
    assert (subject.usage.calls, subject.usage.prompt_tokens, subject.usage.completion_tokens) == (4, 28, 20)
    assert subject.usage.seconds > 0


def test_a_closed_subject_says_so(server: FaultyServer) -> None:
    subject = EndpointModel.load(server.url, MODEL)
    subject.close()
    with pytest.raises(ConfigError, match="was closed; load the model again"):
        subject.generate("x")


# before the first question


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("http://", "is not the address of a server"),
        ("http://#m", "is not the address of a server"),
        ("http:///v1#m", "is not the address of a server"),
        ("http://127.0.0.1:0/v1#m", "is not the address of a server"),
        ("http://127.0.0.1:99999/v1#m", "this is not the address of a server"),
        ("http://[::1/v1#m", "this is not the address of a server"),
        ("http://127.0.0.1:9/v1?x=1#m", "'http://127.0.0.1:9/v1': it has a query"),
        ("http://127.0.0.1:9/v1#m?x=1", "'http://127.0.0.1:9/v1': it has a query"),
        ("http://127.0.0.1:9/v 1#m", "has more than an address and a path"),
        ("http://127.0.0.1:9/v1/chat/completions#m", "names a path below"),
        ("http://127.0.0.1:9/v1", "names no model"),
        ("http://127.0.0.1:9/v1#", "names no model"),
        ("http://127.0.0.1:9/v1#a\nb", r"names the model 'a\\nb'"),
    ],
)
def test_an_address_that_cannot_be_one(spec: str, problem: str) -> None:
    for chats in (False, True):
        with pytest.raises(ConfigError, match=problem) as caught:
            load_model(spec, chats=chats)
        assert "expected http://" in str(caught.value)


def test_a_password_in_an_address_is_refused_and_not_shown() -> None:
    for spec in ("http://me:hunter2@127.0.0.1:9/v1#m", "http://hunter2@127.0.0.1:9/v1#@m", "https://:hunter2@[x#m"):
        with pytest.raises(ConfigError, match="an environment variable that key_env names") as caught:
            load_model(spec)
        assert "hunter2" not in str(caught.value)
    with pytest.raises(ConfigError, match="has no option colour") as caught:
        load_model("http://me:hunter2@127.0.0.1:9/v1#m", colour="red")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ({"max_tokens": 0}, "max_tokens is 0"),
        ({"concurrency": 0}, "concurrency is 0"),
        ({"concurrency": True}, "concurrency is True"),
        ({"retries": -1}, "retries is -1"),
        ({"timeout": 0.0}, "timeout is 0.0"),
        ({"timeout": math.inf}, "timeout is inf"),
        ({"timeout": math.nan}, "timeout is nan"),
        ({"rate": 0.0}, "rate is 0.0"),
        ({"temperature": -1.0}, "temperature is -1.0"),
        ({"temperature": math.nan}, "temperature is nan"),
        ({"temperature": math.inf}, "temperature is inf"),
        ({"extra": {"n": 2, "stream": True}}, "extra sets n, stream"),
        ({"proxy": "127.0.0.1:8080"}, "proxy is not the URL"),
        ({"proxy": "http://me:hunter2@:x"}, "proxy is not the URL"),
        ({"proxy": ["http://me:hunter2@h"]}, "proxy is not the URL"),
        ({"key_env": "sk-hunter2"}, "key_env is not the name of an environment variable (it is not shown"),
        ({"timeout": "3"}, "timeout is '3', expected a number above 0"),
        ({"temperature": "0"}, "temperature is '0', expected a number of at least 0"),
        ({"seed": "one"}, "seed is 'one', expected a whole number"),
        ({"extra": [1]}, "extra is [1], expected a table"),
        ({"key_env": "NO_SUCH_VARIABLE_HERE"}, "'NO_SUCH_VARIABLE_HERE', which is not set"),
    ],
)
def test_a_setting_out_of_its_range(option: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(problem)) as caught:
        load_model("http://127.0.0.1:9/v1#m", **option)
    assert "hunter2" not in str(caught.value)


def test_a_server_that_is_not_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ConfigError) as caught:
        load_model(f"http://127.0.0.1:{port}/v1#m", retries=0, start_timeout=0)
    assert str(caught.value) == (
        f"model 'm' at http://127.0.0.1:{port}/v1 gives no answers: ConnectError: 'Connection refused'; given up after "
        f"one try; expected an OpenAI-compatible server at http://127.0.0.1:{port}/v1/chat/completions: start the "
        "server, or fix the address"
    )


def test_a_wrong_key_is_told_at_once_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", KEY)

    def refuse(connection: socket.socket, request: Request) -> None:
        says(401, f"no such key: {request.key}")(connection, request)

    for options in ({"listing": refuse}, {"handle": refuse}):
        with serving(**options) as running:
            with pytest.raises(ConfigError, match=r"the key is missing or wrong.*fix the key in 'THE_KEY'") as caught:
                EndpointModel.load(running.url, MODEL, key_env="THE_KEY")
            assert KEY not in str(caught.value)
            assert "no such key: [key]" in str(caught.value)
            assert len(running.seen) < 3
            with pytest.raises(ConfigError, match="name the environment variable of its key by key_env"):
                EndpointModel.load(running.url, MODEL)


def test_a_model_that_is_not_there() -> None:
    listed = [{"id": f"model-{n}"} for n in range(12)] + [{"id": "\x1b[31m::error::"}]
    with (
        serving(handle=says(404, "no model 'tiny'"), listing=replies({"data": listed})) as running,
        pytest.raises(ConfigError, match=r"it lists 'model-0', .*'model-9', \.\.\.\): fix the name of the model"),
    ):
        EndpointModel.load(running.url, MODEL)


def test_a_server_that_answers_to_any_name_is_warned_of() -> None:
    with (
        serving(listing=replies({"data": [{"id": "other"}]})) as running,
        pytest.warns(
            AdaptiveEvalWarning, match=f"lists 'other' and not {MODEL}, and answers to that name all the same"
        ),
    ):
        EndpointModel.load(running.url, MODEL).close()


def test_a_server_that_streams_garbage_is_refused_before_the_first_item() -> None:
    with (
        serving(handle=replies(b"data: {}\n\n", kind="text/event-stream")) as running,
        pytest.raises(ConfigError, match="the reply is 'text/event-stream', expected application/json"),
    ):
        EndpointModel.load(running.url, MODEL)


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pytest_adaptive_eval.models.endpoint.model", None)
    with pytest.raises(ConfigError, match=r'install "pytest-adaptive-eval\[endpoint\]"') as caught:
        load_model("http://me:hunter2@127.0.0.1:9/v1#m")
    assert "hunter2" not in str(caught.value)


# agents


def logprobs(table: dict[str, float], said: str | None = None, **message: Any) -> dict[str, Any]:
    """A reply of one token with the likelihoods of others."""
    token = said if said is not None else max(table, key=lambda name: table[name])
    made = completion(message.pop("content", token), "length", **message)
    entries = [{"token": name, "logprob": math.log(p), "bytes": None} for name, p in table.items()]
    own = {"token": token, "logprob": math.log(table.get(token, 0.001)), "top_logprobs": entries}
    made["choices"][0]["logprobs"] = {"content": [own]}
    return made


def rated(connection: socket.socket, request: Request) -> None:
    """A server that tells likelihoods: the more letters a in the prompt, the likelier is yes; R counts as well."""
    if not request.body.get("logprobs"):
        send(connection, completion(f"echo {request.prompt}"))
        return
    yes = 0.1 + 0.05 * sum(map(request.prompt.count, "aR"))
    if "absent" in request.prompt:
        send(connection, logprobs({"no": 0.6, "maybe": 0.3}))
    elif "broken" in request.prompt:
        says(500)(connection, request)
    else:
        send(connection, logprobs({"no": 0.9 - yes, "yes": yes, " yes": 0.01}))


@pytest.fixture
def rater() -> Iterator[tuple[EndpointModel, FaultyServer]]:
    with serving(handle=rated) as running:
        agent = load_model(f"{running.url}#{MODEL}", retries=0, chats=True)
        assert isinstance(agent, EndpointModel)
        yield agent, running
        agent.close()


def test_a_reply_has_its_cost_and_all_messages_are_sent(rater: tuple[EndpointModel, FaultyServer]) -> None:
    agent, running = rater
    before, usage = len(running.chats), agent.usage
    chat = [Message("system", "be kind"), Message("user", "hello")]
    first = agent.ask(chat, max_tokens=8)
    assert (first.text, first.status, first.cost.calls) == ("echo hello", Status.OK, 1)
    assert agent.usage.calls == usage.calls + 1
    assert len(running.chats) == before + 1
    assert running.chats[-1].body["messages"][0] == {"role": "system", "content": "be kind"}


@pytest.mark.parametrize(
    ("options", "requests", "seeds"),
    [
        ({}, 3, 1),
        ({"temperature": 0.8}, 3, 3),
        ({"temperature": 0.8, "extra": {"seed": 5}}, 3, 1),
        ({"extra": {"temperature": 0.8}}, 3, 1),
    ],
    ids=["greedy", "samples", "samples by one seed", "samples by a field"],
)
def test_equal_requests_are_drawn_apart_by_an_agent_that_samples(
    options: dict[str, Any], requests: int, seeds: int
) -> None:
    with serving() as running:
        agent = RecordedModel(EndpointModel.load(running.url, MODEL, **options))
        before = len(running.chats)
        for draw in (0, 1, 7, 1, 7):
            assert agent.ask([Message("user", "hello")], draw=draw).text == "echo hello"
        sent = [chat.body for chat in running.chats[before:]]
        agent.close()
    assert len(sent) == requests
    assert len({body.get("seed") for body in sent}) == seeds


def test_replies_are_kept_where_the_caller_says_by_model_prompt_and_decoding() -> None:
    kept = CompletionStore()
    chat = [Message("user", "hello")]
    with serving() as running:

        def ask(**options: Any) -> int:
            agent = RecordedModel(EndpointModel.load(running.url, MODEL, **options), kept)
            reply = agent.ask(chat)
            agent.close()
            return not reply.reused

        assert [ask(), ask(), ask(temperature=0.5), ask(temperature=0.5), ask(temperature=0.5, seed=1)] == [
            1,
            0,
            1,
            0,
            1,
        ]
        assert [ask(revision="b"), ask(revision="b"), ask(extra={"top_p": 0.5})] == [1, 0, 1]


def test_faults_are_not_kept() -> None:
    with serving() as running:
        agent = EndpointModel.load(running.url, MODEL, retries=0)
        running.handle = says(500)
        reply = agent.ask([Message("user", "hello")])
        assert (reply.status, reply.text) == (Status.ERROR, "")
        running.handle = None
        assert agent.ask([Message("user", "hello")]).text == "echo hello"
        agent.close()


def test_an_image_that_is_missing_is_the_replys_error(rater: tuple[EndpointModel, FaultyServer]) -> None:
    agent, _ = rater
    message = Message("user", "what?", ("missing.png",), "/tmp")
    assert "is not in the folder" in agent.ask([message]).detail
    assert agent.ask([message]).status is Status.ERROR
    assert agent.prefer([message], ["a"], "yes").status is Status.ERROR


def test_a_schema_is_sent_and_left_out_where_it_is_refused() -> None:
    schema = {"type": "object"}

    def strict(connection: socket.socket, request: Request) -> None:
        if "response_format" in request.body:
            says(400, "unknown field response_format")(connection, request)
        else:
            send(connection, completion("{}"))

    with serving() as running:
        agent = EndpointModel.load(running.url, MODEL, retries=0)
        assert agent.ask([Message("user", "a")], schema=schema).text == "echo a"
        assert running.chats[-1].body["response_format"]["json_schema"]["schema"] == schema
        running.handle = strict
        reply = agent.ask([Message("user", "b")], schema=schema)
        assert (reply.text, reply.cost.calls) == ("{}", 2)
        assert agent.ask([Message("user", "c")], schema=schema).cost.calls == 1
        agent.close()


@pytest.mark.parametrize(
    "words",
    [
        "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
        "Unrecognized request argument supplied: max_tokens",
        "body.max_tokens: Extra inputs are not permitted",
    ],
)
def test_the_cap_is_sent_as_the_server_asks_for_it(words: str) -> None:
    def strict(connection: socket.socket, request: Request) -> None:
        if "max_tokens" in request.body:
            says(400, words)(connection, request)
        else:
            send(connection, completion("Paris"))

    with serving(handle=strict) as running:
        subject = EndpointModel.load(running.url, MODEL, retries=0, max_tokens=7)
        assert subject.generate("Capital of France?") == "Paris"
        assert running.chats[-1].body["max_completion_tokens"] == 7
        assert subject.identity.environment["cap_field"] == "max_completion_tokens"
        subject.close()


@pytest.mark.parametrize("code", [400, 415, 422, 500, 501])
def test_each_code_that_refuses_a_field_leaves_the_schema_out(code: int) -> None:
    def strict(connection: socket.socket, request: Request) -> None:
        if "response_format" in request.body:
            says(code, "no schemas")(connection, request)
        else:
            send(connection, completion("{}"))

    with serving(handle=strict) as running:
        agent = EndpointModel.load(running.url, MODEL, retries=0)
        assert agent.ask([Message("user", "a")], schema={"type": "object"}).text == "{}"
        agent.close()


def test_candidates_are_rated_each_by_itself(rater: tuple[EndpointModel, FaultyServer]) -> None:
    agent, running = rater
    chat = [Message("user", "choose: ")]
    candidates = ["b", "aa", "a"]
    preference = agent.prefer(chat, candidates, "yes")
    assert preference.status is Status.OK
    assert preference.scores == pytest.approx([math.log(0.11 + 0.05 * c.count("a")) for c in candidates])
    assert preference.usage.calls == 3
    prompts = sorted(request.prompt for request in running.chats[-3:])
    assert prompts == ["choose: a", "choose: aa", "choose: b"]
    assert agent.prefer(chat, candidates[::-1], "yes").scores == preference.scores[::-1]


@pytest.mark.parametrize(
    ("candidate", "problem"), [("absent", "is not among the 20 likeliest"), ("broken", "HTTP 500")]
)
def test_a_rating_that_is_missing_is_told(
    rater: tuple[EndpointModel, FaultyServer], candidate: str, problem: str
) -> None:
    agent, _ = rater
    preference = agent.prefer([Message("user", "choose: ")], ["a", candidate], "yes")
    assert preference.status is Status.ERROR
    assert problem in preference.detail
    assert not any(map(math.isfinite, preference.scores))
    assert len(preference.scores) == 2


@pytest.mark.parametrize(
    "reply",
    [
        completion("yes", "length"),
        logprobs({"yes": 0.6, "no": 0.3}),  # the same of every prompt
        logprobs({"yes": 0.9, "no": 0.9}),
        logprobs({"yes": 1.0}),
        logprobs({"yes": 0.5, "no": 0.4}, content="perhaps"),
        completion("yes") | {"choices": [completion("yes")["choices"][0] | {"logprobs": {"content": []}}]},
        completion("yes") | {"choices": [completion("yes")["choices"][0] | {"logprobs": {"content": [{"token": 1}]}}]},
    ],
)
def test_likelihoods_are_not_taken_on_trust(reply: dict[str, Any]) -> None:
    with serving(handle=replies(reply)) as running:
        agent = EndpointModel.load(running.url, MODEL, retries=0)
        assert not agent.rates
        preference = agent.prefer([Message("user", "x")], ["a", "b"], "yes")
        assert (preference.status, preference.detail) == (Status.ERROR, "the server returns no likelihoods")
        assert all(map(math.isnan, preference.scores))
        agent.close()


def test_a_server_that_allows_fewer_is_asked_for_fewer() -> None:
    def few(connection: socket.socket, request: Request) -> None:
        if request.body.get("top_logprobs", 0) > 5:
            says(400, "top_logprobs must be at most 5")(connection, request)
        else:
            rated(connection, request)

    with serving(handle=few) as running:
        agent = EndpointModel.load(running.url, MODEL, retries=0)
        assert agent.rates
        assert agent.prefer([Message("user", "x")], ["a"], "yes").status is Status.OK
        assert running.chats[-1].body["top_logprobs"] == 5
        assert {chat.body["max_tokens"] for chat in running.chats if "logprobs" in chat.body} == {1}
        agent.close()


def test_one_failed_request_for_likelihoods_does_not_turn_them_off() -> None:
    def one_fails(connection: socket.socket, request: Request) -> None:
        if request.body.get("top_logprobs", 0) > 5 and "2 + 2" in request.prompt:
            says(400, "not now")(connection, request)
        else:
            rated(connection, request)

    with serving(handle=one_fails) as running:
        agent = EndpointModel.load(running.url, MODEL, retries=0)
        assert agent.rates
        agent.close()


def test_likelihoods_of_one_of_two_prompts_are_none() -> None:
    def sometimes(connection: socket.socket, request: Request) -> None:
        if "2 + 2" in request.prompt:
            rated(connection, request)
        else:
            send(connection, completion("yes", "length"))

    with serving(handle=sometimes) as running:
        agent = EndpointModel.load(running.url, MODEL, retries=0)
        assert not agent.rates
        agent.close()


@given(json_values, json_values, json_values)
def test_no_likelihoods_of_any_kind_are_a_fault_of_ours(token: Any, figure: Any, listed: Any) -> None:
    made = logprobs({"yes": 0.6, "no": 0.3})
    made["choices"][0]["logprobs"]["content"][0] |= {"token": token, "logprob": figure, "top_logprobs": listed}
    table = first_token(Delivery(Status.OK, made))
    assert table is None or sum(map(math.exp, table.values())) < 1.01


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "a server is taken at its word; set the option revision"),
        ({"revision": "step-9", "accept_models": ["one", "two"]}, "several models may answer"),
        ({"revision": "step-9", "temperature": 0.7}, "decoding samples"),
        ({"revision": "step-9", "accept_models": ["one"]}, ""),
        ({"revision": "step-9", "headers": {"x-team": "a"}, "query": {"version": "2"}}, ""),
    ],
)
def test_answers_of_a_server_serve_other_runs_only_with_a_stated_identity(
    server: FaultyServer, options: dict[str, Any], reason: str
) -> None:
    subject = EndpointModel.load(server.url, MODEL, **options)
    assert subject.no_reuse.startswith(reason)
    assert bool(subject.no_reuse) == bool(reason)
    subject._endpoint.answerer._environment["decoding fields refused"] = ["top_k"]
    assert bool(subject.no_reuse) == bool(reason)
    subject._endpoint.answerer.several_deployments = True
    assert subject.no_reuse
    subject.close()


def test_a_server_that_takes_neither_the_cap_nor_the_temperature_names_the_temperature() -> None:
    def handle(connection, request):
        for name in ("max_tokens", "temperature"):
            if name in request.body:
                return says(400, f"Unknown parameter: '{name}'.")(connection, request)
        return send(connection, completion("Paris"))

    with serving(handle=handle) as running:
        with pytest.raises(ConfigError, match=r'leave it to the server by omit = \["temperature"\]'):
            EndpointModel.load(running.url, MODEL, retries=0)
        subject = EndpointModel.load(running.url, MODEL, retries=0, omit=["temperature"])
        assert subject.generate("Capital of France?") == "Paris"
        subject.close()


def test_a_refusal_that_names_the_cap_for_another_reason_keeps_its_field() -> None:
    def handle(connection, request):
        if "max_completion_tokens" in request.body:
            says(400, "Unknown field: max_completion_tokens")(connection, request)
        elif request.body["max_tokens"] == 1:
            says(400, "max_tokens has to leave room for one word")(connection, request)
        else:
            send(connection, completion("Paris"))

    with serving(handle=handle) as running:
        subject = EndpointModel.load(running.url, MODEL, retries=0, max_tokens=7)
        assert subject.generate("Capital of France?") == "Paris"
        assert running.chats[-1].body["max_tokens"] == 7
        subject.close()


def test_a_server_that_asks_for_the_other_cap_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    def handle(connection, request):
        if "max_tokens" in request.body:
            says(400, "Use 'max_completion_tokens' instead.")(connection, request)
        else:
            send(connection, completion())

    with serving(handle=handle) as running:
        EndpointModel.load(running.url, MODEL).close()
    assert [r.message for r in caplog.records if "in place of" in r.message] == [
        f"{MODEL} takes max_completion_tokens in place of max_tokens, which is sent from now on"
    ]


def _least(words: str):
    def handle(connection, request):
        if request.body.get("max_tokens", request.body.get("max_completion_tokens")) < 16:
            says(400, f"Invalid 'max_tokens': {words}")(connection, request)
        else:
            send(connection, completion())

    return handle


@pytest.mark.parametrize(
    ("words", "probed"), [("Expected a value >= 16, but got 1 instead.", 16), ("minimum is 16", 16), ("too few", 1024)]
)
def test_a_least_cap_is_learnt_from_the_refusal(words: str, probed: int) -> None:
    with serving(handle=_least(words)) as running:
        EndpointModel.load(running.url, MODEL).close()
        assert running.chats[-1].body["max_tokens"] == probed


def test_a_cap_below_the_least_one_is_refused_before_the_first_question() -> None:
    with (
        serving(handle=_least("minimum is 16")) as running,
        pytest.raises(ConfigError, match="caps of at least 16 tokens, and max_tokens is 8; set max_tokens = 16"),
    ):
        EndpointModel.load(running.url, MODEL, max_tokens=8)


def _own_temperature(connection, request):
    if request.body.get("temperature", 1) != 1:
        message = "Unsupported value: 'temperature' does not support 0. Only the default (1) value is supported."
        says(400, message)(connection, request)
    else:
        send(connection, completion())


def test_a_server_with_a_temperature_of_its_own_is_asked_without_one() -> None:
    with serving(handle=_own_temperature) as running:
        with pytest.raises(ConfigError, match=r'leave it to the server by omit = \["temperature"\]'):
            EndpointModel.load(running.url, MODEL)
        subject = EndpointModel.load(running.url, MODEL, omit=["temperature"], revision="a")
        assert subject.generate("x") == "blue"
        assert "temperature" not in running.chats[-1].body
        assert subject.identity.samples is None
        assert "greedily" in subject.no_reuse
        subject.close()


@pytest.mark.parametrize("omit", ["temperature", [1], ["messages"]])
def test_an_omission_that_cannot_be_is_refused(omit: Any) -> None:
    with pytest.raises(ConfigError, match="omit"):
        EndpointModel.load("http://127.0.0.1:9/v1", MODEL, omit=omit)
