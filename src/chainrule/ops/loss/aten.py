"""The losses under ATen's signatures: no legacy arguments, the reduction (0 none, 1 mean, 2 sum) in its own place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.registry import public
from ...core.samples import Given, S, sample
from . import classes as loss_class
from . import ctc as loss_ctc
from . import elements as loss
from . import margin as loss_margin


def _aten(names: str, f: Callable[..., Any], parameters: str) -> None:
    """Publish `f` with these positional parameters."""
    order = parameters.split()

    def function(*args: Any, **kw: Any) -> Any:
        if len(args) > len(order):
            raise TypeError(
                f"{f.__name__}() takes {len(order)} positional arguments ({parameters}) but {len(args)} were given"
            )
        for name, value in zip(order, args, strict=False):
            if name in kw:
                raise TypeError(f"{f.__name__}() got multiple values for argument '{name}'")
            kw[name] = value
        return f(**kw)

    function.__name__ = function.__qualname__ = f.__name__
    function.__doc__ = f"``{f.__name__}({', '.join(order)})``: {f.__doc__}"
    public(names, out=False)(function)


_PAIR = "input target reduction"
_aten(
    "binary_cross_entropy_with_logits",
    loss.binary_cross_entropy_with_logits,
    "input target weight pos_weight reduction",
)
_aten("kl_div", loss.kl_div, _PAIR)
_aten("poisson_nll_loss", loss.poisson_nll_loss, "input target log_input full eps reduction")
_aten("hinge_embedding_loss", loss_margin.hinge_embedding_loss, "input target margin reduction")
_aten("margin_ranking_loss", loss_margin.margin_ranking_loss, "input1 input2 target margin reduction")
_aten("cosine_embedding_loss", loss_margin.cosine_embedding_loss, "input1 input2 target margin reduction")
_aten("triplet_margin_loss", loss_margin.triplet_margin_loss, "anchor positive negative margin p eps swap reduction")
_aten("ctc_loss", loss_ctc.ctc_loss, "log_probs targets input_lengths target_lengths blank reduction zero_infinity")

for _f in (loss.mse_loss, loss.l1_loss, loss.soft_margin_loss, loss_class.multilabel_margin_loss):
    _aten(f"_C._nn.{_f.__name__}", _f, _PAIR)
_aten("_C._nn.binary_cross_entropy", loss.binary_cross_entropy, "input target weight reduction")
_aten("_C._nn.smooth_l1_loss", loss.smooth_l1_loss, "input target reduction beta")
_aten("_C._nn.huber_loss", loss.huber_loss, "input target reduction delta")
_aten("_C._nn.multi_margin_loss", loss_class.multi_margin_loss, "input target p margin weight reduction")
_aten(
    "_C._nn.cross_entropy_loss",
    loss_class.cross_entropy,
    "input target weight reduction ignore_index label_smoothing",
)
_aten(
    "_C._nn.nll_loss _C._nn.nll_loss2d _C._nn.nll_loss_nd",
    loss_class.nll_loss,
    "input target weight reduction ignore_index",
)

# -- samples ------------------------------------------------------------------------------------------------------------

sample("kl_div", S(3), S(3, low=0.1), 2, cx=False)
sample("binary_cross_entropy_with_logits", S(3), S(3), None, S(3), 0, cx=False)
sample("triplet_margin_loss", S(2, 3), S(2, 3), S(2, 3), 1.0, 2, 1e-6, True, 2, cx=False)
sample("_C._nn.nll_loss", S(2, 3), Given([1, 0]), None, 0, -100, cx=False)
