"""``python -m chainrule COMMAND``."""
