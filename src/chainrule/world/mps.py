"""The device ``mps``, which is not here: ``is_available()`` is False."""

from __future__ import annotations

from .devices import fill

fill(globals(), "mps")
