"""Sparse arrays: a pattern, which never changes, and the numbers that stand in it."""
