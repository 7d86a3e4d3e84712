"""Mutation testing: share of small faults in a module that the tests notice.

``python benchmarks/mutants.py cover tests/gates tests/plugin`` runs these tests once and keeps in the folder ``--data``
which lines each test covers and how long it takes. ``python benchmarks/mutants.py run claims/paired.py`` then draws 20
mutants of each named module (without names: of all in `MODULES`). For each mutant it runs the tests that cover the
line, the quickest of each file first, and stops at the first failure. One that survives is tried on more of them. A
test that hangs counts as a failure. The command exits with 1 if fewer than 95 % of the mutants of a module are killed.
`mutants_equivalent.toml` lists those that no test can kill.

Both commands take the fast tests; with ``--slow`` before the command, the slow ones too.

The tests run on a copy of the working tree, in processes forked from one that has loaded pytest, numpy and scipy. After
changes of the tests, run ``cover`` again on them. After changes of the package, begin with an empty folder.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import tomllib
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import FrameType
from typing import Any

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[threads] = "1"

import coverage
import pytest
from hypothesis import Phase, settings

ROOT = Path(__file__).parents[1]
PACKAGE = "pytest_adaptive_eval"
EQUIVALENT = Path(__file__).with_name("mutants_equivalent.toml")
MODULES = [
    *(
        "inference/betting.py",
        "gates/condition.py",
        "gates/result.py",
        "inference/sampling.py",
        "items/item.py",
        "ladder/result.py",
    ),
    *("inference/noise.py", "claims/paired.py", "cat/selection.py", "cat/session.py", "cat/stopping.py"),
    *(f"plugin/{name}.py" for name in ("asking", "collection", "finish", "gates", "question", "recording", "run")),
    "plugin/report/run_recorder.py",
    *(
        "records/baseline.py",
        "calibration/quality.py",
        "models/checkpoint/folder.py",
        "models/checkpoint/generation.py",
        "models/checkpoint/model.py",
        "models/endpoint/model.py",
        "reports/junit.py",
    ),
    *("models/store.py", "tasks/answers.py"),
]
#: Tests of one mutant: how many, and how many seconds of processor time one and all may take.
MOST_TESTS, LONGEST_TEST, LONGEST = 40, 3.0, 12.0
#: What these limits are multiplied by for a mutant that survives.
SECOND_TRY = 20
#: Of pytest.
OPTIONS = ["-q", "-p", "no:cacheprovider"]
#: Folder of the package that measures coverage.
COVERAGE = str(Path(coverage.__file__).parent)
#: Share of the mutants that must be killed.
WANTED = 0.95

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum"}


@dataclass(frozen=True)
class Mutant:
    """One change of a module.

    Args:
        start, end: Characters of the source that `after` replaces.
        line, last: First and last line of the changed expression, from 1.
        code: The first of these lines.
        before, after: Source text of the expression.
    """

    start: int
    end: int
    line: int
    last: int
    code: str
    before: str
    after: str

    def apply(self, source: str) -> str:
        """Return the mutated source, with the same number of lines."""
        return source[: self.start] + self.after + source[self.end :]

    def __str__(self) -> str:
        short = (" ".join(text.split()) for text in (self.before, self.after))
        return " -> ".join(text if len(text) < 90 else text[:87] + "..." for text in short)


def mutants(source: str) -> list[Mutant]:
    """Return all mutants of a module: comparisons, operators, constants, results, conditions and slices."""
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def offset(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    made: dict[tuple[int, int, str], Mutant] = {}
    for node, changed in _changes(ast.parse(source)):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start, end = offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset)
        before = source[start:end]
        padding = "\n" * (node.end_lineno - node.lineno)
        if isinstance(changed, ast.AugAssign):
            head, operator, value = ast.unparse(changed).partition(changed_operator(changed))
            after = f"{head}{operator} ({value.strip()}{padding})"
        else:
            after = f"({ast.unparse(changed)}{padding})"
        code = lines[node.lineno - 1].strip()
        made.setdefault((start, end, after), Mutant(start, end, node.lineno, node.end_lineno, code, before, after))
    return [made[key] for key in sorted(made)]


def changed_operator(node: ast.AugAssign) -> str:
    """Return the sign of an augmented assignment, as ast writes it."""
    return ast.unparse(ast.AugAssign(ast.Name("a"), node.op, ast.Name("b"))).split()[1]


def _changes(node: ast.AST) -> Iterator[tuple[Any, Any]]:  # noqa: C901  # one arm a kind of expression
    """Yield pairs of an expression and what replaces it, for a node and all below it."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            for other in COMPARISONS[type(operator)]:
                yield (
                    node,
                    ast.Compare(node.left, [*node.ops[:place], other(), *node.ops[place + 1 :]], node.comparators),
                )
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        yield node, ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)
    elif isinstance(node, ast.AugAssign) and type(node.op) in OPERATORS:
        yield node, ast.AugAssign(node.target, OPERATORS[type(node.op)](), node.value)
    elif isinstance(node, ast.BoolOp):
        yield node, ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
        yield node, node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield node, ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield node, ast.Constant(node.value + 1)
    elif isinstance(node, ast.Constant) and isinstance(node.value, float):
        yield node, ast.Constant(2 * node.value or 1.0)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
        name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        if name in FUNCTIONS:
            changed = FUNCTIONS[name]
            func = ast.Name(changed) if isinstance(node.func, ast.Name) else ast.Attribute(node.func.value, changed)
            yield node.func, func
    elif isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        yield node.value, ast.Constant(None)
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        whole = node.slice
        if whole.lower:
            yield node, ast.Subscript(node.value, ast.Slice(None, whole.upper, whole.step))
        if whole.upper:
            yield node, ast.Subscript(node.value, ast.Slice(whole.lower, None, whole.step))
    if isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(node.test, ast.UnaryOp):
        yield node.test, ast.UnaryOp(ast.Not(), node.test)
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _passed_over(node, name, child):
                yield from _changes(child)


