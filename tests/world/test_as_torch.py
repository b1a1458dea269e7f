"""chainrule under the name torch: imports, mirrors, errors that teach, scripts."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import chainrule


def run(code: str, *args: str, how: tuple[str, ...] = ()) -> str:
    """The output of a program in a fresh interpreter."""
    src = str(Path(chainrule.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *(how or ("-c", textwrap.dedent(code))), *args],
        env={"PYTHONPATH": src, "PATH": "", "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


PROGRAM = """
import sys, importlib.metadata
import torch, torch.nn as nn, torch.nn.functional as F, torch.optim.lr_scheduler
import torch.backends.cudnn as cudnn, torch.cuda.amp, torch.utils._pytree as tree, torch.utils.data, torch.distributions as D
from torch import Tensor, einsum
from torch.nn.modules.loss import _Loss
from torch.jit import Final
assert isinstance(torch.zeros(2), Tensor) and issubclass(nn.MSELoss, _Loss)
assert torch.__version__ == importlib.metadata.version("torch") == "2.13.0"
assert str(torch.float32) == "torch.float32" and repr(torch.Size([2])) == "torch.Size([2])"
assert torch.nn is nn and torch.torch is torch and nn.functional is F
cudnn.benchmark = True
torch.backends.cuda.matmul.allow_tf32 = True
assert not torch.cuda.is_available() and torch.cuda.device_count() == 0 and torch.accelerator.current_accelerator() is None
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
@torch.jit.script
def f(x: Tensor) -> Tensor:
    return x * 2
class Net(nn.Module):
    n: Final[int]
    def __init__(self):
        super().__init__()
        self.n, self.l = 3, nn.Linear(3, 1)
    @torch.jit.ignore
    def aside(self, x): return x
    def forward(self, x):
        return self.aside(self.l(x)) if not torch.jit.is_scripting() else x
