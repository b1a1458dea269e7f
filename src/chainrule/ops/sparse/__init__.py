"""Sparse tensors: constructors and conversions, products, solves, reductions. Derivatives go through the numbers that are stored."""
