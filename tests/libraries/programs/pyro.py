"""pyro: stochastic variational inference with three guides."""

import pyro
import pyro.distributions as dist
from harness import R, data, rec, torch
from pyro.infer import SVI, Predictive, Trace_ELBO
from pyro.infer.autoguide import AutoDiagonalNormal, AutoMultivariateNormal
from pyro.optim import Adam

X = data(20, 3)
Y = X @ torch.tensor([1.0, -2.0, 0.5]) + 0.1 * data(20, seed=4)


def model(X, Y=None):
    w = pyro.sample("w", dist.Normal(torch.zeros(3), torch.ones(3)).to_event(1))
    b = pyro.sample("b", dist.Normal(0.0, 1.0))
    s = pyro.sample("s", dist.HalfNormal(torch.tensor(1.0)))
    with pyro.plate("data", X.shape[0]):
        return pyro.sample("obs", dist.Normal(X @ w + b, s), obs=Y)


for nm, G in (("diag", AutoDiagonalNormal), ("mvn", AutoMultivariateNormal)):
    pyro.clear_param_store()
    R.seed(0)
    g = G(model)
    svi = SVI(model, g, Adam({"lr": 0.02}), loss=Trace_ELBO(num_particles=2))
    for i in range(10):
        rec(f"{nm}/{i}", svi.step(X, Y))
    for k, v in pyro.get_param_store().items():
        rec(f"{nm}p/{k}", v)


def guide(X, Y=None):
    a = pyro.param("a", torch.zeros(3))
    s = pyro.param("sc", torch.ones(3), constraint=dist.constraints.positive)
    pyro.sample("w", dist.Normal(a, s).to_event(1))
    pyro.sample("b", dist.Delta(pyro.param("bb", torch.tensor(0.1))))
    pyro.sample("s", dist.Delta(pyro.param("ss", torch.tensor(0.5), constraint=dist.constraints.positive)))


pyro.clear_param_store()
R.seed(1)
svi = SVI(model, guide, Adam({"lr": 0.02}), loss=Trace_ELBO())
for i in range(10):
    rec(f"own/{i}", svi.step(X, Y))
for k, v in pyro.get_param_store().items():
    rec(f"ownp/{k}", v)
pr = Predictive(model, guide=guide, num_samples=4)(X)
rec("pred", pr["obs"])
