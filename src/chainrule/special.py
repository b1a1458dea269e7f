"""Special functions; filled by the ops."""
