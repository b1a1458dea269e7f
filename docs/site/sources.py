"""Pages that show the source files the reference links to: plain text with numbered lines, small and without scripts."""

from __future__ import annotations

import html
from pathlib import Path

STYLE = """:root{color-scheme:light dark}body{margin:0;font:14px/1.45 system-ui,sans-serif;background:Canvas;color:CanvasText}
header{padding:.6rem 1rem;border-bottom:1px solid #8884}a{color:LinkText}
pre{margin:0;padding:.6rem 0;overflow:auto;font:13px/1.45 ui-monospace,"DejaVu Sans Mono",monospace}
i{display:block;font-style:normal;padding:0 1rem 0 4.2rem;min-height:1.45em;white-space:pre}
i::before{content:attr(data-n);float:left;width:3rem;margin-left:-3.6rem;text-align:right;opacity:.45}
i:target{background:#ffd54a55}"""


def write(out: Path, package: Path, files: set[str]) -> None:
    """Write a page for each file below the package."""
    out.mkdir(parents=True, exist_ok=True)
    for name in sorted(files):
        lines = (package / name).read_text(encoding="utf-8").splitlines()
        body = "".join(f'<i id="L{k}" data-n="{k}">{html.escape(line)}</i>' for k, line in enumerate(lines, 1))
        slug = name.removesuffix(".py").replace("/", ".")
        text = (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
            f'<meta name="viewport" content="width=device-width,initial-scale=1"><title>{name}</title>'
            f"<link rel='icon' href='data:,'><style>{STYLE}</style></head><body>"
            f'<header><a href="../index.html">chainrule</a> / {name}</header><pre>{body}</pre></body></html>'
        )
        (out / f"{slug}.html").write_text(text, encoding="utf-8")
