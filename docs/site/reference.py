"""The reference: a page for each group of public functions, written from their declarations; every example is run while it is written."""

from __future__ import annotations

import importlib
import inspect
import io
import re
import types
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import chainrule as cr
from chainrule.core.op import OPS
from chainrule.core.registry import PUBLIC
from chainrule.core.samples import SAMPLES, Given, S

from .examples import EXAMPLES

ROOT = Path(cr.__file__).parent
# Namespaces beside those of the ops: their public names are listed from the modules themselves.
MODULES = {
    "func": "Transforms: functions that take functions",
    "autograd": "Derivatives of tensors that require them",
    "nn": "Modules",
    "nn.utils": "Tools for modules",
    "nn.init": "Initial values",
    "optim": "Optimisers",
    "optim.lr_scheduler": "Schedules of learning rates",
    "nested": "Ragged tensors",
    "sparse": "Sparse tensors",
    "numpy": "NumPy's constructors with derivatives",
    "scipy": "SciPy's solvers with derivatives",
    "distributions": "Probability distributions",
    "utils.data": "Datasets and loaders",
    "utils.checkpoint": "Checkpoints",
    "tree": "Trees of tensors",
    "amp": "Mixed precision",
}
TOOLS = ("verify", "show", "find_nan", "profile", "summary", "progress", "jit", "explain", "compile", "custom_op", "cond", "switch",
         "while_loop", "fori_loop", "scan", "map", "associative_scan", "no_grad", "enable_grad", "inference_mode", "set_default_dtype",
         "promote_types", "finfo", "iinfo", "set_printoptions", "install_as_torch")  # fmt: skip


class Place(NamedTuple):
    """Where something is declared: a file below the package, and a line."""

    file: str
    line: int


def place_of(f: Any) -> Place | None:
    """The file and line of a declaration."""
    f = inspect.unwrap(f) if callable(f) and not isinstance(f, type) else f
    try:
        if isinstance(f, type):
            file, line = inspect.getsourcefile(f) or "", inspect.getsourcelines(f)[1]
        else:
            file, line = f.__code__.co_filename, f.__code__.co_firstlineno
    except (TypeError, OSError, AttributeError):
        return None
    if (m := re.fullmatch(r"(.*\.py):(\d+)", file)) is not None:  # a function that was made: its declaration
        file, line = m[1], int(m[2])
    path = Path(file)
    return Place(path.relative_to(ROOT).as_posix(), line) if path.is_relative_to(ROOT) else None


def source_page(file: str) -> str:
    """The name of the page that shows a file."""
    return "source/" + file.removesuffix(".py").replace("/", ".") + ".html"


# -- examples ----------------------------------------------------------------------------------------------------------


def literal(a: np.ndarray) -> str:
    """A small array as Python source."""
    if a.dtype.kind == "f":
        a = np.round(a, 2)
    body = (
        np.array2string(a, separator=", ", threshold=10_000, max_line_width=10_000).replace("\n", "").replace("  ", " ")
    )
    if a.dtype.kind == "f":
        body = re.sub(r"(?<=[0-9])[.](?=[,\]])", ".0", body)
    return f"cr.tensor({body})"


def sample_lines(name: str) -> list[str] | None:
    """The smallest sample of a function as source: the arrays, then the call."""
    best: tuple[int, list[str]] | None = None
    for s in SAMPLES:
        if s.name != name or s.f is not None:
            continue
        rng = np.random.default_rng(0)
        lines: list[str] = []
        names = iter(["x", "y", "z", "u", "v", "w", "p", "q"])
        size = 0

        def build(a: Any, rng: Any = rng, names: Any = names, lines: list[str] = lines) -> str:
            nonlocal size
            if isinstance(a, S | Given):
                v = a.make(rng, False)
                size += v.size
                n = next(names)
                lines.append(f"{n} = {literal(np.asarray(v))}")
                return n
            if isinstance(a, list | tuple) and any(isinstance(b, S | Given) for b in a):
                inner = ", ".join(build(b) for b in a)
                return f"[{inner}]" if isinstance(a, list) else f"({inner},)"
            if isinstance(a, float | int | str | bool | type(None) | tuple | list | slice | complex):
                return repr(a)
            raise StopIteration

        try:
            args = [build(a) for a in s.args] + [f"{k}={build(v)}" for k, v in s.kw.items()]
        except (StopIteration, RuntimeError, ValueError):
            continue
        if "inf" in "".join(lines) or "nan" in "".join(lines):
            continue
        lines.append(f"cr.{name}({', '.join(args)})")
        cost = size if size >= 3 else 50 + size  # small, but not so small that nothing is seen
        if best is None or cost < best[0]:
            best = (cost, lines)
    return best[1] if best is not None and best[0] <= 60 else None


