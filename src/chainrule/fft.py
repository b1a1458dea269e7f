"""Discrete Fourier transforms; filled by the ops."""
