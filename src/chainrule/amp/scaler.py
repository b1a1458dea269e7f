"""``GradScaler``: the loss times a scale, so that small gradients survive 16 bits; steps with infinite gradients are left out."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ..core.imperative import no_grad
from ..core.registry import PUBLIC
from ..core.tensor import Tensor


class GradScaler:
    """``scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()``."""

    def __init__(
        self,
        device: str = "cpu",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if enabled and device != "cpu":
            warnings.warn(f"GradScaler is enabled, but {device!r} is not available: it is disabled", stacklevel=2)
            enabled = False
        if enabled and growth_factor <= 1.0:
            raise AssertionError(f"GradScaler: the growth factor must be > 1.0, got {growth_factor}")
        if enabled and backoff_factor >= 1.0:
            raise AssertionError(f"GradScaler: the backoff factor must be < 1.0, got {backoff_factor}")
        self._enabled, self._scale = enabled, float(init_scale)
        self._growth, self._backoff, self._interval, self._good = growth_factor, backoff_factor, growth_interval, 0
        self._found: dict[int, bool] = {}  # by optimizer: whether a gradient was not finite
        self._stepped: set[int] = set()

    def is_enabled(self) -> bool:
        """Whether the loss is scaled."""
        return self._enabled

    def scale(self, outputs: Any) -> Any:
        """A tensor, or those of a list or a tuple, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        if isinstance(outputs, list | tuple):
            return type(outputs)(self.scale(x) for x in outputs)
        raise ValueError(
            f"GradScaler.scale: outputs must be a tensor or a list of tensors, got {type(outputs).__name__}"
        )

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale; before they are clipped."""
        if not self._enabled:
            return
        if id(optimizer) in self._stepped:
            raise RuntimeError("unscale_() is being called after step().")
        if id(optimizer) in self._found:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        bad = False
        with no_grad():
            for group in optimizer.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        p.grad.mul_(1.0 / self._scale)
                        bad = bad or not bool(PUBLIC["isfinite"](p.grad).all())
        self._found[id(optimizer)] = bad

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """``optimizer.step()``, unless a gradient is infinite or NaN."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        if id(optimizer) in self._stepped:
            raise RuntimeError("step() has already been called since the last update().")
        if id(optimizer) not in self._found:
            self.unscale_(optimizer)
        self._stepped.add(id(optimizer))
        return None if self._found[id(optimizer)] else optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        """Shrink the scale after a step with infinite gradients; let it grow after many without."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        else:
            if not self._found:
                raise AssertionError("No inf checks were recorded prior to update.")
            if any(self._found.values()):
                self._scale, self._good = self._scale * self._backoff, 0
            else:
                self._good += 1
                if self._good == self._interval:
                    grown = self._scale * self._growth
                    self._scale, self._good = grown if math.isfinite(grown) else self._scale, 0
        self._found, self._stepped = {}, set()

    def get_scale(self) -> float:
        """The scale; 1 if disabled."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """What the scale grows by."""
        return self._growth

    def set_growth_factor(self, new_factor: float) -> None:
        """Set what the scale grows by."""
        self._growth = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale shrinks by."""
        return self._backoff

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set what the scale shrinks by."""
        self._backoff = new_factor

    def get_growth_interval(self) -> int:
        """After how many good steps the scale grows."""
        return self._interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set after how many good steps the scale grows."""
        self._interval = new_interval

    def state_dict(self) -> dict[str, Any]:
        """The state; empty if disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth,
            "backoff_factor": self._backoff,
            "growth_interval": self._interval,
            "_growth_tracker": self._good,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Return to a state."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._scale, self._growth, self._backoff = (state_dict[k] for k in ("scale", "growth_factor", "backoff_factor"))
        self._interval, self._good = state_dict["growth_interval"], state_dict["_growth_tracker"]
