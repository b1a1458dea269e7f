"""torchmin: minimisers of first and second order, least squares, constraints."""

from harness import data, fill, rec, torch
from torchmin import Minimizer, least_squares, minimize, minimize_constr
from torchmin.benchmarks import rosen

x0 = torch.tensor([1.0, 8.0])
for meth in ("bfgs", "l-bfgs", "cg", "newton-cg", "newton-exact", "trust-ncg", "trust-exact"):
    r = minimize(rosen, x0, method=meth, max_iter=12)
    rec(meth, r.x)
    rec(meth + "f", r.fun)
a, b = data(12, 3), data(12, seed=3)
r = least_squares(lambda w: torch.tanh(a @ w) - b, torch.zeros(3))
rec("ls", r.x)
r = minimize_constr(rosen, x0, max_iter=10, constr={"fun": lambda x: x.square().sum(), "ub": 1.0})
rec("constr", r.x)
m = fill(torch.nn.Linear(3, 1))
o = Minimizer(m.parameters(), method="newton-cg", max_iter=5)


def clo():
    o.zero_grad()
    l = (m(a)[:, 0].tanh() - b).pow(2).mean()
    return l


rec("ml", o.step(clo))
rec("mw", m.weight)
