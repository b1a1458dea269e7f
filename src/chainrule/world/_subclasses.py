"""Classes of PyTorch's compiler that libraries ask for in isinstance(): nothing is one."""

from __future__ import annotations

from .refusal import refused_class

FakeTensor = refused_class("FakeTensor", "script")
FakeTensorMode = refused_class("FakeTensorMode", "script")


def is_fake(x: object) -> bool:
    """False: every tensor has its elements, or is on the device meta."""
    return False
