"""Plain NumPy code as it stands: the values that a function of arrays sees inside a transform, and NumPy's functions on them."""
