"""Scripts of ``adaptive-eval completion``, asked by the shells themselves."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

CASES = [
    ([""], {"plan", "bank", "completion"}, {"--version"}),
    (["pl"], {"plan"}, {"bank"}),
    (["--v"], {"--version"}, {"plan"}),
    (["plan", "--at"], {"--at-least"}, {"--alpha"}),
    (["plan", "--metric", "acc"], {"accuracy"}, {"--alpha", "auc"}),
    (["bank", "in"], {"info"}, {"init"}),
    (["bank", "info", "--"], {"--help"}, {"--at-least"}),
    (["completion", ""], {"bash", "fish", "zsh"}, {"plan"}),
]


def complete(shell: str, script: Path, words: list[str]) -> set[str]:
    """Return what a shell offers for the last word."""
    if shell == "bash":
        line = " ".join(f"'{word}'" for word in ["adaptive-eval", *words])
        code = f"source '{script}'; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _adaptive_eval; "
        code += "printf '%s\\n' \"${COMPREPLY[@]}\""
        command = ["bash", "--norc", "-euc", code]
    else:
        line = " ".join(["adaptive-eval", *words])
        command = ["fish", "--no-config", "-c", f"source '{script}'; complete -C '{line}'"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=script.parent)
    return {row.split("\t")[0] for row in done.stdout.splitlines()}


@pytest.mark.parametrize(("words", "offered", "other"), CASES)
@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_shell_offers_what_the_parser_takes(
    shell: str,
    words: list[str],
    offered: set[str],
    other: set[str],
    command: Callable[..., tuple[int, str, str]],
    place: Path,
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    code, out, err = command("completion", shell)
    assert (code, err) == (0, "")
    (place / "script").write_text(out)
    found = complete(shell, place / "script", words)
    assert offered <= found
    assert not other & found


def test_script_of_zsh_is_that_of_bash_after_its_setup(
    command: Callable[..., tuple[int, str, str]], place: Path
) -> None:
    script, bash = command("completion", "zsh")[1], command("completion", "bash")[1]
    assert script.startswith("#compdef adaptive-eval\n")
    assert script.endswith(bash)
    if shutil.which("zsh"):
        done = subprocess.run(
            ["zsh", "-fc", f"{script}\nprint $_comps[adaptive-eval]"], capture_output=True, text=True, check=False
        )
        assert done.stdout.strip().endswith("_adaptive_eval"), done.stderr
