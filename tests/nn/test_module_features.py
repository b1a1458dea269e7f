"""What modules do beside computing: each scenario runs under PyTorch's name and under ours, and must tell the same story."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")
STORIES: list[Callable[[Any], Any]] = []
Pair = namedtuple("Pair", "first second")


def story(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    STORIES.append(f)
    return f


def error(f: Callable[[], Any]) -> str:
    """The type of what a call raises, of Python's own."""
    try:
        f()
    except Exception as e:
        return next(c.__name__ for c in type(e).__mro__ if c.__module__ == "builtins")
    return "nothing"


def numbers(x: Any) -> Any:
    return x.detach().double().numpy().tolist()


def net(L: Any) -> Any:
    m = L.nn.Sequential(
        OrderedDict(a=L.nn.Linear(2, 3), b=L.nn.Sequential(L.nn.Linear(3, 2), L.nn.BatchNorm1d(2)), c=L.nn.ReLU())
    )
    for k, p in enumerate(m.parameters()):
        p.data = L.arange(p.numel(), dtype=L.float32).reshape(p.shape) / 10 - k / 7
    return m


def ramp(L: Any, *shape: int, grad: bool = False) -> Any:
    n = int(np.prod(shape))
    return (L.arange(n, dtype=L.float32).reshape(shape) / 5 - 0.7).requires_grad_(grad)


@story
def children_and_names(L: Any) -> Any:
    m = net(L)
    m.d = m.a  # twice in the tree
    return [
        [n for n, _ in m.named_modules()],
        [n for n, _ in m.named_modules(remove_duplicate=False)],
        len(list(m.modules())),
        len(list(m.modules(remove_duplicate=False))),
        [n for n, _ in m.named_children()],
        [n for n, _ in m.named_parameters()],
        [n for n, _ in m.named_parameters(remove_duplicate=False)],
        [n for n, _ in m.named_parameters("x", recurse=False)],
        [n for n, _ in m.b.named_buffers("p")],
        [n for n, _ in m.named_buffers(recurse=False)],
        len(list(m.b.buffers())),
        sorted(set(dir(m)) & {"a", "b", "c", "d", "weight"}),
        repr(m),
    ]


@story
def attributes_change_their_kind(L: Any) -> Any:
    m = L.nn.Linear(2, 2)
    m.extra = L.nn.Parameter(L.zeros(1))
    m.weight = L.nn.Parameter(L.ones(2, 2))  # keeps its place
    out = [list(m._parameters)]
    m.register_buffer("buf", L.ones(1), persistent=False)
    m.buf = L.zeros(2)
    out += [list(m._buffers), sorted(m._non_persistent_buffers_set), list(m.state_dict())]
    m.extra = None
    out += [list(m._parameters), [n for n, _ in m.named_parameters()]]
    m.sub = L.nn.ReLU()
    m.sub = None
    out += [list(m._modules), repr(m)]
    m.buf = L.nn.Parameter(L.ones(1))
    out += [list(m._buffers), list(m._parameters), sorted(m._non_persistent_buffers_set)]
    del m.buf
    out += [hasattr(m, "buf"), error(lambda: m.buf)]
    m.plain = L.nn.Buffer(L.ones(2), persistent=False)
    out += [list(m._buffers), sorted(m._non_persistent_buffers_set)]
    return out


