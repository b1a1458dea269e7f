"""``python -m chainrule COMMAND``: as-torch, coverage, info."""

from __future__ import annotations

import argparse
import sys


def main(argv: list[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    given = sys.argv[1:] if argv is None else argv
    if given[:1] == ["as-torch"]:  # what follows belongs to the script
        from .as_torch import run_script

        return run_script(given[1:])
    parser = argparse.ArgumentParser(prog="python -m chainrule", description="Differentiable NumPy.")
    commands = parser.add_subparsers(dest="command", required=True)
    cover = commands.add_parser(
        "coverage", help="list the public names that PyTorch has and chainrule does not, with the reason"
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
    commands.add_parser(
        "as-torch", help="run a script with chainrule under the name torch: as-torch script.py [args...]"
    )
    commands.add_parser(
        "info", help="version, number of ops and methods, whether kernels are compiled here and, if not, why"
    )
    args = parser.parse_args(argv)
    if args.command == "coverage" and args.library != "torch":
        from .cli.coverage_numpy import report as report_arrays

        return report_arrays(args.library, args.all)
    if args.command == "coverage":
        from .cli.coverage import report

        return report(everything=args.all, only=args.namespace)
    import chainrule
    from chainrule.core.op import OPS
    from chainrule.core.registry import METHODS, PUBLIC

    print(
        f"chainrule {chainrule.__version__}: {len(OPS)} ops, {len(PUBLIC)} public functions, {len(METHODS)} Tensor methods"
    )
    from chainrule.kernels import available, compiler, get_num_threads

    print(
        f"kernels: {f'{get_num_threads()} threads' if available() else f'none, the plain bodies run ({compiler.reason})'}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
