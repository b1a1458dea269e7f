"""``library``: operators of one's own are declared with chainrule.custom_op."""

from __future__ import annotations

from typing import Any

from ..custom import custom_op


def impl_abstract(*args: Any, **kw: Any) -> Any:
    """Accepted: shapes follow from running the operator."""
    return lambda f: f


register_fake = register_kernel = register_autograd = register_vmap = register_autocast = impl = impl_abstract


def define(*args: Any, **kw: Any) -> Any:
    """Accepted: a name for an operator whose kernels are given elsewhere."""
    return lambda f: f


class Library:
    """Operators of a namespace, by name: ``define("f(Tensor x) -> Tensor")``, then ``impl("f", fn)``; found as ``torch.ops.ns.f``.

    A function for a device, or one made of other operators, is the operator; functions for PyTorch's tracer are accepted and not used.
    """

    def __init__(self, ns: str, kind: str = "FRAGMENT", dispatch_key: str = "") -> None:
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Name an operator; its kernel comes by `impl`."""
        return schema.partition("(")[0].partition("::")[2] or schema.partition("(")[0]

    def impl(self, op_name: Any, fn: Any, dispatch_key: str = "", **kw: Any) -> None:
        """Give the function of an operator."""
        from .dispatcher import CUSTOM

        key = dispatch_key or self.dispatch_key
        if key in ("", "CPU", "CompositeImplicitAutograd", "CompositeExplicitAutograd", "Autograd", "AutogradCPU"):
            name = str(op_name).rpartition("::")[2].partition(".")[0]
            if key.startswith("Autograd") or f"{self.ns}::{name}" not in CUSTOM:
                CUSTOM[f"{self.ns}::{name}"] = fn


__all__ = [
    "Library",
    "custom_op",
    "define",
    "impl",
    "impl_abstract",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_vmap",
]
