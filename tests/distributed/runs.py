"""Sessions of several ranks: started once for each number of ranks, and shared by the workers of a test run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def mpiexec() -> str:
    """The launcher beside this Python, or the one on the path."""
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    assert found, "mpiexec is not installed: pip install 'chainrule[mpi]'"
    return found


def environment(**more: str) -> dict[str, str]:
    """That of a rank: our sources, one thread each."""
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(p for p in paths if p), "OMP_NUM_THREADS": "1"} | more


def launch(
    n: int, *command: str, timeout: float = 120, options: tuple[str, ...] = (), **env: str
) -> subprocess.CompletedProcess[str]:
    """``mpiexec -n n python command``, with everything it started ended after `timeout`."""
    p = subprocess.Popen(
        [mpiexec(), *options, "-n", str(n), sys.executable, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(**env),
        cwd=ROOT,
        start_new_session=True,
    )
    try:
        out, _ = p.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        out, _ = p.communicate()
        return subprocess.CompletedProcess(p.args, 124, out + "\n(ended by the test: it took too long)")
    return subprocess.CompletedProcess(p.args, p.returncode, out)


def results_of(n: int, folder: Path, modules: list[str]) -> dict[str, dict[str, str]]:
    """How the checks of the modules ended on n ranks; the first that asks runs them, the others wait."""
    place = folder / f"ranks{n}"
    done = place / "done.json"
    try:
        place.mkdir()
    except FileExistsError:
        end = time.monotonic() + 600
        while not done.exists() and time.monotonic() < end:
            time.sleep(0.2)
        return json.loads(done.read_text())
    run = launch(n, "-m", "tests.distributed.session", str(place), ",".join(modules), timeout=500)
    path = place / "rank0.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    results["session"] = {"answer": "ok" if run.returncode == 0 else run.stdout[-6000:]}
    part = place / "done.part"
    part.write_text(json.dumps(results))
    part.rename(done)
    return results
