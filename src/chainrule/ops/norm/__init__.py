"""Normalisations: layer, batch, group, weight."""
