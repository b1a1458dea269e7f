"""torchsde: four solvers on a fixed Brownian path, and the adjoint."""

import torchsde
from harness import data, np, torch, train


class S(torch.nn.Module):
    noise_type, sde_type = "diagonal", "ito"

    def __init__(self):
        super().__init__()
        self.f1 = torch.nn.Linear(3, 3)
        self.g1 = torch.nn.Linear(3, 3)

    def f(self, t, y):
        return torch.tanh(self.f1(y))

    def g(self, t, y):
        return torch.sigmoid(self.g1(y)) * 0.3


class S2(S):
    sde_type = "stratonovich"


y0 = data(4, 3)
ts = torch.linspace(0, 1, 4)


class BM(torchsde.BaseBrownian):
    def __init__(self):
        super().__init__()
        self.t = np.linspace(0, 1, 201)
        self.w = np.concatenate(
            [np.zeros((1, 4, 3)), np.cumsum(np.random.RandomState(5).randn(200, 4, 3) * np.sqrt(1 / 200), 0)]
        )

    def at(self, t):
        t = float(t)
        i = min(int(t * 200), 199)
        f = t * 200 - i
        return torch.tensor(self.w[i] * (1 - f) + self.w[i + 1] * f)

    def __call__(self, ta, tb=None, return_U=False, return_A=False):
        return self.at(tb) - self.at(ta)

    dtype = torch.float64
    device = torch.device("cpu")
    shape = (4, 3)
    levy_area_approximation = "none"

    def __repr__(self):
        return "BM"

    def size(self):
        return (4, 3)


for meth, C in (("euler", S), ("milstein", S), ("heun", S2), ("midpoint", S2)):
    train(
        C(),
        lambda m, meth=meth: torchsde.sdeint(m, y0, ts, bm=BM(), method=meth, dt=0.1).pow(2).mean(),
        tag=meth,
        steps=4,
    )
train(
    S2(),
    lambda m: (
        torchsde.sdeint_adjoint(m, y0, ts, bm=BM(), method="midpoint", adjoint_method="midpoint", dt=0.1).pow(2).mean()
    ),
    tag="adj",
    steps=5,
)
