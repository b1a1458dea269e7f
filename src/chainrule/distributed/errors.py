"""What goes wrong between processes, said with the collective, its number and the ranks."""

from __future__ import annotations

from ..core.errors import ChainruleError


class DistError(ChainruleError):
    """Something between processes went wrong; the base of the others."""


class DistBackendError(DistError):
    """MPI refused a call."""


class DistTimeoutError(DistError, TimeoutError):
    """Some ranks did not come to a collective in time."""


class DistPeerError(DistError, ConnectionError):
    """A process has died."""


class DistMismatchError(DistError):
    """The ranks called different collectives, or with different shapes or types."""


__all__ = ["DistBackendError", "DistError", "DistMismatchError", "DistPeerError", "DistTimeoutError"]
