"""Faults of the compile cache change no result: truncation, damage, foreign entries, permissions, two processes at once."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from chainrule import kernels
from chainrule.kernels import cache

pytestmark = pytest.mark.skipif(not kernels.available(), reason="no kernel compiler here")

PROGRAM = """
import json
import numpy as np
from chainrule import kernels
from chainrule.kernels import compiler
x = np.sin(np.arange(300 * 70, dtype=np.float32)).reshape(300, 70)
y, m, r = kernels.layer_norm(x, None, None, 1e-5)
w, n = kernels.weight_norm(x, np.ones((300, 1), np.float32), 0)
fresh = sorted(k for k, v in compiler.compiled.items() if v > 0)
print(json.dumps([y.tobytes().hex()[:4000], w.tobytes().hex()[:4000], fresh]))
"""


def start(directory: Path, **env: str) -> subprocess.Popen:
    full = {**os.environ, "CHAINRULE_CACHE_DIR": str(directory), "CHAINRULE_NUM_THREADS": "2", **env}
    full.setdefault("PYTHONPATH", os.pathsep.join(sys.path))
    return subprocess.Popen([sys.executable, "-c", PROGRAM], env=full, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finish(p: subprocess.Popen) -> list:
    import json

    out, err = p.communicate(timeout=120)
    assert p.returncode == 0, err.decode()
    return json.loads(out)


def run(directory: Path, **env: str) -> list:
    return finish(start(directory, **env))


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A cache directory that a first process has filled, and that process's results."""
    d = tmp_path_factory.mktemp("cache") / "kernels"
    first = run(d)
    assert len(first[2]) == 3
    return d, first


def entries(d: Path) -> list[Path]:
    return sorted(d.glob("*.o"))


def copy(d: Path, to: Path) -> Path:
    to.mkdir(mode=0o700)
    for f in d.iterdir():
        (to / f.name).write_bytes(f.read_bytes())
        (to / f.name).chmod(0o600)
    return to


def test_directory_and_files_are_private(filled):
    d, _ = filled
    assert stat.S_IMODE(d.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(f.stat().st_mode) == 0o600 for f in d.iterdir())


def test_a_second_process_compiles_nothing(filled):
    d, first = filled
    assert run(d) == [*first[:2], []]


def damage_truncate(d):
    for f in entries(d):
        f.write_bytes(f.read_bytes()[:-7])


def damage_empty(d):
    for f in entries(d):
        f.write_bytes(b"")


def damage_flip(d):
    for f in entries(d):
        data = bytearray(f.read_bytes())
        data[len(data) // 2] ^= 1
        f.write_bytes(data)


def damage_swap(d):
    """Each entry is a valid one, of another kernel."""
    files = entries(d)
    data = [f.read_bytes() for f in files]
    for f, x in zip(files, data[1:] + data[:1], strict=True):
        f.write_bytes(x)


def damage_secret(d):
    (d / "secret").write_bytes(b"x" * 32)


def damage_short_secret(d):
    (d / "secret").write_bytes(b"x")


def damage_writable(d):
    for f in entries(d):
        f.chmod(0o666)


def damage_symlink(d):
    for f in entries(d):
        target = f.with_suffix(".real")
        f.rename(target)
        f.symlink_to(target)


def damage_directories(d):
    for f in entries(d):
        f.unlink()
        f.mkdir()


def damage_pipes(d):
    for f in entries(d):
        f.unlink()
        os.mkfifo(f)


DAMAGES = [v for k, v in dict(globals()).items() if k.startswith("damage_")]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda f: f.__name__[7:])
def test_a_damaged_entry_is_compiled_again(filled, tmp_path, damage):
    d, first = filled
    copied = copy(d, tmp_path / "c")
    damage(copied)
    assert run(copied) == first  # same values, and everything compiled afresh


def test_an_entry_from_elsewhere_is_not_trusted(filled, tmp_path):
    d, first = filled
    other = tmp_path / "other"
    run(other)
    for f in entries(other):
        f.write_bytes((d / f.name).read_bytes())
    assert run(other) == first


def test_a_directory_others_can_write_is_not_used(filled, tmp_path):
    d, first = filled
    copied = copy(d, tmp_path / "c")
    copied.chmod(0o777)
    before = {f.name: f.stat().st_mtime_ns for f in copied.iterdir()}
    assert run(copied) == first
    assert {f.name: f.stat().st_mtime_ns for f in copied.iterdir()} == before


def test_a_directory_that_cannot_be_made(tmp_path, filled):
    blocker = tmp_path / "file"
    blocker.write_text("")
    assert run(blocker / "kernels") == filled[1]


def test_two_processes_at_once(tmp_path, filled):
    d = tmp_path / "shared"
    both = [start(d) for _ in range(2)]
    results = [finish(p) for p in both]
    assert results[0][:2] == results[1][:2] == filled[1][:2]
    assert run(d)[2] == []
    assert not list(d.glob(".tmp-*"))


