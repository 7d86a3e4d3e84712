"""Agreement of a panel's scores with accuracies of its members on a bank or task."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from pytest_adaptive_eval.extensions.studies.peers.scoring import agreement
from pytest_adaptive_eval.records.correlation import measures
from pytest_adaptive_eval.records.run_record import EvaluationRecord, RunRecord

#: Least number of members with an accuracy.
LEAST = 3


def agree_with_truth(run: RunRecord, earlier: Iterable[RunRecord] = ()) -> None:
    """Add to each peer assessment of a run its agreement with interviews of its members, matched by checkpoint.

    Args:
        run: Its studies' accounts get ``truth``: accuracies by bank or task, and their rank correlations with the
            scores and with each judge's mean judgments of others.
        earlier: Runs whose interviews are used for members without one in this run, oldest first.
    """
    panels = [entry for entry in run.evaluations if entry.opinion and not entry.error]
    if panels:
        asked = [record for record in (*earlier, run) if not record.copied_from]
        interviews = [interview for record in asked for interview in record.interviews]
        for study in panels:
            study.account["truth"] = _truth(study, interviews)


def _truth(study: EvaluationRecord, interviews: Sequence[EvaluationRecord]) -> list[dict[str, Any]]:
    names = {member.checkpoint: member.name for member in study.members if member.checkpoint}
    member_interviews = [  # named by bank, since each member may have its own evaluation
        replace(
            interview,
            name=interview.bank.name or interview.name,
            subject=replace(interview.subject, name=names[interview.subject.checkpoint]),
        )
        for interview in interviews
        if interview.subject.checkpoint in names and not interview.error
    ]
    order = [member.name for member in study.members]
    account = study.account
    rows = [
        [None if i == j else value for j, value in enumerate(row)] for i, row in enumerate(account["judgments"]["mean"])
    ]
    comparisons = []
    for measure in measures(member_interviews):
        if len(measure.values) < LEAST:
            continue
        truth = dict(measure.values)
        comparisons.append(
            {
                "evaluation": measure.name,
                "metric": measure.metric,
                "accuracies": truth,
                "scores": _agreement(account["scores"], order, truth),
                "judges": [_agreement(row, order, truth) for row in rows],
            }
        )
    return comparisons


def _agreement(
    scores: Sequence[float | None], names: Sequence[str], truth: Mapping[str, float]
) -> dict[str, float | None]:
    """Return rank correlations over subjects with both values; None if there are too few."""
    both = [
        (score, truth[name]) for score, name in zip(scores, names, strict=True) if score is not None and name in truth
    ]
    if len(both) < LEAST:
        return {"subjects": len(both), "spearman": None, "kendall": None}
    correlations = agreement([score for score, _ in both], [accuracy for _, accuracy in both])
    coefficients = {"spearman": correlations.spearman, "kendall": correlations.kendall}
    return {
        "subjects": len(both),
        **{name: value if math.isfinite(value) else None for name, value in coefficients.items()},
    }
