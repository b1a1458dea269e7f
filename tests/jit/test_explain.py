"""lower and explain: what is said is so; the page is well formed; the examples of docs/jit.md run."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import chainrule as cr
from chainrule import func
from chainrule.kernels import compiler

DOCS = Path(__file__).parents[2] / "docs" / "jit.md"


def test_text_names_parts_and_reasons():
    x = cr.tensor(np.eye(3) + 0.1)
    e = cr.explain(lambda x: cr.linalg.inv((x * 2).exp() + x).tanh(), x)
    text = str(e)
    assert "exp" in text and "outputs" in text
    if compiler.available():
        assert "machine code" in text and "no code for" in text and "define" in e.code
    assert len(e.seconds) == len(e.parts)


def test_what_runs_without_jit_says_why():
    n = cr.nested.nested_tensor([cr.ones(2), cr.ones(3)])
    assert "runs without jit" in str(cr.explain(lambda x: x * 2, n))


def test_the_page(tmp_path):
    e = cr.explain(func.grad(lambda x: (x[1:] * x[:-1]).sin().sum()), cr.randn(6))
    e.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    svg = ET.fromstring(re.search(r"<svg.*</svg>", page, re.S).group())  # type: ignore[union-attr]
    names = "".join(svg.itertext())
    assert "slice" in names and "x0" in names


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.S))
def test_documentation(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "docs/jit.md", "exec"), {})