@story
def refusals(L: Any) -> Any:
    m = L.nn.Linear(2, 2)
    x = ramp(L, 2, 2, grad=True)

    class Late(L.nn.Module):
        def __init__(self) -> None:
            self.weight = L.nn.Parameter(L.zeros(1))

    class Sub(L.nn.Module):
        def __init__(self) -> None:
            self.sub = L.nn.ReLU()

    class Buf(L.nn.Module):
        def __init__(self) -> None:
            self.register_buffer("b", L.zeros(1))

    return [
        error(lambda: setattr(m, "weight", L.zeros(2, 2))),
        error(lambda: setattr(m, "weight", 3)),
        error(lambda: m.register_parameter("a.b", None)),
        error(lambda: m.register_parameter("", None)),
        error(lambda: m.register_parameter(3, None)),
        error(lambda: m.register_parameter("forward", None)),
        error(lambda: m.register_parameter("q", x * 2)),
        error(lambda: m.register_parameter("q", L.zeros(2))),
        error(lambda: m.register_buffer("weight", L.zeros(2))),
        error(lambda: m.register_buffer("q", 3)),
        error(lambda: m.add_module("weight", L.nn.ReLU())),
        error(lambda: m.add_module("q", 3)),
        error(lambda: m.register_module("q", L.nn.ReLU())),
        error(lambda: m.get_submodule("nowhere")),
        error(lambda: m.get_submodule("weight")),
        error(lambda: m.get_parameter("nowhere")),
        error(lambda: m.get_buffer("weight")),
        error(lambda: m.set_submodule("", L.nn.ReLU())),
        error(lambda: m.train(3)),
        error(lambda: m.to(L.int64)),
        error(Late),
        error(Sub),
        error(Buf),
        error(lambda: L.nn.Module(3)),
        error(lambda: L.nn.Module(a=3)),
        error(lambda: L.nn.Module()(3)),
        error(lambda: m.load_state_dict([1])),
        error(lambda: L.nn.Sequential(L.nn.ReLU()) * 0),
        error(lambda: L.nn.Sequential(L.nn.ReLU()) * 1.5),
        error(lambda: L.nn.ModuleList([1])),
        error(lambda: L.nn.ModuleDict({"a": 3})),
        error(lambda: L.nn.ModuleDict(3)),
        error(lambda: L.nn.ParameterList()(3)),
        error(lambda: L.nn.ParameterDict()["a"]),
        error(lambda: L.nn.Dropout(1.5)),
        error(lambda: L.nn.Conv2d(3, 4, 3, groups=2)),
        error(lambda: L.nn.Conv2d(3, 4, 3, padding="some")),
        error(lambda: L.nn.Conv2d(3, 4, 3, 2, padding="same")),
        error(lambda: L.nn.Conv2d(3, 4, 3, padding_mode="other")),
        error(lambda: L.nn.ConvTranspose2d(3, 4, 3, padding_mode="reflect")),
        error(lambda: L.nn.ConvTranspose2d(1, 1, 3, 2)(L.zeros(1, 1, 3, 3), [20, 20])),
        error(lambda: L.nn.FractionalMaxPool2d(2)),
        error(lambda: L.nn.MultiheadAttention(7, 2)),
        error(lambda: L.nn.MultiheadAttention(0, 2)),
        error(lambda: L.nn.GroupNorm(2, 3)),
        error(lambda: L.nn.BatchNorm2d(2)(L.zeros(2, 2))),
        error(lambda: L.nn.AdaptiveLogSoftmaxWithLoss(4, 5, [3, 2])),
        error(lambda: L.nn.TransformerEncoderLayer(4, 2, activation="other")),
        error(lambda: L.nn.MultiMarginLoss(p=3)),
        error(lambda: L.nn.MSELoss(reduction="other")(L.zeros(1), L.zeros(1))),
    ]


@story
def paths(L: Any) -> Any:
    m = net(L)
    m.set_submodule("b.0", L.nn.Identity())
    m.set_submodule("b.new", L.nn.Tanh())
    return [
        type(m.get_submodule("b.0")).__name__,
        m.get_submodule("") is m,
        list(m.get_parameter("a.weight").shape),
        numbers(m.get_buffer("b.1.running_var")),
        error(lambda: m.set_submodule("b.other", L.nn.Tanh(), strict=True)),
        repr(m),
    ]


@story
def states_in_and_out(L: Any) -> Any:
    m, n = net(L), net(L)
    s = m.state_dict()
    out = [list(s), {k: dict(v) for k, v in s._metadata.items()}, type(s).__name__]
    n.load_state_dict({k: v + 1 if v.is_floating_point() else v for k, v in s.items()})
    out += [numbers(n.a.weight), numbers(n.b[1].running_mean)]
    few = {k: v for k, v in s.items() if "bias" not in k}
    r = n.load_state_dict({**few, "other": L.zeros(1), "b.2.w": L.zeros(1)}, strict=False)
    out += [r.missing_keys, r.unexpected_keys, list(r._fields), str(n.load_state_dict(s))]
    out += [error(lambda: n.load_state_dict(few)), error(lambda: n.load_state_dict({**s, "a.weight": L.zeros(5, 5)}))]
    before = n.a.weight
    n.load_state_dict({k: v.double() for k, v in s.items()}, assign=True)
    out += [
        n.a.weight is before,
        str(n.a.weight.dtype).split(".")[-1],
        type(n.a.weight).__name__,
        n.a.weight.requires_grad,
    ]
    out += [list(m.state_dict(prefix="p.")), m.state_dict(keep_vars=True)["a.weight"] is m.a.weight]
    return out


@story
def messages_of_loading(L: Any) -> Any:
    m = net(L)
    s = dict(m.state_dict())
    texts = []
    for change in ({"a.weight": None}, {"x": L.zeros(1)}, {"a.weight": L.zeros(5)}):
        state = {k: v for k, v in {**s, **change}.items() if v is not None}
        try:
            m.load_state_dict(state)
        except RuntimeError as e:
            texts.append(str(e).replace("chainrule.", "torch."))
    return texts


@story
def overridden_states(L: Any) -> Any:
    seen = []

    class Own(L.nn.Module):
        _version = 3

        def __init__(self) -> None:
            super().__init__()
            self.w = L.nn.Parameter(L.ones(2))

        def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
            super()._save_to_state_dict(destination, prefix, keep_vars)
            destination[prefix + "more"] = L.full((1,), 7.0)

        def _load_from_state_dict(self, state: Any, prefix: str, meta: Any, *rest: Any) -> None:
            seen.append((prefix, meta.get("version"), float(state.pop(prefix + "more"))))
            super()._load_from_state_dict(state, prefix, meta, *rest)

    m = L.nn.Sequential(Own(), Own())
    s = m.state_dict()
    m.load_state_dict(s)
    m.load_state_dict(dict(s))
    return [list(s), seen]


