"""The state of a module as a dict of tensors, and back."""

from __future__ import annotations

import itertools
import warnings
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..core.imperative import no_grad
from ..core.tensor import Tensor
from ..core.views import assign
from ..ops.shape.create import as_tensor
from ..utils import swap_tensors
from .conversion import Parameters
from .hooks import Handle, add
from .parameter import Parameter, is_lazy

EXTRA = "_extra_state"


class _IncompatibleKeys(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]


class LoadResult(_IncompatibleKeys):
    """The names that a state lacked, and those that it had too many."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"

    __str__ = __repr__


class State:
    """What a Module knows of its state; see :class:`chainrule.nn.Module`."""

    _version: int | None = 1
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_dict_hooks: dict[int, Any]
    _state_dict_pre_hooks: dict[int, Any]
    _load_state_dict_pre_hooks: dict[int, Any]
    _load_state_dict_post_hooks: dict[int, Any]

    def get_extra_state(self) -> Any:
        """State beside parameters and buffers, for ``state_dict``; override together with ``set_extra_state``."""
        raise RuntimeError(f"{type(self).__name__}.get_extra_state is called but not written: override it")

    def set_extra_state(self, state: Any) -> None:
        """Take back what ``get_extra_state`` gave."""
        raise RuntimeError(
            f"{type(self).__name__}.set_extra_state is called but not written: the state has {EXTRA!r}, override it"
        )

    def _own_state(self) -> Iterator[tuple[str, Tensor]]:
        transient = self._non_persistent_buffers_set
        for name, x in itertools.chain(self._parameters.items(), self._buffers.items()):
            if x is not None and name not in transient:
                yield name, x

    # -- out ----------------------------------------------------------------------------------------------------------
    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Put this module's own tensors into `destination`; override to add to them."""
        for name, x in self._own_state():
            destination[prefix + name] = x if keep_vars or is_lazy(x) else x.detach()
        if type(self).get_extra_state is not State.get_extra_state:
            destination[prefix + EXTRA] = self.get_extra_state()

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """All parameters and persistent buffers by dotted name; they share memory with the module."""
        if args:
            given: Any = (*args, *(destination, prefix, keep_vars)[len(args) :])
            destination, prefix, keep_vars = given
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local: dict[str, Any] = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local
        for f in list(self._state_dict_pre_hooks.values()):
            f(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, m in self._modules.items():
            if m is not None:
                m.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for f in list(self._state_dict_hooks.values()):
            r = f(self, destination, prefix, local)
            if getattr(f, "_from_public_api", False):
                if r is not None:
                    raise RuntimeError("state_dict post-hook must return None")
            elif r is not None:
                destination = r
        return destination

    # -- in -----------------------------------------------------------------------------------------------------------
    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Take this module's own tensors from `state_dict`; override to rename or convert old ones."""
        for f in list(self._load_state_dict_pre_hooks.values()):
            rest = (state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
            f.hook(self, *rest) if isinstance(f, _WithModule) else f(*rest)
        own = dict(self._own_state())
        for name, x in own.items():
            key = prefix + name
            if key in state_dict:
                by_assignment = bool(local_metadata.get("assign_to_params_buffers"))
                if error := self._load_one(key, name, x, state_dict[key], by_assignment):
                    error_msgs.append(error)
            elif strict:
                missing_keys.append(key)
        extra = prefix + EXTRA
        if type(self).set_extra_state is not State.set_extra_state:
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra:
                    head, dot, _ = key[len(prefix) :].partition(".")
                    if head not in (self._modules if dot else own):
                        unexpected_keys.append(key)

    def _load_one(self, key: str, name: str, x: Any, new: Any, by_assignment: bool) -> str:
        """Give one tensor its value; the text of what is wrong, if anything is."""
        if not isinstance(new, Tensor) and hasattr(new, "__array__"):
            new = as_tensor(new)  # NumPy's, PyTorch's
        if not isinstance(new, Tensor):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint '
                f"but received {type(new)}"
            )
        lazy = is_lazy(x)
        if not lazy and not by_assignment and x.is_meta and not new.is_meta:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, which "
                f"does nothing; pass assign=True to put the given tensor in its place, or make the module's with to_empty() first",
                stacklevel=2,
            )
        known = not lazy and True  # the shape of one that has none raises
        if known and x.ndim == 0 and new.ndim == 1 and new.numel() == 1:
            new = new[0]  # as very old states have it
        if known and new.shape != x.shape:
            return (
                f"size mismatch for {key}: copying a param with shape {new.shape} from checkpoint, the shape in current "
                f"model is {x.shape}."
            )
        try:
            with no_grad():
                if Parameters.swap and not lazy:
                    self._swap(x, x.module_load(new, assign=by_assignment), new)
                elif by_assignment and name in self._parameters:
                    new = new if isinstance(new, Parameter) else Parameter(new, x.requires_grad)
                    self._parameters[name] = new.requires_grad_(x.requires_grad)
                elif by_assignment:
                    self._buffers[name] = new
                elif known:
                    assign(x, new.detach().to(x.dtype), "load_state_dict")
                elif not is_lazy(new):
                    raise RuntimeError("it has no shape yet")
        except Exception as e:
            shape = "unknown" if lazy else x.shape
            return f'While copying the parameter named "{key}", whose dimensions in the model are {shape}, an exception occurred : {e.args}.'
        return ""

    @staticmethod
    def _swap(x: Tensor, loaded: Tensor, given: Tensor) -> None:
        """Let a tensor of the module change places with what ``module_load`` made of a given one."""
        if loaded is x or loaded is given:
            raise RuntimeError(
                "module_load returned one of self or other, please .detach() the result if returning one of the inputs in module_load"
            )
        if isinstance(x, Parameter) and not isinstance(loaded, Parameter):
            loaded = Parameter(loaded, x.requires_grad)
        swap_tensors(x, loaded.requires_grad_(x.requires_grad))

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> LoadResult:
        """Take the values of parameters and buffers from a ``state_dict``; with `strict` the names must be the same.

        With `assign` the tensors of the state take the place of the module's own.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        metadata = getattr(state_dict, "_metadata", None)
        state: Any = OrderedDict(state_dict)
        if metadata is not None:
            state._metadata = metadata
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []

        def load(m: Any, part: Any, prefix: str) -> None:
            local = {} if metadata is None else dict(metadata.get(prefix[:-1], {}))
            if assign:
                local["assign_to_params_buffers"] = True
            m._load_from_state_dict(part, prefix, local, True, missing, unexpected, errors)
            for name, child in m._modules.items():
                if child is not None:
                    head = f"{prefix}{name}."
                    load(child, {k: v for k, v in part.items() if k.startswith(head)}, head)
            result = LoadResult(missing, unexpected)
            for f in list(m._load_state_dict_post_hooks.values()):
                if f(m, result) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new values, "
                        "if incompatible_keys need to be modified, it should be done inplace."
                    )

        load(self, state, "")
        if strict:
            for names, what in ((unexpected, "Unexpected"), (missing, "Missing")):
                if names:
                    shown = ", ".join(f'"{k}"' for k in names)
                    errors.insert(0, f"{what} key(s) in state_dict: {shown}. ")
        if errors:
            text = "\n\t".join(errors)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{text}")
        return LoadResult(missing, unexpected)

    # -- hooks --------------------------------------------------------------------------------------------------------
    def register_state_dict_pre_hook(self, hook: Any) -> Handle:
        """Call ``hook(module, prefix, keep_vars)`` before ``state_dict``."""
        return add(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Any) -> Handle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after ``state_dict``."""
        hook._from_public_api = True
        return add(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Any) -> Handle:
        """As `register_state_dict_post_hook`; what the hook returns takes the state's place."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via register_state_dict_post_hook"
            )
        return add(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Any) -> Handle:
        """Call ``hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)`` before loading."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(self, hook: Any, with_module: bool = False) -> Handle:
        """As `register_load_state_dict_pre_hook`, without the module unless it is asked for."""
        return add(self._load_state_dict_pre_hooks, _WithModule(hook) if with_module else hook)

    def register_load_state_dict_post_hook(self, hook: Any) -> Handle:
        """Call ``hook(module, result)`` after loading; it may change the lists of `result`."""
        return add(self._load_state_dict_post_hooks, hook)


class _WithModule:
    """Marks a hook whose first argument is the module; it does not hold the module, which holds it."""

    def __init__(self, hook: Any) -> None:
        self.hook = hook
