"""A list that contains itself has no shape."""

from __future__ import annotations

import pytest

import chainrule as cr


@pytest.mark.parametrize("make", [cr.tensor, cr.as_tensor, cr.asarray])
def test_a_list_that_contains_itself_is_refused(make) -> None:
    inner: list = [0]
    inner.append(inner)
    for data in (inner, [[1, 2], inner]):
        with pytest.raises(TypeError, match="self-referential lists are incompatible"):
            make(data)


def test_it_is_refused_where_classes_are_asked_too() -> None:
    class Asked(cr.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs or {})

    assert isinstance(cr.ones(2).as_subclass(Asked) + 1, Asked)
    data: list = []
    data += [data, data]
    with pytest.raises(TypeError, match="self-referential lists are incompatible"):
        cr.as_tensor(data)
