"""Normalisations: layer, batch, group, weight.

PyTorch's names stand in `layer`, `batch`, `group` and `weight`, the fused ops below them in `rows` (layer and RMS norm), `channels` (batch
norm) and `groups` (group and instance norm); weight norm has both in one file. `base` is what they share, `accelerators` has the batch norms
of accelerators' libraries.
"""
