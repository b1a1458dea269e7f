"""Classes of PyTorch's compiler that libraries ask for in isinstance(): nothing is one."""

from __future__ import annotations

from .refusal import refused_class

FakeTensor = refused_class("FakeTensor", "script")
FakeTensorMode = refused_class("FakeTensorMode", "script")
