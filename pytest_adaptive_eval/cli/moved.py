"""Spellings of earlier versions, refused for one release with their replacement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile

from pytest_adaptive_eval.errors import ConfigError

_READING = (
    *("rows", "subject", "item", "score", "answer", "question", "choices", "target", "images", "category", "error"),
    *("format", "orientation", "metric", "filter", "families"),
)
_FIT = ("dimensions", "engine", "device")
_IMPORT = (
    *("rows", "where", "context", "messages", "instruction", "header", "distractors", "accepted", "missing"),
    *("category", "meta", "counted", "bare", "tolerance", "files", "source", "licence"),
)
#: New spelling by verb, or by verb and option.
MOVED: Mapping[str, str] = {
    "compare": "history --compare RUN RUN",
    "completion": "--print-completion SHELL",
    "correlate": "history --correlate",
    "drift": "history --drift",
    "refine": "bank refine",
    "refine --twin": "bank twin",
    "rescore": "gate RUN --rescore",
    "schema": "init --schema FILE",
    "view": "report --index DIR",
    **{f"{verb} --mapping": f"{verb} --config TOML" for verb in ("backtest", "calibrate", "gate", "import")},
    **{f"{verb} --{key}": f"{verb} --set {key}=..." for verb in ("backtest", "calibrate", "gate") for key in _READING},
    **{f"{verb} --{key}": f"{verb} --set {key}=..." for verb in ("backtest", "calibrate") for key in _FIT},
    **{f"backtest --{key}": f"backtest --set {key}=..." for key in ("stratify", "encoder", "interviewer")},
    **{f"calibrate --{key}": f"calibrate --set {key}=..." for key in ("source", "licence")},
    **{f"import --{key}": f"import --set {key.replace('-', '_')}=..." for key in _IMPORT},
    "plan --must-pass": "doctor",
    "report --responses": "report --export responses=FILE",
    "report --studies": "report --export studies=FILE",
    "report --every-eval-ever": "report --export every-eval-ever=DIR",
    "report --mlflow": "report --export mlflow",
    "report --wandb": "report --export wandb",
}


def refuse_moved(arguments: Sequence[str]) -> None:
    """Refuse a verb or option of an earlier version.

    Raises:
        ConfigError: The sentence says what it is now.
    """
    verb, options = (arguments or [""])[0], [word.partition("=")[0] for word in arguments[1:]]
    for old in (*(f"{verb} {option}" for option in takewhile(lambda word: word != "--", options)), verb):
        if old in MOVED:
            raise ConfigError(f"adaptive-eval {old} is now adaptive-eval {MOVED[old]}")
