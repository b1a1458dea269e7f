"""Linear algebra: decompositions, solvers, norms and functions of matrices, with their derivatives; filled by the ops."""
