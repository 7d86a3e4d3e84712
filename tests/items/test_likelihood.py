"""Scores of items from log-likelihoods of texts, and the form in which items are asked."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_adaptive_eval.banks import read_bank
from pytest_adaptive_eval.errors import BankError, ConfigError
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.likelihood import BitsPerByte, ChoiceLikelihood, Continuation
from pytest_adaptive_eval.items.presentation import (
    Example,
    Presentation,
    example_of,
    is_template,
    parse_template,
    presented,
)

ITEM = Item("a", "The sky is", "blue", "choice", choices=("blue", "dark at night", "gr\u00fcn"))


def asked(normalization: str, **settings: str) -> Item:
    return replace(ITEM, likelihood=ChoiceLikelihood(normalization, **settings))


# -4, -13, -5.5: by characters -1, -1, -1.375; by bytes -1, -1, -1.1; less the unconditional -1, -4, -5: -3, -9, -.5
LOGS = [-4.0, -13.0, -5.5]


@pytest.mark.parametrize(
    ("normalization", "logs", "text"),
    [
        ("raw", LOGS, "blue"),
        ("characters", [-4.0, -12.0, -5.5], "dark at night"),  # -12 / 13 is above -1
        ("characters", [-4.2, -14.0, -4.1], "gr\u00fcn"),  # four characters
        ("bytes", [-4.2, -14.0, -4.1], "gr\u00fcn"),  # five bytes
        ("bytes", [-4.0, -14.0, -5.2], "blue"),
        ("pmi", [*LOGS, -1.0, -4.0, -5.0], "gr\u00fcn"),
    ],
)
def test_the_normalization_decides_which_choice_is_preferred(normalization: str, logs: list[float], text: str) -> None:
    item = asked(normalization)
    result = item.likelihood_result(logs)
    assert (result.text, result.score) == (text, None)
    assert item.grade(result.text) == float(text == "blue")
    assert result.facts["log_likelihoods"] == logs[:3]
    assert result.facts["normalization"] == normalization
    assert result.facts.get("unconditional", []) == logs[3:]
    assert len(result.facts["scores"]) == 3


def test_the_scores_are_recorded() -> None:
    assert asked("bytes").likelihood_result(LOGS).facts["scores"] == pytest.approx([-1.0, -1.0, -1.1])
    assert asked("characters").likelihood_result(LOGS).facts["scores"] == pytest.approx([-1.0, -1.0, -1.375])


def test_choices_follow_the_prompt_after_the_delimiter() -> None:
    assert ITEM.continuations == []  # it is graded
    assert asked("raw").continuations == [Continuation(choice, " ") for choice in ITEM.choices]
    spaced = replace(asked("pmi"), prompt="The sky is\n")
    assert spaced.continuations == [
        *(Continuation(choice, "") for choice in ITEM.choices),
        *(Continuation(choice, " ", after_prompt=False) for choice in ITEM.choices),
    ]
    assert [one.text for one in asked("raw", candidates="letter").continuations] == ["A", "B", "C"]


def test_a_letter_stands_for_its_choice() -> None:
    item = asked("raw", candidates="letter")
    assert item.likelihood_result([-1.0, -0.5, -2.0]).text == "dark at night"


@pytest.mark.parametrize(("choices", "problem"), [((), "no choices"), (("blue",), "1 choices"), (("a", ""), "empty")])
def test_an_item_without_choices_to_compare_is_refused(choices: tuple[str, ...], problem: str) -> None:
    with pytest.raises(BankError, match=rf"item 'a' has .*{problem}"):
        _ = replace(asked("raw"), choices=choices).continuations


def test_the_scoring_is_part_of_the_content_hash() -> None:
    hashes = {ITEM.content_hash, *(asked(name).content_hash for name in ("raw", "bytes", "pmi"))}
    assert len({*hashes, asked("raw", delimiter="").content_hash}) == 5


@pytest.mark.parametrize(("log", "score"), [(0.0, 1.0), (-4 * math.log(2), 0.875), (-4 * 20 * math.log(2), 0.0)])
def test_bits_per_byte_of_a_text_are_its_score(log: float, score: float) -> None:
    item = Item("a", "four", grader="bits_per_byte", likelihood=BitsPerByte())
    result = item.likelihood_result([log])
    assert (result.text, result.score) == ("", pytest.approx(score))
    assert result.facts["bits_per_byte"] == pytest.approx(-log / math.log(2) / 4)
    assert item.continuations == [Continuation("four", after_prompt=False)]


def test_a_text_bank_needs_no_answers(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text('{"id": "a", "prompt": "Once upon a time.", "grader": "bits_per_byte"}\n')
    (item,) = read_bank(path).items
    assert item.likelihood == BitsPerByte()
    assert "likelihood" not in item.to_json()
    with pytest.raises(
        BankError, match=r"'a' is scored by the likelihood of its text.*item\.score\(model\.score\(item\)\)"
    ):
        item.grade("Once")


# templates


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{prompt} {choises}", r"the field \{choises\}, expected \{prompt\}, \{choices\}, \{examples\}"),
        ("{prompt!r}", r"the field \{prompt!r\}"),
        ("{prompt:>80}", r"the field \{prompt:>80\}"),
        ("{}", r"the field \{\}"),
        ("{prompt.__class__}", r"the field \{prompt\.__class__\}"),
        ("{examples}?", r"has no \{prompt\}"),
        ("{prompt", "malformed"),
        ("{prompt} {answer}!", r"may have \{answer\} once, as its end"),
        ("{prompt} {answer} {letter}", r"may have \{answer\} once, as its end"),
    ],
)
def test_a_template_that_cannot_be_filled_is_refused(template: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        parse_template(template)


@pytest.mark.parametrize(
    ("template", "parts"),
    [
        ("{prompt}", ("{prompt}", " ", "text")),
        ("{prompt}\n{choices}\nAnswer:", ("{prompt}\n{choices}\nAnswer:", " ", "letter")),
        ("{prompt} {{answer}}", ("{prompt} {{answer}}", " ", "text")),
        ("{prompt}{{answer}}{answer}", ("{prompt}{{answer}}", "", "text")),
        ("{prompt}\nAnswer:\n{letter}", ("{prompt}\nAnswer:", "\n", "letter")),
        ("{prompt}\n{choices}\n\n{answer}", ("{prompt}\n{choices}", "\n\n", "text")),
    ],
)
def test_the_end_of_a_template_says_what_follows_a_prompt(template: str, parts: tuple[str, str, str]) -> None:
    found = parse_template(template)
    assert (found.text, found.delimiter, found.candidates) == parts
    assert found.fields <= {"prompt", "choices"}


def test_a_question_is_the_prompt_in_a_template() -> None:
    assert parse_template("Q: {question} {{question}}\n{answer}") == parse_template(
        "Q: {prompt} {{question}}\n{answer}"
    )
    assert is_template("{question}?")
    with pytest.raises(ConfigError, match=r"the field \{prompt!r\}"):
        parse_template("{question!r}")


def test_a_template_lists_choices_and_keeps_braces() -> None:
    shown = Presentation("{{Q}} {prompt}\n{choices}\nAnswer:").present(ITEM)
    assert shown.prompt == "{Q} The sky is\nA. blue\nB. dark at night\nC. gr\u00fcn\nAnswer:"


def test_examples_are_shown_in_the_same_template_with_their_answers() -> None:
    examples = (Example("2 + 2 =", (), "4"), Example("Snow is", ("white", "hot"), "white"))
    form = Presentation("{examples}Q: {prompt}\nA:", examples)
    assert (
        form.present(Item("b", "3 + 3 =", "6")).prompt == "Q: 2 + 2 =\nA: 4\n\nQ: Snow is\nA: white\n\nQ: 3 + 3 =\nA:"
    )
    listed = Presentation("{examples}{prompt}\n{choices}\n", examples[1:], candidates="letter")
    assert listed.present(ITEM).prompt.startswith("Snow is\nA. white\nB. hot\nA\n\nThe sky is\nA. blue")


def test_an_item_is_not_shown_with_its_own_answer() -> None:
    examples = tuple(Example(f"{n} + {n} =", (), str(2 * n)) for n in range(3))
    form = Presentation(examples=examples)
    assert form.present(Item("a", "0 + 0 =", "0")).prompt == "1 + 1 = 2\n\n2 + 2 = 4\n\n0 + 0 ="
    assert form.present(Item("b", "9 + 9 =", "18")).prompt == "0 + 0 = 0\n\n1 + 1 = 2\n\n2 + 2 = 4\n\n9 + 9 ="


def test_what_is_no_example_is_refused() -> None:
    assert example_of(replace(ITEM, answer="A")) == Example("The sky is", ITEM.choices, "blue")
    with pytest.raises(ConfigError, match="'b' has messages or images"):
        example_of(Item("b", messages=({"role": "user", "content": "q"},), answer="x"))
    with pytest.raises(ConfigError, match="'b' expects '', which its own grader"):
        example_of(Item("b", "q"))


def test_what_no_template_can_hold_is_refused() -> None:
    form = Presentation("Q: {prompt}")
    with pytest.raises(BankError, match="'b' has messages, which no template can hold"):
        form.present(Item("b", messages=({"role": "user", "content": "q"},)))
    with pytest.raises(BankError, match="'b' has a text that is scored as it is"):
        form.present(Item("b", "text", grader="bits_per_byte", likelihood=BitsPerByte()))
    with pytest.raises(BankError, match=r"'b' has no choices, and the template has the field \{choices\}"):
        Presentation("{prompt}{choices}").present(Item("b", "q"))


def test_an_item_none_of_whose_choices_is_right_is_refused() -> None:
    form = Presentation(likelihood=ChoiceLikelihood())
    form.check(ITEM)
    with pytest.raises(BankError, match="'a': none of its choices is graded as right"):
        form.check(replace(ITEM, answer="grey", grader="exact"))


def test_a_presented_bank_has_a_hash_of_its_own_and_is_rebuilt_from_its_record() -> None:
    bank = ItemBank.uncalibrated("b", [ITEM], content_hash="0")
    form = Presentation("{examples}{prompt}", (Example("q", ("x", "y"), "x"),), ChoiceLikelihood("pmi"))
    shown = presented(bank, form)
    assert shown.items[0] == form.present(ITEM) == next(iter(shown.items))
    assert [shown.items[0]] == shown.items[:1]
    assert shown.content_hash not in ("0", presented(bank, replace(form, examples=())).content_hash)
    again = presented(bank, Presentation.from_json(shown.report["presentation"]))
    assert (again.content_hash, again.items[0]) == (shown.content_hash, shown.items[0])


def test_a_system_text_comes_before_prompt_and_messages() -> None:
    presentation = Presentation("Q: {prompt}", system="Be brief.")
    said = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Q: 1?"})
    assert presentation.present(Item("a", "1?")).messages == said
    assert Presentation.from_json(presentation.to_json()) == presentation
    assert "system" not in Presentation("Q: {prompt}").to_json()
    chat = Item("b", "", messages=({"role": "user", "content": "2?"},))
    assert [m["role"] for m in Presentation(system="Be brief.").present(chat).messages] == ["system", "user"]


def test_a_second_system_text_is_refused() -> None:
    chat = Item("b", "", messages=({"role": "system", "content": "x"}, {"role": "user", "content": "2?"}))
    with pytest.raises(BankError, match="'b' has a system message of its own: remove system"):
        Presentation(system="Be brief.").present(chat)
