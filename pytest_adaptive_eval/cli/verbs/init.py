"""``adaptive-eval init``: the first files of a project, from templates."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from pytest_adaptive_eval.cli.options import PASSED, check_writable
from pytest_adaptive_eval.cli.screen import save, say
from pytest_adaptive_eval.cli.verb import Verb
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.models.kind import ModelKind
from pytest_adaptive_eval.models.kinds.endpoint import EndpointKind
from pytest_adaptive_eval.models.kinds.providers import provider_variables
from pytest_adaptive_eval.models.kinds.replay import ReplayKind
from pytest_adaptive_eval.text import counted

CONFIG, WORKFLOW = "adaptive-eval.toml", ".github/workflows/adaptive-eval.yml"
ADDRESS = "ADAPTIVE_EVAL_MODEL"  #: Secret with the address of a server.
#: Fewest and most models by the value of ``--kind``, the candidate among them.
KINDS: Mapping[str, tuple[int, int]] = {
    "bank": (0, 1),
    "images": (1, 1),
    "ladder": (1, 1),
    "network": (1, 3),
    "panel": (3, 26),
}
#: Questions of the example.
_EXAMPLES = 60


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    text = (
        "questions of your own; pictures with and without words (M3-IRT); a ladder of generated questions; a network "
    )
    text += "of interviews (MACEval); a panel of models that judge each other (AutoBench); default: %(default)s"
    add("--kind", choices=sorted(KINDS), default="bank", help=text)
    text = "a checkpoint folder, or http://HOST:PORT/v1#MODEL; again for others that take part, the candidate first"
    add("--model", metavar="MODEL", action="append", default=[], help=text)
    text = "write the JSON Schema of adaptive-eval.toml alone, by which editors check and complete the file"
    add("--schema", metavar="FILE", type=Path, help=text)


def _run(options: argparse.Namespace) -> int:
    from pytest_adaptive_eval.evaluation.toml import file_schema
    from pytest_adaptive_eval.outputs import replacing

    if options.schema is not None:
        check_writable("--schema", options.schema)
        save(options.schema, file_schema())
        return PASSED
    files = files_of(options.kind, options.model)
    existing = [name for name in files if Path(name).exists()]
    if existing:
        raise ConfigError(f"{existing[0]} exists; remove or rename it, and run init again")
    for name, text in files.items():
        with replacing(Path(name)) as file:
            file.write(text.encode())
        say([f"wrote {name}"])
    say(["", "next: set the threshold in adaptive-eval.toml, then run", "  pytest --adaptive-eval"])
    return PASSED


def files_of(kind: str, models: Sequence[str]) -> dict[str, str]:
    """Return the first files of a project by name.

    Args:
        kind: One of `KINDS`.
        models: Texts that name the models, the candidate first.

    Raises:
        ConfigError: There are too few models or too many, or one names no kind of model.
    """
    from pytest_adaptive_eval.models import resolve

    fewest, most = KINDS[kind]
    if not fewest <= len(models) <= most:
        if len(models) < fewest:
            bound = f"at least {fewest}"
        else:
            bound = f"at most {most}"
        raise ConfigError(
            f"{counted(len(models), 'model')} for --kind {kind}, which takes {bound}: name each with --model FOLDER or "
            "--model http://HOST:PORT/v1#MODEL, the candidate first"
        )
    chats = kind in ("network", "panel")
    kinds = [resolve(spec, [Path()], chats=chats)[0] for spec in models]
    named = list(models) or ["replay:answers.jsonl"]
    agents = dict(zip(("interviewer", "supervisor"), named[1:] or named, strict=False))
    values = {
        "MODEL": json.dumps(named[0]),
        "AGENTS": ", ".join(f"{role} = {json.dumps(spec)}" for role, spec in agents.items()),
        "ROLES": "\n".join(f'{role} = "{role}"' for role in agents),
        "OTHERS": "\n".join(["[", *_peers(named), "]"]),
    }
    config = re.sub(r"\b(MODEL|AGENTS|ROLES|OTHERS)\b", lambda match: values[match[0]], _template(f"{kind}.toml"))
    files = {CONFIG: config, WORKFLOW: _workflow(models, kinds, chats=chats)}
    if kind == "bank":
        files |= _example(answered=not models)
    return files


def _workflow(models: Sequence[str], kinds: Sequence[ModelKind], *, chats: bool) -> str:
    """Return a workflow whose runner reaches the models.

    One server is reached by an address in a secret, a provider by the secrets of its settings. Folders, and several
    servers, need a runner of one's own.
    """
    extras = ",".join(sorted({kind.extra for kind in kinds if kind.extra}))
    address, runner = "", "ubuntu-latest"
    secrets = set()
    for spec, kind in zip(models, kinds, strict=True):
        needed = provider_variables(spec)
        if not needed and not chats and spec.startswith(EndpointKind.prefixes):
            needed = [ADDRESS]
            address = f' --adaptive-eval-model="${ADDRESS}"'
        secrets.update(needed)
        if not needed and not isinstance(kind, ReplayKind):
            runner = f"self-hosted # a runner of yours that reaches the models of {CONFIG}"
    lines = []
    for name in sorted(secrets):
        lines.append(f"          {name}: ${{{{ secrets.{name} }}}}")
    if address:
        lines[-1] += " # such as https://HOST/v1#NAME"
    environment = ["        env:", *lines] if lines else []
    values = {
        "EXTRAS": f"[{extras}]" if extras else "",
        "RUNNER": runner,
        "ARGUMENTS": "\n".join([address, *environment]),
    }
    return re.sub("EXTRAS|RUNNER|ARGUMENTS", lambda match: values[match[0]], _template("workflow.yml"))


def _template(name: str) -> str:
    return resources.files("pytest_adaptive_eval.cli").joinpath("templates", name).read_text("utf-8")


def _peers(models: Sequence[str]) -> list[str]:
    """Return the members after the candidate; one whose name is taken gets its own, and a system text to edit."""
    names = [re.split(r"[/#]", model.rstrip("/"))[-1] for model in models]
    peers = []
    for number, model in enumerate(models[1:], start=1):
        if names[number] not in names[:number]:
            peers.append(f"  {json.dumps(model)},")
            continue
        if model in models[:number]:
            system = f', system = "You are expert {number + 1}."'
        else:
            system = ""
        peers.append(f'  {{ name = "{names[number]}-{number + 1}", model = {json.dumps(model)}{system} }},')
    return peers


def _example(*, answered: bool) -> dict[str, str]:
    """Return questions to replace. Without a model, recorded answers give the run a verdict."""
    questions = []
    answers = []
    for n in range(_EXAMPLES):
        a = 11 + 7 * n % 83
        b = 13 + 5 * n % 79
        prompt = f"What is {a} + {b}? Answer with the number."
        questions.append({"id": f"sum-{n + 1}", "prompt": prompt, "answer": str(a + b), "grader": "numeric"})
        answers.append({"id": f"sum-{n + 1}", "text": str(a + b + (n % 8 == 7))})
    tables = {"questions.jsonl": questions, **({"answers.jsonl": answers} if answered else {})}
    files = {}
    for name, rows in tables.items():
        files[name] = "".join(json.dumps(row) + "\n" for row in rows)
    return files


REGISTERED = (
    Verb(
        "init",
        "write the first evaluation of a project, and its workflow",
        "Write adaptive-eval.toml and a workflow from a template. Files that exist stay.",
        _add_arguments,
        _run,
        (
            "init",
            "init --model checkpoints/late",
            "init --kind panel --model URL#ant --model URL#bee --model URL#cat",
            "init --schema adaptive-eval.schema.json",
        ),
    ),
)
