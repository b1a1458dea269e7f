"""Modules that programs written for PyTorch import beside the mathematics; see the README of this folder."""

from __future__ import annotations

NAMES = (
    "accelerator", "backends", "compiler", "cpu", "cuda", "futures", "fx", "hub", "library", "mps", "mtia", "multiprocessing", "profiler",
    "serialization", "torch_version", "torchscript", "types", "version", "xpu",
)  # fmt: skip
