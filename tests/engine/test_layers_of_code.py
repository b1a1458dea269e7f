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


# Who may ask whether an array is NumPy's, outside the core, the doors to NumPy, the kernels and jit: how often, and what for.
SMALL = "a shorter way for plain arrays, beside one for all"
MEMORY = "where elements lie in memory: other arrays have no strides, and share nothing that way"
LOOKS = "a look at elements that are there: others come without a look"
GIVEN = "what the caller handed over as NumPy's own array"
ASKERS = {
    "distributed/c10d.py": (2, MEMORY),
    "distributed/checkpoint.py": (1, MEMORY),
    "ops/elementwise/formulas.py": (5, SMALL),
    "ops/elementwise/fusing.py": (2, SMALL),
    "ops/index/along.py": (4, SMALL),
    "ops/index/getitem.py": (3, GIVEN),
    "ops/linalg/common.py": (3, LOOKS),
    "ops/linalg/germ.py": (3, LOOKS),
    "ops/linalg/matmul.py": (5, SMALL),
    "ops/linalg/vectors.py": (4, SMALL),
    "ops/reduce/adding.py": (1, SMALL),
    "ops/reduce/histogram.py": (2, SMALL),
    "ops/reduce/reductions.py": (2, SMALL),
    "ops/shape/create.py": (1, GIVEN),
    "ops/shape/join.py": (1, MEMORY),
    "ops/shape/slices.py": (5, MEMORY),
    "ops/shape/strided.py": (2, MEMORY),
    "ops/shape/views.py": (1, MEMORY),
    "ops/sparse/values.py": (1, MEMORY),
    "optim/elementwise.py": (2, MEMORY),
    "transforms/reverse.py": (1, GIVEN),
}


def asks_for_numpy(n: ast.AST) -> int:
    """The number of comparisons ``type(x) is ndarray`` or ``x.__class__ is ndarray`` that a node makes."""
    if not (isinstance(n, ast.Compare) and isinstance(n.ops[0], ast.Is | ast.IsNot)):
        return 0
    return int(ast.unparse(n.comparators[0]) in ("ndarray", "np.ndarray"))


def test_few_ask_whether_an_array_is_numpys() -> None:
    """A body or a rule that needs to know does not work on the next array type: it has a reason, or it does not ask."""
    found: dict[str, int] = {}
    for path in ROOT.rglob("*.py"):
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(("core/", "interop/", "kernels/", "jit/", "testing/", "payloads/")):
            continue
        if count := sum(map(asks_for_numpy, ast.walk(ast.parse(path.read_text())))):
            found[name] = count
    assert found, "the question is written in another way: nothing is counted"
    more = [f"{name}: {count}" for name, count in sorted(found.items()) if count > ASKERS.get(name, (0, ""))[0]]
    assert not more, more
