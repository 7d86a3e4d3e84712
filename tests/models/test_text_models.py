"""Text checkpoints as trainers save them, through transformers itself."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_adaptive_eval.errors import CheckpointError, ConfigError, Unscored
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.models import load_model
from pytest_adaptive_eval.models.checkpoint import prompting

torch: Any = pytest.importorskip("torch", reason="real checkpoints need torch (extra hf)")
transformers: Any = pytest.importorskip("transformers", reason="real checkpoints need transformers (extra hf)")

from pytest_adaptive_eval.models.checkpoint import loading  # noqa: E402
from pytest_adaptive_eval.models.checkpoint.generation import Prompt, _window  # noqa: E402
from pytest_adaptive_eval.models.checkpoint.model import TransformersModel  # noqa: E402

FAMILIES = ["llama", "qwen2", "qwen3", "gemma2", "phi3", "mistral"]
PROMPTS = ["how many circles are there", "seven", "the answer is two plus five and the question was seven 0 1 2", "a"]
ITEMS = [Item(f"i{n}", prompt) for n, prompt in enumerate(PROMPTS)]


def plain(folder: Path, prompt: str, tokens: int = 12) -> str:
    """What `model.generate` gives without this project."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    if tokenizer.chat_template:
        chat = [{"role": "user", "content": prompt}]
        ids = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    else:
        ids = tokenizer(prompt, return_tensors="pt")
    ids = {name: ids[name] for name in ("input_ids", "attention_mask")}
    output = model.generate(**ids, max_new_tokens=tokens, do_sample=False)
    return str(tokenizer.decode(output[0, ids["input_ids"].shape[1] :], skip_special_tokens=True))


def load(folder: Path, **options: Any) -> TransformersModel:
    return TransformersModel.load(folder, **{"device": "cpu", "max_tokens": 12, **options})


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_text_is_that_of_plain_generate(checkpoints: Any, family: str, no_network: list[object]) -> None:
    folder = checkpoints.text(family)
    subject = load(folder, batch_size=3)
    expected = [plain(folder, prompt) for prompt in PROMPTS]
    assert len(set(expected)) == len(PROMPTS)
    assert [c.text for c in subject.answer(ITEMS)] == expected
    assert [subject.answer([item])[0].text for item in ITEMS] == expected
    assert subject.answer(ITEMS[::-1]) == subject.answer(ITEMS)[::-1]


def test_each_question_of_a_batch_has_its_own_cap_and_start_of_text(checkpoints: Any) -> None:
    folder = checkpoints.text("llama")
    start = transformers.AutoTokenizer.from_pretrained(folder).bos_token
    subject = load(folder, batch_size=8, max_tokens=None)
    caps = [replace(item, meta={"max_tokens": 2 + 5 * (n % 2)}) for n, item in enumerate(ITEMS)]
    items = [*caps, *(replace(item, prompt=start + item.prompt) for item in caps)]
    alone = [subject.answer([item])[0] for item in items]
    assert subject.answer(items) == alone
    assert {answer.detail for answer in alone} == {f"not finished after {cap} tokens" for cap in (2, 7)}


@pytest.mark.parametrize("change", [{"cap": 8}, {"special": False}, {"images": (("a.png", "folder"),)}])
def test_prompts_that_differ_in_how_they_are_read_are_of_different_batches(change: dict[str, Any]) -> None:
    prompt = Prompt("item 'a'", "seven", special=True, cap=7)
    assert replace(prompt, **change).group != prompt.group == replace(prompt, name="item 'b'", text="eight").group


@pytest.mark.parametrize(("told", "known"), [(None, None), ("64", None), (0, None), (-1, None), (64, 64)])
def test_the_context_of_a_model_is_known_where_its_config_has_one(told: Any, known: int | None) -> None:
    config = SimpleNamespace(max_position_embeddings=told)
    config.get_text_config = lambda decoder: config
    assert _window(SimpleNamespace(config=config)) == known


