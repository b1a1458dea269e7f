"""Tables of vectors, looked up by number."""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from .. import functional as F
from .. import init
from ..module import Module
from ..parameter import Parameter
from .linear import blank


class Embedding(Module):
    """Rows of a table: ``weight[input]``."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError(
                    f"Embedding: padding_idx must be within num_embeddings ({num_embeddings}), got {padding_idx}"
                )
            padding_idx %= num_embeddings
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        if _weight is None:
            self.weight = blank(num_embeddings, embedding_dim, dtype=dtype, device=device)
            self.reset_parameters()
        else:
            _check_table("Embedding", _weight, num_embeddings, embedding_dim)
            self.weight = Parameter(_weight, not _freeze)  # a frozen table may be one of integers
        self.weight.requires_grad_(not _freeze)

    def reset_parameters(self) -> None:
        """Normal numbers; zeros in the padding row."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            w = self.weight.detach().numpy().copy()
            w[self.padding_idx] = 0
            init._fill(self.weight, w)

    def forward(self, input: Tensor) -> Tensor:
        """``weight[input]``."""
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """A module around a given table."""
        if embeddings.ndim != 2:
            raise AssertionError(
                f"from_pretrained: embeddings must be 2-dimensional, got shape {tuple(embeddings.shape)}"
            )
        rows, columns = embeddings.shape
        return cls(
            rows,
            columns,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight=embeddings,
            _freeze=freeze,
        )

    def extra_repr(self) -> str:
        """The sizes and the options that were chosen."""
        return _shown(self, f"{self.num_embeddings}, {self.embedding_dim}")


class EmbeddingBag(Module):
    """Rows of a table, summed, averaged or maximised in bags."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError(
                    f"EmbeddingBag: padding_idx must be within num_embeddings ({num_embeddings}), got {padding_idx}"
                )
            padding_idx %= num_embeddings
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.max_norm, self.norm_type, self.mode = max_norm, norm_type, mode
        self.scale_grad_by_freq, self.sparse, self.include_last_offset = scale_grad_by_freq, sparse, include_last_offset
        if _weight is None:
            self.weight = blank(num_embeddings, embedding_dim, dtype=dtype, device=device)
            self.reset_parameters()
        else:
            _check_table("EmbeddingBag", _weight, num_embeddings, embedding_dim)
            self.weight = Parameter(_weight)

    def reset_parameters(self) -> None:
        """Normal numbers; zeros in the padding row."""
        Embedding.reset_parameters(self)  # type: ignore[arg-type]

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """The bags: the rows of a 2-D input, or segments that begin at `offsets`."""
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """A module around a given table."""
        if embeddings.ndim != 2:
            raise AssertionError(
                f"from_pretrained: embeddings must be 2-dimensional, got shape {tuple(embeddings.shape)}"
            )
        rows, columns = embeddings.shape
        bag = cls(
            rows,
            columns,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            embeddings,
            include_last_offset,
            padding_idx,
        )
        bag.weight.requires_grad_(not freeze)
        return bag

    def extra_repr(self) -> str:
        """The sizes and the options that were chosen."""
        return _shown(self, f"{self.num_embeddings}, {self.embedding_dim}", f", mode={self.mode!r}")


def _check_table(name: str, weight: Tensor, rows: int, columns: int) -> None:
    if list(weight.shape) != [rows, columns]:
        raise AssertionError(
            f"{name}: Shape of weight does not match num_embeddings and embedding_dim, got {list(weight.shape)}"
        )


def _shown(m: Any, head: str, tail: str = "") -> str:
    """The options of a table that differ from the defaults."""
    parts = [head]
    if tail:  # a bag names its norms before its mode
        middle, end = ["max_norm", "norm_type", "scale_grad_by_freq"], ["padding_idx"]
    else:
        middle, end = ["padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse"], []
    defaults = {"norm_type": 2, "scale_grad_by_freq": False, "sparse": False}

    def some(names: list[str]) -> str:
        return "".join(f", {k}={getattr(m, k)}" for k in names if getattr(m, k) != defaults.get(k))

    return "".join([*parts, some(middle), tail, some(end)])


__all__ = ["Embedding", "EmbeddingBag"]
