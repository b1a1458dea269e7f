"""Random numbers: one seeded generator, and vmap's modes of randomness."""

from __future__ import annotations

import contextlib
import functools
import os
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op
from ...core.device import DEFAULT, place
from ...core.dispatch import active_vmaps, recorder
from ...core.errors import ChainruleError, see
from ...core.registry import check_out, public
from ...core.shapes import sizes
from ...core.sizes import has_ragged
from ...core.tensor import Tensor
from ...core.views import write_out
from ..shape.create import finish

_LAYOUT = (("state", 16), ("inc", 16), ("has_uint32", 8), ("uinteger", 8), ("seed", 16))


class Generator:
    """A source of random numbers: ``Generator().manual_seed(0)``."""

    def __init__(self, device: Any = "cpu") -> None:
        kind = getattr(device, "type", str(device).split(":")[0])
        if kind != "cpu":
            raise RuntimeError(f"Generator: random numbers are made on the CPU; device {device!r} is not available")
        self._start(_fresh_seed())

    @property
    def device(self) -> Any:
        """Where the numbers are made."""
        from ...core.device import CPU

        return CPU

    def manual_seed(self, seed: int) -> Generator:
        """Start anew from a seed."""
        try:
            seed = int(seed)
        except (TypeError, ValueError):
            raise TypeError(f"manual_seed: the seed must be an integer, got {seed!r}") from None
        if not -(2**63) <= seed < 2**64:
            raise ValueError(
                f"manual_seed: Overflow when unpacking long long, seed must be in [-2**63, 2**64), got {seed}"
            )
        if (level := recorder()) is not None:  # what is recorded starts anew at every call
            level.note(seed_p, (), {"source": self, "seed": seed})
            return self
        return self._start(seed)

    def _start(self, seed: int) -> Generator:
        self._seed = seed % 2**64
        self.__dict__.pop("rng", None)
        return self

    @functools.cached_property
    def rng(self) -> np.random.Generator:
        """NumPy's generator, made when the first number is drawn."""
        return np.random.Generator(np.random.PCG64(self._seed))

    def initial_seed(self) -> int:
        """The seed this generator started from."""
        return self._seed

    def seed(self) -> int:
        """Start anew from a fresh seed, which is returned."""
        return self.manual_seed(_fresh_seed())._seed

    def get_state(self) -> Tensor:
        """The state as a tensor of bytes, to be given to ``set_state``."""
        if (level := recorder()) is not None:
            state: Tensor = level.note(state_p, (), {"source": self})
            return state
        return Tensor(self.bytes())

    def bytes(self) -> np.ndarray:
        """The state as it is now."""
        d: Any = self.rng.bit_generator.state
        values = {**d, **d["state"], "seed": self._seed}
        parts = [int(values[k]).to_bytes(n, "little") for k, n in _LAYOUT]
        return np.frombuffer(b"".join(parts), np.uint8).copy()

    def set_state(self, new_state: Tensor) -> Generator:
        """Return to a state."""
        if not isinstance(new_state, Tensor) or new_state.dtype is not dt.uint8:
            kind = new_state.dtype if isinstance(new_state, Tensor) else type(new_state).__name__
            raise TypeError(f"set_state: expected a ByteTensor (what get_state() gives), but got {kind}")
        if (level := recorder()) is not None:
            level.note(set_state_p, (new_state,), {"source": self})
            return self
        return self.set_bytes(np.asarray(new_state.concrete("set_state()")))

    def set_bytes(self, new_state: np.ndarray) -> Generator:
        """Return to a state that `bytes` gave."""
        raw = new_state.tobytes()
        if len(raw) != sum(n for _, n in _LAYOUT):
            raise RuntimeError(f"set_state: RNG state is wrong size, {len(raw)} bytes: is it another library's?")
        values, at = {}, 0
        for k, n in _LAYOUT:
            values[k] = int.from_bytes(raw[at : at + n], "little")
            at += n
        state: Any = {"bit_generator": "PCG64", "state": {k: values[k] for k in ("state", "inc")}}
        self.rng.bit_generator.state = state | {k: values[k] for k in ("has_uint32", "uinteger")}
        self._seed = values["seed"]
        return self

    def clone_state(self) -> Generator:
        """Another generator that goes on from here."""
        return Generator().set_state(self.get_state())

    def graphsafe_get_state(self) -> Generator:
        """This generator: there are no captured graphs."""
        return self

    def graphsafe_set_state(self, state: Generator) -> Generator:
        """Go on from where another generator is."""
        return self.set_state(state.get_state())

    def __getstate__(self) -> dict[str, Any]:
        return {"state": self.bytes()}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self._start(0).set_bytes(kept["state"])

    def __deepcopy__(self, memo: Any) -> Generator:
        return self.clone_state()

    def __repr__(self) -> str:
        return f"<chainrule.Generator seed={self._seed}>"


