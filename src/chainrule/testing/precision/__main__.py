"""``python -m chainrule.testing.precision [reductions|functions [options]]``: the part that is named, or both."""

from __future__ import annotations

import importlib
import sys

PARTS = {"reductions": "chainrule.testing.precision.reductions", "functions": "chainrule.testing.precision.functions"}


def main(args: list[str]) -> int:
    """Run the part that the first argument names with the others as its options, or all parts; 1 where one falls short."""
    if args and args[0] not in PARTS:
        print(f"usage: python -m chainrule.testing.precision [{'|'.join(PARTS)}] [--help]", file=sys.stderr)
        return 2
    named = args[:1] or list(PARTS)
    return max(importlib.import_module(PARTS[name]).main(args[1:]) for name in named)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
