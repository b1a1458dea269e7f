"""Mathematics as MathML, made when the site is built: browsers draw it themselves, without a script and without a network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def inline(tex: str) -> str:
    """A formula within a line."""
    return str(tex2mathml(tex, as_block=False))


def _inline(self: Any, node: Any) -> None:
    self.body.append(inline(node.astext()))
    raise nodes.SkipNode


def _block(self: Any, node: Any) -> None:
    self.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    """Sphinx calls this."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
