"""Signs that a server cuts prompts or answers and reports nothing."""

from __future__ import annotations

from collections import Counter

from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.models.base import Completion
from pytest_adaptive_eval.text import counted

#: Fewest answers of one length, and fewest tokens of it, that show a limit: short answers are often equally long.
FEWEST_ANSWERS, FEWEST_TOKENS = 10, 16


class CutSigns:
    """Counts of prompts that were read in part, and of the lengths of answers that ended by themselves."""

    def __init__(self) -> None:
        self._cut_prompts = 0
        self._example = ""
        self._lengths: Counter[int] = Counter()
        self._texts: set[str] = set()

    def note(self, item: Item, completion: Completion) -> None:
        """Count an answer of the server with the tokens that it reports."""
        words = _words(item)
        read = completion.cost.prompt_tokens
        if 0 < read < words:
            self._cut_prompts += 1
            self._example = f"{read} tokens for the {words} words of {item.id or 'a prompt'}"
        if completion.status is Status.OK:
            self._lengths[completion.cost.completion_tokens] += 1
            self._texts.add(completion.text)

    @property
    def warnings(self) -> list[str]:
        """Sentences on the signs; none without signs."""
        warnings = []
        if self._cut_prompts:
            warnings.append(
                f"the server cut {counted(self._cut_prompts, 'prompt')} without an error: it counted {self._example}, "
                "and a word is at least one token; raise its context (num_ctx, --max-model-len, -c)"
            )
        count = self._lengths.total()
        if len(self._lengths) == 1 and count >= FEWEST_ANSWERS and len(self._texts) > 1:
            (tokens,) = self._lengths
            if tokens >= FEWEST_TOKENS:
                warnings.append(
                    f"all {count} answers end after exactly {tokens} tokens, and none is marked as cut: the server may "
                    "cut them; check its own limit of tokens"
                )
        return warnings


def _words(item: Item) -> int:
    """Return the number of words of a request, the fewest tokens that any tokenizer makes of it."""
    contents = [item.prompt, *(message.get("content") for message in item.messages)]
    parts = []
    for content in contents:
        for part in content if isinstance(content, list) else [content]:
            parts.append(part)
    texts = [part.get("text", "") if isinstance(part, dict) else part for part in parts]
    return sum(len(text.split()) for text in texts if isinstance(text, str))
