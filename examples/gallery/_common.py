"""What every example needs: where pictures go, whether it is run in small for a test, and axes without clutter."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import matplotlib

if "CHAINRULE_PICTURES" in os.environ:
    matplotlib.use("Agg")
import matplotlib.pyplot as plt

SMALL = "CHAINRULE_SMALL" in os.environ  # fewer steps: the tests look whether it runs and improves
plt.rcParams.update(
    {"axes.spines.top": False, "axes.spines.right": False, "figure.constrained_layout.use": True, "font.size": 10}
)


def steps(many: int, few: int) -> int:
    """The number of steps: `few` in a test."""
    return few if SMALL else many


def save(figure: Any, file: str) -> None:
    """Keep the picture as build/NAME.png, or where CHAINRULE_PICTURES says."""
    folder = Path(os.environ.get("CHAINRULE_PICTURES", "build"))
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{Path(file).stem}.png", dpi=110)
