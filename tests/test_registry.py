"""Kinds that are registered: own modules and plugins alike, and what a plugin must not do."""

import re
import sys
from pathlib import Path

import pytest

from pytest_adaptive_eval.banks.responses import FORMATS, ResponseReader
from pytest_adaptive_eval.calibration.recipe import ENGINES
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.registry import registered

ROOT = Path(__file__).parents[1]
PACKAGE, GROUP = "pytest_adaptive_eval.banks.responses.readers", "adaptive_eval.response_readers"
READER = """
from pytest_adaptive_eval.banks.responses import ResponseReader

REGISTERED = (ResponseReader({name!r}, "logs", lambda path: False, lambda path, settings: None),)
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return a function that installs a plugin with one module of the given source."""

    def install_plugin(source: str, module: str = "logs_of_mine") -> None:
        (tmp_path / f"{module}.py").write_text(source)
        metadata = tmp_path / f"{module}-1.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1\n")
        (metadata / "entry_points.txt").write_text(f"[{GROUP}]\nmine = {module}\n")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, module, raising=False)

    return install_plugin


def test_reader_of_a_plugin_is_registered_after_the_own_ones(install):
    install(READER.format(name="mylogs"))
    assert list(registered(PACKAGE, GROUP, ResponseReader)) == [*FORMATS, "mylogs"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("REGISTERED = ('csv',)", "logs_of_mine: REGISTERED holds 'csv', expected objects of ResponseReader"),
        (READER.format(name="csv"), "logs_of_mine: the ResponseReader 'csv' exists already; rename it"),
        ("", "plugin 'mine' of group 'adaptive_eval.response_readers': logs_of_mine cannot be used (AttributeError"),
        ("import nothing_of_that_name", "cannot be used (ModuleNotFoundError: No module named"),
    ],
    ids=["wrong-type", "name-taken", "nothing-registered", "import-fails"],
)
def test_plugin_that_cannot_be_used_is_a_config_error(install, source, message):
    install(source)
    with pytest.raises(ConfigError, match=re.escape(message)):
        registered(PACKAGE, GROUP, ResponseReader)


@pytest.mark.parametrize("kinds", [FORMATS, ENGINES])
def test_kinds_are_registered_under_their_names(kinds):
    assert len(kinds) > 1
    assert all(entry.name == name for name, entry in kinds.items())


def test_documented_groups_are_the_ones_in_use():
    page = (ROOT / "docs/reference/plugins.md").read_text("utf-8")
    documented = set(re.findall(r"`(adaptive_eval\.\w+)`", page))
    source = "".join(path.read_text("utf-8") for path in (ROOT / "pytest_adaptive_eval").rglob("*.py"))
    # services are for the extensions of this package
    assert documented | {"adaptive_eval.services"} == set(re.findall(r'"(adaptive_eval\.\w+)"', source))
