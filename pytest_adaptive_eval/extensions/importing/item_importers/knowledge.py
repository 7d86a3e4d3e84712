"""Presets of multiple-choice benchmarks of knowledge."""

from __future__ import annotations

from pytest_adaptive_eval.extensions.importing.mapping import ItemMapping
from pytest_adaptive_eval.extensions.importing.opening import preset

_NESTED = ItemMapping(
    id="id", question="question.stem", choices=("question.choices",), answer="answerKey", counted="label"
)
_HUB = ItemMapping(id="id", question="question", choices=("choices",), answer="answerKey", counted="label")
_ABCD = ItemMapping(
    question="question", choices=("A", "B", "C", "D"), answer="answer", counted="letter", category=("$set",)
)

REGISTERED = (
    preset(
        "mmlu",
        "MMLU, 57 subjects: CSV without header, re-saved CSV, or the hub's rows",
        _ABCD,
        ItemMapping(question="question", choices=("choices",), answer="answer", category=("subject",)),
        ItemMapping(
            question="question",
            choices=("choice0", "choice1", "choice2", "choice3"),
            answer="answer",
            counted="0",
            category=("$set",),
        ),
        ask="likelihood",
        few_shot="dev",
    ),
    preset(
        "mmlu-pro",
        "MMLU-Pro: 3 to 10 options",
        ItemMapping(
            id="question_id",
            question="question",
            choices=("options",),
            answer="answer",
            counted="letter",
            category=("category",),
            meta=("src",),
        ),
        few_shot="validation",
    ),
    preset(
        "arc",
        "ARC, Easy or Challenge: labels A to E or 1 to 5",
        _NESTED,
        _HUB,
        ask="likelihood",
        few_shot="train",
    ),
    preset(
        "openbookqa",
        "OpenBookQA",
        _NESTED,
        ItemMapping(id="id", question="question_stem", choices=("choices",), answer="answerKey", counted="label"),
        ask="likelihood",
        few_shot="train",
    ),
    preset("commonsenseqa", "CommonsenseQA", _NESTED, _HUB, ask="likelihood", few_shot="train"),
    preset(
        "gpqa",
        "GPQA: the choices are shuffled by the question",
        ItemMapping(
            id="Record ID",
            question="Question",
            answer="Correct Answer",
            distractors=("Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3"),
            category=("High-level domain",),
        ),
        ItemMapping(
            question="Question",
            answer="Correct Answer",
            distractors=("Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3"),
        ),
    ),
    preset(
        "truthfulqa",
        "TruthfulQA: mc1 of mc_task.json or the hub, or the best against the incorrect answers of the CSV",
        ItemMapping(question="question", choices=("mc1_targets",)),
        ItemMapping(
            question="Question",
            answer="Best Answer",
            distractors=("Incorrect Answers",),
            category=("Category",),
            meta=("Type",),
        ),
        files="TruthfulQA.csv*",
        ask="likelihood",
    ),
    preset("ceval", "C-Eval", _ABCD, files="*_val.csv*", few_shot="dev"),
    preset(
        "cmmlu",
        "CMMLU",
        ItemMapping(
            question="Question", choices=("A", "B", "C", "D"), answer="Answer", counted="letter", category=("$set",)
        ),
        few_shot="dev",
    ),
    preset(
        "medqa",
        "MedQA (USMLE)",
        ItemMapping(
            question="question", choices=("options",), answer="answer_idx", counted="label", category=("meta_info",)
        ),
    ),
    preset(
        "medmcqa",
        "MedMCQA: answers count from 1 as published by its authors, from 0 on the hub; give --counted",
        ItemMapping(
            id="id", question="question", choices=("opa", "opb", "opc", "opd"), answer="cop", category=("subject_name",)
        ),
    ),
    preset(
        "sciq",
        "SciQ: the choices are shuffled by the question",
        ItemMapping(
            question="question", answer="correct_answer", distractors=("distractor1", "distractor2", "distractor3")
        ),
        ask="likelihood",
    ),
    preset(
        "agieval",
        "AGIEval, its multiple-choice files",
        ItemMapping(
            context="passage",
            question="question",
            choices=("options",),
            answer="label",
            counted="letter",
            category=("$set",),
        ),
    ),
)
