"""Replies to the calls of one test: seen while it runs, and given again while it is probed."""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.items.item import Item, cut_text
from pytest_adaptive_eval.models.base import Completion, RequestLog

Replies = Sequence[tuple[Hashable, Completion]]  #: Content and reply of each call of one test, in order.
SHORT = 2  #: Length of a key up to which another case is another word, as the article "a" is not the letter A.
#: Characters of scripts that write words without spaces between them, from Thai on.
_UNSPACED = re.compile("[\u0e00-\u1fff\u2e80-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]")


def giving(replies: Replies) -> Callable[[Hashable], Completion]:
    """Return the function that answers each request by its own reply, else by the one of its place, or by the last."""
    by_request = dict(replies)
    in_order = list(by_request.values())
    positions: dict[Hashable, int] = {}

    def give(content: Hashable) -> Completion:
        position = positions.setdefault(content, len(positions))
        return by_request.get(content) or in_order[min(position, len(in_order) - 1)]

    return give


def given_texts(*texts: str) -> Replies:
    """Return replies with these texts, by their places alone."""
    return [(object(), Completion(text)) for text in texts]


@contextlib.contextmanager
def calls_seen(funcargs: dict[str, Any], name: str, log: RequestLog) -> Iterator[None]:
    """Note replies of a user's own model: of its method ``generate``, or of a plain function.

    Args:
        name: Name of the model's fixture among the arguments.
    """
    model = funcargs.get(name)
    if isinstance(model, str):
        raise ConfigError(
            f"the fixture {name} returned the text {model!r:.80}, expected a model: return load_model({model!r:.80}), "
            "or a CallableModel of your function"
        )
    if model is None or RequestLog.sees(model):
        yield
        return
    if inspect.isroutine(model):
        funcargs[name] = functools.wraps(model)(functools.partial(_noted, model, log))
        try:
            yield
        finally:
            funcargs[name] = model
        return
    try:
        function = model.generate
        is_own = "generate" in vars(model)
        model.generate = functools.wraps(function)(functools.partial(_noted, function, log))
    except (AttributeError, TypeError):  # it has no such method, or the object is closed to changes
        yield
        return
    try:
        yield
    finally:
        if is_own:
            model.generate = function
        else:
            del model.generate


def _noted(function: Callable[..., Any], log: RequestLog, /, *args: Any, **kwargs: Any) -> Any:
    """Call a user's model, and note its request and its reply."""
    before = len(log.replies)
    if args:
        asked = getattr(args[0], "item", args[0])
    else:
        asked = ""
    log.sent.append(asked if isinstance(asked, Item) else Item("", str(asked)))
    begun = clock.elapsed()
    reply = function(*args, **kwargs)
    seconds = clock.elapsed() - begun
    del log.replies[before:]  # of a model that it asks
    if isinstance(reply, str):
        text = cut_text(reply)
    else:
        text = ""
    log.replies.append((before + 1, Completion(text, measures={"seconds": seconds})))
    return reply


def holds(text: str, key: str) -> bool:
    """Return whether a text has a key as a whole word, in the key's own case where it is short."""
    word = key.strip()
    if not word:
        return False
    if len(word) > SHORT:
        text = text.casefold()
        word = word.casefold()
    if _UNSPACED.search(word):
        return word in text
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def without(text: str, keys: Sequence[str]) -> str:
    """Return a text without any place that has a key, within words too."""
    for key in sorted(filter(str.strip, keys), key=len, reverse=True):
        text = re.sub(re.escape(key.strip()), "", text, flags=re.IGNORECASE)
    return text


def alike(text: str, item: Item) -> str:
    """Return what answers have in common that differ in case, in space, and in the question that they repeat."""
    said = _plain(text)
    for part in [item.prompt, *(str(message.get("content", "")) for message in item.messages)]:
        if asked := _plain(part):
            said = said.replace(asked, "…")
    return said


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
