"""show, profile, summary, progress and the reprs of notebooks."""

from __future__ import annotations

import io
import json
import threading
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn
from chainrule.people.layout import Box, lay_out
from chainrule.people.reprs import png


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.layer = nn.LayerNorm(8), nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        return x + self.layer(self.norm(x)).tanh()


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(6)])

    def forward(self, x: Any) -> Any:
        for b in self.blocks:
            x = b(x)
        return (x * x).sum()


def test_what_is_kept_was_made_on_the_way() -> None:
    """Parameters and inputs are no memory of the backward pass: more than what is held at most is never kept."""
    layers = cr.nn.Sequential(cr.nn.Linear(4, 400), cr.nn.Tanh(), cr.nn.Linear(400, 1))
    p = cr.show(layers, cr.ones(2, 4))
    assert p.kept == 2 * (
        2 * 400 * 4
    )  # the results of the first layer, kept by tanh, and of tanh, kept by the second layer
    assert p.kept <= p.tap.peak


def test_show_knows_ops_edges_shapes_and_memory() -> None:
    p = cr.show(lambda x: (x.exp() * x).sum(), cr.ones(1000))
    assert [e.op.name for e in p.forward] == ["exp", "mul", "sum"]
    assert [m for _, m in p.forward[1].parents] == [p.forward[0].index]
    assert p.forward[0].outputs == [((1000,), "float32", 4000)]
    # mul keeps both factors: the result of exp, which exp keeps too, and x, which is the caller's and there anyway.
    assert p.kept == 4000
    assert p.tap.peak >= 8000
    assert {e.backward for e in p.backward} == {"sum", "mul", "exp"}
    assert all(e.place.of in {f.index for f in p.forward} for e in p.backward)


def test_large_graphs_fold_by_module() -> None:
    p = cr.show(Net(), cr.ones(2, 8))
    names = [i.name for i in p.views[0].items]
    assert [n for n in names if n.startswith("blocks")] == [f"blocks.{k}" for k in range(6)]
    assert len(p.views) == 7 and len(names) <= 12
    inside = p.views[1]
    assert "blocks.0.layer.weight" in [i.name for i in inside.items]
    for v in [*p.views, *p.derivative]:
        assert len(v.items) <= 50
        assert all(a < b for a, b in v.edges)


def test_long_programs_without_modules_fold_too() -> None:
    def f(x: Any) -> Any:
        for _ in range(200):
            x = x.sin()
        return x.sum()

    p = cr.show(f, cr.ones(2))
    assert len(p.views[0].items) <= 40 and sum(len(i.events) for i in p.views[0].items) == 201


def test_the_page_is_whole_and_needs_no_network(tmp_path: Any) -> None:
    cr.show(Net(), cr.ones(2, 8), path=tmp_path / "net.html")
    text = (tmp_path / "net.html").read_text()
    assert text.startswith("<!doctype html>") and text.rstrip().endswith("</html>")
    assert "src=" not in text and text.count("http") == text.count("http://www.w3.org/2000/svg")
    assert "return x + self.layer(self.norm(x)).tanh()" in text


def test_show_takes_numpy_functions_and_functions_without_derivative() -> None:
    p = cr.show(lambda x: np.sum(np.sin(x) ** 2), np.ones(3))
    assert "sin" in [e.op.name for e in p.forward] and p.backward
    assert not cr.show(lambda x: x + 1, cr.ones(2), derivative=False).backward


def test_boxes_do_not_overlap() -> None:
    rng = np.random.default_rng(0)
    boxes = [Box(float(rng.integers(60, 200)), 50.0) for _ in range(40)]
    edges = [(a, b) for b in range(1, 40) for a in rng.choice(b, size=min(b, 2), replace=False).tolist()]
    lay = lay_out(boxes, edges)
    for i, (x, y) in enumerate(lay.places):
        for j, (u, v) in enumerate(lay.places[:i]):
            apart = abs(x - u) >= (boxes[i].width + boxes[j].width) / 2 - 1e-6 or abs(y - v) >= 50
            assert apart, (i, j)
    assert all(points[0][1] < points[-1][1] for _, _, points in lay.lines)


def work(x: Any) -> Any:
    y = x.exp()
    return (y @ y).sum()