def test_the_cost_counts_each_token_read_and_written(checkpoints: Any) -> None:
    folder = checkpoints.text("llama")
    subject = load(folder, batch_size=2)
    begun = time.perf_counter()
    answers = subject.answer(ITEMS[:2])
    elapsed = time.perf_counter() - begun
    parameters = sum(p.numel() for p in transformers.AutoModelForCausalLM.from_pretrained(folder).parameters())
    usage = subject.usage
    assert usage.calls == len(answers) == 2
    assert usage.flops == 2 * parameters * (usage.prompt_tokens + usage.completion_tokens) > 0
    assert 0 < usage.seconds <= elapsed


def test_identity_and_environment(checkpoints: Any, tmp_path: Path) -> None:
    folder = checkpoints.text("phi3")
    identity = load(folder, cache=tmp_path).identity
    assert identity.name == "phi3"
    assert len(identity.checkpoint) == 64
    assert identity.decoding == {"max_tokens": 12, "temperature": 0.0, "seed": None, "template": "raw"}
    # Saved in half precision, which a CPU computes slowly.
    assert json.loads((folder / "config.json").read_text())["dtype"] == "float16"
    assert identity.environment == {
        "device": "cpu",
        "dtype": "float32",
        "threads": torch.get_num_threads(),
        "batch_size": 16,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    assert load(folder, dtype="bfloat16").identity.environment["dtype"] == "bfloat16"
    assert (tmp_path / "checkpoint-hashes.json").exists()
    assert load(checkpoints.text("qwen3"), temperature=0.5).identity.decoding["seed"] == 0
    assert load(checkpoints.text("qwen3"), seed=3, temperature=0.5).identity.decoding == {
        "max_tokens": 12,
        "temperature": 0.5,
        "seed": 3,
        "template": "chat",
        "template_date": "2025-01-01",
    }


def test_a_hub_cache_with_its_links(checkpoints: Any, tmp_path: Path) -> None:
    repository = tmp_path / "models--organisation--name"
    snapshot = repository / "snapshots" / "0123abc"
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0123abc")
    shutil.copytree(checkpoints.text("llama"), repository / "blobs")
    for blob in list((repository / "blobs").iterdir()):
        (snapshot / blob.name).symlink_to(f"../../blobs/{blob.name}")
    subject = load_model(str(repository), device="cpu", max_tokens=12)
    assert subject.identity.name == "organisation/name"
    assert subject.identity.checkpoint == load(checkpoints.text("llama")).identity.checkpoint
    assert subject.answer(ITEMS)[0].text == plain(snapshot, PROMPTS[0])


def test_the_cap_of_an_item(checkpoints: Any) -> None:
    subject = load(checkpoints.text("llama"), max_tokens=None)
    assert subject.identity.decoding["max_tokens"] == 1024
    assert load(checkpoints.text("llama"), max_tokens=None, reasoning=True).identity.decoding["max_tokens"] == 16384
    short = Item("s", PROMPTS[0], meta={"max_tokens": 2})
    given = subject.answer([*ITEMS, short])
    assert given[4].status is given[0].status is Status.TRUNCATED
    assert given[4].detail == "not finished after 2 tokens"
    assert len(given[4].text) < len(given[0].text)
    assert given[0].text.startswith(given[4].text)
    (chosen,) = load(checkpoints.text("llama"), max_tokens=12).answer([short])
    assert chosen.detail == "not finished after 12 tokens"
    for wrong in (0, True, "4", None):
        assert subject.answer([Item("w", "a", meta={"max_tokens": wrong})])[0].status is Status.ERROR


def ending_at(folder: Path, token: int, edit_json: Callable[..., None]) -> Path:
    """Make a token end the answer, by the checkpoint's generation settings, which also try to sample."""
    edit_json(
        folder / "generation_config.json", eos_token_id=[1, token], do_sample=True, temperature=9.0, min_new_tokens=9
    )
    return folder


def tokens_of(folder: Path, prompt: str) -> list[int]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
    return list(model.generate(ids, max_new_tokens=12, do_sample=False)[0, ids.shape[1] :].tolist())


def test_an_answer_ends_at_any_end_token_of_the_checkpoint(
    checkpoints: Any, tmp_path: Path, edit_json: Callable[..., None]
) -> None:
    folder = checkpoints.copy("llama", tmp_path)
    tokens = tokens_of(folder, PROMPTS[0])
    end = next(n for n in range(2, 12) if tokens[n] not in tokens[:n])
    whole = load(folder).answer(ITEMS)[0].text
    subject = load(ending_at(folder, tokens[end], edit_json))
    for given in (subject.answer(ITEMS)[0], subject.answer(ITEMS[:1])[0]):
        assert given.status is Status.OK
        assert given.text == transformers.AutoTokenizer.from_pretrained(folder).decode(tokens[:end])
        assert whole.startswith(given.text)


def test_nothing_but_an_end_is_empty(checkpoints: Any, tmp_path: Path, edit_json: Callable[..., None]) -> None:
    folder = checkpoints.copy("llama", tmp_path)
    subject = load(ending_at(folder, tokens_of(folder, PROMPTS[0])[0], edit_json))
    assert subject.answer(ITEMS)[0].status is Status.EMPTY
    with pytest.raises(Unscored, match="empty: nothing but white space"):
        subject.generate(PROMPTS[0])


def test_an_empty_prompt_is_answered(checkpoints: Any) -> None:
    for family in ("llama", "qwen3"):
        given = load(checkpoints.text(family)).answer([Item("none", ""), ITEMS[0]])
        assert [c.status for c in given] == [Status.TRUNCATED] * 2


def test_sampling_depends_on_seed_and_prompt_alone(checkpoints: Any) -> None:
    folder = checkpoints.text("llama")
    hot = load(folder, temperature=5.0, seed=1)
    alone = [hot.answer([item])[0].text for item in ITEMS]
    assert [c.text for c in hot.answer(ITEMS)] == alone
    assert [c.text for c in load(folder, temperature=5.0, seed=1, batch_size=1).answer(ITEMS)] == alone
    assert [c.text for c in load(folder, temperature=5.0, seed=2).answer(ITEMS)] != alone
    assert alone != [c.text for c in load(folder).answer(ITEMS)]
    again = hot.answer([Item("x", PROMPTS[0], meta={"sample": n}) for n in (0, 1)])
    assert again[0].text == alone[0] != again[1].text
    assert hot.answer([Item("x", "a", meta={"sample": "first"})])[0].status is Status.ERROR


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(
    ("family", "temperature"), [("llama", 0.0), ("llama", 5.0), *((family, 5.0) for family in FAMILIES[1:])]
)
def test_ended_rows_leave_the_batch_for_waiting_ones(checkpoints: Any, family: str, temperature: float) -> None:
    """One token in twelve ends an answer, so lengths differ; the same texts take fewer steps than whole batches."""
    items = [Item(f"i{n}", f"{prompt} {n}") for n, prompt in enumerate(PROMPTS * 6)]

    def answers(batch_size: int) -> tuple[list[Any], int]:
        subject = load(checkpoints.text(family), batch_size=batch_size, max_tokens=60, temperature=temperature)
        generator: Any = subject._generator
        generator._ends = tuple(range(0, generator.loaded.model.config.vocab_size, 12))
        steps: list[int] = []
        generator.loaded.model.register_forward_hook(lambda *_: steps.append(1))
        given = subject.answer(items)
        return [(c.text, c.status, c.cost.completion_tokens) for c in given], len(steps)

    alone, total = answers(1)
    together, steps = answers(8)
    lengths = sorted(tokens for _, _, tokens in alone)
    assert together == alone
    assert total == sum(lengths)
    assert lengths[-1] > 1.5 * sum(lengths) / len(lengths)
    whole_batches = sum(max(tokens for _, _, tokens in alone[start : start + 8]) for start in range(0, len(alone), 8))
    assert steps < whole_batches


def test_a_batch_ends_when_idle_rows_have_cost_what_reading_again_does() -> None:
    """Rows of 3 and 5 tokens; the second ends at its first token, so the first has 3 + t at step t."""
    from pytest_adaptive_eval.models.checkpoint.generation import IdleRows

    idle = IdleRows([9], torch.tensor([3, 5, 2, 2]), [50, 50, 50, 2])
    tokens = torch.tensor([[1], [9], [9], [1]])
    told = [bool(idle(tokens, tokens).all()) for _ in range(6)]
    # idle rows so far: 0, 2, 5, 8, 11; read again: 4 + 3, 5, 6, 7, 8
    assert told[:5] == [False, False, False, True, True]


def test_sampling_follows_the_softmax() -> None:
    from pytest_adaptive_eval.models.checkpoint.generation import Chooser

    n, temperature = 4000, 2.0
    logits = torch.tensor([0.0, 1.0, 2.0, -1e30])
    chooser = Chooser([torch.Generator().manual_seed(seed) for seed in range(n)], temperature)
    drawn = chooser(torch.zeros(n, 1, dtype=torch.long), logits.expand(n, 4)).argmax(-1).bincount(minlength=4) / n
    # Five standard errors of a share of 4000 draws.
    assert torch.allclose(drawn, (logits / temperature).softmax(-1), atol=5 * (0.25 / n) ** 0.5)


def test_messages_and_the_fixed_date(checkpoints: Any, tmp_path: Path) -> None:
    folder = checkpoints.copy("qwen3", tmp_path)
    (folder / "chat_template.jinja").write_text(
        "\n  {% if strftime_now is defined %}{{ strftime_now('%d %b %Y') }}{% endif %}{{ messages[-1]['content'] }}"
    )
    prompter = load(folder)._prompter
    assert prompter.text(Item("a", "seven")) == "\n01 Jan 2025seven"
    chat = (
        {"role": "user", "content": "two"},
        {"role": "assistant", "content": "five"},
        {"role": "user", "content": "a"},
    )
    assert prompter.text(Item("a", messages=chat)) == "\n01 Jan 2025a"
    raw = load(checkpoints.text("llama")).answer([Item("a", messages=chat)])[0]
    assert (raw.status, "no chat template" in raw.detail) == (Status.ERROR, True)


def test_images_for_a_text_model_are_an_error_of_that_item(checkpoints: Any) -> None:
    given = load(checkpoints.text("llama")).answer([Item("a", "x", images=("a.png",)), ITEMS[0]])
    assert [c.status for c in given] == [Status.ERROR, Status.TRUNCATED]
    assert "reads text only" in given[0].detail


def test_a_prompt_must_fit_the_model(checkpoints: Any) -> None:
    given = load(checkpoints.text("llama")).answer([Item("long", "a " * 200), Item("tight", "@" * 125), ITEMS[0]])
    assert [c.status for c in given] == [Status.ERROR, Status.TRUNCATED, Status.TRUNCATED]
    assert "at most 128" in given[0].detail
    assert given[1].detail == "not finished after 3 tokens"


class Panic(BaseException):
    """As the tokenizers library raises one: no Exception."""


@pytest.mark.parametrize("fault", [Panic("index out of bounds"), RuntimeError("out of memory"), TimeoutError("late")])
def test_one_bad_item_does_not_spoil_its_batch(
    checkpoints: Any, monkeypatch: pytest.MonkeyPatch, fault: BaseException
) -> None:
    subject = load(checkpoints.text("llama"))
    expected = subject.answer(ITEMS)
    generator: Any = subject._generator
    real = generator.encode

    def encode(batch: Any) -> Any:
        if any(prompt.name == "item 'bad'" for prompt in batch):
            raise fault
        return real(batch)

    monkeypatch.setattr(generator, "encode", encode)
    given = subject.answer([ITEMS[0], Item("bad", "seven"), *ITEMS[1:]])
    assert given[:1] + given[2:] == expected
    assert given[1].status is (Status.TIMEOUT if isinstance(fault, TimeoutError) else Status.ERROR)
    assert str(fault) in given[1].detail


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, pytest.fail.Exception, pytest.exit.Exception])
@pytest.mark.parametrize("where", ["encode", "_prompt"])
def test_what_ends_a_run_or_a_test_passes_through(
    checkpoints: Any, monkeypatch: pytest.MonkeyPatch, stop: type[BaseException], where: str
) -> None:
    subject = load(checkpoints.text("llama"))

    def interrupt(*_: object) -> None:
        raise stop("stop")

    monkeypatch.setattr(subject._generator if where == "encode" else subject, where, interrupt)
    with pytest.raises(stop):
        subject.answer(ITEMS)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_weights_that_are_not_finite(
    checkpoints: Any, tmp_path: Path, edit_weights: Callable[..., None], value: float
) -> None:
    folder = checkpoints.copy("llama", tmp_path)
    weight = torch.zeros(32)
    weight[5] = value
    edit_weights(folder, **{"model.layers.1.input_layernorm.weight": weight})
    with pytest.raises(CheckpointError, match=r"'model\.layers\.1\.input_layernorm\.weight' .* not finite"):
        load(folder)


