"""What every page has: one file without network, light and dark, readable on a telephone."""

from __future__ import annotations

import html as _html
import webbrowser
from pathlib import Path


def asset(name: str) -> str:
    """A file that pages are made of: style or script."""
    return (Path(__file__).parent / "assets" / name).read_text(encoding="utf-8")


class Page(str):
    """A whole HTML page; ``save`` writes it, ``open`` shows it in a browser."""

    def save(self, path: str | Path) -> Path:
        """Write the page; returns where it is."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self, encoding="utf-8")
        return path

    def open(self, path: str | Path = "chainrule.html") -> Path:
        """Write the page and show it in the browser."""
        path = self.save(path)
        webbrowser.open(path.resolve().as_uri())
        return path


def esc(x: object) -> str:
    """Text as HTML."""
    return _html.escape(str(x))


def page(title: str, body: str, script: str = "", style: str = "") -> Page:
    """A page with this title, body, script and style beside the common ones."""
    return Page(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{esc(title)}</title><link rel='icon' href='data:,'><style>{asset('page.css')}{style}</style></head><body><main>"
        f'<div class="bar" style="justify-content:space-between"><h1>{esc(title)}</h1><button id="theme" type="button">light / dark</button></div>'
        f"{body}</main><script>{asset('theme.js')}{script}</script></body></html>"
    )


def bytes_text(n: float) -> str:
    """A number of bytes for people: ``1.5 MB``."""
    for unit in ("B", "kB", "MB"):
        if abs(n) < 1000:
            return f"{n:.0f} {unit}" if unit == "B" or n >= 100 else f"{n:.3g} {unit}"
        n /= 1000
    return f"{n:.3g} GB"


def time_text(s: float) -> str:
    """Seconds for people: ``12 µs``."""
    if s < 1e-3:
        return f"{s * 1e6:.3g} µs"
    return f"{s * 1e3:.3g} ms" if s < 1 else f"{s:.3g} s"


def table(head: list[str], rows: list[list[str]], numbers: tuple[int, ...] = ()) -> str:
    """An HTML table of cells that are HTML already; the columns `numbers` are set to the right."""
    cls = lambda k: ' class="n"' if k in numbers else ""
    top = "".join(f"<th{cls(k)}>{h}</th>" for k, h in enumerate(head))
    body = "".join("<tr>" + "".join(f"<td{cls(k)}>{c}</td>" for k, c in enumerate(r)) + "</tr>" for r in rows)
    return f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
