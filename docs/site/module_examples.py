"""Examples of classes and functions of the namespaces that no guess finds, a statement between each pair of blank lines."""

LAYER = "m = cr.nn.Linear(3, 2)"
DATA = "data = cr.utils.data.TensorDataset(cr.arange(5.0))"
RATE = "o = cr.optim.SGD([cr.nn.Parameter(cr.ones(1))], lr=1.0)"


def _s(*lines: str) -> str:
    return "\n\n".join(lines)


MODULE_EXAMPLES: dict[str, str] = {
    # tools
    "progress": _s("import io", "total = 0", "for k in cr.progress(range(3), 'adding', file=io.StringIO()):\n    total += k", "total"),
    "explain": _s("x = cr.ones(4)", "'machine code' in str(cr.explain(lambda x: (x.sin() * 2).sum(), x))"),
    "compile": _s("x = cr.tensor([0.5, 1.0])", "f = cr.compile(lambda x: (x.sin() * x).sum())", "f(x)"),
    "custom_op": _s("@cr.custom_op\ndef cube(x):\n    return x**3", "@cube.vjp\ndef _(g, y, x):\n    return g * 3 * x**2", "x = cr.tensor([1.0, 2.0])", "cube(x)"),
    "no_grad": _s("w = cr.ones(2, requires_grad=True)", "with cr.no_grad():\n    y = w * 2", "y.requires_grad"),
    "enable_grad": _s("w = cr.ones(2, requires_grad=True)", "with cr.no_grad(), cr.enable_grad():\n    y = w * 2", "y.requires_grad"),
    "inference_mode": _s("w = cr.ones(2, requires_grad=True)", "with cr.inference_mode():\n    y = w * 2", "y.is_inference()"),
    "set_default_dtype": _s("cr.set_default_dtype(cr.float64)", "d = cr.ones(1).dtype", "cr.set_default_dtype(cr.float32)", "d"),
    "promote_types": "cr.promote_types(cr.int32, cr.float16)",
    "finfo": "cr.finfo(cr.float32).eps",
    "iinfo": "cr.iinfo(cr.int8).max",
    "set_printoptions": _s("cr.set_printoptions(precision=2)", "text = str(cr.tensor([0.12345]))", "cr.set_printoptions(profile='default')", "text"),
    "Tensor": _s("x = cr.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)", "(x @ x).trace().backward()", "x.grad"),
    # transforms
    "func.debug_unwrap": _s("seen = []", "def f(x):\n    seen.append(cr.func.debug_unwrap(x))\n    return x.sum()", "_ = cr.func.vmap(f)(cr.ones(2, 3))", "seen[0].shape"),
    "func.functional_call": _s(LAYER, "w = {'weight': cr.ones(2, 3), 'bias': cr.zeros(2)}", "cr.func.functional_call(m, w, (cr.tensor([1.0, 2.0, 3.0]),))"),
    "func.functionalize": _s("x = cr.ones(3)", "def f(x):\n    y = x.clone()\n    y[0] = 5.0\n    return y", "cr.func.functionalize(f)(x)"),
    "func.grad_and_value": _s("x = cr.tensor([1.0, 2.0])", "cr.func.grad_and_value(lambda x: (x * x).sum())(x)"),
    "func.value_and_grad": _s("x = cr.tensor([1.0, 2.0])", "cr.func.value_and_grad(lambda x: (x * x).sum())(x)"),
    "func.jacfwd": _s("x = cr.tensor([1.0, 2.0])", "cr.func.jacfwd(lambda x: cr.stack([x[0] * x[1], x[1].exp()]))(x)"),
    "func.jacrev": _s("x = cr.tensor([1.0, 2.0])", "cr.func.jacrev(lambda x: cr.stack([x[0] * x[1], x[1].exp()]))(x)"),
    "func.linearize": _s("x = cr.tensor([1.0, 2.0])", "y, push = cr.func.linearize(lambda x: x * x, x)", "push(cr.ones(2))"),
    "func.stack_module_state": _s("layers = [cr.nn.Linear(3, 2) for _ in range(4)]", "parameters, buffers = cr.func.stack_module_state(layers)", "parameters['weight'].shape"),
    "func.replace_all_batch_norm_modules_": _s("m = cr.nn.Sequential(cr.nn.Linear(3, 2), cr.nn.BatchNorm1d(2))", "_ = cr.func.replace_all_batch_norm_modules_(m)", "list(m.state_dict())"),
    # autograd
    "autograd.Function": _s(
        "class Square(cr.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        ctx.save_for_backward(x)\n        return x * x\n    @staticmethod\n"
        "    def backward(ctx, g):\n        (x,) = ctx.saved_tensors\n        return 2 * x * g",
        "x = cr.tensor([1.0, 2.0])", "Square.apply(x)"),
    "autograd.Variable": "cr.autograd.Variable(cr.ones(2), requires_grad=True)",
    "autograd.backward": _s("x = cr.ones(2, requires_grad=True)", "cr.autograd.backward((x * x).sum())", "x.grad"),
    "autograd.grad": _s("x = cr.ones(2, requires_grad=True)", "cr.autograd.grad((x * x).sum(), x)"),
    "autograd.gradcheck": _s("x = cr.tensor([0.3, 0.7], dtype=cr.float64, requires_grad=True)", "cr.autograd.gradcheck(cr.sin, (x,))"),
    "autograd.gradgradcheck": _s("x = cr.tensor([0.3, 0.7], dtype=cr.float64, requires_grad=True)", "cr.autograd.gradgradcheck(cr.sin, (x,))"),
    "autograd.detect_anomaly": _s("x = cr.zeros(1, requires_grad=True)", "try:\n    with cr.autograd.detect_anomaly():\n        (x.sqrt() * x).sum().backward()\nexcept RuntimeError as e:\n    error = e", "type(error).__name__"),
    "autograd.AnomalyError": "issubclass(cr.autograd.AnomalyError, RuntimeError)",
    "autograd.GradcheckError": _s("x = cr.ones(1, dtype=cr.float64, requires_grad=True)", "try:\n    cr.autograd.gradcheck(lambda x: x * x.detach(), (x,))\nexcept cr.autograd.GradcheckError as e:\n    error = e", "type(error).__name__"),
    "autograd.no_grad": _s("w = cr.ones(2, requires_grad=True)", "with cr.autograd.no_grad():\n    y = w * 2", "y.requires_grad"),
    "autograd.enable_grad": _s("w = cr.ones(2, requires_grad=True)", "with cr.no_grad(), cr.autograd.enable_grad():\n    y = w * 2", "y.requires_grad"),
    "autograd.inference_mode": _s("w = cr.ones(2, requires_grad=True)", "with cr.autograd.inference_mode():\n    y = w * 2", "y.is_inference()"),
    "autograd.once_differentiable": _s(
        "class Double(cr.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return 2 * x\n    @staticmethod\n"
        "    @cr.autograd.once_differentiable\n    def backward(ctx, g):\n        return 2 * g",
        "x = cr.ones(2, requires_grad=True)", "Double.apply(x).sum().backward()", "x.grad"),
    "autograd.set_grad_enabled": _s("w = cr.ones(2, requires_grad=True)", "with cr.autograd.set_grad_enabled(False):\n    y = w * 2", "y.requires_grad"),
    "autograd.set_detect_anomaly": _s("with cr.autograd.set_detect_anomaly(True):\n    on = cr.autograd.is_anomaly_enabled()", "on"),
    "autograd.set_multithreading_enabled": _s("with cr.autograd.set_multithreading_enabled(False):\n    y = cr.ones(2).sum()", "y"),
    **{
        f"autograd.functional.{name}": _s("x = cr.tensor([1.0, 2.0])", "f = lambda x: (x**3).sum()", f"cr.autograd.functional.{call}")
        for name, call in {
            "hessian": "hessian(f, x)", "hvp": "hvp(f, x, cr.ones(2))", "vhp": "vhp(f, x, cr.ones(2))", "jacobian": "jacobian(lambda x: x**3, x)", "jvp": "jvp(lambda x: x**3, x, cr.ones(2))",
            "vjp": "vjp(lambda x: x**3, x, cr.ones(2))",
        }.items()
    },
    **{
        f"autograd.forward_ad.{name}": _s(
            "import chainrule.autograd.forward_ad as fwAD", "x, t = cr.tensor([1.0, 2.0]), cr.ones(2)", "with fwAD.dual_level():\n    y = fwAD.unpack_dual(fwAD.make_dual(x, t) ** 3)", "y")
        for name in ("dual_level", "make_dual", "unpack_dual", "UnpackedDualTensor")
    },
    **{
        f"autograd.forward_ad.{name}": _s(
            "import chainrule.autograd.forward_ad as fwAD", "_ = fwAD.enter_dual_level()", "y = fwAD.unpack_dual(fwAD.make_dual(cr.tensor([2.0]), cr.ones(1)) ** 3)", "fwAD.exit_dual_level()", "y.tangent")
        for name in ("enter_dual_level", "exit_dual_level")
    },
    **{
        f"autograd.graph.{name}": _s("x = cr.tensor([1.0, 2.0], requires_grad=True)", *lines)
        for name, lines in {
            "Node": ("y = x.exp()", "isinstance(y.grad_fn, cr.autograd.graph.Node), y.grad_fn.name()"),
            "GradientEdge": ("edge = cr.autograd.graph.get_gradient_edge(x)", "isinstance(edge, cr.autograd.graph.GradientEdge)"),
            "get_gradient_edge": ("y = x.exp()", "edge = cr.autograd.graph.get_gradient_edge(y)", "cr.autograd.grad(y.sum(), edge)"),
            "saved_tensors_hooks": ("kept = []", "with cr.autograd.graph.saved_tensors_hooks(lambda v: (kept.append(list(v.shape)), v)[1], lambda v: v):\n    y = x.exp()", "kept"),
            "save_on_cpu": ("with cr.autograd.graph.save_on_cpu():\n    y = x.exp().sum()", "y.backward()", "x.grad"),
            "allow_mutation_on_saved_tensors": ("with cr.autograd.graph.allow_mutation_on_saved_tensors():\n    w = x.clone()\n    y = (w * w).sum()\n    w.add_(1.0)", "y.backward()", "x.grad"),
            "disable_saved_tensors_hooks": ("with cr.autograd.graph.disable_saved_tensors_hooks('no hooks here'):\n    y = x.exp()", "y.requires_grad"),
            "register_multi_grad_hook": ("seen = []", "handle = cr.autograd.graph.register_multi_grad_hook([x], seen.append)", "(x * x).sum().backward()", "seen"),
            "increment_version": ("w = x.detach().clone()", "before = w._version", "cr.autograd.graph.increment_version(w)", "w._version - before"),
        }.items()
    },
    # modules
    "nn.Module": _s(
        "class Net(cr.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.scale = cr.nn.Parameter(cr.ones(2))\n    def forward(self, x):\n        return x * self.scale",
        "Net()(cr.tensor([1.0, 2.0]))"),
    "nn.Parameter": _s("w = cr.nn.Parameter(cr.ones(2))", "w.requires_grad, w.is_leaf"),
    "nn.Buffer": _s("m = cr.nn.Module()", "m.mean = cr.nn.Buffer(cr.zeros(2))", "list(m.state_dict())"),
    "nn.Sequential": _s("m = cr.nn.Sequential(cr.nn.Linear(3, 2), cr.nn.ReLU())", "m"),
    "nn.ModuleList": _s("m = cr.nn.ModuleList([cr.nn.Linear(2, 2) for _ in range(3)])", "len(list(m.parameters()))"),
    "nn.ModuleDict": _s("m = cr.nn.ModuleDict({'act': cr.nn.ReLU()})", "m['act'](cr.tensor([-1.0, 1.0]))"),
    "nn.ParameterList": _s("m = cr.nn.ParameterList([cr.ones(2), cr.zeros(3)])", "[list(p.shape) for p in m]"),
    "nn.ParameterDict": _s("m = cr.nn.ParameterDict({'w': cr.ones(2)})", "list(m.keys())"),
    "nn.Container": _s("m = cr.nn.Container(act=cr.nn.ReLU())", "list(m.children())"),
    "nn.DataParallel": _s("m = cr.nn.DataParallel(cr.nn.ReLU())", "m(cr.tensor([-1.0, 1.0]))"),
    "nn.BCELoss": _s("x = cr.tensor([0.2, 0.9])", "y = cr.tensor([0.0, 1.0])", "m = cr.nn.BCELoss()", "m(x, y)"),
    "nn.CTCLoss": _s("x = cr.tensor([[[0.1, 0.7, 0.2]], [[0.6, 0.2, 0.2]], [[0.1, 0.2, 0.7]]]).log()", "y = cr.tensor([[1, 2]])", "m = cr.nn.CTCLoss()", "m(x, y, cr.tensor([3]), cr.tensor([2]))"),
    "nn.CrossEntropyLoss": _s("x = cr.tensor([[1.0, 2.0, 0.5], [0.1, 0.2, 3.0]])", "y = cr.tensor([1, 2])", "m = cr.nn.CrossEntropyLoss()", "m(x, y)"),
    "nn.NLLLoss": _s("x = cr.tensor([[1.0, 2.0, 0.5], [0.1, 0.2, 3.0]]).log_softmax(-1)", "y = cr.tensor([1, 2])", "m = cr.nn.NLLLoss()", "m(x, y)"),
    "nn.KLDivLoss": _s("x = cr.tensor([[0.3, 0.7]]).log()", "y = cr.tensor([[0.5, 0.5]])", "m = cr.nn.KLDivLoss(reduction='batchmean')", "m(x, y)"),
    "nn.LinearCrossEntropyLoss": _s("x = cr.ones(2, 4)", "m = cr.nn.LinearCrossEntropyLoss(4, 3)", "m(x, cr.tensor([0, 2])).shape"),
    "nn.LinearCrossEntropyOptions": "cr.nn.LinearCrossEntropyOptions(batch_chunk_size=256).batch_chunk_size",
    "nn.AdaptiveLogSoftmaxWithLoss": _s("x = cr.ones(2, 8)", "m = cr.nn.AdaptiveLogSoftmaxWithLoss(8, 6, cutoffs=[2])", "m(x, cr.tensor([0, 4])).output.shape"),
    "nn.EmbeddingBag": _s("m = cr.nn.EmbeddingBag(5, 3, mode='sum')", "m(cr.tensor([0, 2, 4]), cr.tensor([0, 2])).shape"),
    "nn.Fold": _s("x = cr.ones(1, 4, 1)", "m = cr.nn.Fold(output_size=(2, 2), kernel_size=(2, 2))", "m(x)"),
    "nn.Unfold": _s("x = cr.arange(9.0).reshape(1, 1, 3, 3)", "m = cr.nn.Unfold(2)", "m(x)"),
    "nn.RNN": _s("m = cr.nn.RNN(3, 2)", "y, h = m(cr.ones(5, 1, 3))", "y.shape, h.shape"),
    "nn.GRU": _s("m = cr.nn.GRU(3, 2)", "y, h = m(cr.ones(5, 1, 3))", "y.shape, h.shape"),
    "nn.LSTM": _s("m = cr.nn.LSTM(3, 2)", "y, (h, c) = m(cr.ones(5, 1, 3))", "y.shape, h.shape, c.shape"),
    "nn.LSTMCell": _s("m = cr.nn.LSTMCell(3, 2)", "h, c = m(cr.ones(1, 3))", "h.shape, c.shape"),
    "nn.RNNBase": "issubclass(cr.nn.LSTM, cr.nn.RNNBase)",
    "nn.RNNCellBase": "issubclass(cr.nn.LSTMCell, cr.nn.RNNCellBase)",
    "nn.LazyLinear": _s("m = cr.nn.LazyLinear(2)", "m(cr.ones(4, 3)).shape", "m.weight.shape"),
    "nn.LazyConv1d": _s("m = cr.nn.LazyConv1d(2, 3)", "m(cr.ones(1, 4, 8)).shape", "m.weight.shape"),
    "nn.LazyConv2d": _s("m = cr.nn.LazyConv2d(2, 3)", "m(cr.ones(1, 4, 8, 8)).shape", "m.weight.shape"),
    "nn.LazyConvTranspose1d": _s("m = cr.nn.LazyConvTranspose1d(2, 3)", "m(cr.ones(1, 4, 8)).shape", "m.weight.shape"),
    **{
        f"nn.MaxUnpool{k}d": _s(f"x = cr.arange({4**k}.0).reshape(1, {', '.join('4' * k)})", f"y, i = cr.nn.MaxPool{k}d(2, return_indices=True)(x)", f"m = cr.nn.MaxUnpool{k}d(2)", "m(y, i).shape")
        for k in (1, 2, 3)
    },
    "nn.PixelUnshuffle": _s("x = cr.arange(4.0).reshape(1, 1, 2, 2)", "m = cr.nn.PixelUnshuffle(2)", "m(x)"),
    "nn.PixelShuffle": _s("x = cr.arange(4.0).reshape(1, 4, 1, 1)", "m = cr.nn.PixelShuffle(2)", "m(x)"),
    "nn.TransformerEncoder": _s("layer = cr.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)", "m = cr.nn.TransformerEncoder(layer, 2)", "m(cr.ones(1, 5, 8)).shape"),
    "nn.TransformerDecoder": _s("layer = cr.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)", "m = cr.nn.TransformerDecoder(layer, 2)", "m(cr.ones(1, 5, 8), cr.ones(1, 3, 8)).shape"),
    "nn.UninitializedParameter": _s("m = cr.nn.LazyLinear(2)", "isinstance(m.weight, cr.nn.UninitializedParameter)"),
    "nn.UninitializedBuffer": _s("m = cr.nn.LazyBatchNorm1d()", "isinstance(m.running_mean, cr.nn.UninitializedBuffer)"),
    "nn.factory_kwargs": "cr.nn.factory_kwargs({'dtype': cr.float64})",
    "nn.functional_call": _s(LAYER, "w = {'weight': cr.ones(2, 3), 'bias': cr.zeros(2)}", "cr.nn.functional_call(m, w, (cr.tensor([1.0, 2.0, 3.0]),))"),
    "nn.stack_module_state": _s("layers = [cr.nn.Linear(3, 2) for _ in range(4)]", "parameters, buffers = cr.nn.stack_module_state(layers)", "parameters['weight'].shape"),
    # nn.utils
    **{
        f"nn.utils.{name}": _s("w = cr.nn.Parameter(cr.tensor([3.0, 4.0]))", "w.square().sum().backward()", call, "w.grad")
        for name, call in {
            "clip_grad_norm_": "cr.nn.utils.clip_grad_norm_([w], 1.0)", "clip_grad_norm": "_ = cr.nn.utils.clip_grad_norm_([w], 1.0)  # its name today",
            "clip_grad_value_": "cr.nn.utils.clip_grad_value_([w], 7.0)", "clip_grads_with_norm_": "cr.nn.utils.clip_grads_with_norm_([w], 1.0, cr.tensor(10.0))",
        }.items()
    },
    "nn.utils.get_total_norm": "cr.nn.utils.get_total_norm([cr.tensor([3.0]), cr.tensor([4.0])])",
    "nn.utils.parameters_to_vector": _s(LAYER, "cr.nn.utils.parameters_to_vector(m.parameters()).shape"),
    "nn.utils.vector_to_parameters": _s(LAYER, "cr.nn.utils.vector_to_parameters(cr.arange(8.0), m.parameters())", "m.bias.data"),
    "nn.utils.convert_conv2d_weight_memory_format": _s("m = cr.nn.Conv2d(2, 3, 2)", "m = cr.nn.utils.convert_conv2d_weight_memory_format(m, cr.channels_last)", "m.weight.is_contiguous(memory_format=cr.channels_last)"),
    "nn.utils.convert_conv3d_weight_memory_format": _s("m = cr.nn.Conv3d(2, 3, 2)", "m = cr.nn.utils.convert_conv3d_weight_memory_format(m, cr.channels_last_3d)", "m.weight.is_contiguous(memory_format=cr.channels_last_3d)"),
    "nn.utils.fuse_conv_bn_eval": _s("conv, bn = cr.nn.Conv2d(1, 2, 2).eval(), cr.nn.BatchNorm2d(2).eval()", "m = cr.nn.utils.fuse_conv_bn_eval(conv, bn)", "x = cr.ones(1, 1, 3, 3)", "cr.allclose(m(x), bn(conv(x)), atol=1e-6)"),
    "nn.utils.fuse_linear_bn_eval": _s("linear, bn = cr.nn.Linear(3, 2).eval(), cr.nn.BatchNorm1d(2).eval()", "m = cr.nn.utils.fuse_linear_bn_eval(linear, bn)", "x = cr.ones(1, 3)", "cr.allclose(m(x), bn(linear(x)), atol=1e-6)"),
    "nn.utils.fuse_conv_bn_weights": _s("w, b = cr.ones(1, 1, 2), cr.zeros(1)", "new = cr.nn.utils.fuse_conv_bn_weights(w, b, cr.tensor([1.0]), cr.tensor([3.0]), 1.0, cr.tensor([2.0]), cr.tensor([0.5]))", "new[0].data, new[1].data"),
    "nn.utils.fuse_linear_bn_weights": _s("w, b = cr.ones(1, 2), cr.zeros(1)", "new = cr.nn.utils.fuse_linear_bn_weights(w, b, cr.tensor([1.0]), cr.tensor([3.0]), 1.0, cr.tensor([2.0]), cr.tensor([0.5]))", "new[0].data, new[1].data"),
    "nn.utils.skip_init": _s("m = cr.nn.utils.skip_init(cr.nn.Linear, 3, 2)", "m.weight.shape"),
    "nn.utils.spectral_norm": _s("m = cr.nn.utils.spectral_norm(cr.nn.Linear(3, 2))", "sorted(k for k, _ in m.named_parameters())"),
    "nn.utils.remove_spectral_norm": _s("m = cr.nn.utils.spectral_norm(cr.nn.Linear(3, 2))", "m = cr.nn.utils.remove_spectral_norm(m)", "sorted(k for k, _ in m.named_parameters())"),
    "nn.utils.weight_norm": _s("m = cr.nn.utils.parametrizations.weight_norm(cr.nn.Linear(3, 2))", "sorted(k for k, _ in m.named_parameters())"),
    "nn.utils.remove_weight_norm": _s("m = cr.nn.utils.weight_norm(cr.nn.Linear(3, 2))", "m = cr.nn.utils.remove_weight_norm(m)", "sorted(k for k, _ in m.named_parameters())"),
    **{
        f"nn.utils.rnn.{name}": _s("from chainrule.nn.utils import rnn", "parts = [cr.tensor([1.0, 2.0, 3.0]), cr.tensor([4.0])]", *lines)
        for name, lines in {
            "pad_sequence": ("rnn.pad_sequence(parts, batch_first=True)",), "pack_sequence": ("rnn.pack_sequence(parts)",), "PackedSequence": ("rnn.pack_sequence(parts).batch_sizes",),
            "pack_padded_sequence": ("x = rnn.pad_sequence(parts)", "rnn.pack_padded_sequence(x, [3, 1]).data"), "pad_packed_sequence": ("rnn.pad_packed_sequence(rnn.pack_sequence(parts), batch_first=True)",),
            "unpack_sequence": ("rnn.unpack_sequence(rnn.pack_sequence(parts))",), "unpad_sequence": ("x = rnn.pad_sequence(parts)", "rnn.unpad_sequence(x, cr.tensor([3, 1]))"),
            "invert_permutation": ("rnn.invert_permutation(cr.tensor([2, 0, 1]))",),
        }.items()
    },
    **{
        f"nn.utils.parametrize.{name}": _s(
            "from chainrule.nn.utils import parametrize", "class Symmetric(cr.nn.Module):\n    def forward(self, w):\n        return w.triu() + w.triu(1).mT", "m = cr.nn.Linear(2, 2)",
            "_ = parametrize.register_parametrization(m, 'weight', Symmetric())", *lines)
        for name, lines in {
            "register_parametrization": ("bool((m.weight == m.weight.mT).all())",), "is_parametrized": ("parametrize.is_parametrized(m, 'weight')",),
            "remove_parametrizations": ("_ = parametrize.remove_parametrizations(m, 'weight')", "parametrize.is_parametrized(m)"), "ParametrizationList": ("len(m.parametrizations['weight'])",),
            "cached": ("with parametrize.cached():\n    same = m.weight is m.weight", "same"), "type_before_parametrizations": ("parametrize.type_before_parametrizations(m).__name__",),
            "transfer_parametrizations_and_params": ("other = parametrize.transfer_parametrizations_and_params(m, cr.nn.Linear(2, 2))", "bool((other.weight == m.weight).all())"),
        }.items()
    },
    "nn.utils.parametrizations.orthogonal": _s("m = cr.nn.utils.parametrizations.orthogonal(cr.nn.Linear(2, 2))", "w = m.weight", "cr.allclose(w @ w.mT, cr.eye(2), atol=1e-5)"),
    "nn.utils.parametrizations.weight_norm": _s("m = cr.nn.utils.parametrizations.weight_norm(cr.nn.Linear(3, 2))", "sorted(k for k, _ in m.named_parameters())"),
    "nn.utils.parametrizations.spectral_norm": _s("m = cr.nn.utils.parametrizations.spectral_norm(cr.nn.Linear(3, 2), n_power_iterations=50)", "round(cr.linalg.matrix_norm(m.weight, 2).item(), 3)"),
    **{
        f"nn.utils.prune.{name}": _s("from chainrule.nn.utils import prune", "m = cr.nn.Linear(4, 2)", *lines)
        for name, lines in {
            "l1_unstructured": ("_ = prune.l1_unstructured(m, 'weight', amount=3)", "int((m.weight == 0).sum())"), "random_unstructured": ("_ = prune.random_unstructured(m, 'weight', amount=3)", "int((m.weight == 0).sum())"),
            "ln_structured": ("_ = prune.ln_structured(m, 'weight', amount=1, n=2, dim=0)", "int((m.weight == 0).all(1).sum())"),
            "random_structured": ("_ = prune.random_structured(m, 'weight', amount=1, dim=0)", "int((m.weight == 0).all(1).sum())"), "identity": ("_ = prune.identity(m, 'weight')", "prune.is_pruned(m)"),
            "custom_from_mask": ("_ = prune.custom_from_mask(m, 'bias', cr.tensor([1, 0]))", "m.bias[1].item()"), "is_pruned": ("prune.is_pruned(m)",),
            "remove": ("_ = prune.identity(m, 'weight')", "_ = prune.remove(m, 'weight')", "prune.is_pruned(m)"),
            "global_unstructured": ("prune.global_unstructured([(m, 'weight')], pruning_method=prune.L1Unstructured, amount=0.5)", "int((m.weight == 0).sum())"),
            "BasePruningMethod": ("issubclass(prune.L1Unstructured, prune.BasePruningMethod)",), "PruningContainer": ("issubclass(prune.PruningContainer, prune.BasePruningMethod)",),
            "CustomFromMask": ("_ = prune.CustomFromMask.apply(m, 'bias', cr.tensor([1, 0]))", "m.bias[1].item()"), "Identity": ("_ = prune.Identity.apply(m, 'weight')", "prune.is_pruned(m)"),
            "L1Unstructured": ("_ = prune.L1Unstructured.apply(m, 'weight', 3)", "int((m.weight == 0).sum())"), "RandomUnstructured": ("_ = prune.RandomUnstructured.apply(m, 'weight', 3)", "int((m.weight == 0).sum())"),
            "LnStructured": ("_ = prune.LnStructured.apply(m, 'weight', 1, 2, 0)", "int((m.weight == 0).all(1).sum())"), "RandomStructured": ("_ = prune.RandomStructured.apply(m, 'weight', 1, 0)", "int((m.weight == 0).all(1).sum())"),
        }.items()
    },
    **{f"nn.parallel.{name}": _s("m = cr.nn.ReLU()", "x = cr.tensor([-1.0, 1.0])", f"cr.nn.parallel.{call}") for name, call in {"DataParallel": "DataParallel(m)(x)", "data_parallel": "data_parallel(m, x)", "parallel_apply": "parallel_apply([m, m], [x, 2 * x])"}.items()},
    "nn.parallel.DistributedDataParallel": _s("import chainrule.distributed as dist", "dist.init_process_group('mpi')", "m = cr.nn.parallel.DistributedDataParallel(cr.nn.Linear(3, 1))", "m(cr.ones(2, 3)).sum().backward()", "m.module.weight.grad"),
    # optimisers
    **{
        f"optim.swa_utils.{name}": _s("from chainrule.optim import swa_utils", *lines)
        for name, lines in {
            "AveragedModel": ("m = cr.nn.Linear(1, 1, bias=False)", "average = swa_utils.AveragedModel(m)", "for w in (1.0, 3.0):\n    _ = m.weight.data.fill_(w)\n    average.update_parameters(m)", "average.module.weight.data"),
            "SWALR": ("o = cr.optim.SGD([cr.nn.Parameter(cr.ones(1))], lr=1.0)", "s = swa_utils.SWALR(o, swa_lr=0.1, anneal_epochs=2, anneal_strategy='linear')", "rates = []", "for _ in range(3):\n    o.step()\n    s.step()\n    rates.append(round(o.param_groups[0]['lr'], 3))", "rates"),
            "get_ema_avg_fn": ("f = swa_utils.get_ema_avg_fn(0.9)", "f(cr.tensor([1.0]), cr.tensor([2.0]), 1)"), "get_swa_avg_fn": ("f = swa_utils.get_swa_avg_fn()", "f(cr.tensor([1.0]), cr.tensor([2.0]), 1)"),
            "get_ema_multi_avg_fn": ("f, old = swa_utils.get_ema_multi_avg_fn(0.9), [cr.tensor([1.0])]", "f(old, [cr.tensor([2.0])], 1)", "old"),
            "get_swa_multi_avg_fn": ("f, old = swa_utils.get_swa_multi_avg_fn(), [cr.tensor([1.0])]", "f(old, [cr.tensor([2.0])], 1)", "old"),
            "update_bn": ("m = cr.nn.BatchNorm1d(1)", "swa_utils.update_bn([cr.tensor([[1.0], [3.0]])], m)", "m.running_mean"),
        }.items()
    },
    "optim.Optimizer": _s("o = cr.optim.SGD([cr.nn.Parameter(cr.ones(2))], lr=0.1)", "isinstance(o, cr.optim.Optimizer), o.param_groups[0]['lr']"),
    "optim.SparseAdam": _s("m = cr.nn.Embedding(4, 2, sparse=True)", "o = cr.optim.SparseAdam(m.parameters(), lr=0.1)", "before = m.weight.detach().clone()", "m(cr.tensor([1])).sum().backward()", "o.step()", "(m.weight - before).abs().sum(1) > 0"),
    "optim.lr_scheduler.LRScheduler": _s(RATE, "s = cr.optim.lr_scheduler.StepLR(o, 1)", "isinstance(s, cr.optim.lr_scheduler.LRScheduler), s.get_last_lr()"),
    # NumPy
    "numpy.empty": "np.empty((2, 3)).shape",
    "numpy.empty_like": _s("x = np.array([0.5, -1.2, 2.0])", "np.empty_like(x).shape"),
    "numpy.busday_count": 'np.busday_count("2026-11-16", "2026-11-23")',
    "numpy.busday_offset": 'np.busday_offset("2026-11-20", 1)',
    "numpy.is_busday": 'np.is_busday("2026-11-22")',
    "numpy.datetime_as_string": 'np.datetime_as_string(np.array(["2026-11-19"], dtype="datetime64[D]"))',
    "numpy.savetxt": _s("import os, tempfile", "path = os.path.join(tempfile.mkdtemp(), 'x.txt')", "np.savetxt(path, np.ones(2))", "np.loadtxt(path)"),
    "numpy.save": _s("import os, tempfile", "path = os.path.join(tempfile.mkdtemp(), 'x.npy')", "np.save(path, np.ones(2))", "np.load(path)"),
    "numpy.savez": _s("import os, tempfile", "path = os.path.join(tempfile.mkdtemp(), 'x.npz')", "np.savez(path, a=np.ones(2))", "np.load(path)['a']"),
    "numpy.savez_compressed": _s("import os, tempfile", "path = os.path.join(tempfile.mkdtemp(), 'x.npz')", "np.savez_compressed(path, a=np.ones(2))", "np.load(path)['a']"),
    "numpy.vectorize": _s("@np.vectorize\ndef soft(x):\n    return x - 1 if x > 1 else 0 * x", "x = np.array([0.5, 3.0, -2.0])", "soft(x)"),
    "numpy.ndenumerate": _s("x = np.array([[0.5, -1.2], [2.0, 3.0]])", "sum((i + 1) * v**2 for (i, j), v in np.ndenumerate(x))"),
    "numpy.can_cast": "np.can_cast(np.int32, np.float64)",
    "numpy.clip": _s("x = np.array([0.5, -1.2, 2.0])", "np.clip(x, -1.0, 1.0)"),
    "numpy.corrcoef": _s("x = np.array([0.5, -1.2, 2.0])", "y = np.array([1.0, 0.3, -0.7])", "np.corrcoef(x, y)[0, 1]"),
    "numpy.copyto": _s("x = np.array([0.5, -1.2, 2.0])", "b = np.zeros(3)", "np.copyto(b, x)", "b"),
    "numpy.fill_diagonal": _s("m = np.ones((2, 2))", "np.fill_diagonal(m, 5.0)", "m"),
    **{f"numpy.{k}": _s("x = np.array([0.5, -1.2])", "y = np.array([1.0, 0.3])", f"np.{k}([x, y])") for k in ("concat", "concatenate", "stack", "vstack", "hstack", "dstack", "column_stack")},
    "numpy.block": _s("x = np.array([[0.5, -1.2]])", "np.block([[x, x], [x, 2 * x]])"),
    # SciPy
    "scipy.optimize.root": _s("from chainrule.scipy import optimize", "f = lambda a: optimize.root(lambda y: y - np.cos(a * y), np.ones(1)).x", "x = np.array([0.5])", "f(x)"),
    "scipy.optimize.fsolve": _s("from chainrule.scipy import optimize", "f = lambda a: optimize.fsolve(lambda y: y - np.cos(a * y), np.ones(1))", "x = np.array([0.5])", "f(x)"),
    "scipy.optimize.minimize": _s("from chainrule.scipy import optimize", "f = lambda a: optimize.minimize(lambda y: np.sum((y - a) ** 2 + y**4), np.ones(1)).x", "x = np.array([0.5])", "f(x)"),
    "scipy.integrate.quad": _s("from chainrule.scipy import integrate", "f = lambda a: integrate.quad(lambda t: np.exp(-a * t), 0.0, 1.0)[0]", "x = np.array(0.5)", "f(x)"),
    "scipy.integrate.solve_ivp": _s("from chainrule.scipy import integrate", "f = lambda a: integrate.solve_ivp(lambda t, y: -a * y, (0.0, 1.0), np.ones(1), rtol=1e-8, atol=1e-10).y[0, -1]", "x = np.array(0.5)", "f(x)"),
    "scipy.integrate.odeint": _s("from chainrule.scipy import integrate", "f = lambda a: integrate.odeint(lambda y, t: -a * y, np.ones(1), np.linspace(0, 1, 3))[:, 0]", "x = np.array(0.5)", "f(x)"),
    # many processes
    **{f"distributed.{name}": f"issubclass(cr.distributed.{name}, RuntimeError)" for name in ("DistBackendError", "DistError", "DistMismatchError", "DistPeerError", "DistTimeoutError", "checkpoint.CheckpointError")},
    **{
        f"distributed.{name}": _s("import chainrule.distributed as dist", "dist.init_process_group('mpi')", *lines)
        for name, lines in {
            "init_process_group": ("dist.get_rank(), dist.get_world_size()",), "destroy_process_group": ("dist.destroy_process_group()", "dist.is_initialized()"), "barrier": ("dist.barrier()",),
            "ProcessGroup": ("dist.group.WORLD.size()",), "group": ("dist.group.WORLD.size()",), "GroupMember": ("dist.group.WORLD.size()",), "new_group": ("g = dist.new_group([0])", "g.size()"),
            "ReduceOp": ("x = cr.tensor([1.0, 2.0])", "_ = dist.all_reduce(x, dist.ReduceOp.MAX)", "x"), "reduce_op": ("x = cr.tensor([1.0, 2.0])", "_ = dist.all_reduce(x, dist.ReduceOp.MAX)", "x"),
            "Work": ("x = cr.tensor([1.0, 2.0])", "work = dist.all_reduce(x, async_op=True)", "_ = work.wait()", "x"), "get_group_rank": ("dist.get_group_rank(dist.group.WORLD, 0)",),
            "all_gather": ("x = cr.tensor([1.0, 2.0])", "parts = [cr.zeros(2)]", "_ = dist.all_gather(parts, x)", "parts"), "gather": ("x = cr.tensor([1.0, 2.0])", "parts = [cr.zeros(2)]", "_ = dist.gather(x, parts)", "parts"),
            "scatter": ("x = cr.zeros(2)", "_ = dist.scatter(x, [cr.tensor([1.0, 2.0])])", "x"), "all_gather_object": ("found = [None]", "dist.all_gather_object(found, {'a': 1})", "found"),
            "gather_object": ("found = [None]", "dist.gather_object({'a': 1}, found)", "found"), "broadcast_object_list": ("found = [{'a': 1}]", "dist.broadcast_object_list(found)", "found"),
            "scatter_object_list": ("found = [None]", "dist.scatter_object_list(found, [{'a': 1}])", "found"),
            "get_global_rank": ("dist.get_global_rank(dist.group.WORLD, 0)",), "get_process_group_ranks": ("dist.get_process_group_ranks(dist.group.WORLD)",), "get_node_local_rank": ("dist.get_node_local_rank(fallback_rank=0)",),
            "checkpoint.save": ("import tempfile", "folder = tempfile.mkdtemp()", "_ = dist.checkpoint.save({'w': cr.ones(2)}, checkpoint_id=folder)", "dist.checkpoint.load(checkpoint_id=folder)"),
            "checkpoint.load": ("import tempfile", "folder = tempfile.mkdtemp()", "_ = dist.checkpoint.save({'w': cr.ones(2)}, checkpoint_id=folder)", "dist.checkpoint.load(checkpoint_id=folder)"),
            "checkpoint.Shard": ("import tempfile", "folder = tempfile.mkdtemp()", "_ = dist.checkpoint.save({'w': dist.checkpoint.Shard(cr.ones(2), 0, 0, 2)}, checkpoint_id=folder)", "dist.checkpoint.load(checkpoint_id=folder)"),
            "optim.ZeroRedundancyOptimizer": ("w = cr.nn.Parameter(cr.ones(2))", "o = dist.optim.ZeroRedundancyOptimizer([w], cr.optim.Adam, lr=0.1)", "w.square().sum().backward()", "_ = o.step()", "w.data"),
        }.items()
    },
    **{
        f"distributed.{name}": _s(
            "import chainrule.distributed as dist", "dist.init_process_group('mpi')", "x, y = cr.ones(2), cr.empty(2)",
            "ops = [dist.P2POp(dist.isend, x, 0), dist.P2POp(dist.irecv, y, 0)]  # to itself; with others, to their ranks", "for work in dist.batch_isend_irecv(ops):\n    _ = work.wait()", "y")
        for name in ("P2POp", "batch_isend_irecv")
    },
    **{
        f"distributed.{name}": _s(
            "import chainrule.distributed as dist", "dist.init_process_group('mpi')", "x, y = cr.ones(2), cr.empty(2)", "work = dist.isend(x, 0)  # to itself; with others, to their ranks",
            "_ = dist.recv(y, 0)" if name != "irecv" else "_ = dist.irecv(y, 0).wait()", "y")
        for name in ("isend", "irecv", "send", "recv")
    },
    "distributed.nn.functional.recv": _s(
        "import chainrule.distributed as dist", "dist.init_process_group('mpi')", "from chainrule.distributed.nn import functional as C", "x = cr.tensor([1.0, 2.0])",
        "def there_and_back(x):\n    token = C.send(x, 0)  # to itself; with others, to their ranks\n    return C.recv(x, 0) + token", "there_and_back(x)"),
    "distributed.checkpoint.Disk": _s(
        "class Slow(cr.distributed.checkpoint.Disk):  # what a test of a kill puts in its place\n    written = 0\n    def write(self, f, data):\n        self.written += len(data)\n        super().write(f, data)",
        "issubclass(Slow, cr.distributed.checkpoint.Disk)"),
    "distributed.recv_object_list": "cr.distributed.recv_object_list.__name__  # needs a second process, which calls send_object_list",
    # distributions
    "distributions.Distribution": _s("d = cr.distributions.Normal(0.0, 1.0)", "isinstance(d, cr.distributions.Distribution), d.mean, d.variance"),
    "distributions.ExponentialFamily": "issubclass(cr.distributions.Normal, cr.distributions.ExponentialFamily)",
    "distributions.Transform": _s("t = cr.distributions.ExpTransform()", "x = cr.tensor([0.0, 1.0])", "t.inv(t(x))"),
    "distributions.kl_divergence": _s("x = cr.tensor([0.0, 1.0])", "q = cr.distributions.Normal(0.0, 2.0)", "cr.distributions.kl_divergence(cr.distributions.Normal(x, 1.0), q)"),
    "distributions.register_kl": _s("class Mine(cr.distributions.Normal):\n    pass", "@cr.distributions.register_kl(Mine, Mine)\ndef _(p, q):\n    return (p.loc - q.loc) ** 2", "cr.distributions.kl_divergence(Mine(1.0, 1.0), Mine(3.0, 1.0))"),
    # data
    "utils.data.Dataset": _s("class Squares(cr.utils.data.Dataset):\n    def __len__(self):\n        return 4\n    def __getitem__(self, k):\n        return k * k", "next(iter(cr.utils.data.DataLoader(Squares(), batch_size=4)))"),
    "utils.data.IterableDataset": _s("class Count(cr.utils.data.IterableDataset):\n    def __iter__(self):\n        return iter(range(3))", "next(iter(cr.utils.data.DataLoader(Count(), batch_size=3)))"),
    "utils.data.TensorDataset": _s(DATA, "data[1]"),
    "utils.data.DataLoader": _s(DATA, "[x for (x,) in cr.utils.data.DataLoader(data, batch_size=2)]"),
    "utils.data.ConcatDataset": _s(DATA, "len(cr.utils.data.ConcatDataset([data, data]))"),
    "utils.data.StackDataset": _s(DATA, "cr.utils.data.StackDataset(data, data)[1]"),
    "utils.data.ChainDataset": _s("class Count(cr.utils.data.IterableDataset):\n    def __iter__(self):\n        return iter(range(2))", "list(cr.utils.data.ChainDataset([Count(), Count()]))"),
    "utils.data.Subset": _s(DATA, "cr.utils.data.Subset(data, [3, 1])[0]"),
    "utils.data.random_split": _s(DATA, "[len(part) for part in cr.utils.data.random_split(data, [3, 2])]"),
    "utils.data.Sampler": "issubclass(cr.utils.data.RandomSampler, cr.utils.data.Sampler)",
    "utils.data.SequentialSampler": _s(DATA, "list(cr.utils.data.SequentialSampler(data))"),
    "utils.data.RandomSampler": _s(DATA, "sorted(cr.utils.data.RandomSampler(data))"),
    "utils.data.SubsetRandomSampler": "sorted(cr.utils.data.SubsetRandomSampler([4, 1, 2]))",
    "utils.data.WeightedRandomSampler": "list(cr.utils.data.WeightedRandomSampler([0.0, 1.0], 3))",
    "utils.data.BatchSampler": _s(DATA, "list(cr.utils.data.BatchSampler(cr.utils.data.SequentialSampler(data), 2, drop_last=False))"),
    "utils.data.DistributedSampler": _s(DATA, "list(cr.utils.data.DistributedSampler(data, num_replicas=2, rank=0, shuffle=False))"),
    "utils.data.default_collate": "cr.utils.data.default_collate([(1.0, 2), (3.0, 4)])",
    "utils.data.default_convert": "cr.utils.data.default_convert([np.ones(2)])",
    # checkpoints
    "utils.checkpoint.checkpoint_sequential": _s("m = cr.nn.Sequential(cr.nn.Tanh(), cr.nn.Sigmoid())", "x = cr.tensor([0.5, 1.0])", "cr.utils.checkpoint.checkpoint_sequential(m, 2, x)"),
    "utils.checkpoint.CheckpointError": "issubclass(cr.utils.checkpoint.CheckpointError, RuntimeError)",
    "utils.checkpoint.noop_context_fn": "[type(c).__name__ for c in cr.utils.checkpoint.noop_context_fn()]",
    "utils.checkpoint.set_checkpoint_early_stop": _s("x = cr.ones(2)", "with cr.utils.checkpoint.set_checkpoint_early_stop(False):\n    y = cr.utils.checkpoint.checkpoint(cr.sin, x)", "y"),
    # trees
    "tree.leaves": "cr.tree.leaves({'a': [1, 2], 'b': 3})",
    "tree.unflatten": _s("leaves, spec = cr.tree.flatten({'a': [1, 2], 'b': 3})", "cr.tree.unflatten([10 * v for v in leaves], spec)"),
    "tree.Spec": _s("leaves, spec = cr.tree.flatten([1, (2, 3)])", "isinstance(spec, cr.tree.Spec)"),
    "tree.register": _s("class Pair:\n    def __init__(self, a, b):\n        self.a, self.b = a, b", "cr.tree.register(Pair, lambda p: ((p.a, p.b), None), lambda aux, c: Pair(*c))", "cr.tree.leaves(Pair(1, 2))"),
    # mixed precision
    "amp.autocast": _s("with cr.amp.autocast('cpu', dtype=cr.bfloat16):\n    y = cr.ones(2, 2) @ cr.ones(2, 2)", "y.dtype"),
    "amp.GradScaler": _s("w = cr.nn.Parameter(cr.ones(2))", "o = cr.optim.SGD([w], lr=0.1)", "scaler = cr.amp.GradScaler('cpu')", "scaler.scale((w * w).sum()).backward()", "_ = scaler.step(o)", "scaler.update()", "w.data"),
    "amp.custom_fwd": _s(
        "class F(cr.autograd.Function):\n    @staticmethod\n    @cr.amp.custom_fwd(device_type='cpu')\n    def forward(ctx, x):\n        return 2 * x\n    @staticmethod\n"
        "    @cr.amp.custom_bwd(device_type='cpu')\n    def backward(ctx, g):\n        return 2 * g",
        "x = cr.ones(2)", "F.apply(x)"),
    "amp.get_autocast_dtype": "cr.amp.get_autocast_dtype('cpu')",
    "amp.is_autocast_available": "cr.amp.is_autocast_available('cpu')",
    **{
        f"amp.set_autocast_{name}": _s(f"old = cr.amp.{get}", f"cr.amp.set_autocast_{name}({args})", "old")
        for name, get, args in (
            ("cache_enabled", "is_autocast_cache_enabled()", "old"), ("cpu_dtype", "get_autocast_cpu_dtype()", "old"), ("cpu_enabled", "is_autocast_cpu_enabled()", "old"),
            ("dtype", "get_autocast_dtype('cpu')", "'cpu', old"), ("enabled", "is_autocast_enabled('cpu')", "'cpu', old"), ("gpu_dtype", "get_autocast_gpu_dtype()", "old"),
        )
    },
}  # fmt: skip
MODULE_EXAMPLES["amp.custom_bwd"] = MODULE_EXAMPLES["amp.custom_fwd"]
