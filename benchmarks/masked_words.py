"""Masked words of `masked` that other English words fit, and the table of positions that prevents it.

``python benchmarks/masked_words.py`` needs the package wordfreq, whose large English list is the lexicon. It compares
the stored sets of positions with those of the lexicon, and prints, for each level, the share of masked words in drawn
questions that another word of the lexicon fits.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict

from pytest_adaptive_eval.tasks import FAMILIES
from pytest_adaptive_eval.tasks.words import DIFFERENCES


def differences(word: str, others: list[str]) -> tuple[int, ...]:
    """Return the minimal sets of positions at which other words differ from a word, as bits."""
    sets = {sum(1 << i for i, (a, b) in enumerate(zip(word, other, strict=True)) if a != b) for other in others} - {0}
    return tuple(sorted(bits for bits in sets if not any(bits & less == less for less in sets - {bits})))


def main() -> None:
    """Print what the table lacks, and the shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--least", type=float, default=2.0, help="least Zipf frequency of a word (default %(default)s)")
    parser.add_argument("--queries", type=int, default=100, help="questions a level (default %(default)s)")
    arguments = parser.parse_args()
    from wordfreq import top_n_list, zipf_frequency

    by_length: defaultdict[int, list[str]] = defaultdict(list)
    for word in top_n_list("en", 1_000_000, wordlist="large"):
        if word.isascii() and word.isalpha() and zipf_frequency(word, "en", wordlist="large") >= arguments.least:
            by_length[len(word)].append(word)
    other = [word for word, sets in DIFFERENCES.items() if differences(word, by_length[len(word)]) != sets]
    print(f"{len(other)} of {len(DIFFERENCES)} words have other sets in the table: {', '.join(other) or 'none'}")
    family = FAMILIES["masked"]
    for level in range(1, family.levels + 1):
        masked = ambiguous = 0
        for seed in range(arguments.queries):
            text = family.question(level, seed).prompt.split("\n\n")[1].lower()
            for word in re.findall(r"[a-z*]*\*[a-z*]*", text):
                pattern = re.compile(word.replace("*", "."))
                masked += 1
                ambiguous += sum(pattern.fullmatch(known) is not None for known in by_length[len(word)]) != 1
        print(f"level {level}: {ambiguous} of {masked} masked words fit another word, {ambiguous / masked:.1%}")


if __name__ == "__main__":
    main()
