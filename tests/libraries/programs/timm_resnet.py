"""timm: a residual network, and an optimiser of its own."""

import timm
import timm.optim
import timm.scheduler
from harness import data, ints, rec, torch, train

m = timm.create_model("resnet10t", num_classes=4).double()
x, y = data(3, 3, 48, 48), ints(4, 3)
train(
    m,
    lambda m: torch.nn.functional.cross_entropy(m(x), y),
    steps=4,
    opt=lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9),
)
o = timm.optim.create_optimizer_v2(m, opt="adamw", lr=1e-3, weight_decay=0.05)
o.zero_grad()
m(x).sum().backward()
o.step()
rec("last", m.fc.weight)
