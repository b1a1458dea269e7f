"""``python -m docs.site.browser``: a person's clicks through the built site, in Chromium, at two widths; fails on console errors, dead links and overflow."""

from __future__ import annotations

import functools
import os
import re
import shutil
import sys
import tempfile
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlparse

ROOT = Path(__file__).resolve().parent.parent.parent
SITE, SHOTS = ROOT / "build" / "docs", ROOT / "build" / "screenshots"
FLAGS = ("--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
         "--disable-component-update --disable-sync").split()  # fmt: skip
WIDTHS = (1280, 400)
PAGES = {
    "home": "index.html",
    "tutorial-derivatives": "tutorials/derivatives.html",
    "tutorial-vmap": "tutorials/vmap.html",
    "tutorial-eigenvalues": "tutorials/eigenvalues.html",
    "gallery": "gallery/index.html",
    "gallery-neural-ode": "gallery/neural_ode.html",
    "sharp-bits": "sharp-bits.html",
    "migrate-torch": "migrate/torch.html",
    "five-minutes": "five-minutes.html",
    "errors": "howto/errors.html",
    "speed": "speed.html",
    "scale": "scale.html",
    "reference": "reference/index.html",
    "reference-nn": "reference/nn.html",
}


# What is written with too little contrast to what is behind it (WCAG AA: 4.5, large letters and marks 3), with its first words.
PALE = """() => {
  const rgb = c => { const m = c.match(/[\\d.]+/g).map(Number); return [m[0], m[1], m[2], m.length > 3 ? m[3] : 1]; };
  const over = (a, b) => [0, 1, 2].map(i => a[i] * a[3] + b[i] * (1 - a[3]));
  const part = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = c => 0.2126 * part(c[0]) + 0.7152 * part(c[1]) + 0.0722 * part(c[2]);
  const behind = e => {
    const all = [];
    for (; e; e = e.parentElement) all.unshift(rgb(getComputedStyle(e).backgroundColor));
    return all.reduce((b, a) => over(a, b), [255, 255, 255]);
  };
  const found = {}, walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement, text = walk.currentNode.textContent.trim(), box = e.getBoundingClientRect();
    if (!text || !box.width || !box.height || e.closest("svg,script,style,s") || !e.checkVisibility({visibilityProperty: true})) continue;
    const s = getComputedStyle(e), b = behind(e), l = [light(over(rgb(s.color), b)), light(b)].sort((p, q) => q - p);
    const ratio = (l[0] + 0.05) / (l[1] + 0.05), big = text.length == 1 || parseFloat(s.fontSize) >= 24;
    if (ratio < (big ? 3 : 4.5)) found[(e.tagName + "." + e.className).toLowerCase()] = text.slice(0, 30) + " " + ratio.toFixed(1);
  }
  return Object.entries(found).map(p => p.join(": "));
}"""


# Pages scroll to a place smoothly: until they have.
STILL = """() => new Promise(done => {
  let y = -1;
  const timer = setInterval(() => { if (y === scrollY) { clearInterval(timer); done(); } y = scrollY; }, 120);
})"""


class Quiet(SimpleHTTPRequestHandler):
    """A server that does not talk."""

    def log_message(self, *args: Any) -> None:
        """Nothing."""


