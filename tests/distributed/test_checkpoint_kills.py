"""A kill at any byte of a checkpoint leaves one that loads: 50 random points, each in a process that is killed there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.distributed.runs import environment

PROGRAM = """
import json, os, random, signal, sys
import chainrule as cr
from chainrule.distributed import checkpoint

class Killer(checkpoint.Disk):
    '''Kills this process when so many steps are done; every byte that is written is one.'''
    def __init__(self, left): self.left, self.total = left, 0
    def _step(self, n=1):
        self.total += n
        if self.left is not None and self.total > self.left: os.kill(os.getpid(), signal.SIGKILL)
    def write(self, f, data):
        data = bytes(data)
        if self.left is not None and self.total + len(data) > self.left:
            super().write(f, data[: self.left - self.total])
            os.kill(os.getpid(), signal.SIGKILL)
        self._step(len(data)); super().write(f, data)
    def sync(self, f): self._step(); super().sync(f); self._step()
    def sync_folder(self, p): self._step(); super().sync_folder(p); self._step()
    def rename(self, a, b): self._step(); super().rename(a, b); self._step()
    def remove(self, p): self._step(); (p / "index.json").unlink(); self._step(); super().remove(p); self._step()

at = sys.argv[1]
state = lambda k: {"k": k, "x": cr.full((40,), float(k)), "deep": [{"y": cr.arange(9) * k}]}
def good(k):
    got = checkpoint.load(checkpoint_id=at)
    assert got["x"].tolist() == [float(got["k"])] * 40 and got["deep"][0]["y"].tolist() == [i * got["k"] for i in range(9)]
    assert got["k"] in (k, k + 1), (got["k"], k)
    return got["k"]

for k in range(3): checkpoint.save(state(k), checkpoint_id=at)
measure = Killer(None)
checkpoint.save(state(3), checkpoint_id=at, disk=measure)
rng, now, points, saved = random.Random(0), 3, [], 0
for _ in range(50):
    point = rng.randrange(measure.total) if rng.random() < 0.7 else measure.total - 1 - rng.randrange(12)
    child = os.fork()
    if child == 0:
        checkpoint.save(state(now + 1), checkpoint_id=at, disk=Killer(point))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), (point, measure.total)
    after = good(now)
    saved += after != now
    now = after
    points.append(point)
assert checkpoint.save(state(now + 1), checkpoint_id=at).name and good(now) == now + 1
print(json.dumps({"points": len(points), "new": saved, "steps": measure.total}))
"""


def test_fifty_kills(tmp_path: Path) -> None:
    p = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "ckpt")],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert p.returncode == 0, p.stdout + p.stderr
    said = json.loads(p.stdout)
    assert said["points"] == 50
    assert 0 < said["new"] < 50  # some kills came after the step that counts
