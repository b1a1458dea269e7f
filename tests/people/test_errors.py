"""The sixty commonest mistakes: each message names what was wrong (the op or argument, the shapes or types) and what to write."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import chainrule as cr
from chainrule import nn
from chainrule.func import functional_call, grad, jacrev, jvp, vjp, vmap

F = nn.functional
A, B = cr.ones(2, 3), cr.ones(4, 5)
X = cr.ones(3)


def twice() -> Any:
    x = cr.ones(3, requires_grad=True)
    y = x.exp().sum()
    y.backward()
    y.backward()


def escaped() -> Any:
    kept: list[Any] = []
    grad(lambda x: (kept.append(x), x.sum())[1])(X)
    return kept[0] + 1


def branch_in_jit() -> Any:
    return cr.jit(lambda x: x if x.sum() > 0 else -x)(X)


def no_super() -> Any:
    class Net(nn.Module):
        def __init__(self) -> None:
            self.layer = nn.Linear(2, 2)

    return Net()


def lost_state() -> Any:
    return nn.Linear(2, 2).load_state_dict({"weight": cr.ones(2, 2)})


def wrong_state() -> Any:
    return nn.Linear(2, 2).load_state_dict({"weight": cr.ones(3, 2), "bias": cr.ones(2)})


def write_to_leaf() -> Any:
    x = cr.ones(3, requires_grad=True)
    x += 1


def numpy_of_tracked() -> Any:
    return cr.ones(3, requires_grad=True).numpy()


def hidden_state_of_the_last_step() -> Any:
    rnn, h = nn.RNN(2, 2), cr.zeros(1, 1, 2)
    for _ in range(2):
        y, h = rnn(cr.ones(1, 1, 2), h)
        y.sum().backward()


def loss_of_detached() -> Any:
    nn.Linear(2, 1)(cr.ones(1, 2)).detach().sum().backward()


def no_file_of_tensors() -> Any:
    return cr.load(io.BytesIO(b"hello"))


def weight_of_a_tensor() -> Any:
    nn.Linear(2, 2).weight = cr.ones(2, 2)


def cotangent_of_another_shape() -> Any:
    @cr.custom_op
    def total(x: Any) -> Any:
        return x.sin()

    @total.vjp
    def _(g: Any, y: Any, x: Any) -> Any:
        return (g * x.cos()).sum()

    return grad(lambda x: total(x).sum())(X)


def gradient_of_what_is_not_used() -> Any:
    return cr.autograd.grad(cr.ones(3, requires_grad=True).sum(), [cr.ones(2, requires_grad=True)])


def tangent_of_another_shape() -> Any:
    @cr.custom_op
    def total(x: Any) -> Any:
        return x.sum()

    @total.jvp
    def _(t: Any, y: Any, x: Any) -> Any:
        return t[0]

    return jvp(total, (X,), (X,))


# The mistake, the type of the error, and words that its message must have.
MISTAKES: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    # shapes
    "add: shapes": (lambda: A + B, ("add", "3", "5")),
    "matmul: inner sizes": (lambda: A @ B, ("matmul|mat1|mm", "2", "3", "4", "5")),
    "linear: features": (lambda: nn.Linear(4, 2)(A), ("linear", "3", "4")),
    "cat: shapes": (lambda: cr.cat([A, B]), ("cat", "3", "5")),
    "stack: shapes": (lambda: cr.stack([A, B]), ("stack", "2, 3", "4, 5")),
    "reshape: elements": (lambda: A.reshape(4, 2), ("reshape|shape", "4, 2", "6")),
    "view: elements": (lambda: A.view(5), ("view|shape", "5", "6")),
    "expand: size": (lambda: A.expand(2, 5), ("expand", "5", "3")),
    "squeeze: dim": (lambda: A.squeeze(4), ("dim|Dimension", "4", "-2, 1")),
    "softmax: dim": (lambda: A.softmax(2), ("dim|Dimension", "2", "-2, 1")),
    "sum: dim": (lambda: A.sum(5), ("dim|Dimension", "5", "-2, 1")),
    "transpose: dim": (lambda: A.transpose(0, 3), ("dim|Dimension", "3", "-2, 1")),
    "permute: dims": (lambda: A.permute(0, 0), ("permute", "multiple times")),
    "gather: index shape": (lambda: cr.gather(A, 0, cr.zeros(3, 4, dtype=cr.int64)), ("gather", "index|size")),
    "conv2d: channels": (lambda: F.conv2d(cr.ones(1, 2, 8, 8), cr.ones(4, 3, 3, 3)), ("conv2d", "2", "3")),
    "conv2d: kernel too large": (lambda: F.conv2d(cr.ones(1, 1, 2, 2), cr.ones(1, 1, 5, 5)), ("conv2d|kernel|Kernel", "5", "2")),
    "layer_norm: shape": (lambda: F.layer_norm(A, (4,)), ("layer_norm|normalized_shape", "4", "3")),
    "batch_norm: features": (lambda: nn.BatchNorm1d(4)(A), ("batch_norm|running_mean|features", "4", "3")),
    "cross_entropy: batch": (lambda: F.cross_entropy(A, cr.zeros(3, dtype=cr.int64)), ("cross_entropy|batch|nll", "2", "3")),
    "mse_loss: shapes": (lambda: F.mse_loss(A, B), ("2, 3", "4, 5")),
    "solve: shapes": (lambda: cr.linalg.solve(cr.eye(3), cr.ones(4, 1)), ("solve", "3", "4")),
    "inv: not square": (lambda: cr.linalg.inv(A), ("inv", "square", "2, 3|2 by 3")),
    "cholesky: not positive": (lambda: cr.linalg.cholesky(-cr.eye(2)), ("cholesky", "positive")),
    "einsum: subscripts": (lambda: cr.einsum("ij,jk->ik", A, B), ("einsum", "j")),
    "einsum: number": (lambda: cr.einsum("ij,jk", A), ("einsum", "1|one", "2|two")),
    "attention: features": (lambda: F.scaled_dot_product_attention(cr.ones(2, 4), cr.ones(2, 5), cr.ones(2, 5)), ("attention", "4", "5")),
    "embedding: index": (lambda: nn.Embedding(3, 2)(cr.tensor([5])), ("embedding|index", "5", "3")),
    "index: out of range": (lambda: X[7], ("7", "3")),
    "index: too many": (lambda: X[0, 0], ("too many", "1")),
    "index: floats": (lambda: X[cr.tensor([0.5])], ("index|indices", "long|int|bool", "float")),
    "mask: shape": (lambda: X[cr.tensor([True, False])], ("mask", "2", "3")),
    # types
    "matmul: dtypes": (lambda: A @ cr.ones(3, 2, dtype=cr.float64), ("float32|Float|float", "float64|double|Double")),
    "cross_entropy: float target": (lambda: F.cross_entropy(A, cr.zeros(2)), ("target|shape|dtype",)),
    "embedding: float": (lambda: nn.Embedding(3, 2)(cr.tensor([1.0])), ("embedding|indices", "Int|Long", "float")),
    "requires_grad of ints": (lambda: cr.tensor([1, 2], requires_grad=True), ("float", "int64|integer|int")),
    "grad of ints": (lambda: grad(lambda x: (x * x).sum())(cr.tensor([1, 2])), ("grad", "int64|integer", "float")),
    "mean of ints": (lambda: cr.tensor([1, 2]).mean(), ("mean", "dtype|float", "int64|Long|long")),
    "tensor of ragged lists": (lambda: cr.tensor([[1.0, 2.0], [3.0]]), ("equal length", "nested_tensor")),
    "item of many": (lambda: X.item(), ("item|scalar|element", "3")),
    "bool of many": (lambda: bool(X), ("truth|ambiguous|Boolean",)),
    "float of many": (lambda: float(X), ("3|elements|scalar",)),
    "iterate a number": (lambda: list(cr.tensor(1.0)), ("0-d",)),
    "unknown keyword": (lambda: cr.sum(X, dimension=0), ("dimension",)),
    "misspelt function": (lambda: cr.sofmax(X), ("sofmax",)),
    "unknown reduction": (lambda: F.mse_loss(X, X, reduction="avg"), ("reduction", "avg", "mean")),
    # derivatives
    "grad of a vector": (lambda: grad(lambda x: x * 2)(X), ("grad", "scalar|one number", "3", "sum|jacrev|vjp")),
    "backward of a vector": (lambda: (cr.ones(3, requires_grad=True) * 2).backward(), ("scalar", "gradient|sum")),
    "backward without grad": (lambda: X.sum().backward(), ("require|requires_grad|grad_fn",)),
    "backward twice": (twice, ("retain_graph", "second time|freed")),
    "grad of no tensor": (lambda: grad(lambda x: 3)(X), ("grad", "int|tensor")),
    "a value that escaped": (escaped, ("grad|transform|reverse", "return")),
    "jvp: tangent shape": (lambda: jvp(lambda x: x, (X,), (cr.ones(2),)), ("jvp", "2", "3")),
    "vjp: cotangent shape": (lambda: vjp(lambda x: x * 2, X)[1](cr.ones(2)), ("vjp|cotangent|grad", "2", "3")),
    "argnums": (lambda: grad(lambda x: x.sum(), argnums=2)(X), ("argnum", "2", "1")),
    "complex result": (lambda: grad(lambda x: (x * 1j).sum())(X), ("complex", "real|abs|holomorphic")),
    # vmap and jit
    "vmap: sizes": (lambda: vmap(lambda a, b: a + b)(cr.ones(2), X), ("vmap", "2", "3")),
    "vmap: in_dims": (lambda: vmap(lambda a: a, in_dims=3)(A), ("in_dims|in_dim", "3", "2")),
    "vmap: branch": (lambda: vmap(lambda x: x if x > 0 else -x)(X), ("vmap", "where|if")),
    "vmap: item": (lambda: vmap(lambda x: x * x.item())(X), ("vmap", "item")),
    "vmap: random": (lambda: vmap(lambda x: x + cr.rand(()))(X), ("vmap", "random", "different", "same")),
    "jit: branch": (branch_in_jit, ("where|cond",)),
    # modules and writing
    "module without super": (no_super, ("super|Module.__init__",)),
    "missing keys": (lost_state, ("bias", "Missing|missing")),
    "wrong sizes in a state": (wrong_state, ("weight", "3", "2")),
    "write to a leaf": (write_to_leaf, ("leaf", "no_grad|in-place")),
    "numpy of a tracked tensor": (numpy_of_tracked, ("detach",)),
    "functional_call: unknown": (lambda: functional_call(nn.Linear(2, 2), {"w": cr.ones(2, 2)}, (cr.ones(2),)), ("w", "weight|unexpected|no parameter")),
    "NumPy: asarray": (lambda: grad(lambda x: np.asarray(x).sum())(np.ones(2)), ("np.asarray", "derivative", "np.stack|like=")),
    "optimizer without parameters": (lambda: cr.optim.SGD([], lr=0.1), ("empty", "parameter")),
    "vmap: out_dims": (lambda: vmap(lambda x: x, out_dims=5)(A), ("out_dims|out_dim|Dimension", "5")),
    "jacrev of ints": (lambda: jacrev(lambda x: x)(cr.tensor([1])), ("int64|integer", "float")),
    # what people write who come from elsewhere
    "math inside grad": (lambda: grad(lambda x: math.sin(x))(cr.tensor(1.0)), ("grad", "float", "math.sin", "x.sin")),
    "forgotten return": (lambda: grad(lambda x: None)(X), ("grad", "NoneType", "return")),
    "hidden state of the last step": (hidden_state_of_the_last_step, ("second time", "retain_graph", "Backward a second time")),
    "loss of detached": (loss_of_detached, ("requires_grad", "Nothing to differentiate")),
    "optimizer of a module": (lambda: cr.optim.Adam(nn.Linear(2, 2)), ("Adam", "params", "Linear", "parameters\\(\\)")),
    "optimizer of a result": (lambda: cr.optim.SGD([X.requires_grad_() * 2], lr=0.1), ("SGD", "non-leaf", "3", "detach")),
    "learning rate in quotes": (lambda: cr.optim.Adam(nn.Linear(2, 2).parameters(), lr="0.1"), ("learning rate", "'0.1'", "string")),
    "schedule of a number": (lambda: cr.optim.lr_scheduler.StepLR(0.1, 1), ("optimizer", "float")),
    "tensor as parameter": (weight_of_a_tensor, ("weight", "nn.Parameter")),
    "operands of cond": (lambda: cr.cond(cr.tensor(True), lambda x: x, lambda x: -x, X), ("cond", "operands", "tuple", "\\(x,\\)")),
    "operands of while_loop": (lambda: cr.while_loop(lambda x: x < 3, lambda x: x + 1, X), ("while_loop", "carried_inputs", "tuple")),
    "generator": (lambda: cr.rand(2, generator=3), ("rand", "generator", "int", "Generator")),
    "seed": (lambda: cr.manual_seed("a"), ("manual_seed", "integer", "'a'")),
    "load of a text": (no_file_of_tensors, ("load", "broken|no pickle")),
    "vmap: mask": (lambda: vmap(lambda x: x[x > 0])(A), ("mask", "vmap", "where", "Branches on values")),
    "vmap: nonzero": (lambda: vmap(lambda x: x.nonzero())(A), ("nonzero", "vmap", "where")),
    "SciPy inside grad": (lambda: grad(lambda a: scipy.linalg.expm(a).sum())(np.eye(2)), ("asarray", "derivative", "chainrule.numpy")),
    "singular solve": (lambda: cr.linalg.solve(cr.zeros(2, 2), cr.ones(2)), ("solve", "singular", "lstsq", "Singular matrices")),
    "cat without a list": (lambda: cr.cat(X, X), ("cat", "tuple of Tensors", "Tensor")),
    "layers that do not fit": (lambda: nn.Sequential(nn.Linear(2, 3), nn.Linear(4, 1))(cr.ones(1, 2)), ("linear", "1, 3", "1, 4")),
    "device": (lambda: cr.zeros(2, device="cuda"), ("cuda", "not available", "cpu")),
    "names of modules": (lambda: nn.Linear(2, 2).wieght, ("Linear", "wieght")),
    "jvp without tuples": (lambda: jvp(lambda x: x, X, X), ("jvp", "tuple", "\\(x,\\)")),
    "ragged sizes": (lambda: cr.nested.nested_tensor([[1.0, 2.0], [3.0]]) + cr.nested.nested_tensor([[1.0], [3.0, 2.0]]), ("add", "component 0", "2 and 1")),
    "grad of a value": (lambda: grad((X * 2).sum()), ("function", "Tensor", "lambda x")),
    "vmap of a value": (lambda: vmap(X), ("function", "Tensor")),
    "the class of a layer": (lambda: nn.Sequential(nn.Linear, nn.ReLU), ("Linear is the class", "Linear\\(...\\)")),
    "a list of layers": (lambda: nn.Sequential([nn.Linear(2, 2)]), ("list", "Sequential\\(\\*modules\\)")),
    "a function as a layer": (lambda: nn.Sequential(nn.Linear(2, 2), cr.relu), ("relu is a function", "module")),
    "an array of objects": (lambda: cr.tensor(np.array([object()])), ("tensor", "object", "astype")),
    "an array of strings": (lambda: cr.as_tensor(np.array(["a"])), ("as_tensor", "U1", "astype")),
    "a cotangent of another shape": (cotangent_of_another_shape, ("total", "reverse rule", "\\[\\]", "argument 0", "\\[3\\]")),
    "a tangent of another shape": (tangent_of_another_shape, ("total", "forward rule", "\\[3\\]", "\\[\\]")),
    "an array for a layer": (lambda: nn.Linear(3, 1)(np.ones((2, 3))), ("linear", "input", "ndarray", "chainrule.tensor")),
    "float64 for a layer": (lambda: nn.Linear(3, 1)(cr.ones(2, 3, dtype=cr.float64)), ("linear", "float32", "float64", r"\.to\(")),
    "a class out of range": (lambda: F.cross_entropy(cr.ones(2, 3), cr.tensor([0, 3])), ("cross_entropy", "3", "classes")),
    "a product of stacks": (lambda: cr.ones(2, 3, 4) @ cr.ones(2, 3, 4), ("matmul", "2x3x4", "second to last")),
    "a gradient that is unused": (gradient_of_what_is_not_used, ("index 0", "allow_unused", "\\[2\\]")),
    "sizes of parts": (lambda: cr.split(A, [1, 3], dim=1), ("split", "3", "\\[1, 3\\]")),
    "more than there are": (lambda: A.topk(5), ("topk", "5", "3")),
    "a value of another shape": (lambda: A.clone().__setitem__(0, cr.ones(4)), ("\\[3\\]", "\\[4\\]", "fit")),
    "a sum of integers and halves in place": (lambda: cr.tensor([1, 2]).add_(0.5), ("add_", "Float", "Long")),
    "less of masks": (lambda: cr.tensor([True]) - cr.tensor([False]), ("sub", "bool", "logical_xor|\\^")),
    "a deviation below 0": (lambda: cr.distributions.Normal(0.0, -1.0), ("scale", "Normal", "-1")),
    "dropout beyond 1": (lambda: F.dropout(X, 1.5), ("dropout", "1.5", "0 and 1")),
    "one example in a batch": (lambda: nn.BatchNorm1d(3)(cr.ones(1, 3)), ("batch_norm", "more than 1", "1, 3")),
    "features of a recurrent layer": (lambda: nn.LSTM(3, 2)(cr.ones(4, 1, 5)), ("lstm|LSTM", "3", "5")),
    "a key of a state misspelt": (lambda: nn.Linear(1, 1).load_state_dict({"weigth": cr.ones(1, 1), "bias": cr.ones(1)}), ("Missing", "weight", "weigth")),
    "NumPy: math": (lambda: grad(lambda x: math.sin(x[0]))(np.ones(2)), ("np.sin", "math.sin")),
    "NumPy: integers": (lambda: grad(lambda x: np.sum(x**2))(np.array([1, 2])), ("grad", "int64", "astype\\(float\\)")),
    "NumPy: a vector": (lambda: grad(lambda x: np.sin(x))(np.ones(2)), ("grad", "scalar", "2", "jacrev|vjp")),
    "a sparse tensor as an array": (lambda: cr.eye(2).to_sparse().numpy(), ("sparse", "to_dense")),
    "an index of a sparse tensor": (lambda: cr.sparse_coo_tensor(cr.tensor([[5]]), cr.tensor([1.0]), (2,)), ("sparse_coo_tensor", "5", "2")),
    "half-open slices backwards": (lambda: X[::-1], ("step|negative", "flip")),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_explained(name: str) -> None:
    f, words = MISTAKES[name]
    with pytest.raises(Exception) as caught:
        f()
    assert not isinstance(caught.value, AssertionError)
    text = str(caught.value)
    for w in words:
        assert re.search(w, text), f"{name}: {type(caught.value).__name__}: {text!r} has no {w!r}"


def test_there_are_sixty() -> None:
    assert len(MISTAKES) >= 60


def test_ten_messages_name_their_heading_on_the_page_of_errors() -> None:
    root = Path(__file__).resolve().parent.parent.parent
    headings = set(re.findall(r"^## (.*)$", (root / "docs" / "howto" / "errors.md").read_text(encoding="utf-8"), re.M))
    named: set[str] = set()
    for path in (root / "src" / "chainrule").rglob("*.py"):
        named |= set(re.findall(r'\bsee\("([^"]+)"\)', path.read_text(encoding="utf-8")))
    assert named == headings and len(headings) == 10
