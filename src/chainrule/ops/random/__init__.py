"""Random numbers, distributions, dropout."""
