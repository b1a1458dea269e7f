"""einops: patterns and layers."""

from einops import einsum as ee
from einops import pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce
from harness import data, ints, rec, torch, train

m = torch.nn.Sequential(
    Rearrange("b c (h p) (w q) -> b (h w) (c p q)", p=2, q=2),
    torch.nn.Linear(12, 8),
    torch.nn.GELU(),
    EinMix("b n c -> b n d", weight_shape="c d", bias_shape="d", c=8, d=5),
    Reduce("b n d -> b d", "mean"),
    torch.nn.Linear(5, 3),
)
x, y = data(6, 3, 4, 4), ints(3, 6)
train(m, lambda m: torch.nn.functional.cross_entropy(m(x), y))
z = data(2, 3, 4)
rec("a", rearrange(z, "a b c -> (c a) b"))
rec("b", reduce(z, "a b c -> b", "max"))
rec("c", repeat(z, "a b c -> a r b c", r=2))
rec("d", ee(z, z, "a b c, a d c -> a b d"))
p, ps = pack([z, data(2, 5, 4)], "a * c")
rec("p", p)
rec("u", unpack(p, ps, "a * c")[1])
