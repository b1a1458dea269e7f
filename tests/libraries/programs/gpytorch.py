"""gpytorch: an exact Gaussian process, its predictions and their gradient."""

import gpytorch
from harness import data, rec, torch, train


class GP(gpytorch.models.ExactGP):
    def __init__(self, x, y, lik):
        super().__init__(x, y, lik)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(
            gpytorch.kernels.RBFKernel(ard_num_dims=2) + gpytorch.kernels.MaternKernel(nu=2.5)
        )

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


x = data(30, 2)
y = torch.sin(x[:, 0]) + 0.1 * data(30, seed=3)
lik = gpytorch.likelihoods.GaussianLikelihood()
m = GP(x, y, lik)
m.train()
lik.train()
mll = gpytorch.mlls.ExactMarginalLogLikelihood(lik, m)
train(m, lambda m: -mll(m(x), y), steps=10)
m.eval()
lik.eval()
xs = data(5, 2, seed=9)
with torch.no_grad(), gpytorch.settings.fast_pred_var():
    p = lik(m(xs))
    rec("mean", p.mean)
    rec("var", p.variance)
xs.requires_grad_()
mu = m(xs).mean.sum()
rec("gx", torch.autograd.grad(mu, xs)[0])
