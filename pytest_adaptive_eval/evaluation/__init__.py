"""Settings, and the assembly of evaluations from them for the plugin and the command line."""

from pytest_adaptive_eval.evaluation.evaluation import EvalSpec, Evaluation, Settings, bank_notes
from pytest_adaptive_eval.evaluation.sources import CodeRunner, TaskGraders, check_model, load_model, recorded_banks
from pytest_adaptive_eval.evaluation.study import (
    STUDIES,
    ComparablePlan,
    StudyContext,
    StudyKind,
    StudyPlan,
    StudySpec,
    merge_kinds,
)
from pytest_adaptive_eval.evaluation.toml import GateSpec, TomlEval, gate_keys, read_gate, read_toml

__all__ = [
    "STUDIES",
    "CodeRunner",
    "ComparablePlan",
    "EvalSpec",
    "Evaluation",
    "GateSpec",
    "Settings",
    "StudyContext",
    "StudyKind",
    "StudyPlan",
    "StudySpec",
    "TaskGraders",
    "TomlEval",
    "bank_notes",
    "check_model",
    "gate_keys",
    "load_model",
    "merge_kinds",
    "read_gate",
    "read_toml",
    "recorded_banks",
]
