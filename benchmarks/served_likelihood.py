"""Compare log-likelihoods by a server of a fixture checkpoint with those of the checkpoint in this process.

Start a server, such as ``vllm serve fixtures/checkpoints/text-late --dtype float32 --served-model-name text-late``.
Then ``python benchmarks/served_likelihood.py http://127.0.0.1:8000/v1#text-late [--likelihoods echo] [--items N]``.
``--record FILE`` writes the server's replies to the first items, which the tests of the endpoint read.
"""

from __future__ import annotations

import argparse
import json
import logging
import urllib.request
from pathlib import Path
from typing import Any

from likelihood import BATCH, FIXTURES, by_likelihood, choice_items

from pytest_adaptive_eval.items.likelihood import NORMALIZATIONS
from pytest_adaptive_eval.models import load_model
from pytest_adaptive_eval.models.endpoint.likelihood import METHODS, PROBES

CHECKPOINT = FIXTURES / "checkpoints" / "text-late"
#: Text of the token that begins a document for this checkpoint.
BEGIN = "</s>"
RECORDED_ITEMS = 3


def compare(spec: str, likelihoods: str, count: int) -> None:
    """Print the largest difference and the number of equal choices by normalization."""
    items = choice_items(count, prefixed=False)
    served = load_model(spec, api="completions", likelihoods=likelihoods, begin_text=BEGIN)
    local = load_model(str(CHECKPOINT), batch_size=BATCH, device="cpu")
    served.prepare(by_likelihood(items, "pmi"))
    for normalization in NORMALIZATIONS:
        asked = by_likelihood(items, normalization)
        pairs = list(zip(local.answer(asked), served.answer(asked), strict=True))
        faults = [there.detail for _, there in pairs if not there.likelihood]
        difference = max(
            abs(a - b)
            for here, there in pairs
            if there.likelihood
            for name in ("log_likelihoods", "unconditional")
            for a, b in zip(here.likelihood.get(name, []), there.likelihood.get(name, []), strict=True)
        )
        same = sum(here.text == there.text for here, there in pairs)
        print(
            f"{normalization}: {same} of {len(items)} choices equal, differences at most {difference:.1e} {faults[:1]}"
        )
    served.close()


def record(spec: str, path: Path) -> None:
    """Write the server's replies to all requests that the first items need."""
    base, _, model = spec.partition("#")
    items = choice_items(RECORDED_ITEMS, prefixed=False)
    texts = [*PROBES, BEGIN, BEGIN + items[0].prompt]
    for item in items:
        texts += [item.prompt, *(f"{item.prompt} {choice}" for choice in item.choices)]
        texts += [f"{BEGIN} {choice}" for choice in item.choices]
    replies: dict[str, dict[str, Any]] = {
        name: {text: _post(base, model, text, dict(method.fields)) for text in dict.fromkeys(texts)}
        for name, method in METHODS.items()
    }
    replies["plain"] = {"Hi": _post(base, model, "Hi", {})}
    data = {"items": [item.to_json() for item in items], "replies": replies}
    path.write_text(json.dumps(data, indent=None, separators=(",", ":")) + "\n")
    print(f"{sum(map(len, replies.values()))} replies in {path}, {path.stat().st_size} bytes")


def _post(base: str, model: str, text: str, fields: dict[str, Any]) -> dict[str, Any]:
    body = {"model": model, "prompt": text, "max_tokens": 1, "temperature": 0.0, "stream": False, **fields}
    request = urllib.request.Request(
        f"{base}/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=120) as reply:
        data: dict[str, Any] = json.load(reply)
    return data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("spec")
    parser.add_argument("--likelihoods", choices=sorted(METHODS), default="prompt_logprobs")
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    if options.record:
        record(options.spec, options.record)
    else:
        compare(options.spec, options.likelihoods, options.items)


if __name__ == "__main__":
    main()