def test_logits_that_are_not_finite_are_an_error_and_no_score(
    checkpoints: Any, tmp_path: Path, edit_weights: Callable[..., None]
) -> None:
    folder = checkpoints.copy("llama", tmp_path)
    edit_weights(folder, **{"model.norm.weight": torch.full((32,), 3e38)})
    subject = load(folder)
    for completion in subject.answer(ITEMS):
        assert (completion.status, completion.detail) == (Status.ERROR, "non-finite logits at token 1 of the answer")
    with pytest.raises(Unscored, match="non-finite logits"):
        subject.generate("a")


def test_one_row_that_is_not_finite_does_not_spoil_the_others(
    checkpoints: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = load(checkpoints.text("llama"))
    expected = subject.answer(ITEMS)
    from pytest_adaptive_eval.models.checkpoint.generation import Chooser

    real = Chooser.__call__

    def poisoned(self: Any, input_ids: Any, scores: Any) -> Any:
        scores = scores.clone()
        scores[-1, 3] = float("nan")
        return real(self, input_ids, scores)

    monkeypatch.setattr(Chooser, "__call__", poisoned)
    given = subject.answer(ITEMS)
    faulty = [n for n, completion in enumerate(given) if completion.status is Status.ERROR]
    assert len(faulty) == 1
    assert [c for n, c in enumerate(given) if n not in faulty] == [c for n, c in enumerate(expected) if n not in faulty]


def test_tensors_must_be_complete(checkpoints: Any, tmp_path: Path, edit_weights: Callable[..., None]) -> None:
    folder = checkpoints.copy("llama", tmp_path)
    edit_weights(folder, **{"model.layers.0.mlp.up_proj.weight": None})
    with pytest.raises(
        CheckpointError, match=r"missing from the file, and would be random: model\.layers\.0\.mlp\.up_proj"
    ):
        load(folder)


def test_a_tied_tensor_is_not_missing_and_an_untied_one_is(
    checkpoints: Any, tmp_path: Path, edit_json: Callable[..., None]
) -> None:
    from safetensors import safe_open

    folder = checkpoints.copy("llama", tmp_path)
    with safe_open(folder / "model.safetensors", "pt") as file:
        assert "lm_head.weight" not in file.keys()  # noqa: SIM118 - the file is no mapping
    load(folder)
    edit_json(folder / "config.json", tie_word_embeddings=False)
    with pytest.raises(CheckpointError, match=r"missing .*lm_head\.weight"):
        load(folder)


def test_no_tensor_may_be_left_over(checkpoints: Any, tmp_path: Path, edit_weights: Callable[..., None]) -> None:
    folder = checkpoints.copy("llama", tmp_path)
    edit_weights(folder, **{"model.layers.7.mlp.up_proj.weight": torch.zeros(2)})
    with pytest.raises(CheckpointError, match=r"in the file and not in the model: model\.layers\.7"):
        load(folder)


def test_shapes_must_agree(checkpoints: Any, tmp_path: Path, edit_weights: Callable[..., None]) -> None:
    folder = checkpoints.copy("llama", tmp_path)
    edit_weights(folder, **{"model.norm.weight": torch.ones(33)})
    with pytest.raises(CheckpointError, match=r"model\.norm\.weight \(\[33\] in the file, \[32\] in the model\)"):
        load(folder)


def test_a_damaged_tokenizer_names_itself(checkpoints: Any, tmp_path: Path) -> None:
    folder = checkpoints.copy("llama", tmp_path)
    (folder / "tokenizer.json").write_text('{"version": "1.0", "model": {"type": "none"}}')
    with pytest.raises(CheckpointError, match=r"its tokenizer cannot be loaded .*tokenizer\.save_pretrained"):
        load(folder)


@pytest.mark.parametrize("error", [Panic("unwrap on None"), ValueError("x" * 5000)])
def test_a_tokenizer_that_breaks(checkpoints: Any, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", broken)
    with pytest.raises(CheckpointError, match=f"its tokenizer cannot be loaded .{type(error).__name__}") as caught:
        load(checkpoints.text("llama"))
    assert len(str(caught.value)) < 1000


#: A part of a normaliser that writes ten letters for each.
GROWS = {"type": "Replace", "pattern": {"Regex": "."}, "content": "a" * 10}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "more", "part"),
    [
        ("tokenizer_config.json", {"extra_special_tokens": [f"<{n}>" for n in range(10**5)]}, "tokenizer"),
        ("tokenizer_config.json", {"tokenizer_class": "T5Tokenizer", "extra_ids": 10**9}, "tokenizer"),
        (
            "tokenizer.json",
            {
                "normalizer": {
                    "type": "Sequence",
                    "normalizers": [GROWS] * 12,
                }
            },
            "tokenizer",
        ),
        ("config.json", {"num_labels": 10**9}, "config"),
    ],
)
def test_files_that_build_for_ever(
    checkpoints: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    edit_json: Callable[..., None],
    file: str,
    more: dict[str, Any],
    part: str,
) -> None:
    monkeypatch.setattr(loading, "LOAD_SECONDS", 1.0)
    folder = checkpoints.copy("llama", tmp_path)
    edit_json(folder / file, **more)
    with pytest.raises(CheckpointError, match=rf"loading the {part} of .*(took longer|needed more|ends with)"):
        load(folder)


