"""The named tuples that functions return, such as ``linalg.svd``; filled by the ops."""

__all__: list[str] = []


def __dir__() -> list[str]:
    return __all__
