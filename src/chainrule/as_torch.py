"""Chainrule under the name ``torch``: for a program written for PyTorch, and the libraries it imports.

``install_as_torch()`` puts a finder in front of Python's importers: ``import torch.x.y`` gives a mirror of ``chainrule.x.y``. A mirror is a module
that looks its names up in ours, so that what a program puts into ``torch`` stays there, and a name that we lack is reported as such.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import runpy
import sys
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

from .world import refusal, spellings

VERSION = "2.13.0"  # of PyTorch, whose names and behaviour are meant
# Where our module has another name, or the same one means something else.
ELSEWHERE = {
    "torch.jit": "chainrule.world.torchscript",
    "torch._jit_internal": "chainrule.world.torchscript",
    "torch._tensor": "chainrule.world.tensors",
    "torch.storage": "chainrule.world.storages",
    "torch.functional": "chainrule",
    "torch._utils": "chainrule.world.internals",
    "torch._six": "chainrule.world.internals",
    "torch._C": "chainrule.world.internals",
    "torch._C._functorch": "chainrule.world.internals",
    "torch._C._nn": "chainrule.nn.functional",
    "torch.ops": "chainrule.world.dispatcher",
    "torch._torch_docs": "chainrule.world.internals",
    "torch._functorch": "chainrule.func",
    "torch._functorch.eager_transforms": "chainrule.func",
    "torch._functorch.apis": "chainrule.func",
    "torch._functorch.vmap": "chainrule.func",
    "torch._functorch.functional_call": "chainrule.func",
    "torch._functorch.make_functional": "chainrule.nn.made_functional",
    "torch._functorch.deprecated": "chainrule.func",
    "torch._dynamo": "chainrule.world.compiler",
    "torch.func._apis": "chainrule.func",
    "torch.cpu.amp": "chainrule.amp",
    "torch.cuda.amp": "chainrule.world.cuda",
    "torch.cuda.memory": "chainrule.world.cuda",
    "torch.cuda.streams": "chainrule.world.cuda",
    "torch.cuda.random": "chainrule.world.cuda",
    "torch.cuda.graphs": "chainrule.world.cuda",
    "torch.cuda.nvtx": "chainrule.world.cuda",
    "torch.multiprocessing.spawn": "chainrule.world.multiprocessing",
    "torch.autograd.profiler": "chainrule.world.profiler",
    "torch.autograd.variable": "chainrule.autograd",
    "torch.distributed.distributed_c10d": "chainrule.distributed",
    "torch._VF": "chainrule",
    "torch.fx.experimental": "chainrule.world.fx",
    "torch.fx.experimental.proxy_tensor": "chainrule.world.fx",
    "torch.fx.experimental.symbolic_shapes": "chainrule.world.fx",
    "torch._subclasses.fake_tensor": "chainrule.world._subclasses",
    "torch.cuda.amp.autocast_mode": "chainrule.amp",
    "torch.cuda.amp.grad_scaler": "chainrule.amp",
    "torch.amp.autocast_mode": "chainrule.amp",
    "torch.amp.grad_scaler": "chainrule.amp",
    "torch.nn.modules.module": "chainrule.nn.modules.module",
}
# Ours alone: PyTorch's module of such a name is another thing, or there is none.
INSIDE = frozenset(
    "ops core kernels payloads transforms interop cli world namespaces as_torch custom tree fallback typing".split()
)


def ours_of(name: str) -> ModuleType:
    """The module of ours that stands for ``torch...``: ``chainrule...`` or ``chainrule.world...``."""
    if name in ELSEWHERE:
        return importlib.import_module(ELSEWHERE[name])
    tail = name[len("torch") :]
    if name.split(".")[1:2] and name.split(".")[1] in INSIDE:
        raise ModuleNotFoundError(f"No module named {name!r}", name=f"chainrule{tail}")
    try:
        return importlib.import_module(f"chainrule{tail}")
    except ModuleNotFoundError as e:
        if e.name is None or not f"chainrule{tail}".startswith(e.name):
            raise  # something that our module needs is not installed
    try:
        return importlib.import_module(f"chainrule.world{tail}")
    except ModuleNotFoundError as e:
        if e.name is None or not f"chainrule.world{tail}".startswith(e.name):
            raise
        if (target := spellings.ours(tail[1:])) is not None:
            return importlib.import_module(target)
        if (what := refusal.part_of(tail[1:])) is not None:
            return ModuleType(f"chainrule.world{tail}", f"Not done: {refusal.REASONS[what]}.")
        raise


class Mirror(ModuleType):
    """A module of PyTorch's name whose contents are those of a module of ours."""

    def __init__(self, name: str, ours: ModuleType) -> None:
        super().__init__(name, ours.__doc__)
        self.__dict__["_ours"] = ours
        self.__dict__["__path__"] = []
        self.__dict__["__file__"] = getattr(ours, "__file__", None)

    def __getattr__(self, name: str) -> Any:
        ours, here = self.__dict__["_ours"], self.__dict__["__name__"]
        full = f"{here}.{name}"
        if full == "torch.torch":  # PyTorch's modules import it, so it is found in them
            return sys.modules["torch"]
        if full in ELSEWHERE:
            return importlib.import_module(full)
        tail = full[len("torch.") :]
        try:
            if here == "torch" and name in INSIDE:
                raise AttributeError(name)
            value = getattr(ours, name)
        except AttributeError:
            if not name.startswith("__") or name in ("__config__", "__future__"):
                if (found := self._elsewhere(tail)) is not None:
                    return found
            raise AttributeError(
                f"module {here!r} has no attribute {name!r}: chainrule stands in for PyTorch here and does not have it; "
                f"`python -m chainrule coverage torch` lists what is missing, with the reasons",
                name=name,
                obj=ours,
            ) from None
        if isinstance(value, ModuleType) and value.__name__.partition(".")[0] == "chainrule":
            return importlib.import_module(full)
        if callable(value) and not name.startswith("__"):
            self.__dict__[name] = value  # the next look finds it at once
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        # Importing `torch.autograd.gradcheck` must not hide the function of that name, which PyTorch puts over its module.
        if isinstance(value, Mirror) and value.__name__ == f"{self.__name__}.{name}":
            ours = vars(self.__dict__["_ours"]).get(name)
            if ours is not None and not isinstance(ours, ModuleType):
                return
        if isinstance(getattr(type(self.__dict__.get("_ours")), name, None), property):  # a setting
            setattr(self.__dict__["_ours"], name, value)
            return
        super().__setattr__(name, value)

    @staticmethod
    def _elsewhere(tail: str) -> Any:
        """``torch.<tail>`` by another name of ours, as a module, or as a name of a part that is not done; None if it is nowhere."""
        try:
            return spellings.find(tail)
        except AttributeError:
            pass
        what = refusal.part_of(tail) or refusal.top().get(tail)
        if what is None or tail in refusal.PARTS:
            try:
                return importlib.import_module(f"torch.{tail}")
            except ModuleNotFoundError as e:
                if e.name != f"torch.{tail}":
                    raise
        return None if what is None else refusal.named(f"torch.{tail}", what)

    def __dir__(self) -> Iterable[str]:
        return sorted({*dir(self.__dict__["_ours"]), *self.__dict__})


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds ``torch`` and all below it in chainrule."""

    def find_spec(self, fullname: str, path: Any = None, target_module: Any = None) -> Any:
        """A specification for ``torch...``; None for all other names."""
        if fullname == "functorch":  # as old programs call torch.func; PyTorch's package of that name needs PyTorch
            return importlib.machinery.ModuleSpec(fullname, _Same("chainrule.world.functorch"))
        if fullname != "torch" and not fullname.startswith("torch."):
            return None
        try:
            ours_of(fullname)
        except ModuleNotFoundError as e:
            if e.name is None or not e.name.startswith("chainrule"):
                raise
            raise ModuleNotFoundError(
                f"No module named {fullname!r}: chainrule does not have it; `python -m chainrule coverage torch` lists what is missing",
                name=fullname,
            ) from None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: Any) -> ModuleType:
        """A mirror of our module."""
        mirror = Mirror(spec.name, ours_of(spec.name))
        if spec.name == "torch":
            mirror.__dict__["__version__"] = VERSION
        return mirror

    def exec_module(self, module: ModuleType) -> None:
        """What can be called is there at once, for those who go through a module's contents; the rest is looked up when it is used."""
        ours = module.__dict__["_ours"]
        for name, value in list(vars(ours).items()):
            if callable(value) and not name.startswith("__") and f"{module.__name__}.{name}" not in ELSEWHERE:
                if module.__name__ != "torch" or name not in INSIDE:
                    module.__dict__.setdefault(name, value)
        inside = INSIDE if module.__name__ == "torch" else frozenset()
        names = getattr(ours, "__all__", dir(ours))
        module.__dict__["__all__"] = [n for n in names if not n.startswith("_") and n not in inside]

    def find_distributions(self, context: Any = None) -> Iterable[importlib.metadata.Distribution]:
        """So that ``importlib.metadata.version("torch")`` answers."""
        if context is None or getattr(context, "name", None) in (None, "torch"):
            yield _Distribution()


