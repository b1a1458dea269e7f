"""curvlinops: curvature matrices as operators."""

import curvlinops as cl
from harness import R, data, fill, ints, rec, torch

x, y = data(8, 5), ints(3, 8)
m = fill(torch.nn.Sequential(torch.nn.Linear(5, 6), torch.nn.Tanh(), torch.nn.Linear(6, 3)))
lf = torch.nn.CrossEntropyLoss()
D = [(x, y)]
P = list(m.parameters())
for n in ("HessianLinearOperator", "GGNLinearOperator", "EFLinearOperator", "KFACLinearOperator"):
    R.seed(0)
    options = {"fisher_type": "empirical"} if n.startswith("KFAC") else {}  # no draws
    op = getattr(cl, n)(m, lf, P, D, check_deterministic=False, **options)
    v = data(op.shape[1], seed=6)
    rec(n, op @ v)
J = cl.JacobianLinearOperator(m, P, D, check_deterministic=False) if hasattr(cl, "JacobianLinearOperator") else None
if J is not None:
    rec("J", J @ data(J.shape[1], seed=6))
