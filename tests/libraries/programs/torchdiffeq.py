"""torchdiffeq: fixed and adaptive solvers, and the adjoint."""

from harness import data, torch, train
from torchdiffeq import odeint, odeint_adjoint


class F(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))

    def forward(self, t, y):
        return self.net(y**3)


t = torch.linspace(0, 1, 5)
y0 = data(7, 2, scale=0.5)
for meth in ("dopri5", "rk4", "adaptive_heun", "dopri8"):
    train(
        F(), lambda m, meth=meth: odeint(m, y0, t, method=meth, rtol=1e-6, atol=1e-8).pow(2).mean(), tag=meth, steps=4
    )
train(F(), lambda m: odeint_adjoint(m, y0, t, rtol=1e-7, atol=1e-9).pow(2).mean(), tag="adj", steps=5)
