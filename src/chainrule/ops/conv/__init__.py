"""Convolution, pooling, resampling, windows."""
