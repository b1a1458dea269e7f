"""The graph of the imperative style: hooks on saved values, nodes and edges; Functions; functional; gradcheck; the profiler."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import chainrule as cr
from chainrule import autograd
from chainrule.autograd import Function, functional, gradcheck, graph, once_differentiable
from chainrule.autograd.profiler import profile, record_function


def leaf(*values: float) -> cr.Tensor:
    return cr.tensor(values, dtype=cr.float64, requires_grad=True)


# -- what is saved --------------------------------------------------------------------------------------------------------


def test_saved_tensors_are_packed_and_unpacked() -> None:
    packed: list[Any] = []
    unpacked: list[Any] = []

    def pack(x: cr.Tensor) -> Any:
        packed.append(x)
        return x.detach().numpy() * 2

    def unpack(a: Any) -> cr.Tensor:
        unpacked.append(a)
        return cr.tensor(a)

    x = leaf(1.0, 2.0)
    with graph.saved_tensors_hooks(pack, unpack):
        y = x * x
    assert len(packed) == 2
    assert packed[0] is x
    y.sum().backward()
    assert len(unpacked) == 2
    assert x.grad.tolist() == [4.0, 8.0]  # the hooks doubled what was saved
    z = (x * x).sum()
    z.backward()
    assert len(packed) == 2  # outside nothing is packed


def test_packed_values_can_be_differentiated_twice_and_are_freed() -> None:
    x = leaf(2.0)
    with graph.saved_tensors_hooks(lambda v: v.detach().clone(), lambda v: v):
        y = (x**3).exp().sum()
        (g,) = autograd.grad(y, x, create_graph=True)
    (h,) = autograd.grad(g.sum(), x)
    e = cr.exp(cr.tensor(8.0, dtype=cr.float64)).item()
    assert h.item() == pytest.approx((12 + 144) * e)
    with pytest.raises(RuntimeError, match="Specify retain_graph=True"):
        y.backward()


def test_unpack_must_give_a_tensor_and_hooks_can_be_refused() -> None:
    x = leaf(1.0)
    with graph.saved_tensors_hooks(lambda v: 0, lambda v: v):
        y = x.exp()
    with pytest.raises(TypeError, match="expected to be a Tensor but got result of type int"):
        y.sum().backward()
    with (
        graph.disable_saved_tensors_hooks("not here"),
        pytest.raises(RuntimeError, match="not here"),
        graph.save_on_cpu(),
    ):
        pass
    with graph.save_on_cpu():
        y = x.sin().sum()
    y.backward()
    assert x.grad.item() == pytest.approx(cr.cos(x).item())


def test_a_function_packs_what_it_saved() -> None:
    class Cube(Function):
        @staticmethod
        def forward(ctx: Any, x: cr.Tensor, unused: cr.Tensor) -> cr.Tensor:
            between = x * x
            ctx.save_for_backward(x, between)
            return between * x

        @staticmethod
        def backward(ctx: Any, g: cr.Tensor) -> Any:
            x, square = ctx.saved_tensors
            return g * (2 * square + x * x), None

    seen: list[Any] = []
    x, u = leaf(3.0), leaf(1.0)
    with graph.saved_tensors_hooks(lambda v: seen.append(v.item()) or v, lambda v: v):
        y = Cube.apply(x, u)
    assert sorted(seen) == [3.0, 9.0]
    assert [t.item() for t in y.grad_fn.saved_tensors] == [3.0, 9.0]
    y.backward()
    assert x.grad.item() == 27.0


def test_saved_values_have_names() -> None:
    x = leaf(2.0, 3.0)
    y = x * 3.0
    z = y.exp()
    assert (x * x).grad_fn._saved_self is x
    assert z.grad_fn._saved_result.tolist() == z.tolist()
    with pytest.raises(AttributeError):
        z.grad_fn._saved_nothing
    z.grad_fn._raw_saved_result.register_hooks(lambda v: v * 2, lambda v: v)
    z.sum().backward()
    assert cr.allclose(x.grad, 6 * cr.exp(3 * x.detach()))


# -- nodes and edges ------------------------------------------------------------------------------------------------------


def test_nodes_have_names_hooks_and_notes() -> None:
    x = leaf(2.0)
    y = x * x
    node = y.grad_fn
    assert type(node).__name__ == node.name() == "MulBackward0"
    assert isinstance(node, graph.Node)
    assert [(n.name(), k) for n, k in node.next_functions] == [("AccumulateGrad", 0)] * 2
    assert node.next_functions[0][0].variable is x
    node.metadata["mine"] = 1
    assert y.grad_fn.metadata == {"mine": 1}
    log: list[Any] = []
    node.register_prehook(lambda gs: (gs[0] * 10,))
    handle = node.register_hook(lambda gi, go: log.append((gi[0].item(), gi[1].item(), go[0].item())))
    y.backward(retain_graph=True)
    assert log == [(20.0, 20.0, 10.0)]
    assert x.grad.item() == 40.0
    handle.remove()
    node.register_hook(lambda gi, go: (gi[0] * 0, gi[1]))
    y.backward()
    assert len(log) == 1
    assert x.grad.item() == 60.0
    a, b = cr.linalg.qr(cr.eye(2, dtype=cr.float64) * x)
    assert a.grad_fn is b.grad_fn
    assert (a.output_nr, b.output_nr) == (0, 1)
    assert (b * 1).grad_fn.next_functions[0] == (b.grad_fn, 1)


def test_hooks_on_the_node_of_a_leaf() -> None:
    x = leaf(1.0)
    acc = (x * 1).grad_fn.next_functions[0][0]
    log: list[str] = []
    x.register_hook(lambda g: log.append("tensor"))
    acc.register_prehook(lambda gs: log.append("before") or (gs[0] * 3,))
    x.register_post_accumulate_grad_hook(lambda t: log.append(f"added {t.grad.item()}"))
    acc.register_hook(lambda gi, go: log.append("after"))
    (x * 2).sum().backward()
    assert log == ["tensor", "before", "added 6.0", "after"]
    log.clear()
    autograd.grad((x * 2).sum(), x)  # which adds nothing
    assert log == ["tensor"]
    y = leaf(1.0)
    y.register_post_accumulate_grad_hook(lambda t: t.grad)
    with pytest.raises(RuntimeError, match="should return None"):
        y.sum().backward()


def test_a_step_of_descent_in_a_hook() -> None:
    x = leaf(1.0)

    def step(t: cr.Tensor) -> None:
        t.sub_(t.grad)
        t.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * 3).sum().backward()
    assert x.item() == -2.0
    assert x.grad is None


def test_edges_stand_for_tensors() -> None:
    x = leaf(1.0, 2.0)
    parts = (x * x).unbind()
    edge = graph.get_gradient_edge(parts[1])
    y = parts[0] * 2 + parts[1] * 3
    del parts
    assert autograd.grad(y, edge, retain_graph=True)[0].item() == 3.0
    assert autograd.grad(edge, x, grad_outputs=cr.tensor(1.0, dtype=cr.float64))[0].tolist() == [0.0, 4.0]
    with pytest.raises(RuntimeError, match="does not require gradients"):
        graph.get_gradient_edge(cr.ones(2))


def test_nothing_beyond_what_is_asked_for_runs() -> None:
    x = leaf(1.0)
    y = x.exp()
    ran: list[int] = []
    y.grad_fn.register_hook(lambda gi, go: ran.append(1))
    assert autograd.grad((y * 2).sum(), y)[0].item() == 2.0
    assert not ran


@pytest.mark.parametrize("mode", ["all", "any"])
def test_a_hook_on_several_tensors(mode: str) -> None:
    x, y, z = leaf(1.0), leaf(2.0), leaf(3.0)
    seen: list[Any] = []
    handle = graph.register_multi_grad_hook([x, y, z], seen.append, mode=mode)
    (x * y).sum().backward()
    if mode == "all":
        assert [[None if g is None else g.item() for g in gs] for gs in seen] == [[2.0, 1.0, None]]
    else:
        assert len(seen) == 1
    (x * y).sum().backward()
    assert len(seen) == 2
    handle.remove()
    (x * y).sum().backward()
    assert len(seen) == 2


def test_grad_of_a_dict_and_its_refusals() -> None:
    x, y = leaf(2.0), leaf(3.0)
    g = autograd.grad((x * y).sum(), {"a": x, "b": y})
    assert {k: v.item() for k, v in g.items()} == {"a": 3.0, "b": 2.0}
    with pytest.raises(ValueError, match="requires non-empty inputs"):
        autograd.grad(x.sum(), [])
    with pytest.raises(RuntimeError, match="The differentiated Tensor at index 0 appears to not have been used"):
        autograd.grad(x.sum(), y)
    (d,) = autograd.grad(x.sum(), y, materialize_grads=True, create_graph=True)
    assert d.tolist() == [0.0]
    assert d.requires_grad


def test_threads_add_to_one_leaf() -> None:
    x = leaf(*range(100))
    workers = [threading.Thread(target=lambda: [(x * x).sum().backward() for _ in range(50)]) for _ in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert cr.equal(x.grad, 400 * x.detach())


def test_anomalies_are_looked_for_in_one_thread() -> None:
    def birth() -> Any:
        return (leaf(-1.0).log() * 1).sum()

    result: list[Any] = []
    with autograd.detect_anomaly():
        assert autograd.is_anomaly_enabled()
        w = threading.Thread(target=lambda: result.append(birth().item()))
        w.start()
        w.join()
        with pytest.raises(autograd.AnomalyError):
            birth()
    assert len(result) == 1
    with autograd.detect_anomaly(check_nan=False):
        birth().backward()
    x = leaf(0.0)
    with (
        autograd.detect_anomaly(),
        pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th output"),
    ):
        (x.sqrt() * 0).sum().backward()


# -- Function -------------------------------------------------------------------------------------------------------------


def test_a_gradient_of_the_wrong_shape_is_refused() -> None:
    class Wrong(Function):
        @staticmethod
        def forward(ctx: Any, x: cr.Tensor) -> cr.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: cr.Tensor) -> cr.Tensor:
            return cr.ones(10, dtype=cr.float64)

    with pytest.raises(RuntimeError, match="WrongBackward returned an invalid gradient at index 0"):
        Wrong.apply(leaf(1.0, 2.0)).sum().backward()


def test_outputs_that_are_no_tensors() -> None:
    class Mixed(Function):
        @staticmethod
        def forward(ctx: Any, x: cr.Tensor, k: int) -> Any:
            return k, x * k, None, "name", x + 1

        @staticmethod
        def backward(ctx: Any, *gs: Any) -> Any:
            assert [g is None for g in gs] == [True, False, True, True, False]
            return gs[1] * 3 + gs[4], None

    x = leaf(2.0)
    k, y, none, name, z = Mixed.apply(x, 3)
    assert (k, none, name) == (3, None, "name")
    (y + z).sum().backward()
    assert x.grad.item() == 4.0
    assert Mixed.apply(2.0, 3)[:2] == (3, 6.0)


def test_once_differentiable_and_other_names() -> None:
    class Square(Function):
        @staticmethod
        def forward(ctx: Any, x: cr.Tensor) -> cr.Tensor:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def vjp(ctx: Any, g: cr.Tensor) -> cr.Tensor:
            return 2 * ctx.saved_tensors[0] * g

    x = leaf(3.0)
    assert type(Square.apply(x).grad_fn).__name__ == "SquareBackward"
    assert autograd.grad(Square.apply(x).sum(), x)[0].item() == 6.0
    (g,) = autograd.grad(Square.apply(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice"):
        autograd.grad(g.sum(), x)
    with (
        pytest.raises(RuntimeError, match="non-static forward"),
        pytest.warns(DeprecationWarning, match="should not be instantiated"),
    ):
        Square()(x)


def test_saved_for_forward() -> None:
    class Mul(Function):
        @staticmethod
        def forward(ctx: Any, x: cr.Tensor, y: cr.Tensor) -> cr.Tensor:
            ctx.save_for_backward(x, y)
            ctx.save_for_forward(y, x)
            return x * y

        @staticmethod
        def backward(ctx: Any, g: cr.Tensor) -> Any:
            x, y = ctx.saved_tensors
            return g * y, g * x

        @staticmethod
        def jvp(ctx: Any, tx: cr.Tensor, ty: cr.Tensor) -> cr.Tensor:
            y, x = ctx.saved_tensors
            return tx * y + ty * x

    assert gradcheck(Mul.apply, (leaf(2.0), leaf(5.0)), check_forward_ad=True)


# -- functional, gradcheck, profiler -----------------------------------------------------------------------------------------


def test_functional_strict() -> None:
    x = leaf(1.0, 2.0).detach()
    for f in (functional.vjp, functional.jvp):
        with pytest.raises(RuntimeError, match="does not require gradients"):
            f(lambda a: a.detach(), x, x, strict=True)
        assert f(lambda a: a.detach(), x, x)[1].tolist() == [0.0, 0.0]
        with pytest.raises(RuntimeError, match="v has invalid size"):
            f(lambda a: a * 2, x, x[:1])
    with pytest.raises(TypeError, match="inputs given to jacobian must be either a Tensor"):
        functional.jacobian(lambda a: a, (x, 2))
    with pytest.raises(RuntimeError, match="not supported together"):
        functional.jacobian(lambda a: a, x, strict=True, vectorize=True)
    with pytest.raises(RuntimeError, match="jacobian of the user-provided function with respect to input 0 is"):
        functional.hvp(lambda a: (a * 2).sum(), x, x, strict=True)
    assert functional.hessian(lambda a: (a**3).sum(), x, strict=True).tolist() == [[6.0, 0.0], [0.0, 12.0]]
    with pytest.raises(RuntimeError, match="single element"):
        functional.hessian(lambda a: a, x)
    y = leaf(1.0, 2.0)
    with cr.no_grad():
        j = functional.jacobian(lambda a: a**3, y, create_graph=True)
    assert autograd.grad(j.sum(), y)[0].tolist() == [6.0, 12.0]
    assert not functional.jacobian(lambda a: a**3, y).requires_grad


def test_gradcheck_along_one_direction_finds_what_all_do() -> None:
    wrong = cr.custom_op(lambda x: x.sin())
    wrong.vjp(lambda g, y, x: g * x.cos() * 1.01)
    x, y = leaf(0.3, 1.2), leaf(2.0, 3.0)
    assert gradcheck(
        lambda a, b: a.sin() * b,
        (x, y),
        fast_mode=True,
        check_forward_ad=True,
        check_batched_grad=True,
        check_grad_dtypes=True,
    )
    with pytest.raises(autograd.GradcheckError, match="mismatch for output 0 with respect to input 1"):
        gradcheck(lambda a, b: a * wrong(b), (x, y), fast_mode=True)
    count = [0]
    fickle = cr.custom_op(lambda x: x * 1)

    def rule(g: Any, y: Any, x: Any) -> Any:
        count[0] += 1
        return g * (1 + 1e-9 * count[0])

    fickle.vjp(rule)
    with pytest.raises(autograd.GradcheckError, match="not reentrant"):
        gradcheck(fickle, (x,))
    assert gradcheck(fickle, (x,), nondet_tol=1e-6)


def test_the_profiler_sees_ranges_and_ops() -> None:
    x = cr.randn(8, 8, dtype=cr.float64, requires_grad=True)
    with profile() as p, record_function("mine"):
        (x @ x).exp().sum().backward()
    found = {e.key: e for e in p.key_averages()}
    assert found["mine"].count == 1
    assert found["matmul"].count >= 1
    assert found["exp"].count == 1
    assert found["mine"].cpu_time_total >= found["exp"].cpu_time_total > 0
    assert "matmul" in p.table()
    with record_function("outside"):
        pass
    assert "outside" not in {e.key for e in p.key_averages()}


def test_a_number_as_index_gives_a_view() -> None:
    x = cr.arange(12).reshape(3, 4)
    row = x[cr.tensor(1)]
    assert row.data_ptr() == x[1].data_ptr()
    cr.maximum(x[cr.tensor(2)], cr.full((4,), 10), out=x[cr.tensor(2)])
    assert x[2].tolist() == [10, 10, 10, 11]
    assert cr.func.vmap(lambda i: x[i])(cr.tensor([2, 0])).tolist() == [[10, 10, 10, 11], [0, 1, 2, 3]]


def test_small_corners() -> None:
    assert cr.LongTensor().shape == (0,)
    assert bool(cr.ByteTensor().all())
    assert cr.ones(2).new().shape == (0,)
    z = cr.tensor(1 + 2j, dtype=cr.complex128)
    assert cr.var(z, correction=0).item() == 0.0
    with pytest.raises(RuntimeError, match="only supports Tensor or scalar"):
        "a" in cr.ones(2)  # noqa: B015
    with pytest.raises(ValueError, match="set_num_threads"):
        cr.set_num_threads(2**65)
    v = autograd.Variable(cr.ones(2), requires_grad=True)
    assert v.requires_grad
    assert isinstance(v, autograd.Variable)
    with pytest.raises(RuntimeError, match="Got argnum=2, but only 1 positional inputs"):
        cr.func.grad(lambda x: x.sum(), argnums=2)(cr.ones(2))


def test_in_place_operators_leave_what_is_no_operand_to_the_other_side() -> None:
    class Other:
        def __radd__(self, x: Any) -> str:
            return "theirs"

    x: Any = cr.ones(2)
    x += Other()
    assert x == "theirs"
    y = cr.ones(2)
    for name in "add and floordiv mod mul or pow sub truediv xor lshift rshift".split():
        assert getattr(y, f"__i{name}__")(object()) is NotImplemented


def test_callbacks_run_when_backward_ends() -> None:
    x = leaf(1.0)
    log: list[Any] = []
    engine = autograd.Variable._execution_engine

    def hook(g: cr.Tensor) -> None:
        engine.queue_callback(lambda: (log.append(x.grad.item()), engine.queue_callback(lambda: log.append("last"))))

    y = x * 2
    y.register_hook(hook)
    y.sum().backward()
    assert log == [2.0, "last"]
    with pytest.raises(RuntimeError, match="during backward"):
        engine.queue_callback(lambda: None)


def test_vmap_does_not_map_keywords() -> None:
    f = lambda x, y=None: x + y
    assert cr.func.vmap(f)(cr.ones(3), y=cr.arange(3.0)).shape == (3, 3)
    assert cr.func.vmap(f)(cr.ones(2), y=cr.arange(3.0))[1].tolist() == [1.0, 2.0, 3.0]


def test_versions_are_counted() -> None:
    x = cr.ones(2)
    before = x._version
    graph.increment_version(x)
    assert x._version == before + 1
