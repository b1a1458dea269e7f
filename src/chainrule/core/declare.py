"""How an op is declared (see docs/adding-an-op.md).

* :func:`pointwise` - one linear rule per input, from which forward mode, reverse mode, complex numbers and batching follow;
* :func:`op` - a structured op: a body on arrays over trailing axes, with forward and reverse rules;
* :func:`fused` - an op with a kernel: its body is written in plain ops, and derivatives without a rule go through it;
* compositions - plain functions over ops, no rules at all.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .fast import binary, pair, several, unary
from .op import Op, Rule
from .spec import Ranks, Spec, with_kernel
from .types import ALL_NUMS, REAL_NUMS

LINEAR = ("", "each", "all")
# Bodies for operands of many elements by the name of the op (ops/elementwise/formulas.py).
LARGE: dict[str, Any] = {}


def pointwise(
    name: str,
    body: Callable[..., Any],
    *rules: Any,
    vjp: Rule | None = None,
    types: str = "same",
    fast: frozenset[int] | None = None,
    static: bool = False,
    large: Any = None,
    other: Callable[..., Any] | None = None,
    doc: str | None = None,
) -> Op:
    """Declare a pointwise op: `body` on arrays and, an input each, a linear rule ``rule(t, y, *xs)``.

    Without rules the op has no derivative; ``ZERO`` as a rule says that the derivative exists and is zero. From the
    rules follow forward mode, reverse mode (conj . rule . conj, reduced to the input's shape and realness), complex
    numbers and batching. A non-holomorphic op spells its reverse rule too: ``vjp(g, y, *xs) -> (g1, ...)``.
    `types` are the words of :mod:`chainrule.core.types`: promotion, and what is refused. `static` says that the body and the
    rules take keyword arguments (data, not tensors). `large` is another body for operands of at least ``large.least`` elements; it
    returns None for those it has no code for; without one, that which is known under the name. `fast` are the types of arrays
    that the body takes as they are, and `other` is the body for the rest, where that needs a check.
    """
    inputs = arity(body, rules)
    o = Op(name, other or body, types=types, batch="aligned", differentiable=bool(rules), doc=doc)
    o.form, o.even, o.large = "pointwise", True, large or LARGE.get(name)
    if rules:
        o.jvp(list(rules))
    if vjp is not None:
        o.vjp(vjp)
    elif rules:
        o.pull_rules, o.conjugated = o.rules, True
    quick = o.types.fast() if fast is None else fast  # type: ignore[union-attr]
    if not static and quick >= REAL_NUMS:
        o.plain = body
    own = REAL_NUMS if o.types.narrow and o.types.promote == "same" else quick  # type: ignore[union-attr]
    o.fast, o.direct = ALL_NUMS if o.types.choice else own, body  # type: ignore[union-attr]
    o.several = static or inputs > 2
    n = 0 if static else inputs
    o.arity = inputs
    if n == 1:
        o.bind = o.operator = unary(o, body, quick)  # type: ignore[method-assign]
    elif n == 2:
        o.bind, o.operator = binary(o, body, quick), binary(o, body, quick, True)  # type: ignore[method-assign]
    else:
        o.bind = o.operator = several(o)  # type: ignore[method-assign]
    return o


def arity(body: Any, rules: tuple[Any, ...]) -> int:
    """The number of tensor inputs of a pointwise op, which has a rule for each of them or none."""
    code = getattr(body, "__code__", None)
    inputs = int(getattr(body, "nin", 0)) or (0 if code is None else code.co_argcount)
    fixed = inputs if code is None else inputs - len(body.__defaults__ or ())
    several = code is None or code.co_flags & inspect.CO_VARARGS
    if (
        rules
        and inputs
        and not (fixed <= len(rules) and (len(rules) <= inputs or (several and not hasattr(body, "nin"))))
    ):
        raise ValueError(
            f"{len(rules)} rules for a body of {inputs} arguments: write one for each, ZERO where the derivative is zero, None where there is none"
        )
    return len(rules) or inputs


def op(
    name: str | None = None,
    *,
    batch: Callable[..., Any] | str = "trailing",
    core: str | None = None,
    linear: str = "",
    moves: bool = False,
    view: bool = False,
    differentiable: bool = True,
    integer_outputs: tuple[int, ...] = (),
    sizes: str = "",
    grows: str = "",
    on_tensors: bool = False,
    quick: Callable[[Any, Any], Any] | None = None,
) -> Callable[[Callable[..., Any]], Op]:
    """Declare a structured op from its body on arrays: tensors positional, static data keyword-only.

    The body acts on trailing axes (axes are stored negative) and leaves any leading axes alone; then ``batch="trailing"``
    suffices for ops of one tensor, ``"expand"`` for several tensors that need the same leading axes, and ``core`` (a
    signature such as ``"(m,n),(n,k)->(m,k)"``) for ops that broadcast their leading axes. Otherwise `batch` is a function
    ``batch(size, xs, batched, **static)``.

    `linear` says that the op is linear in its arguments, in ``"all"`` of them together or in ``"each"`` beside the others: then
    its tangent is the op itself on tangents, and no forward rule is written. `moves` says that it chooses, moves, repeats or adds
    elements and does nothing else to them, as linear views do: what is absent of a cotangent stays absent through it.

    `sizes` names the static data that hold sizes, which may be ragged; no others are looked at. `grows` names those of them that
    hold all sizes of an argument or of the result, so that a batch axis is added to them and a rule may take them for the shapes
    it sees. Static data that speak of trailing sizes alone are left alone: their rules must leave leading axes alone as well.

    `on_tensors` says that the body takes tensors and not arrays. `quick` is a shorter body for two plain arrays, tried first; it returns
    None for those it is not for.
    """
    if linear not in LINEAR:
        raise ValueError(f"op {name}: linear={linear!r} must be one of {', '.join(map(repr, LINEAR))}")

    def declare(f: Callable[..., Any]) -> Op:
        rule = batch if isinstance(batch, str) else _with_op(batch)
        o = Op(
            name or f.__name__,
            None if on_tensors else f,
            spec=f if on_tensors else None,
            batch=rule if core is None else "core",
            core=None if core is None else _ranks(core.split("->")[0]),
            view=view,
            differentiable=differentiable,
            integer_outputs=integer_outputs,
            sizes=tuple(sizes.split()),
            grows=tuple(grows.split()),
        )
        o.linear, o.moves = linear, moves or (view and linear == "each")
        if linear == "each":
            o.jvp([_in_place(o, i) for i in range(f.__code__.co_argcount)])
        if core is not None:
            o.form, o.even = "core", len({*o.core, *_ranks(core.split("->")[1])}) == 1
        if quick is not None:
            o.bind = pair(o, quick)  # type: ignore[method-assign]
        return o

    return declare


def _in_place(o: Op, i: int) -> Rule:
    """The forward rule of an op that is linear in input `i`: the op with the tangent in its place."""
    if i == 0:
        return lambda t, y, x, *xs, **kw: o.bind(t, *xs, **kw)
    return lambda t, y, *xs, **kw: o.bind(*xs[:i], t, *xs[i + 1 :], **kw)


def _ranks(signature: str) -> list[int]:
    """The core ranks of one side of a gufunc signature."""
    return [len([d for d in p.strip("() ").split(",") if d]) for p in signature.split("),")]


def _with_op(batch: Callable[..., Any]) -> Callable[..., Any]:
    """A batching rule that an op spells itself, as the interpreter calls it."""
    return lambda o, size, args, flags, kw: batch(size, args, flags, **kw)


def fused(
    name: str,
    body: Callable[..., Any],
    ranks: Ranks,
    outs: Ranks,
    kernel: Callable[..., Any] | None = None,
    *,
    integer_outputs: tuple[int, ...] = (),
    expand: bool = False,
) -> Op:
    """Declare an op whose specification is a body in plain ops on tensors, and which may have a kernel on arrays.

    See :class:`chainrule.core.spec.Spec` for `ranks`, `outs` and `expand`. `kernel` raises NotSupported for arrays it has no code for.
    Rules are optional: without one a derivative goes through the body.
    """
    spec = Spec(body, ranks, outs, expand)
    o = Op(
        name,
        with_kernel(spec, kernel),
        spec=spec,
        core=ranks,
        batch="core",
        integer_outputs=integer_outputs,
        doc=body.__doc__,
    )
    o.form, o.sparse_jvp, o.sparse_vjp, o.kernel = "fused", True, True, kernel
    return o