@pytest.mark.slow
def test_an_encoder_is_no_subject(checkpoints: Any, tmp_path: Path) -> None:
    sizes = {name: checkpoints.sizes()[name] for name in ("vocab_size", "pad_token_id", "eos_token_id")}
    config = transformers.T5Config(d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2, **sizes)
    transformers.T5ForConditionalGeneration(config).save_pretrained(tmp_path)
    checkpoints.tokenizer().save_pretrained(tmp_path)
    with pytest.raises(
        CheckpointError, match=r"the text model \(T5ForConditionalGeneration\) cannot be loaded"
    ) as caught:
        load(tmp_path)
    assert len(str(caught.value)) < 1000


def test_a_prompt_that_is_no_unicode_costs_its_item_alone(checkpoints: Any) -> None:
    for family in ("llama", "qwen3"):
        given = load(checkpoints.text(family)).answer([Item("bad", "\ud800"), ITEMS[0]])
        assert [c.status for c in given] == [Status.ERROR, Status.TRUNCATED]


def test_an_unknown_architecture_is_an_error(checkpoints: Any, tmp_path: Path, edit_json: Callable[..., None]) -> None:
    folder = checkpoints.copy("llama", tmp_path)
    edit_json(folder / "config.json", model_type="no-such-model")
    with pytest.raises(CheckpointError, match=r"no-such-model|cannot be loaded"):
        load(folder)


