"""The state of the random number generator; filled by the ops."""
