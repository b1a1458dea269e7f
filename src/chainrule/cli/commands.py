"""The commands of ``chainrule``: what a shell asks for. Each imports what it needs when it runs."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HANDED_ON = ("as-torch", "conformance", "bench", "run")  # what follows belongs to another program


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    p = argparse.ArgumentParser(prog="chainrule", description="Differentiable NumPy.")
    p.add_argument("--version", action="store_true", help="print the version and stop")
    commands = p.add_subparsers(dest="command", metavar="COMMAND")
    add = commands.add_parser
    add("info", help="version, numbers of ops and methods, whether kernels are compiled here and, if not, why")
    add("demo", help="a derivative, per-example gradients, a Hessian, a training run; each checked on the spot")
    cover = add(
        "coverage",
        help="list the public names that PyTorch, NumPy or SciPy has and chainrule does not, with the reason",
    )
    cover.add_argument(
        "library",
        nargs="?",
        default="torch",
        choices=("torch", "numpy", "scipy", "array-api"),
        help="whose names (default: torch)",
    )
    cover.add_argument(
        "--all", action="store_true", help="list what is out of scope too, not only what is still to come"
    )
    cover.add_argument("--namespace", default="", help="only this namespace, e.g. nn.functional or Tensor")
    add(
        "conformance",
        help="PyTorch's operator database as judge (needs torch): conformance --only softmax",
        add_help=False,
    )
    add("bench", help="how fast it is on this machine, beside what is installed", add_help=False)
    v = add("verify", help="whether the derivatives of a function of yours are right: verify module:function")
    v.add_argument(
        "function",
        help="module:function or file.py:function; called with the arrays of --shape, or with module:function_args",
    )
    v.add_argument(
        "--shape",
        action="append",
        metavar="3,4",
        help="an argument: a random array of this shape (again for each argument)",
    )
    v.add_argument("--html", metavar="FILE", help="write the report as a page")
    v.add_argument("--seed", type=int, default=0, help="of the random arguments and directions")
    s = add("show", help="the graph of a function of yours and of its derivative, as a page: show module:function")
    s.add_argument("function", help="module:function or file.py:function")
    s.add_argument(
        "--shape",
        action="append",
        metavar="3,4",
        help="an argument: a random array of this shape (again for each argument)",
    )
    s.add_argument("--html", metavar="FILE", default="show.html", help="where the page goes (default: show.html)")
    add(
        "as-torch",
        help="run a script with chainrule under the name torch: as-torch script.py [args...]",
        add_help=False,
    )
    add("run", help="run a script on several processes, by MPI: run -n 4 train.py [args...]", add_help=False)
    c = add("completion", help='completion for a shell: eval "$(chainrule completion bash)"')
    c.add_argument("shell", choices=("bash", "zsh", "fish"))
    return p


def main(argv: list[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    given = sys.argv[1:] if argv is None else argv
    if given[:1] and given[0] in HANDED_ON:
        return _HANDED[given[0]](given[1:])
    p = parser()
    args = p.parse_args(given)
    if args.version:
        import chainrule

        print(f"chainrule {chainrule.__version__}")
        return 0
    if args.command is None:
        p.print_help()
        return 2
    try:
        return _COMMANDS[args.command](args)
    except UsageError as e:
        print(f"chainrule {args.command}: {e}", file=sys.stderr)
        return 2


class UsageError(Exception):
    """What was asked for cannot be done; the message says why."""


# -- commands -------------------------------------------------------------------------------------------------------------


def _info(args: Any) -> int:
    import platform

    import numpy as np

    import chainrule
    from chainrule.core.op import OPS
    from chainrule.core.registry import METHODS, PUBLIC
    from chainrule.kernels import available, compiler, get_num_threads

    print(
        f"chainrule {chainrule.__version__}: {len(OPS)} ops, {len(PUBLIC)} public functions, {len(METHODS)} Tensor methods"
    )
    print(
        f"kernels: {f'{get_num_threads()} threads' if available() else f'none, the plain bodies run ({compiler.reason})'}"
    )
    print(
        f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.system()} {platform.machine()}, {os.cpu_count()} CPUs"
    )
    return 0


def _demo(args: Any) -> int:
    from .demo import main as demo

    demo()
    return 0


def _coverage(args: Any) -> int:
    if args.library != "torch":
        from .coverage_numpy import report as report_arrays

        return report_arrays(args.library, args.all)
    from .coverage import report

    return report(everything=args.all, only=args.namespace)


def _load(spec: str) -> tuple[Callable[..., Any], Any]:
    """The function that ``module:name`` or ``file.py:name`` means, and its module."""
    where, colon, name = spec.rpartition(":")
    if not colon or not where or not name:
        raise UsageError(f"{spec!r} should be module:function or file.py:function")
    if where.endswith(".py"):
        path = Path(where)
        if not path.exists():
            raise UsageError(f"there is no file {where}")
        found = importlib.util.spec_from_file_location(path.stem, path)
        assert found is not None and found.loader is not None
        module = importlib.util.module_from_spec(found)
        sys.modules[path.stem] = module
        found.loader.exec_module(module)
    else:
        sys.path.insert(0, os.getcwd())
        try:
            module = importlib.import_module(where)
        except ModuleNotFoundError as e:
            raise UsageError(f"no module {where!r} here: {e}") from e
    f: Any = module
    for part in name.split("."):
        if not hasattr(f, part):
            raise UsageError(
                f"{where} has no {name!r}; it has {', '.join(n for n in vars(module) if not n.startswith('_'))}"
            )
        f = getattr(f, part)
    return f, module


def _arguments(spec: str, module: Any, shapes: list[str] | None, seed: int = 0) -> tuple[Any, ...]:
    """What to call a function with: random arrays of the shapes, or what ``function_args()`` beside it returns."""
    import numpy as np

    if shapes:
        rng = np.random.default_rng(seed)
        try:
            return tuple(rng.standard_normal([int(n) for n in s.split(",") if n.strip()]) for s in shapes)
        except ValueError as e:
            raise UsageError(f"--shape {shapes}: sizes with commas between, as in --shape 3,4") from e
    maker = getattr(module, f"{spec.rpartition(':')[2]}_args", None)
    if maker is None:
        raise UsageError(
            f"say what to call {spec} with: --shape 3,4 for each argument, or a function {spec.rpartition(':')[2]}_args() beside it"
        )
    got = maker()
    return got if isinstance(got, tuple) else (got,)


def _verify(args: Any) -> int:
    from ..people.verify import verify

    f, module = _load(args.function)
    report = verify(f, *_arguments(args.function, module, args.shape, args.seed), seed=args.seed)
    print(report)
    if args.html:
        report.html(args.html)
        print(f"the report is in {args.html}")
    return 0 if report else 1


def _show(args: Any) -> int:
    from ..people.show import show

    f, module = _load(args.function)
    picture = show(f, *_arguments(args.function, module, args.shape), path=args.html)
    print(picture)
    print(f"the page is in {args.html}")
    return 0


def _completion(args: Any) -> int:
    from .completion import script

    print(script(args.shell, parser()))
    return 0


# -- handed on ------------------------------------------------------------------------------------------------------------


def _as_torch(rest: list[str]) -> int:
    from ..as_torch import run_script

    return run_script(rest)


def _conformance(rest: list[str]) -> int:
    if importlib.util.find_spec("torch") is None:
        print("chainrule conformance: PyTorch is the judge and is not installed: pip install torch", file=sys.stderr)
        return 2
    from ..testing.conformance.cli import main as conformance

    return int(conformance(rest) or 0)


def _bench(rest: list[str]) -> int:
    from .bench import main as bench

    return bench(rest)


def _run(rest: list[str]) -> int:
    from ..distributed.launch import main as launch

    return launch(rest)


_HANDED: dict[str, Callable[[list[str]], int]] = {
    "as-torch": _as_torch, "conformance": _conformance, "bench": _bench, "run": _run,
}  # fmt: skip
_COMMANDS: dict[str, Callable[[Any], int]] = {
    "info": _info, "demo": _demo, "coverage": _coverage, "verify": _verify, "show": _show, "completion": _completion,
}  # fmt: skip
