"""Other English words with the letters of a word of `unscramble`, to compare with the stored table.

``python benchmarks/anagrams.py`` needs the package wordfreq, whose large English list is the lexicon. It prints a line
for each word that has anagrams at a Zipf frequency of at least ``--least``, and those of them that the table lacks:
names, abbreviations and foreign words.
"""

from __future__ import annotations

import argparse
from collections import defaultdict

from pytest_adaptive_eval.tasks.words import ANAGRAMS, WORDS


def main() -> None:
    """Print the anagrams of every word, and what the stored table lacks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--least", type=float, default=2.0, help="least Zipf frequency of an anagram (default %(default)s)"
    )
    least = parser.parse_args().least
    from wordfreq import top_n_list, zipf_frequency

    by_letters: defaultdict[str, list[str]] = defaultdict(list)
    for word in top_n_list("en", 1_000_000, wordlist="large"):
        if word.isascii() and word.isalpha() and zipf_frequency(word, "en", wordlist="large") >= least:
            by_letters["".join(sorted(word.upper()))].append(word.upper())
    with_anagrams = lacking = 0
    words = [word for same_length in WORDS.values() for word in same_length]
    for word in words:
        others = sorted(set(by_letters["".join(sorted(word))]) - {word})
        with_anagrams += bool(others)
        if others:
            print(word, *others)
        if missing := sorted(set(others) - set(ANAGRAMS.get(word, ()))):
            lacking += 1
            print(f"  the table lacks: {', '.join(missing)}")
    print(f"{with_anagrams} of {len(words)} words have anagrams; the table lacks some of {lacking}")


if __name__ == "__main__":
    main()
