"""The transforms behind :mod:`chainrule.func`: each pushes a level, runs the function, and takes its results down."""
