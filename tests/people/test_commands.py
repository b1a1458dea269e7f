"""The console script: every command starts, says what is wrong with what it was given, and completes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import chainrule
from chainrule.cli.commands import main, parser
from chainrule.cli.completion import script, words

PROGRAM = """
import chainrule as cr
import numpy as np

def right(x):
    return np.sum(np.sin(x) ** 2)

def wrong(x):
    return (x.detach() * x).sum()

def wrong_args():
    return cr.tensor([1.0, 2.0])
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "planted_program.py"
    path.write_text(PROGRAM)
    return path


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("chainrule 0.")
    assert main([]) == 2
    assert "COMMAND" in capsys.readouterr().out
    assert main(["info"]) == 0
    assert "ops" in capsys.readouterr().out


def test_verify(program: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["verify", f"{program}:right", "--shape", "3", "--html", str(tmp_path / "r.html")]) == 0
    assert "every derivative is right" in capsys.readouterr().out and (tmp_path / "r.html").exists()
    assert main(["verify", f"{program}:wrong"]) == 1
    assert "cut off here" in capsys.readouterr().out


def test_show(program: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["show", f"{program}:right", "--shape", "3", "--html", str(tmp_path / "s.html")]) == 0
    assert (tmp_path / "s.html").exists() and "sin" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["verify", "nothing"], "module:function"),
        (["verify", "no_such_module_here:f"], "no module"),
        (["verify", "missing.py:f"], "no file"),
        (["verify", "math:sine"], "has no 'sine'"),
        (["show", "math:sin"], "--shape"),
        (["show", "math:sin", "--shape", "a"], "sizes with commas"),
    ],
)
def test_mistakes_are_explained(args: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(args) == 2
    assert said in capsys.readouterr().err


def test_completion_knows_every_command() -> None:
    known = words(parser())
    assert set(known) == {
        "info",
        "demo",
        "coverage",
        "conformance",
        "bench",
        "verify",
        "show",
        "as-torch",
        "completion",
        "run",
    }
    assert "--html" in known["show"][1] and "numpy" in known["coverage"][1]
    for shell in ("bash", "zsh", "fish"):
        text = script(shell, parser())
        assert ("verify" in text and "--shape" in text) or "-l shape" in text


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_completes() -> None:
    text = script("bash", parser()) + '\nCOMP_WORDS=(chainrule ver); COMP_CWORD=1; _chainrule; echo "${COMPREPLY[@]}"'
    assert subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True).stdout.strip() == "verify"


def python(*args: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(Path(chainrule.__file__).parent.parent)}
    return subprocess.run([sys.executable, *args], capture_output=True, text=True, check=True, env=env).stdout


def test_as_a_module() -> None:
    out = python("-m", "chainrule", "--version")
    assert out.startswith("chainrule ")


def test_tools_are_not_imported_with_the_library() -> None:
    code = "import sys, chainrule; print([m for m in sys.modules if m.startswith('chainrule.people') or m == 'matplotlib'])"
    assert python("-c", code).strip() == "[]"
