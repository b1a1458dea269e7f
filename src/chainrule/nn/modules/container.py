"""Modules that hold modules or parameters: Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict."""

from __future__ import annotations

import operator
from collections import OrderedDict
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
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}, got {type(module).__name__}")
        modules = list(self._modules.values())
        if not -len(modules) <= index <= len(modules):
            raise IndexError(f"Index out of range: {index}")
        modules.insert(index, module)
        self._rebuilt(modules)
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        """Add several modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"{type(self).__name__}.extend should be called with an iterable, but got {type(modules).__name__}"
            )
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

    def __dir__(self) -> list[str]:
        return [k for k in super().__dir__() if not k.isdigit()]


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

    def _check(self, other: Any, what: str) -> None:
        if not isinstance(other, Sequential):
            raise ValueError(f"{what} operator supports only objects of Sequential class, but {type(other)} is given.")

    def __add__(self, other: Any) -> Sequential:
        self._check(other, "add")
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Sequential:
        self._check(other, "add")
        return self.extend(other)

    def _times(self, n: Any) -> int:
        if not isinstance(n, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(n)}")
        if n <= 0:
            raise ValueError(f"Non-positive multiplication factor {n} for {type(self)}")
        return n

    def __mul__(self, other: int) -> Sequential:
        return Sequential(*(m for _ in range(self._times(other)) for m in self))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Sequential:
        own = list(self)
        for _ in range(self._times(other) - 1):
            self.extend(own)
        return self

    def forward(self, input: Any) -> Any:
        """Each module applied to the result of the one before."""
        for m in self._modules.values():
            input = m(input)
        return input


class ModuleList(_Listed):
    """Modules in a list."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __repr__(self) -> str:
        groups: list[tuple[int, int, str]] = []  # first, last, text: equal neighbours are shown once
        for k, m in enumerate(self):
            text = repr(m)
            if groups and groups[-1][2] == text:
                groups[-1] = (groups[-1][0], k, text)
            else:
                groups.append((k, k, text))
        if not groups:
            return f"{self._get_name()}()"
        lines = [
            (f"({a}): {text}" if a == b else f"({a}-{b}): {b - a + 1} x {text}").replace("\n", "\n  ")
            for a, b, text in groups
        ]
        return "\n  ".join([f"{self._get_name()}(", *lines]) + "\n)"


