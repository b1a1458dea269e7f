"""How many Python functions stand between a public name and NumPy: a walk through the engine stays short.

The numbers are what the design allows, not what there happens to be. A call is an entry of a Python function, as sys.setprofile sees it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import chainrule as cr
from chainrule.func import grad, vmap

ROOT = Path(__file__).parent.parent.parent
X, W, B = cr.ones(3, 4), cr.ones(4), cr.ones(4)


def product_and_sum(x: Any) -> Any:
    return (x * x).sum()


def row(r: Any) -> Any:
    return cr.nn.functional.layer_norm(r, (4,), W, B).sum()


def calls(f: Callable[[], Any]) -> list[str]:
    """The Python functions that a call enters, from the public name down."""
    f(), f()  # what is made once has been made
    seen: list[str] = []

    def note(frame: Any, event: str, arg: Any) -> None:
        if event == "call" and "chainrule" in frame.f_code.co_filename and "/tests/" not in frame.f_code.co_filename:
            seen.append(f"{frame.f_code.co_filename.rpartition('chainrule/')[2]}: {frame.f_code.co_qualname}")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        f()
    finally:
        sys.setprofile(before)
    return seen


CASES: dict[str, tuple[Callable[[], Any], int]] = {
    "sin": (lambda: cr.sin(X), 3),
    "add": (lambda: X + X, 2),
    "grad of a product and a sum": (lambda: grad(product_and_sum)(X), 60),
    "vmap of grad of layer_norm": (lambda: vmap(grad(row))(X), 150),
}


@pytest.mark.parametrize("name", CASES)
def test_a_walk_is_short(name: str) -> None:
    """In a process of its own: what other tests have used (nested tensors, repeated eigenvalues) adds a few looks."""
    code = f"from tests.engine.test_walks import *; print(*calls(CASES[{name!r}][0]), sep=chr(10))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    seen = run.stdout.splitlines()
    assert seen and len(seen) <= CASES[name][1], run.stdout


def test_the_backward_kernel_takes_a_cotangent_that_broadcasts(monkeypatch: pytest.MonkeyPatch) -> None:
    """In ``vmap(grad(norm(x).sum()))`` the cotangent is one number for all examples: that must not cost the kernel."""
    from chainrule.core.op import OPS

    ran: list[str] = []
    cases = {
        "layer_norm_backward": row,
        "group_norm_backward": lambda x: cr.nn.functional.group_norm(x, 2).sum(),
        "batch_norm_backward": lambda x: cr.nn.functional.batch_norm(x, None, None, training=True).sum(),
        "weight_norm_backward": lambda x: cr._weight_norm(x, cr.ones(2, 1, 1)).sum(),
    }
    for name in cases:
        op = OPS[name]
        monkeypatch.setattr(op.spec, "body", lambda *a, _n=name, **kw: pytest.fail(f"{_n} ran without its kernel"))
        kernel = op.body

        def counted(*a: Any, _k: Any = kernel, _n: str = name, **kw: Any) -> Any:
            ran.append(_n)
            return _k(*a, **kw)

        monkeypatch.setattr(op, "body", counted)
    for name, f in cases.items():
        x = cr.randn(5, 4) if name.startswith("layer") else cr.randn(5, 2, 4, 3)
        y = vmap(grad(f))(x)
        assert y.shape == x.shape and name in ran
