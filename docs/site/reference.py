"""The reference: a page for each group of public functions, written from their declarations; every example is run while it is written."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import chainrule as cr
from chainrule.core.op import OPS
from chainrule.core.registry import PUBLIC

from .running import Example, example_of, module_example

ROOT = Path(cr.__file__).parent
# Namespaces beside those of the ops: their public names are listed from the modules themselves.
MODULES = {
    "func": "Transforms: functions that take functions",
    "autograd": "Derivatives of tensors that require them",
    "autograd.functional": "Products with Jacobians and Hessians",
    "autograd.forward_ad": "Forward mode, in the imperative style",
    "autograd.graph": "Nodes, hooks and saved tensors",
    "nn": "Modules",
    "nn.utils": "Tools for modules",
    "nn.utils.rnn": "Packed and padded sequences",
    "nn.utils.parametrize": "Parameters computed from others",
    "nn.utils.parametrizations": "Norms and orthogonal weights",
    "nn.utils.prune": "Pruning",
    "nn.init": "Initial values",
    "nn.parallel": "Modules on many processes",
    "optim": "Optimisers",
    "optim.lr_scheduler": "Schedules of learning rates",
    "optim.swa_utils": "Averages of weights",
    "nested": "Ragged tensors",
    "sparse": "Sparse tensors",
    "numpy": "NumPy's constructors with derivatives",
    "scipy.optimize": "SciPy's equations and minima, with derivatives",
    "scipy.integrate": "SciPy's integrals and differential equations, with derivatives",
    "scipy.linalg": "SciPy's matrix functions, with derivatives",
    "scipy.special": "SciPy's special functions of several arguments",
    "scipy.signal": "SciPy's convolutions, with derivatives",
    "scipy.stats": "SciPy's densities, with derivatives",
    "distributed": "Many processes",
    "distributed.nn.functional": "Collectives with derivatives",
    "distributed.checkpoint": "Checkpoints of many processes",
    "distributed.optim": "Optimisers of many processes",
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
            for name in re.findall(r"`([a-z0-9_.]+)(?:\([a-z]*\))?`", cells[0]):
                found[name] = f"at {cells[1]}: {cells[2]}"
    return found


def op_of(names: list[str]) -> Any:
    """The op that a public function stands for; of an in-place function that of the function."""
    last = [n.rpartition(".")[2] for n in names]
    return next((OPS[n] for n in [*last, *(n.rstrip("_") for n in last)] if n in OPS), None)


def derivative_of(names: list[str], made: list[str]) -> str:
    """How the derivative comes about, in words, and its rule where it is short."""
    op = op_of(names)
    if op is None:
        made = [n for n in made if n in OPS and OPS[n].differentiable]
        if not made:
            return "through the ops that it is made of, in every mode and to any order"
        return f"through the ops that it is made of (here {', '.join(f'`{n}`' for n in made[:8])}{', …' if len(made) > 8 else ''}), in every mode and to any order"
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


def rules_text(names: list[str]) -> str:
    """The rules of an op as they are declared, where they are short."""
    op = op_of(names)
    if op is None or not op.differentiable or op.form == "pointwise" or op.linear:
        return ""
    found: dict[str, None] = {}
    for rule in (op.jvp_rule, op.vjp_rule):
        for r in rule if isinstance(rule, list | tuple) else [rule]:
            place = place_of(r) if callable(r) else None
            if place is None or not place.file.startswith("ops/"):
                continue
            source = inspect.cleandoc("\n" + inspect.getsource(r)).strip()
            if source.count("\n") < 14:
                found[source] = None
    return "\n\n".join(found)


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


def kinks_of(names: list[str], made: list[str], kinky: dict[str, str]) -> str:
    """What holds at kinks and ties: the function's own line, or those of the ops that it is made of."""
    for n in [*names, *(n.rpartition(".")[2] for n in names), *(n.rpartition(".")[2].rstrip("_") for n in names)]:
        if n in kinky:
            return kinky[n]
    return "; ".join(f"of `{n}` {kinky[n]}" for n in [n for n in made if n in kinky][:3])


@functools.cache
def matrix_names() -> frozenset[str]:
    """The rows of the matrix."""
    page = (Path(__file__).parent.parent / "conformance.html").read_text(encoding="utf-8")
    return frozenset(re.findall(r'\{"name":"([^"]+)","family"', page))


def matrix_row(names: list[str]) -> str:
    """What finds a function's row in the matrix: its name there, that of the function it writes in place of, or the start of several rows' names."""
    rows = matrix_names()
    short = [n.rpartition(".")[2] for n in names]
    for n in [*names, *short, *(n.rstrip("_") for n in [*names, *short]), *(n.removesuffix("_copy") for n in short)]:
        if n in rows or any(r.startswith(f"{n}.") or r.endswith(f".{n}") for r in rows):
            return n
    return ""


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
        made = self.example.ops() if self.example is not None else []
        if len(self.names) > 1:
            rows.append(("also", ", ".join(f"`{n}`" for n in self.names[1:])))
        if self.example is not None and self.example.shapes:
            rows.append(("shapes", f"`{self.example.shapes}`"))
        if name in PUBLIC:
            rows.append(("derivative", derivative_of(self.names, made)))
        elif any(n in OPS and OPS[n].differentiable for n in made):
            rows.append(("derivative", derivative_of([], made)))
        if said := kinks_of(self.names, made, kinky):
            rows.append(("kinks and ties", said))
        links = []
        if self.place is not None:
            links.append(f'<a href="../{source_page(self.place.file)}#L{self.place.line}">source</a>')
        if name in PUBLIC and (row := matrix_row(self.names)):
            links.append(f'<a href="../conformance.html#q={row}">row of the matrix</a>')
        elif name in PUBLIC and op_of(self.names) is not None:
            links.append("not in PyTorch's operator database: judged by the laws of every op")
        out += [f"**{k}**: {v}\n" for k, v in rows]
        if name in PUBLIC and (rules := rules_text(self.names)):
            out += ["<details><summary>its rules</summary>", "", "```python", rules, "```", "", "</details>", ""]
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
            yield "tools", Entry([name], f, place_of(f), module_example("", name, f))
    yield "tensor", Entry(["Tensor"], cr.Tensor, place_of(cr.Tensor), module_example("", "Tensor", cr.Tensor))
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
                or not (
                    hasattr(m, "__all__") or place.file.startswith(module.replace(".", "/"))
                )  # a helper from elsewhere
            ):
                continue
            seen.add(full)
            yield module, Entry([full], f, place, module_example(module, full, f))


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
    head = re.split(r"(?<=[\w`])[:.;(](?!\w)", first)[0].strip().rstrip(".").replace("`", "")
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
        "happens at kinks and ties (a function without such a line is smooth where it is defined), an example that was run when this page was made, the source, and its row in the matrix of correctness.", "",
        "In the examples `cr` is chainrule, `grad` is `chainrule.func.grad`, and `np` is NumPy (on the page of `chainrule.numpy`, that module).", "",
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
