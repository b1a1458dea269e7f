"""``python tests/libraries [names]``: every program under both, compared; see the README of this folder."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
LIMIT = 1e-9


def run(side: str, program: Path, results: Path) -> str:
    """Nothing if the program ran, else why not."""
    env = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": os.pathsep.join([str(HERE.parent.parent / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    command = [sys.executable, "-W", "ignore", str(HERE / "harness.py"), side, str(program), str(results)]
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=900)
    except subprocess.TimeoutExpired:
        return "took more than 15 minutes"
    lines = done.stderr.strip().splitlines() or [f"exit {done.returncode}"]
    return "" if done.returncode == 0 else "\n".join(lines[-4:])


def compare(theirs: Path, ours: Path) -> tuple[int, float, str]:
    """How many values, the largest difference in units of the largest element, and where it is."""
    a, b = np.load(theirs), np.load(ours)
    if set(a.files) != set(b.files):
        return 0, np.inf, f"different names: {sorted(set(a.files) ^ set(b.files))[:3]}"
    worst, where = 0.0, ""
    for k in a.files:
        if a[k].shape != b[k].shape or a[k].dtype != b[k].dtype:
            return len(a.files), np.inf, f"{k}: {a[k].shape} {a[k].dtype} and {b[k].shape} {b[k].dtype}"
        if a[k].size:
            x, y = a[k].astype(complex), b[k].astype(complex)
            error = np.abs(x - y).max() / max(1e-6, np.abs(x).max())
            if not error <= worst:
                worst, where = error, k
    return len(a.files), worst, where


def main(names: list[str]) -> int:
    """Run the programs that are named, or all; the number of those that did not agree."""
    programs = sorted(p for p in (HERE / "programs").glob("*.py") if not names or p.stem in names)
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for program in programs:
            results = {side: Path(folder, f"{program.stem}.{side}.npz") for side in ("torch", "chainrule")}
            failed = ""
            for side, file in results.items():
                if why := run(side, program, file):
                    failed = f"does not run under {side}: {why}"
                    break
            if not failed:
                count, worst, where = compare(*results.values())
                if not worst <= LIMIT:
                    failed = f"differs by {worst:.1e} at {where}"
            print(
                f"{'✗' if failed else '✓'} {program.stem:24} {failed or f'{count} values agree to {worst:.1e}'}",
                flush=True,
            )
            bad += bool(failed)
    print(f"{len(programs) - bad} of {len(programs)} programs agree with PyTorch to {LIMIT:g}")
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) > 0)
