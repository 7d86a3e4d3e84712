"""Presets of benchmarks of mathematics."""

from __future__ import annotations

from pytest_adaptive_eval.extensions.importing.mapping import ItemMapping
from pytest_adaptive_eval.extensions.importing.opening import preset

_NUMBER = "Think step by step. End with a line `Answer: <number>`."

REGISTERED = (
    preset(
        "gsm8k",
        "GSM8K: the number after ####",
        ItemMapping(question="question", answer="answer", grader="numeric", instruction=_NUMBER),
        files="test.jsonl*",
        few_shot="train",
    ),
    preset(
        "mgsm",
        "MGSM: TSV without header, a language a file",
        ItemMapping(
            header=("question", "answer"),
            question="question",
            answer="answer",
            grader="numeric",
            category=("$set",),
            instruction=_NUMBER,
        ),
        ItemMapping(question="question", answer="answer_number", grader="numeric", instruction=_NUMBER),
        files="mgsm_*.tsv*",
    ),
    preset(
        "math",
        "MATH and MATH-500: the boxed answer of the solution",
        ItemMapping(
            id="unique_id", question="problem", answer="answer", grader="math", category=("subject",), meta=("level",)
        ),
        ItemMapping(question="problem", answer="solution", grader="math", category=("type",), meta=("level",)),
    ),
    preset(
        "svamp",
        "SVAMP",
        ItemMapping(
            id="ID",
            context="Body",
            question="Question",
            answer="Answer",
            grader="numeric",
            category=("Type",),
            instruction=_NUMBER,
        ),
    ),
    preset(
        "aqua-rat",
        "AQuA-RAT",
        ItemMapping(question="question", choices=("options",), answer="correct", counted="letter"),
        few_shot="train",
    ),
    preset(
        "aime",
        "AIME",
        ItemMapping(id="ID", question="Problem", answer="Answer", grader="numeric", instruction=_NUMBER),
        ItemMapping(id="id", question="problem", answer="answer", grader="numeric", instruction=_NUMBER),
    ),
    preset(
        "math-vision",
        "MATH-Vision: choices or a free answer, with an image",
        ItemMapping(
            id="id",
            question="question",
            choices=("options",),
            answer="answer",
            images=("image",),
            category=("subject",),
            meta=("level",),
        ),
        files="test*.jsonl*",
    ),
)
