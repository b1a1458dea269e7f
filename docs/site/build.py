"""``python -m docs.site.build``: the site, from docs/, the declarations and the gallery, into build/docs. A warning is an error."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"


def assemble(src: Path, cache: Path) -> set[str]:
    """Put the sources of the site together; returns the source files that the reference links to."""
    from . import gallery, reference

    if src.exists():
        shutil.rmtree(src)
    src.mkdir(parents=True)
    for path in sorted(DOCS.rglob("*.md")):
        target = src / path.relative_to(DOCS)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(links(path.read_text(encoding="utf-8"), path), encoding="utf-8")
    for pattern in ("**/*.png", "**/*.svg"):
        for path in DOCS.glob(pattern):
            if "site" not in path.relative_to(DOCS).parts:
                target = src / path.relative_to(DOCS)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target)
    shutil.copy(DOCS / "site" / "conf.py", src / "conf.py")
    shutil.copytree(DOCS / "site" / "static", src / "_static")
    (src / "changelog.md").write_text(
        links((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), ROOT / "CHANGELOG.md"), encoding="utf-8"
    )
    decisions(src)
    more(src)
    names = "install five-minutes tutorials/index howto/index gallery/index reference/index sharp-bits migrate/index more".split()
    toc = "\n\n```{toctree}\n:hidden:\n\n" + "\n".join(names) + "\n```\n"
    (src / "index.md").write_text((src / "index.md").read_text(encoding="utf-8") + toc, encoding="utf-8")
    files = reference.write(src / "reference")
    gallery.write(src / "gallery", cache)
    return files


def more(src: Path) -> None:
    """Drop from the list of pages those that are not there."""
    page = src / "more.md"
    kept = [
        line
        for line in page.read_text(encoding="utf-8").splitlines()
        if not re.fullmatch(r"[a-z/-]+", line) or (src / f"{line}.md").exists()
    ]
    page.write_text("\n".join(kept) + "\n", encoding="utf-8")


def decisions(src: Path) -> None:
    """A page that lists the decisions."""
    folder = src / "decisions"
    for extra in ("README.md", "template.md"):
        (folder / extra).unlink(missing_ok=True)
    pages = "\n".join(sorted(p.stem for p in folder.glob("*.md")))
    (folder / "index.md").write_text(
        f"# Decisions\n\nWhat was measured, and what was chosen.\n\n```{{toctree}}\n:maxdepth: 1\n\n{pages}\n```\n",
        encoding="utf-8",
    )


def links(text: str, path: Path) -> str:
    """Links between pages as the site has them: what lies outside of docs/ becomes plain code."""

    def change(m: re.Match[str]) -> str:
        label, target = m[1], m[2]
        if re.match(r"[a-z]+:", target) or target.startswith("#"):
            return m[0]
        plain = target.partition("#")[0]
        if plain.endswith(".html"):  # pages that are not written by Sphinx
            return f'<a href="{target}">{label}</a>'
        where = (path.parent / plain).resolve()
        if where == ROOT / "CHANGELOG.md":
            return f"[{label}]({'../' * (len(path.relative_to(DOCS).parts) - 1) if path.is_relative_to(DOCS) else ''}changelog.md)"
        if where.is_relative_to(DOCS):
            made = ("reference", "gallery", "decisions")  # when the site is put together
            if not where.exists() and where.relative_to(DOCS).parts[0] not in made:
                return label
            to_root = path == ROOT / "CHANGELOG.md"
            return f"[{label}]({target.removeprefix('docs/') if to_root else target})"
        return f"`{where.relative_to(ROOT).as_posix()}`" if where.is_relative_to(ROOT) else label

    out, fenced = [], False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            if fenced:
                while out and not out[-1].strip():  # a doctest ends with an empty line, which a page need not show
                    out.pop()
            fenced = not fenced
        out.append(line if fenced else re.sub(r"(?<!!)\[([^\]\[]+)\]\(([^)\s]+)\)", change, line))
    return "\n".join(out) + "\n"


def show_page(out: Path, home: str) -> None:
    """The page that ``chainrule.show`` makes of a small GPT."""
    import chainrule as cr

    sys.path.insert(0, str(ROOT / "examples" / "gallery"))
    from small_gpt import GPT

    cr.manual_seed(0)
    model = GPT(vocabulary=32)
    tokens = cr.randint(0, 32, (2, 16))
    path = out / "show-gpt.html"
    cr.show(model.loss, tokens, path=path)
    path.write_text(
        path.read_text(encoding="utf-8").replace('<div class="bar"', f'{home}<div class="bar"', 1), encoding="utf-8"
    )


def main() -> int:
    """Build; returns the exit status."""
    p = argparse.ArgumentParser()
    p.add_argument("--out", type=Path, default=ROOT / "build" / "docs")
    args = p.parse_args()
    start = time.time()
    src, cache = ROOT / "build" / "site-src", ROOT / "build" / "gallery"
    files = assemble(src, cache)
    if args.out.exists():
        shutil.rmtree(args.out)
    from sphinx.cmd.build import main as sphinx

    status = sphinx(
        ["-W", "--keep-going", "-q", "-b", "html", "-d", str(ROOT / "build" / "doctrees"), str(src), str(args.out)]
    )
    if status:
        return int(status)
    import numpy as np

    from chainrule import __file__ as package
    from chainrule.people.reprs import png

    from . import sources

    sources.write(args.out / "source", Path(package).parent, files)
    home = '<p style="margin:0"><a href="index.html">chainrule</a></p>'
    matrix = (DOCS / "conformance.html").read_text(encoding="utf-8").replace("<h1>", f"{home}<h1>", 1)
    (args.out / "conformance.html").write_text(matrix, encoding="utf-8")
    for path in (src / "gallery").glob("*.ipynb"):
        shutil.copy(path, args.out / "gallery" / path.name)
    shutil.copytree(src / "gallery" / "pictures", args.out / "gallery" / "pictures", dirs_exist_ok=True)
    show_page(args.out, home)
    icon = np.full((16, 16, 3), 255, np.uint8)
    icon[3:13, 3:6], icon[10:13, 3:13], icon[3:6, 3:13] = (11, 98, 196), (11, 98, 196), (11, 98, 196)
    (args.out / "favicon.ico").write_bytes(png(icon))  # browsers ask for it
    size = sum(f.stat().st_size for f in args.out.rglob("*") if f.is_file())
    print(f"{args.out}: {len(list(args.out.rglob('*.html')))} pages, {size / 1e6:.1f} MB, {time.time() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
