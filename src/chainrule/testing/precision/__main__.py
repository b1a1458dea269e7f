"""``python -m chainrule.testing.precision [reductions] [functions] [options]``: all parts, or those named."""

from __future__ import annotations

import importlib
import sys

PARTS = {"reductions": "chainrule.testing.precision.reductions", "functions": "chainrule.testing.precision.functions"}


def main(args: list[str]) -> int:
    """Run the parts named among `args` (all, if none is); the rest of `args` goes to each. 1 where one falls short."""
    named = [a for a in args if a in PARTS] or list(PARTS)
    rest = [a for a in args if a not in PARTS]
    return max(importlib.import_module(PARTS[name]).main(rest) for name in named)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
