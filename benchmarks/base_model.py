"""Ask a checkpoint without a chat template behind llama.cpp, by completions and by chats, and in this process.

``pip install xllamacpp gguf`` and ``python benchmarks/base_model.py [--items N]``. Printed are, for the checkpoint in
this process and for each path of the server, the accuracy and the number of answers equal to those in this process.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "subjects"))

from real_servers import CHECKPOINT, llama_cpp, write_gguf

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.models import load_model

BANK = Path(__file__).parents[1] / "fixtures" / "banks" / "text.bank"


def main() -> None:
    """Print a row for each way of asking."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, help="the first items of the text bank; all by default")
    items = list(read_bank(BANK).items)[: parser.parse_args().items]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_gguf(CHECKPOINT, folder / "text-late.gguf", template="")
        server = llama_cpp(folder / "text-late.gguf", folder / "log.txt")
        server.start()
        try:
            answers = {
                "in this process": load_model(str(CHECKPOINT), device="cpu").answer(items),
                'api = "completions"': load_model(server.spec, api="completions").answer(items),
                'api = "chat"': load_model(server.spec).answer(items),
            }
        finally:
            server.kill()
    expected = [answer.text for answer in answers["in this process"]]
    for way, found in answers.items():
        same = sum(answer.text == text for answer, text in zip(found, expected, strict=True))
        scores = [answer.response(item).score or 0.0 for item, answer in zip(items, found, strict=True)]
        print(f"{way}: accuracy {sum(scores) / len(items):.3f}, {same} of {len(items)} answers equal", flush=True)


if __name__ == "__main__":
    main()