net = torch.jit.trace(Net().to(device), torch.zeros(1, 3))
assert f(net(torch.ones(2, 3))).shape == (2, 1)
assert tree.tree_flatten({"b": 1, "a": [2, None]})[0] == [1, 2, None]
torch.mine = 1
import chainrule
assert not hasattr(chainrule, "mine")
print("done", *sys.argv[1:])
"""


def test_a_program(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    assert run("", "a", "-b", how=("-m", "chainrule", "as-torch", str(script))) == "done a -b\n"


def test_errors_teach() -> None:
    out = run(
        """
        import chainrule
        torch = chainrule.install_as_torch()
        for code in ("torch.no_such_name", "import torch.onnx; torch.onnx.export(1)", "from torch.nn import NoSuchModule", "torch.ops.aten.no_such_op",
                     "torch.core", "torch.fx.symbolic_trace(lambda x: x)", "torch.zeros(2, device='cuda')", "torch.distributed.init_process_group('nccl')"):
            try:
                exec(code)
            except Exception as e:
                print(type(e).__name__, "|", e)
            else:
                print("no error:", code)
        """
    ).splitlines()
    assert len(out) == 8
    assert out[0].startswith("AttributeError | module 'torch' has no attribute 'no_such_name'")
    assert "coverage torch" in out[0]
    assert "NotDone" in out[1]
    assert "ONNX" in out[1]
    assert "ImportError" in out[2]
    assert "AttributeError" in out[3]
    assert "AttributeError" in out[4]
    assert "NotDone" in out[5]
    assert "docs/not-done.md" in out[5]
    assert "not available" in out[6]
    assert "NotDone" in out[7]


def test_inner_names_of_pytorch_that_libraries_use() -> None:
    """Another spelling of what is here, or a part that is not done: it can be imported, asked, and says so when it is used."""
    run(
        """
        import chainrule
        torch = chainrule.install_as_torch()
        from torch.distributions.utils import _sum_rightmost, _standard_normal
        from torch.distributions.transforms import _InverseTransform
        from torch.optim.lbfgs import _strong_wolfe
        from torch._vmap_internals import _vmap
        from torch.distributed.tensor import DTensor
        from torch.ao.quantization import QConfig
        import torch.export, torch._inductor.config, torch.distributed.fsdp as fsdp, torch.utils.model_zoo
        x = torch.arange(6.0).reshape(2, 3)
        assert _sum_rightmost(x, 1).tolist() == [3.0, 12.0] and _vmap(lambda r: r.sum())(x).tolist() == [3.0, 12.0]
        assert not isinstance(x, (DTensor, QConfig, torch.SymInt)) and not torch.distributed.is_ucc_available()
        ps, qs = [x.clone(), x[0].clone()], [x, x[1]]
        torch._foreach_mul_(ps, 2)
        torch._foreach_addcmul_(ps, qs, qs, -1.0)
        assert torch.equal(ps[0], 2 * x - x * x) and torch.equal(ps[1], 2 * x[0] - x[1] * x[1])
        assert torch.equal(torch._foreach_lerp(ps, qs, 0.5)[1], ps[1].lerp(x[1], 0.5))
        assert torch.equal(torch._foreach_norm(qs)[0], x.norm()) and torch._foreach_max(qs)[0] == 5
        assert torch.equal(torch._foreach_clamp_min(qs, [1.0, 4.0])[1], x[1].clamp(min=4)) and torch._foreach_pow(2.0, qs)[1][2] == 32
        assert torch.equal(torch._foreach_addcdiv(qs, tensor1=qs, tensor2=qs, scalars=torch.tensor([1.0, 2.0]))[1], x[1] + 2)
        assert torch.equal(torch._foreach_clamp_max(qs, scalars=[1.0, 4.0])[1], x[1].clamp(max=4)) and torch._foreach_neg_(ps) is ps
        for wrong in (lambda: torch._foreach_add([x], [x, x]), lambda: torch._check(x.sum() < 0, lambda: "said")):
            try: wrong()
            except RuntimeError as e: assert "same number" in str(e) or "said" in str(e)
            else: raise AssertionError
        assert torch.equal(torch.ops.aten.add.Tensor(x, x), 2 * x) and torch.ops.aten.linalg_norm.default(x) == x.norm()
        for wrong, say in ((lambda: fsdp.FullyShardedDataParallel(1), "several processes"), (lambda: torch.quantize_per_tensor(x), "quantisation")):
            try: wrong()
            except NotImplementedError as e: assert say in str(e) and "not-done" in str(e), e
            else: raise AssertionError
        try: torch.ops.load_library("some.so")
        except OSError as e: assert "custom_op" in str(e)
        """
    )


def test_after_pytorch_it_is_refused() -> None:
    pytest.importorskip("torch")
    with pytest.raises(RuntimeError, match="imported already"):
        chainrule.install_as_torch()


def test_the_same_names_without_installing() -> None:
    assert chainrule.cuda.is_available() is False
    assert chainrule.backends.mps.is_available() is False
    assert chainrule.jit.is_scripting() is False
    assert chainrule.compiler.is_compiling() is False
    with chainrule.backends.cudnn.flags(benchmark=True):
        assert chainrule.backends.cudnn.benchmark
    assert not chainrule.backends.cudnn.benchmark
    assert chainrule.version.cuda is None


def test_threads_from_the_environment() -> None:
    assert run("import chainrule; print(chainrule.get_num_threads())") == "1\n"


def test_parameters_that_change_places_hooks_of_all_modules_and_inner_names_of_nests() -> None:
    run(
        """
        import chainrule
        torch = chainrule.install_as_torch()
        from torch import nn
        future = torch.__future__
        assert not future.get_swap_module_params_on_conversion() and not future.get_overwrite_module_params_on_conversion()

        m = nn.Linear(2, 2)
        w = m.weight
        w.grad = torch.ones(2, 2)
        future.set_overwrite_module_params_on_conversion(True)
        m.double()
        assert m.weight is not w and w.dtype == torch.float32 and m.weight.dtype == m.weight.grad.dtype == torch.float64
        future.set_overwrite_module_params_on_conversion(False)

        future.set_swap_module_params_on_conversion(True)
        m = nn.Linear(2, 2)
        w, old = m.weight, m.weight.detach().clone()
        state = {"weight": torch.ones(2, 2), "bias": torch.zeros(2)}
        m.load_state_dict(state)
        assert m.weight is w and isinstance(w, nn.Parameter) and w.requires_grad and torch.equal(w, state["weight"])
        m.load_state_dict({"weight": 2 * old, "bias": torch.zeros(2)}, assign=True)
        assert m.weight is w and torch.equal(w, 2 * old)
        m(torch.ones(1, 2)).sum().backward()
        assert w.grad.shape == (2, 2)

        class Stubborn(torch.Tensor):
            def module_load(self, other, assign=False):
                return other

        m.weight = nn.Parameter(torch.ones(2, 2).as_subclass(Stubborn))
        try:
            m.load_state_dict(state)
        except RuntimeError as e:
            assert "module_load returned one of self or other" in str(e), e
        else:
            raise AssertionError("a tensor changed places with itself")
        future.set_swap_module_params_on_conversion(False)

        calls = []
        nn.modules.module.register_module_forward_hook(lambda m, x, y: calls.append(1))
        nn.Sigmoid()(torch.ones(1))
        nn.modules.module._global_forward_hooks = {}
        nn.Sigmoid()(torch.ones(1))
        assert calls == [1] and not nn.modules.module._has_any_global_hook()

        x = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged)
        assert x._values.shape == (6, 3) and x._offsets.tolist() == [0, 2, 6] and x._lengths is None and x._ragged_idx == 1
        assert (x._max_seqlen, x._get_min_seqlen()) == (4, 2) and x.transpose(1, 2)._ragged_idx == 2
        assert isinstance(x.shape[1], torch.SymInt) and not isinstance(x.shape[2], torch.SymInt)
        assert not hasattr(x.sum(), "_offsets") and torch.eye(2).to_sparse()._values().tolist() == [1, 1]
        """
    )


def test_settings_that_are_asked_for_and_what_has_no_wrapper_subclass() -> None:
    run(
        """
        import chainrule
        torch = chainrule.install_as_torch()
        with torch.autograd.set_multithreading_enabled(False):
            assert not torch.autograd.is_multithreading_enabled()
        assert torch.autograd.is_multithreading_enabled()
        fw = torch.autograd.forward_ad
        assert fw._current_level == -1
        with fw.dual_level():
            assert fw._current_level == 0
        try:
            torch.Tensor._make_wrapper_subclass(torch.Tensor, (2,))
        except NotImplementedError as e:
            assert "dispatcher" in str(e), e
        else:
            raise AssertionError
        """
    )


def test_modules_that_hold_a_function_are_saved() -> None:
    run(
        """
        import chainrule, io
        torch = chainrule.install_as_torch()
        layer = torch.nn.TransformerEncoderLayer(4, 2, 8)
        assert layer.activation is torch.nn.functional.relu
        file = io.BytesIO()
        torch.save(layer, file)
        file.seek(0)
        assert torch.load(file, weights_only=False).activation is torch.nn.functional.relu
        x = torch.ones(2, 3)
        y, (s, t) = __import__("copy").deepcopy([x, [x.storage(), x.untyped_storage()]])
        y.add_(1)
        assert s.tolist() == [2.0] * 6 and t.data_ptr() == y.data_ptr() != x.data_ptr() and x.sum() == 6
        for call in (lambda: torch._check_tensor_all(True), lambda: torch._check_tensor_all(torch.ones(2))):
            try:
                call()
            except TypeError as e:
                assert "cond must be a tensor" in str(e) or "must have dtype torch.bool" in str(e)
            else:
                raise AssertionError
        """
    )


def test_everything_can_be_imported_by_a_star_and_anomalies_have_switches() -> None:
    code = """
    from torch import *
    from torch.nn import *
    from torch.nn.functional import *
    from torch.distributions import *
    import torch
    torch.set_anomaly_enabled(True)
    assert torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()
    torch.set_anomaly_enabled(False)
    assert not torch.is_anomaly_enabled()
    print(float64, Linear, relu(tensor([-1.0])).item(), Normal, "tree" in globals(), "world" in globals())
    """
    assert "torch.float64" in run("import chainrule; chainrule.install_as_torch()\n" + textwrap.dedent(code))
