"""zuko: nine kinds of flows."""

import zuko
from harness import R, data, rec, train

x, c = data(16, 3), data(16, 2, seed=4)
for n, F in (
    ("NSF", lambda: zuko.flows.NSF(3, 2, transforms=2, hidden_features=(8, 8))),
    ("MAF", lambda: zuko.flows.MAF(3, 2, transforms=2, hidden_features=(8,))),
    ("NAF", lambda: zuko.flows.NAF(3, 2, transforms=1, hidden_features=(8,))),
    ("CNF", lambda: zuko.flows.CNF(3, 2, hidden_features=(8,))),
    ("SOSPF", lambda: zuko.flows.SOSPF(3, 2, transforms=1, hidden_features=(8,))),
    ("GF", lambda: zuko.flows.GF(3, 2, transforms=1, hidden_features=(8,))),
    ("BPF", lambda: zuko.flows.BPF(3, 2, transforms=1, hidden_features=(8,))),
    ("GMM", lambda: zuko.flows.GMM(3, 2, components=2)),
    ("NCSF", lambda: zuko.flows.NCSF(3, 2, transforms=1, hidden_features=(8,))),
):
    R.seed(0)
    m = train(F(), lambda m: -m(c).log_prob(x).mean(), tag=n, steps=4)
    R.seed(1)
    if n != "GMM":
        rec(n + "s", m(c[0]).rsample((3,)) if n != "NAF" else 0)
