"""Layers without a constructor or a state of their own: only a forward, for programs that put it in
the place of another module's, as hubs of kernels do. The module that is there keeps its parameters.

    import types
    from keel_norms.torch import layers

    norm.forward = types.MethodType(layers.RMSNorm.forward, norm)

RMSNorm, RMSNormGated and RMSNormZeroCentered have the names by which Hugging Face transformers asks
for kernels; kernel_mapping gives them to its package `kernels`."""
import pathlib

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


class RMSNormZeroCentered(_Layer):
    """For RMS norms that keep weight - 1, and eps, as in Gemma and Qwen3.5."""

    eps: float

    def forward(self, x):
        return _rms_norm(x, self.weight, self.eps, 1.0)


class RMSNormGated(_Layer):
    """For RMS norms whose result is multiplied by a gate, as in Qwen3-Next and Kimi Linear:
    variance_epsilon, and activation, "silu" or "sigmoid"."""

    variance_epsilon: float
    activation: str

    def forward(self, hidden_states, gate=None):
        return functional.gated_rms_norm(hidden_states, gate, self.weight, gate=self.activation,
                                         eps=self.variance_epsilon)


class MambaRMSNormGated(_Layer):
    """For the norm of Mamba-2, which multiplies by silu(gate) first, if there is a gate:
    variance_epsilon and, where groups are normalized by themselves, group_size."""

    variance_epsilon: float

    def forward(self, hidden_states, gate=None):
        size = hidden_states.shape[-1]
        groups = size // getattr(self, "group_size", size)
        if gate is None:
            return functional.grouped_rms_norm(hidden_states, self.weight, groups,
                                               self.variance_epsilon)
        return functional.gated_rms_norm(hidden_states, gate, self.weight, norm_first=False,
                                         groups=groups, eps=self.variance_epsilon)


def kernel_mapping():
    """The layers for CPUs as a mapping of the package `kernels`, for its use_kernel_mapping and
    register_kernel_mapping. They are for training and inference, with torch.compile and without."""
    try:
        from kernels import LocalLayerRepository
    except ImportError as error:
        raise ImportError("kernel_mapping: expected the package kernels of Hugging Face, 0.17 or "
                          f"newer (pip install kernels): {error}") from error
    folder = pathlib.Path(__file__).parent / "kernel"
    return {name: {"cpu": LocalLayerRepository(repo_path=folder, layer_name=name)}
            for name in __all__ if name != "LayerNorm"}


__all__ = ["LayerNorm", "MambaRMSNormGated", "RMSNorm", "RMSNormGated", "RMSNormZeroCentered"]
