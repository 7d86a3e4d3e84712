"""The run folder, tried before the first model call."""

from __future__ import annotations

import secrets
from pathlib import Path

from pytest_adaptive_eval.errors import JournalError
from pytest_adaptive_eval.models.base import Completion
from pytest_adaptive_eval.models.store import CompletionStore, remove_store
from pytest_adaptive_eval.outputs import replacing


def probe(folder: Path) -> None:
    """Try what a run does in its folder: write a record, and store an answer.

    Raises:
        JournalError: A folder cannot be made, or a file in it not be written, locked or synced.
    """
    name = f".probe-{secrets.token_hex(4)}"
    for tried in (folder, folder / "runs"):
        try:
            with replacing(tried / name, durable=True) as file:
                file.write(bytes(4096))
            (tried / name).unlink()
        except OSError as error:
            raise JournalError(
                f"{tried}: cannot be written: {error.strerror or error}; answers could not be kept. Free "
                "space, set the rights, or choose another folder with --adaptive-eval-dir"
            ) from error
    path = folder / "journal" / name
    with CompletionStore(path) as store:
        store.store("probe", Completion("answer"))
    remove_store(path)
