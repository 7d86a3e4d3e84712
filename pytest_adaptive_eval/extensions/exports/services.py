"""Records that experiment trackers hold, and exports of records."""

from pytest_adaptive_eval.registry import Service

REGISTERED = (
    Service("write_export", "pytest_adaptive_eval.extensions.exports.rows:write_export"),
    Service("log_mlflow", "pytest_adaptive_eval.extensions.exports.trackers:log_mlflow"),
    Service("log_wandb", "pytest_adaptive_eval.extensions.exports.trackers:log_wandb"),
    Service("fetch_run", "pytest_adaptive_eval.extensions.exports.trackers:fetch_run"),
)
