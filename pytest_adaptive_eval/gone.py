"""Names that were cut, each with one sentence on what to do instead; they stay for one version."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from pytest_adaptive_eval.errors import ConfigError

_SOME = (
    "write a gate for each requirement that must hold; where one of several suffices, write "
    "`assert adaptive_eval.any_of(*adaptive_eval.verdicts)` into a test with the marks adaptive_gate"
)
#: Sentence by model prefix, verb, verb and option, setting, or setting and value.
GONE: Mapping[str, str] = {
    "lm-eval:": "judge its finished logs by adaptive-eval gate, or name the checkpoint or the server",
    "report --export every-eval-ever": "export responses",
    "report --export studies": "read the record, which has every quantity",
    "history --flicker": "compare two runs with history --compare",
    "history --levels": "compare two runs with history --compare",
    "sweep --keep-going": "correct the sweep file",
    "sweep --report-only": "run adaptive-eval merge and adaptive-eval report --index",
    "sweep --shard": "run one checkpoint per job, and adaptive-eval merge",
    "backtest --low-quality": "backtest the originals, and find low-quality items with bank refine",
    "backtest --plot": "write --json, and draw the table with a tool of your choice",
    "backtest --responses": "backtest the recorded responses themselves; banks are calibrated in each split",
    "backtest --set confidence": "bounds have a confidence of 0.975",
    "backtest --set encoder": "items are placed by the responses of the calibration subjects",
    "backtest --set interviewer": "autojudger's questions are picked by code",
    "backtest --set repeats": "responses in formats are split like others",
    "backtest --set stratify": "raise --splits, which averages over the sizes of the test subjects",
    "backtest --policy flasheval": "forms of papers are compared by benchmarks/compact_forms.py of the sources",
    "backtest --policy item-total": "forms of papers are compared by benchmarks/compact_forms.py of the sources",
    "bank twin": "a copy of the bank with swapped images or texts can be written by a script",
    "doctor --ask": "name the model with --model, which asks a server for one token",
    "gate --bank": "name the bank in the evaluation that replays the record",
    "gate --from": "name the record, as in --adaptive-eval-model=replay:RECORD",
    "gate --rescore": "run pytest with --adaptive-eval-model=replay:RECORD on the evaluation whose gates judge",
    "gate --gates": "run pytest with --adaptive-eval-model=replay:LOG on the evaluation whose gates judge",
    "import --check": "leave -o out: the command then shows the mapping, the items and the check, and writes nothing",
    "import --examples": "import the split for examples into a bank of its own, as by --set split=train",
    "init --dry-run": "run init in an empty folder",
    "report --badge": "use the badge of your CI system",
    "adaptive_suite": _SOME,
    "suite": _SOME,
    "method likelihood-ratio": "leave method out: the draws decide, and their error rate holds for any bank",
}


def refuse_gone(arguments: Sequence[str]) -> None:
    """Refuse a verb or an option of the command that was cut.

    Raises:
        ConfigError: Says what to do instead.
    """
    verb = arguments[0] if arguments else ""
    words = []
    for word in arguments[1:]:
        words += word.split("=", 1) if word.startswith("--") else [word]
    pairs = []
    for option, value in itertools.pairwise(words):
        pairs.append(f"{option} {value}")
    written = [verb, *(f"{verb} {part}" for part in (*words, *pairs))]
    for gone, instead in GONE.items():
        if any(name == gone or name.startswith(f"{gone}=") for name in written):
            raise ConfigError(f"adaptive-eval {gone} is gone: {instead}")


def refuse_gone_model(spec: str) -> None:
    """Refuse a model of a kind that was cut.

    Raises:
        ConfigError: Says what to do instead.
    """
    for gone, instead in GONE.items():
        if gone.endswith(":") and spec.startswith(gone):
            raise ConfigError(f"models {gone}... are gone: {instead}")


def refuse_gone_setting(written: str, where: str = "") -> None:
    """Refuse a table or a mark that was cut, or a value, written as ``method likelihood-ratio``.

    Raises:
        ConfigError: Names the place, and says what to do instead.
    """
    if instead := GONE.get(written):
        raise ConfigError(f"{where}: {written} is gone: {instead}".removeprefix(": "))
