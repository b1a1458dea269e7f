"""Levels and modes belong to a thread and to an async task: nobody sees anybody else's."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

SHORT_S = float(os.environ.get("CHAINRULE_THREADS_SECONDS", "2"))


def f64(x: Any) -> Any:
    return chainrule.tensor(x, dtype=chainrule.float64)


@pytest.fixture(autouse=True)
def _switch_often() -> Iterator[None]:
    """Threads take turns after 20 µs instead of 5 ms, so that they change inside transforms."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(2e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


# Eight jobs: a nesting each, and what it gives in closed form. k tells threads with the same nesting apart.


def grad_grad(k: float) -> tuple[Any, Any]:
    return grad(grad(lambda x: chainrule.sin(k * x)))(f64(0.7)), -k * k * np.sin(0.7 * k)


def vmap_grad(k: float) -> tuple[Any, Any]:
    xs = np.linspace(0, 1, 5)
    return vmap(grad(lambda x: chainrule.exp(k * x)))(f64(xs)), k * np.exp(k * xs)


def jvp_of_vmap_of_grad(k: float) -> tuple[Any, Any]:
    xs = np.linspace(0, 1, 4)
    _, t = jvp(vmap(grad(lambda x: k * x**4)), (f64(xs),), (f64(np.ones(4)),))
    return t, 12 * k * xs**2


def hessian_job(k: float) -> tuple[Any, Any]:
    x = np.array([0.3, 0.5, 0.9])
    return hessian(lambda x: (k * x**3).sum())(f64(x)), np.diag(6 * k * x)


def forward_over_forward(k: float) -> tuple[Any, Any]:
    one = f64(1.0)
    return jvp(lambda y: jvp(lambda x: chainrule.exp(k * x), (y,), (one,))[1], (f64(0.2),), (one,))[1], k * k * np.exp(
        0.2 * k
    )


def imperative(k: float) -> tuple[Any, Any]:
    x = chainrule.tensor([0.1, 0.4], dtype=chainrule.float64, requires_grad=True)
    y = x.clone()
    y[0].mul_(k)
    with chainrule.no_grad():
        silent = y * 2
    assert not silent.requires_grad
    (chainrule.tanh(y) + silent).sum().backward()
    return x.grad, np.array([k * (1 - np.tanh(0.1 * k) ** 2), 1 - np.tanh(0.4) ** 2])


def vjp_of_jacfwd(k: float) -> tuple[Any, Any]:
    x = np.array([0.3, 0.6])
    _, pull = vjp(lambda x: jacfwd(lambda y: k * y**3)(x).sum(), f64(x))
    return pull(f64(1.0))[0], 6 * k * x


def vmap_vmap_jacrev(k: float) -> tuple[Any, Any]:
    xs = np.linspace(0.1, 0.6, 6).reshape(2, 3)
    return vmap(vmap(jacrev(lambda x: chainrule.stack([chainrule.sin(k * x), x * x]))))(f64(xs)), np.stack(
        [k * np.cos(k * xs), 2 * xs], axis=-1
    )


JOBS = [
    grad_grad, vmap_grad, jvp_of_vmap_of_grad, hessian_job, forward_over_forward, imperative, vjp_of_jacfwd,
    vmap_vmap_jacrev,
]  # fmt: skip


def verify(job: Callable[[float], tuple[Any, Any]], k: float) -> None:
    got, want = job(k)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-10, atol=1e-12, err_msg=f"{job.__name__}, k = {k}")


def run_threads(seconds: float) -> list[int]:
    """Eight threads, a job each, until time is up; returns how often each was done. The first error is raised."""
    errors: list[BaseException] = []
    counts = [0] * len(JOBS)
    start = threading.Barrier(len(JOBS))

    def loop(i: int) -> None:
        try:
            start.wait()
            end = time.monotonic() + seconds
            while time.monotonic() < end and not errors:
                verify(JOBS[i], 0.5 + 0.1 * (counts[i] % 7) + i)
                counts[i] += 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=loop, args=(i,)) for i in range(len(JOBS))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]
    return counts


@pytest.mark.parametrize("job", JOBS)
def test_each_job_alone(job: Callable[[float], tuple[Any, Any]]) -> None:
    verify(job, 1.3)


def test_eight_threads() -> None:
    counts = run_threads(SHORT_S)
    assert min(counts) > 3, counts


@pytest.mark.long
def test_eight_threads_for_twenty_seconds() -> None:
    counts = run_threads(20)
    assert min(counts) > 50, counts


def test_a_thread_starts_outside_every_transform() -> None:
    """A thread started inside a transform and inside no_grad sees neither."""
    seen: list[Any] = []

    def other() -> None:
        x = chainrule.tensor(2.0, dtype=chainrule.float64, requires_grad=True)
        (x * x).backward()
        seen.append((chainrule.is_grad_enabled(), x.grad.item(), grad(lambda y: y**3)(f64(2.0)).item()))

    def f(x: Any) -> Any:
        with chainrule.no_grad():
            t = threading.Thread(target=other)
            t.start()
            t.join()
        return x * x

    assert grad(f)(f64(3.0)).item() == 6.0
    assert seen == [(True, 4.0, 12.0)]


def test_pool_threads_are_reused_cleanly() -> None:
    """A pool's thread that saw an error inside nested transforms works normally afterwards."""

    def fails(_: int) -> None:
        def bad(x: Any) -> Any:
            raise KeyError("inside")

        with pytest.raises(KeyError):
            vmap(grad(bad))(f64([1.0, 2.0]))

    def works(k: int) -> float:
        return grad(grad(lambda x: x**3))(f64(float(k))).item()

    with ThreadPoolExecutor(2) as pool:
        for _ in range(20):
            list(pool.map(fails, range(4)))
            assert list(pool.map(works, range(4))) == [0.0, 6.0, 12.0, 18.0]


async def _task(k: int, log: list[bool]) -> None:
    for i in range(20):
        with chainrule.no_grad() if k % 2 else chainrule.enable_grad():
            await asyncio.sleep(0)
            log.append(chainrule.is_grad_enabled() == (k % 2 == 0))
            verify(JOBS[(k + i) % 5], 1.0 + k)
            await asyncio.sleep(0)
            log.append(chainrule.is_grad_enabled() == (k % 2 == 0))
        log.append(chainrule.is_grad_enabled())


def test_async_tasks_keep_their_modes_across_await() -> None:
    log: list[bool] = []

    async def main() -> None:
        await asyncio.gather(*(_task(k, log) for k in range(8)))

    asyncio.run(main())
    assert len(log) == 8 * 20 * 3
    assert all(log)


def test_async_dual_levels_are_separate() -> None:
    """Two tasks hold a forward-mode level open across awaits; each reads its own tangent."""
    from chainrule.autograd import forward_ad as fwd

    async def one(k: float) -> float:
        with fwd.dual_level():
            x = fwd.make_dual(f64(2.0), f64(k))
            await asyncio.sleep(0)
            y = x * x
            await asyncio.sleep(0)
            return fwd.unpack_dual(y).tangent.item()

    async def main() -> list[float]:
        return await asyncio.gather(*(one(float(k)) for k in range(6)))

    assert asyncio.run(main()) == [4.0 * k for k in range(6)]
