"""What a concrete tensor holds beside NumPy arrays. A payload gives the ops bodies of its own; the transforms never look inside."""