@story
def extra_states(L: Any) -> Any:
    class Extra(L.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.seen = 0

        def get_extra_state(self) -> Any:
            return {"seen": self.seen}

        def set_extra_state(self, state: Any) -> None:
            self.seen = state["seen"] + 1

    m = L.nn.Sequential(Extra(), L.nn.Linear(1, 1))
    m[0].seen = 4
    s = m.state_dict()
    m.load_state_dict(s)
    r = m.load_state_dict({k: v for k, v in s.items() if "extra" not in k}, strict=False)
    t = L.nn.Linear(1, 1).load_state_dict({**L.nn.Linear(1, 1).state_dict(), "_extra_state": 3}, strict=False)
    return [list(s), m[0].seen, r.missing_keys, t.unexpected_keys]


@story
def hooks_of_states(L: Any) -> Any:
    m = net(L)
    log: list[Any] = []
    m.b.register_state_dict_pre_hook(lambda mod, prefix, keep: log.append(("pre", prefix, keep)))
    m.b.register_state_dict_post_hook(
        lambda mod, s, prefix, meta: log.append(("post", len(s), prefix, meta["version"]))
    )
    m._register_state_dict_hook(lambda mod, s, prefix, meta: OrderedDict((k.upper(), v) for k, v in s.items()))
    s = m.state_dict()
    m.b.register_load_state_dict_pre_hook(lambda mod, st, prefix, *_: log.append((type(mod).__name__, prefix, len(st))))
    m.b[0]._register_load_state_dict_pre_hook(lambda st, prefix, *_: log.append(("private", prefix, len(st))))
    m.b.register_load_state_dict_post_hook(lambda mod, keys: log.append(("child", len(keys.missing_keys))))

    def forgive(mod: Any, keys: Any) -> None:
        keys.missing_keys.clear()
        keys.unexpected_keys.clear()

    h = m.register_load_state_dict_post_hook(forgive)
    m.load_state_dict({})
    h.remove()
    bad = L.nn.Linear(1, 1)
    bad.register_load_state_dict_post_hook(lambda mod, keys: 3)
    worse = L.nn.Linear(1, 1)
    worse.register_state_dict_post_hook(lambda *a: {})
    return [
        list(s), log, error(lambda: m.load_state_dict({})), error(lambda: bad.load_state_dict(bad.state_dict())),
        error(worse.state_dict),
    ]  # fmt: skip


@story
def hooks_of_calls(L: Any) -> Any:
    m = L.nn.Linear(2, 2)
    m.weight.data, m.bias.data = L.eye(2), L.zeros(2)
    log: list[Any] = []
    m.register_forward_pre_hook(lambda mod, args: (args[0] * 2,))
    m.register_forward_pre_hook(lambda mod, args: log.append("first"), prepend=True)
    m.register_forward_pre_hook(lambda mod, args, kw: (args, {}), with_kwargs=True)
    m.register_forward_hook(lambda mod, args, out: out + 1)
    h = m.register_forward_hook(lambda mod, args, kw, out: log.append(sorted(kw)), with_kwargs=True)
    m.register_forward_hook(lambda mod, args, out: log.append(numbers(out)), prepend=True)
    y = m(L.ones(1, 2), unknown=3)
    h.remove()
    with m.register_forward_hook(lambda mod, args, out: out * 0):
        z = m(L.ones(1, 2))
    sizes = [len(m._forward_hooks), len(m._forward_pre_hooks), len(m._forward_hooks_with_kwargs)]
    return [numbers(y), numbers(z), log, sizes]


@story
def hooks_that_always_run(L: Any) -> Any:
    class Broken(L.nn.Module):
        def forward(self, x: Any) -> Any:
            raise ValueError("broken")

    m, log = Broken(), []
    m.register_forward_hook(lambda mod, args, out: log.append(("always", out)), always_call=True)
    m.register_forward_hook(lambda mod, args, out: log.append("never"))
    return [error(lambda: m(3)), log]


@story
def global_hooks(L: Any) -> Any:
    from importlib import import_module

    g = import_module(f"{L.__name__}.nn.modules.module")
    m, log = net(L), []
    handles = [
        g.register_module_forward_pre_hook(lambda mod, args: log.append(("pre", type(mod).__name__))),
        g.register_module_forward_hook(lambda mod, args, out: log.append(("post", type(mod).__name__))),
        g.register_module_full_backward_hook(
            lambda mod, gi, go: log.append(("back", type(mod).__name__, len(gi), len(go)))
        ),
        g.register_module_full_backward_pre_hook(lambda mod, go: log.append(("before", type(mod).__name__))),
    ]
    m(ramp(L, 3, 2, grad=True)).sum().backward()
    for h in handles:
        h.remove()
    n = len(log)
    m(ramp(L, 3, 2, grad=True)).sum().backward()
    names: list[Any] = []
    handles = [
        g.register_module_parameter_registration_hook(lambda mod, name, p: names.append(("p", name))),
        g.register_module_buffer_registration_hook(lambda mod, name, p: names.append(("b", name))),
        g.register_module_module_registration_hook(lambda mod, name, p: names.append(("m", name))),
    ]
    L.nn.Sequential(L.nn.BatchNorm1d(2))
    for h in handles:
        h.remove()
    return [log, len(log) == n, names]


@story
def hooks_of_gradients(L: Any) -> Any:
    log: list[Any] = []
    m = L.nn.Bilinear(2, 2, 1)
    m.weight.data, m.bias.data = ramp(L, 1, 2, 2), L.zeros(1)
    m.register_full_backward_hook(
        lambda mod, gi, go: log.append([[None if g is None else numbers(g) for g in gs] for gs in (gi, go)])
    )
    m.register_full_backward_pre_hook(lambda mod, go: (go[0] * 10,))
    x, y = ramp(L, 2, 2, grad=True), ramp(L, 2, 2)
    m(x, y).sum().backward()
    m(y, y).sum().backward()  # no input needs a gradient
    r = L.nn.Tanh()
    r.register_full_backward_hook(lambda mod, gi, go: (gi[0] * 0 + 5,))
    z = ramp(L, 2, grad=True)
    r(z).sum().backward()
    wrong = L.nn.Tanh()
    wrong.register_full_backward_hook(lambda mod, gi, go: (gi[0], gi[0]))
    m2 = L.nn.Tanh()
    m2.register_backward_hook(lambda *a: None)
    return [
        log, numbers(x.grad), numbers(z.grad), error(lambda: wrong(ramp(L, 2, grad=True)).sum().backward()),
        error(lambda: m2.register_full_backward_hook(lambda *a: None)),
    ]  # fmt: skip


@story
def hooks_of_several_results(L: Any) -> Any:
    log: list[Any] = []

    class Two(L.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return Pair(x * y, x + 1)

    m = Two()
    m.register_full_backward_hook(
        lambda mod, gi, go: log.append([[None if g is None else numbers(g) for g in gs] for gs in (gi, go)])
    )
    m.register_full_backward_pre_hook(lambda mod, go: log.append([g is None for g in go]))
    x, y = ramp(L, 2, grad=True), ramp(L, 2, grad=True)
    out = m(x, y)
    (out.first * 2 + out.second * 3).sum().backward()
    m(x, y).second.sum().backward()
    return [type(out).__name__, log, numbers(x.grad), numbers(y.grad)]


@story
def conversions(L: Any) -> Any:
    m = net(L)
    w = m.a.weight
    m(ramp(L, 3, 2)).sum().backward()
    out = []
    for f in ("double", "half", "bfloat16", "float"):
        getattr(m, f)()
        out.append((f, str(m.a.weight.dtype).split(".")[1], str(m.b[1].num_batches_tracked.dtype).split(".")[1]))
    m.to(L.float64)
    out += [m.a.weight is w, type(w).__name__, str(w.grad.dtype).split(".")[1], w.requires_grad, w.is_leaf]
    m.to(L.zeros(1, dtype=L.float32))
    m.to("cpu", L.float64)
    m.to(device="cpu", dtype=L.float32, non_blocking=True)
    m.to(memory_format=L.channels_last)
    m.type(L.float64)
    out += [str(w.dtype).split(".")[1], str(m.b[1].num_batches_tracked.dtype).split(".")[1]]
    m.cpu().to_empty(device="cpu")
    out += [m.a.weight is w, list(w.shape), m.share_memory() is m]
    m._apply(L.zeros_like)  # what was there before is anything, NaN too
    out += [numbers(w), float(m.b[1].running_var.sum())]
    return out


@story
def modes(L: Any) -> Any:
    m, log = net(L), []
    out = [m.train(False) is m, m.b[1].training, m.eval().train().b[1].training]
    m.apply(lambda mod: log.append(type(mod).__name__))
    m.requires_grad_(False)
    out += [log, [p.requires_grad for p in m.parameters()]]
    m.requires_grad_()
    m(ramp(L, 3, 2)).sum().backward()
    m.zero_grad(set_to_none=False)
    out += [[float(p.grad.abs().sum()) for p in m.parameters()]]
    m.zero_grad()
    return [*out, [p.grad is None for p in m.parameters()]]


@story
def copies(L: Any) -> Any:
    m = net(L)
    m.register_buffer("loose", L.ones(1), persistent=False)
    m.tied = m.a.weight
    c = copy.deepcopy(m)
    p = pickle.loads(pickle.dumps(m))
    s = copy.copy(m)
    out = []
    for n in (c, p, s):
        out += [
            n.tied is n.a.weight,
            n.a is m.a,
            numbers(n.a.weight),
            list(n.state_dict()),
            repr(n) == repr(m),
            type(n.a.weight).__name__,
        ]
    out += [sorted(p._non_persistent_buffers_set), numbers(p.loose)]
    file = io.BytesIO()
    L.save(m.state_dict(), file)
    file.seek(0)
    return [*out, list(L.load(file))]


@story
def sequences(L: Any) -> Any:
    R, T = L.nn.ReLU(), L.nn.Tanh()
    s = L.nn.Sequential(R, T)
    out = [repr(s * 2), repr(2 * s), len(s + s), repr(s[1:]), repr(s[-1])]
    s *= 2
    s.append(L.nn.Identity()).insert(1, L.nn.Sigmoid()).extend([T])
    out += [repr(s), type(s.pop(1)).__name__, len(s)]
    del s[0]
    s[0] = L.nn.ELU()
    s += L.nn.Sequential(R)
    out += [repr(s), [type(m).__name__ for m in s]]
    named = L.nn.Sequential(OrderedDict(x=R, y=T))
    out += [repr(named), repr(named[:1]), [n for n, _ in named.named_children()]]
    m = L.nn.ModuleList([L.nn.Linear(1, 1), L.nn.Linear(1, 1), R])
    m += [T]
    m.insert(0, T)
    out += [repr(m), repr(m[1:3]), len(m + m), repr(L.nn.ModuleList()), type(m.pop(0)).__name__, R in m]
    d = L.nn.ModuleDict({"a": R, "b": T})
    d.update([("c", L.nn.GELU())])
    d.update(L.nn.ModuleDict({"d": R}))
    out += [repr(d), list(d), list(d.keys()), len(d), "a" in d, repr(d.pop("a"))]
    d.clear()
    return [*out, len(d)]


@story
def lists_of_parameters(L: Any) -> Any:
    p = L.nn.ParameterList([L.ones(2), L.nn.Parameter(L.zeros(1)), "text"])
    p.append(L.ones(3)).extend([L.ones(1)])
    p[1] = L.ones(2, 2)
    p += [3]
    out = [
        repr(p),
        len(p),
        [n for n, _ in p.named_parameters()],
        type(p[0]).__name__,
        len(p[1:3]),
        list(p.state_dict()),
    ]
    d = L.nn.ParameterDict({"a": L.ones(2), "b": L.nn.Parameter(L.zeros(1)), "c": 3})
    d.setdefault("d", L.ones(1))
    out += [repr(d), list(d), len(d), d.get("z", 5), list(reversed(d)), d.popitem()[0], d.pop("c"), list(d.copy())]
    out += [list(d | L.nn.ParameterDict({"q": L.ones(1)})), list(d.fromkeys(["u", "v"])), "a" in d]
    d.update({"r": L.ones(1)})
    out += [[n for n, _ in d.named_parameters()], next(iter(d.values())) is d["a"], [k for k, _ in d.items()]]
    d.clear()
    return [*out, len(d)]


@story
def subclasses(L: Any) -> Any:
    class Mine(L.nn.Parameter):
        pass

    class Strange(L.nn.Linear):
        def __init__(self) -> None:
            super().__init__(2, 2)
            self.extra = Mine(L.zeros(2))

        def extra_repr(self) -> str:
            return "one\ntwo"

    class Loss(L.nn.MSELoss):
        def __init__(self, scale: float) -> None:
            super().__init__(reduction="sum")
            self.scale = scale

        def forward(self, input: Any, target: Any) -> Any:
            return super().forward(input, target) * self.scale

    m = Strange()
    c = copy.deepcopy(m)
    return [
        type(m.extra).__name__, type(c.extra).__name__, isinstance(m.extra, L.nn.Parameter), repr(m),
        float(Loss(2.0)(L.ones(2), L.zeros(2))), type(L.nn.Parameter(L.zeros(1))).__name__, type(m.weight + 1).__name__,
        repr(L.nn.L1Loss(size_average=False).reduction), L.nn.MSELoss(reduce=False).reduction,
    ]  # fmt: skip


@story
def lazy_modules(L: Any) -> Any:
    m = L.nn.Sequential(L.nn.LazyConv2d(4, 3), L.nn.LazyBatchNorm2d(), L.nn.Flatten(), L.nn.LazyLinear(5))
    before = [
        repr(m),
        type(m[0].weight).__name__,
        type(m[1].running_mean).__name__,
        m[3].has_uninitialized_params(),
        repr(m[3].weight),
    ]
    refused = [
        error(lambda: m[3].weight.shape), error(lambda: m[3].weight + 1), error(lambda: m[0].weight.materialize()),
        isinstance(m[0].weight, L.nn.Parameter), m[3].weight.requires_grad, m[3].weight.is_leaf,
    ]  # fmt: skip
    m.double()
    weights = L.nn.Sequential(L.nn.LazyConv2d(4, 3), L.nn.Flatten(), L.nn.LazyLinear(5))
    c, p = copy.deepcopy(weights), pickle.loads(pickle.dumps(weights))
    state = m.state_dict()
    x = L.ones(2, 3, 5, 5, dtype=L.float64)
    for n in (m, c, p):
        n(x if n is m else x.float())
    after = [repr(n) for n in (m, c, p)]
    types = [type(k).__name__ for k in m] + [
        type(m[0].weight).__name__,
        str(m[3].weight.dtype).split(".")[1],
        list(m[3].weight.shape),
    ]
    fresh = L.nn.Sequential(L.nn.LazyConv2d(4, 3), L.nn.LazyBatchNorm2d(), L.nn.Flatten(), L.nn.LazyLinear(5))
    fresh.load_state_dict(m.float().state_dict())
    L.optim.SGD(fresh.parameters(), lr=0.1)
    return [
        before,
        refused,
        list(state),
        after,
        types,
        error(lambda: L.nn.LazyConv1d(2, 2)(L.ones(1))),
        list(fresh[3].weight.shape),
    ]


@story
def uninitialized_tensors(L: Any) -> Any:
    P, B = L.nn.parameter.UninitializedParameter, L.nn.parameter.UninitializedBuffer
    p, b = P(), B()
    out = [
        repr(p),
        repr(b),
        L.nn.parameter.is_lazy(p),
        p.requires_grad,
        b.requires_grad,
        copy.deepcopy(p).requires_grad,
    ]
    p.materialize((2, 3), dtype=L.float64)
    b.materialize((2,))
    return [
        *out,
        type(p).__name__,
        list(p.shape),
        str(p.dtype).split(".")[1],
        p.requires_grad,
        p.is_leaf,
        type(b).__name__,
        list(b.shape),
    ]


@story
def pruning(L: Any) -> Any:
    from importlib import import_module

    prune = import_module(f"{L.__name__}.nn.utils.prune")
    m = L.nn.Linear(3, 2)
    m.weight.data, m.bias.data = ramp(L, 2, 3), ramp(L, 2)
    prune.l1_unstructured(m, "weight", 2)
    out = [list(m.state_dict()), numbers(m.weight_mask), numbers(m.weight), prune.is_pruned(m)]
    prune.ln_structured(m, "weight", 1, 2, 0)
    out += [numbers(m.weight_mask), len(m._forward_pre_hooks)]
    m(ramp(L, 1, 3)).sum().backward()
    out += [numbers(m.weight_orig.grad)]
    prune.remove(m, "weight")
    out += [list(m.state_dict()), numbers(m.weight), prune.is_pruned(m), type(m.weight).__name__]
    prune.custom_from_mask(m, "bias", L.tensor([0, 1]))
    out += [numbers(m.bias)]
    n = net(L)
    prune.global_unstructured([(n.a, "weight"), (n.b[0], "weight")], prune.L1Unstructured, amount=0.5)
    out += [numbers(n.a.weight_mask), numbers(n.b[0].weight_mask)]
    prune.random_unstructured(n.a, "bias", 1)
    prune.random_structured(n.b[0], "weight", 1, 1)
    prune.identity(n.b[0], "bias")
    out += [float(n.a.bias_mask.sum()), list(n.state_dict())]
    return [
        *out, error(lambda: prune.l1_unstructured(n.a, "bias", 7)), error(lambda: prune.l1_unstructured(n.a, "bias", -1.5)),
        error(lambda: prune.remove(m, "nothing")), error(lambda: prune.random_structured(n.a, "bias", 1, 0)),
        numbers(prune.L1Unstructured(2).prune(ramp(L, 2, 2))),
    ]  # fmt: skip


@story
def fusing(L: Any) -> Any:
    u = L.nn.utils
    out = []
    for conv, shape, transpose in (
        (L.nn.Conv2d(2, 3, 2), (1, 2, 4, 4), False),
        (L.nn.Conv2d(2, 3, 2, bias=False), (1, 2, 4, 4), False),
        (L.nn.ConvTranspose2d(2, 3, 2), (1, 2, 4, 4), True),
    ):
        bn = L.nn.BatchNorm2d(3)
        bn.running_mean, bn.running_var = ramp(L, 3), ramp(L, 3) ** 2 + 1
        bn.weight.data, bn.bias.data = ramp(L, 3) + 2, ramp(L, 3)
        both = L.nn.Sequential(conv, bn).eval()
        x = ramp(L, *shape)
        out.append(float((u.fuse_conv_bn_eval(conv, bn, transpose)(x) - both(x)).abs().max()) < 1e-5)
    lin, bn = L.nn.Linear(2, 3), L.nn.BatchNorm1d(3)
    bn.running_mean, bn.running_var = ramp(L, 3), ramp(L, 3) ** 2 + 1
    out.append(error(lambda: u.fuse_linear_bn_eval(lin, bn)))
    both = L.nn.Sequential(lin, bn).eval()
    x = ramp(L, 4, 2)
    out.append(float((u.fuse_linear_bn_eval(lin, bn)(x) - both(x)).abs().max()) < 1e-5)
    return out


@story
def tools(L: Any) -> Any:
    u = L.nn.utils
    m = net(L)
    v = u.parameters_to_vector(m.parameters())
    u.vector_to_parameters(v * 2, m.parameters())
    out = [numbers(m.a.weight), list(v.shape)]
    m(ramp(L, 3, 2)).pow(2).sum().backward()
    out += [
        numbers(u.clip_grad_norm_(m.parameters(), 0.5)),
        numbers(u.get_total_norm([p.grad for p in m.parameters()])),
    ]
    u.clip_grad_value_(m.parameters(), 0.01)
    u.clip_grads_with_norm_(m.parameters(), 0.001, L.tensor(1.0))
    out += [
        numbers(m.a.weight.grad),
        list(u.skip_init(L.nn.Linear, 2, 3).weight.shape),
        error(lambda: u.skip_init(L.nn.ReLU)),
    ]
    from importlib import import_module

    w = import_module(f"{L.__name__}.nn.modules.utils")
    g = import_module(f"{L.__name__}.nn.grad")
    s = OrderedDict({"module.a": 1, "b": 2})
    w.consume_prefix_in_state_dict_if_present(s, "module.")
    x, k = ramp(L, 1, 2, 4, 4), ramp(L, 3, 2, 2, 2)
    y = L.nn.functional.conv2d(x, k, stride=2)
    out += [
        list(s),
        w._pair(3),
        w._triple((1, 2, 3)),
        w._reverse_repeat_tuple((1, 2), 2),
        w._list_with_default([None, 3], [4, 5, 6]),
    ]
    out += [numbers(g.conv2d_input(x.shape, k, y, stride=2)), numbers(g.conv2d_weight(x, k.shape, y, stride=2))]
    d = L.nn.DataParallel(L.nn.Linear(2, 2))
    return [*out, list(d(ramp(L, 3, 2)).shape), list(d.state_dict()), repr(d)]


@story
def synchronised_norms(L: Any) -> Any:
    m = L.nn.SyncBatchNorm.convert_sync_batchnorm(net(L))
    return [repr(m), list(m.state_dict()), [type(k).__name__ for k in m.modules()]]


@story
def adaptive_softmax(L: Any) -> Any:
    m = L.nn.AdaptiveLogSoftmaxWithLoss(4, 8, [2, 5], div_value=2.0, head_bias=True)
    for p in m.parameters():
        p.data = ramp(L, *p.shape)
    x, y = ramp(L, 5, 4, grad=True), L.tensor([0, 7, 3, 1, 5])
    out, loss = m(x, y)
    loss.backward()
    one = m(x[0], y[0])
    return [
        numbers(out), numbers(loss), numbers(x.grad), numbers(m.log_prob(x)), numbers(m.predict(x)), numbers(one.output), list(one._fields),
        error(lambda: m(x, y + 5)), error(lambda: m(x, y[:2])), error(lambda: m(x[0], y)),
    ]  # fmt: skip


@pytest.mark.parametrize("f", STORIES, ids=lambda f: f.__name__)
def test_story(f: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, mine = f(torch), f(cr)
    assert len(mine) == len(theirs)
    for k, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        assert same(a, b), f"part {k}: {a} instead of {b}"


def same(a: Any, b: Any) -> bool:
    """Equal, numbers to single precision."""
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == pytest.approx(b, rel=1e-5, abs=1e-5)
    return a == b


def test_a_copy_of_a_lazy_norm() -> None:
    m = cr.nn.LazyBatchNorm1d().double()
    for n in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert n.has_uninitialized_params()
        n(cr.randn(3, 4, dtype=cr.float64))
        assert type(n) is cr.nn.BatchNorm1d and n.running_mean.dtype is cr.float64 and n.weight.shape == (4,)
    assert m.has_uninitialized_params()


def test_hooks_inside_transforms() -> None:
    """Hooks of gradients see what a transform's tape carries, and what they return goes on."""
    m = cr.nn.Tanh()
    seen: list[Any] = []
    m.register_full_backward_hook(lambda mod, gi, go: seen.append(go[0]) or (gi[0] * 3,))
    x = cr.linspace(-1, 1, 4, dtype=cr.float64)
    g = cr.func.grad(lambda x: m(x).sum())(x)
    want = 3 * (1 - cr.tanh(x) ** 2)
    assert cr.allclose(g, want) and len(seen) == 1
    assert cr.allclose(cr.func.vmap(cr.func.grad(lambda x: m(x).sum()))(x.reshape(2, 2)).reshape(-1), want)
    assert cr.allclose(cr.func.jvp(m, (x,), (cr.ones_like(x),))[1], want / 3)


SIZES: dict[str, tuple[Any, ...]] = {
    "Linear": (200, 300), "Bilinear": (20, 30, 40), "Conv1d": (16, 32, 5), "Conv2d": (16, 32, 3), "Conv3d": (8, 16, 3),
    "ConvTranspose1d": (16, 32, 5), "ConvTranspose2d": (16, 32, 3), "ConvTranspose3d": (8, 16, 3), "Embedding": (100, 20, 3),
    "EmbeddingBag": (100, 20), "MultiheadAttention": (64, 4), "TransformerEncoderLayer": (64, 4, 128), "TransformerDecoderLayer": (64, 4),
    "LayerNorm": (50,), "BatchNorm2d": (50,), "GroupNorm": (5, 50), "RMSNorm": (50,), "PReLU": (5,), "InstanceNorm1d": (5,),
    "AdaptiveLogSoftmaxWithLoss": (100, 200, [50, 100]), "LinearCrossEntropyLoss": (50, 60), "Transformer": (32, 2, 1, 1, 64),
}  # fmt: skip


@pytest.mark.parametrize("name", SIZES)
def test_initial_values(name: str) -> None:
    """Of the same distribution: the same mean, spread and bounds, as far as that many numbers tell."""
    cr.manual_seed(0), torch.manual_seed(0)
    mine, theirs = getattr(cr.nn, name)(*SIZES[name]), getattr(torch.nn, name)(*SIZES[name])
    for (n, p), (k, q) in zip(mine.named_parameters(), theirs.named_parameters(), strict=True):
        a, b = p.detach().numpy(), q.detach().numpy()
        assert n == k and a.shape == b.shape and a.dtype == b.dtype and p.requires_grad == q.requires_grad
        tol = 8 * max(b.std(), 1e-12) / np.sqrt(b.size)
        assert abs(a.mean() - b.mean()) <= tol and abs(a.std() - b.std()) <= tol, n
        if b.size > 500 and name not in ("Embedding", "EmbeddingBag"):
            assert abs(np.abs(a).max() / np.abs(b).max() - 1) < 0.05, n


def test_every_initialiser() -> None:
    cr.manual_seed(0), torch.manual_seed(0)
    for name in torch.nn.init.__dict__:
        if not name.startswith("_") and getattr(getattr(torch.nn.init, name), "__module__", "") == "torch.nn.init":
            assert hasattr(cr.nn.init, name), name
    rng = {"uniform_": (-1, 2), "normal_": (1, 2), "trunc_normal_": (0.5, 2, -1, 1), "xavier_uniform_": (2,), "xavier_normal_": (2,),
           "kaiming_uniform_": (0.5,), "kaiming_normal_": (0.5, "fan_out"), "constant_": (3,), "ones_": (), "zeros_": ()}  # fmt: skip
    for name, args in rng.items():
        a, b = (
            getattr(cr.nn.init, name)(cr.empty(100, 200), *args),
            getattr(torch.nn.init, name)(torch.empty(100, 200), *args),
        )
        assert float(a.mean()) == pytest.approx(float(b.mean()), abs=0.05) and float(a.std()) == pytest.approx(
            float(b.std()), abs=0.05
        ), name
    for groups in (1, 2):
        a, b = cr.nn.init.dirac_(cr.empty(4, 3, 3, 3), groups), torch.nn.init.dirac_(torch.empty(4, 3, 3, 3), groups)
        assert a.tolist() == b.tolist()
    assert cr.nn.init.eye_(cr.empty(2, 3)).tolist() == torch.nn.init.eye_(torch.empty(2, 3)).tolist()
    q = cr.nn.init.orthogonal_(cr.empty(3, 2, 2), 2.0).reshape(3, 4)
    assert cr.allclose(q @ q.T, 4 * cr.eye(3), atol=1e-5)
    assert (cr.nn.init.sparse_(cr.empty(10, 4), 0.3) == 0).sum(0).tolist() == [3] * 4
    with pytest.warns(FutureWarning, match="uniform_"):
        cr.nn.init.uniform(cr.empty(2))
    for name in ("linear", "tanh", "relu", "leaky_relu", "selu", "conv2d", "sigmoid"):
        assert cr.nn.init.calculate_gain(name) == torch.nn.init.calculate_gain(name)


def test_a_frozen_table_may_be_one_of_integers() -> None:
    e = cr.nn.Embedding.from_pretrained(cr.tensor([[1, 2], [3, 4]]))
    assert e(cr.tensor([1])).tolist() == [[3, 4]] and not e.weight.requires_grad
    with pytest.raises(RuntimeError, match="only floating"):
        cr.nn.Embedding.from_pretrained(cr.tensor([[1, 2]]), freeze=False)


def test_what_has_no_memory_format_and_seeds_that_are_too_large() -> None:
    x = cr.nested.nested_tensor([[1.0, 2.0], [3.0]])
    with pytest.raises(RuntimeError, match="memory format of images"):
        cr.empty_like(x, memory_format=cr.channels_last)
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        cr.manual_seed(2**64)


def test_windows_whose_sizes_are_no_sizes() -> None:
    for pool in (cr.nn.LPPool1d(2.0, 2**62, ceil_mode=True), cr.nn.MaxPool1d(2, stride=2**40), cr.nn.AvgPool1d(2**31)):
        with pytest.raises(RuntimeError, match="integer out of range"):
            pool(cr.ones(3, 15))


def test_vector_to_parameters_makes_them_views_of_the_vector():
    m = cr.nn.Linear(2, 1)
    vector = cr.tensor([1.0, 2.0, 3.0])
    cr.nn.utils.vector_to_parameters(vector, m.parameters())
    vector.mul_(2)
    assert m.weight.tolist() == [[2.0, 4.0]]
    assert m.bias.tolist() == [6.0]
    with cr.no_grad():
        m.weight.add_(1.0)
    assert vector.tolist() == [3.0, 5.0, 6.0]
