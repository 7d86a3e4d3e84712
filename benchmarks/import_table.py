"""Import every folder of published benchmarks, with its preset and by the mapping that is proposed.

``python benchmarks/import_table.py`` prints a Markdown table of both, what was refused and why; with ``--items`` one
item of each follows, as a subject is asked it, to be read by a person. Data: ``ADAPTIVE_EVAL_DATA`` (../shared/data).
"""

from __future__ import annotations

import argparse
import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pytest_adaptive_eval.errors import AdaptiveEvalError
from pytest_adaptive_eval.extensions.importing.base import Imported, ImportSettings
from pytest_adaptive_eval.extensions.importing.importer import import_items
from pytest_adaptive_eval.extensions.importing.sources import data_files, splits_of

#: Preset of each folder, and the file in it where the preset is for one; folders without have no preset.
PRESETS = {
    "arc": ("arc", ""),
    "arc_hf_arrow": ("arc", ""),
    "bbh": ("bbh", ""),
    "bigbench": ("bigbench", ""),
    "boolq": ("boolq", ""),
    "boolq_hf_arrow": ("boolq", ""),
    "commonsenseqa_hf_arrow": ("commonsenseqa", ""),
    "drop": ("drop", ""),
    "gsm8k": ("gsm8k", ""),
    "hallusionbench": ("hallusionbench", ""),
    "hellaswag_hf_arrow": ("hellaswag", ""),
    "humaneval": ("humaneval", ""),
    "ifeval": ("ifeval", ""),
    "lambada_llmfoundry": ("lambada", "lambada_openai_first300.jsonl.gz"),
    "mathvision": ("math-vision", "testmini_with_images.jsonl"),
    "mbpp": ("mbpp", ""),
    "mgsm": ("mgsm", ""),
    "mmlu": ("mmlu", ""),
    "mmlu_hf_arrow": ("mmlu", ""),
    "mmlu_pro": ("mmlu-pro", ""),
    "mmmu": ("mmmu", ""),
    "mt_bench": ("mt-bench", ""),
    "nq_open": ("nq-open", ""),
    "openai_evals": ("openai-evals", ""),
    "openbookqa": ("openbookqa", ""),
    "openbookqa_hf_arrow": ("openbookqa", ""),
    "piqa": ("piqa", ""),
    "simpleqa": ("simpleqa", ""),
    "squad": ("squad", ""),
    "triviaqa": ("triviaqa", ""),
    "triviaqa_hf_arrow": ("triviaqa", ""),
    "truthfulqa": ("truthfulqa", ""),
    "winogrande_hf_arrow": ("winogrande", ""),
}


def _reasons(imported: Imported) -> str:
    return "; ".join(f"{count}: {reason}" for count, reason, _ in imported.reasons()[:3]) or "none"


def _first_split(folder: Path) -> str:
    """Return the first of several splits of a folder, as a person would name it; empty if there is one."""
    splits = splits_of(data_files(folder))
    return splits[0] if len(splits) > 1 else ""


def _row(folder: Path, file: str, preset: str) -> tuple[str, Imported | None]:
    """Return the cells of one import, and its result."""
    source = folder / file if file else folder
    command = f"import {source.relative_to(folder.parent)}{f' --preset {preset}' if preset else ''}"
    try:
        split = "" if preset or not source.is_dir() else _first_split(source)
        with import_items(str(source), ImportSettings(split=split), preset) as found:
            graders = ", ".join(
                f"{count} {name}" for name, count in Counter(i.grader for i in found.items).most_common()
            )
            cells = [command, f"{len(found.items)} of {found.read}", graders, _reasons(found)]
            cells.append(", ".join(field.name for field in found.unused if field.needed) or "none")
            return _line(cells), found
    except AdaptiveEvalError as error:
        return _line([command, "refused", "", str(error).replace(f"{folder.parent}/", ""), ""]), None


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|').replace(chr(10), ' ')[:400] for cell in cells)} |"


def _example(imported: Imported, seed: int) -> Iterator[str]:
    item = random.Random(seed).choice(imported.items)
    text = item.prompt or "\n".join(f"{part['role']}: {part['content']}" for part in item.messages)
    yield f"\n### {item.id}\n\n```\n{text[-1200:]}\n```\n"
    yield f"answer {item.to_json().get('answer', '')!r}, grader {item.grader}, images {len(item.images)}"


def main() -> None:
    """Print the table, and one item of each folder where wanted."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--items", action="store_true", help="show one item of each folder")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of the item")
    parser.add_argument("--only", default="", help="one folder")
    options = parser.parse_args()
    base = Path(os.environ.get("ADAPTIVE_EVAL_DATA", "../shared/data")).resolve() / "benchmarks"
    examples: list[str] = []
    print(_line(["command", "items of records", "graders", "refused", "fields to decide on"]))
    print(_line(["---"] * 5))
    for folder in sorted(path for path in base.iterdir() if path.is_dir()):
        if options.only not in ("", folder.name):
            continue
        preset, file = PRESETS.get(folder.name, ("", ""))
        kinds = [("", ""), (preset, file)] if preset else [("", "")]
        shown: Imported | None = None
        for name, part in kinds:
            row, found = _row(folder, part, name)
            print(row, flush=True)
            shown = found if found is not None and found.items else shown
        if shown is not None:
            examples += [f"\n## {folder.name}", *_example(shown, options.seed)]
    if options.items:
        print("\n".join(examples))


if __name__ == "__main__":
    main()
