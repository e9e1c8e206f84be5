"""Norms of two tensors: an RMS norm with a gate, the norms of queries and keys, and a layer norm
modulated by a condition. Made of the norms of rows and PyTorch's own ops."""
import torch
from torch import nn

from .._given import expect_sequences, expect_size
from . import functional
from ._fx import Proxy, leaf
from ._options import named
from .row_modules import RMSNorm


class GatedRMSNorm(nn.Module):
    """y = weight rms(x) g(z) for two tensors (..., size), or with norm_first=False
    y = weight rms(x g(z)). `gate` is "silu" or "sigmoid", `groups` the number of equal parts of a
    row that are normalized by themselves, rms(u) = u / sqrt(mean(u^2) + `eps`). The weight (size)
    starts at 1. Defaults as in Mamba-2's norm but for `norm_first`, which is False there. Dao & Gu
    2024; Qwen3-Next has silu, Kimi Linear sigmoid, both the norm first."""

    norm = "rms_norm"

    @named
    def __init__(self, size, *, gate="silu", norm_first=True, groups=1, eps=1e-5, device=None,
                 dtype=None):
        super().__init__()
        expect_size("size", size)
        expect_size("groups", groups)
        if size % groups:
            raise ValueError(f"GatedRMSNorm: size: expected a multiple of groups, {groups}, got "
                             f"{size}")
        if gate not in functional.GATES:
            raise ValueError(f"GatedRMSNorm: gate: expected {' or '.join(functional.GATES)}, got "
                             f"{gate!r}")
        self.size, self.gate, self.norm_first, self.groups, self.eps = (size, gate, norm_first,
                                                                        groups, eps)
        self.weight = nn.Parameter(torch.ones(size, device=device, dtype=dtype))

    def forward(self, x, z):
        if isinstance(x, Proxy):
            return leaf(self, x, z)
        functional.expect_row("GatedRMSNorm", x, (self.size,), "size")
        return functional.gated_rms_norm(x, z, self.weight, gate=self.gate, eps=self.eps,
                                         norm_first=self.norm_first, groups=self.groups)

    def extra_repr(self):
        return (f"{self.size}, gate={self.gate!r}, norm_first={self.norm_first}, "
                f"groups={self.groups}, eps={self.eps}")


class QKNorm(nn.Module):
    """The norms of queries and keys: forward(q, k) gives both.

    `kind` "rms": weight u / sqrt(mean(u^2) + `eps`), with the weights q_norm.weight and
    k_norm.weight, which start at 1. `kind` "l2": u / max(|u|, `eps`), without a weight; a scale of
    the scores is the attention's own.

    `across` "head": of each head, q and k (..., head_size) after the split, as in Qwen3. `across`
    "projection": of a whole row, q (..., heads head_size) before the split, as in OLMo 2; `heads`
    is the number of heads of q and k, or a pair of both. Henry et al. 2020."""

    norm = "rms_norm"

    @named
    def __init__(self, head_size, *, heads=None, kind="rms", across="head", eps=1e-6, device=None,
                 dtype=None):
        super().__init__()
        expect_size("head_size", head_size)
        for name, value, words in (("kind", kind, ("rms", "l2")),
                                   ("across", across, ("head", "projection"))):
            if value not in words:
                raise ValueError(f"QKNorm: {name}: expected {' or '.join(words)}, got {value!r}")
        if (heads is None) is (across == "projection"):
            expected = "those of q and k" if heads is None else "none, where heads are normalized"
            raise ValueError(f"QKNorm: heads: expected {expected}, got {heads}")
        pair = heads if isinstance(heads, (tuple, list)) else (1 if heads is None else heads,) * 2
        for count in pair:
            expect_size("heads", count)
        if len(pair) != 2:
            raise ValueError(f"QKNorm: heads: expected a number or a pair, got {heads}")
        self.kind, self.across, self.eps = kind, across, eps
        self.sizes = tuple(count * head_size for count in pair)
        if kind == "rms":
            self.q_norm, self.k_norm = (RMSNorm(size, eps=eps, device=device, dtype=dtype)
                                        for size in self.sizes)

    def forward(self, q, k):
        if isinstance(q, Proxy):
            return leaf(self, q, k)
        if self.kind == "rms":
            return self.q_norm(q), self.k_norm(k)
        return self._unit(q, self.sizes[0]), self._unit(k, self.sizes[1])

    def _unit(self, x, size):
        functional.expect_row("QKNorm", x, (size,), "size")
        return functional.scale_norm(x, x.new_ones(1), eps=self.eps)

    def extra_repr(self):
        return f"{self.sizes}, kind={self.kind!r}, across={self.across!r}, eps={self.eps}"


class AdaLayerNormZero(nn.Module):
    """adaLN-Zero: forward(x, c) gives (n(x) (1 + scale) + shift, gate) for a residual branch F:

        modulated, gate = norm(x, c)
        y = x + gate * F(modulated)

    x is (batch, ..., size) and c, a condition of each sequence such as a class or a time, (batch,
    conditions). n is a layer norm without weight and bias, with `eps`, and
    (shift, scale, gate) = silu(c) W^T + b, where W is modulation.weight (3 size, conditions) and b
    is modulation.bias (3 size). Both start at 0, and so y = x. The gate is (batch, 1, ..., 1,
    size); both results have the type of x. Peebles & Xie 2023."""

    norm = "layer_norm"

    @named
    def __init__(self, size, conditions, *, eps=1e-6, device=None, dtype=None):
        super().__init__()
        expect_size("size", size)
        expect_size("conditions", conditions)
        self.size, self.conditions, self.eps = size, conditions, eps
        self.modulation = _ZeroLinear(conditions, 3 * size, device=device, dtype=dtype)

    def forward(self, x, c):
        if isinstance(x, Proxy):
            return leaf(self, x, c)
        norm = "AdaLayerNormZero"
        functional.expect_row(norm, x, (self.size,), "size")
        functional.expect_tensor(norm, c, "c")
        expect_sequences(norm, x.shape, self.conditions, c=c.shape)
        condition = nn.functional.silu(c.to(self.modulation.weight.dtype))
        shift, scale, gate = self.modulation(condition).chunk(3, -1)
        modulated = functional.modulated_layer_norm(x, scale, shift, eps=self.eps)
        return modulated, functional.over_tokens(gate, x).to(x.dtype)

    def extra_repr(self):
        return f"{self.size}, conditions={self.conditions}, eps={self.eps}"


class _ZeroLinear(nn.Linear):
    """A linear layer whose weight and bias start at 0, also where reset_parameters starts a module
    that was made on the meta device."""

    def reset_parameters(self):
        nn.init.zeros_(self.weight)
        nn.init.zeros_(self.bias)
