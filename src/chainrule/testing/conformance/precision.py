"""The precision columns: value and gradient in 32 and 16 bits against float64, on sizes that reach the compiled kernels.

The unit of error of an element is what rounding alone may do to it: one unit in the last place of the exact result, and
the root-mean-square change of the exact result when every input moves by half a unit in its last place. A library is right at a type if its
largest error is at most `UNITS`, or at most `RIVAL` times PyTorch's on the same numbers (PyTorch's: chainrule's): the error of a long
sum grows with its length, for everybody. On many elements the same is asked of the root mean square, of the numbers in `MEAN`.

Chance can make either number of either library large, so what seems wrong is looked at again.
- The change is estimated from random moves. From n of them its square has a chi-squared distribution of n degrees of
  freedom, so an error in such units has Student's t distribution, and the largest of 65,536 follows its heavy tail: with n
  = 3, of two libraries with errors of the same size one seems more than twice as large as the other in 2 of 9 samples
  (``2 / (1 + 2**n)``). The second look takes many moves.
- A result of a few numbers, or one whose error lies in a few elements (``1 - p`` at p close to 1), is one roll of the dice.
  The second look takes the inputs again and again with the last half of their digits moved: the rounding differs, that of
  small terms beside large ones too, the conditioning hardly. The median of the largest errors counts: what is lost in
  every draw is lost, be it in one element. What is not finite and should be is no matter of chance.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from .adapters import Library, TorchLibrary, load_library, torch_to_numpy
from .calculus import Arrays, random_like
from .problem import Case, Problem, is_partial_view
from .tree import leaves, map_tree

if TYPE_CHECKING:
    from .columns import Judge

UNITS, RIVAL = 3.0, 2.0
# Of the root mean square over at least `MANY` elements: units, and how many times PyTorch's. One rounding is 0.2 units,
# and 16 bits are computed in 32 and rounded once. Long sums of 32 bits in another order, as in another BLAS library with
# half as many accumulators, differ by 1.4 to 1.9.
MEAN = {torch.float32: (0.5, RIVAL), torch.bfloat16: (0.2, 1.4), torch.float16: (0.2, 1.4)}
MANY = 1 << 10
ALIKE = 1e-2  # units in which two results of float64 may differ
FEW_MOVES, MANY_MOVES = 6, 64
DRAWS = 16
ENOUGH = 1 << 16  # elements from which compiled kernels run
LONGEST = 1 << 12  # of a size of an op that is not pointwise: its work may grow with the square
AT_MOST = (1 << 22, 1 << 28)  # elements of all results on the way, and products in them, of a sample that is enlarged
# What these add to a denominator depends on the type they compute in, by default: so many arguments beside the first say otherwise.
EPS_OF_TYPE = {"nn.functional.rms_norm": 3}
COLUMN_TYPES = {"float32": (torch.float32,), "16-bit": (torch.bfloat16, torch.float16)}


def precision_columns(judge: Judge) -> dict[str, Callable[[], None]]:
    """The checks of the two columns for one sample."""
    return {c: functools.partial(check, judge, types) for c, types in COLUMN_TYPES.items()}


def check(judge: Judge, types: Sequence[torch.dtype]) -> None:
    """Value and gradient at every type that the entry has."""
    from .columns import NotApplicable, Wrong

    if judge.case.dtype is not torch.float64:
        raise NotApplicable("judged at real samples")
    if judge.oracle.random:
        raise NotApplicable("random")
    if any(u is not None and u.any() for u in judge.oracle.uninitialised):
        raise NotApplicable("uninitialised memory")
    judged = False
    for dtype in (d for d in types if d in judge.case.entry.op.dtypes):
        for t in trials(judge.case, dtype):
            try:
                text = t.verdict(judge.lib)
            except Exception:
                if t.is_enlarged and t.is_refused(judge.lib):
                    continue  # pivots or sizes that were repeated mean nothing: then the sample is judged as it is
                raise
            if text is None or t.is_about_rounding(judge.lib):
                judged = True
                if text:
                    raise Wrong(f"{t.name}: {text}")
                break
    if not judged:
        raise NotApplicable("PyTorch has no finite floating result here at this type")


# -- samples ----------------------------------------------------------------------------------------------------------


def trials(case: Case, dtype: torch.dtype) -> Iterator[Trial]:
    """The sample enlarged, if PyTorch accepts it with finite results, and as it is."""
    tensors = [x for x in _arguments(case.sample) if isinstance(x, torch.Tensor)]
    if any(x.layout is not torch.strided or x.is_complex() or is_partial_view(x) for x in tensors):
        return
    longest = ENOUGH + 1 if case.entry.is_pointwise else LONGEST
    for grow in _enlargements([x for x in tensors if x.dtype is torch.float64], longest):
        trial = Trial(case, dtype, grow)
        try:
            usable = (grow is _as_it_is or trial.is_affordable) and trial.is_usable
        except Exception:  # whatever PyTorch raises: it does not take the sample like this
            continue
        if usable:
            yield trial


def _arguments(sample: Any) -> list[Any]:
    return leaves((sample.input, tuple(sample.args), dict(sample.kwargs)))


Shape = tuple[int, ...]
Grow = Callable[[torch.Tensor], Shape]


def _enlargements(floats: Sequence[torch.Tensor], longest: int) -> Iterator[Grow]:
    """New shapes: every size times a factor; the largest tensor's first size wherever it occurs in front; as it is."""
    if floats:
        big = max(floats, key=lambda x: x.numel())
        sizes = [n for n in big.shape if n > 1]
        if sizes and 0 < big.numel() < ENOUGH:
            m = min(math.ceil((ENOUGH / big.numel()) ** (1 / len(sizes))), longest // max(sizes))
            yield lambda x: tuple(n * m if n > 1 else n for n in x.shape)
            front = min(math.ceil(ENOUGH / big.numel()), longest // big.shape[0])
            yield lambda x: (x.shape[0] * front, *x.shape[1:]) if x.shape[:1] == big.shape[:1] else tuple(x.shape)
    yield _as_it_is


def _as_it_is(x: torch.Tensor) -> Shape:
    return tuple(x.shape)


def _resampled(rng: np.random.Generator, x: np.ndarray, shape: Shape) -> np.ndarray:
    """Numbers between those of `x`: they stay in the domain that the sample has."""
    if shape == x.shape:
        return x
    a, b = (rng.choice(x.ravel(), shape) for _ in range(2))
    return a + rng.uniform(size=shape) * (b - a)


def _tiled(x: torch.Tensor, shape: Shape) -> torch.Tensor:
    """Masks, and indices that repeat already, repeated; indices that are unique may have to be."""
    flat = x.flatten()
    if x.dtype is not torch.bool and flat.unique().numel() == flat.numel():
        return x
    return x.repeat([n // o if o else 1 for n, o in zip(shape, x.shape, strict=True)])


# -- errors -----------------------------------------------------------------------------------------------------------


@dataclass
class Results:
    """Floating outputs, and gradients for given cotangents; `None` where there is none."""

    values: Arrays
    gradients: Arrays
    dtypes: list[str]

    @property
    def arrays(self) -> Arrays:
        return [*self.values, *self.gradients]


Move = Callable[[torch.Tensor], torch.Tensor]


class _Elements(TorchDispatchMode):
    """Counts the elements of everything that PyTorch's operators return."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self.total += sum(x.numel() for x in leaves(out) if isinstance(x, torch.Tensor))
        return out


class Trial:
    """One sample at one size in one type: exact results, units, and PyTorch's error."""

    def __init__(self, case: Case, dtype: torch.dtype, grow: Grow) -> None:
        self.case, self.dtype = case, dtype
        self.is_enlarged = grow is not _as_it_is
        self.rng = case.rng
        self.eps = torch.finfo(dtype).eps
        s = case.sample
        self.template = map_tree(lambda x: self._argument(x, grow), (s.input, tuple(s.args), dict(s.kwargs)))
        self.floats = [x for x in leaves(self.template) if isinstance(x, torch.Tensor) and x.dtype is dtype]
        self.differentiable = case.entry.differentiable_at(dtype)
        self._moves, self._total = 0, list[np.ndarray]()

    @property
    def name(self) -> str:
        shapes = " ".join(str(list(x.shape)) for x in self.floats)
        return f"{str(self.dtype).removeprefix('torch.')} {shapes}"

    def _argument(self, x: Any, grow: Grow) -> Any:
        if not isinstance(x, torch.Tensor):
            return x
        if x.dtype is torch.float64:
            array = _resampled(self.rng, torch_to_numpy(x), grow(x))
            return torch.from_numpy(array).to(self.dtype).requires_grad_(x.requires_grad)
        return x if x.dtype.is_floating_point else _tiled(x, grow(x))

    def _case(self, change: Move, *, others: Move = lambda x: x, exact: bool = False) -> Case:
        """The sample with every argument of the type changed, and all other tensors; float64 is asked for if `exact`."""

        def each(x: Any) -> Any:
            if not isinstance(x, torch.Tensor):
                return self.dtype if x is torch.float64 and not exact else x
            if x.dtype is self.dtype:
                return change(x.detach()).requires_grad_(x.requires_grad and self.differentiable)
            return others(x)

        sample = copy.copy(self.case.sample)
        sample.input, sample.args, sample.kwargs = map_tree(each, self.template)
        if exact and self.case.entry.name in EPS_OF_TYPE and len(sample.args) < EPS_OF_TYPE[self.case.entry.name]:
            sample.kwargs = {"eps": torch.finfo(torch.float32).eps, **sample.kwargs}
        return Case(self.case.entry, self.dtype, self.case.index, sample, self.case.seed)

    def _results(self, case: Case, lib: Library, move: Move = lambda x: x) -> Results:
        """What a library computes for the sample and the cotangents, which are moved."""
        problem = Problem(case, lib)
        positions = problem.differentiated if self.outputs else []
        if not positions:
            out = [o for o in problem.processed() if lib.is_tensor(o)]
            return self._gather(lib, out, [])
        f = problem.function(positions, None)
        chosen: list[Any] = []

        def g(*x: Any) -> tuple[Any, ...]:
            chosen[:] = f(*x)
            return tuple(chosen[i] for i in self.outputs)

        outs, pull = lib.vjp(g, [problem.arguments[i] for i in positions])
        # The type of a cotangent is the output's, which is wider for the exact results.
        cotangents = [move(torch.from_numpy(c)).numpy() for c in self.cotangents]
        grads = pull([lib.tensor(c, lib.dtype(o)) for c, o in zip(cotangents, outs, strict=True)])
        plain = problem.processed() if lib.name != "torch" else chosen
        return self._gather(lib, [o for o in plain if lib.is_tensor(o)], list(grads))

    def _gather(self, lib: Library, outs: Sequence[Any], grads: Sequence[Any]) -> Results:
        kept = [(lib.dtype(o), lib.numpy(o)) for o in (*outs, *grads)]
        wide = [np.asarray(a, np.float64) for d, a in kept if "float" in d]
        n = sum("float" in d for d, _ in kept[: len(outs)])
        return Results(wide[:n], wide[n:], [d for d, _ in kept])

    @functools.cached_property
    def outputs(self) -> list[int]:
        """Which tensor outputs carry a gradient."""
        problem = Problem(self._case(torch.Tensor.clone), TorchLibrary())
        if not problem.differentiated:
            return []
        x = [problem.torch_leaf(i).detach().requires_grad_() for i in problem.differentiated]
        outs = problem.function(problem.differentiated, None)(*x)
        self._shapes = [tuple(o.shape) for o in outs if o.requires_grad]
        return [i for i, o in enumerate(outs) if o.requires_grad]

    @functools.cached_property
    def cotangents(self) -> Arrays:
        """Numbers that the type has, so that everybody is given the same."""
        drawn = random_like(self.rng, [(s, np.dtype(np.float64)) for s in self._shapes])
        return [torch_to_numpy(torch.from_numpy(g).to(self.dtype).double()) for g in drawn]

    @functools.cached_property
    def exact(self) -> Results:
        return self._results(self._case(torch.Tensor.double, exact=True), TorchLibrary())

    @functools.cached_property
    def rival(self) -> Results:
        return self._results(self._case(torch.Tensor.clone), TorchLibrary())

    @property
    def is_affordable(self) -> bool:
        """Whether the call is short, by what it would compute: no clock decides."""
        case = self._case(lambda x: x.to("meta"), others=lambda x: x.to("meta"))
        with FlopCounterMode(display=False) as products, _Elements() as elements:
            Problem(case, TorchLibrary()).raw()
        return elements.total <= AT_MOST[0] and products.get_total_flops() <= AT_MOST[1]

    @property
    def is_usable(self) -> bool:
        """Whether PyTorch has a floating result, and a finite one wherever the exact one is."""
        pairs = list(zip(self.rival.arrays, self.exact.arrays, strict=True))
        return any(b.size for _, b in pairs) and all(bool(np.isfinite(a[np.isfinite(b)]).all()) for a, b in pairs)

    def _moved(self, seed: int) -> Arrays:
        """The exact results where every input and cotangent is moved by half a unit in its last place, at random."""

        def results(inside: bool) -> Arrays:
            generator = torch.Generator().manual_seed(seed)

            def move(x: torch.Tensor) -> torch.Tensor:
                noise = torch.randn(x.shape, generator=generator, dtype=torch.float64)
                y = x.double() * (1 + self.eps / 2 * noise)
                return y.clamp(x.double().min(), x.double().max()) if inside and x.numel() else y

            return self._results(self._case(move, exact=True), TorchLibrary(), move).arrays

        try:
            return results(False)
        except RuntimeError:  # an argument at the end of its domain, such as a probability of 1, has left it
            return results(True)

    def _sensitivities(self, moves: int) -> Arrays:
        """The root mean square change of every exact result over at least so many moves.

        The moves are independent: a tie, or a jump nearby, is seen from both sides, and each is as good as any other.
        """
        if not self._moves:
            self._seeds = self.case.rng
            self._total = [np.zeros_like(a) for a in self.exact.arrays]
        with np.errstate(all="ignore"):
            for _ in range(self._moves, moves):
                pairs = zip(
                    self._total, self._moved(int(self._seeds.integers(1 << 30))), self.exact.arrays, strict=True
                )
                self._total = [t + (a - b) ** 2 for t, a, b in pairs]
            self._moves = max(self._moves, moves)
            return [np.nan_to_num(np.sqrt(t / self._moves)) for t in self._total]

    def units(self, moves: int = FEW_MOVES) -> Arrays:
        """Of every exact result: one unit in its last place, and what half a unit of every input makes of it."""
        out = []
        floats = [d for d in self.rival.dtypes if "float" in d]
        for d, b, change in zip(floats, self.exact.arrays, self._sensitivities(moves), strict=True):
            info = torch.finfo(max((self.dtype, getattr(torch, d)), key=lambda t: torch.finfo(t).eps))
            out.append(info.eps * np.maximum(np.abs(np.nan_to_num(b)), info.tiny) + change)
        return out

    def errors(self, got: Results, moves: int = FEW_MOVES) -> Arrays:
        """The error of each element of each result, in units; infinite where it is finite and should not be, or the reverse."""
        out = []
        for a, b, u in zip(got.arrays, self.exact.arrays, self.units(moves), strict=True):
            with np.errstate(all="ignore"):
                error = np.where(np.isfinite(b), np.abs(a - b) / u, 0.0)
            out.append(np.nan_to_num(error, nan=np.inf, posinf=np.inf))
        return out

    def redrawn(self) -> Iterator[Trial]:
        """The trial again with the last half of its inputs' and cotangents' digits moved, where PyTorch takes them."""
        for k in range(DRAWS):
            generator = torch.Generator().manual_seed(k)

            def moved(x: Any, generator: torch.Generator = generator) -> Any:
                if not (isinstance(x, torch.Tensor) and x.dtype is self.dtype):
                    return x
                noise = torch.randn(x.shape, generator=generator, dtype=torch.float64)
                y = x.detach().double() * (1 + math.sqrt(self.eps) * noise)
                return y.to(self.dtype).requires_grad_(x.requires_grad)

            other = copy.copy(self)  # with the sensitivities of this one
            other.template = map_tree(moved, self.template)
            for name in ("exact", "rival"):
                other.__dict__.pop(name, None)
            if self.outputs:  # of a linear op, these alone say what the gradient is
                as_tensors = [torch.from_numpy(g).to(self.dtype) for g in self.cotangents]
                other.cotangents = [torch_to_numpy(moved(g).double()) for g in as_tensors]
            try:
                usable = other.is_usable
            except RuntimeError:  # out of the domain
                continue
            if usable:
                yield other

    def is_refused(self, lib: Library) -> bool:
        """Whether the library refuses the sample at float64 too: that is no matter of precision."""
        try:
            self._results(self._case(torch.Tensor.double, exact=True), lib)
        except Exception:
            return True
        return False

    def is_about_rounding(self, lib: Library) -> bool:
        """Whether the library agrees at float64: where it takes another of two equal elements, it cannot agree at fewer bits.

        Of two such elements each is as far from the other as the units there are large, so that agreement is more than these.
        """
        got = self._results(self._case(torch.Tensor.double, exact=True), lib)
        same = [a.shape for a in got.arrays] == [a.shape for a in self.exact.arrays]
        errors = [e.max(initial=0.0) for e in self.errors(got)] if same else [math.inf]
        return all(e <= ALIKE for e in errors)

    def verdict(self, lib: Library) -> str | None:
        """None if the library is right, else a sentence."""
        got = self._results(self._case(torch.Tensor.clone), lib)
        if got.dtypes != self.rival.dtypes:
            return f"results have types {got.dtypes}, expected {self.rival.dtypes}"
        if [a.shape for a in got.arrays] != [a.shape for a in self.rival.arrays]:
            return "results have other shapes than PyTorch's"
        mine = self.errors(got)
        first = self._compared(lib, [mine], [self.errors(self._rival_of(lib))], len(got.values))
        if first and all(np.isfinite(e).all() for e in mine):
            return self._second_look(lib, got)
        return first

    def _second_look(self, lib: Library, got: Results) -> str | None:
        mine, theirs = [self.errors(got, MANY_MOVES)], [self.errors(self._rival_of(lib), MANY_MOVES)]
        for t in self.redrawn():
            if t.is_about_rounding(lib):
                mine.append(t.errors(t._results(t._case(torch.Tensor.clone), lib)))
                theirs.append(t.errors(t._rival_of(lib)))
        return self._compared(lib, mine, theirs, len(got.values))

    def _rival_of(self, lib: Library) -> Results:
        """PyTorch's results; chainrule's where PyTorch itself is judged, or exact ones where chainrule has none."""
        if lib.name != "torch":
            return self.rival
        try:
            got = self._results(self._case(torch.Tensor.clone), load_library("chainrule"))
        except Exception:  # whatever it raises: that is judged in its own row
            return self.exact
        return got if [a.shape for a in got.arrays] == [a.shape for a in self.exact.arrays] else self.exact

    def _compared(self, lib: Library, mine: list[Arrays], theirs: list[Arrays], values: int) -> str | None:
        """A sentence if the errors, those of each draw, are too large; the first `values` of each are of values."""
        least, times = MEAN[self.dtype]
        rival = "chainrule" if lib.name == "torch" else "PyTorch"
        for k, draws in enumerate(zip(zip(*mine, strict=True), zip(*theirs, strict=True), strict=True)):
            (a, a_mean), (b, b_mean) = (_largest_and_mean(d) for d in draws)
            what = f"value {k}" if k < values else f"gradient {k - values}"
            if not a <= max(UNITS, RIVAL * b):
                return f"{what} errs by {a:.3g} units of rounding, {rival} by {b:.3g}"
            if not a_mean <= max(least, times * b_mean):
                return f"{what} errs by {a_mean:.3g} units of rounding in the mean, {rival} by {b_mean:.3g}"
        return None


def _largest_and_mean(draws: Sequence[np.ndarray]) -> tuple[float, float]:
    """The largest element, its median over the draws, and the root mean square of all if these are many."""
    mean = math.sqrt(np.mean([np.mean(e**2) for e in draws])) if sum(e.size for e in draws) >= MANY else 0.0
    return float(np.median([e.max(initial=0.0) for e in draws])), mean
