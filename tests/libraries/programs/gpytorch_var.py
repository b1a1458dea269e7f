"""gpytorch: variational Gaussian processes, Gaussian and Bernoulli."""

import gpytorch
from harness import data, rec, torch, train


class GP(gpytorch.models.ApproximateGP):
    def __init__(self, z):
        q = gpytorch.variational.CholeskyVariationalDistribution(z.size(0))
        super().__init__(gpytorch.variational.VariationalStrategy(self, z, q, learn_inducing_locations=True))
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


x = data(40, 1)
y = torch.sin(3 * x[:, 0])
z = x[:8].clone()
m = GP(z)
lik = gpytorch.likelihoods.GaussianLikelihood()
m.train()
lik.train()
both = torch.nn.ModuleDict({"m": m, "lik": lik})
mll = gpytorch.mlls.VariationalELBO(lik, m, num_data=40)
train(both, lambda b: -mll(m(x), y), steps=10, do_fill=False)
lik2 = gpytorch.likelihoods.BernoulliLikelihood()
m2 = GP(z)
mll2 = gpytorch.mlls.VariationalELBO(lik2, m2, num_data=40)
train(m2, lambda b: -mll2(m2(x), (y > 0).to(y.dtype)), steps=5, do_fill=False, tag="bern")
m2.eval()
rec("pred", lik2(m2(data(4, 1, seed=5))).probs)
