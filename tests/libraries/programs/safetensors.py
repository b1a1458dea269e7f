"""safetensors: files and slices of them."""

import tempfile

from harness import data, fill, ints, rec, torch, train
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model

m = fill(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)))
d = tempfile.mkdtemp()
save_file(m.state_dict(), d + "/a.safetensors", metadata={"a": "b"})
s = load_file(d + "/a.safetensors")
for k, v in s.items():
    rec(k, v)
m2 = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
m2.load_state_dict(s)
x = data(5, 3)
train(m2, lambda m: m(x).pow(3).mean(), do_fill=False, opt=lambda p: torch.optim.SGD(p, lr=0.1))
for k, v in load(save({"h": data(3).half(), "b": data(3).bfloat16(), "i": ints(4, 3), "c": ints(2, 3).bool()})).items():
    rec("t" + k, v.to(torch.float64))
save_model(m2, d + "/b.safetensors")
m3 = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
load_model(m3, d + "/b.safetensors")
rec("m3", m3(x))

with safe_open(d + "/a.safetensors", framework="pt") as f:
    rec("so", f.get_tensor("0.weight"))
    rec("sl", f.get_slice("0.weight")[1:3])
