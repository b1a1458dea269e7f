"""The examples start as a user starts them: nothing beside them hides a library that they import."""

from __future__ import annotations

import importlib.util
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def test_no_example_has_the_name_of_a_library() -> None:
    """``python examples/demo.py`` looks for modules in examples/ first."""
    names = [p.stem for p in EXAMPLES.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()]
    assert "demo" in names
    assert [n for n in names if importlib.util.find_spec(n) is not None] == []