GUESSES = ("x", "x, y", "x, dim=0", "x, 1", "x, 2", "i", "i, j", "x, y, z", "c", "(2, 3)", "3", "x, 0, 1", "x, 1, 0", "[x, y]", "x, [0]", "m", "m, v", "m, m", "x, i", "b", "b, b",
           "x, 0", "x, b", "x, 0.5", "a", "a, 1", "a, (2, 2)", "a, 0, i", "i, 2", "x, (3,)", "s", "s, x", "")  # fmt: skip
SETUP = {
    "x": "x = cr.tensor([0.5, -1.2, 2.0])", "y": "y = cr.tensor([1.0, 0.3, -0.7])", "z": "z = cr.tensor([0.2, 0.4, 0.6])", "i": "i = cr.tensor([1, 2, 0])",
    "j": "j = cr.tensor([3, 1, 2])", "c": "c = cr.tensor([1 + 2j, 3 - 1j])", "m": "m = cr.tensor([[2.0, 1.0], [1.0, 3.0]])", "v": "v = cr.tensor([1.0, 2.0])",
    "b": "b = cr.tensor([True, False, True])", "a": "a = cr.tensor([[1.0, 2.0], [3.0, 4.0]])", "s": 's = cr.nested.nested_tensor([[1.0, 2.0], [3.0]])',
}  # fmt: skip


class Example(NamedTuple):
    """Source lines with what they print, and the shapes of the call."""

    text: str
    shapes: str


def run_lines(lines: list[str], name: str, derivative: bool) -> Example:
    """Run source lines and write them with their results, as a doctest."""
    scope: dict[str, Any] = {"cr": cr, "np": np, "grad": cr.func.grad}
    cr.manual_seed(0)
    out = []
    for line in lines[:-1]:
        exec(line, scope)
        out.append(f">>> {line}")
    before = {k: v for k, v in scope.items() if isinstance(v, cr.Tensor)}
    shapes = [f"{k} {list(v.shape)}" for k, v in before.items()]
    printed = io.StringIO()
    with redirect_stdout(printed):
        result = eval(lines[-1], scope)
    out.append(f">>> {lines[-1]}")
    text = printed.getvalue() + ("" if result is None else repr(result))
    if len(text.splitlines()) > 16:
        text = "\n".join(text.splitlines()[:6]) + "\n..."
    if text:
        out += text.rstrip().splitlines()
    results = [r for r in (result if isinstance(result, tuple | list) else (result,)) if isinstance(r, cr.Tensor)]
    ends = ", ".join(str(list(r.shape)) for r in results[:4])
    first = lines[0].split(" =")[0] if len(lines) > 1 else ""
    if (
        derivative
        and first in before
        and before[first].is_floating_point()
        and before[first].numel() <= 24
        and not before[first].is_nested
        and results
    ):
        head = results[0]
        if head.is_floating_point() or head.is_complex():
            pick = "" if not isinstance(result, tuple | list) else "[0]"
            real = ".abs()" if head.is_complex() else ""
            expr = f"grad(lambda {first}: {lines[-1]}{pick}{real}.sum())({first})"
            try:
                g = eval(expr, scope)
                if not real and (g.max() - g.min()).item() < 1e-6:  # a sum that says nothing of the derivative
                    expr = f"grad(lambda {first}: {lines[-1]}{pick}.square().sum())({first})"
                    g = eval(expr, scope)
                out += [f">>> {expr}", *repr(g).splitlines()]
            except Exception:  # a function without a derivative at all
                pass
    return Example("\n".join(out), f"{', '.join(shapes)} → {ends}" if shapes and ends else "")


