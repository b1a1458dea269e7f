"""timm: a vision transformer."""

import timm
from harness import data, ints, rec, torch, train
from timm.loss import LabelSmoothingCrossEntropy

m = timm.create_model(
    "vit_tiny_patch16_224", img_size=32, patch_size=8, embed_dim=48, depth=2, num_heads=3, num_classes=5
).double()
x, y = data(4, 3, 32, 32), ints(5, 4)
train(m, lambda m: torch.nn.functional.cross_entropy(m(x), y), steps=10)
m.eval()
rec("eval", m(x))

rec("ls", LabelSmoothingCrossEntropy()(m(x), y))
