"""A key that is sent to a server and to nothing else."""

from __future__ import annotations

import base64
import json
import logging
import os
import re
from urllib.parse import quote, unquote, urlsplit

from pytest_adaptive_eval.errors import ConfigError

__all__ = ["Redactor", "Secret", "from_environment"]

#: Shorter ones are placeholders, and words of ordinary answers.
SHORTEST = 8
#: What takes the place of a secret.
HIDDEN = "[key]"


class Secret:
    """A text that shows itself only where it is asked to.

    Parameters
    ----------
    text : str
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return HIDDEN

    def reveal(self) -> str:
        """Give the text."""
        return self._text


def from_environment(variable: str) -> Secret | None:
    """Read the key from the environment variable that the user named; none without a name.

    Raises
    ------
    ConfigError
        The variable is unset, or holds what cannot be a key.
    """
    if not variable:
        return None
    if not re.fullmatch(r"[A-Za-z_]\w*", variable):
        raise ConfigError(
            "key_env is no name of an environment variable (and is not shown, since it may be the key itself): write "
            'key_env = "API_KEY", and put the key into the variable API_KEY'
        )
    value = os.environ.get(variable, "").strip()
    fault = ""
    if not value:
        fault = "is not set, or empty"
    elif not value.isascii() or not value.isprintable() or " " in value:
        fault = "holds characters that no header can carry"
    elif len(value) < SHORTEST:
        fault = f"holds less than {SHORTEST} characters, which is no secret"
    if fault:
        raise ConfigError(
            f"key_env names the environment variable {variable!r}, which {fault}; expected the server's API key: set "
            "it, or leave key_env out for a server that wants none"
        )
    return Secret(value)


class Redactor(logging.Filter):
    """Takes secrets out of text and out of log records.

    Parameters
    ----------
    key : Secret or None
    proxy : str or None
        A proxy's URL, whose password is a secret as well.
    """

    #: These log what a server sends, when someone listens to everything.
    LOGGERS = tuple(f"httpcore2.{part}" for part in ("connection", "http11", "http2", "proxy", "socks"))

    def __init__(self, key: Secret | None, proxy: str | None = None) -> None:
        super().__init__()
        given = [key.reveal()] if key else []
        if proxy and (password := urlsplit(proxy).password):
            given += [password, unquote(password)]
        forms = {form for text in given for form in _forms(text) if form}
        self._forms = sorted(forms, key=len, reverse=True)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def found(self, text: str) -> bool:
        """Whether a secret is in the text."""
        return any(form in text for form in self._forms)

    def clean(self, text: str) -> str:
        """The text without secrets."""
        for form in self._forms:
            text = text.replace(form, HIDDEN)
        return text

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite a log record that holds a secret."""
        message = record.getMessage()
        if self.found(message):
            record.msg, record.args = self.clean(message), None
        return True

    def listen(self) -> None:
        """Stand before the logs of the HTTP libraries."""
        if self._forms:
            for name in self.LOGGERS:
                logging.getLogger(name).addFilter(self)

    def leave(self) -> None:
        """Undo `listen`."""
        for name in self.LOGGERS:
            logging.getLogger(name).removeFilter(self)


def _forms(text: str) -> list[str]:
    """A secret as it stands, and as others may write it down."""
    encoded = base64.b64encode(text.encode()).decode()
    return [text, quote(text, safe=""), json.dumps(text)[1:-1], encoded, encoded.rstrip("="), repr(text)[1:-1]]
