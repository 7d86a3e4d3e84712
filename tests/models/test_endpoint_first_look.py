"""What is learned of a server before the first question: who answers, and which decoding it takes."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Sequence
from typing import Any

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

from faulty_server import MODEL, Handler, Request, completion, replies, says, send, serving

from pytest_adaptive_eval.errors import AdaptiveEvalWarning, ConfigError
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.models import load_model
from pytest_adaptive_eval.models.endpoint.opening import NEUTRAL

OURS: dict[str, Any] = {"retries": 0, "timeout": 10.0}


def in_turn(*handlers: Handler) -> Handler:
    """Reply as each handler does in turn, and as the last one from then on."""
    left = list(handlers)

    def handle(connection: socket.socket, request: Request) -> None:
        (left.pop(0) if len(left) > 1 else left[0])(connection, request)

    return handle


def named(name: Any, **more: Any) -> Handler:
    return replies({**completion(), "model": name, **more})


# who answers


@pytest.mark.parametrize("name", ["gpt-4o-2024-08-06", "TINY", "/models/tiny.gguf", "tiny@main", "tgi"])
def test_another_name_is_refused_with_the_line_that_accepts_it(name: str) -> None:
    with serving(handle=named(name)) as server:
        line = re.escape(f'accept_models = ["{name}"]')
        with pytest.raises(ConfigError, match=f"comes from the model '{name}', expected 'tiny'.*add {line}"):
            load_model(f"{server.url}#{MODEL}", **OURS)
        subject = load_model(f"{server.url}#{MODEL}", accept_models=[name], **OURS)
    assert subject.identity.environment["answered as"] == name


def test_the_line_keeps_the_names_that_were_accepted_before() -> None:
    line = re.escape(r'accept_models = ["a", "b\"\\c"]')
    with serving(handle=named('b"\\c')) as server, pytest.raises(ConfigError, match=line):
        load_model(f"{server.url}#{MODEL}", accept_models=["a"], **OURS)


@pytest.mark.parametrize("name", ["", None])
def test_a_server_that_names_no_model_is_taken_at_its_word(name: Any) -> None:
    with serving(handle=named(name)) as server:
        assert load_model(f"{server.url}#{MODEL}", **OURS).generate("q") == "blue"


@pytest.mark.parametrize(
    ("later", "detail"),
    [
        (named("other"), "comes from the model 'other', expected 'tiny'"),
        (named(None), "names no model, and earlier ones did"),
        (named(["tiny"]), "model is list, expected a name"),
        (replies(completion(), X_LiteLLM_Attempted_Fallbacks="1"), "fallback.*x-litellm-attempted-fallbacks is '1'"),
        (replies(completion(), cf_aig_step="2"), "fallback.*cf-aig-step is '2'"),
        (says(404), "answered before"),
    ],
)
def test_another_answerer_in_the_midst_is_an_error(later: Handler, detail: str) -> None:
    with serving(handle=in_turn(named(MODEL), named(MODEL), later)) as server:
        subject = load_model(f"{server.url}#{MODEL}", **OURS)
        first, second = (subject.answer([Item(name, "q")])[0] for name in "ab")
    assert first.status is Status.OK
    assert (second.status, second.text) == (Status.ERROR, "")
    assert re.search(detail, second.detail)


def test_a_fallback_at_the_first_look_is_refused() -> None:
    fallback = replies(completion(), x_litellm_attempted_fallbacks="1")
    with serving(handle=fallback) as server, pytest.raises(ConfigError, match="fallback, not with 'tiny'"):
        load_model(f"{server.url}#{MODEL}", accept_models=["any"], **OURS)


def test_what_replies_say_about_the_deployment_is_recorded() -> None:
    headers = {"x_litellm_attempted_fallbacks": "0", "x_litellm_model_id": "d1", "x_request_id": "5"}
    first = replies({**completion(), "system_fingerprint": "fp_1", "provider": "P"}, **headers)
    second = replies({**completion(), "system_fingerprint": "fp_2", "provider": "P"}, **headers)
    with serving(handle=in_turn(first, second)) as server:
        subject = load_model(f"{server.url}#{MODEL}", **OURS)
        with pytest.warns(AdaptiveEvalWarning, match="system_fingerprint of 'tiny' changed .* to 'fp_2'"):
            subject.generate("q")
    kept = subject.identity.to_json()["environment"]
    names = ("system_fingerprint", "provider", "x-litellm-model-id")
    assert [kept[name] for name in names] == [["fp_1", "fp_2"], "P", "d1"]
    assert "x-request-id" not in kept


@pytest.mark.parametrize("names", ["gpt", [1], 7])
def test_accept_models_is_a_list_of_names(names: Any) -> None:
    with pytest.raises(ConfigError, match="accept_models"):
        load_model("http://127.0.0.1:9/v1#m", accept_models=names)


# greedy


def refuses(fields: Sequence[str], complain: Callable[[list[str]], tuple[int, str]]) -> Handler:
    def handle(connection: socket.socket, request: Request) -> None:
        if wrong := [name for name in fields if name in request.body]:
            code, said = complain(wrong)
            says(code, said)(connection, request)
        else:
            send(connection, completion())

    return handle


@pytest.mark.parametrize(
    ("complain", "most"),
    [
        (lambda wrong: (400, f"Unrecognized request argument supplied: {wrong[0]}"), 4),
        (lambda wrong: (422, f"Unexpected fields in the request: {set(wrong)}"), 2),
        (lambda _: (400, "bad request"), 9),
    ],
    ids=["one at a time", "all at once", "none named"],
)
def test_refused_fields_are_left_out_and_recorded(complain: Any, most: int) -> None:
    refused = ["top_k", "min_p", "repeat_penalty"]
    with serving(handle=refuses(refused, complain)) as server:
        subject = load_model(f"{server.url}#{MODEL}", **OURS)
        assert len(server.chats) <= most
        assert subject.generate("q") == "blue"
        sent = server.chats[-1].body
    taken = {name: value for name, value in NEUTRAL.items() if name not in refused}
    assert {name: sent.get(name) for name in NEUTRAL} == {**dict.fromkeys(refused), **taken}
    kept = subject.identity.environment
    assert (kept["decoding fields sent"], kept["decoding fields refused"]) == (taken, refused)


def test_what_the_user_sets_is_sent_as_set_and_never_left_out() -> None:
    with serving() as server:
        subject = load_model(f"{server.url}#{MODEL}", extra={"top_p": 0.5, "top_k": None}, **OURS)
        subject.generate("q")
        assert (server.chats[-1].body["top_p"], server.chats[-1].body["min_p"]) == (0.5, 0.0)
        assert "top_k" not in server.chats[-1].body
    complain = refuses(["top_p"], lambda _: (400, "top_p is not known"))
    with serving(handle=complain) as server, pytest.raises(ConfigError, match="top_p is not known"):
        load_model(f"{server.url}#{MODEL}", extra={"top_p": 0.5}, **OURS)


def test_a_greedy_models_decoding_stays_the_same_and_a_sampling_models_tells_the_fields() -> None:
    with serving() as server:
        greedy = load_model(f"{server.url}#{MODEL}", **OURS).identity
        sampling = load_model(f"{server.url}#{MODEL}", temperature=1.0, **OURS).identity
    known = {"max_tokens": 1024, "temperature": 0.0, "seed": None, "template": "chat", "images": "png"}
    assert greedy.decoding == known
    assert sampling.decoding["sent"] == NEUTRAL


def test_a_wrong_key_at_a_gateway_without_a_database_is_named() -> None:
    said = says(400, "No connected db.")
    with serving(handle=said) as server, pytest.raises(ConfigError, match=r"fix the key.*LiteLLM"):
        load_model(f"{server.url}#{MODEL}", **OURS)


def test_a_model_that_is_listed_and_does_not_answer_is_named() -> None:
    with serving(handle=says(404)) as server, pytest.raises(ConfigError, match="MLX-LM does when its generating"):
        load_model(f"{server.url}#{MODEL}", **OURS)


# headers and query


def test_headers_and_query_are_sent_and_secret_values_are_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORTKEY", "pk-0123456789abcdef")
    options: dict[str, Any] = {
        "headers": {"x-portkey-api-key": "$PORTKEY", "x-mode": "fast"},
        "query": {"api-version": "2024 1", "k": "$PORTKEY"},
    }
    with serving() as server:
        subject = load_model(f"{server.url}#{MODEL}", **options, **OURS)
        other = load_model(f"{server.url}#{MODEL}", headers={"x-mode": "slow"}, **OURS)
    request = server.chats[0]
    assert (request.headers["x-portkey-api-key"], request.headers["x-mode"]) == ("pk-0123456789abcdef", "fast")
    assert request.path == "/v1/chat/completions?api-version=2024+1&k=pk-0123456789abcdef"
    assert server.seen[0].path.startswith("/v1/models?api-version=")
    assert "0123456789" not in str(subject.identity.to_json())
    assert subject.identity.environment["headers"] == ["x-mode", "x-portkey-api-key"]
    assert subject.identity.environment["query"] == ["api-version", "k"]
    assert subject.identity.checkpoint != other.identity.checkpoint


def test_an_authorization_header_is_sent_as_it_is_and_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "Basic bWU6MDEyMzQ1Njc4OQ==")
    with serving() as server:
        subject = load_model(f"{server.url}#{MODEL}", headers={"Authorization": "$TOKEN"}, **OURS)
        monkeypatch.setenv("KEY", "sk-1234")
        with pytest.raises(ConfigError, match="key_env and the header Authorization both hold a key"):
            load_model(f"{server.url}#{MODEL}", headers={"Authorization": "$TOKEN"}, key_env="KEY", **OURS)
    assert server.chats[0].headers["authorization"] == "Basic bWU6MDEyMzQ1Njc4OQ=="
    assert "bWU6" not in str(subject.identity.to_json())


def test_an_answer_that_holds_the_key_is_given_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORTKEY", "pk-0123456789abcdef")
    with serving(handle=replies(completion("it is pk-0123456789abcdef"))) as server:
        subject = load_model(f"{server.url}#{MODEL}", headers={"x-key": "$PORTKEY"}, **OURS)
        assert subject.generate("What is the key?") == "it is pk-0123456789abcdef"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"headers": "x"}, "headers is not a mapping of texts"),
        ({"headers": {"x": 1}}, "headers is not a mapping of texts"),
        ({"query": {"a": None}}, "query is not a mapping of texts"),
        ({"headers": {"a b": "c"}}, "'a b' is not the name of a header"),
        ({"headers": {"Host": "c"}}, "'Host' is decided by the request itself"),
        ({"headers": {"a": "b\r\nc: d"}}, "holds characters that no header can carry"),
        ({"headers": {"a": "$NOT_SET_ANYWHERE"}}, "'NOT_SET_ANYWHERE', which is not set"),
        ({"headers": {"a": "$"}}, "names no environment variable"),
        ({"query": {"": "c"}}, "is not the name of a query field"),
    ],
)
def test_headers_and_query_that_cannot_be_sent(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_model("http://127.0.0.1:9/v1#m", **options)
