"""Name, function, first line and options of the modules that only hold options."""

from __future__ import annotations

import inspect
from typing import Any

NEEDED = inspect.Parameter.empty
Entry = tuple[str, str, str, dict[str, Any]]
_REDUCED = {"size_average": None, "reduce": None, "reduction": "mean"}

ACTIVATIONS: list[Entry] = [
    ("ReLU", "relu", "``max(x, 0)``.", {"inplace": False}),
    ("ReLU6", "relu6", "``min(max(x, 0), 6)``.", {"inplace": False}),
    (
        "LeakyReLU",
        "leaky_relu",
        "``x`` above 0, ``negative_slope x`` below.",
        {"negative_slope": 0.01, "inplace": False},
    ),
    ("ELU", "elu", "``x`` above 0, ``alpha (exp(x) - 1)`` below.", {"alpha": 1.0, "inplace": False}),
    ("CELU", "celu", "``max(x, 0) + min(0, alpha (exp(x / alpha) - 1))``.", {"alpha": 1.0, "inplace": False}),
    ("SELU", "selu", "The self-normalising ELU.", {"inplace": False}),
    ("GELU", "gelu", "``x Phi(x)`` with the normal distribution function.", {"approximate": "none"}),
    ("SiLU", "silu", "``x sigmoid(x)``.", {"inplace": False}),
    ("Mish", "mish", "``x tanh(softplus(x))``.", {"inplace": False}),
    ("Hardtanh", "hardtanh", "x clipped to an interval.", {"min_val": -1.0, "max_val": 1.0, "inplace": False}),
    ("Hardsigmoid", "hardsigmoid", "``clip(x / 6 + 1/2, 0, 1)``.", {"inplace": False}),
    ("Hardswish", "hardswish", "``x hardsigmoid(x)``.", {"inplace": False}),
    ("Hardshrink", "hardshrink", "0 within +-lambd, x outside.", {"lambd": 0.5}),
    ("Softshrink", "softshrink", "x moved towards 0 by lambd.", {"lambd": 0.5}),
    ("Tanhshrink", "tanhshrink", "``x - tanh(x)``.", {}),
    ("Softplus", "softplus", "``log(1 + exp(beta x)) / beta``.", {"beta": 1.0, "threshold": 20.0}),
    ("Softsign", "softsign", "``x / (1 + |x|)``.", {}),
    ("LogSigmoid", "logsigmoid", "``log(sigmoid(x))``.", {}),
    (
        "Threshold",
        "threshold",
        "x above a threshold, else a value.",
        {"threshold": NEEDED, "value": NEEDED, "inplace": False},
    ),
    ("GLU", "glu", "The first half of `dim` times the sigmoid of the second.", {"dim": -1}),
    ("Softmax", "softmax", "``exp(x) / sum(exp(x))`` along `dim`.", {"dim": None}),
    ("Softmin", "softmin", "The softmax of ``-x`` along `dim`.", {"dim": None}),
    ("LogSoftmax", "log_softmax", "``x - log(sum(exp(x)))`` along `dim`.", {"dim": None}),
]

SHAPES: list[Entry] = [
    ("CosineSimilarity", "cosine_similarity", "``<x1, x2> / (|x1| |x2|)`` along `dim`.", {"dim": 1, "eps": 1e-8}),
    (
        "PairwiseDistance",
        "pairwise_distance",
        "``|x1 - x2 + eps|_p`` over the last dim.",
        {"p": 2.0, "eps": 1e-6, "keepdim": False},
    ),
    ("PixelShuffle", "pixel_shuffle", "[C r r, H, W] as [C, H r, W r].", {"upscale_factor": NEEDED}),
    ("PixelUnshuffle", "pixel_unshuffle", "[C, H r, W r] as [C r r, H, W].", {"downscale_factor": NEEDED}),
    ("ChannelShuffle", "channel_shuffle", "The channels of groups interleaved.", {"groups": NEEDED}),
    (
        "LocalResponseNorm",
        "local_response_norm",
        "``x / (k + alpha mean(x**2))**beta``, the mean over neighbouring channels.",
        {"size": NEEDED, "alpha": 1e-4, "beta": 0.75, "k": 1.0},
    ),
]

