"""Shapes, views, joining, creation."""