class _Same(importlib.abc.Loader):
    """Loads a module of ours under another name."""

    def __init__(self, ours: str) -> None:
        self.ours = ours

    def create_module(self, spec: Any) -> ModuleType:
        module = ModuleType(spec.name)
        vars(module).update({k: v for k, v in vars(importlib.import_module(self.ours)).items() if k[:2] != "__"})
        vars(module)["__getattr__"] = importlib.import_module(self.ours).__getattr__
        vars(module)["__all__"] = importlib.import_module(self.ours).__all__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It is there already."""


class _Distribution(importlib.metadata.Distribution):
    def read_text(self, filename: str) -> str | None:
        return f"Metadata-Version: 2.1\nName: torch\nVersion: {VERSION}\n" if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        return path


FINDER = Finder()


def install_as_torch() -> ModuleType:
    """From here on ``import torch`` gives chainrule, for this program and the libraries it imports; returns that module.

    To be called before anything imports PyTorch itself.

    >>> torch = chainrule.install_as_torch()            # doctest: +SKIP
    >>> import torch.nn.functional as F                 # doctest: +SKIP
    """
    have = sys.modules.get("torch")
    if isinstance(have, Mirror):
        return have
    if have is not None:
        raise RuntimeError(
            "install_as_torch: PyTorch itself is imported already, and modules hold its names; call this first, "
            "or run `python -m chainrule as-torch script.py`"
        )
    from .core import dtypes, overriding, tensor
    from .nn import parameter

    sys.meta_path.insert(0, FINDER)
    dtypes.PREFIX[0] = "torch"
    if "__array_function__" in vars(tensor.Tensor):
        del tensor.Tensor.__array_function__  # NumPy's functions of tensors give arrays
    overriding.enable()
    # Libraries tell arrays apart by the module of their class.
    tensor.Tensor.__module__, parameter.Parameter.__module__ = "torch", "torch.nn.parameter"
    return importlib.import_module("torch")


def run_script(argv: Sequence[str]) -> int:
    """``python -m chainrule as-torch script.py args...`` or ``as-torch -m module args...``; returns the exit status."""
    if not argv or (argv[0] == "-m" and len(argv) < 2):
        print(
            "usage: python -m chainrule as-torch script.py [args...]   or   as-torch -m module [args...]",
            file=sys.stderr,
        )
        return 2
    install_as_torch()
    if argv[0] == "-m":
        sys.argv = list(argv[1:])
        sys.path.insert(0, "")
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
        return 0
    import os

    sys.argv = list(argv)
    sys.path[0] = os.path.dirname(os.path.abspath(argv[0]))
    runpy.run_path(argv[0], run_name="__main__")
    return 0