LOSSES: list[Entry] = [
    ("L1Loss", "l1_loss", "``|x - y|``.", _REDUCED),
    ("MSELoss", "mse_loss", "``(x - y)**2``.", _REDUCED),
    ("SmoothL1Loss", "smooth_l1_loss", "Quadratic within +-beta, linear outside.", {**_REDUCED, "beta": 1.0}),
    ("HuberLoss", "huber_loss", "Quadratic within +-delta, linear outside.", {"reduction": "mean", "delta": 1.0}),
    (
        "CrossEntropyLoss",
        "cross_entropy",
        "``-log softmax(x)[y]``.",
        {
            "weight": None,
            "size_average": None,
            "ignore_index": -100,
            "reduce": None,
            "reduction": "mean",
            "label_smoothing": 0.0,
            "class_dim": 1,
        },
    ),
    (
        "NLLLoss",
        "nll_loss",
        "``-x[y]`` of log-probabilities.",
        {
            "weight": None,
            "size_average": None,
            "ignore_index": -100,
            "reduce": None,
            "reduction": "mean",
            "class_dim": 1,
        },
    ),
    ("BCELoss", "binary_cross_entropy", "``-y log x - (1 - y) log(1 - x)``.", {"weight": None, **_REDUCED}),
    (
        "BCEWithLogitsLoss",
        "binary_cross_entropy_with_logits",
        "Binary cross entropy of ``sigmoid(x)``.",
        {"weight": None, **_REDUCED, "pos_weight": None},
    ),
    ("KLDivLoss", "kl_div", "``y (log y - x)`` of log-probabilities x.", {**_REDUCED, "log_target": False}),
    (
        "PoissonNLLLoss",
        "poisson_nll_loss",
        "``exp(x) - y x``.",
        {"log_input": True, "full": False, "size_average": None, "eps": 1e-8, "reduce": None, "reduction": "mean"},
    ),
    (
        "GaussianNLLLoss",
        "gaussian_nll_loss",
        "``(log v + (x - y)**2 / v) / 2``.",
        {"full": False, "eps": 1e-6, "reduction": "mean"},
    ),
    ("SoftMarginLoss", "soft_margin_loss", "``log(1 + exp(-y x))``.", _REDUCED),
    (
        "HingeEmbeddingLoss",
        "hinge_embedding_loss",
        "x where y is 1, ``max(0, margin - x)`` where it is -1.",
        {"margin": 1.0, **_REDUCED},
    ),
    ("MarginRankingLoss", "margin_ranking_loss", "``max(0, -y (x1 - x2) + margin)``.", {"margin": 0.0, **_REDUCED}),
    (
        "CosineEmbeddingLoss",
        "cosine_embedding_loss",
        "``1 - cos`` where y is 1, ``max(0, cos - margin)`` where it is -1.",
        {"margin": 0.0, **_REDUCED},
    ),
    (
        "TripletMarginLoss",
        "triplet_margin_loss",
        "``max(0, d(a, p) - d(a, n) + margin)``.",
        {"margin": 1.0, "p": 2.0, "eps": 1e-6, "swap": False, **_REDUCED},
    ),
    (
        "TripletMarginWithDistanceLoss",
        "triplet_margin_with_distance_loss",
        "``max(0, d(a, p) - d(a, n) + margin)`` with a distance of your own.",
        {"distance_function": None, "margin": 1.0, "swap": False, "reduction": "mean"},
    ),
    (
        "MultiMarginLoss",
        "multi_margin_loss",
        "``max(0, margin - x[y] + x[i])**p``.",
        {"p": 1, "margin": 1.0, "weight": None, **_REDUCED},
    ),
    ("MultiLabelMarginLoss", "multilabel_margin_loss", "The margins of several right classes.", _REDUCED),
    (
        "MultiLabelSoftMarginLoss",
        "multilabel_soft_margin_loss",
        "Binary cross entropy of each class.",
        {"weight": None, **_REDUCED},
    ),
    (
        "CTCLoss",
        "ctc_loss",
        "The probability of all alignments of a sequence.",
        {"blank": 0, "reduction": "mean", "zero_infinity": False},
    ),
]

_DROPOUT = {"p": 0.5, "inplace": False}
RANDOM: list[Entry] = [
    ("Dropout", "dropout", "In training, zero with probability p, else ``x / (1 - p)``.", _DROPOUT),
    ("Dropout1d", "dropout1d", "Dropout of whole channels [N, C, L].", _DROPOUT),
    ("Dropout2d", "dropout2d", "Dropout of whole channels [N, C, H, W].", _DROPOUT),
    ("Dropout3d", "dropout3d", "Dropout of whole channels [N, C, D, H, W].", _DROPOUT),
    ("AlphaDropout", "alpha_dropout", "Dropout that keeps mean and variance behind a SELU.", _DROPOUT),
    ("FeatureAlphaDropout", "feature_alpha_dropout", "AlphaDropout of whole channels.", _DROPOUT),
    (
        "RReLU",
        "rrelu",
        "Leaky ReLU with a random slope in training.",
        {"lower": 1 / 8, "upper": 1 / 3, "inplace": False},
    ),
]
