"""How large the rounding errors are, beside PyTorch's: ``python -m chainrule.testing.precision reductions``."""
