"""Chainrule in five minutes: a derivative, per-example gradients, a Hessian, a training run, each checked on the spot.

Run it with `chainrule demo`, or with `make demo` in a checkout. The loss curve is saved as
`build/demo.png`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np

import chainrule as cr
from chainrule.func import grad, grad_and_value, hessian, vmap

PICTURE = Path("build") / "demo.png"
Params = dict[str, cr.Tensor]


def central(f: Callable[[np.ndarray], np.ndarray], x: np.ndarray, h: float = 1e-5) -> np.ndarray:
    """df/dx by central differences: (f(x + h e_i) - f(x - h e_i)) / 2h for each entry of x, along the last axes."""
    columns = []
    for i in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[i] = h
        columns.append((f(x + step) - f(x - step)) / (2 * h))
    return np.stack(columns, axis=-1).reshape(np.shape(columns[0]) + x.shape)


def check(what: str, got: cr.Tensor | np.ndarray, want: np.ndarray, tolerance: float = 1e-6) -> None:
    """Prints how far `got` is from central differences; a result that is too far off ends the demo."""
    error = float(np.max(np.abs(np.asarray(got) - want) / (1 + np.abs(want))))
    good = error <= tolerance
    print(f"  {'✓' if good else '✗'} {what}: differs from central differences by {error:.1e}")
    if not good:
        sys.exit(f"{what}: expected {want}, got {got}")


def value(f: Callable[[cr.Tensor], cr.Tensor]) -> Callable[[np.ndarray], np.ndarray]:
    """The same function on plain arrays, for the central differences."""
    return lambda x: np.asarray(f(cr.tensor(x, dtype=cr.float64)))


def a_derivative() -> None:
    print("\nThe derivative of a plain function, and the derivative of that")

    def f(x: cr.Tensor) -> cr.Tensor:
        return cr.sin(3 * x) * cr.exp(-x * x)

    x = cr.tensor(0.4, dtype=cr.float64)
    first, second = grad(f)(x), grad(grad(f))(x)
    print(f"  f(0.4) = {f(x).item():+.6f}   f'(0.4) = {first.item():+.6f}   f''(0.4) = {second.item():+.6f}")
    check("f'", first, central(value(f), np.array(0.4)))
    check("f''", second, central(value(grad(f)), np.array(0.4)))

    print("\nThe same with requires_grad and backward()")
    a = cr.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=cr.float64, requires_grad=True)
    y = cr.logsumexp(a @ a.T, dim=-1).sum()
    y.backward()
    assert a.grad is not None
    print(f"  y = {y.item():.6f}   dy/da =\n{a.grad}")
    check("dy/da", a.grad, central(value(lambda a: cr.logsumexp(a @ a.T, dim=-1).sum()), a.detach().numpy()))


def per_example_gradients() -> None:
    print("\nOne gradient for each of 5 examples, in one pass: vmap(grad(loss))")

    def loss(w: cr.Tensor, x: cr.Tensor, y: cr.Tensor) -> cr.Tensor:
        return (cr.tanh(x @ w) - y) ** 2

    w, xs, ys = cr.randn(3, dtype=cr.float64), cr.randn(5, 3, dtype=cr.float64), cr.randn(5, dtype=cr.float64)
    each = vmap(grad(loss), in_dims=(None, 0, 0))(w, xs, ys)
    print(f"  {tuple(each.shape)} gradients, their norms: {np.round(np.linalg.norm(np.asarray(each), axis=-1), 4)}")
    check(
        "per-example gradients", each, central(value(lambda w: vmap(loss, in_dims=(None, 0, 0))(w, xs, ys)), w.numpy())
    )


def a_hessian() -> None:
    print("\nThe Hessian of Rosenbrock's function")

    def rosenbrock(x: cr.Tensor) -> cr.Tensor:
        return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

    x = cr.tensor([0.5, 0.3, -0.2], dtype=cr.float64)
    second = hessian(rosenbrock)(x)
    print(second)
    check("Hessian", second, central(value(grad(rosenbrock)), x.numpy()))

    for _ in range(12):
        x = x - cr.linalg.solve(hessian(rosenbrock)(x), grad(rosenbrock)(x))
    print(f"  12 Newton steps lead to {np.round(x.numpy(), 9)}; the minimum is at [1 1 1]")


def initial(sizes: list[int]) -> Params:
    """Weights with variance 1/fan_in, biases at zero."""
    params: Params = {}
    for i, (m, n) in enumerate(pairwise(sizes)):
        params[f"w{i}"] = cr.randn(m, n, dtype=cr.float64) / m**0.5
        params[f"b{i}"] = cr.zeros(n, dtype=cr.float64)
    return params


def mlp(params: Params, x: cr.Tensor) -> cr.Tensor:
    """tanh layers, a linear one at the end."""
    layers = len(params) // 2
    for i in range(layers):
        x = x @ params[f"w{i}"] + params[f"b{i}"]
        x = cr.tanh(x) if i < layers - 1 else x
    return x


def adam(params: Params, grads: Params, state: dict[str, tuple[cr.Tensor, cr.Tensor]], step: int, lr: float) -> Params:
    """w - lr m / (sqrt(v) + eps), with m and v the bias-corrected running means of g and g^2."""
    new = {}
    for k, w in params.items():
        m, v = state.get(k, (cr.zeros_like(w), cr.zeros_like(w)))
        m, v = 0.9 * m + 0.1 * grads[k], 0.999 * v + 0.001 * grads[k] ** 2
        state[k] = m, v
        new[k] = w - lr * (m / (1 - 0.9**step)) / (cr.sqrt(v / (1 - 0.999**step)) + 1e-8)
    return new


def training(steps: int = 600) -> None:
    print("\nA short training run: a 1-32-32-1 network learns a noisy curve")
    x = cr.linspace(-2, 2, 96, dtype=cr.float64).reshape(-1, 1)
    truth = cr.sin(3 * x) + 0.3 * x
    y = truth + 0.1 * cr.randn(96, 1, dtype=cr.float64)
    params = initial([1, 32, 32, 1])

    def loss(params: Params) -> cr.Tensor:
        return ((mlp(params, x) - y) ** 2).mean()

    direction = {k: cr.randn(*w.shape, dtype=cr.float64) for k, w in params.items()}

    def along(h: np.ndarray) -> np.ndarray:
        return np.asarray(loss({k: w + float(h) * direction[k] for k, w in params.items()}))

    def slope() -> np.ndarray:
        return np.array(sum((g * direction[k]).sum().item() for k, g in grad(loss)(params).items()))

    check("the slope of the loss along a random direction in weight space", slope(), central(along, np.array(0.0)))

    losses: list[float] = []
    state: dict[str, tuple[cr.Tensor, cr.Tensor]] = {}
    start = time.perf_counter()
    for step in cr.progress(range(steps), "  training"):
        grads, l = grad_and_value(loss)(params)
        params = adam(params, grads, state, step + 1, lr=0.01 * (1 + np.cos(np.pi * step / steps)))
        losses.append(l.item())
    seconds = time.perf_counter() - start
    print(f"  loss {losses[0]:.4f} -> {losses[-1]:.4f} in {steps} steps, {1e3 * seconds / steps:.2f} ms a step")
    check("the slope after training", slope(), central(along, np.array(0.0)))
    if losses[-1] > 0.05:
        sys.exit("the network did not learn the curve")
    picture(losses, x.numpy(), y.numpy(), truth.numpy(), mlp(params, x).numpy())


def picture(losses: list[float], x: np.ndarray, y: np.ndarray, truth: np.ndarray, fit: np.ndarray) -> None:
    """The loss curve and the learnt curve, side by side, in `build/demo.png`."""
    try:
        import matplotlib
    except ImportError:
        print("  (install matplotlib for a picture of the loss curve)")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    left.semilogy(losses, color="tab:blue")
    left.axhline(0.01, color="0.6", linestyle=":", linewidth=1)
    left.annotate("noise in the data", (0, 0.01), xytext=(0, 4), textcoords="offset points", color="0.4")
    left.set(title="Loss", xlabel="step", ylabel="mean squared error")
    right.plot(x, y, ".", color="0.65", label="data")
    right.plot(x, truth, "--", color="0.3", linewidth=1, label="truth")
    right.plot(x, fit, color="tab:red", label="network")
    right.set(title="What the network learnt", xlabel="x")
    right.legend(frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=120)
    print(f"  the loss curve is in {PICTURE.parent.name}/{PICTURE.name}")


def main() -> None:
    cr.manual_seed(0)
    a_derivative()
    per_example_gradients()
    a_hessian()
    training()
    print("\nEverything agrees with central differences.")


if __name__ == "__main__":
    main()
