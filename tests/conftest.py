"""For all tests."""

import os
import signal
import sys
import threading
from collections.abc import Generator
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

try:
    from hypothesis import settings
except ImportError:  # the examples run without it, and pytest looks here all the same
    pass
else:  # every run tries the same, on slow machines too
    settings.register_profile("fast", derandomize=True, deadline=None, max_examples=25)
    settings.register_profile("slow", settings.get_profile("fast"), max_examples=150)
    settings.load_profile("fast")

if "PYTEST_XDIST_WORKER" in os.environ:  # workers share the cores: more threads than cores only wait for each other
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# A run in the background ignores interrupts, and so would all processes that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Hundreds of runs within tests import the package in processes of their own: without compiled modules on disk, each
# would compile it again, with pytest's rewritten assertions.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

#: Files of a few long tests: begun last, they would keep one worker busy while the others are done.
LONG = ("test_examples.py", "test_panel_agents.py", "test_samples_checkpoint.py", "test_network_checkpoints.py")


ROOT = Path(__file__).resolve().parents[1]
#: Files and folders of tests that need checkpoints or pictures, which a source distribution lacks.
OF_A_CLONE = (
    *("claims/test_score_equations.py", "cli/test_bank_command.py", "cli/test_init.py", "docs", "golden"),
    *("interviewer/test_agent_interviewer.py", "interviewer/test_clip_fixture.py"),
    *("interviewer/test_embeddings_encoders.py", "models", "plugin/ask/test_samples_checkpoint.py"),
    *("plugin/collect/test_interviewer.py", "plugin/collect/test_toml.py", "harness/test_real_harnesses.py"),
    *("studies/network/test_network_checkpoints.py", "studies/peers/test_panel_agents.py"),
    *("tasks/test_picture_sizes.py", "test_examples.py", "test_extras.py", "test_fixtures.py"),
)


def asks_for_slow(config: pytest.Config) -> bool:
    """Whether ``-m`` selects slow tests: ``-m slow``, or ``-m ""`` for all."""
    return "not slow" not in config.option.markexpr


def pytest_configure(config: pytest.Config) -> None:
    """Hide from runs within tests where they run, and try more examples of each property where slow tests run."""
    if not config.getoption("adaptive_eval", False):  # the examples of this project tell GitHub their verdicts
        _hide_ci()
    if asks_for_slow(config) and "hypothesis" in sys.modules:
        settings.load_profile("slow")


def _hide_ci() -> None:
    """Remove what tells pytest and the product that they run in CI, where they print more."""
    if os.environ.pop("CI", None) == "true":
        os.environ["ADAPTIVE_EVAL_IN_CI"] = "true"  # workers inherit it
    for name in [name for name in os.environ if name == "BUILD_NUMBER" or name.startswith("GITHUB_")]:
        del os.environ[name]


@pytest.fixture(autouse=True)
def _hidden_in_one_test() -> Generator[None, None, None]:
    """Forget the keys that a test hides, which stay hidden until a process ends."""
    from pytest_adaptive_eval import api_keys

    keys = api_keys._KEYS
    forms, pattern = set(keys._forms), keys._pattern
    yield
    keys._forms, keys._pattern = forms, pattern


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, None, None]:
    """Begin with long tests, mark slow ones, and keep one of the shards of CI.

    Of a table with ``fast_rows(n)``, all rows but `n` that lie evenly apart are slow. Properties run among the slow
    tests too. ``ADAPTIVE_EVAL_CI_SHARD=2/3`` runs every third of the selected tests, from the second on.
    """
    items.sort(key=lambda item: item.path.name not in LONG)
    if not (ROOT / "fixtures" / "checkpoints").is_dir():
        reason = "needs fixtures/checkpoints, which a source distribution lacks: test in a clone"
        of_a_clone = [ROOT / "tests" / name for name in OF_A_CLONE]
        for item in items:
            if any(item.path.is_relative_to(place) for place in of_a_clone):
                item.add_marker(pytest.mark.skip(reason=reason))
    tables: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("fast_rows"):
            tables.setdefault(item.nodeid.partition("[")[0], []).append(item)
        if asks_for_slow(config) and getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("slow")
    for rows in tables.values():
        fast = rows[0].get_closest_marker("fast_rows").args[0]
        apart = {len(rows) * place // fast for place in range(fast)}
        for place, item in enumerate(rows):
            if place not in apart:
                item.add_marker("slow")
    yield
    number, _, shards = os.environ.get("ADAPTIVE_EVAL_CI_SHARD", "1/1").partition("/")
    kept = items[int(number) - 1 :: int(shards)]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    items[:] = kept


#: Groups of tests that CI must run, by parts of their skip reasons, or of their paths.
EXPECTED = {
    "sandbox": ("no sandbox here",),
    "browser": ("no chromium",),
    "matrices": ("public response matrices", "ADAPTIVE_EVAL_DATA"),
    "servers": ("llama.cpp", "transformers serve"),
    "real": ("no pretrained model",),
    "plugins": ("tests/beside/", "could not import 'pytest_", "could not import 'flaky'", "could not import 'testmon'"),
    "ray": ("could not import 'ray'",),
    "tools": ("could not import 'lm_eval'", "could not import 'inspect_ai'"),
    **{name: (f"the harness {name} is not installed",) for name in ("harbor", "inspect", "lm-eval", "promptfoo")},
    "extras": ("(extra ", "could not import"),
}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI, fail a skipped test of a group that the command does not declare absent in ADAPTIVE_EVAL_CI_WITHOUT."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and "ADAPTIVE_EVAL_IN_CI" in os.environ:
        _expect(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a file that is skipped as a whole."""
    report = yield
    if report.skipped and "ADAPTIVE_EVAL_IN_CI" in os.environ:
        _expect(report)
    return report


def _expect(report: pytest.TestReport | pytest.CollectReport) -> None:
    reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
    absent = os.environ.get("ADAPTIVE_EVAL_CI_WITHOUT", "").split(",")
    for group, words in EXPECTED.items():
        if any(word in reason or word in report.nodeid for word in words):
            if group not in absent:
                report.outcome = "failed"
                report.longrepr = (
                    f"{reason}\nTests of the group {group!r} must run in CI. Install what they need, or add {group!r} "
                    "to ADAPTIVE_EVAL_CI_WITHOUT if this machine cannot run them."
                )
            return