def example_of(names: list[str], f: Any) -> Example | None:
    """An example that runs: the one written for it, one of its samples, or the simplest call that works."""
    doc = inspect.getdoc(f) or ""
    for name in names:
        if name in EXAMPLES:
            return run_lines(EXAMPLES[name].strip().splitlines(), name, True)
    if ">>>" in doc:
        return Example("", "")
    for name in names:
        lines = sample_lines(name)
        if lines is not None:
            try:
                return run_lines(lines, name, True)
            except Exception:
                continue
    name = names[0]
    if name.endswith("_") and (base := sample_lines(name[:-1])) is not None:
        try:
            return run_lines([*base[:-1], base[-1].replace(f"cr.{name[:-1]}(", f"cr.{name}(")], name, False)
        except Exception:  # its result has another shape than its argument: one of the guesses does
            pass
    if re.match(r"(rand|empty|seed|initial)", name.rpartition(".")[2]):
        return None
    for guess in GUESSES:
        lines = [SETUP[k] for k in dict.fromkeys(re.findall(r"\b[a-z]\b", guess)) if k in SETUP]
        try:
            with redirect_stderr(io.StringIO()):
                return run_lines([*lines, f"cr.{name}({guess})"], name, True)
        except Exception:
            continue
    return None


# -- entries -------------------------------------------------------------------------------------------------------------


def plain(doc: str) -> str:
    """A docstring as Markdown: roles become code, examples are fenced. Of another library's docstring the first paragraph."""
    if "\nParameters\n---" in doc:
        doc = doc.split("\n\n", 2)[1] if "(" in doc.split("\n")[0] and "\n\n" in doc else doc.split("\n\n")[0]
    doc = re.sub(r":[a-z:]+:`~?([^`]*)`", r"``\1``", doc)
    doc = re.sub(r"(?<!`)``([^`]+)``(?!`)", r"`\1`", doc)
    out: list[str] = []
    fenced = False
    for line in doc.splitlines():
        starts = line.lstrip().startswith(">>>")
        if starts and not fenced:
            out += ["", "```python"]
            fenced = True
        elif fenced and not line.strip():
            out += ["```", ""]
            fenced = False
            continue
        out.append(line if fenced else re.sub(r"^ {4,}", "", line).replace("<", "&lt;") if "`" not in line else line)
    if fenced:
        out.append("```")
    return "\n".join(out)


def kinks() -> dict[str, str]:
    """What docs/conventions.md says of functions at kinks and ties, by name."""
    text = (Path(__file__).parent.parent / "conventions.md").read_text()
    table = text.split("## Kinks and ties")[1].split("\n\n")[2]
    found: dict[str, str] = {}
    for row in table.splitlines()[2:]:
        cells = [c.strip() for c in row.strip("|").split(" | ")]
        if len(cells) == 3:
            for name in re.findall(r"`([a-z_.]+)(?:\([a-z]*\))?`", cells[0]):
                found[name] = f"at {cells[1]}: {cells[2]}"
    return found


def derivative_of(names: list[str], f: Any) -> str:
    """How the derivative comes about, in words, and its rule where it is short."""
    op = next((OPS[n.rpartition(".")[2]] for n in names if n.rpartition(".")[2] in OPS), None)
    if op is None:
        return "through the ops that it is made of, in every mode and to any order"
    if not op.differentiable:
        return "none: the result is piecewise constant, an index or a truth value"
    if op.linear:
        return "the function is linear: its tangent is itself, its reverse rule the transpose"
    own = [
        w
        for w, there in (
            ("forward", op.jvp_rule is not None),
            ("reverse", op.vjp_rule is not None or op.pull_rules is not None),
        )
        if there
    ]
    if op.form == "pointwise" and op.rules and all(not callable(r) for r in op.rules):
        return "zero wherever it exists"
    words = {2: "rules of its own, forward and reverse, each differentiable again"}.get(len(own))
    words = words or (
        f"a {own[0]} rule; the other mode is derived from it" if own else "through its specification in plain ops"
    )
    if op.form == "pointwise" and op.rules:
        rule = next((r for r in op.rules if callable(r)), None)
        text = _rule_text(rule)
        if text:
            return f"`{text}`, with `t` the tangent; reverse mode and higher orders follow"
    return words


