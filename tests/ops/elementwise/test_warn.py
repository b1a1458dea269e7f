"""The identity that warns when it is differentiated."""

from __future__ import annotations

import pytest

import chainrule as cr
from chainrule import func


def test_a_backward_warns_once() -> None:
    x = cr.tensor([1.0, 2.0], requires_grad=True)
    y = cr._test_warn_in_autograd(x)  # no warning here: warnings are errors
    assert y.tolist() == [1.0, 2.0]
    with pytest.warns(UserWarning, match="Warn from backward") as seen:
        (y**2).sum().backward()
    assert len(seen) == 1 and x.grad.tolist() == [2.0, 4.0]
    with pytest.warns(UserWarning, match="Warn from backward") as seen:
        assert func.jvp(cr._test_warn_in_autograd, (x.detach(),), (cr.ones(2),))[1].tolist() == [1.0, 1.0]
    assert len(seen) == 1
