"""Kinds of evaluations: peer assessment, networks, and ablations of networks."""

from pytest_adaptive_eval.registry import Service

REGISTERED = (
    Service("peers", "pytest_adaptive_eval.extensions.studies.peers.kind:PEERS"),
    Service("network", "pytest_adaptive_eval.extensions.studies.network.kind:NETWORK"),
    Service("ablation", "pytest_adaptive_eval.extensions.studies.network.ablation_kind:ABLATION"),
)
