"""How many digits are right: the library beside exact arithmetic, PyTorch and SciPy. ``python -m chainrule.testing.precision``."""
