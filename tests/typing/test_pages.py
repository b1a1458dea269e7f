"""No stub forbids what the pages show: their code, the README's and the examples', under mypy."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest
from mypy import api

import chainrule

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = Path(chainrule.__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted(p for p in (ROOT / "docs").rglob("*.md") if "decisions" not in p.parts)]
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
# What a page may do and a program would not: names used again, for something else; a gradient that is known to be there.
LOOSE = "no-redef assignment list-item misc union-attr var-annotated".split()


def code(page: Path) -> str:
    """The code blocks of a page as one program; what is shown to raise is left out."""
    parts = []
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.S):
        found = doctest.DocTestParser().get_examples(block)
        kept = [e.source for e in found if e.exc_msg is None]
        parts.append("".join(kept) if found else block)
    return "\n".join(parts)


def test_the_code_of_the_pages_is_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYPYPATH", f"{SOURCE}:{ROOT}")
    programs = {p.relative_to(ROOT).with_suffix(""): code(p) for p in PAGES}
    programs |= {p.relative_to(ROOT).with_suffix(""): p.read_text() for p in EXAMPLES}
    files = []
    for name, text in programs.items():
        if text.strip():
            files.append(tmp_path / f"page_{re.sub(r'[^a-z0-9]+', '_', str(name).lower())}.py")
            files[-1].write_text(text)
    assert len(files) > 40
    loose = [f"--disable-error-code={w}" for w in LOOSE]
    options = ["--follow-imports=silent", "--ignore-missing-imports", "--config-file=", "--no-error-summary"]
    report, failure, _ = api.run([*options, *loose, f"--cache-dir={tmp_path}", *map(str, files)])
    assert failure == ""
    assert [line for line in report.splitlines() if ": error: " in line] == []