def serve() -> tuple[ThreadingHTTPServer, str]:
    """The site on a port of this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}/"


def dead_links() -> list[str]:
    """Links between pages of the site that lead nowhere, and links to other hosts for what a page needs."""
    bad, anchors = [], dict[Path, set[str]]()

    def ids(path: Path) -> set[str]:
        if path not in anchors:
            anchors[path] = set(re.findall(r'\bid="([^"]+)"', path.read_text(encoding="utf-8")))
        return anchors[path]

    for page in SITE.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        here = page.relative_to(SITE).as_posix()
        for tag, attribute, url in re.findall(r"<(a|img|script|link)\b[^>]*?\b(href|src)=[\"']([^\"']+)[\"']", text):
            if url.startswith(("data:", "mailto:", "javascript:")):
                continue
            if urlparse(url).scheme in ("http", "https"):
                if tag != "a":
                    bad.append(f"{here}: {tag} {attribute} {url} needs the network")
                continue
            target, fragment = urldefrag(urljoin(f"/{here}", url))
            path = SITE / unquote(urlparse(target).path).lstrip("/")
            path = path / "index.html" if path.is_dir() else path
            if not path.exists():
                bad.append(f"{here}: {url} is not there")
            elif (
                fragment
                and path.suffix == ".html"
                and "=" not in fragment
                and path.name not in ("genindex.html", "search.html")
                and unquote(fragment) not in ids(path)
            ):
                bad.append(f"{here}: {url} has no such place")
    return sorted(set(bad))


class Visitor:
    """A browser window that remembers what went wrong."""

    def __init__(self, browser: Any, base: str, width: int) -> None:
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="light", reduced_motion="reduce"
        )
        self.page = self.context.new_page()
        self.base, self.width, self.problems = base, width, list[str]()
        self.page.on("console", lambda m: self.problems.append(f"console: {m.text}") if m.type == "error" else None)
        self.page.on("pageerror", lambda e: self.problems.append(f"script: {e}"))
        self.page.on("requestfailed", lambda r: self.problems.append(f"request: {r.url}"))
        self.page.on("response", lambda r: self.problems.append(f"{r.status}: {r.url}") if r.status >= 400 else None)
        self.page.on(
            "request",
            lambda r: None if r.url.startswith((base, "data:", "blob:")) else self.problems.append(f"network: {r.url}"),
        )

    def go(self, path: str) -> None:
        self.page.goto(self.base + path, wait_until="load")

    def shot(self, name: str, full: bool = False) -> None:
        """A screenshot; the page must not be wider than the window, and all of it must be readable."""
        self.page.evaluate(STILL)
        wide = self.page.evaluate("document.documentElement.scrollWidth")
        if wide > self.width:
            self.problems.append(f"{name}: {wide} wide in a window of {self.width}")
        self.problems += [f"{name}: too pale: {x}" for x in self.page.evaluate(PALE)]
        self.page.screenshot(path=str(SHOTS / f"{name}-{self.width}.png"), full_page=full)

    def expect(self, what: bool, text: str) -> None:
        if not what:
            self.problems.append(text)


def visit(v: Visitor) -> None:
    """The clicks."""
    for name, path in PAGES.items():
        v.go(path)
        v.shot(name)
    # Search, from the home page.
    v.go("index.html")
    if v.width < 900:
        v.page.evaluate("document.getElementById('__navigation').click()")
        v.page.wait_for_timeout(400)
        v.shot("menu")
    v.page.fill("input.sidebar-search", "softmax")
    v.page.press("input.sidebar-search", "Enter")
    v.page.wait_for_selector("#search-results li a", timeout=20000)
    v.page.wait_for_timeout(1500)
    first = v.page.inner_text("#search-results li a >> nth=0")
    v.expect(first.replace("()", "").split(".")[-1].strip() == "softmax", f"search for softmax finds {first!r} first")
    v.shot("search")
    v.page.click("#search-results li a >> nth=0")
    v.page.wait_for_load_state("load")
    v.expect("chainrule.softmax" in v.page.url, f"the first result leads to {v.page.url}")
    v.page.wait_for_timeout(300)
    v.shot("reference-softmax")
    # From an entry to its source and to its row of the matrix.
    box = v.page.locator("dl.py", has=v.page.locator("dt[id='chainrule.softmax']"))
    box.locator("a", has_text="source").first.click()
    v.page.wait_for_load_state("load")
    v.expect("softmax" in v.page.inner_text("i:target"), "the source link does not show the declaration")
    v.shot("source")
    v.page.go_back()
    box.locator("a", has_text="row of the matrix").first.click()
    v.page.wait_for_load_state("load")
    v.page.wait_for_timeout(500)
    v.expect("softmax" in v.page.inner_text("main"), "the matrix does not show the row")
    v.shot("matrix")
    # Navigation: home, tutorials, the next page.
    v.go("index.html")
    v.page.locator("article a", has_text="Derivatives").first.click()
    v.page.wait_for_load_state("load")
    v.page.locator("a.next-page").first.click()
    v.page.wait_for_load_state("load")
    v.expect("vmap" in v.page.url, f"after Derivatives comes {v.page.url}")
    # Dark mode.
    before = v.page.evaluate("getComputedStyle(document.body).backgroundColor")
    for _ in range(3):
        v.page.locator("button.theme-toggle:visible").first.click()
        if v.page.evaluate("document.body.dataset.theme") == "dark":
            break
    v.expect(v.page.evaluate("getComputedStyle(document.body).backgroundColor") != before, "dark mode changes nothing")
    v.shot("dark-vmap")
    v.go("reference/ops-reduce-reductions.html")
    v.shot("dark-reference")
    v.go("gallery/index.html")
    v.shot("dark-gallery")
    # A page that show made: unfold a module, look at an op, its derivative.
    v.go("show-gpt.html")
    v.shot("show")
    v.page.locator(".view:not([hidden]) g.fold").first.click()
    v.expect(v.page.locator("#crumbs button").count() == 2, "a folded box does not open")
    v.page.locator(".view:not([hidden]) g.op").first.click()
    v.expect("line" in v.page.inner_text("#details"), "an op does not tell its line")
    v.shot("show-open")
    v.page.click("[data-tab=d0]")
    v.shot("show-derivative")
    for name in ("GPT", "blocks.1"):
        v.page.locator(".view:not([hidden]) g.fold", has=v.page.locator("text", has_text=name)).first.click()
    v.expect(v.page.locator("#crumbs button").count() == 3, "the derivative of a block does not open")
    v.page.locator(".view:not([hidden]) g.op").first.click()
    v.shot("show-block")
    v.page.click("#theme")
    v.shot("show-dark")


def main() -> int:
    """Run; returns the exit status."""
    from playwright.sync_api import sync_playwright

    chromium = (
        os.environ.get("CHROMIUM")
        or shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if chromium is None:
        print("no Chromium: apt-get install chromium, or CHROMIUM=/path/to/it", file=sys.stderr)
        return 2
    shutil.rmtree(SHOTS, ignore_errors=True)
    SHOTS.mkdir(parents=True)
    problems = [f"link: {b}" for b in dead_links()]
    size = sum(f.stat().st_size for f in SITE.rglob("*") if f.is_file()) / 1e6
    if size > 30:
        problems.append(f"the site has {size:.1f} MB")
    server, base = serve()
    with sync_playwright() as p, tempfile.TemporaryDirectory() as folder:
        browser = p.chromium.launch(executable_path=chromium, args=[*FLAGS, f"--crash-dumps-dir={folder}"])
        for width in WIDTHS:
            v = Visitor(browser, base, width)
            try:
                visit(v)
            except Exception as e:
                v.problems.append(f"{type(e).__name__}: {str(e).splitlines()[0]} at {v.page.url}")
                v.page.screenshot(path=str(SHOTS / f"failed-{width}.png"))
            problems += [f"{width} px: {x}" for x in v.problems]
            v.context.close()
        browser.close()
    server.shutdown()
    for x in problems[:60]:
        print(x)
    print(
        f"{len(problems)} problems; {len(list(SHOTS.glob('*.png')))} screenshots in {SHOTS.relative_to(ROOT)}; {size:.1f} MB"
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
