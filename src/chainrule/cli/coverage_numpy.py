"""What NumPy, SciPy and the Array API standard have that works on arrays inside a transform, what does not, and why."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np

# (pattern of the name, reason) for what has no derivative to speak of.
REASONS = [
    (r"busday.*|is_busday|datetime.*|isnat", "dates"),
    (
        r"array2string|array_repr|array_str|format_float.*|set_printoptions|get_printoptions|printoptions|typename|info|show_.*|test|byte_bounds|deprecate.*",
        "printing and help",
    ),
    (
        r"save.*|load.*|fromfile|fromregex|fromstring|genfromtxt|frombuffer|fromiter|from_dlpack|memmap|asmatrix|bmat|matrix|frompyfunc|vectorize",
        "makes arrays from files, memory or Python functions",
    ),
    (
        r"packbits|unpackbits|bitwise_.*|left_shift|right_shift|invert|gcd|lcm|binary_repr|base_repr",
        "bits and integers: values, no derivative",
    ),
    (
        r"is.*|logical_.*|greater.*|less.*|equal|not_equal|array_equal|array_equiv|allclose|signbit|all|any|iterable|can_cast|.*shares?_memory",
        "answers yes or no",
    ),
    (
        r"arg.*|nanarg.*|lexsort|searchsorted|digitize|nonzero|flatnonzero|count_nonzero|where|unravel_index|ravel_multi_index|histogram_bin_edges|matrix_rank",
        "counts and places",
    ),
    (
        r"result_type|common_type|min_scalar_type|promote_types|issubdtype|mintypecode|dtype|finfo|iinfo|ndim|size|shape|broadcast_shapes|geterr.*|seterr.*|errstate|.*bufsize|einsum_path|get_include|require|nested_iters|ndindex|ndenumerate|nditer|broadcast|iscomplexobj|isrealobj|sctype.*|asarray_chkfinite",
        "types, shapes and settings",
    ),
    (
        r"arange|empty|zeros|ones|full|eye|identity|tri|tri.*_indices.*|diag_indices.*|mask_indices|indices|fromfunction|bartlett|blackman|hamming|hanning|kaiser|array|asarray|asanyarray|ascontiguousarray|asfortranarray|fftfreq|rfftfreq|copy",
        "makes arrays: take like=x, or chainrule.numpy's",
    ),
    (r"save|setdiff1d|intersect1d|setxor1d|in1d|unique_.*", "sets: values"),
    (r"spacing|nextafter|bitwise_count|frexp|ldexp", "the floating-point format"),
]


def _reason(name: str) -> str:
    return next((why for pattern, why in REASONS if re.fullmatch(pattern, name)), "")


def _ufunc(u: Any) -> tuple[str, str]:
    from ..interop.numpy.ufuncs import VALUES, function_of

    if function_of(u) is not None:
        return "yes", "an op of chainrule's"
    if u.__name__ in VALUES:
        return "values", _reason(u.__name__) or "values, no derivative"
    return "no", _reason(u.__name__)


def _function(f: Any, name: str) -> tuple[str, str]:
    from ..interop.numpy.functions import VALUES as BY_VALUE
    from ..interop.numpy.shadow import LIKE, NATIVE, function

    if f in NATIVE:
        return "yes", "chainrule's ops"
    if f in BY_VALUE or f in LIKE:
        return "values", _reason(name) or "computed on values"
    if not hasattr(f, "_implementation"):
        return "no", _reason(name)
    if why := _reason(name):
        return "values", why
    return ("yes", "NumPy's own code on chainrule's ops") if function(f) is not None else ("no", "")


def _space(module: Any, prefix: str) -> list[tuple[str, str, str, str]]:
    rows = []
    for n in sorted(set(dir(module))):
        f = getattr(module, n, None)
        if n.startswith("_") or isinstance(f, type) or not callable(f):
            continue
        kind = "ufunc" if isinstance(f, np.ufunc) else "function"
        status, why = _ufunc(f) if kind == "ufunc" else _function(f, n)
        rows.append((prefix + n, kind, status, why))
    return rows


def numpy_rows() -> list[tuple[str, str, str, str]]:
    """Every function of numpy, numpy.linalg and numpy.fft: name, kind, whether it is there, why (not)."""
    return [*_space(np, ""), *_space(np.linalg, "linalg."), *_space(np.fft, "fft.")]


# What scipy.stats and others have beside functions of numbers.
SCIPY_REASONS = [
    (
        r".*test.*|.*_gof|monte_carlo.*|bootstrap|permutation.*|power|goodness.*|kruskal|wilcoxon|f_oneway|alexandergovern",
        "a test of hypotheses",
    ),
    (
        r"find_.*|show_options|bracket|.*_options|get_.*_funcs|find_best_blas_type|get_workspace|errstate|geterr|seterr",
        "settings and tools",
    ),
    (r"random_.*|uniform_direction|unitary_group|ortho_group|special_ortho_group", "random numbers"),
    (
        r".*_order|.*ord|.*_win|get_window|firwin.*|remez|iirfilter|iirdesign|butter|cheby.|ellip|bessel|.*ap",
        "designs a filter: no derivative follows",
    ),
    (
        r"(lp|bp|bs|hp)2.*|.*2(zpk|tf|sos|ss)|unit_impulse|max_len_seq|kaiser_.*|gammatone",
        "designs a filter: no derivative follows",
    ),
    (
        r"arg.*|find_peaks.*|peak_.*|label|find_objects|watershed.*|binary_.*|rank.*|rankdata|mode|binned_.*|sigmaclip|trim.*",
        "places, counts and ranks",
    ),
    (
        r"linprog|milp|linear_sum_assignment|quadratic_assignment|brute|differential_evolution|dual_annealing|shgo|direct|basinhopping",
        "searches without derivatives",
    ),
]


def _by_the_standard() -> set[tuple[str, str]]:
    """Part and name of SciPy's functions that compute with any library of the Array API standard, where SciPy keeps a list."""
    try:
        from scipy._lib._array_api import xp_capabilities_table as table
    except ImportError:
        return set()
    known = [
        f
        for f, k in table.items()
        if not (k["np_only"] or k["cpu_only"] or k["out_of_scope"]) and hasattr(f, "__module__")
    ]
    return {(f.__module__.split(".")[1], f.__name__) for f in known if f.__module__.startswith("scipy.")}


