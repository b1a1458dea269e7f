"""``python -m chainrule.testing.surface``: write the stubs; ``--check`` only says which of them are out of date."""

from __future__ import annotations

import sys

from .stubs import outdated

if __name__ == "__main__":
    check = "--check" in sys.argv[1:]
    for path, text in outdated().items():
        print(f"{path}: {'out of date, run `make surface`' if check else 'written'}")
        if not check:
            path.write_text(text)
    sys.exit(bool(check and outdated()))
