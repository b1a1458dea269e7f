"""Every sample of every op, recorded at one point and run at another: plain, reverse, forward, batched and batched inside."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from chainrule import func
from chainrule.core.op import OPS
from chainrule.core.samples import SAMPLES, Sample
from chainrule.core.tensor import Tensor
from chainrule.core.tree import flatten
from chainrule.jit import JitError, jit
from chainrule.testing.laws import case_of, like, outputs, resolve


def _callable(s):
    """A sample of an op that has no public name, as one of the op itself."""
    try:
        if s.f is None:
            resolve(s.name)
        return s
    except AttributeError:
        return Sample(s.name, OPS[s.name], s.args, s.kw, s.cx)


CASES = [(_callable(s), cx) for s in SAMPLES for cx in ((False, True) if s.cx else (False,))]

# What looks at elements, with the reason; each must raise, and name a line.
REFUSED = {
    "linalg.lstsq": "the shape of the residuals depends on the rank",
    "nn.functional.ctc_loss": "targets are cut to the longest",
    "getitem": "the number of results of a boolean mask depends on it",
    "lstm": "the sizes of a packed batch are Python numbers",
    "gru": "the sizes of a packed batch are Python numbers",
    "rnn_tanh": "the sizes of a packed batch are Python numbers",
    "rnn_relu": "the sizes of a packed batch are Python numbers",
    "nonzero": "the number of results depends on the data",
    "bincount": "the number of results depends on the data",
    "masked_select": "the number of results depends on the data",
    "unique": "the number of results depends on the data",
}


def _arrays(ys):
    return [y.detach().numpy() for y in flatten(ys)[0] if isinstance(y, Tensor)]


def _same(a, b, what):
    a, b = _arrays(a), _arrays(b)
    assert len(a) == len(b), what
    for x, y in zip(a, b, strict=True):
        assert x.shape == y.shape and x.dtype == y.dtype, (what, x.shape, y.shape, x.dtype, y.dtype)
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-10, equal_nan=True, err_msg=what)


def _check(sample, cx, whole):
    first, second = case_of(sample, cx, 0), case_of(sample, cx, 1)
    f, g = first.f, outputs(first.f)
    xs, ys = first.tensors(), second.tensors()
    rng = np.random.default_rng(0)
    if not xs:
        return
    want = f(*ys)
    j = jit(f)
    j(*xs)
    _same(j(*ys), want, "jit")
    if not g(*xs):
        return
    cot = tuple(like(rng, g(*xs)))

    def pulled(h):
        return lambda *a: func.vjp(h, *a)[1](cot)

    expected = pulled(g)(*ys)
    k = jit(pulled(g))
    k(*xs)
    _same(k(*ys), expected, "jit(vjp)")
    if not whole:
        return
    inner = jit(g)
    inner(*xs)
    _same(pulled(inner)(*ys), expected, "vjp(jit)")
    ts = tuple(like(rng, xs))
    _same(func.jvp(inner, tuple(ys), ts), func.jvp(g, tuple(ys), ts), "jvp(jit)")
    two = [Tensor(np.stack([a.numpy(), b.numpy()])) for a, b in zip(xs, ys, strict=True)]
    try:
        batched = func.vmap(f, randomness="different")(*two)
    except Exception:  # not batched at all: the laws say so elsewhere
        return
    _same(func.vmap(j, randomness="different")(*two), batched, "vmap(jit)")
    m = jit(func.vmap(f, randomness="different"))
    m(*[Tensor(np.stack([a.numpy(), a.numpy()])) for a in xs])
    _same(m(*two), batched, "jit(vmap)")


@pytest.fixture(autouse=True)
def _replayed(monkeypatch):
    """Graphs are replayed here, which is what they mean; tests/jit/test_code.py compares machine code with it."""
    monkeypatch.setenv("CHAINRULE_JIT", "replay")


@pytest.mark.parametrize("start", range(0, len(CASES), 100))
def test_every_sample(start: int) -> None:
    """Plain and reverse for all; the other nestings for some, for all of them with ``-m long``."""
    _sweep(CASES[start : start + 100], lambda s: zlib.crc32(repr(s).encode()) % 10 == 0)


@pytest.mark.long
@pytest.mark.parametrize("start", range(0, len(CASES), 100))
def test_every_sample_in_every_nesting(start: int) -> None:
    _sweep(CASES[start : start + 100], lambda s: True)


def _sweep(cases, whole):
    failed = []
    for sample, cx in cases:
        try:
            _check(sample, cx, whole(sample))
        except JitError as e:
            if sample.name not in REFUSED or "needs the elements" not in str(e):
                failed.append(f"{sample!r}{' complex' if cx else ''}: {e}")
        except Exception as e:
            failed.append(f"{sample!r}{' complex' if cx else ''}: {type(e).__name__} {e}")
    assert not failed, "\n".join(failed)
