"""Questions of published data sets for commands of the core."""

from pytest_adaptive_eval.registry import Service

REGISTERED = (
    Service("import_items", "pytest_adaptive_eval.extensions.importing.importer:import_items"),
    Service("check_refused", "pytest_adaptive_eval.extensions.importing.importer:check_refused"),
)
