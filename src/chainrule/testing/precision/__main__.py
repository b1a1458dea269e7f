"""``python -m chainrule.testing.precision NAME [options]``: one table of errors; each file of this package makes one."""

from __future__ import annotations

import importlib
import sys

TABLES = {"functions": "functions", "reductions": "reductions"}


def main(args: list[str]) -> int:
    """Make the table that the first argument names."""
    if not args or args[0] not in TABLES:
        print(f"usage: python -m chainrule.testing.precision {{{','.join(TABLES)}}} [--help]", file=sys.stderr)
        return 2
    return int(importlib.import_module(f"{__package__}.{TABLES[args[0]]}").main(args[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
