"""Modules that hold modules or parameters: Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...core.tensor import Tensor
from ..module import Module
from ..parameter import Parameter


def _position(name: str, k: Any, n: int) -> int:
    k = operator.index(k)
    if not -n <= k < n:
        raise IndexError(f"{name}: index {k} is out of range for {n} entries")
    return k % n


class _Listed(Module):
    """Submodules with the names "0", "1", ... in order, or given names."""

    def _keys(self) -> list[str]:
        return list(self._modules)

    def _rebuilt(self, modules: Iterable[Any]) -> None:
        self._modules.clear()
        self._modules.update({str(k): m for k, m in enumerate(modules)})

    def __getitem__(self, k: Any) -> Any:
        keys = self._keys()
        if isinstance(k, slice):
            return type(self)(*self._slice(keys[k]))
        return self._modules[keys[_position(type(self).__name__, k, len(keys))]]

    def _slice(self, keys: list[str]) -> tuple[Any, ...]:
        return ([self._modules[k] for k in keys],)

    def __setitem__(self, k: Any, module: Module) -> None:
        keys = self._keys()
        self.__setattr__(keys[_position(type(self).__name__, k, len(keys))], module)

    def __delitem__(self, k: Any) -> None:
        keys = self._keys()
        gone = set(keys[k] if isinstance(k, slice) else [keys[_position(type(self).__name__, k, len(keys))]])
        self._rebuilt([m for name, m in self._modules.items() if name not in gone])

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._modules.values()))

    def __contains__(self, module: Any) -> bool:
        return any(m is module for m in self._modules.values())

    def append(self, module: Module) -> Any:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Put a module before position `index`."""
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._rebuilt(modules)
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        """Add several modules at the end."""
        for m in list(modules):
            self.append(m)
        return self

    def pop(self, k: Any) -> Module:
        """Take a module out."""
        m = self[k]
        del self[k]
        return m

    def __iadd__(self, other: Iterable[Module]) -> Any:
        return self.extend(other)


class Sequential(_Listed):
    """``f_n(... f_1(x))``: ``Sequential(f_1, ..., f_n)`` or ``Sequential(OrderedDict(name=f, ...))``."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = (
            args[0].items()
            if len(args) == 1 and isinstance(args[0], Mapping)
            else ((str(k), m) for k, m in enumerate(args))
        )
        for name, m in named:
            self.add_module(name, m)

    def _slice(self, keys: list[str]) -> tuple[Any, ...]:
        return ({k: self._modules[k] for k in keys},)

    def __add__(self, other: Any) -> Sequential:
        return Sequential(*self, *other)

    def forward(self, input: Any) -> Any:
        """Each module applied to the result of the one before."""
        for m in self._modules.values():
            input = m(input)
        return input


class ModuleList(_Listed):
    """Modules in a list."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])


class ModuleDict(Module):
    """Modules by name."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        self.update(modules or {})

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._modules))

    def __contains__(self, key: Any) -> bool:
        return key in self._modules

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def items(self) -> Any:
        """Names and modules."""
        return self._modules.items()

    def clear(self) -> None:
        """Take all out."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Take one out."""
        return self._modules.pop(key)

    def update(self, modules: Any) -> None:
        """Add modules from a mapping or from pairs."""
        for key, m in modules.items() if isinstance(modules, Mapping | ModuleDict) else modules:
            self[key] = m


def _as_parameter(x: Any) -> Any:
    return Parameter(x) if isinstance(x, Tensor) and not isinstance(x, Parameter) else x


class ParameterList(Module):
    """Parameters in a list; tensors become parameters."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        self.extend(values or ())

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, k: Any) -> Any:
        if isinstance(k, slice):
            return ParameterList([self[i] for i in range(*k.indices(len(self)))])
        return getattr(self, str(_position("ParameterList", k, len(self))))

    def __setitem__(self, k: Any, x: Any) -> None:
        setattr(self, str(_position("ParameterList", k, len(self))), _as_parameter(x))

    def __iter__(self) -> Iterator[Any]:
        return iter([self[k] for k in range(len(self))])

    def append(self, value: Any) -> ParameterList:
        """Add one at the end."""
        setattr(self, str(self._size), _as_parameter(value))
        self._size += 1
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add several at the end."""
        for v in list(values):
            self.append(v)
        return self

    __iadd__ = extend

    def extra_repr(self) -> str:
        """One line a parameter."""
        return "\n".join(
            f"({k}): {type(p).__name__} of shape {tuple(p.shape)}" for k, p in enumerate(self) if isinstance(p, Tensor)
        )


class ParameterDict(Module):
    """Parameters by name; tensors become parameters."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        self.update(parameters or {})

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        self._keys[key] = None
        setattr(self, key, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._keys))

    def __contains__(self, key: Any) -> bool:
        return key in self._keys

    def keys(self) -> Any:
        """The names."""
        return self._keys.keys()

    def values(self) -> Any:
        """The parameters."""
        return [self[k] for k in self._keys]

    def items(self) -> Any:
        """Names and parameters."""
        return [(k, self[k]) for k in self._keys]

    def update(self, parameters: Any) -> None:
        """Add parameters from a mapping or from pairs."""
        for key, v in parameters.items() if isinstance(parameters, Mapping | ParameterDict) else parameters:
            self[key] = v