LOOP = (
    "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}{% endfor %}{% endfor %}{% endfor %}"
)


@pytest.mark.slow
def test_a_template_that_never_ends(checkpoints: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompting, "RENDER_SECONDS", 0.9)
    folder = checkpoints.copy("qwen3", tmp_path)
    for endless in ("{{ 9**(9**9) }}", "{{ 'a' * 10**11 }}"):
        (folder / "chat_template.jinja").write_text(endless)
        with pytest.raises(
            CheckpointError, match=r"rendering the chat template .* was given up; .*chat_template\.jinja"
        ):
            load(folder)
    (folder / "chat_template.jinja").write_text("{% if messages[0]['content'] == 'seven' %}" + LOOP + "{% endif %}x")
    given = load(folder).answer(ITEMS)
    assert [c.status for c in given] == [Status.TRUNCATED, Status.TIMEOUT, Status.TRUNCATED, Status.TRUNCATED]


@pytest.mark.parametrize("template", ["{% for %}", "{{ raise_exception('no') }}", "{{ messages.append(1) }}"])
def test_a_template_that_does_not_render(checkpoints: Any, tmp_path: Path, template: str) -> None:
    folder = checkpoints.copy("qwen3", tmp_path)
    (folder / "chat_template.jinja").write_text(template)
    with pytest.raises(CheckpointError, match=r"does not render one user message .*chat_template\.jinja"):
        load(folder)


