"""Every class of PyTorch's nn beside ours: names, signatures, states, texts, values and gradients on PyTorch's own samples."""

from __future__ import annotations

import importlib
import inspect
import warnings
from typing import Any

import numpy as np
import pytest

import chainrule as cr

torch = pytest.importorskip("torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_modules import module_db

pytestmark = pytest.mark.filterwarnings("ignore")
CLASSES = sorted(n for n in dir(torch.nn) if isinstance(getattr(torch.nn, n), type))
RANDOM = {"FractionalMaxPool2d", "FractionalMaxPool3d"}


def ours(x: Any) -> Any:
    """PyTorch's tensors, modules, functions and types as ours."""
    if isinstance(x, torch.Tensor):
        if x.is_nested:
            return cr.nested.nested_tensor([ours(t) for t in x.unbind()])
        y = cr.tensor(x.detach().resolve_conj().numpy().copy())
        return y.requires_grad_() if x.requires_grad else y
    if isinstance(x, torch.nn.Module):
        return twin(x)
    if isinstance(x, torch.dtype):
        return getattr(cr, str(x).removeprefix("torch."))
    if isinstance(x, tuple | list):
        return type(x)(*map(ours, x)) if hasattr(x, "_fields") else type(x)(map(ours, x))
    if isinstance(x, dict):
        return {k: ours(v) for k, v in x.items()}
    if callable(x) and getattr(x, "__module__", "").startswith("torch"):
        return getattr(cr.nn.functional, x.__name__, None) or getattr(cr, x.__name__)
    return x


def twin(m: Any) -> Any:
    """Our module of the same class: of those among the samples' arguments."""
    if type(m) is torch.nn.TransformerEncoderLayer:
        a, f = m.self_attn, m.linear1
        return cr.nn.TransformerEncoderLayer(
            a.embed_dim, a.num_heads, f.out_features, m.dropout.p, norm_first=m.norm_first, batch_first=a.batch_first,
            bias=f.bias is not None,
        )  # fmt: skip
    return getattr(cr.nn, type(m).__name__)()


def tensors(x: Any, kind: type) -> list[Any]:
    """The tensors in a result or in arguments, in order."""
    if isinstance(x, kind):
        return list(x.unbind()) if x.is_nested else [x]
    if isinstance(x, dict):
        x = list(x.values())
    return [t for y in x for t in tensors(y, kind)] if isinstance(x, tuple | list) else []


def leaves(x: Any) -> Any:
    """The same arguments with leaves in the place of what the samples computed."""
    if isinstance(x, torch.Tensor) and x.requires_grad and not x.is_nested:
        return x.detach().requires_grad_()
    if isinstance(x, dict):
        return {k: leaves(v) for k, v in x.items()}
    return type(x)(map(leaves, x)) if type(x) in (tuple, list) else x


def floating(xs: list[Any]) -> list[Any]:
    return [x for x in xs if x.is_floating_point() or x.is_complex()]


def close(a: Any, b: Any, what: str) -> None:
    """Equal to 1e-12 of the largest entry; NaN where PyTorch has it."""
    x, y = np.asarray(a.detach().numpy()), b.detach().resolve_conj().numpy()
    assert x.shape == y.shape, (what, x.shape, y.shape)
    scale = np.max(np.abs(y[np.isfinite(y)]), initial=1.0) if y.size and y.dtype.kind in "fc" else 1.0
    np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12 * scale, err_msg=what)


def samples() -> list[Any]:
    """A test a module, mode and few of the samples of each."""
    out = []
    for info in module_db:
        name = info.module_cls.__name__
        if not hasattr(torch.nn, name):
            continue
        for training in (True, False) if info.train_and_eval_differ else (True,):
            out.append(pytest.param(info, training, id=f"{name}-{'train' if training else 'eval'}"))
    return out


def build(info: Any, sample: Any) -> tuple[Any, Any]:
    given = sample.constructor_input
    kw = dict(given.kwargs)
    theirs = info.module_cls(*given.args, **kw)
    made = {k: v for k, v in kw.items() if k != "device"}
    return theirs.to(torch.float64), getattr(cr.nn, info.module_cls.__name__)(*ours(given.args), **ours(made)).double()