def _fresh_seed() -> int:
    return int.from_bytes(os.urandom(8), "little") >> 11  # as many bits as a float holds


default_generator = Generator()


@public("manual_seed random.manual_seed", out=False)
def manual_seed(seed: int) -> Generator:
    """Seed the default generator."""
    return default_generator.manual_seed(seed)


@public("initial_seed random.initial_seed", out=False)
def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


@public("seed random.seed", out=False)
def seed() -> int:
    """Seed the default generator afresh."""
    return default_generator.seed()


@public("get_rng_state random.get_rng_state", out=False)
def get_rng_state() -> Tensor:
    """The default generator's state."""
    return default_generator.get_state()


@public("set_rng_state random.set_rng_state", out=False)
def set_rng_state(new_state: Tensor) -> None:
    """Return the default generator to a state."""
    default_generator.set_state(new_state)


@public("random.fork_rng", out=False)
@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, **_: Any) -> Iterator[None]:
    """Return the default generator to its present state at the end of the ``with`` block."""
    state = default_generator.get_state()
    try:
        yield
    finally:
        if enabled:
            default_generator.set_state(state)


def draw(
    name: str, shape: tuple[int, ...], sample: Any, generator: Generator | None = None, device: Any = None
) -> Tensor:
    """Draw an array of `shape` with ``sample(rng, shape)``, as the active vmaps' randomness asks.

    "same" draws once for all examples, "different" draws one batch axis for every such vmap, "error" refuses.
    """
    if generator is not None and not isinstance(generator, Generator):
        raise TypeError(
            f"{name}: argument generator must be a Generator, not {type(generator).__name__}; write chainrule.Generator().manual_seed(seed)"
        )
    if (DEFAULT.get() if device is None else place(device)) is not None:
        from ...payloads.meta import MetaArray

        return Tensor(MetaArray(shape, sample(np.random.default_rng(0), (0, *shape[-1:])).dtype))
    lead = []
    for level in active_vmaps():
        if level.randomness == "error":
            raise ChainruleError(
                f"vmap: called random operation while in randomness error mode ({name}). Pass randomness='different' or "
                f"randomness='same' to vmap." + see("Random numbers under vmap")
            )
        if level.randomness == "different":
            lead.append(level)
    level = recorder()
    if level is not None:  # what is recorded draws anew at every call
        lead = [v for v in lead if v.level > level.level]
        source = generator or default_generator
        whole = (*[v.size for v in lead], *shape)
        return split_levels(
            level.note(draw_p, (), {"name": name, "shape": whole, "sample": sample, "source": source}), lead
        )
    rng = (generator or default_generator).rng
    if has_ragged(shape):
        from ...payloads.nested.public_forms import draw_ragged

        return draw_ragged(shape, sample, rng, lead)
    t = Tensor(np.asarray(sample(rng, (*[v.size for v in lead], *shape))))
    return split_levels(t, lead)


