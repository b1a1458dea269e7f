"""backpack: what can be had of a batch beside the gradient."""

from backpack import backpack, extend
from backpack.extensions import KFLR, BatchGrad, BatchL2Grad, DiagGGNExact, SumGradSquared, Variance
from harness import data, fill, ints, rec, torch

x, y = data(8, 1, 6, 6), ints(3, 8)
m = fill(
    torch.nn.Sequential(
        torch.nn.Conv2d(1, 3, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(12, 3)
    )
)
m, lf = extend(m), extend(torch.nn.CrossEntropyLoss())
for i in range(3):
    m.zero_grad()
    l = lf(m(x), y)
    with backpack(BatchGrad(), BatchL2Grad(), Variance(), SumGradSquared(), DiagGGNExact(), KFLR()):
        l.backward()
    for n, p in m.named_parameters():
        for a in ("grad", "grad_batch", "batch_l2", "variance", "sum_grad_squared", "diag_ggn_exact"):
            rec(f"{i}/{n}/{a}", getattr(p, a))
        for j, k in enumerate(p.kflr):
            rec(f"{i}/{n}/kflr{j}", k)
    with torch.no_grad():
        for p in m.parameters():
            p -= 0.1 * p.grad
