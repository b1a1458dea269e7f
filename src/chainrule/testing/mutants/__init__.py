"""Mutants: every rule of every op bent a little, one at a time, to see whether the laws and the matrix notice."""
