"""The parser of the command: repeated, shortened and former options, settings, and completion."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_adaptive_eval.cli.command import command_parser
from pytest_adaptive_eval.cli.parser import VerbParser
from pytest_adaptive_eval.cli.settings import CalibrateTable, settings_of
from pytest_adaptive_eval.errors import ConfigError, UsageError

ALL_OF_THEM = (argparse._AppendAction, argparse._HelpAction, argparse._VersionAction)


def parsers(parser: VerbParser, name: str = "") -> Iterator[tuple[str, VerbParser]]:
    """Yield the parsers of all verbs by their names."""
    yield name, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, child in action.choices.items():
                yield from parsers(child, f"{name} {word}".strip())


VERBS = dict(parsers(command_parser()))


SCREEN = 50  #: Lines of a terminal's window that shows the help of a verb.


@pytest.mark.parametrize("verb", list(VERBS))
def test_the_help_of_a_verb_fits_on_a_screen(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert len(VERBS[verb].format_help().splitlines()) <= SCREEN


@pytest.mark.parametrize("verb", [name for name in VERBS if name])
def test_every_option_takes_all_its_values_or_refuses_a_second(verb: str) -> None:
    parser = VERBS[verb]
    for action in parser._actions:
        if not action.option_strings or isinstance(action, ALL_OF_THEM):
            continue
        option = action.option_strings[-1]
        value = [{"--shard": "1/2"}.get(option, next(iter(action.choices or "1")))] if action.nargs != 0 else []
        value *= action.nargs if isinstance(action.nargs, int) else 1
        spellings = [[option, *value]]
        if len(value) == 1:
            spellings += [[f"{option}={value[0]}"]]
        for first in spellings:
            for second in spellings:
                with pytest.raises(UsageError, match=f"{option}.*: given twice; give it once"):
                    parser.parse_args([*first, *second])


def test_a_parser_can_be_used_again() -> None:
    for _ in range(2):
        assert command_parser().parse_args(["plan", "q.bank", "--power", "0.9"]).power == 0.9


def test_a_shortened_option_is_refused(run) -> None:
    code, _, err = run("plan", "q.bank", "--marg", "0.1")
    assert code == 4
    assert "unrecognized arguments: --marg" in err


def settings(place: Path, *words: str) -> CalibrateTable:
    return settings_of(command_parser().parse_args(["calibrate", "r.csv", *words]), CalibrateTable)


def test_settings_of_the_command_line_come_before_those_of_a_file(place: Path) -> None:
    (place / "sub").mkdir()
    (place / "sub" / "c.toml").write_text('limit = 4\nitem = "id"\nfamilies = "f.csv"\nengine = "svi"\n')
    found = settings(place, "--config", "sub/c.toml", "--set", "item=doc.id == 'a'", "--set", "dimensions=auto")
    assert (found.limit, found.item, found.engine, found.dimensions) == (4, "doc.id == 'a'", "svi", "auto")
    assert found.families == "sub/f.csv"  # relative to the file
    assert settings(place, "--set", "dimensions=3", "--set", "families=f.csv").dimensions == 3


@pytest.mark.parametrize(
    ("words", "text", "message"),
    [
        (["--set", "item"], "", "--set 'item': expected KEY=VALUE, such as --set rows=..."),
        (["--set", "itme=x"], "", "--set itme: unknown setting; did you mean 'item'?"),
        (["--set", "item=x", "--set", "item=y"], "", "--set item: given twice; give it once"),
        (["--set", "limit=few"], "", "--set: limit is 'few', expected a whole number of at least 1"),
        (["--config", "c.toml"], "scor = 'x'", "c.toml: unknown setting 'scor'; did you mean 'score'?"),
        (["--config", "c.toml"], "item = 3", "c.toml: item is 3, expected text"),
        (["--config", "c.toml"], "x", "c.toml: not a readable TOML file"),
        (["--config", "none.toml"], "", "none.toml: not a readable TOML file"),
    ],
)
def test_mistakes_in_settings(place: Path, words: list[str], text: str, message: str) -> None:
    (place / "c.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        settings(place, *words)
    assert message in str(caught.value)


def test_completion_without_shtab_names_the_package(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    code, out, err = run("--print-completion", "bash")
    assert (code, out) == (4, "")
    assert "--print-completion needs shtab: pip install shtab" in err


def test_completion_offers_verbs_options_and_files(run, place: Path) -> None:
    pytest.importorskip("shtab", reason="completion needs shtab")
    code, script, _ = run("--print-completion", "bash")
    assert code == 0
    (place / "complete.sh").write_text(script)
    for words, offered in (
        (["bank", ""], {"info", "refine"}),
        (["plan", "--at"], {"--at-least"}),
        (["plan", "--metric", "acc"], {"accuracy"}),
        (["report", "comp"], {"complete.sh"}),
    ):
        line = shlex.join(["adaptive-eval", *words])
        code = f"source ./complete.sh; COMP_WORDS=({line}); COMP_CWORD={len(words)}; compopt() {{ :; }}\n"
        code += "_shtab_adaptive_eval; printf '%s\\n' \"${COMPREPLY[@]}\""
        done = subprocess.run(["bash", "--norc", "-c", code], capture_output=True, text=True, check=True)
        assert offered <= {word.strip() for word in done.stdout.splitlines()}, words
    code, _, err = run("--print-completion", "cmd")
    assert code == 4
    assert "--print-completion cmd: known are bash, zsh" in err
