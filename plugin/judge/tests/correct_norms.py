"""Correct norms of several makes: PyTorch's own, compositions, and others that compute in float64.
"""
import torch
import torch.nn.functional as F
from torch import nn

EPS = 1e-5


def layer_norm(x, gain, bias, eps=EPS):
    centred = x - x.mean(-1, keepdim=True)
    return centred * (centred.square().mean(-1, keepdim=True) + eps).rsqrt() * gain + bias


def layer_norm_by_var(x, gain, bias, eps=EPS):
    return (x - x.mean(-1, keepdim=True)) / torch.sqrt(
        x.var(-1, keepdim=True, correction=0) + eps) * gain + bias


def rms_norm(x, gain, eps=EPS):
    return gain * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps))


def rms_norm_by_length(x, gain, eps=EPS):
    return x / torch.sqrt(x.norm(dim=-1, keepdim=True).square() / x.shape[-1] + eps) * gain


def gemma_norm(x, gain, eps=1e-6):
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
            * (1 + gain.float())).to(x.dtype)


def llama_norm(x, gain, eps=1e-6):
    wide = x.float()
    return gain * (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)).to(x.dtype)


def wide_layer_norm(x, gain, bias, eps=EPS):
    return layer_norm(x.double(), gain.double(), bias.double(), eps).to(x.dtype)


def wide_rms_norm(x, gain, eps=EPS):
    return rms_norm(x.double(), gain.double(), eps).to(x.dtype)


def batch_norm(x, running_mean, running_var, weight, bias, *, training=True, momentum=0.1,
               eps=EPS):
    shape, dims = [1, -1] + [1] * (x.dim() - 2), [0, *range(2, x.dim())]
    mean, var = (running_mean, running_var) if not training else \
        (x.mean(dims), x.var(dims, correction=0))
    if training and running_mean is not None:
        count = x.numel() / x.shape[1]
        with torch.no_grad():
            running_mean.lerp_(mean, momentum)
            running_var.lerp_(var * count / (count - 1), momentum)
    return (x - mean.view(shape)) * (var.view(shape) + eps).rsqrt() * weight.view(shape) \
        + bias.view(shape)


class OwnFunction(torch.autograd.Function):
    """A layer norm with a backward of its own, as kernels have it."""

    @staticmethod
    def forward(ctx, x, gain, bias, eps):
        mean = x.mean(-1, keepdim=True)
        rstd = ((x - mean).square().mean(-1, keepdim=True) + eps).rsqrt()
        ctx.save_for_backward(x, gain, mean, rstd)
        return (x - mean) * rstd * gain + bias

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        x, gain, mean, rstd = ctx.saved_tensors
        xhat, g, rows = (x - mean) * rstd, dy * gain, tuple(range(dy.dim() - 1))
        dx = rstd * (g - g.mean(-1, keepdim=True) - xhat * (g * xhat).mean(-1, keepdim=True))
        return dx, (dy * xhat).sum(rows), dy.sum(rows), None


def own_layer_norm(x, gain, bias, eps=EPS):
    return OwnFunction.apply(x, gain, bias, eps)


ROWS, RMS = {"as_": "layernorm"}, {"as_": "rmsnorm"}
NORMS = [
    (F.layer_norm, ROWS), (F.rms_norm, RMS), (F.batch_norm, {"as_": "batchnorm"}),
    (F.group_norm, {"as_": "groupnorm"}), (F.instance_norm, {"as_": "instancenorm"}),
    (layer_norm, ROWS), (own_layer_norm, ROWS), (rms_norm, RMS), (wide_layer_norm, ROWS),
    (wide_rms_norm, RMS), (layer_norm_by_var, ROWS), (rms_norm_by_length, RMS),
    (gemma_norm, RMS | {"offset": 1, "dtype": "bf16"}), (llama_norm, RMS | {"dtype": "bf16"}),
    (gemma_norm, RMS | {"offset": 1}), (batch_norm, {"as_": "batchnorm"}),
    (F.group_norm, {"as_": "groupnorm", "groups": 1}), (nn.LayerNorm, ROWS),
    (nn.BatchNorm2d, {"as_": "batchnorm"}), (nn.GroupNorm, {"as_": "groupnorm"}),
    (nn.RMSNorm, RMS | {"dtype": "f16"}), (wide_layer_norm, ROWS | {"dtype": "f16"}),
]
