"""Layers without a constructor or a state of their own: only a forward, for programs that put it in
the place of another module's, as hubs of kernels do. The module that is there keeps its parameters.

    import types
    from keel_norms.torch import layers

    norm.forward = types.MethodType(layers.RMSNorm.forward, norm)"""
import torch
from torch import nn

from . import functional


class _Layer(nn.Module):
    """The members that hubs ask of a layer beside its forward."""

    can_torch_compile = True
    has_backward = True

    weight: torch.Tensor


class LayerNorm(_Layer):
    """For torch.nn.LayerNorm, and modules with its weight, bias, normalized_shape and eps."""

    bias: torch.Tensor

    def forward(self, input):  # noqa: A002 the name that PyTorch has
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


def _rms_norm(x, weight, eps, offset=0.0):
    return functional.rms_norm(x, weight.shape, weight, eps, offset=offset)


class RMSNorm(_Layer):
    """For the RMS norms of language models: a weight of one axis, and variance_epsilon."""

    variance_epsilon: float

    def forward(self, hidden_states):
        return _rms_norm(hidden_states, self.weight, self.variance_epsilon)


class OffsetRMSNorm(_Layer):
    """For RMS norms that keep weight - 1, and eps."""

    eps: float

    def forward(self, x):
        return _rms_norm(x, self.weight, self.eps, 1.0)


__all__ = ["LayerNorm", "OffsetRMSNorm", "RMSNorm"]
