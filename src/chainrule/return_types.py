"""The named tuples that functions return, such as ``linalg.svd``; filled by the ops."""

__all__: list[str] = []


def __getattr__(name: str) -> type:
    """PyTorch has one type for each function, ``return_types.linalg_svd``: here the type that function returns."""
    from .core.registry import PUBLIC
    from .namespaces import types_of

    if name in ("max", "min", "median", "nanmedian", "mode", "cummax", "cummin", "kthvalue"):  # of those with a dim
        name = "mode"
    for address in (name, *(name.replace(f"{p}_", f"{p}.", 1) for p in ("linalg", "special"))):
        for kind in types_of(PUBLIC[address]) if address in PUBLIC else ():
            return kind
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def __dir__() -> list[str]:
    return __all__
