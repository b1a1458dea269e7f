"""The conformance matrix: PyTorch's operator database in ten columns, judged by PyTorch and by mathematics."""