@op("draw", on_tensors=True, differentiable=False)
def draw_p(*, name: str, shape: tuple[int, ...], sample: Any, source: Generator, shared: bool = False) -> Tensor:
    """Random numbers from a generator, drawn anew whenever it runs; `shared`: the same for all examples of a vmap, whatever it says."""
    return Tensor(np.asarray(sample(source.rng, shape))) if shared else draw(name, shape, sample, source)


@op("generator_seed", differentiable=False)
def seed_p(*, source: Generator, seed: int) -> Any:
    """Starts a generator anew, whenever it runs."""
    source._start(seed)
    return np.zeros((), bool)


@op("generator_state", differentiable=False)
def state_p(*, source: Generator) -> Any:
    """The state of a generator when it runs."""
    return source.bytes()


@op("generator_set_state", differentiable=False)
def set_state_p(state: Any, *, source: Generator) -> Any:
    """Returns a generator to a state, whenever it runs."""
    source.set_bytes(state)
    return np.zeros((), bool)


for _p in (draw_p, seed_p, state_p, set_state_p):
    _p.effect = True


def split_levels(t: Tensor, lead: list[Any]) -> Tensor:
    """A tensor whose leading axes belong to the given vmap levels, outermost first."""
    for level in lead:
        t = Tensor(t, level)
    return t


def _dtype(dtype: Any) -> np.dtype:
    return (dt.get_default_dtype() if dtype is None else dt.as_dtype(dtype)).np


def _complex_or_real(rng: Any, shape: Any, d: np.dtype, kind: str) -> Any:
    def one() -> Any:
        return rng.standard_normal(shape) if kind == "normal" else rng.random(shape)

    if d.kind == "c":
        scale = np.sqrt(0.5) if kind == "normal" else 1.0
        return ((one() + 1j * one()) * scale).astype(d)
    r = np.asarray(one())
    return (quantised(r, d) if kind == "uniform" else r).astype(d)


_DIGITS = {dt.float32.np: 24, dt.bfloat16.np: 8, dt.float16.np: 11}


def quantised(u: Any, d: np.dtype) -> Any:
    """Uniform numbers in [0, 1) with as many binary digits as the type has: rounding to it must not reach 1."""
    digits = _DIGITS.get(d)
    return u if digits is None else np.floor(u * 2.0**digits) / 2.0**digits


def _random(name: str, kind: str, doc: str) -> Any:
    def f(*size: Any, generator: Any = None, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
          pin_memory: Any = None) -> Tensor:  # fmt: skip
        d = _dtype(dtype)
        if d.kind in "biu":
            raise NotImplementedError(
                f"{name}: not implemented for {dt.as_dtype(dtype)}, only for floating point and complex types; "
                f"randint draws whole numbers"
            )
        t = draw(name, sizes(size), lambda rng, s: _complex_or_real(rng, s, d, kind), generator, device)
        return t.requires_grad_() if requires_grad else t

    def like(input: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
             memory_format: Any = None, generator: Any = None) -> Tensor:  # fmt: skip
        return f(
            tuple(input.shape),
            dtype=input.dtype if dtype is None else dtype,
            requires_grad=requires_grad,
            generator=generator,
            device=input.device if device is None else device,
        )

    def into(*size: Any, out: Any = None, dtype: Any = None, **kw: Any) -> Tensor:
        # Drawn in the type of what is written: a complex one gets both parts, a double all its digits.
        if out is None:
            return f(*size, dtype=dtype, **kw)
        if dtype is not None and dt.as_dtype(dtype) is not out.dtype:
            raise RuntimeError(f"{name}: dtype {dt.as_dtype(dtype)} does not match that of out, {out.dtype}")
        check_out(name, out, (), fresh=True)
        return write_out(out, f(*size, dtype=out.dtype if out.dtype.category >= dt.FLOAT else None, **kw))

    f.__name__, f.__doc__ = into.__name__, into.__doc__ = name, doc
    like.__name__, like.__doc__ = f"{name}_like", f"{doc} Shape and type of `input`."
    from ..shape.create import accept_size

    public(name, out=False)(accept_size(into))
    public(f"{name}_like", out=False)(like)
    return f


