"""Settings, and the assembly of an evaluation from them: one place for plugin and command line."""

from pytest_adaptive_eval.config.evaluation import EVAL_KEYS, EvalSpec, Evaluation, Settings, bank_notes
from pytest_adaptive_eval.config.sources import CodeRunner, TaskGraders, check_model, load_model, recorded_banks
from pytest_adaptive_eval.config.studies import STUDIES, merge_kinds
from pytest_adaptive_eval.config.study import Around, StudyKind, StudyPlan, StudySpec
from pytest_adaptive_eval.config.toml import GateSpec, TomlEval, read_toml

__all__ = [
    "EVAL_KEYS",
    "STUDIES",
    "Around",
    "CodeRunner",
    "EvalSpec",
    "Evaluation",
    "GateSpec",
    "Settings",
    "StudyKind",
    "StudyPlan",
    "StudySpec",
    "TaskGraders",
    "TomlEval",
    "bank_notes",
    "check_model",
    "load_model",
    "merge_kinds",
    "read_toml",
    "recorded_banks",
]
