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