class ModuleDict(Module):
    """Modules by name."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

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
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"ModuleDict.update should be called with an iterable of key/value pairs, but got {type(modules).__name__}"
            )
        for key, m in pairs(modules):
            self[key] = m


def pairs(things: Any) -> Iterable[tuple[Any, Any]]:
    """Names and values of a mapping, or the pairs themselves."""
    if isinstance(things, Mapping | ModuleDict | ParameterDict):
        return list(things.items())
    out = []
    for k, pair in enumerate(things):
        if not isinstance(pair, Iterable):
            raise TypeError(f"update: element #{k} should be Iterable; is {type(pair).__name__}")
        entry = tuple(pair)
        if len(entry) != 2:
            raise ValueError(f"update: element #{k} has length {len(entry)}; 2 is required")
        out.append(entry)
    return out


def _as_parameter(x: Any) -> Any:
    return Parameter(x) if isinstance(x, Tensor) and not isinstance(x, Parameter) else x


def _line(key: Any, p: Any, kind: str) -> str:
    if not isinstance(p, Tensor):
        return f"  ({key}): Object of type: {type(p).__name__}"
    size = "x".join(str(n) for n in p.shape)
    return f"  ({key}): {'Parameter' if isinstance(p, Parameter) else 'Tensor'} containing: [{kind} of size {size}]"


class ParameterList(Module):
    """Parameters in a list; tensors become parameters, anything else stays what it is."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            out = type(self)()
            for i in range(*idx.indices(len(self))):
                out.append(self[i])
            return out
        return getattr(self, str(_position("ParameterList", idx, len(self))))

    def __setitem__(self, idx: Any, param: Any) -> None:
        setattr(self, str(_position("ParameterList", idx, len(self))), _as_parameter(param))

    def __iter__(self) -> Iterator[Any]:
        return iter([self[k] for k in range(len(self))])

    def __dir__(self) -> list[str]:
        return [k for k in super().__dir__() if not k.isdigit()]

    def __call__(self, *args: Any, **kw: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")

    def append(self, value: Any) -> ParameterList:
        """Add one at the end."""
        k = self._size
        self._size += 1
        self[k] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add several at the end."""
        if isinstance(values, Tensor) or not isinstance(values, Iterable):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for v in list(values):
            self.append(v)
        return self

    __iadd__ = extend

    def extra_repr(self) -> str:
        """One line a parameter."""
        return "\n".join(_line(k, p, _element(p)) for k, p in enumerate(self))


def _element(p: Any) -> str:
    return f"torch.{p.dtype.name}" if isinstance(p, Tensor) else ""


class ParameterDict(Module):
    """Parameters by name; tensors become parameters, anything else stays what it is."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _key_to_attr(self, key: str) -> str:
        if not isinstance(key, str):
            raise TypeError(
                f"Index given to ParameterDict cannot be used as a key as it is not a string (type is '{type(key).__name__}')."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._key_to_attr(key))

    def __setitem__(self, key: str, value: Any) -> None:
        self._keys[self._key_to_attr(key)] = None
        setattr(self, key, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._keys))

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: Any) -> bool:
        return key in self._keys

    def __call__(self, *args: Any, **kw: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")

    def keys(self) -> Any:
        """The names."""
        return self._keys.keys()

    def values(self) -> Any:
        """The parameters."""
        return [self[k] for k in self._keys]

    def items(self) -> Any:
        """Names and parameters."""
        return [(k, self[k]) for k in self._keys]

    def get(self, key: str, default: Any = None) -> Any:
        """The parameter with this name, or `default`."""
        return self[key] if key in self._keys else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The parameter with this name, which is `default` if there was none."""
        if key not in self._keys:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Take one out."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Take the last one out, with its name."""
        key = list(self._keys)[-1]
        return key, self.pop(key)

    def clear(self) -> None:
        """Take all out."""
        for key in list(self._keys):
            del self[key]

    def copy(self) -> ParameterDict:
        """Another dict of the same parameters."""
        return ParameterDict(dict(self.items()))

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A dict with `default` under all these names."""
        return ParameterDict(dict.fromkeys(keys, default))

    def update(self, parameters: Any) -> None:
        """Add parameters from a mapping or from pairs."""
        if not isinstance(parameters, Iterable):
            raise TypeError(
                f"ParameterDict.update should be called with an iterable of key/value pairs, but got {type(parameters).__name__}"
            )
        given = pairs(parameters)
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            given = sorted(given)  # as PyTorch does with plain dicts
        for key, v in given:
            self[key] = v

    def __or__(self, other: ParameterDict) -> ParameterDict:
        new = self.copy()
        new.update(other)
        return new

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        new = other.copy()
        new.update(self)
        return new

    def __ior__(self, other: ParameterDict) -> ParameterDict:
        self.update(other)
        return self

    def extra_repr(self) -> str:
        """One line a parameter."""
        return "\n".join(_line(k, p, _legacy_name(p)) for k, p in self.items())


def _legacy_name(p: Any) -> str:
    """The name of PyTorch's class of tensors of this type."""
    names = {
        "float32": "Float",
        "float64": "Double",
        "float16": "Half",
        "int64": "Long",
        "int32": "Int",
        "bfloat16": "BFloat16",
    }
    return f"torch.{names.get(p.dtype.name, p.dtype.name.capitalize())}Tensor" if isinstance(p, Tensor) else ""


class Container(Module):
    """A module with the keyword arguments as submodules, of PyTorch's first days."""

    def __init__(self, **kw: Any) -> None:
        super().__init__()
        for name, m in kw.items():
            self.add_module(name, m)


__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]
