"""Mistakes that a type checker must find: each line that ends with a comment of this kind, and no other. Never run."""

from __future__ import annotations

import chainrule as cr
from chainrule import Tensor, nn
from chainrule.linalg import svdd  # mistake: there is no such name

x = cr.randn(3, 3)
svdd(x)
cr.sinn(x)  # mistake: a misspelt function
x.summ()  # mistake: a misspelt method
cr.softmax(x, dimension=0)  # mistake: an unknown keyword
x.sum(dim="rows")  # mistake: a dim is a number
cr.sin("x")  # mistake: text is no operand
x + "1"  # mistake: nor here
n: int = x.mean()  # mistake: a tensor is no int
cr.zeros(3, dtype="float32")  # mistake: a dtype is no text
y = cr.matmul(x, 2.0)  # mistake: a product of matrices takes tensors
cr.linalg.inverse(x)  # mistake: the name is inv
x.add_(y, scale=2)  # mistake: the keyword is alpha
nn.Linear(3)  # mistake: the number of outputs is missing
nn.GELU(approximation="tanh")  # mistake: an unknown option


def norm(v: Tensor) -> float:
    """Not a number until item() is called."""
    return v.norm()  # mistake: a tensor is returned


def fine(v: Tensor) -> Tensor:
    """Nothing wrong here."""
    return cr.relu(v) + v.abs().max(dim=0).values