def test_without_llvmlite_there_are_no_kernels(tmp_path):
    program = (
        "import sys; sys.modules['llvmlite'] = None\n"
        "import numpy as np\n"
        "from chainrule import kernels\n"
        "assert not kernels.available()\n"
        "for f in (lambda: kernels.softmax(np.ones((2, 3), np.float32)),\n"
        "          lambda: kernels.group_norm(np.ones((2, 4), np.float32), 2, None, None, 1e-5),\n"
        "          lambda: kernels.weight_norm(np.ones((2, 3)), np.ones((2, 1)), 0)):\n"
        "    try: f()\n"
        "    except kernels.NotSupported: pass\n"
        "    else: raise SystemExit('a kernel ran')\n"
        "assert kernels.pool.empty((1 << 20,), np.float32).size == 1 << 20\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "CHAINRULE_CACHE_DIR": str(tmp_path / "c")}
    subprocess.run([sys.executable, "-c", program], env=env, check=True, timeout=120)


def test_importing_kernels_does_not_import_llvmlite():
    program = "import sys, chainrule.kernels; assert 'llvmlite' not in sys.modules"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", program], env=env, check=True, timeout=120)


def test_a_forked_child_can_use_the_kernels():
    program = (
        "import os, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "import numpy as np\n"
        "from chainrule import kernels\n"
        "kernels.set_num_threads(2)\n"
        "v, g = np.ones((600, 500), np.float32), np.ones((600, 1), np.float32)\n"
        "want = kernels.weight_norm(v, g, 0)[0].tobytes()\n"
        "pid = os.fork()\n"
        "if not pid:\n"
        "    os._exit(0 if kernels.weight_norm(v, g, 0)[0].tobytes() == want else 1)\n"
        "assert os.waitpid(pid, 0)[1] == 0\n"
        "assert kernels.weight_norm(v, g, 0)[0].tobytes() == want\n"
    )
    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", program], env=env, check=True, timeout=120)


def test_the_cache_does_not_grow_without_bound(tmp_path, monkeypatch):
    monkeypatch.setenv("CHAINRULE_CACHE_DIR", str(tmp_path / "c"))
    monkeypatch.setattr(cache, "MAX_ENTRIES", 8)
    for i in range(30):
        cache.save(cache.key_of(str(i)), b"content")
    assert len(entries(tmp_path / "c")) <= 8
    assert cache.load(cache.key_of("29")) == b"content"


@pytest.mark.parametrize("n", [300, 1500, 3000])
def test_the_interpreter_ends_in_peace(n):
    """Results, threads and compiled functions are still there when the interpreter ends, in whatever order it takes them down."""
    program = f"import chainrule as ct; x = ct.randn({n}, {n}); y = x * x + x; z = ct.nn.functional.gelu(y); s = z.softmax(-1)"
    subprocess.run([sys.executable, "-c", program], env=dict(os.environ), check=True, timeout=120)


@pytest.mark.parametrize(
    ("env", "stub", "says"),
    [
        ({"CHAINRULE_KERNELS": "0"}, "", "CHAINRULE_KERNELS=0"),
        ({}, "import sys; sys.modules['llvmlite'] = None; ", "llvmlite"),
    ],
    ids=["switched off", "no llvmlite"],
)
def test_info_says_why_there_are_no_kernels(env, stub, says):
    program = stub + "from chainrule.__main__ import main; main(['info'])"
    full = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **env}
    out = subprocess.run(
        [sys.executable, "-c", program], env=full, check=True, timeout=120, capture_output=True, text=True
    ).stdout
    assert "kernels: none" in out and says in out


def test_a_kernel_that_does_not_compile_is_reported_once_and_its_body_runs(monkeypatch):
    import chainrule as cr
    from chainrule.kernels import compiler, pointwise
    from chainrule.kernels.calls import NotSupported

    def refuse(ir):
        raise RuntimeError("LLVM IR parsing error\n<string>:1:1")

    monkeypatch.setattr(compiler, "object_code", refuse)
    monkeypatch.setattr(compiler.cache, "load", lambda name: None)
    monkeypatch.setattr(compiler, "_reported", [])
    one = pointwise.Pointwise("refused_test", lambda k, x: x * x, 8)
    two = pointwise.Pointwise("refused_too_test", lambda k, x: x + x, 8)
    x = np.ones(1 << 14)
    with (
        pytest.warns(RuntimeWarning, match=r"refused_test_f64 could not be compiled \(LLVM IR parsing error\)"),
        pytest.raises(NotSupported),
    ):
        one(x)
    with pytest.raises(NotSupported):
        two(x)
    assert cr.exp(cr.ones(3)).shape == (3,)
