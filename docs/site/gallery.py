"""The gallery: every example of examples/gallery is run, its picture kept, and shown on a page with its code and its notebook."""

from __future__ import annotations

import ast
import hashlib
import html
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from .mathml import inline

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "examples" / "gallery"


def names() -> list[str]:
    """The examples, by name."""
    return sorted(p.stem for p in EXAMPLES.glob("*.py") if not p.name.startswith("_"))


def docstring(path: Path) -> tuple[str, str]:
    """The title of an example and what it says of itself."""
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or path.stem
    title, _, rest = doc.partition("\n")
    return title.rstrip("."), rest.strip()


def picture(name: str, cache: Path, report: object = print) -> Path:
    """The picture that an example makes: run again only when its source has changed."""
    path = EXAMPLES / f"{name}.py"
    key = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    out = cache / f"{name}-{key}.png"
    if not out.exists():
        cache.mkdir(parents=True, exist_ok=True)
        env = {**os.environ, "CHAINRULE_PICTURES": str(cache), "MPLBACKEND": "Agg", "CHAINRULE_PROGRESS": "0"}
        env["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), env.get("PYTHONPATH", "")])
        done = subprocess.run([sys.executable, str(path)], env=env, capture_output=True, text=True, cwd=cache)
        if done.returncode:
            raise RuntimeError(f"examples/gallery/{name}.py failed:\n{done.stderr[-2000:]}")
        (cache / f"{name}.png").replace(out)
        (cache / f"{name}-{key}.txt").write_text(done.stdout, encoding="utf-8")
    return out


def notebook(path: Path, out: Path) -> None:
    """The example as a notebook, by jupytext."""
    import jupytext

    jupytext.write(jupytext.read(path, fmt="py:percent"), out, fmt="ipynb")


def write(out: Path, cache: Path, report: object = print) -> None:
    """Write the pages of the gallery."""
    (out / "pictures").mkdir(parents=True, exist_ok=True)
    cards, slugs = [], []
    for name in names():
        path = EXAMPLES / f"{name}.py"
        title, rest = docstring(path)
        image = picture(name, cache)
        shutil.copy(image, out / "pictures" / f"{name}.png")
        printed = image.with_suffix(".txt").read_text(encoding="utf-8").strip()
        notebook(path, out / f"{name}.ipynb")
        code = path.read_text(encoding="utf-8").partition('"""\n')[2].strip()
        code = re.sub(
            r"^# %%[ ]?(.*)\n", lambda m: f"# {m[1]}\n" if m[1] else "", code, flags=re.M
        )  # cells are for editors and notebooks
        said = f"\nIt prints:\n\n```text\n{printed}\n```\n" if printed else ""
        text = (
            f'# {title}\n\n{rest}\n\n<img class="picture" src="pictures/{name}.png" alt="{html.escape(title)}">\n\n'
            f'<p class="links"><a href="{name}.ipynb" download>as a notebook</a> · <code>python examples/gallery/{name}.py</code></p>\n{said}\n```python\n{code}\n```\n'
        )
        (out / f"{name}.md").write_text(text, encoding="utf-8")
        first = rest.split("\n\n")[0].replace("\n", " ")
        short = first if len(first) < 110 else first[:107].rsplit(" ", 1)[0] + " …"
        if short.count("$") % 2:  # not in the middle of a formula
            short = short.rpartition("$")[0] + "…"
        said = re.sub(r"\$([^$]+)\$", lambda m: inline(html.unescape(m[1])), html.escape(short))
        cards.append(
            f'<a href="{name}.html"><img src="pictures/{name}.png" alt="" loading="lazy"><b>{html.escape(title)}</b><span>{said}</span></a>'
        )
        slugs.append(name)
    toc = "\n".join(["```{toctree}", ":hidden:", "", *slugs, "```"])
    (out / "index.md").write_text(
        "# Gallery\n\nEach is one file of under a hundred lines and runs in under a minute on two cores; the picture is made by the code beside it.\n\n"
        f'<div class="gallery">{"".join(cards)}</div>\n\n{toc}\n',
        encoding="utf-8",
    )
