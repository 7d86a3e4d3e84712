"""Results of AutoJudger's experiments: splits, a file that keeps what is measured, and the table."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pytest_adaptive_eval import __version__
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.backtests.backtest import Split
from pytest_adaptive_eval.extensions.backtests.processes import in_processes
from pytest_adaptive_eval.extensions.papers.judger import BENCHMARKS, ROWS, SHARES, Banks, measured
from pytest_adaptive_eval.extensions.papers.published import PaperSplit, random_split
from pytest_adaptive_eval.items.responses import Responses
from pytest_adaptive_eval.reports.history import aligned
from pytest_adaptive_eval.text import Tell, clean_terminal, wrap

Result = Mapping[str, Any]
#: Benchmark, hash of its data, kind of split, its number, and row.
Key = tuple[str, str, str, int, str]
#: Names of the values of a `Key` in a result.
KEY = ("benchmark", "digest", "split", "number", "row")


@dataclass(frozen=True)
class Benchmark:
    """Recorded responses to one benchmark, and how they are split.

    Args:
        paper: The paper's split; random splits are drawn from its subjects.
        is_random: Whether splits are random.
        categories: Categories of the items; empty if they have none.
        released: File with published difficulties.
    """

    name: str
    responses: Responses
    paper: PaperSplit | None
    is_random: bool
    categories: Sequence[str] = ()
    released: Path | None = None

    @property
    def kind(self) -> str:
        """``random`` or ``paper``, the kind of its splits."""
        if self.is_random:
            return "random"
        return "paper"

    def split(self, number: int) -> tuple[Responses, Split]:
        """Return the responses and sides of a split; the paper's is the same for every number."""
        if self.paper is None:
            return self.responses, random_split(self.responses, number)
        if self.is_random:
            pool = self.paper.pool(self.responses)
            return pool, random_split(pool, number)
        return self.responses, self.paper.of(self.responses)

    @functools.cached_property
    def digest(self) -> str:
        """Hash of the data, since results of other data under the same name are others."""
        digest = hashlib.sha256(np.ascontiguousarray(self.responses.scores).tobytes())
        digest.update(repr((self.paper, tuple(self.categories))).encode())
        if self.released is not None:
            digest.update(self.released.read_bytes())
        return digest.hexdigest()[:12]

    def key(self, number: int, row: str) -> Key:
        """Return what identifies the result of a row on a split."""
        return self.name, self.digest, self.kind, number, row

    def excluded(self, row: str) -> str:
        """Return why the data do not allow a row; empty if they do."""
        if row == "released" and self.released is None:
            return f"no file of difficulties, {self.name}_released_difficulty.jsonl.gz, is beside the responses"
        if row == "stratified" and not self.categories:
            return "the items have no categories; give --items with texts that have some"
        return ""


def results_of_split(benchmark: Benchmark, part: tuple[int, Sequence[str]]) -> list[Result]:
    """Return the results of some rows on one split, given by its number."""
    number, names = part
    responses, split = benchmark.split(number)
    banks = Banks(responses.items, responses.scores[split.train], benchmark.categories, benchmark.released)
    test = responses.scores[split.test]
    subjects = [responses.subjects[s] for s in split.test]
    results: list[Result] = []
    for name in names:
        identity = zip(KEY, benchmark.key(number, name), strict=True)
        measures = measured(name, banks, test, number)
        results.append({**dict(identity), "version": __version__, "subjects": subjects, **measures})
    return results


def key(result: Result) -> Key:
    """Return what identifies a result in its file."""
    benchmark, digest, kind, number, row = (result[name] for name in KEY)
    return benchmark, digest, kind, number, row


def kept(path: Path | None) -> dict[Key, Result]:
    """Return the results of a file of JSON lines, each once; none without a file.

    Raises:
        ConfigError: A line is not a result, or of another version, whose draws may differ.
    """
    if path is None or not path.is_file():
        return {}
    found = {}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        try:
            result = json.loads(line)
            found[key(result)] = result
            version = result["version"]
        except (ValueError, KeyError, TypeError):
            raise ConfigError(f"{path}, line {number}: not a result of a study; name another file") from None
        if version != __version__:
            raise ConfigError(f"{path}, line {number}: of version {version}, this is {__version__}; name another file")
    return found