def _rule_text(rule: Any) -> str:
    """The body of a rule that is a lambda on one line."""
    try:
        source = inspect.getsource(rule)
    except (OSError, TypeError):
        return ""
    m = re.search(r"lambda t, y(?:, \w+)*: (.*)", source)
    if m is None:
        return ""
    body, depth = "", 0
    for ch in m[1]:
        if ch in "([{":
            depth += 1
        elif ch in ")]}":
            depth -= 1
        if depth < 0 or (ch == "," and depth == 0):
            break
        body += ch
    return body.strip() if 2 < len(body) < 90 and "`" not in body else ""


def signature(f: Any) -> str:
    try:
        s = inspect.signature(f)
    except (TypeError, ValueError):
        return "(...)"
    parts, star = [], False
    for p in s.parameters.values():
        if p.name in ("self", "cls") and not parts:
            continue
        text = p.name
        if p.kind is p.VAR_POSITIONAL:
            text, star = f"*{p.name}", True
        elif p.kind is p.VAR_KEYWORD:
            text = f"**{p.name}"
        elif p.kind is p.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        if p.default is not p.empty:
            shown = repr(p.default)
            text += f"={shown if len(shown) < 24 and '<' not in shown and chr(10) not in shown else '...'}"
        parts.append(text)
    return f"({', '.join(parts)})"


class Entry(NamedTuple):
    """One function or class of the reference, under all its names."""

    names: list[str]
    object: Any
    place: Place | None
    example: Example | None

    def text(self, kinky: dict[str, str]) -> str:
        """The entry as Markdown."""
        name, f = self.names[0], self.object
        kind = "class" if isinstance(f, type) else "function"
        doc = (
            plain(inspect.getdoc(f) or "")
            if not (isinstance(f, type) and inspect.getdoc(f) == inspect.getdoc(f.__mro__[1]))
            else ""
        )
        out = [f":::::{{py:{kind}}} chainrule.{name}{signature(f)}", "", doc, ""]
        rows = []
        if len(self.names) > 1:
            rows.append(("also", ", ".join(f"`{n}`" for n in self.names[1:])))
        if self.example is not None and self.example.shapes:
            rows.append(("shapes", f"`{self.example.shapes}`"))
        if name in PUBLIC:
            rows.append(("derivative", derivative_of(self.names, f)))
            short = name.rpartition(".")[2]
            if short in kinky or name in kinky:
                rows.append(("kinks and ties", kinky.get(name, kinky.get(short, ""))))
        links = []
        if self.place is not None:
            links.append(f'<a href="../{source_page(self.place.file)}#L{self.place.line}">source</a>')
        if name in PUBLIC:
            links.append(f'<a href="../conformance.html#q={name.rpartition(".")[2]}">row of the matrix</a>')
        out += [f"**{k}**: {v}\n" for k, v in rows]
        if self.example is not None and self.example.text:
            out += ["```python", self.example.text, "```", ""]
        if links:
            out += ['<p class="links">' + " · ".join(links) + "</p>", ""]
        out.append(":::::\n")
        return "\n".join(out)


