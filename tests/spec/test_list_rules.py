"""The list itself: every row has a test, and a row whose operators do not exist is reported as missing."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from .judge import require
from .report import absent
from .rules import BY_ID, ROWS, Row


def covered() -> dict[str, list[str]]:
    """The tests of each row, read from the decorators in this folder."""
    out: dict[str, list[str]] = {}
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                for d in node.decorator_list:
                    if isinstance(d, ast.Call) and isinstance(d.func, ast.Name) and d.func.id == "row":
                        for arg in d.args:
                            assert isinstance(arg, ast.Constant), f"{path.name}: {node.name}: name rows by literals"
                            out.setdefault(str(arg.value), []).append(node.name)
    return out


def test_every_row_has_a_test() -> None:
    tests = covered()
    assert sorted(set(BY_ID) - set(tests)) == []
    assert sorted(set(tests) - set(BY_ID)) == []


def test_rows_have_one_name_each() -> None:
    assert len(BY_ID) == len(ROWS)
    assert all(r.operators and r.holds for r in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.id)
def test_operators_exist(row: Row) -> None:
    assert absent(row.operators) == []


def test_a_deleted_operator_fails() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"gone: nn\.functional\.no_such_loss"):
        require("mul F.no_such_loss")
    assert absent(["mul", "no_such_operator"]) == ["no_such_operator"]
