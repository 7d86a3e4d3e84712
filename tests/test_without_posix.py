"""What the core does on systems without POSIX: public names and forecasts.  Interviews need file locks."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Modules and flags that Windows lacks.
WITHOUT = """
import os, sys
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
for name in ("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "fork", "killpg", "register_at_fork"):
    if hasattr(os, name):
        delattr(os, name)
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", WITHOUT + code], capture_output=True, text=True, check=False)


def test_every_public_name_is_imported() -> None:
    done = run("import pytest_adaptive_eval as p\nfor name in p.__all__: print(getattr(p, name))")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 20


def test_the_command_forecasts_a_gate() -> None:
    bank = str(ROOT / "fixtures" / "banks" / "text.bank")
    done = run(f"from pytest_adaptive_eval.cli import main\nsys.exit(main(['plan', {bank!r}, '--at-least', '0.6']))")
    assert done.returncode == 0, done.stderr
    assert "questions to a verdict" in done.stdout


def test_other_tests_run_with_the_plugin_installed(tmp_path: Path) -> None:
    (tmp_path / "test_other.py").write_text("def test_other(): pass\n")
    done = run(f"import pytest\nsys.exit(pytest.main(['-p', 'no:cacheprovider', '-q', {str(tmp_path)!r}]))")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
