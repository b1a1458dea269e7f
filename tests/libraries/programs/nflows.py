"""nflows: autoregressive and coupling flows."""

from harness import R, data, rec, torch, train
from nflows.distributions.normal import StandardNormal
from nflows.flows.base import Flow
from nflows.nn.nets import ResidualNet
from nflows.transforms import BatchNorm, CompositeTransform
from nflows.transforms.autoregressive import (
    MaskedAffineAutoregressiveTransform,
    MaskedPiecewiseRationalQuadraticAutoregressiveTransform,
)
from nflows.transforms.coupling import AffineCouplingTransform, PiecewiseRationalQuadraticCouplingTransform
from nflows.transforms.lu import LULinear
from nflows.transforms.permutations import ReversePermutation

x = data(16, 4)
mk = lambda i, o: ResidualNet(i, o, hidden_features=8, num_blocks=1)
T = CompositeTransform(
    [
        MaskedAffineAutoregressiveTransform(4, 8),
        ReversePermutation(4),
        LULinear(4),
        AffineCouplingTransform(torch.tensor([1, 0, 1, 0]), mk),
        PiecewiseRationalQuadraticCouplingTransform(torch.tensor([0, 1, 0, 1]), mk, tails="linear", tail_bound=3.0),
        MaskedPiecewiseRationalQuadraticAutoregressiveTransform(4, 8, num_bins=4, tails="linear", tail_bound=3.0),
        BatchNorm(4),
    ]
)
m = Flow(T, StandardNormal([4]))
train(m, lambda m: -m.log_prob(x).mean())
m.eval()
R.seed(3)
rec("sample", m.sample(5))
