"""Families whose truth needs more than one look."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.tasks import FAMILIES
from pytest_adaptive_eval.tasks.graphs import shortest
from pytest_adaptive_eval.tasks.words import ANAGRAMS, LEXICON, WORDS
from tests.tasks.solvers import matched

seeds = st.integers(0, 10**9)


def roads(prompt: str) -> list[tuple[str, str, int]]:
    return [(a, b, int(n)) for a, b, n in re.findall(r"([A-Z])-([A-Z]) (\d+)", prompt)]


@given(st.sampled_from(["path_nodes", "path_density"]), st.integers(1, 9), seeds)
def test_shortest_paths_are_those_of_networkx(name: str, level: int, seed: int) -> None:
    networkx = pytest.importorskip("networkx")
    question = FAMILIES[name].question(level, seed)
    edges = roads(question.prompt)
    start, end = re.findall(r"from ([A-Z]) to ([A-Z])", question.prompt)[0]
    graph = networkx.Graph()
    graph.add_weighted_edges_from(edges)
    assert str(networkx.dijkstra_path_length(graph, start, end)) == question.answer
    assert networkx.is_connected(graph)
    assert len(graph.edges) == len(edges)
    if name == "path_nodes":
        assert len(graph) == level + 3
        assert len(edges) == min(3 * len(graph) // 2, len(graph) * (len(graph) - 1) // 2)
    else:
        assert len(graph) == 11
        assert len(edges) == 10 + 5 * level


def test_no_path_is_an_error() -> None:
    with pytest.raises(ValueError, match="no path joins A and D"):
        shortest([("A", "B", 1), ("C", "D", 1)], "A", "D")


def test_the_words_of_sentences_can_be_told_apart() -> None:
    assert len({"".join(sorted(word)) for word in LEXICON}) == len(set(LEXICON)) == len(LEXICON)
    assert all(word.isalpha() and word.islower() for word in LEXICON)


@given(st.integers(1, 10), seeds)
def test_the_share_of_scrambled_words(level: int, seed: int) -> None:
    question = FAMILIES["scrambled"].question(level, seed)
    shown, truth = question.prompt.split("\n\n")[1].split(), question.answer.split()
    assert len(shown) == len(truth)
    longer = [i for i, word in enumerate(truth) if len(word.strip(".")) > 3]
    moved = [i for i, (a, b) in enumerate(zip(shown, truth, strict=True)) if a.casefold() != b.casefold()]
    assert set(moved) <= set(longer)
    assert len(moved) == -(-len(longer) * level // 10)
    for i in moved:
        assert sorted(shown[i].casefold()) == sorted(truth[i].casefold())


@given(st.integers(1, 10), seeds)
def test_the_share_of_hidden_letters(level: int, seed: int) -> None:
    question = FAMILIES["masked"].question(level, seed)
    shown = question.prompt.split("\n\n")[1]
    assert len(shown) == len(question.answer)
    letters = sum(letter.isalpha() for letter in question.answer)
    assert shown.count("*") == letters * level * 3 // 100
    assert all(a.casefold() == b.casefold() for a, b in zip(shown, question.answer, strict=True) if a != "*")
    for word in re.findall(r"[A-Za-z*]+", shown):
        assert sum(re.fullmatch(word.lower().replace("*", "."), known) is not None for known in LEXICON) == 1


@given(st.integers(1, 25), seeds)
def test_the_length_of_a_record(level: int, seed: int) -> None:
    record = FAMILIES["parsing"].question(level, seed).prompt.split("\n")[1]
    assert len(record) == 16 * level + 7
    fields = re.findall(r"[A-Z]\d[A-Z]", record)
    assert len(set(FAMILIES["parsing"].question(level, seed).answer.split(", "))) == 1 + (level - 1) // 4
    assert len(set(fields)) == len(fields) == 4 * level + 2


@given(st.integers(1, 13), seeds)
def test_the_share_of_sentences_that_matter(level: int, seed: int) -> None:
    question = FAMILIES["comprehension"].question(level, seed)
    text = question.prompt.split("\n\n")[0]
    assert text.count(".") == 3 * level + level // 3
    assert len(set(re.findall(r"[^.]+\.", text))) == 3 * level + level // 3


def test_noise_hides_the_shape_more_and_more_from_the_best_eye() -> None:
    family = FAMILIES["noise"].at_pixels(48)
    right = {
        level: sum(
            matched(family.picture(level, seed), level) == family.question(level, seed).answer for seed in range(15)
        )
        for level in (1, 5, 20)
    }
    assert right[1] == right[5] == 15
    assert right[20] <= 9


def test_every_word_of_the_letters_is_a_right_answer() -> None:
    family, words = FAMILIES["unscramble"], {word for same_length in WORDS.values() for word in same_length}
    assert ANAGRAMS.keys() <= words
    asked = 0
    for level in range(1, family.levels + 1):
        for seed in range(60):
            item = family.item(level, seed)
            for other in ANAGRAMS.get(item.answer, ()):
                asked += 1
                assert sorted(other) == sorted(item.answer)
                assert other not in words
                assert item.grade(other) == 1.0
                if other not in item.prompt:
                    assert item.grade(f"The letters make {other.lower()}.") == 1.0
                exported = Item(item.id, item.prompt, item.answer, others=item.others)
                assert exported.grade(other) == 1.0
            assert item.grade(item.answer) == 1.0
            assert item.grade(item.answer[1:]) == 0.0
    assert asked > 60
