"""``chainrule COMMAND``, or ``python -m chainrule COMMAND``: see :mod:`chainrule.cli.commands`."""

from __future__ import annotations

import sys

from .cli.commands import main

if __name__ == "__main__":
    sys.exit(main())
