"""Nested (ragged) arrays: one buffer, one matrix of sizes."""