def _passed_over(node: ast.AST, field: str, child: ast.AST) -> bool:
    """Whether a part is no behaviour (types, decorators), or the text of a message, or a check for the programmer."""
    return (
        field in ("annotation", "returns", "decorator_list")
        or isinstance(child, ast.JoinedStr | ast.Raise | ast.Assert)
        or (isinstance(node, ast.keyword) and node.arg in ("strict", "stacklevel"))
    )


class Watch:
    """Plugin of the test runs: seconds of processor time of each test, with xdist by the clock, and the failed ones.

    Args:
        longest: Seconds of processor time after which a test is skipped; 0 for any.
    """

    def __init__(self, longest: float = 0.0) -> None:
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self._longest = longest

    def pytest_sessionstart(self) -> None:
        """Spare hypothesis the search for the shortest failing example."""
        phases = [phase for phase in Phase if phase not in (Phase.shrink, Phase.explain)]
        settings.register_profile("unshrunk", settings(), phases=phases)
        settings.load_profile("unshrunk")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        """Measure a test, and skip the rest of it after its time."""
        signal.signal(signal.SIGPROF, self._skip)
        signal.setitimer(signal.ITIMER_PROF, self._longest)
        start = sum(os.times()[:4])
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            self.seconds[item.nodeid] = sum(os.times()[:4]) - start

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what failed, or took too long, and what tests of other processes took."""
        if hasattr(report, "node"):  # of a worker of xdist, where no watch measures
            self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed or (report.skipped and self._longest):
            self.failed.append(report.nodeid)

    @staticmethod
    def _skip(_: int, frame: FrameType | None) -> None:
        while frame is not None:
            if frame.f_code.co_filename.startswith(COVERAGE):  # it may hold its lock
                signal.setitimer(signal.ITIMER_PROF, 0.01)
                return
            frame = frame.f_back
        raise pytest.skip.Exception("takes too long for a mutant")  # hypothesis lets this through at once


class Covering:
    """Tests by the lines that they cover, from what ``cover`` kept in a folder."""

    def __init__(self, data: Path) -> None:
        self.seconds: dict[str, float] = json.loads((data / "seconds.json").read_text())
        self._data = coverage.CoverageData(str(data / "coverage"))
        self._data.read()
        self._by_file: dict[str, list[str]] = {}
        for test in self.seconds:
            self._by_file.setdefault(test.partition("::")[0], []).append(test)

    def of(self, module: str, tree: ast.Module, mutant: Mutant, scale: int = 1) -> list[str]:
        """Return the tests of a mutant: those of the module's own test file, then the quickest of each other file.

        Their number and their time are at most `scale` times the limits.
        """
        contexts = self._data.contexts_by_lineno(str(ROOT / PACKAGE / module))
        found = self._tests(contexts, _lines(tree, mutant)) or self._tests(contexts, set(contexts))
        stem = Path(module).stem
        own = {test for test in found if stem in Path(test.partition("::")[0]).stem}
        chosen: list[str] = []
        total = 0.0
        for tests, most in ((own, 2 / 3), (found - own, 1.0)):  # others see what a unit test leaves out
            for test in self._by_turns(tests):
                spent, within = total + self.seconds[test], most * scale
                if len(chosen) < within * MOST_TESTS and self.seconds[test] < LONGEST_TEST and spent < within * LONGEST:
                    chosen.append(test)
                    total = spent
        return chosen

    def _by_turns(self, tests: set[str]) -> list[str]:
        """Sort tests so that files take turns, each with its quickest first."""
        files: Counter[str] = Counter()
        turns = {}
        for test in sorted(tests, key=lambda test: (self.seconds[test], test)):
            file = test.partition("::")[0]
            turns[test] = (files[file], self.seconds[test], test)
            files[file] += 1
        return sorted(tests, key=turns.__getitem__)

    def _tests(self, contexts: dict[int, list[str]], lines: set[int]) -> set[str]:
        found = set()
        for line in lines & set(contexts):
            for context in contexts[line]:
                test, _, phase = context.rpartition("|")
                if phase == "setup":  # of a fixture that other tests of the file may share
                    found |= set(self._by_file.get(test.partition("::")[0], ()))
                elif test in self.seconds:
                    found.add(test)
        return found


def _lines(tree: ast.Module, mutant: Mutant) -> set[int]:
    """Return the lines that run when the mutated expression is used.

    An expression that is evaluated on import (a constant, a default) is used where its name is, or in the function.
    """
    inside = None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and _spans(node, mutant):
            body = node.body if isinstance(node.body, list) else [node.body]
            if mutant.line < body[0].lineno:
                return set(range(body[0].lineno, (body[-1].end_lineno or 0) + 1))
            inside = node
    if inside is not None:
        return set(range(mutant.line, mutant.last + 1)) | {
            node.lineno
            for node in ast.walk(inside)
            if isinstance(node, ast.stmt) and not hasattr(node, "body") and _spans(node, mutant)
        }
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and _spans(node, mutant):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return {
        node.lineno
        for node in ast.walk(tree)
        if (isinstance(node, ast.Name) and node.id in names) or (isinstance(node, ast.Attribute) and node.attr in names)
    }


def _spans(node: Any, mutant: Mutant) -> bool:
    return bool(node.lineno <= mutant.line and (node.end_lineno or 0) >= mutant.last)


class Tree:
    """A copy of the working tree in which a module is mutated and tests are run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        ignore = shutil.ignore_patterns(".git", ".*cache", "node_modules", ".venv")
        shutil.copytree(ROOT, folder, ignore=ignore, symlinks=True)
        self._log = folder.with_suffix(".log")
        self._written = int(time.time())
        self._sound: dict[str, bool] = {}

    def fails(self, module: str, source: str, mutated: str, tests: list[str], seconds: float) -> str:
        """Return the test that fails on the mutated module and passes on the source, or ``""``."""
        unsound = [test for test, sound in self._sound.items() if not sound]
        while tests:  # pytest would run all tests where none is named
            self._write(module, mutated)
            failed = self._run([*tests, *(f"--deselect={test}" for test in unsound)], seconds)
            self._write(module, source)
            if "::" not in failed:  # none, or what runs before them
                return failed
            if failed not in self._sound:
                self._sound[failed] = not self._run([failed], seconds)
            if self._sound[failed]:
                return failed
            unsound.append(failed)
        return ""

    def _write(self, module: str, source: str) -> None:
        path = self.folder / PACKAGE / module
        path.write_text(source)
        self._written += 2  # compiled modules are told apart by whole seconds
        os.utime(path, (self._written, self._written))

    def _run(self, tests: list[str], seconds: float) -> str:
        """Run tests in a forked process and return the first that fails, or another reason."""
        reader, writer = os.pipe()
        limit = int(5.0 + 2.0 * seconds)  # of processor time: the machine may have other work
        pid = os.fork()
        if pid == 0:
            code = 3
            try:
                os.setsid()
                os.chdir(self.folder)
                with self._log.open("w") as log:
                    os.dup2(log.fileno(), 1)
                    os.dup2(log.fileno(), 2)
                sys.path.insert(0, str(self.folder))
                os.environ["PYTHONPATH"] = str(self.folder)
                watch = Watch()
                resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
                code = int(pytest.main([*OPTIONS, "-x", *tests], plugins=[watch]))
                if code not in (0, 5):  # 5: no tests
                    os.write(writer, (watch.failed or [f"exit code {code}"])[0].encode())
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        os.close(writer)
        deadline = time.monotonic() + 60.0 + 4.0 * limit
        while (ended := os.waitpid(pid, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
            time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        if ended[0] == 0:
            os.waitpid(pid, 0)
        with os.fdopen(reader) as pipe:
            said = pipe.read() if ended[0] else "timeout"
        return said or ("exit" if ended[1] else "")


def load_dependencies(modules: list[str]) -> None:
    """Import what pytest and the modules import, so that each forked process has it, and forget the package itself."""
    for entry in metadata.entry_points(group="pytest11"):
        if not entry.value.startswith(PACKAGE):
            entry.load()
    exempt_from_rewriting()
    for module in modules:
        importlib.import_module(f"{PACKAGE}.{module.removesuffix('.py').replace('/', '.')}")
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


def exempt_from_rewriting() -> None:
    """Keep pytest, also within tests, from warning that a loaded package is too late to rewrite its assertions."""
    for name, loaded in sys.modules.items():
        if "." not in name:
            loaded.__doc__ = f"{loaded.__doc__} PYTEST_DONT_REWRITE"


def cover(data: Path, tests: list[str]) -> int:
    """Run tests and add the lines that they cover, and their seconds, to the folder."""
    data.mkdir(parents=True, exist_ok=True)
    watch, kept = Watch(LONGEST_TEST), data / "seconds.json"
    os.environ["COVERAGE_FILE"] = str(data / "coverage")
    options = [
        f"--cov={ROOT / PACKAGE}",
        "--cov-context=test",
        "--cov-append",
        "--cov-report=",
    ]
    exempt_from_rewriting()
    os.chdir(ROOT)
    code = int(pytest.main([*OPTIONS, *options, *tests], plugins=[watch]))
    seconds = json.loads(kept.read_text()) if kept.exists() else {}
    passed = {test: spent for test, spent in watch.seconds.items() if test not in watch.failed}
    kept.write_text(json.dumps(seconds | passed))
    return code


def equivalents(module: str) -> list[dict[str, str]]:
    """Return the entries of the committed list for a module."""
    return [entry for entry in tomllib.loads(EQUIVALENT.read_text())["equivalent"] if entry["module"] == module]


def measure(tree: Tree, covering: Covering | None, module: str, options: argparse.Namespace) -> float:
    """Try the mutants of one module, print the survivors, and return the share killed of those not equivalent."""
    source = (ROOT / PACKAGE / module).read_text()
    parsed = ast.parse(source)
    everything = mutants(source)
    if options.match:
        drawn = [mutant for mutant in everything if options.match in mutant.code]
    else:
        drawn = random.Random(f"{options.seed}:{module}").sample(everything, min(options.count, len(everything)))
    listed, start = equivalents(module), sum(os.times()[:4])
    killed = equivalent = 0
    for mutant in sorted(drawn, key=lambda mutant: mutant.start):
        same = {"code": mutant.code, "before": " ".join(mutant.before.split()), "after": " ".join(mutant.after.split())}
        place = f"{module}:{mutant.line}: {mutant}"
        if any(all(entry[key] == value for key, value in same.items()) for entry in listed):
            equivalent += 1
            print(f"  equivalent {place}", flush=True)
            continue
        tests = options.tests if covering is None else covering.of(module, parsed, mutant)
        seconds = LONGEST if covering is None else sum(covering.seconds[test] for test in tests)
        failed = tree.fails(module, source, mutant.apply(source), tests, seconds)
        if not failed and covering is not None:
            more = [test for test in covering.of(module, parsed, mutant, SECOND_TRY) if test not in tests]
            seconds = sum(covering.seconds[test] for test in more)
            failed = tree.fails(module, source, mutant.apply(source), more, seconds) if more else ""
            tests = [*tests, *more]
        killed += bool(failed)
        if not failed:
            print(f"  SURVIVED   {place}  [{len(tests)} tests]\n             {mutant.code}", flush=True)
        elif options.verbose:
            print(f"  killed     {place}  by {failed}", flush=True)
    tried = len(drawn) - equivalent
    share = killed / tried if tried else 1.0
    print(
        f"{module:26} drawn {len(drawn):3}  equivalent {equivalent:2}  killed {killed:3}  survived {tried - killed:2}"
        f"  {share:.0%}  ({sum(os.times()[:4]) - start:.0f} s of processor time)",
        flush=True,
    )
    return share


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "adaptive-eval-mutants")
    parser.add_argument("--slow", action="store_true", help="also the tests that are marked slow")
    commands = parser.add_subparsers(dest="command", required=True)
    covers = commands.add_parser("cover", help="keep which test covers which line")
    covers.add_argument("tests", nargs="+", help="files and folders of tests, and options of pytest such as -n2")
    runs = commands.add_parser("run", help="draw mutants and run the tests that cover them")
    runs.add_argument("modules", nargs="*", default=MODULES, help="below the package, such as claims/paired.py")
    runs.add_argument("--count", type=int, default=20, help="mutants of each module (20)")
    runs.add_argument("--seed", type=int, default=1)
    runs.add_argument("--match", help="instead of a draw, all mutants on lines that hold this text")
    runs.add_argument("--tests", nargs="+", help="run these for each mutant, whatever they cover")
    runs.add_argument("--verbose", action="store_true", help="also say what killed a mutant")
    options, more = parser.parse_known_args()
    if options.slow:
        OPTIONS.extend(["-m", ""])
    if options.command == "cover":
        return cover(options.data, [*options.tests, *more])
    load_dependencies(options.modules)
    covering = None if options.tests else Covering(options.data)
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(Path(folder) / "tree")
        shares = [measure(tree, covering, module, options) for module in options.modules]
    return int(min(shares) < WANTED)


if __name__ == "__main__":
    sys.exit(main())
