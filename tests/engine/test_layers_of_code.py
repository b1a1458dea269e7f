"""Who may import whom: the core knows no operator, the kernels know no tensor, whatever is imported and wherever."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import chainrule

ROOT = Path(chainrule.__file__).parent


def imports(path: Path) -> Iterator[str]:
    """The modules that a file imports, at its top or inside functions, but not for types alone."""
    here = ["chainrule", *path.relative_to(ROOT).with_suffix("").parts][:-1]
    tree = ast.parse(path.read_text())
    typed = {
        id(n)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for n in ast.walk(block)
    }
    for n in ast.walk(tree):
        if id(n) in typed:
            continue
        if isinstance(n, ast.ImportFrom):
            base = here[: len(here) - n.level + 1] if n.level else []
            module = ".".join([*base, *([n.module] if n.module else [])])
            yield module
            yield from (f"{module}.{a.name}" for a in n.names)
        elif isinstance(n, ast.Import):
            yield from (a.name for a in n.names)


@pytest.mark.parametrize(
    ("folder", "forbidden"),
    [
        ("core", ("ops", "payloads", "kernels", "func", "autograd", "nn", "optim", "testing")),
        ("kernels", ("core", "ops", "payloads", "func", "autograd", "nn")),
        ("ops", ("autograd", "nn", "optim", "testing")),
    ],
)
def test_imports_point_downwards(folder: str, forbidden: tuple[str, ...]) -> None:
    bad = sorted(
        f"{path.relative_to(ROOT)} imports {module}"
        for path in (ROOT / folder).rglob("*.py")
        for module in imports(path)
        if module.startswith(tuple(f"chainrule.{f}" for f in forbidden))
    )
    assert not bad, "\n".join(bad)


def test_every_test_file_has_a_name_of_its_own() -> None:
    names = [p.name for p in Path(__file__).parent.parent.rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
