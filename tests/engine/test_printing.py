"""How tensors print, and what set_printoptions changes."""

from __future__ import annotations

import pytest

import chainrule as cr


def test_profiles_set_every_option_and_default_restores_them() -> None:
    x = cr.linspace(0, 1, 1001)
    before = repr(x)
    try:
        cr.set_printoptions(profile="short")
        assert repr(x) == "tensor([0.00, 0.00, ..., 1.00, 1.00])"
        cr.set_printoptions(profile="full")
        assert "..." not in repr(x)
        cr.set_printoptions(precision=2)
        assert repr(cr.tensor([0.123])) == "tensor([0.12])"
    finally:
        cr.set_printoptions(profile="default")
    assert repr(x) == before
    with pytest.raises(ValueError, match="profile is one of default, short, full"):
        cr.set_printoptions(profile="long")
