"""Indexing, gathering, scattering, sorting."""
