"""Every example of the gallery runs (in small), makes its picture, and keeps to its size; in full with ``-m long``."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = sorted(p for p in (ROOT / "examples" / "gallery").glob("*.py") if not p.name.startswith("_"))


def run(path: Path, folder: Path, small: bool) -> tuple[str, float]:
    env = {**os.environ, "CHAINRULE_PICTURES": str(folder), "MPLBACKEND": "Agg", "PYTHONPATH": str(ROOT / "src")}
    env.pop("CHAINRULE_SMALL", None)
    if small:
        env["CHAINRULE_SMALL"] = "1"
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", str(path)], env=env, capture_output=True, text=True, cwd=folder
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert (folder / f"{path.stem}.png").stat().st_size > 5000
    assert len(done.stderr.splitlines()) <= 40, "a progress bar in a pipe is a few lines"
    return done.stdout, time.perf_counter() - start


def test_there_are_enough_and_each_is_short() -> None:
    assert len(EXAMPLES) >= 10
    for path in EXAMPLES:
        lines = path.read_text().splitlines()
        assert len(lines) < 100, path.name
        text = "\n".join(lines)
        assert (
            text.startswith('"""') and "# %%" in text and "cr.progress(" in text and "save(figure, __file__)" in text
        ), path.name


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_it_runs(path: Path, tmp_path: Path) -> None:
    out, _ = run(path, tmp_path, small=True)
    assert out.strip()


@pytest.mark.long
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_it_runs_in_full_within_a_minute(path: Path, tmp_path: Path) -> None:
    _, seconds = run(path, tmp_path, small=False)
    assert seconds < 60


def test_notebooks_come_from_the_same_source(tmp_path: Path) -> None:
    jupytext = pytest.importorskip("jupytext")
    book = jupytext.read(EXAMPLES[0], fmt="py:percent")
    assert len(book.cells) >= 4
    jupytext.write(book, tmp_path / "x.ipynb", fmt="ipynb")
    assert (tmp_path / "x.ipynb").stat().st_size > 1000
