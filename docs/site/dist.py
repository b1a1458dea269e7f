"""``python -m docs.site.dist``: wheel and sdist, checked by twine; the wheel has the type stubs, and gives a gradient where nothing else is."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
GRADIENT = """
import numpy as np
import chainrule
from chainrule.func import grad

g = grad(lambda x: np.sum(x * x))(np.ones(3))
assert (g == 2).all()
print(chainrule.__version__, g)
"""


def main() -> int:
    """Build and check; returns the exit status."""
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    run = lambda *args: subprocess.run([sys.executable, "-m", *args], cwd=ROOT, check=True)
    run("build", "--outdir", str(dist))
    files = sorted(dist.iterdir())
    run("twine", "check", "--strict", *map(str, files))
    wheel = next(f for f in files if f.suffix == ".whl")
    names = zipfile.ZipFile(wheel).namelist()
    for wanted in (
        "chainrule/py.typed",
        "chainrule/__init__.pyi",
        "chainrule/core/methods.pyi",
        "chainrule/people/assets/show.js",
    ):
        assert wanted in names, f"{wanted} is not in the wheel"
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = next(p for p in (Path(folder) / "bin/python", Path(folder) / "Scripts/python.exe") if p.exists())
        subprocess.run([python, "-m", "pip", "--quiet", "install", str(wheel)], check=True)
        subprocess.run([python, "-c", GRADIENT], check=True, cwd=folder)
        subprocess.run([python.parent / "chainrule", "--version"], check=True, cwd=folder)
    print(f"{', '.join(f'{f.name} ({f.stat().st_size / 1e6:.1f} MB)' for f in files)}: ready")
    return 0


if __name__ == "__main__":
    sys.exit(main())
