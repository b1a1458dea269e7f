"""The design's budgets, measured side by side with the peers in one process: `python -m benchmarks [module ...]`."""
