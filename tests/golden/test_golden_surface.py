"""What users name stays: Python names, hooks, markers, flags, settings, verbs, keys of TOML files, exit codes."""

from __future__ import annotations

from pathlib import Path

import golden_codes
import golden_surface
import pytest
from golden_project import check, stored


def test_python_names_keep_their_parameters_and_members() -> None:
    before, now = stored("surface"), golden_surface.python_names()
    kept = {module: before[module] for module in now}
    for module in (*kept, "pytest", "markers", "verbs", "package"):
        assert module in before
    assert {"pytest_adaptive_eval", *golden_surface.DOCUMENTED} == set(kept)
    golden_surface.compare(kept, now)


def test_flags_settings_and_hooks_stay() -> None:
    golden_surface.compare(stored("surface")["pytest"], golden_surface.of_pytest())


def test_marker_and_fixtures_stay(tmp_path: Path) -> None:
    assert golden_surface.markers(tmp_path) == stored("surface")["markers"]


def test_verbs_keep_their_options_and_arguments(tmp_path: Path) -> None:
    golden_surface.compare(stored("surface")["verbs"], golden_surface.verbs(tmp_path))


def test_extras_and_entry_points_stay() -> None:
    assert golden_surface.packaging() == stored("surface")["package"]


def test_toml_files_take_the_same_keys(tmp_path: Path) -> None:
    check("keys", golden_codes.keys(tmp_path))


def test_runs_end_with_the_same_exit_codes(tmp_path: Path) -> None:
    expected = {name: code for name, (_, _, code) in golden_codes.RUNS.items()}
    assert golden_codes.codes(tmp_path) == expected


def test_verbs_end_with_the_same_exit_codes(tmp_path: Path) -> None:
    expected = {name: code for name, (_, code) in golden_codes.VERBS.items()}
    assert golden_codes.verb_codes(tmp_path) == expected


@pytest.mark.parametrize("name", ["surface", "keys"])
def test_stored_tables_allow_and_refuse(name: str) -> None:
    if name == "keys":
        for table, found in stored(name).items():
            assert found["codes"].pop("all that are taken") == 0, table
            assert set(found["codes"].values()) == {4}, table
    else:
        assert len(stored(name)["pytest_adaptive_eval"]) >= 22
