"""Print the index of each document of lm-evaluation-harness by its hash, as JSON, by task.

``python lmeval_ids.py INCLUDE_PATH TASK ...`` runs in the harness's own environment. Equal documents have one hash, and
the first index.
"""

from __future__ import annotations

import json
import sys


def indices(include_path: str, tasks: list[str]) -> dict[str, dict[str, int]]:
    """Return the index of each document by task and hash."""
    from lm_eval.tasks import TaskManager
    from lm_eval.utils import handle_non_serializable, hash_string

    by_task: dict[str, dict[str, int]] = {}
    loaded = TaskManager(include_path=include_path or None).load(tasks)["tasks"]
    for name, task in loaded.items():
        by_hash = by_task.setdefault(str(name), {})
        for index, document in enumerate(task.eval_docs):
            text = json.dumps(document, indent=2, default=handle_non_serializable, ensure_ascii=False)
            by_hash.setdefault(hash_string(text), index)
    return by_task


if __name__ == "__main__":
    result = json.dumps(indices(sys.argv[1], sys.argv[2:]))
    sys.stdout.write(f"\n{result}\n")