def test_a_template_that_refuses_a_system_text_says_so(checkpoints: Any, tmp_path: Path) -> None:
    folder = checkpoints.copy("qwen3", tmp_path)
    refusing = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}x"
    (folder / "chat_template.jinja").write_text(refusing)
    chat = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"})
    (completion,) = load(folder).answer([Item("a", "", messages=chat)])
    assert completion.status is Status.ERROR
    assert "which the chat template refuses" in completion.detail
    assert "System role not supported" in completion.detail


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"batch_size": 1.5}, "batch_size"),
        ({"temperature": -1.0}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"temperature": float("inf")}, "temperature"),
        ({"temperature": "0"}, "temperature is '0', expected a number"),
        ({"seed": 1.5}, "seed is 1.5, expected a whole number"),
        ({"dtype": "int8"}, "int8"),
        ({"device": "abacus"}, "abacus"),
        ({"speed": 3}, "no option speed; expected serve, device, dtype"),
    ],
)
def test_settings_out_of_range(checkpoints: Any, options: dict[str, Any], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        load_model(str(checkpoints.text("llama")), **options)


def test_a_closed_subject_says_so(checkpoints: Any) -> None:
    subject = load(checkpoints.text("llama"))
    subject.close()
    with pytest.raises(ConfigError, match="was closed"):
        subject.answer(ITEMS)
    assert load(checkpoints.text("llama")).answer([]) == []


def test_turns_need_a_chat_template(checkpoints: Any, tmp_path: Path) -> None:
    items = [Item("plain", "two"), Item("talk", "two", turns=("five",))]
    raw = load(checkpoints.text("llama"))
    raw.prepare(items[:1])
    with pytest.raises(ConfigError, match=r"item 'talk' has turns, and .* no chat template"):
        raw.prepare(items)
    folder = checkpoints.copy("qwen3", tmp_path)
    (folder / "chat_template.jinja").write_text("{{ messages[-1]['content'] }}")
    load(folder).prepare(items)
