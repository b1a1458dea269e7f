"""Attention and transformers on ragged sequences, masks, and what surrounds them."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

import chainrule as cr

LENGTHS = (3, 5, 1)


def sequences(lengths: tuple[int, ...] = LENGTHS, width: int = 8, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [cr.tensor(rng.standard_normal((n, width))) for n in lengths]


def nest(xs: list[Any]) -> Any:
    return cr.nested.nested_tensor(xs, layout=cr.jagged)


def close(a: Any, b: Any, tol: float = 1e-12) -> None:
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=tol, atol=tol)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("weights", [False, True, "each"])
@pytest.mark.parametrize("options", [{}, {"bias": False}, {"kdim": 8, "vdim": 6}])
def test_nested_attention_is_that_of_each_sequence(causal: bool, weights: Any, options: dict[str, Any]) -> None:
    m = cr.nn.MultiheadAttention(8, 2, batch_first=True, **options).double()
    xs, vs = sequences(), sequences(width=6, seed=1) if "vdim" in options else sequences()
    how = {"need_weights": bool(weights), "average_attn_weights": weights != "each"}
    x, v = nest(xs), nest(vs)
    y, w = m(x, x, v if "vdim" in options else x, is_causal=causal, **how)
    total = 0
    for k, (a, b) in enumerate(zip(xs, vs, strict=True)):
        mask = cr.nn.Transformer.generate_square_subsequent_mask(len(a), dtype=cr.float64) if causal else None
        one, shown = m(a, a, b if "vdim" in options else a, attn_mask=mask, **how)
        close(y.unbind()[k], one)
        if weights:
            close(w.unbind()[k], shown)
        total = total + (one**2).sum()
    want = cr.autograd.grad(total, list(m.parameters()))
    for a, b in zip(cr.autograd.grad((y**2).sum(), list(m.parameters())), want, strict=True):
        close(a, b, 1e-10)
    _, t = cr.func.jvp(lambda p: cr.func.functional_call(m, p, (x, x, v if "vdim" in options else x), {"is_causal": causal, **how})[0].sum(),
                       (dict(m.named_parameters()),), ({k: cr.ones_like(p) for k, p in m.named_parameters()},))  # fmt: skip
    gs = cr.autograd.grad(
        m(x, x, v if "vdim" in options else x, is_causal=causal, **how)[0].sum(), list(m.parameters())
    )
    close(t, sum(g.sum() for g in gs), 1e-10)


def test_nested_refusals() -> None:
    m, x = cr.nn.MultiheadAttention(8, 2).double(), nest(sequences())
    with pytest.raises(ValueError, match="all be nested"):
        m(x, x, sequences()[0])
    with pytest.raises(ValueError, match="key_padding_mask"):
        m(x, x, x, key_padding_mask=cr.zeros(3, 5, dtype=cr.bool))
    with pytest.raises(ValueError, match="is_causal"):
        m(x, x, x, attn_mask=cr.zeros(5, 5, dtype=cr.float64))


@pytest.mark.parametrize("norm_first", [False, True])
def test_nested_transformer(norm_first: bool) -> None:
    m = cr.nn.Transformer(8, 2, 2, 2, 16, batch_first=True, norm_first=norm_first).double().eval()
    src, tgt = sequences(), sequences((4, 2, 6), seed=1)
    y = m(nest(src), nest(tgt), tgt_is_causal=True)
    for k, (a, b) in enumerate(zip(src, tgt, strict=True)):
        mask = cr.nn.Transformer.generate_square_subsequent_mask(len(b), dtype=cr.float64)
        close(y.unbind()[k], m(a, b, tgt_mask=mask))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_encoder_without_padding_in_evaluation() -> None:
    """With PyTorch: nothing recorded, padding behind the sequence; the padding of the result is what the last norm makes of 0."""
    torch = pytest.importorskip("torch")
    theirs = torch.nn.TransformerEncoder(
        torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, torch.nn.LayerNorm(8)
    ).double().eval()  # fmt: skip
    m = (
        cr.nn.TransformerEncoder(cr.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, cr.nn.LayerNorm(8))
        .double()
        .eval()
    )
    m.load_state_dict({k: cr.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    x = np.random.default_rng(0).standard_normal((3, 5, 8))
    for pad in (np.arange(5) >= np.array([[2], [5], [3]]), np.array([[0, 1, 0, 1, 0]] * 3, bool)):
        with torch.no_grad(), cr.no_grad():
            want = theirs(torch.tensor(x), src_key_padding_mask=torch.tensor(pad))
            have = m(cr.tensor(x), src_key_padding_mask=cr.tensor(pad))
        if pad[0, 1]:  # no place for a nested tensor: PyTorch computes the padding too, or leaves it out
            np.testing.assert_allclose(have.numpy()[~pad], want.numpy()[~pad], rtol=1e-10, atol=1e-10)
        else:
            np.testing.assert_allclose(have.numpy(), want.numpy(), rtol=1e-10, atol=1e-10)
        seen = m(cr.tensor(x), src_key_padding_mask=cr.tensor(pad)).detach().numpy()  # recorded: with the padding
        np.testing.assert_allclose(seen[~pad], have.numpy()[~pad], rtol=1e-10, atol=1e-10)


def test_queries_that_see_nothing() -> None:
    m, x = cr.nn.MultiheadAttention(4, 2, batch_first=True).double(), cr.randn(2, 3, 4, dtype=cr.float64)
    hidden = cr.tensor([[False, False, True], [True, True, True]])
    assert bool(m(x, x, x, key_padding_mask=hidden)[0][1].isnan().all())
    assert bool((m(x, x, x, key_padding_mask=hidden, need_weights=False)[0][1] == m.out_proj.bias).all())


def test_synchronised_batch_norm_without_a_group() -> None:
    a, b = cr.nn.BatchNorm2d(3), cr.nn.SyncBatchNorm(3)
    x = cr.randn(4, 3, 2, 2)
    close(a(x), b(x))
    close(a.running_var, b.running_var)
    close(a.eval()(x), b.eval()(x))


def test_wrappers_and_names() -> None:
    from chainrule.nn import _reduction, common_types
    from chainrule.nn.attention import SDPBackend, sdpa_kernel

    x = cr.randn(1, 2, 3, 4)
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
        cr.nn.functional.scaled_dot_product_attention(x, x, x)
    assert (cr.nn.functional._pair(3), cr.nn.functional._Reduction.get_enum("sum")) == ((3, 3), 2)
    assert common_types._size_2_t == int | tuple[int, int] and _reduction.legacy_get_string(False, None, False) == "sum"
    assert cr.nn.factory_kwargs({"dtype": cr.float64}) == {"dtype": cr.float64}
    ys = cr.nn.parallel.parallel_apply([cr.nn.Tanh(), cr.nn.ReLU()], [x, (x,)])
    close(ys[0], x.tanh())
    close(cr.nn.parallel.data_parallel(cr.nn.Tanh(), x), x.tanh())


def test_legacy_hooks_see_results_in_a_dict() -> None:
    class Named(cr.nn.Module):
        def forward(self, x: Any) -> Any:
            return {"y": x * 2}

    m, seen = Named(), []
    m.register_backward_hook(lambda mod, gi, go: seen.append(go[0].tolist()))
    m(cr.ones(2, requires_grad=True))["y"].sum().backward()
    assert seen == [[1.0, 1.0]]
    assert copy.deepcopy(m)._is_full_backward_hook is False


@pytest.mark.parametrize("corner", ["causal_upper_left", "causal_lower_right"])
def test_causal_masks_of_queries_and_keys_of_different_lengths(corner: str) -> None:
    import torch.nn.attention.bias as theirs

    import chainrule.nn.attention.bias as ours

    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal(s) for s in ((2, 3, 4, 8), (2, 3, 6, 8), (2, 3, 6, 8)))
    out = []
    for lib, bias in ((cr, ours), (torch, theirs)):
        x = lib.tensor(q, requires_grad=True)
        mask = getattr(bias, corner)(4, 6)
        assert isinstance(mask, bias.CausalBias) and (mask.seq_len_q, mask.seq_len_kv) == (4, 6)
        y = lib.nn.functional.scaled_dot_product_attention(x, lib.tensor(k), lib.tensor(v), attn_mask=mask)
        (y**2).sum().backward()
        out.append((y.detach().numpy(), x.grad.numpy()))
    for a, b in zip(*out, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    with pytest.warns(UserWarning, match="see nothing"):
        ours.causal_lower_right(6, 4)
