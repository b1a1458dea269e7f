"""The functions of neural networks, without state: what the ops publish under ``nn.functional``."""

from __future__ import annotations

from typing import Any

# Private names that code written for PyTorch imports from here, and where they live.
_ELSEWHERE = {
    "_pair": "modules.utils",
    "_single": "modules.utils",
    "_triple": "modules.utils",
    "_Reduction": "_reduction",
}


def __getattr__(name: str) -> Any:
    import importlib

    if name in _ELSEWHERE:
        home = importlib.import_module(f"{__package__}.{_ELSEWHERE[name]}")
        return home if name == "_Reduction" else getattr(home, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
