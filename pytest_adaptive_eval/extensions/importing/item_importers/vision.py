"""Presets of benchmarks with images, and of the tables that VLMEvalKit publishes them as."""

from __future__ import annotations

from pytest_adaptive_eval.extensions.importing.base import Importer
from pytest_adaptive_eval.extensions.importing.mapping import ItemMapping
from pytest_adaptive_eval.extensions.importing.opening import preset
from pytest_adaptive_eval.typed_tables import replaced

_SEVEN = tuple(f"image_{number}" for number in range(1, 8))
#: A row of VLMEvalKit's TSV: options in columns, an image in base64 or by its path.
_TOOLKIT = ItemMapping(
    id="index",
    context="hint",
    question="question",
    choices=("A", "B", "C", "D", "E", "F", "G", "H"),
    answer="answer",
    counted="letter",
    images=("image",),
    category=("category", "l2-category"),
)
_TOOLKIT_OPEN = ItemMapping(id="index", question="question", answer="answer", images=("image",), category=("category",))
_SCIENCEQA = ItemMapping(
    context="hint",
    question="question",
    choices=("choices",),
    answer="answer",
    counted="0",
    images=("image",),
    category=("subject", "topic"),
)


def _toolkit(name: str, summary: str, *others: ItemMapping) -> Importer:
    return preset(name, f"{summary}, VLMEvalKit's TSV", *others, _TOOLKIT)


REGISTERED = (
    preset("vlmevalkit", "any table of VLMEvalKit: choices in columns, or a free answer", _TOOLKIT, _TOOLKIT_OPEN),
    _toolkit("mmbench", "MMBench"),
    _toolkit("mmstar", "MMStar"),
    _toolkit("mmt-bench", "MMT-Bench"),
    _toolkit(
        "ai2d",
        "AI2D",
        ItemMapping(question="question", choices=("options",), answer="answer", images=("image",), counted="0"),
    ),
    preset(
        "mmmu",
        "MMMU and MMMU-Pro: up to seven images; answers apart by --labels answer_dict_val.json",
        ItemMapping(
            question="question", choices=("options",), answer="answer", images=_SEVEN, id="id", category=("subfield",)
        ),
        ItemMapping(question="question", choices=("options",), answer="answer", images=_SEVEN),
        _TOOLKIT,
        files="data.jsonl",
        few_shot="dev",
    ),
    preset(
        "mathvista",
        "MathVista: testmini.json or the hub's rows",
        ItemMapping(
            id="pid",
            question="question",
            choices=("choices",),
            answer="answer",
            counted="text",
            images=("decoded_image",),
            category=("metadata.task",),
        ),
        ItemMapping(
            id="pid",
            question="question",
            choices=("choices",),
            answer="answer",
            counted="text",
            images=("image",),
            category=("metadata.task",),
        ),
        ItemMapping(id="pid", question="question", answer="answer", images=("image",)),
        _TOOLKIT,
    ),
    preset(
        "scienceqa",
        "ScienceQA: problems.json or the hub's rows; images by --image-root",
        replaced(_SCIENCEQA, rows="*", id="$key", where="split == 'test'"),
        _SCIENCEQA,
    ),
    preset(
        "hallusionbench",
        "HallusionBench: yes or no, with or without an image",
        ItemMapping(
            id="{category}-{subcategory}-{set_id}-{figure_id}-{question_id}",
            question="question",
            answer="gt_answer | map(0=no,1=yes)",
            images=("filename",),
            category=("category", "subcategory"),
            grader="yesno",
            instruction="Answer yes or no.",
        ),
        _TOOLKIT_OPEN,
    ),
    preset(
        "chartqa",
        "ChartQA",
        ItemMapping(question="query", answer="label", images=("imgname",)),
        ItemMapping(question="query", answer="label", images=("image",)),
        _TOOLKIT_OPEN,
    ),
    preset(
        "seed-bench",
        "SEED-Bench, its image questions",
        ItemMapping(
            rows="questions[*]",
            id="question_id",
            where="data_type == 'image'",
            question="question",
            choices=("choice_a", "choice_b", "choice_c", "choice_d"),
            answer="answer",
            counted="letter",
            images=("data_id",),
            category=("question_type_id",),
        ),
        _TOOLKIT,
    ),
    preset(
        "pope",
        "POPE: is an object in the image",
        ItemMapping(
            id="question_id",
            question="text",
            answer="label",
            images=("image",),
            grader="yesno",
            instruction="Answer yes or no.",
        ),
        _TOOLKIT_OPEN,
    ),
)
