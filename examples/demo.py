"""Chainrule in five minutes: ``python examples/demo.py``, the same as ``chainrule demo``."""

from chainrule.cli.demo import main

if __name__ == "__main__":
    main()
