"""The front door as type checkers see it: stubs of all that the ops attach and publish, written from their declarations."""