def results_of(
    benchmark: Benchmark, rows: Sequence[str], count: int, path: Path | None, jobs: int, progress: Tell
) -> list[Result]:
    """Return the results of some rows on the first splits, by split; what the file has is not measured again.

    Args:
        path: File of JSON lines, to which new results are added after each split.
        jobs: Processes.
    """
    found = kept(path)
    wanted = [benchmark.key(number, row) for number, row in product(range(count), rows)]
    missing: dict[int, list[str]] = {}
    for place in wanted:
        if place not in found:
            missing.setdefault(place[3], []).append(place[4])
    for done, results in enumerate(in_processes(results_of_split, benchmark, list(missing.items()), jobs), 1):
        found |= {key(result): result for result in results}
        if path is not None:
            with path.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(result) + "\n" for result in results)
        progress(f"{benchmark.name}: interviewing, {done} of {len(missing)} splits are done")
    return [found[place] for place in wanted]


def spread(values: ArrayLike) -> float:
    """Return 1.96 standard deviations over runs, as in the paper's tables; 0 for one run."""
    array = np.asarray(values, dtype=np.float64)
    if len(array) < 2:
        return 0.0
    return float(1.96 * np.std(array, ddof=1))


def table_lines(results: Sequence[Result], ties: str, width: int) -> Iterator[str]:
    """Yield the table of one benchmark: a row for each way to interview.

    Args:
        results: Of one benchmark and one kind of splits.
        ties: ``half``, or ``autojudger`` as its authors count them.
    """
    benchmark = results[0]["benchmark"]
    kind = results[0]["split"]
    numbers = {result["number"] for result in results}
    if kind == "paper":
        place = next((p for p, name in enumerate(BENCHMARKS) if benchmark.startswith(name)), -1)
        spreads = f"the paper's split, {len(numbers)} seeds; with 1.96 standard deviations over them"
    else:
        place = -1
        spreads = f"{len(numbers)} random splits; with standard errors"
    yield from wrap(
        f"{clean_terminal(benchmark, 60)}: ranking accuracy in percent by share of the bank, ties counted as "
        f"{ties}; {spreads}. Then the better half of the subjects at {SHARES[-1]} %, mean distances of two questions, "
        "and of difficulty and ability in logits; mean errors of the accuracy in a category, by abilities by category "
        "and by one ability; and the paper's row",
        width,
    )
    rows = [["row", *(f"{share}%" for share in SHARES), "top half", "distance", "gap", "profile", "whole", "paper"]]
    for name in dict.fromkeys(result["row"] for result in results):
        own = [result for result in results if result["row"] == name]
        published = ROWS[name].published
        if 0 <= place < len(published):
            paper = published[place]
        else:
            paper = ""
        rows.append([name, *_cells(own, ties, is_random=kind == "random"), paper])
    yield ""
    yield from aligned(rows, range(1, len(rows[0])))


def _cells(results: Sequence[Result], ties: str, *, is_random: bool) -> Iterator[str]:
    """Yield the figures of one row."""
    if is_random:
        scale = 1.96 * len(results) ** 0.5
    else:
        scale = 1.0
    for values in np.array([result[ties] for result in results]).T:
        yield _with_spread(values, scale, 2)
    yield f"{np.mean([result['top'][-1] for result in results]):.2f}"
    yield f"{np.mean([result['distance'] for result in results]):.3f}"
    gaps = [result["gap"] for result in results if "gap" in result]
    yield f"{np.mean(gaps):.2f}" if gaps else ""
    for errors in np.array([result["profile"] for result in results]).T:
        yield _with_spread(errors, scale, 4)


def _with_spread(values: ArrayLike, scale: float, digits: int) -> str:
    """Return the mean, and for two values or more their spread divided by `scale`."""
    array = np.asarray(values, dtype=np.float64)
    mean = f"{array.mean():.{digits}f}"
    if len(array) < 2:
        return mean
    return f"{mean}±{spread(array) / scale:.{digits}f}"
