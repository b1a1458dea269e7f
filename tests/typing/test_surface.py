"""The stubs are current; a typed program passes under ``mypy --strict``, and mistakes are found where they are."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
from mypy import api

import chainrule
from chainrule.testing.surface.stubs import outdated

HERE = Path(__file__).parent
SOURCE = Path(chainrule.__file__).parents[1]


def test_the_stubs_are_current() -> None:
    assert [path.name for path in outdated()] == [], "run `make surface`"


def test_a_changed_declaration_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chainrule.sin, "__doc__", "Another sine.")
    assert [path.name for path in outdated()] == ["__init__.pyi"]


def test_the_user_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(HERE / "user_program.py"), run_name="__main__")
    assert "hessian" in capsys.readouterr().out


def test_mypy_passes_the_program_and_finds_every_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYPYPATH", str(SOURCE))
    files = [HERE / "user_program.py", HERE / "mistakes.py"]
    options = ["--strict", "--follow-imports=silent", "--config-file=", f"--cache-dir={tmp_path}", "--no-error-summary"]
    report, failure, _ = api.run([*options, *map(str, files)])
    assert failure == ""
    found = {(Path(f).name, int(n)) for f, n in re.findall(r"^(.*?):(\d+): error", report, re.M)}
    lines = files[1].read_text().splitlines()
    planted = {("mistakes.py", n) for n, line in enumerate(lines, 1) if "# mistake: " in line}
    assert len(planted) >= 10
    assert found == planted, report
