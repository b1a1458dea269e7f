"""What a public function says of arguments that it cannot take, and that other names of arguments cost nothing."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.core.arguments import checked
from chainrule.core.registry import PUBLIC


def _tensor_first(f: Any) -> bool:
    if isinstance(f, type):
        return False
    first = next(iter(inspect.signature(f).parameters.values()), None)
    return first is not None and str(first.annotation) == "Tensor"


TAKERS = sorted(name for name, f in PUBLIC.items() if _tensor_first(f))


def _rest(f: Any) -> list[int]:
    ps = list(inspect.signature(f).parameters.values())[1:]
    return [1 for p in ps if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]


@pytest.mark.parametrize("x", [None, np.ones(3), True, [1.0]], ids=["None", "ndarray", "bool", "list"])
def test_no_function_leaks_what_it_looked_for(x: Any) -> None:
    assert len(TAKERS) > 500
    leaks = []
    for name in TAKERS:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                PUBLIC[name](x, *_rest(PUBLIC[name]))
        except AttributeError as e:
            leaks.append((name, str(e)))
        except Exception:  # (another argument, or the size of this one, may be at fault first)
            pass
    assert leaks == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cr.sum(None), r"sum\(\): argument 'input' \(position 1\) must be Tensor, not NoneType$"),  # type: ignore[arg-type]
        (lambda: cr.amax(np.ones(3)), r"amax\(\): argument 'input' .*not ndarray; write chainrule.tensor\(input\)"),  # type: ignore[arg-type]
        (lambda: cr.all(True), r"all\(\): argument 'input' .*not bool"),  # type: ignore[arg-type]
        (lambda: cr.linalg.det([[1.0]]), r"linalg\.det.* must be .*list"),  # type: ignore[arg-type]
        (lambda: cr.nn.functional.softmax(input=None, dim=0), r"softmax\(\): argument 'input' must be Tensor, not N"),  # type: ignore[arg-type]
        (lambda: cr.ones(3).gather(0, [0, 1]), r"gather\(\): argument 'index' .*not list"),  # type: ignore[arg-type]
    ],
)
def test_the_message_names_function_argument_and_type(call: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


def test_other_names_and_older_forms() -> None:
    x = cr.arange(6.0).reshape(2, 3)
    assert cr.sum(x, axis=0, keepdims=True).shape == x.sum(axis=0, keepdims=True).shape == (1, 3)  # type: ignore[call-arg]
    with pytest.warns(UserWarning, match="This overload of add is deprecated"):  # it works, and says what to write
        assert cr.equal(cr.add(x, 2, x), 3 * x)  # type: ignore[call-arg, arg-type]
    with pytest.warns(UserWarning, match="overload of addmm"):
        assert cr.equal(cr.addmm(2, x, 3, x, cr.eye(3)), 5 * x)  # type: ignore[call-arg, arg-type]
    with pytest.raises(TypeError, match="unexpected keyword argument 'axes'"):
        x.sum(axes=0)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="multiple values for argument 'dim'"):
        x.sum(dim=0, axis=0)  # type: ignore[call-arg]


def test_a_function_that_fails_runs_once() -> None:
    runs = []

    def f(input: Any, dim: int = 0, **kw: Any) -> None:
        runs.append(dim)
        raise TypeError("something of its own")

    for call in (lambda: checked(f)(1, 2), lambda: checked(f)(1, axis=2), lambda: checked(f)(1, dim=3)):
        with pytest.raises(TypeError, match="something of its own"):
            call()
    assert runs == [2, 0, 3]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: cr.take(cr.ones(3), np.array([0])),
            r"take\(\): argument 'index' \(position 2\) must be Tensor, not ndarray",
        ),
        (
            lambda: cr.where(np.array([True]), cr.ones(1), cr.ones(1)),
            r"where\(\): argument 'condition'.* must be Tensor, not ndarray",
        ),
        (
            lambda: cr.stack([np.ones(2), np.ones(2)]),
            r"stack\(\): expected Tensor as element 0 in argument 'tensors', but got ndarray",
        ),
        (lambda: cr.einsum("i,i->", np.ones(2), np.ones(2)), r"einsum\(\): expected Tensor as element 0"),
        (lambda: cr.meshgrid(np.ones(2), np.ones(3), indexing="ij"), r"meshgrid\(\): expected Tensor as element 0"),
    ],
)
def test_arrays_among_sequences_and_where_types_are_refused(call, message):
    with pytest.raises(TypeError, match=message):
        call()
