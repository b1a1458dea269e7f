"""Activations and attention."""
