"""Recurrent layers: the loop over time as an op, the functions of PyTorch's names, and the cells."""
