"""Instances of HELM."""

from __future__ import annotations

from pytest_adaptive_eval.extensions.importing.mapping import ItemMapping
from pytest_adaptive_eval.extensions.importing.opening import preset

REGISTERED = (
    preset(
        "helm-instances",
        "HELM's instances.json: references, of which those with the tag correct are right",
        ItemMapping(
            id="id",
            question="input.text",
            choices=("references",),
            answer="references",
            where="split != 'train'",
        ),
        files="**/instances.json",
    ),
)
