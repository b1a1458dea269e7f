"""SciPy's functions with derivatives, where SciPy itself runs compiled code: integrals, equations, minima, matrix functions, splines, filters, densities.

scipy.special's ufuncs need none of this: they work on tensors and on the values of NumPy's door by NumPy's protocol. The functions here take tensors,
ndarrays and Arrays, and hand back what they were given.
"""

from __future__ import annotations

from . import integrate, interpolate, linalg, ndimage, optimize, signal, special, stats

__all__ = ["integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "special", "stats"]
