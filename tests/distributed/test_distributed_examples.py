"""The examples of several processes run, and check themselves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.distributed.runs import ROOT, environment


def run(*command: str) -> str:
    p = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env=environment(), cwd=ROOT, check=False
    )
    assert p.returncode == 0, p.stdout + p.stderr
    return p.stdout


def test_tensor_parallel() -> None:
    out = run("-m", "chainrule", "run", "-n", "2", "examples/distributed_tensor_parallel.py")
    assert out.count("with first and second derivatives") == 2


def test_transformer(tmp_path: Path) -> None:
    out = run(
        "examples/distributed_transformer.py", "--steps", "3", "--batch", "8", "--ranks", "1,2", "--out", str(tmp_path)
    )
    one, two = (json.loads((tmp_path / f"run{n}.json").read_text())["losses"] for n in (1, 2))
    assert max(abs(a - b) for a, b in zip(one, two, strict=True)) < 1e-4
    assert (tmp_path / "runs.png").stat().st_size > 10_000
    assert "plot" in out
