"""How tensors look in a notebook: their numbers, a small image of two dimensions, a histogram, the structure of a nest."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np

from .page import esc

_LOW, _MID, _HIGH = np.array([33, 102, 172.0]), np.array([247, 247, 247.0]), np.array([178, 24, 43.0])


def tensor_html(x: Any) -> str:
    """The HTML of a tensor: its text, and beside it what helps to see it at a glance."""
    side = ""
    try:
        side = _nest(x) if x.is_nested else _pictures(x)
    except Exception:  # a repr never raises
        side = ""
    text = f"<pre style='margin:0;white-space:pre-wrap'>{esc(repr(x))}</pre>"
    return f"<div style='display:flex;gap:16px;flex-wrap:wrap;align-items:flex-start'>{text}<div>{side}</div></div>"


def _pictures(x: Any) -> str:
    if (x._interp is not None and not x.requires_grad) or x.is_sparse:
        return ""
    a = np.asarray(x.detach().numpy())
    if a.size < 12 or a.dtype.kind not in "fiub":
        return ""
    a = a.astype(np.float64)
    return (_image(a) if a.ndim == 2 and min(a.shape) >= 3 else "") + _histogram(a.reshape(-1))


def _image(a: np.ndarray) -> str:
    """Blue below zero, red above; elements that are not finite are black."""
    rows, cols = (min(n, 96) for n in a.shape)
    a = a[np.linspace(0, a.shape[0] - 1, rows).astype(int)][:, np.linspace(0, a.shape[1] - 1, cols).astype(int)]
    ok = np.isfinite(a)
    top = np.max(np.abs(a[ok]), initial=0.0) or 1.0
    v = np.where(ok, a, 0.0)[..., None] / top
    rgb = np.where(v >= 0, _MID + v * (_HIGH - _MID), _MID - v * (_LOW - _MID))
    rgb[~ok] = 0
    zoom = max(1, 160 // max(rows, cols))
    return (
        f"<img alt='the elements as colours' style='image-rendering:pixelated;border:1px solid #8884' width='{cols * zoom}' height='{rows * zoom}' "
        f"src='data:image/png;base64,{base64.b64encode(png(rgb.astype(np.uint8))).decode()}'><br>"
    )


def png(rgb: np.ndarray) -> bytes:
    """An array of bytes (rows, columns, 3) as a PNG file."""
    h, w, _ = rgb.shape
    raw = b"".join(b"\0" + rgb[k].tobytes() for k in range(h))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")


def _histogram(a: np.ndarray) -> str:
    ok = a[np.isfinite(a)]
    if ok.size < 12 or ok.min() == ok.max():
        return ""
    counts, _ = np.histogram(ok, bins=24)
    bars = "".join(
        f"<rect x='{5 * k}' y='{34 - 32 * n / counts.max():.1f}' width='4' height='{32 * n / counts.max():.1f}' fill='#4c8bd6'/>"
        for k, n in enumerate(counts)
    )
    bad = a.size - ok.size
    text = f"{ok.min():.3g} … {ok.max():.3g}, mean {ok.mean():.3g}, std {ok.std():.3g}" + (
        f", {bad} not finite" if bad else ""
    )
    return f"<svg width='120' height='34' role='img' aria-label='histogram'>{bars}</svg><br><small>{esc(text)}</small>"


def _nest(x: Any) -> str:
    """A bar for each component, as long as its ragged size."""
    parts = x.unbind()
    sizes = [int(p.shape[0]) if p.ndim else 1 for p in parts]
    top = max(sizes, default=1) or 1
    bars = "".join(
        f"<rect x='0' y='{9 * k}' width='{max(1, 150 * n / top):.0f}' height='7' fill='#4c8bd6'/>"
        f"<text x='156' y='{9 * k + 7}' font-size='8' fill='#888'>{n}</text>"
        for k, n in enumerate(sizes[:40])
    )
    more = f"<br><small>and {len(sizes) - 40} more</small>" if len(sizes) > 40 else ""
    return (
        f"<small>{len(sizes)} components, {sum(sizes)} rows</small><br><svg width='190' height='{9 * min(len(sizes), 40)}' role='img' "
        f"aria-label='sizes of the components'>{bars}</svg>{more}"
    )
