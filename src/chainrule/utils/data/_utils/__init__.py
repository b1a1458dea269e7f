"""How batches are made, here and in worker processes."""

from . import collate, fetch, worker

__all__ = ["collate", "fetch", "worker"]