rand = _random("rand", "uniform", "Uniform numbers in [0, 1).")
randn = _random("randn", "normal", "Normal numbers with mean 0 and variance 1.")


@public("randint")
def randint(*args: Any, low: int | None = None, high: int | None = None, size: Any = None, generator: Any = None, dtype: Any = None,
            layout: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """Integers in [low, high): ``randint(high, size)`` or ``randint(low, high, size)``."""
    a = list(args)
    if size is None:
        size = a.pop()
    if high is None:
        high = a.pop()
    lo = a.pop() if a else (low or 0)
    if lo >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={lo} >= to={high}")
    d = dt.int64 if dtype is None else dt.as_dtype(dtype)
    fits(lo, high, d)
    t = draw("randint", sizes((size,)), lambda rng, s: rng.integers(lo, high, s).astype(d.np), generator, device)
    return t.requires_grad_() if requires_grad else t


@public("randint_like", out=False)
def randint_like(input: Tensor, *args: Any, low: int | None = None, high: int | None = None, dtype: Any = None, layout: Any = None,
                 device: Any = None, requires_grad: bool = False, memory_format: Any = None, generator: Any = None) -> Tensor:  # fmt: skip
    """Integers in [low, high) with the shape and type of `input`."""
    return randint(
        *args,
        low=low,
        high=high,
        size=tuple(input.shape),
        dtype=input.dtype if dtype is None else dtype,
        generator=generator,
        device=input.device if device is None else device,
        requires_grad=requires_grad,
    )


def fits(low: int, high: int, d: dt.DType) -> None:
    """Raise unless numbers of [low, high) are numbers of the type; warn where not all of them are."""
    import ml_dtypes

    name = dt.scalar_type(d)
    if d.category == dt.FLOAT:
        least, most = float(ml_dtypes.finfo(d.np).min), float(ml_dtypes.finfo(d.np).max)
    else:
        least, most = (np.iinfo(d.np).min, np.iinfo(d.np).max) if d.category == dt.INT else (0, 1)
    for what, v in (("from", low), ("to - 1", high - 1)):
        if not least <= v <= most:
            raise RuntimeError(f"random_: {what} is out of bounds for {name}: got {v}")
        if d.category == dt.FLOAT and abs(v) > 1 << DIGITS[d.name]:
            warnings.warn(
                f"{what} is out of bounds [-(2^{DIGITS[d.name]}), 2^{DIGITS[d.name]}]: beyond it not every whole number is one of {name}, "
                f"so that the numbers drawn are not uniform",
                stacklevel=4,
            )


DIGITS = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}  # whole numbers of so many bits are exact


@public("randperm")
def randperm(n: int, *, generator: Any = None, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
             pin_memory: Any = None) -> Tensor:  # fmt: skip
    """A random order of 0, ..., n - 1."""
    if n < 0:
        raise RuntimeError(f"randperm: n must be non-negative, got {n}")
    d = dt.int64 if dtype is None else dt.as_dtype(dtype)
    most = 1 << DIGITS[d.name] if d.category == dt.FLOAT else np.iinfo(d.np).max if d.category == dt.INT else 1
    if n > most + 1:
        raise RuntimeError(f"randperm: n is too large for result tensor type: '{dt.scalar_type(d)}', got n={n}")

    def sample(rng: Any, shape: tuple[int, ...]) -> Any:
        return rng.permuted(np.broadcast_to(np.arange(n), shape).copy(), axis=-1).astype(d.np)

    return draw("randperm", (n,), sample, generator, device)


__all__ = ["Generator", "default_generator", "draw", "finish"]
