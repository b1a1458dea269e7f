def custom_op(f): return f
