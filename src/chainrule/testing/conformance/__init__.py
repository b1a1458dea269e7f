"""The conformance matrix: every entry of PyTorch's operator database in ten columns, judged by PyTorch and by mathematics."""
