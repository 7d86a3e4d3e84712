"""Settings of a run: flags and ini settings, declared once."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from pytest_adaptive_eval.inputs import ANSWERS_FILE, DRIFT_ACTIONS
from pytest_adaptive_eval.plugin.names import MISSING_BASELINE

REPORTS = ("record", "html", "junit")  #: Reports whose path a flag sets.


class _Models(argparse.Action):
    """Keep all models that flags name, and the last as what fixtures of users read."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        namespace.adaptive_eval_models = [*(getattr(namespace, "adaptive_eval_models", None) or ()), values]
        setattr(namespace, self.dest, values)


class Ini(NamedTuple):
    """Type and default of an ini setting, as ``addini`` takes them."""

    kind: Any = None
    default: Any = None


class RunSetting(NamedTuple):
    """A setting of a run.

    Args:
        help: What it sets.
        flag: Further arguments of ``addoption``; None for an ini setting without a flag.
        ini: None for a flag without an ini setting.
    """

    help: str
    flag: Mapping[str, Any] | None = None
    ini: Ini | None = None


#: Settings by name: ``budget`` is the flag ``--adaptive-eval-budget`` and the ini setting ``adaptive_eval_budget``.
RUN_SETTINGS: Mapping[str, RunSetting] = {
    "model": RunSetting("the subject", {"metavar": "[NAME=]MODEL", "action": _Models}, Ini()),
    "models": RunSetting(
        "models that the evaluations of TOML files ask side by side, with the same draws",
        {"metavar": "A,B", "dest": "adaptive_eval_side_by_side"},
    ),
    "model_options": RunSetting(
        'how the subject is loaded or reached, such as key_env = "API_KEY", one per line', None, Ini("linelist", [])
    ),
    "budget": RunSetting(
        'questions an interview: a count, or a share of the bank such as "15%%"', {"metavar": "N|N%"}, Ini()
    ),
    "seed": RunSetting("seed of every draw (default: 0)", {"metavar": "N", "type": int}, Ini()),
    "dir": RunSetting("journal and records (default: .adaptive-eval)", {"metavar": "DIR"}, Ini()),
    "fresh": RunSetting("ask everything again instead of resuming a killed run", {"action": "store_true"}),
    "failed": RunSetting(
        "ask the questions that a run got wrong, as single tests; no gate is judged by them (RUN: a record, an id, or "
        "latest)",
        {"metavar": "RUN"},
    ),
    "reuse": RunSetting(
        "take answers that the same checkpoint gave to the same questions from a store that runs share, and add to it; "
        f"greedy decoding only (default: DIR/{ANSWERS_FILE}, and that file without the flag where CI is not set)",
        {"metavar": "FILE", "nargs": "?", "const": ANSWERS_FILE},
    ),
    "baseline": RunSetting(
        'what gates call "baseline": a run\'s JSON record, a folder or zip of records, or recorded answers',
        {"metavar": "FILE[#NAME]"},
        Ini(),
    ),
    "missing_baseline": RunSetting(
        "without a baseline: warn and promote nothing (default), record this run as the baseline, or fail; a named "
        "file that is not there is a mistake unless this run records it",
        {"metavar": "WHAT", "choices": MISSING_BASELINE},
        Ini(),
    ),
    "drift": RunSetting(
        "warn, or fail the run, where a level of an evaluation fell below that of earlier runs in DIR",
        {"metavar": "WHAT", "choices": DRIFT_ACTIONS},
        Ini(),
    ),
    "record": RunSetting("write the run's JSON record to PATH as well", {"metavar": "PATH"}),
    "html": RunSetting("write the report for people to PATH", {"metavar": "PATH"}),
    "junit": RunSetting(
        "write a JUnit report of the gates to PATH, for Jenkins and GitLab; pytest's --junitxml has each question, and "
        "properties that the schema of Jenkins' xUnit plugin refuses",
        {"metavar": "PATH"},
    ),
    "unsafe_code": RunSetting(
        "run code that a model wrote without a sandbox, where no sandbox works",
        {"metavar": "I-accept", "choices": ("I-accept",)},
    ),
    "graders": RunSetting("modules whose functions may grade answers", None, Ini("args", [])),
    "required_gates": RunSetting(
        "gates that fail the run where they give no result: node ids or ends of them, one per line",
        None,
        Ini("linelist", []),
    ),
    "details": RunSetting(
        "print the table of interviews, whole verdicts and notes without -v, as for logs", None, Ini("bool", False)
    ),
    "required": RunSetting("fail a run that collects adaptive tests without --adaptive-eval", None, Ini("bool", False)),
}


def flag_name(name: str) -> str:
    """Return the flag of a setting."""
    return f"--adaptive-eval-{name.replace('_', '-')}"


def add_options(parser: pytest.Parser, *, list_kinds: bool) -> None:
    """Add flags and ini settings; listing the kinds of subjects imports their modules, so a plain run does not."""
    group = parser.getgroup("adaptive-eval", "adaptive evaluation of model checkpoints")
    flag_help = "run the adaptive interviews and their gates"
    group.addoption("--adaptive-eval", action="store_true", default=None, help=flag_help)
    for name, setting in RUN_SETTINGS.items():
        help_text = setting.help
        if name == "model" and list_kinds:
            help_text = _with_kinds(help_text)
        if setting.flag is not None:
            group.addoption(flag_name(name), default=None, help=help_text, **setting.flag)
        if setting.ini is not None:
            ini_help = setting.help.replace("%%", "%")  # only argparse formats its texts
            parser.addini(f"adaptive_eval_{name}", ini_help, type=setting.ini.kind, default=setting.ini.default)


def _with_kinds(help_text: str) -> str:
    """Return the help of the subject with all kinds of subjects."""
    from pytest_adaptive_eval.models import built_in_kinds

    kinds = ", ".join(f"{kind.form} ({kind.help})" for kind in built_in_kinds())
    return f"{help_text}, NAME=MODEL for the evaluation NAME of a TOML file alone: {kinds}"
