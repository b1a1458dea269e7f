"""Generators: states are tensors of bytes that round-trip, seeds, and what every random function takes."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch

import chainrule as cr


@pytest.mark.parametrize("lib", [cr, torch], ids=["chainrule", "torch"])
def test_states(lib: Any) -> None:
    g = lib.Generator().manual_seed(7)
    assert g.initial_seed() == 7 and g.device.type == "cpu"
    lib.randint(0, 9, (3,), generator=g)  # half of a word may be left over
    s = g.get_state()
    assert s.dtype is lib.uint8 and s.ndim == 1
    a = lib.rand(5, generator=g)
    assert g.set_state(s) is g
    assert (lib.rand(5, generator=g) == a).all()
    other = lib.Generator().set_state(s)
    assert (lib.rand(5, generator=other) == a).all() and other.initial_seed() == 7
    assert (lib.rand(5, generator=lib.Generator().set_state(s).clone_state()) == a).all()
    assert g.seed() == g.initial_seed() != 7
    assert lib.Generator().manual_seed(-1).initial_seed() == 2**64 - 1
    with pytest.raises(TypeError):
        g.set_state(lib.zeros(3))
    with pytest.raises(RuntimeError):
        g.set_state(lib.zeros(3, dtype=lib.uint8))


def test_copies() -> None:
    g = cr.Generator().manual_seed(3)
    cr.rand(3, generator=g)
    others = [copy.deepcopy(g), pickle.loads(pickle.dumps(g))]
    want = cr.rand(3, generator=g)
    for o in others:
        assert (cr.rand(3, generator=o) == want).all()


@pytest.mark.parametrize("lib", [cr, torch], ids=["chainrule", "torch"])
def test_the_default_generator(lib: Any) -> None:
    lib.manual_seed(5)
    assert lib.initial_seed() == lib.default_generator.initial_seed() == 5
    s = lib.get_rng_state()
    a = lib.randn(4)
    with lib.random.fork_rng():
        lib.manual_seed(99)
        lib.randn(2)
    b = lib.randn(4)
    lib.set_rng_state(s)
    assert (lib.randn(4) == a).all() and (lib.randn(4) == b).all()


@pytest.mark.parametrize("lib", [cr, torch], ids=["chainrule", "torch"])
def test_every_function_takes_a_generator(lib: Any) -> None:
    x, p = lib.full((50,), 0.3), lib.full((50,), 0.5)
    for f in (
        lambda g: lib.rand(50, generator=g),
        lambda g: lib.randn(50, generator=g),
        lambda g: lib.randint(0, 1000, (50,), generator=g),
        lambda g: lib.randint_like(x, 0, 1000, generator=g),
        lambda g: lib.rand_like(x, generator=g),
        lambda g: lib.randn_like(x, generator=g),
        lambda g: lib.randperm(50, generator=g),
        lambda g: lib.bernoulli(p, generator=g),
        lambda g: lib.multinomial(p, 5, generator=g),
        lambda g: lib.normal(x, 1.0, generator=g),
        lambda g: lib.poisson(x * 100, generator=g),
        lambda g: lib.empty(50).uniform_(generator=g),
        lambda g: lib.empty(50).normal_(generator=g),
        lambda g: lib.empty(50).exponential_(generator=g),
        lambda g: lib.empty(50).cauchy_(generator=g),
        lambda g: lib.empty(50).log_normal_(generator=g),
        lambda g: lib.empty(50).geometric_(0.1, generator=g),
        lambda g: lib.empty(50).random_(generator=g),
        lambda g: lib.empty(50).bernoulli_(0.5, generator=g),
    ):
        a, b, c = (f(lib.Generator().manual_seed(s)) for s in (1, 1, 2))
        assert (a == b).all() and not (a == c).all()