def scipy_rows() -> list[tuple[str, str, str, str]]:
    """scipy.special's ufuncs, and of the other parts what chainrule.scipy has, and what SciPy itself computes with arrays of the standard."""
    import importlib

    import scipy.special

    rows = []
    for n in sorted(dir(scipy.special)):
        u = getattr(scipy.special, n)
        if isinstance(u, np.ufunc):
            status, _ = _ufunc(u)
            rows.append((f"special.{n}", "ufunc", status, "by NumPy's protocol" if status == "yes" else "no rule yet"))
    parts = "special linalg fft integrate interpolate ndimage optimize signal stats".split()
    modules = {part: importlib.import_module(f"scipy.{part}") for part in parts}
    standard = _by_the_standard()  # which the modules fill
    for part, theirs in modules.items():
        ours = vars(importlib.import_module(f"chainrule.scipy.{part}")) if part != "fft" else {}
        for n in sorted(getattr(theirs, "__all__", dir(theirs))):
            f = getattr(theirs, n, None)
            kind = (
                "distribution"
                if hasattr(f, "pdf") or hasattr(f, "pmf")
                else "class"
                if isinstance(f, type)
                else "function"
            )
            if (
                isinstance(f, np.ufunc)
                or not (callable(f) or kind == "distribution")
                or (kind == "class" and n not in ours)
            ):
                continue
            reason = next((why for pattern, why in SCIPY_REASONS if re.fullmatch(pattern, n)), "")
            if n in ours:
                status, why = "yes", "chainrule.scipy"
            elif kind == "function" and (part, n) in standard:
                status, why = "standard", "SciPy's own code, with SCIPY_ARRAY_API=1"
            else:
                status, why = ("values", reason) if reason else ("no", "no rule yet")
            rows.append((f"{part}.{n}", kind, status, why))
    return rows


def array_api_rows() -> list[tuple[str, str, str, str]]:
    """The names of the standard."""
    from .. import array_api

    names = (
        "abs acos acosh add all any arange argmax argmin argsort asarray asin asinh astype atan atan2 atanh bitwise_and bitwise_invert bitwise_left_shift "
        "bitwise_or bitwise_right_shift bitwise_xor broadcast_arrays broadcast_to can_cast ceil clip concat conj copysign cos cosh count_nonzero "
        "cumulative_prod cumulative_sum diff divide e empty empty_like equal exp expand_dims expm1 eye finfo flip floor floor_divide from_dlpack full "
        "full_like greater greater_equal hypot iinfo imag inf isdtype isfinite isinf isnan less less_equal linspace log log10 log1p log2 logaddexp "
        "logical_and logical_not logical_or logical_xor matmul matrix_transpose max maximum mean meshgrid min minimum moveaxis multiply nan negative "
        "newaxis nextafter nonzero not_equal ones ones_like permute_dims pi positive pow prod real reciprocal remainder repeat reshape result_type roll "
        "round searchsorted sign signbit sin sinh sort sqrt square squeeze stack std subtract sum take take_along_axis tan tanh tensordot tile tril triu "
        "trunc unique_all unique_counts unique_inverse unique_values unstack var vecdot where zeros zeros_like __array_namespace_info__"
    ).split()
    parts = {
        "linalg": "cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank matrix_transpose outer pinv qr slogdet solve svd "
        "svdvals tensordot trace vecdot vector_norm",
        "fft": "fft fftfreq fftn fftshift hfft ifft ifftn ifftshift ihfft irfft irfftn rfft rfftfreq rfftn",
    }
    rows = [(n, "name", "yes" if hasattr(array_api, n) else "no", "") for n in names]
    for part, more in parts.items():
        rows += [
            (f"{part}.{n}", "name", "yes" if hasattr(getattr(array_api, part), n) else "no", "") for n in more.split()
        ]
    return rows


ROWS = {"numpy": numpy_rows, "scipy": scipy_rows, "array-api": array_api_rows}


def report(library: str, everything: bool = False) -> int:
    """Print the names that are missing (or all) and the sums."""
    rows = ROWS[library]()
    for name, kind, status, why in rows:
        if everything or (status == "no" and not _reason(name.rpartition(".")[2])):
            print(f"{status:7} {kind:9} {name:40} {why}")
    counts = Counter((kind, status) for _, kind, status, _ in rows)
    for kind in sorted({k for _, k, _, _ in rows}):
        yes, values, no, standard = (counts[kind, s] for s in ("yes", "values", "no", "standard"))
        out = sum(1 for n, k, s, _ in rows if k == kind and s == "no" and _reason(n.rpartition(".")[2]))
        whole = yes + no - out
        kinds = kind + ("es" if kind.endswith("s") else "s")
        also = f"; by the Array API standard {standard}" if standard else ""
        print(
            f"{library}: {kinds} with a derivative {yes} of {whole} ({100 * yes / max(whole, 1):.1f} %); by value {values}; "
            f"without a derivative, with the reason {out}{also}"
        )
    return 0
