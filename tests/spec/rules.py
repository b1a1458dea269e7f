"""The specification's rules, in our own words: what each operator must do at its delicate points.

A row is done when its operators give the right values in every transform (reverse, forward, all mixes of second order, vmap, and
vmap of each), for real and complex numbers where the operator takes complex ones, at the edge cases the row names.
"""

from __future__ import annotations

from dataclasses import dataclass

F = "nn.functional."


@dataclass(frozen=True)
class Row:
    """One rule: a short name, the public operators it needs, and what must hold."""

    id: str
    operators: tuple[str, ...]
    holds: str


def _row(id: str, operators: str, holds: str) -> Row:
    return Row(id, tuple(o.replace("F.", F, 1) if o.startswith("F.") else o for o in operators.split()), holds)


ROWS: tuple[Row, ...] = (
    # -- weight norm ----------------------------------------------------------------------------------------------------
    _row(
        "weight_norm.first",
        "_weight_norm_interface",
        "fused forward, dim 0; the norm is an output; f64, f32, and 16-bit types summed in f32",
    ),
    _row(
        "weight_norm.last",
        "_weight_norm_interface",
        "fused forward, last dim, the same whether one thread runs it or many",
    ),
    _row(
        "weight_norm.first.backward",
        "_weight_norm_interface_backward",
        "both gradients, dim 0, in one pass over each row",
    ),
    _row(
        "weight_norm.last.backward",
        "_weight_norm_interface_backward",
        "both gradients, last dim, for any number of threads and rows",
    ),
    _row(
        "norm_except_dim", "norm_except_dim", "any power; the whole tensor (-1), the first, the last and any middle dim"
    ),
    _row(
        "weight_norm.interface", "_weight_norm_interface", "returns weight and norm; the norm of 16-bit inputs is f32"
    ),
    _row(
        "weight_norm.interface.backward",
        "_weight_norm_interface_backward",
        "shapes that do not fit raise and name the argument; any memory layout",
    ),
    _row(
        "weight_norm",
        "_weight_norm",
        "fused where it can be, composed otherwise, with equal results; a tensor elsewhere is refused",
    ),
    _row(
        "weight_norm.second",
        "_weight_norm _weight_norm_differentiable_backward",
        "the second order counts the saved norm; first, last and any other dim",
    ),
    # -- vmap of the normalisations ---------------------------------------------------------------------------------------
    _row(
        "vmap.batch_norm",
        "native_batch_norm",
        "every combination of batched input, weight, bias and running statistics, training or not",
    ),
    _row("vmap.batch_norm.input_gradient", "native_batch_norm_backward", "the input's gradient under vmap"),
    _row(
        "vmap.batch_norm.backward",
        "native_batch_norm_backward",
        "the output mask is honoured; weight and bias gradients are per example",
    ),
    _row("vmap.group_norm", "native_group_norm", "any argument batched"),
    _row("vmap.group_norm.input_gradient", "native_group_norm_backward", "the input's gradient under vmap"),
    _row("vmap.group_norm.backward", "native_group_norm_backward", "the output mask is honoured"),
    _row(
        "vmap.layer_norm",
        "native_layer_norm",
        "weight or bias batched alone too; a wrong shape raises and names the argument",
    ),
    _row("vmap.layer_norm.input_gradient", "native_layer_norm_backward", "the input's gradient under vmap"),
    _row("vmap.layer_norm.backward", "native_layer_norm_backward", "the output mask is honoured"),
    _row(
        "vmap.batch_norm.accelerator",
        "cudnn_batch_norm miopen_batch_norm cudnn_batch_norm_backward miopen_batch_norm_backward",
        "the accelerators' entry points and their backward functions give the results of the general rule; the reserve of cudnn; every subset batched",
    ),
    _row(
        "vmap.batch_norm.functional",
        "_native_batch_norm_legit _native_batch_norm_legit_no_training",
        "with and without running statistics",
    ),
    _row(
        "vmap.escaped", "vmap", "a batched tensor used after its vmap has ended raises, and never gives a wrong value"
    ),
    _row("vmap.levels", "vmap func.grad", "vmap of vmap, vmap of grad, grad of vmap unwrap in the right order"),
    # -- nested tensors -----------------------------------------------------------------------------------------------------
    _row("nested.matmul", "nested.nested_tensor matmul", "gradients of both operands"),
    _row("nested.linear", "nested.nested_tensor F.linear", "gradients of input, weight and bias, each alone too"),
    _row("nested.softmax", "nested.nested_tensor F.softmax", "any dim but that of the components; an empty nest"),
    _row("nested.sum", "nested.nested_tensor sum", "over the last dim, kept or not"),
    _row("nested.select", "nested.nested_tensor select", "the gradient lands in the selected slice"),
    _row(
        "nested.activations",
        "nested.nested_tensor F.gelu F.relu F.silu F.threshold",
        "relu, silu, threshold, both forms of gelu",
    ),
    _row(
        "nested.layer_norm", "nested.nested_tensor F.layer_norm", "gradients of input, weight and bias; an empty nest"
    ),
    # -- pointwise, reductions, scans -----------------------------------------------------------------------------------------
    _row(
        "norm",
        "norm linalg.vector_norm",
        "orders 0, 1, 2, inf, below 1, between 1 and 2, above 2; zero vectors get zero; ties share at inf; complex",
    ),
    _row("copysign", "copysign", "zero input"),
    _row(
        "missing_rule",
        "custom_op linalg.ldl_factor linalg.ldl_solve geqrf unique histogram",
        "a rule that is missing raises and names the operator, in every mode; a derivative that exists is never a silent zero",
    ),
    _row("real_inputs", "mul real add", "real inputs get real gradients where the cotangent is complex"),
    _row("extrema", "amax amin aminmax max min", "ties share the gradient"),
    _row("pow", "pow float_power", "exponent 0, base 0, complex base or exponent, number as base"),
    _row("angle", "angle sgn polar abs", "complex and zero"),
    _row("mvlgamma", "mvlgamma", "real orders, any p"),
    _row("masked", "masked_fill masked_scatter", "number and tensor values; masks that broadcast"),
    _row("mul_div", "mul div", "rounding modes have zero gradients; complex"),
    _row("permute_degrees", "permute rad2deg deg2rad", "any order of dims; real numbers"),
    _row("sum", "sum nansum mean", "several dims, kept dims, empty dims, NaN left out"),
    _row("prod", "prod", "no zero, one and many; whole or by dim; complex; differentiable again"),
    _row("cumulative", "cumsum cumprod", "zeros inside the scan"),
    _row("logsumexp", "logsumexp logcumsumexp", "no overflow; -inf; complex"),
    _row("unbind", "unbind", "some outputs unused; nested"),
    _row("join", "cat stack block_diag", "mixed dtypes; legacy empty operands"),
    _row("clamp", "clamp", "bounds that are tensors or numbers; NaN; gradients of the bounds"),
    # -- convolution, products, sparse ------------------------------------------------------------------------------------------
    _row(
        "convolution",
        " ".join(f"F.conv{k}{d}d" for k in ("", "_transpose") for d in (1, 2, 3)),
        "stride, padding, dilation, groups, bias, transposed",
    ),
    _row(
        "matmul",
        "mm bmm mv matmul F.linear addmm addbmm baddbmm addmv addr",
        "any layout, alpha and beta, one-dimensional operands",
    ),
    _row(
        "sparse",
        "sparse_coo_tensor sparse_csr_tensor sparse.mm sparse.sampled_addmm Tensor.to_sparse Tensor.to_sparse_csr Tensor.sparse_mask",
        "products, masks, conversions and values, coordinates and rows",
    ),
    _row(
        "sparse.branches",
        "log1p mm sparse.mm sparse_coo_tensor sparse_csr_tensor Tensor.to_dense",
        "functions and products of a sparse input: the gradient on the pattern, dense where the mathematics asks for it",
    ),
    _row("renorm", "renorm", "slices above and below the bound"),
    _row("repeat", "Tensor.repeat tile Tensor.expand repeat_interleave", "zero repeats"),
    _row(
        "dropout",
        "F.dropout F.alpha_dropout F.feature_alpha_dropout F.dropout2d native_dropout",
        "probability 0 and 1; any order",
    ),
    _row(
        "whole_extrema",
        "median nanmedian kthvalue mode max min",
        "over the whole tensor; ties share where the whole is reduced",
    ),
    _row("variance", "var std var_mean std_mean", "any correction, also one at least as large as the count; std at 0"),
    # -- linear algebra ------------------------------------------------------------------------------------------------------
    _row("cholesky", "linalg.cholesky cholesky_inverse cholesky_solve", "upper and lower, batched, complex"),
    _row("pinv", "linalg.pinv", "wide, tall, hermitian"),
    # -- shapes, pooling, activations, losses ----------------------------------------------------------------------------------
    _row("split", "split chunk tensor_split", "sizes and counts; nested too"),
    _row(
        "pool",
        " ".join(f"F.{k}max_pool{d}d" for k in ("", "adaptive_") for d in (1, 2, 3))
        + " F.fractional_max_pool2d F.fractional_max_pool3d",
        "every order, where others stop at the first",
    ),
    _row("glu", "F.glu", "any dim, any order"),
    _row("silu", "F.silu F.mish logit", "any order"),
    _row(
        "activations",
        "F.elu F.softplus F.logsigmoid F.softmax F.log_softmax F.gelu F.threshold F.hardswish F.hardsigmoid F.leaky_relu F.rrelu F.prelu",
        "first to third order",
    ),
    _row(
        "bce",
        "F.binary_cross_entropy F.binary_cross_entropy_with_logits",
        "weight, pos_weight, every reduction, the target's gradient",
    ),
    _row(
        "losses",
        "F.mse_loss F.l1_loss F.smooth_l1_loss F.huber_loss F.soft_margin_loss F.kl_div F.multi_margin_loss "
        "F.multilabel_margin_loss F.nll_loss F.cross_entropy",
        "every reduction",
    ),
    _row("as_strided", "as_strided as_strided_scatter", "geometries that overlap, in the input and in the output"),
    _row("special", "atan2 sinc log1p special.i1 special.i1e digamma polygamma", "at 0 and at the branch points"),
    _row(
        "indexing",
        "select diagonal Tensor.unfold take gather scatter index_put index_add index_copy index_fill index_select",
        "negative steps and indices, repeated indices, None, boolean masks",
    ),
    _row(
        "scatter_reduce",
        "scatter_reduce index_reduce segment_reduce",
        "sum, prod, mean, amax, amin; with and without self; zeros in prod",
    ),
    _row(
        "svd", "linalg.svd linalg.svdvals", "full and thin; wide and tall; a result that depends on the phases raises"
    ),
    _row(
        "eig",
        "linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh",
        "hermitian and not; a result that depends on the phases raises",
    ),
    _row("lstsq", "linalg.lstsq", "tall, wide, several right-hand sides"),
    _row("qr", "linalg.qr", "reduced, complete where it is defined, r alone raises; wide and tall"),
    _row("matrix_exp", "linalg.matrix_exp", "reverse and forward"),
    _row("det", "linalg.det linalg.slogdet logdet", "singular matrices"),
    _row(
        "triangular",
        "triangular_solve linalg.solve_triangular",
        "left or right, upper or lower, unit diagonal, transposed",
    ),
    _row(
        "solve",
        "linalg.solve linalg.inv linalg.lu_solve lu_solve",
        "vectors on the right-hand side, adjoint, left or right",
    ),
    _row("lu", "linalg.lu linalg.lu_factor lu_unpack", "square, wide, tall, with pivots or without"),
    _row("householder", "linalg.householder_product ormqr", "left or right, transposed"),
    # -- the rest -----------------------------------------------------------------------------------------------------------
    _row(
        "fft",
        "fft.fft fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft fft.fft2 fft.rfftn fft.irfftn stft istft",
        "every norm; one-sided or not; shorter and longer signals",
    ),
    _row("batch_norm", "F.batch_norm native_batch_norm_backward", "training and not; every mask"),
    _row("layer_norm", "F.layer_norm native_layer_norm", "with and without weight and bias; mean and rstd as outputs"),
    _row("group_norm", "F.group_norm native_group_norm", "mean and rstd are differentiable outputs too"),
    _row(
        "bilinear",
        "F.bilinear _trilinear",
        "with and without bias; the sum of products of three as an operator; each input",
    ),
    _row("pad", "F.pad", "constant, reflect, replicate, circular; negative pads"),
    _row("embedding", "F.embedding F.embedding_bag", "padding_idx, scale_grad_by_freq, per_sample_weights"),
    _row("ctc_loss", "F.ctc_loss", "zero_infinity; any order"),
    _row("recurrent", "lstm gru rnn_tanh rnn_relu", "both directions, several layers, batch_first, without bias"),
    _row(
        "nested.from_padded",
        "nested.nested_tensor nested.from_padded _nested_from_padded",
        "the gradient of what was padding is zero; with and without transposed heads",
    ),
    _row("to", "Tensor.to", "real to complex and back, between floats"),
    _row("warning", "_test_warn_in_autograd", "an identity whose derivative warns, once a backward"),
    _row("chosen_indices", "sort topk kthvalue cummax cummin", "forward mode through the chosen indices"),
    _row(
        "distances_sampling_attention",
        "cdist F.pdist F.grid_sample F.interpolate F.scaled_dot_product_attention",
        "forward mode and second order",
    ),
    _row(
        "batch_norm.forward",
        "native_batch_norm F.batch_norm",
        "tangents of running statistics are refused in training and count in evaluation",
    ),
    _row(
        "some_outputs",
        "linalg.svd linalg.qr linalg.eig linalg.lu lu_unpack linalg.slogdet var_mean native_group_norm native_layer_norm native_batch_norm",
        "each output alone, each pair, all; forward and reverse",
    ),
    _row(
        "gauge",
        "linalg.svd linalg.eig linalg.eigh",
        "a loss that depends on phases raises at any scale, and no other does, in single precision too; the terms of full matrices",
    ),
    _row("embedding.max_norm", "F.embedding F.embedding_bag", "every mode and order, rows inside and outside the norm"),
    _row("scatter_reduce.second", "scatter_reduce index_reduce", "products with more than one zero at second order"),
    _row(
        "vmap.batch_norm.evaluation",
        "native_batch_norm cudnn_batch_norm miopen_batch_norm",
        "saved mean and rstd have no elements; the running statistics are what is used",
    ),
    _row(
        "vmap.norm_backward",
        "native_batch_norm_backward native_group_norm_backward native_layer_norm_backward",
        "saved statistics, running statistics and bias batched in every combination; masks that are all off; no weight; wrong shapes while batched",
    ),
)

BY_ID = {r.id: r for r in ROWS}
