"""Ordinary NumPy functions, none of which knows of chainrule: run unchanged under grad, jvp and hessian (tests/interop/test_numpy_examples.py)."""
