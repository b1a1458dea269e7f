"""The version of PyTorch whose names and behaviour are meant."""

__version__ = "2.13.0"
debug = False
cuda = hip = xpu = rocm = None
git_version = "chainrule"
