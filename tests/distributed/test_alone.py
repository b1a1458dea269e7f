"""A process without a launcher is a world of one: what it sends to itself belongs to that world."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import chainrule as cr
import chainrule.distributed as dist


@pytest.fixture
def world() -> Iterator[None]:
    dist.init_process_group("mpi")
    yield
    dist.destroy_process_group()


def test_every_public_name_is_there() -> None:
    scope: dict[str, object] = {}
    exec("from chainrule.distributed import *", scope)
    assert {"all_reduce", "checkpoint", "optim"} <= set(scope)


def test_what_a_process_sends_to_itself_ends_with_its_world(world: None) -> None:
    dist.send(cr.ones(3), 0)
    dist.destroy_process_group()
    dist.init_process_group("mpi")
    with pytest.raises(dist.DistError, match="nothing to receive"):
        dist.recv(cr.empty(2), 0)


def test_what_does_not_fit_is_said(world: None) -> None:
    dist.send(cr.ones(3), 0)
    with pytest.raises(dist.DistError, match=r"shape \[2\] float32 cannot take what was sent: \[3\] float32"):
        dist.recv(cr.empty(2), 0)
    dist.send(cr.ones(2), 0)
    x = cr.empty(2)
    dist.recv(x, 0)
    assert bool((x == 1).all())
