"""What happens when something goes wrong between processes, and the launcher that notices."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.distributed.runs import environment

HERE = Path(__file__).parent
RUN = [sys.executable, "-m", "chainrule", "run"]


def run(n: int, *args: str, timeout: float = 90) -> tuple[int, dict[int, list[str]], str, float]:
    """Exit status, the lines of each rank, everything, and how long it took."""
    begin = time.monotonic()
    p = subprocess.run(
        [*RUN, "-n", str(n), "--grace", "4", str(HERE / "faulty.py"), *args],
        capture_output=True, text=True, timeout=timeout, env=environment(), cwd=HERE, check=False,
    )  # fmt: skip
    lines: dict[int, list[str]] = {}
    for line in p.stdout.splitlines():
        if m := re.match(r"\[rank (\d+)\] (.*)", line):
            lines.setdefault(int(m[1]), []).append(m[2])
    return p.returncode, lines, p.stdout + p.stderr, time.monotonic() - begin


def test_launcher() -> None:
    code, lines, text, _ = run(3, "fine", "a", "-n", "7")
    assert code == 0, text
    assert lines == {r: ["sum 3 of 3 args ['a', '-n', '7']"] for r in range(3)}


def test_alone_without_mpi() -> None:
    p = subprocess.run(
        [sys.executable, str(HERE / "faulty.py"), "fine"],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert p.stdout == "sum 1 of 1 args []\n", p.stdout + p.stderr


def test_killed_rank() -> None:
    code, lines, text, took = run(3, "killed")
    assert code != 0
    assert "rank 1 died" in text
    for r in (0, 2):
        (line,) = lines[r]
        assert line.startswith("DistPeerError"), text
        assert f"all_reduce number 2 of shape [1000] float32 on rank {r} of the world: rank 1 did not come" in line
        assert float(re.search(r"after ([\d.]+) s", line)[1]) < 5  # type: ignore[index]
    assert took < 60


def test_exception_on_one_rank() -> None:
    code, lines, text, _ = run(3, "raises")
    assert code != 0
    for r in (0, 2):
        (line,) = lines[r]
        assert "rank 1 did not come" in line, text
        assert "ValueError: no such batch" in line
    assert "[rank 1] ValueError: no such batch" in text


def test_rank_that_never_comes() -> None:
    code, _, text, took = run(2, "early")
    assert code != 0
    assert "rank 1 died: ImportError: no module named chain" in text
    assert took < 60


def test_checkpoints_on_some_ranks_are_named() -> None:
    _, lines, text, _ = run(2, "checkpoints")
    assert all(lines[r][0].startswith("DistTimeoutError") for r in range(2)), text
    assert "put the same collectives inside checkpoints on every rank" in lines[0][0], text
    assert "rank 0 did not come: it is at all_reduce number 1 of shape [3] float32 in the second run" in lines[1][0], (
        text
    )
    _, lines, text, _ = run(2, "checkpoints_compared")
    for r in range(2):
        assert lines[r][0].startswith("DistMismatchError") and "in the second run of a checkpoint" in lines[r][0], text


def test_hang_and_mismatches() -> None:
    _, lines, text, _ = run(3, "late_and_odd")
    for r in (0, 2):
        assert re.match(r"DistTimeoutError after [1-4]\.\d s", lines[r][0]), text
        assert "all_gather number 1 of shape [4] float32" in lines[r][0]
        assert "was not over after 1 s; rank 1 did not come: it is at nothing yet" in lines[r][0]
        assert "rank 0 did not come" not in lines[r][0] and "rank 2 did not come" not in lines[r][0]
    for r in range(3):
        shapes, types, kinds, _ = lines[r][-4:]
        assert shapes.startswith("DistMismatchError"), text
        assert (
            "rank 0: all_reduce number 1 of shape [3] float32 /     rank 1: all_reduce number 1 of shape [4] float32"
            in shapes
        )
        assert "rank 1: all_reduce number 2 of shape [3] float64" in types
        assert "rank 0: broadcast number 1 of shape [3] float32 from rank 0" in kinds
        assert "rank 2: all_reduce number 1 of shape [3] float32" in kinds
    # Without the switch nothing is compared first; who waits in vain is told what the other one does.
    waiting = [lines[r][-1] for r in range(3) if "DistTimeoutError" in lines[r][-1]]
    assert waiting, text
    assert any("rank 0 called all_gather number 1" in w or "rank 1 called all_reduce number 1" in w for w in waiting), (
        text
    )


def test_ctrl_c() -> None:
    p = subprocess.Popen(
        [*RUN, "-n", "2", str(HERE / "faulty.py"), "forever"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(), start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
    )  # fmt: skip
    patience = threading.Timer(120, p.kill)  # a test that fails does not wait for ever
    patience.start()
    ready = 0
    lines: list[str] = []
    assert p.stdout is not None
    for line in p.stdout:
        lines.append(line)
        ready += "ready" in line
        if ready == 2:
            os.kill(p.pid, signal.SIGINT)
            ready = 3
    p.stdout.close()
    patience.cancel()
    assert p.wait(30) == 130
    assert sum("interrupted" in line for line in lines) == 2, lines
