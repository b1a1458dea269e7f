"""pyro: Hamiltonian Monte Carlo."""

import pyro
import pyro.distributions as dist
from harness import R, data, rec, torch
from pyro.infer import HMC, MCMC

X = data(10, 2)
Y = X @ torch.tensor([1.0, -2.0]) + 0.1 * data(10, seed=4)


def model():
    w = pyro.sample("w", dist.Normal(torch.zeros(2), torch.ones(2)).to_event(1))
    s = pyro.sample("s", dist.HalfNormal(torch.tensor(1.0)))
    pyro.sample("obs", dist.Normal(X @ w, s).to_event(1), obs=Y)


k = HMC(model, step_size=0.05, num_steps=4, adapt_step_size=False)
mc = MCMC(k, num_samples=10, warmup_steps=3, disable_progbar=True)
R.seed(0)
mc.run()
rec("hmc", mc.get_samples()["w"])
