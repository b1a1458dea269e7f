"""The conformance matrix: PyTorch's operator database in fourteen columns, judged by PyTorch and by mathematics."""
