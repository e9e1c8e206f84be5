"""Norms of a row: no state, and a result that does not depend on other rows. `norm` is keel's op,
by which the docs have formula and paper of a module."""
import torch
from torch import nn

from . import functional
from ._autograd import row


class NoFastPath:
    """A norm that torch.nn.TransformerEncoderLayer must call: where both of its norms have the same
    `eps`, that layer computes layer norms itself in evaluation and calls neither."""

    eps = float("nan")  # equal to no number, not to itself either


class LayerNorm(nn.LayerNorm):
    """torch.nn.LayerNorm on keel's kernels."""

    norm = "layer_norm"

    def forward(self, x):
        weight, shape = self.weight, self.normalized_shape
        if weight is None:
            return functional.layer_norm(x, shape, None, None, self.eps)
        # The op holds x to the weight's shape.
        return row("layer_norm", (("axes", len(shape)), ("eps", self.eps)), x, weight, self.bias)


class LayerNormSimple(NoFastPath, nn.Module):
    """Layer norm without weight and bias. Xu et al. 2019, equation 2."""

    norm = "layer_norm"

    def __init__(self, normalized_shape, eps=1e-5):
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.added = eps

    def forward(self, x):
        return functional.layer_norm(x, self.normalized_shape, eps=self.added)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.added}"


class RMSNorm(nn.RMSNorm):
    """torch.nn.RMSNorm on keel's kernels. With offset=1 the weight is offset by one and starts at
    0, as some models keep it. With cast_first the normalized x is cast to its type in front of the
    product with the weight, as Llama does, not after it."""

    norm = "rms_norm"
    cast_first = False  # in modules that were pickled without it, too

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, offset=0.0, **factory):
        cast_first = factory.pop("cast_first", False)
        super().__init__(normalized_shape, eps, elementwise_affine, **factory)
        self.offset, self.cast_first = offset, cast_first
        if offset and elementwise_affine:
            nn.init.constant_(self.weight, 1 - offset)

    def forward(self, x):
        norm = functional.rms_norm_cast_first if self.cast_first else functional.rms_norm
        return norm(x, self.normalized_shape, self.weight, self.eps, self.offset)


class GroupNorm(nn.GroupNorm):
    """torch.nn.GroupNorm on keel's kernels."""

    norm = "group_norm"

    def forward(self, x):
        return functional.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)


class _InstanceNorm:
    def forward(self, x):
        self._check_input_dim(x)
        if self.track_running_stats:
            raise NotImplementedError("instance norm: running statistics are not kept")
        batch = x if x.dim() == self.axes else x.unsqueeze(0)
        return functional.instance_norm(batch, self.weight, self.bias, self.eps).reshape(x.shape)


class InstanceNorm1d(_InstanceNorm, nn.InstanceNorm1d):
    """torch.nn.InstanceNorm1d on keel's kernels, without running statistics."""

    norm = "instance_norm"
    axes = 3


class InstanceNorm2d(_InstanceNorm, nn.InstanceNorm2d):
    """torch.nn.InstanceNorm2d on keel's kernels, without running statistics."""

    norm = "instance_norm"
    axes = 4


class AdaNorm(NoFastPath, nn.Module):
    """functional.ada_norm. Xu et al. 2019."""

    norm = "ada_norm"

    def __init__(self, C=1.0, k=0.1, eps=1e-5):  # noqa: N803 the paper's letter
        super().__init__()
        self.C, self.k, self.added = C, k, eps

    def forward(self, x):
        return functional.ada_norm(x, self.C, self.k, self.added)

    def extra_repr(self):
        return f"C={self.C}, k={self.k}, eps={self.added}"


class DetachNorm(NoFastPath, nn.Module):
    """functional.detach_norm. Xu et al. 2019."""

    norm = "detach_norm"

    def __init__(self, eps=1e-5, detach_mean=True, detach_variance=True):
        super().__init__()
        self.added, self.detach_mean, self.detach_variance = eps, detach_mean, detach_variance

    def forward(self, x):
        return functional.detach_norm(x, self.added, self.detach_mean, self.detach_variance)


class ScaleNorm(NoFastPath, nn.Module):
    """functional.scale_norm; the gain starts at sqrt(num_features). Nguyen & Salazar 2019."""

    norm = "scale_norm"

    def __init__(self, num_features, eps=1e-5, device=None, dtype=None):
        super().__init__()
        self.gain = nn.Parameter(torch.full((1,), num_features**0.5, device=device, dtype=dtype))
        self.added = eps

    def forward(self, x):
        return functional.scale_norm(x, self.gain, self.added)


class GroupScaling(NoFastPath, nn.Module):
    """functional.group_scaling. Shen et al. 2020, appendix A.1."""

    norm = "group_scaling"

    def __init__(self, groups=1, eps=1e-5):
        super().__init__()
        self.groups, self.added = groups, eps

    def forward(self, x):
        return functional.group_scaling(x, self.groups, self.added)


def _shape(normalized_shape):
    return (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