def entries() -> Iterator[tuple[str, Entry]]:
    """Every public function with the group it belongs to: the file of its declaration, or its namespace."""
    by_object: dict[int, list[str]] = {}
    objects: dict[int, Any] = {}
    for name, f in PUBLIC.items():
        if name.startswith(("_C.", "ops.")) or name.rpartition(".")[2].startswith("_"):
            continue
        by_object.setdefault(id(f), []).append(name)
        objects[id(f)] = f
    seen: set[str] = set()
    for key, names in by_object.items():
        names.sort(key=lambda n: (n.count("."), len(n)) if not n.startswith("nn.") else (1, len(n)))
        names = [n for n in names if n not in seen]
        if not names:
            continue
        seen.update(names)
        f = objects[key]
        place = place_of(f)
        group = (
            f"ops/{'/'.join(Path(place.file).parts[1:]).removesuffix('.py')}"
            if place is not None and place.file.startswith("ops/")
            else "ops/other"
        )
        yield group, Entry(names, f, place, example_of(names, f))
    for name in TOOLS:
        f = getattr(cr, name)
        if name not in seen and callable(f):
            seen.add(name)
            yield "tools", Entry([name], f, place_of(f), None)
    yield "tensor", Entry(["Tensor"], cr.Tensor, place_of(cr.Tensor), None)
    for module in MODULES:
        m = importlib.import_module(f"chainrule.{module}")
        for name in sorted(getattr(m, "__all__", None) or dir(m)):
            f = getattr(m, name, None)
            full = f"{module}.{name}"
            if (
                name.startswith("_")
                or full in seen
                or not callable(f)
                or isinstance(f, types.ModuleType)
                or (place := place_of(f)) is None
            ):
                continue
            seen.add(full)
            yield module, Entry([full], f, place, None)


def title_of(group: str) -> str:
    """The heading of a group's page."""
    if group in MODULES:
        return f"chainrule.{group}: {MODULES[group]}"
    if group == "tools":
        return "Tools, jit and control flow"
    if group == "tensor":
        return "Tensor"
    if group == "ops/other":
        return "Other functions"
    module = importlib.import_module(f"chainrule.{group.replace('/', '.')}")
    first = (module.__doc__ or group).strip().splitlines()[0].replace("``", "`")
    head = re.split(r"(?<=[\w`])[:.;(]", first)[0].strip().rstrip(".").replace("`", "")
    family = group.split("/")[1]
    return f"{family}: {head}" if len(head) < 70 else f"{family}: {group.rpartition('/')[2]}"


def write(out: Path, report: Callable[[str], None] = print) -> set[str]:
    """Write the pages of the reference; returns the source files that they link to."""
    out.mkdir(parents=True, exist_ok=True)
    groups: dict[str, list[Entry]] = {}
    for group, e in entries():
        groups.setdefault(group, []).append(e)
    # A file with one or two functions joins the other small ones of its folder.
    for group in [g for g in groups if g.startswith("ops/") and g.count("/") == 2 and len(groups[g]) < 3]:
        groups.setdefault(group.rsplit("/", 1)[0], []).extend(groups.pop(group))
    kinky, files = kinks(), set[str]()
    index: list[tuple[str, str, int]] = []
    for group, members in sorted(groups.items()):
        slug = group.replace("/", "-").replace(".", "-").replace("_", "-")
        members.sort(key=lambda e: e.names[0].rpartition(".")[2].lower())
        body = "\n".join(e.text(kinky) for e in members)
        if group == "tensor":
            body += methods()
        title = title_of(group)
        (out / f"{slug}.md").write_text(f"# {title}\n\n{body}", encoding="utf-8")
        index.append((title, slug, len(members)))
        files |= {e.place.file for e in members if e.place is not None}
    total = sum(n for _, _, n in index)
    count = sum(1 for members in groups.values() for e in members if e.names[0] in PUBLIC)
    lines = [
        "# Reference", "",
        f"{total} functions and classes ({count} of them operators), each from its declaration: what it computes, shapes, how its derivative comes about, what "
        "happens at kinks and ties, an example that was run when this page was made, the source, and its row in the matrix of correctness.", "",
        "```{toctree}", ":maxdepth: 1", "", *[slug for _, slug, _ in index], "```", "",
    ]  # fmt: skip
    (out / "index.md").write_text("\n".join(lines), encoding="utf-8")
    report(f"reference: {total} entries on {len(index)} pages")
    return files


def methods() -> str:
    """The methods of Tensor, each with the first line of its docstring."""
    from chainrule.core.registry import METHODS

    rows = ["", "## Methods", "", "| method | |", "|---|---|"]
    for name in sorted(METHODS):
        if not name.startswith("_"):
            doc = (inspect.getdoc(METHODS[name]) or "").splitlines()
            line = plain(doc[0]).replace("|", "\\|") if doc else ""
            rows.append(f"| `{name}` | {line} |")
    return "\n".join(rows) + "\n"
