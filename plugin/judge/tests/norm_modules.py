"""Modules as programs have them, right and wrong, for the tests that name what norms compute."""
import torch
import torch.nn.functional as F
from torch import nn


class Affine(nn.Module):
    """A gain and a bias, and the centred formula with its usual mistakes."""

    outside = unbiased = False
    axes = -1

    def __init__(self, width, eps=1e-5, shape=None):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(shape or width))
        self.bias = nn.Parameter(torch.zeros(shape or width))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(self.axes, keepdim=True)
        var = x.var(self.axes, keepdim=True, unbiased=self.unbiased)
        s = var.sqrt() + self.eps if self.outside else (var + self.eps).sqrt()
        return self.weight * (x - mean) / s + self.bias


class LayerNorm(Affine):
    pass


class LayerNorm1d(Affine):
    outside = True


class AnnotatedLayerNorm(Affine):
    outside = unbiased = True


class UnbiasedLayerNorm(Affine):
    unbiased = True


class BatchLayerNorm(Affine):
    """Takes its statistics over the batch."""

    axes = 0


class LayerNorm2d(Affine):
    """Over the channels of a pixel."""

    axes = 1

    def __init__(self, width, eps=1e-6):
        super().__init__(width, eps, (width, 1, 1))


class OtherEpsNorm(Affine):
    """Its attribute is not what it computes with."""

    def forward(self, x):
        return F.layer_norm(x, (x.shape[-1],), self.weight, self.bias, 1e-3)


class GemmaRMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.zeros(width)), 1e-6

    def forward(self, x):
        return x * (x.square().mean(-1, keepdim=True) + self.eps).rsqrt() * (1 + self.weight)


class CentredRMSNorm(Affine):
    pass


class MaxNorm(nn.Module):
    """No norm that is known."""

    def forward(self, x):
        return x / (x.abs().amax(-1, keepdim=True) + 1e-5)


class Plain(nn.Module):
    """Neither its name nor its class says that it is a norm."""

    def forward(self, x):
        return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt()


class Swish(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)


class PositionNorm(nn.Module):
    """Takes as many samples as it was made for."""

    def __init__(self, samples, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.samples = samples

    def forward(self, x):
        if len(x) != self.samples:
            raise RuntimeError("another number of samples")
        return F.layer_norm(x, (x.shape[-1],), self.weight)


class BrokenCopyNorm(Affine):
    def __deepcopy__(self, memo):
        raise TypeError("not to be copied")


ROWS, IMAGES, SEQUENCES, HEADS = (9, 12), (4, 12, 3, 5), (3, 12, 7), (2, 3, 5, 12)
# The module, the shape of its input, what is said of it, and of its name.
CASES = [
    (LayerNorm(12), ROWS, "LayerNorm: layernorm", ""),
    (LayerNorm1d(12), ROWS, "LayerNorm1d: layernorm with eps outside the root",
     "its name says layernorm with eps inside the root"),
    (LayerNorm1d(12), HEADS, "LayerNorm1d: layernorm with eps outside the root",
     "its name says layernorm with eps inside the root"),
    (LayerNorm1d(12, 1e-12), ROWS, "LayerNorm1d: layernorm with eps outside the root",
     "its name says layernorm with eps inside the root"),
    (AnnotatedLayerNorm(12), (5, 7, 12),
     "AnnotatedLayerNorm: layernorm with eps outside the root, its variance over n - 1",
     "its name says layernorm with eps inside the root, its variance over n"),
    (UnbiasedLayerNorm(12), ROWS,
     "UnbiasedLayerNorm: layernorm with its variance over n - 1",
     "its name says layernorm with its variance over n"),
    (BatchLayerNorm(12), ROWS, "BatchLayerNorm: batchnorm", "its name says layernorm"),
    (CentredRMSNorm(12), ROWS, "CentredRMSNorm: layernorm", "its name says rmsnorm"),
    (LayerNorm2d(12), IMAGES, "LayerNorm2d: layernorm", ""),
    (OtherEpsNorm(12), ROWS, "OtherEpsNorm: layernorm",
     "its eps says 1e-05, it computes with 0.001"),
    (GemmaRMSNorm(12), ROWS, "GemmaRMSNorm: rmsnorm with 1 added to its gain", ""),
    (GemmaRMSNorm(12), HEADS, "GemmaRMSNorm: rmsnorm with 1 added to its gain", ""),
    (MaxNorm(), ROWS, "MaxNorm: no norm that is known; the nearest is ", ""),
    (Plain(), ROWS, "Plain: rmsnorm", ""),
    (PositionNorm(9, 12), ROWS, "PositionNorm: layernorm", ""),
    (BrokenCopyNorm(12), ROWS, "BrokenCopyNorm: no norm that is known; could not be tried: "
                               "TypeError", ""),
    (nn.LayerNorm(12), (2, 3, 12), "LayerNorm: layernorm", ""),
    (nn.LayerNorm((3, 5)), IMAGES, "LayerNorm: layernorm", ""),
    (nn.RMSNorm(12), HEADS, "RMSNorm: rmsnorm", ""),
    (nn.GroupNorm(1, 12), IMAGES, "GroupNorm: groupnorm with 1 group", ""),
    (nn.GroupNorm(4, 12), SEQUENCES, "GroupNorm: groupnorm with 4 groups", ""),
    (nn.InstanceNorm2d(12, affine=True), IMAGES, "InstanceNorm2d: instancenorm", ""),
    (nn.InstanceNorm1d(12), SEQUENCES, "InstanceNorm1d: layernorm_simple", ""),
    (nn.BatchNorm1d(12), ROWS, "BatchNorm1d: batchnorm", ""),
    (nn.BatchNorm1d(12), SEQUENCES, "BatchNorm1d: batchnorm", ""),
    (nn.BatchNorm2d(12).eval(), IMAGES, "BatchNorm2d: batchnorm", ""),
    (nn.BatchNorm3d(12), (2, 12, 2, 3, 2), "BatchNorm3d: batchnorm", ""),
]
