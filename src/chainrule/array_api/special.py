"""scipy.special's functions of arrays, by SciPy's names: where SciPy follows the Array API standard it looks for them here.

>>> import numpy as np, chainrule
>>> from chainrule.array_api import special
>>> chainrule.func.grad(lambda x: special.erf(x).sum())(np.zeros(1))
array([1.12837917])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..interop.numpy.ufuncs import function_of


def __getattr__(name: str) -> Callable[..., Any]:
    """SciPy's ufunc of this name, which takes Arrays and tensors by NumPy's protocol; those without a derivative here are not there."""
    if not name.startswith("__"):
        from scipy.special import _ufuncs

        f = getattr(_ufuncs, name, None)
        if isinstance(f, np.ufunc) and function_of(f) is not None:
            globals()[name] = f
            return f
    raise AttributeError(f"chainrule.array_api.special has no function {name!r}")
