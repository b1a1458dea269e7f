"""The device ``mtia``, which is not here: ``is_available()`` is False."""

from __future__ import annotations

from .devices import fill

fill(globals(), "mtia")
