"""Settings, and the assembly of evaluations from them for the plugin and the command line."""

from pytest_adaptive_eval.evaluation.evaluation import Evaluation, GatePlan
from pytest_adaptive_eval.evaluation.interview import Interview, bank_notes
from pytest_adaptive_eval.evaluation.sources import CodeRunner, TaskGraders, check_model, load_model, recorded_banks
from pytest_adaptive_eval.evaluation.spec import (
    Context,
    EvalSpec,
    EvaluationKind,
    Settings,
    evaluation_kinds,
    merge_kinds,
)
from pytest_adaptive_eval.evaluation.toml import (
    GateSpec,
    TomlEval,
    gate_keys,
    read_gate,
    read_toml,
)

__all__ = [
    "CodeRunner",
    "Context",
    "EvalSpec",
    "Evaluation",
    "EvaluationKind",
    "GatePlan",
    "GateSpec",
    "Interview",
    "Settings",
    "TaskGraders",
    "TomlEval",
    "bank_notes",
    "check_model",
    "evaluation_kinds",
    "gate_keys",
    "load_model",
    "merge_kinds",
    "read_gate",
    "read_toml",
    "recorded_banks",
]
