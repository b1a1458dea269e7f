"""One element at a time: arithmetic, elementary functions, comparisons, selection, complex numbers, types."""
