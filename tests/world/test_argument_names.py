"""NumPy's names of arguments, and the older forms of calls, as PyTorch takes them."""

from __future__ import annotations

from typing import Any

import pytest

import chainrule as cr

torch = pytest.importorskip("torch")
CALLS = """
t.sum(x, axis=0, keepdims=True) | x.mean(axis=-1, keepdims=True) | t.max(x, axis=0)[0] | x.argmax(axis=0) | t.argmin(x, axis=1, keepdims=True)
t.cat([x, x], axis=1) | t.stack([x, x], axis=0) | x.cumsum(axis=0) | x.unsqueeze(axis=0) | t.squeeze(x, axis=0) | t.softmax(x, axis=0)
t.add(x1=x, x2=x) | t.mul(x1=x, x2=x) | t.maximum(x1=x, x2=x) | t.sin(x=x) | t.exp(a=x) | t.std(x, axis=0, keepdims=True) | x.std(axis=0)
t.prod(x, axis=0) | t.any(x, axis=0) | x.all(axis=1) | t.sort(x, axis=0)[0] | t.linalg.norm(x, axis=0) if t is cr else t.linalg.norm(x, dim=0)
t.logsumexp(x, axis=0) | t.amax(x, axis=0) | x.amin(axis=0) | t.gather(x, axis=0, index=i) | t.median(x, axis=0)[0] | t.diff(x, axis=0)
t.atan2(x1=x, x2=x) | t.sub(x, x2=x) | t.fft.fft(x, axis=0) if t is cr else t.fft.fft(x, dim=0) | t.quantile(x, 0.5, axis=0) | t.log_softmax(x, axis=0)
t.addcmul(x, 2, x, x) | x.addcdiv(2, x, x) | t.add(x, 2, x) | x.clone().sub_(2, x) | t.addmm(2, x, 3, x, x[:, :2].T.repeat(2, 2)[:3, :3])
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", [c.strip() for line in CALLS.strip().splitlines() for c in line.split(" | ")])
def test_calls(call: str) -> None:
    def run(t: Any) -> Any:
        x = t.arange(6.0).reshape(2, 3) + 1
        return eval(call, {"t": t, "x": x, "i": t.zeros(1, 3, dtype=t.int64), "cr": cr}).tolist()

    assert cr.tensor(run(cr)).double().allclose(cr.tensor(run(torch)).double(), equal_nan=True) or str(run(cr)) == str(
        run(torch)
    )


def test_a_name_given_twice_is_refused() -> None:
    with pytest.raises(TypeError, match="multiple values"):
        cr.sum(cr.ones(2), dim=0, axis=0)
    with pytest.raises(TypeError):
        cr.sum(cr.ones(2), axes=0)
