"""The largest, the smallest and the order of values that are nearly equal, and choices that depend on them."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from choices import choices, plain
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.ties import TIE, first_largest, first_smallest, tie_ranks

#: Values of which many are equal.
VALUES = st.lists(st.sampled_from([-2.0, -0.1, 0.0, 0.1, 1e-3, 7.0]), min_size=1, max_size=20)
#: Instruction sets, and the name of OpenBLAS's kernels for them.
KERNELS = {"avx512f": "SkylakeX", "avx2": "Haswell", "avx": "Sandybridge", "sse4_2": "Nehalem"}


def disturbed(seed: int) -> Any:
    """Return a function that changes arrays by a relative 1e-12."""
    rng = np.random.default_rng(seed)
    return lambda values: values * (1.0 + 1e-12 * rng.uniform(-1.0, 1.0, np.shape(values)))


@given(VALUES, st.integers(0, 1000))
def test_a_change_of_last_digits_leaves_the_order(values: list[float], seed: int) -> None:
    near = disturbed(seed)(np.array(values))
    assert first_largest(near) == np.argmax(values)
    assert first_smallest(near) == np.argmin(values)
    _, ranks = np.unique(values, return_inverse=True)
    np.testing.assert_array_equal(tie_ranks(near), ranks)


def test_each_row_has_a_choice_of_its_own() -> None:
    rows = np.array([[1.0, 1.0 + TIE / 2, 0.0], [0.0, 1.0, 1.0 + 2 * TIE], [-math.inf, -5.0, -5.0 + TIE]])
    assert first_largest(rows).tolist() == [0, 2, 1]
    assert first_smallest(rows).tolist() == [2, 0, 0]


def test_infinite_values_are_larger_than_all_others() -> None:
    assert first_largest([1.0, math.inf, math.inf]) == 1
    assert first_largest([-math.inf, -math.inf]) == 0
    assert tie_ranks([math.inf, 1.0, -math.inf, math.inf]).tolist() == [2, 1, 0, 2]


def test_a_difference_is_small_against_what_it_is_of() -> None:
    assert first_smallest([1e-16, 0.0], 1.0) == 0
    assert first_smallest([1e-16, 0.0]) == 1
    assert first_largest(np.array([[0.0, 1e-10], [0.0, 1e-10]]), np.array([1.0, 1e-3])).tolist() == [0, 1]
    assert tie_ranks([1e-16, 0.0, 2e-9], 1.0).tolist() == [0, 0, 1]


def test_a_missing_value_has_no_rank() -> None:
    np.testing.assert_array_equal(tie_ranks([2.0, math.nan, 1.0]), [1, math.nan, 0])
    assert tie_ranks([]).tolist() == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_inputs_that_differ_in_last_digits_lead_to_the_same_choices(seed: int) -> None:
    assert plain(choices(seed, disturbed(seed))) == plain(choices(seed))


def kernels() -> list[str]:
    """Return kernels of OpenBLAS that this processor can run; a kernel that it cannot run ends the process."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        return []
    flags = next((line.split() for line in text.splitlines() if line.startswith("flags")), [])
    return [kernel for flag, kernel in KERNELS.items() if flag in flags]


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64" or not kernels(), reason="the kernels are those of x86-64 on Linux")
def test_processors_of_two_kinds_make_the_same_choices() -> None:
    newest, *_, oldest = kernels()
    found = []
    for kernel, without in ((newest, ""), (oldest, "X86_V3 X86_V4")):
        environment = {**os.environ, "OPENBLAS_CORETYPE": kernel, "NPY_DISABLE_CPU_FEATURES": without}
        done = subprocess.run(
            [sys.executable, str(Path(__file__).with_name("choices.py"))],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    assert found[0] == found[1]
