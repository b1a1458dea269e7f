"""DataLoader with and without worker processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from typing import Any

import numpy as np
import pytest
import torch
import torch.utils.data

import chainrule as cr
from chainrule.utils.data import DataLoader, IterableDataset, TensorDataset, get_worker_info

LIBS = pytest.mark.parametrize("lib", [cr, torch], ids=["chainrule", "torch"])
WORKERS = pytest.mark.parametrize("workers", [0, 2])


class Squares:
    """Examples that say which process made them, and may fail or take their time."""

    def __init__(self, n: int = 20, bad: int = -1, error: Any = ValueError, slow: float = 0.0) -> None:
        self.n, self.bad, self.error, self.slow = n, bad, error, slow

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        if i == self.bad:
            raise self.error("no such square")
        if self.slow and i == 0:
            time.sleep(self.slow)
        info = get_worker_info()
        return cr.tensor([i, i * i]), -1 if info is None else info.id


class Count(IterableDataset[int]):
    """An iterable dataset of which every worker gives its part."""

    def __init__(self, n: int, share: bool = True) -> None:
        self.n, self.share = n, share

    def __iter__(self) -> Any:
        info = get_worker_info()
        k, step = (info.id, info.num_workers) if info is not None and self.share else (0, 1)
        return iter(range(k, self.n, step))

    def __len__(self) -> int:
        return self.n


def running() -> list[Any]:
    return [p for p in multiprocessing.active_children() if p.is_alive()]


@WORKERS
def test_batches_in_order(workers: int) -> None:
    loader = DataLoader(Squares(), batch_size=3, num_workers=workers)
    for _ in range(2):
        batches = list(loader)
        assert len(batches) == len(loader) == 7
        assert [r.tolist() for b, _ in batches for r in b] == [[i, i * i] for i in range(20)]
        assert {w for _, ws in batches for w in ws.tolist()} == ({-1} if not workers else {0, 1})
    assert not running()


@WORKERS
def test_shuffled_batches_by_seed(workers: int) -> None:
    runs = []
    for _ in range(2):
        g = cr.Generator().manual_seed(3)
        loader = DataLoader(
            TensorDataset(cr.arange(12)), batch_size=5, shuffle=True, generator=g, num_workers=workers, drop_last=True
        )
        runs.append([[b.tolist() for (b,) in loader] for _ in range(2)])
    assert runs[0] == runs[1] and runs[0][0] != runs[0][1] and all(len(b) == 5 for p in runs[0] for b in p)


@WORKERS
def test_iterable_datasets(workers: int) -> None:
    loader = DataLoader(Count(11), batch_size=3, num_workers=workers)
    got = [b.tolist() for b in loader]
    assert sorted(v for b in got for v in b) == list(range(11))
    if not workers:
        assert got == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10]] and len(loader) == 4
    dropped = [b.tolist() for b in DataLoader(Count(11), batch_size=4, num_workers=workers, drop_last=True)]
    assert all(len(b) == 4 for b in dropped) and len(dropped) == 2
    assert sorted(DataLoader(Count(5), batch_size=None, num_workers=workers)) == list(range(5))
    assert not running()


def test_an_iterable_dataset_that_gives_more_than_it_said() -> None:
    with pytest.warns(UserWarning, match="reported to be"):
        list(DataLoader(Count(4, share=False), batch_size=2, num_workers=2))


@WORKERS
@pytest.mark.parametrize("error", [ValueError, KeyError, StopIteration])
def test_errors_come_with_their_traceback(workers: int, error: Any) -> None:
    loader = DataLoader(Squares(bad=7, error=error), batch_size=2, num_workers=workers)
    it = iter(loader)
    for _ in range(3):
        next(it)
    if error is StopIteration and not workers:
        return  # the end of the iteration, in Python's own loop too
    with pytest.raises(error) as e:
        next(it)
    if workers:
        text = str(e.value)
        assert "in DataLoader worker process" in text and "__getitem__" in text and "no such square" in text
        assert not running()


class Odd(Exception):
    """An exception whose constructor wants two arguments."""

    def __init__(self, a: Any, b: Any) -> None:
        super().__init__(a)


def raise_odd(batch: Any) -> Any:
    raise Odd(1, 2)


def test_errors_that_cannot_be_made_again() -> None:
    with pytest.raises(RuntimeError, match=r"Caught Odd[\s\S]*raise_odd"):
        list(DataLoader(Squares(), num_workers=1, collate_fn=raise_odd))
    with pytest.raises(RuntimeError, match="pickle"):
        list(DataLoader(Squares(), num_workers=1, collate_fn=lambda b: lambda: b))


def test_a_worker_that_dies() -> None:
    def die(batch: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(DataLoader(Squares(), num_workers=1, collate_fn=die))
    assert not running()


def test_a_worker_that_takes_too_long() -> None:
    with pytest.raises(RuntimeError, match="timed out after"):
        list(DataLoader(Squares(slow=30), num_workers=1, timeout=0.3))
    assert not running()


def test_in_any_order() -> None:
    slow_first = Squares(n=6, slow=0.6)
    order = [int(b[0][0]) for b, _ in DataLoader(slow_first, num_workers=2, in_order=False)]
    assert sorted(order) == list(range(6)) and order[0] != 0
    assert [int(b[0][0]) for b, _ in DataLoader(slow_first, num_workers=2)] == list(range(6))


def seeds(batch: Any) -> Any:
    return [os.getpid(), int(cr.randint(0, 2**40, ())), float(np.random.rand()), get_worker_info().seed]  # type: ignore[union-attr]


def test_workers_that_stay() -> None:
    started = multiprocessing.Value("i", 0)

    def init(k: int) -> None:
        with started.get_lock():
            started.value += 1

    loader = DataLoader(Squares(4), num_workers=2, persistent_workers=True, collate_fn=seeds, worker_init_fn=init)
    passes = [list(loader) for _ in range(2)]
    it = iter(loader)  # a pass that is left early
    next(it)
    passes.append(list(loader))
    assert started.value == 2
    assert len({p for one in passes for p, *_ in one}) == 2
    drawn = [d for one in passes for _, d, *_ in one]
    assert len(set(drawn)) == len(drawn), "each pass and each worker has random numbers of its own"
    del it, loader
    assert not running()


def test_seeds_of_workers() -> None:
    runs = []
    for _ in range(2):
        cr.manual_seed(11)
        runs.append([r[1:] for r in DataLoader(Squares(4), num_workers=2, collate_fn=seeds)])
    assert runs[0] == runs[1]


def test_workers_run_kernels_and_gradients() -> None:
    """The threads of the main process are not in a forked one; kernels start their own."""
    x = cr.randn(300, 300)
    cr.nn.functional.layer_norm(x @ x, (300,))

    def grads(batch: Any) -> Any:
        w = cr.ones(300, 300, requires_grad=True)
        cr.nn.functional.layer_norm(x * w, (300,)).pow(2).sum().backward()
        return w.grad

    for g in DataLoader(Squares(3), num_workers=2, collate_fn=grads):
        assert g.shape == (300, 300) and bool(g.isfinite().all())


@pytest.mark.parametrize("how", ["spawn", "forkserver"])
def test_other_ways_to_start(how: str, tmp_path: Any) -> None:
    """In a program of its own: what is sent to a fresh process must be importable there."""
    (tmp_path / "program.py").write_text(
        textwrap.dedent(f"""
        import chainrule as cr
        from chainrule.utils.data import DataLoader, TensorDataset
        if __name__ == "__main__":
            loader = DataLoader(TensorDataset(cr.arange(6)), batch_size=2, num_workers=1, multiprocessing_context="{how}")
            print([b.tolist() for (b,) in loader])
        """)
    )
    out = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, env=_env()
    )
    assert out.stdout.strip() == "[[0, 1], [2, 3], [4, 5]]", out.stderr


def _env() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(cr.__file__))}


def test_an_interrupt_ends_everything(tmp_path: Any) -> None:
    (tmp_path / "program.py").write_text(
        textwrap.dedent("""
        import signal, time
        from chainrule.utils.data import DataLoader
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in the background
        class Slow:
            def __len__(self): return 100
            def __getitem__(self, i):
                time.sleep(0.05)
                return i
        for b in DataLoader(Slow(), num_workers=2):
            print("batch", flush=True)
        """)
    )
    p = subprocess.Popen(
        [sys.executable, "program.py"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=_env(), start_new_session=True,
    )  # fmt: skip
    assert p.stdout is not None
    p.stdout.readline()
    os.killpg(p.pid, signal.SIGINT)
    _, err = p.communicate(timeout=20)
    assert "KeyboardInterrupt" in err and p.returncode != 0
    with pytest.raises(ProcessLookupError):
        os.killpg(p.pid, 0)  # nobody of the group is left


@LIBS
def test_options_that_do_not_go_together(lib: Any) -> None:
    D = lib.utils.data.DataLoader
    data = list(range(4))

    class Some(lib.utils.data.IterableDataset):
        def __iter__(self) -> Any:
            return iter(data)

    for kw, text in (
        ({"num_workers": -1}, "num_workers option"),
        ({"timeout": -1}, "timeout option"),
        ({"prefetch_factor": 2}, "prefetch_factor option"),
        ({"persistent_workers": True}, "persistent_workers option"),
        ({"shuffle": True, "sampler": [0]}, "mutually exclusive with shuffle"),
        ({"batch_sampler": [[0]], "batch_size": 2}, "batch_sampler option is mutually exclusive"),
        ({"batch_size": None, "drop_last": True}, "mutually exclusive with drop_last"),
        ({"multiprocessing_context": "fork"}, "multiprocessing_context can only"),
        ({"multiprocessing_context": "bad", "num_workers": 1}, "valid start method"),
        ({"batch_size": 0}, "positive integer"),
    ):
        with pytest.raises(ValueError, match=text):
            D(data, **kw)
    for kw in ({"shuffle": True}, {"sampler": [0]}, {"batch_sampler": [[0]]}):
        with pytest.raises(ValueError, match=f"unspecified {next(iter(kw))} option"):
            D(Some(), **kw)
    loader = D(data, batch_size=2, pin_memory=False, batch_sampler=None)
    with pytest.raises(ValueError, match="should not be set after"):
        loader.batch_size = 3
    assert [b.tolist() for b in D(data, batch_sampler=[[3, 1], [0]])] == [[3, 1], [0]]
    assert list(D(data, batch_size=None)) == data
    assert [b.tolist() for b in D(data, sampler=[2, 0], batch_size=2)] == [[2, 0]]