def spread(xs: list[Any], limit: int) -> list[Any]:
    step = max(1, -(-len(xs) // limit))
    return xs[::step]


@pytest.mark.parametrize("info, training", samples())
def test_values_and_gradients(info: Any, training: bool) -> None:
    name = info.module_cls.__name__
    if not hasattr(cr.nn, name):
        pytest.fail(f"nn.{name} is missing")
    torch.manual_seed(0)
    found = list(
        info.module_inputs_func(info, device="cpu", dtype=torch.float64, requires_grad=True, training=training)
    )
    for k, sample in enumerate(spread(found, 24)):
        what = f"{name} #{k} {sample.desc}"
        theirs, mine = build(info, sample)
        theirs.train(training), mine.train(training)
        args, kw = leaves(sample.forward_input.args), leaves(dict(sample.forward_input.kwargs))
        if "Lazy" in name:
            theirs(*args, **kw), mine(*ours(args), **ours(kw))
        state = theirs.state_dict()
        assert list(mine.state_dict()) == list(state), what
        mine.load_state_dict({n: ours(v) for n, v in state.items()})
        assert repr(mine) == repr(theirs), what
        if name in RANDOM:
            torch.manual_seed(0)
            for a, b in zip(
                tensors(mine(*ours(args), **ours(kw)), cr.Tensor),
                tensors(theirs(*args, **kw), torch.Tensor),
                strict=True,
            ):
                assert tuple(a.shape) == tuple(b.shape)
            continue
        my_args, my_kw = ours(args), ours(kw)
        given, my_given = args, my_args
        if name == "CTCLoss":  # its gradient in PyTorch is right behind a softmax only
            given = (args[0].log_softmax(-1), *args[1:])
            my_given = (my_args[0].log_softmax(-1), *my_args[1:])
        y, z = theirs(*given, **kw), mine(*my_given, **my_kw)
        ys, zs = tensors(y, torch.Tensor), tensors(z, cr.Tensor)
        assert len(ys) == len(zs), what
        for a, b in zip(zs, ys, strict=True):
            close(a, b, what)
        for n, v in theirs.state_dict().items():
            close(mine.state_dict()[n], v, f"{what}: {n} afterwards")
        compare_gradients(what, theirs, mine, (args, kw), (my_args, my_kw), floating(ys), floating(zs))


def compare_gradients(what: str, theirs: Any, mine: Any, args: Any, my_args: Any, ys: Any, zs: Any) -> None:
    ins = [t for t in tensors(list(args), torch.Tensor) if t.requires_grad] + list(theirs.parameters())
    my_ins = [t for t in tensors(list(my_args), cr.Tensor) if t.requires_grad] + list(mine.parameters())
    keep = [k for k, y in enumerate(ys) if y.requires_grad]
    assert [k for k, z in enumerate(zs) if z.requires_grad] == keep, what
    assert len(ins) == len(my_ins), what
    if not keep or not ins:
        return
    rng = np.random.default_rng(0)
    gs = [rng.standard_normal(tuple(ys[k].shape)) for k in keep]
    if any(ys[k].is_complex() for k in keep):
        gs = [g.astype(complex) if ys[k].is_complex() else g for g, k in zip(gs, keep, strict=True)]
    want = torch.autograd.grad([ys[k] for k in keep], ins, [torch.tensor(g) for g in gs], allow_unused=True)
    have = cr.autograd.grad([zs[k] for k in keep], my_ins, [cr.tensor(g) for g in gs], allow_unused=True)
    for k, (a, b) in enumerate(zip(have, want, strict=True)):
        if b is None or a is None:
            assert (a is None or not np.any(a.numpy())) and (b is None or not b.any()), f"{what}: gradient {k}"
        else:
            close(a, b, f"{what}: gradient {k}")


@pytest.mark.parametrize("name", CLASSES)
def test_signature(name: str) -> None:
    assert hasattr(cr.nn, name), f"nn.{name} is missing"
    theirs, mine = getattr(torch.nn, name), getattr(cr.nn, name)
    if not issubclass(theirs, torch.nn.Module):
        return
    for a, b in ((theirs, mine), (theirs.forward, mine.forward)):
        p, q = (inspect.signature(f).parameters for f in (a, b))
        if any(x.kind in (x.VAR_POSITIONAL, x.VAR_KEYWORD) for x in p.values()):
            continue
        names = [n for n in q if n in p or n not in ("mask", "lengths")]  # our norms take these besides
        assert names[: len(p)] == list(p), (name, names)
        for n, x in p.items():
            default = q[n].default
            if inspect.isroutine(x.default):
                assert default.__name__ == x.default.__name__
            else:
                assert default == x.default or x.default is x.empty, (name, n, default)
            assert q[n].kind is x.kind, (name, n)


@pytest.mark.parametrize("name", CLASSES)
def test_path_and_bases(name: str) -> None:
    theirs, mine = getattr(torch.nn, name), getattr(cr.nn, name)
    path = theirs.__module__.replace("torch", "chainrule", 1)
    assert getattr(importlib.import_module(path), name) is mine
    for base in theirs.__mro__[1:]:
        home = base.__module__
        if home.startswith("torch.nn") and base.__name__ not in ("_ConvTransposeMixin", "_LazyProtocol"):
            b = getattr(importlib.import_module(home.replace("torch", "chainrule", 1)), base.__name__)
            assert issubclass(mine, b), (name, base)


def transformed() -> list[Any]:
    """One sample of each module that has values to differentiate."""
    skip = {*RANDOM, "CTCLoss"}  # the loss's samples are integers and lengths
    return [p for p in samples() if p.values[0].module_cls.__name__ not in skip and p.values[1]]


@pytest.mark.parametrize("info, training", transformed())
def test_transforms(info: Any, training: bool) -> None:
    """Inside grad, jvp and vmap, as a function of parameters and inputs: forward mode is the gradient's product, vmap a loop."""
    name = info.module_cls.__name__
    torch.manual_seed(0)
    found = list(
        info.module_inputs_func(info, device="cpu", dtype=torch.float64, requires_grad=True, training=training)
    )
    for sample in found:
        if any(t.is_nested or t.is_complex() for t in tensors(sample.forward_input.args, torch.Tensor)):
            continue
        _, m = build(info, sample)
        args, kw = ours(leaves(sample.forward_input.args)), ours(leaves(dict(sample.forward_input.kwargs)))
        m.eval() if "Transformer" in name else m.train()
        y = m(*args, **kw)  # lazy ones become what they are
        if all(bool(t.isfinite().all()) for t in tensors(y, cr.Tensor)):
            break
    params = {k: v.detach() for k, v in m.named_parameters()}
    state = {k: v.detach() for k, v in m.named_buffers()}
    free = [k for k, a in enumerate(args) if isinstance(a, cr.Tensor) and a.requires_grad]
    rng = np.random.default_rng(0)
    weights: list[Any] = []

    def f(p: Any, xs: Any, state: Any = state) -> Any:
        full = [a.detach() if isinstance(a, cr.Tensor) else a for a in args]
        for k, x in zip(free, xs, strict=True):
            full[k] = x
        own = {k: v.clone() for k, v in state.items()}
        ys = floating(tensors(cr.func.functional_call(m, (p, own), tuple(full), kw), cr.Tensor))
        if not weights:
            weights.extend(cr.tensor(rng.standard_normal(tuple(y.shape))) for y in ys)
        return sum((y * w).sum() for y, w in zip(ys, weights, strict=True))

    xs = [args[k].detach() for k in free]
    y = f(params, xs)
    grads = cr.func.grad(f, argnums=(0, 1))(params, xs)
    t = {k: cr.tensor(rng.standard_normal(tuple(v.shape))) for k, v in params.items()}
    ts = [cr.tensor(rng.standard_normal(tuple(x.shape))) for x in xs]
    z, dz = cr.func.jvp(f, (params, xs), (t, ts))
    want = sum(float((grads[0][k] * t[k]).sum()) for k in t) + sum(
        float((g * d).sum()) for g, d in zip(grads[1], ts, strict=True)
    )
    assert float(z) == pytest.approx(float(y), rel=1e-12, abs=1e-12)
    assert float(dz) == pytest.approx(want, rel=1e-8, abs=1e-10), name
    p2 = {k: cr.stack([v, v + 0.01 * t[k]]) for k, v in params.items()}
    x2 = [cr.stack([x, x]) for x in xs]
    if p2 or x2:
        both = cr.func.vmap(f)(p2, x2, {k: cr.stack([v, v]) for k, v in state.items()})
        for k in range(2):
            one = f({n: v[k] for n, v in p2.items()}, [x[k] for x in x2])
            assert float(both[k]) == pytest.approx(float(one), rel=1e-9, abs=1e-12), name
