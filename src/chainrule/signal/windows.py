"""Windows for spectral analysis; filled by the ops."""