def test_profile_counts_by_op_and_by_line(tmp_path: Any) -> None:
    x = cr.ones(16, 16, requires_grad=True)
    work(x)
    with cr.profile() as p:
        for _ in range(3):
            work(x).backward()
    ops = {line.name: line for line in p.by_op()}
    assert ops["exp"].calls == 3 and ops["exp"].forward > 0
    assert ops["matmul"].calls == 9 and ops["matmul"].backward > 0
    lines = {line.name.split("  ")[1]: line for line in p.by_line()}
    assert lines["return (y @ y).sum()"].backward > 0  # the backward pass belongs to the line of the forward pass
    assert "matmul" in str(p) and p.peak >= 16 * 16 * 4
    page = p.html(tmp_path / "p.html")
    assert "http" not in page.replace("http://www.w3.org", "")
    trace = json.loads(p.chrome_trace(tmp_path / "t.json").read_text())["traceEvents"]
    assert {e["ph"] for e in trace} == {"X", "C"} and any(e["name"] == "exp" for e in trace)


def test_profile_hears_other_threads_and_ends() -> None:
    with cr.profile() as p:
        t = threading.Thread(target=lambda: cr.ones(3).sin())
        t.start()
        t.join()
    cr.ones(3).cos()
    assert [line.name for line in p.by_op()] == ["sin"]


def test_memory_is_counted_until_it_is_freed() -> None:
    with cr.profile() as p:
        a = cr.ones(1000, dtype=cr.float64)
        for _ in range(10):
            a = a + 1
        del a
    assert 16000 <= p.peak <= 24000
    assert p.tap.timeline[-1][1] <= 8000


def test_progress_in_a_pipe_is_a_few_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHAINRULE_PROGRESS", raising=False)
    out = io.StringIO()
    for i in (bar := cr.progress(range(1000), "training", file=out)):
        bar.set(loss=1.0 / (i + 1))
    lines = out.getvalue().splitlines()
    assert 10 <= len(lines) <= 12 and "\r" not in out.getvalue() and "\x1b" not in out.getvalue()
    assert "1000/1000" in lines[-1] and "loss 0.001" in lines[-1]


def test_progress_in_a_terminal_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHAINRULE_PROGRESS", raising=False)
    monkeypatch.setenv("TERM", "xterm")

    class Terminal(io.StringIO):
        encoding = "utf-8"  # type: ignore[assignment]

        def isatty(self) -> bool:
            return True

    out = Terminal()
    assert list(cr.progress(3, file=out)) == [0, 1, 2]
    assert out.getvalue().count("\n") == 1 and "█" in out.getvalue()


def test_progress_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAINRULE_PROGRESS", "0")
    out = io.StringIO()
    list(cr.progress(3, file=out))
    assert out.getvalue() == ""


def test_reprs_of_notebooks() -> None:
    matrix = cr.randn(8, 8)._repr_html_()
    assert "data:image/png" in matrix and "histogram" in matrix
    nest = cr.nested.nested_tensor([cr.ones(3), cr.ones(7)])._repr_html_()
    assert "2 components, 10 rows" in nest
    assert "tensor(1.)" in cr.tensor(1.0)._repr_html_()
    for odd in (
        cr.zeros(0),
        cr.full((4, 4), float("nan")),
        cr.ones(5, 5, dtype=cr.complex64),
        cr.eye(4).to_sparse(),
        cr.arange(20).reshape(4, 5),
    ):
        assert "<pre" in odd._repr_html_()
    cr.func.vmap(lambda x: (x._repr_html_(), x)[1])(cr.ones(3, 4, 4))


def test_png_is_one() -> None:
    import struct

    data = png(np.zeros((5, 7, 3), np.uint8))
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", data[16:24]) == (7, 5)


def test_summary() -> None:
    s = cr.summary(Net(), cr.ones(2, 8))
    assert s.parameters == 6 * (16 + 72) == s.trained
    text = str(s)
    assert "blocks" in text and "layer (Linear)" in text and "2×8" in text
    assert "<table" in s._repr_html_()
    assert cr.summary(nn.Linear(2, 2)).parameters == 6


def test_summary_changes_nothing_and_counts_lazy_modules_once_they_have_seen_an_input() -> None:
    net = cr.nn.Sequential(cr.nn.LazyLinear(4), cr.nn.BatchNorm1d(4), cr.nn.Dropout(0.5))
    text = str(cr.summary(net))
    assert "lazy" in text and "8 parameters" in text
    cr.manual_seed(0)
    draws = cr.rand(3)
    cr.manual_seed(0)
    text = str(cr.summary(net, cr.randn(5, 3, generator=cr.Generator().manual_seed(1))))
    assert "lazy" not in text and "24 parameters" in text
    assert bool((cr.rand(3) == draws).all())
    assert int(net[1].num_batches_tracked) == 0 and bool((net[1].running_mean == 0).all())
    with pytest.raises(TypeError, match="must be a Module, not function"):
        cr.summary(lambda x: x)
