"""Files of the calls of a harness: what was asked, what is there, and which results a run has taken.

A call has a folder ``SUBJECT/CALL`` of its own. It holds

- ``asked.json``: interview, item and sample of each question, written before the call begins;
- ``taken.txt``: numbers of the questions whose results a run has written to its journal, or will not use;
- ``lock``: locked while the harness runs;
- ``ids.txt``, ``samples.json``: what the command is given;
- ``output/``: the harness's log, and the files of `supervisor`.

A killed run leaves results that no journal has. The next run of the same interview takes them from here.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.banks.responses.base import ItemResult, ResultSettings
from pytest_adaptive_eval.errors import ConfigError, ResponsesError
from pytest_adaptive_eval.extensions.harness.logs import results_of
from pytest_adaptive_eval.extensions.harness.row import Harness
from pytest_adaptive_eval.outputs import make_private, replacing

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

PERIOD = 0.1  #: Seconds between two looks at a lock.


class Question(NamedTuple):
    """One question of a call."""

    interview: str
    item: str
    sample: int


class Results:
    """Results in the log of a call, read again when a file of the log has changed."""

    def __init__(self, output: Path, harness: Harness, settings: ResultSettings) -> None:
        self._output = output
        self._files = harness.files
        self._read = results_of(harness.format)
        self._settings = settings
        self._stamps: list[tuple[str, int, int]] = []

    def changed(self) -> bool:
        """Return whether a file of the log is new or has changed since the last look."""
        stamps = []
        for file in self._output.glob(self._files):
            with contextlib.suppress(OSError):
                about = file.stat()
                stamps.append((str(file), about.st_size, about.st_mtime_ns))
        changed = stamps != self._stamps
        self._stamps = stamps
        return changed

    def so_far(self) -> list[ItemResult]:
        """Return the results while the harness writes them; a log that cannot be read yet has none."""
        with contextlib.suppress(ResponsesError, OSError):
            return list(self._read(self._output, self._settings._replace(ended=False)))
        return []

    def all(self) -> list[ItemResult]:
        """Return the results once the harness has ended; raise ResponsesError for a malformed log."""
        return list(self._read(self._output, self._settings))


class CallFolder:
    """The folder of one call."""

    def __init__(self, path: Path, questions: Sequence[Question]) -> None:
        self.path = path
        self.questions = questions

    @classmethod
    def create(cls, subject: Path, questions: Sequence[Question]) -> CallFolder:
        """Make the folder of a call that will run questions, and note them."""
        begun = clock.now().strftime("%Y%m%dT%H%M%S%f")
        folder = cls(subject / f"{begun}-{secrets.token_hex(3)}", questions)
        make_private(subject)
        folder.output.mkdir(parents=True)
        asked = [question._asdict() for question in questions]
        with replacing(folder.path / "asked.json", durable=True) as file:
            file.write(json.dumps(asked, indent=1).encode())
        return folder

    @classmethod
    def read(cls, path: Path) -> CallFolder | None:
        """Return a folder that an earlier call has left; None if its list of questions cannot be read."""
        try:
            asked = json.loads((path / "asked.json").read_text(encoding="utf-8"))
            return cls(path, [Question(**question) for question in asked])
        except (OSError, ValueError, TypeError):
            return None

    @property
    def output(self) -> Path:
        """Folder of the harness's log."""
        return self.path / "output"

    def open_questions(self) -> list[Question]:
        """Return the questions whose results no run has taken."""
        taken = set()
        with contextlib.suppress(OSError):
            for line in (self.path / "taken.txt").read_text(encoding="utf-8").splitlines():
                taken.add(line)
        return [question for number, question in enumerate(self.questions) if str(number) not in taken]

    def take(self, questions: Sequence[Question]) -> None:
        """Note that a run has written the results of questions to its journal, or will not use them."""
        with (self.path / "taken.txt").open("a", encoding="utf-8") as file:
            for question in questions:
                file.write(f"{self.questions.index(question)}\n")

    def last_words(self, pattern: str) -> str:
        """Return how the harness ended, and the last line of its output, for a question without a result.

        Args:
            pattern: Pattern of the log's files below `output`.
        """
        status = "unknown"
        with contextlib.suppress(OSError, ValueError, KeyError):
            status = json.loads((self.path / "ended.json").read_text(encoding="utf-8"))["exit_status"]
        lines: list[str] = []
        with contextlib.suppress(OSError):
            lines = (self.path / "log.txt").read_text(encoding="utf-8", errors="replace").split("\n")
        written = [line.strip() for line in lines if line.strip()]
        last = "it printed nothing"
        if written:
            last = f"its last line: {written[-1][:300]}"
        words = [f"exit status {status}", last]
        if not any(self.output.glob(pattern)):
            names = sorted(str(path.relative_to(self.output)) for path in self.output.rglob("*") if path.is_file())
            found = ", ".join(names[:3]) or "nothing"
            words.append(f"{{output}} has no {pattern}, but {found}")
        return f"the log has no result of it ({'; '.join(words)}; all of it: {self.path / 'log.txt'})"


def folders_of(subject: Path) -> list[CallFolder]:
    """Return the folders of a subject's calls, the newest first."""
    if not subject.is_dir():
        return []
    folders = []
    for path in sorted(subject.iterdir(), reverse=True):
        folder = CallFolder.read(path)
        if folder is not None:
            folders.append(folder)
    return folders


def open_lock(path: Path) -> IO[str]:
    """Open a lock file.

    Raises:
        ConfigError: This system has no file locks of POSIX.
    """
    if fcntl is None:
        raise ConfigError("harnesses need file locks of POSIX, which this system lacks: run them on Linux or macOS")
    make_private(path.parent)
    return path.open("a")


def try_lock(file: IO[str]) -> bool:
    """Lock a file for this process and processes that inherit it. Return False if another process has the lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def locked(paths: Sequence[Path], wait: Callable[[float], bool]) -> Iterator[IO[str] | None]:
    """Hold the first of several locks that is free.

    Args:
        wait: Waits for some seconds and returns whether to give up.

    Yields:
        The lock, to be handed to a process that holds it on; None where `wait` gave up.
    """
    with contextlib.ExitStack() as closing:
        files = [closing.enter_context(open_lock(path)) for path in paths]
        while True:
            for file in files:
                if try_lock(file):
                    yield file
                    return
            if wait(PERIOD):
                yield None
                return
