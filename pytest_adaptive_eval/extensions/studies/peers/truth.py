"""Agreement of a panel's scores with accuracies of its members on a bank or task."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from pytest_adaptive_eval.extensions.studies.peers.scoring import agreement
from pytest_adaptive_eval.records.correlation import measures
from pytest_adaptive_eval.records.parts import plain
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
    if not panels:
        return
    interviews: list[EvaluationRecord] = []
    for record in (*earlier, run):
        if not record.copied_from:
            interviews += record.interviews
    for study in panels:
        study.account["truth"] = _truth(study, interviews)


def _truth(study: EvaluationRecord, interviews: Sequence[EvaluationRecord]) -> list[dict[str, Any]]:
    order = [member.name for member in study.members]
    account = study.account
    rows = [list(row) for row in account["judgments"]["mean"]]
    for i, row in enumerate(rows):
        row[i] = None  # what a judge gave itself
    comparisons = []
    for measure in measures(_of_members(study, interviews)):
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


def _of_members(study: EvaluationRecord, interviews: Sequence[EvaluationRecord]) -> list[EvaluationRecord]:
    """Return the interviews of members, named by bank, since each member may have its own evaluation."""
    names = {member.checkpoint: member.name for member in study.members if member.checkpoint}
    renamed = []
    for interview in interviews:
        name = names.get(interview.subject.checkpoint)
        if name is not None and not interview.error:
            subject = dataclasses.replace(interview.subject, name=name)
            renamed.append(replace(interview, name=interview.bank.name or interview.name, subject=subject))
    return renamed


def _agreement(
    scores: Sequence[float | None], names: Sequence[str], truth: Mapping[str, float]
) -> dict[str, float | None]:
    """Return rank correlations over subjects with both values; None if there are too few."""
    scored = []
    accuracies = []
    for name, score in zip(names, scores, strict=True):
        if score is not None and name in truth:
            scored.append(score)
            accuracies.append(truth[name])
    if len(scored) < LEAST:
        return {"subjects": len(scored), "spearman": None, "kendall": None}
    return {"subjects": len(scored), **plain(agreement(scored, accuracies))}
