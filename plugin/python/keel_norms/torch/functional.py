"""keel's norms as functions of tensors, in the ways of torch.nn.functional. Every y has the type,
the shape and the memory format of x; statistics are computed in float32, or in float64 for float64
tensors."""
import numbers

import torch

from .._given import expect_sequences
from .._library import KeelError
from . import _autograd, _sums
from ._masks import rows_of_mask


def channels_last(x):
    """The memory format of x if its channels lie last, or None."""
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    if x.dim() not in formats or x.stride(1) != 1 or x.stride(-1) != x.shape[1]:
        return None
    format_ = formats[x.dim()]
    return format_ if x.is_contiguous(memory_format=format_) else None


def kept(x, y):
    """y in the memory format of x."""
    if x.dim() < 4 or (format_ := channels_last(x)) is None:
        return y
    return y.contiguous(memory_format=format_)


def sizes(given):
    """The sizes of the axes that a row has, from an int or several."""
    kinds = numbers.Integral, torch.SymInt
    found = (given,) if isinstance(given, kinds) else given
    if isinstance(found, (tuple, list)) and found and all(isinstance(n, kinds) for n in found):
        return tuple(found)
    raise TypeError(f"normalized_shape: expected a size, or several, got {given!r}")


def expect_tensor(norm, x, name="x"):
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"[{norm}] {name}: expected a tensor, got {type(x).__name__}")


def expect_row(norm, x, shape, by="normalized_shape"):
    expect_tensor(norm, x)
    if x.shape[-len(shape):] != shape:
        found = ", ".join(["...", *map(str, shape)])
        raise KeelError(f"[{norm}] x: expected ({found}), for a {by} of {shape}, "
                        f"got {tuple(x.shape)}")


def _row(norm, x, normalized_shape, affine, **attributes):
    expect_tensor(norm, x)
    shape = x.shape[-1:] if normalized_shape is None else normalized_shape
    if not isinstance(shape, tuple):
        shape = sizes(shape)
    expect_row(norm, x, shape)
    return kept(x, _autograd.row(norm, (("axes", len(shape)), *attributes.items()), x, *affine))


def layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5, *, unbiased=False,
               eps_outside=False):
    """y = weight (x - mean) / sqrt(var + eps) + bias, over the last axes. Ba et al. 2016."""
    return _row("layer_norm", x, normalized_shape, (weight, bias), eps=eps, unbiased=unbiased,
                eps_outside=eps_outside)


def rms_norm(x, normalized_shape, weight=None, eps=None, *, offset=0.0):
    """y = (offset + weight) x / sqrt(mean(x^2) + eps). Zhang & Sennrich 2019; some models keep
    weight - 1, with offset 1. Without eps it is that of float32 or float64, whichever computes, as
    in PyTorch. A narrower x is widened, and y is cast to its type after the product with the
    weight, as in PyTorch."""
    expect_tensor("rms_norm", x)
    eps = _eps(x) if eps is None else eps
    return _row("rms_norm", x, normalized_shape, (weight, None), eps=eps, offset=offset)


def _eps(x):
    """PyTorch's eps of an RMS norm: that of the type that computes."""
    return torch.finfo(torch.promote_types(x.dtype, torch.float32)).eps


def rms_norm_cast_first(x, normalized_shape, weight=None, eps=None, *, offset=0.0):
    """rms_norm with the cast in front of the product with the weight, as in Llama; y has the type
    of x under a wider weight, too."""
    y = rms_norm(x, normalized_shape, None, eps)
    return y if weight is None else (y * (weight + offset if offset else weight)).to(x.dtype)


def _sum(norm, terms, normalized_shape, affine, **attributes):
    x, residual = terms
    expect_tensor(norm, x)
    expect_tensor(norm, residual, "residual")
    if residual.shape != x.shape or residual.dtype != x.dtype:
        raise KeelError(f"[{norm}] residual: expected {tuple(x.shape)} of {x.dtype}, as x is, got "
                        f"{tuple(residual.shape)} of {residual.dtype}")
    shape = normalized_shape if isinstance(normalized_shape, tuple) else sizes(normalized_shape)
    expect_row(norm, x, shape)
    y, total = _sums.apply(norm, (("axes", len(shape)), *attributes.items()), x, residual, *affine)
    return kept(x, y), kept(x, total)


def add_layer_norm(x, residual, normalized_shape, weight=None, bias=None, *, eps=1e-5,
                   unbiased=False, eps_outside=False):
    """s = x + residual and y = layer_norm(s), as (y, s); both may be differentiated. x and residual
    have one type and shape. On a CPU float32 and float64 are computed in one call, which reads s
    from a cache; elsewhere PyTorch adds. A narrower s is rounded before it is normalized."""
    return _sum("add_layer_norm", (x, residual), normalized_shape, (weight, bias), eps=eps,
                unbiased=unbiased, eps_outside=eps_outside)


def add_rms_norm(x, residual, normalized_shape, weight=None, *, eps=None, offset=0.0):
    """s = x + residual and y = rms_norm(s), as (y, s), as add_layer_norm. eps and offset are those
    of rms_norm."""
    expect_tensor("add_rms_norm", x)
    return _sum("add_rms_norm", (x, residual), normalized_shape, (weight, None),
                eps=_eps(x) if eps is None else eps, offset=offset)


GATES = {"silu": torch.nn.functional.silu, "sigmoid": torch.sigmoid}


def gated_rms_norm(x, z, weight=None, *, gate="silu", norm_first=True, groups=1, eps=1e-5):
    """y = weight rms(x) g(z), or with norm_first=False y = weight rms(x g(z)), where g is SiLU or
    the sigmoid and rms(u) = u / sqrt(mean(u^2) + eps) over each of `groups` equal parts of the last
    axis. As in Mamba-2 (Dao & Gu 2024), Qwen3-Next and Kimi Linear. float16 and bfloat16 are
    computed in float32, and y is cast once."""
    norm = "gated_rms_norm"
    expect_tensor(norm, x)
    if gate not in GATES:
        raise KeelError(f"[{norm}] gate: expected {' or '.join(GATES)}, got {gate!r}")
    if not isinstance(z, torch.Tensor) or z.shape != x.shape:
        found = tuple(z.shape) if isinstance(z, torch.Tensor) else type(z).__name__
        raise KeelError(f"[{norm}] z: expected {tuple(x.shape)}, as x has, got {found}")
    if groups < 1 or x.shape[-1] % groups:
        raise KeelError(f"[{norm}] groups: expected a divisor of {x.shape[-1]}, got {groups}")
    wide, factor = _wide(x), GATES[gate](_wide(z))
    if norm_first:
        y = grouped_rms_norm(wide, weight, groups, eps) * factor
    else:
        y = grouped_rms_norm(wide * factor, weight, groups, eps)
    return y.to(x.dtype)


def grouped_rms_norm(x, weight, groups, eps):
    """rms_norm over each of `groups` equal parts of the last axis, with a weight of all of it."""
    if groups == 1:
        return rms_norm(x, x.shape[-1:], weight, eps)
    parts = x.unflatten(-1, (groups, -1))
    y = rms_norm(parts, parts.shape[-1:], None, eps).flatten(-2)
    return y if weight is None else (y * weight).to(x.dtype)


def modulated_layer_norm(x, scale, shift, *, eps=1e-6):
    """y = n(x) (1 + scale) + shift, where n is a layer norm of the last axis without weight and
    bias. x is (batch, ..., width); scale and shift are (batch, width) and act on all tokens of a
    sequence. Peebles & Xie 2023. float16 and bfloat16 are computed in float32, and y is cast
    once."""
    norm = "modulated_layer_norm"
    for name, value in (("x", x), ("scale", scale), ("shift", shift)):
        expect_tensor(norm, value, name)
    expect_sequences(norm, x.shape, scale=scale.shape, shift=shift.shape)
    normed = layer_norm(_wide(x), x.shape[-1:], eps=eps)
    factor, term = 1 + over_tokens(_wide(scale), x), over_tokens(_wide(shift), x)
    return torch.addcmul(term, normed, factor).to(x.dtype)


def over_tokens(value, x):
    """A value (batch, width) as (batch, 1, ..., 1, width), for x (batch, ..., width)."""
    return value.reshape(value.shape[0], *(1,) * (x.dim() - 2), value.shape[1])


def _wide(x):
    return x.float() if x.dtype in _autograd.NARROW else x


def ada_norm(x, normalized_shape=None, *, C=1.0, k=0.1, eps=1e-5,  # noqa: N803 the paper's letter
             unbiased=False, eps_outside=False, detach=True):
    """y = C (1 - k xhat) xhat, whose factor counts as a constant in the backward. Xu et al. 2019,
    equations 6 to 9. Without normalized_shape a row is the last axis."""
    return _row("ada_norm", x, normalized_shape, (), C=C, k=k, eps=eps, unbiased=unbiased,
                eps_outside=eps_outside, detach=detach)


def detach_norm(x, normalized_shape=None, *, eps=1e-5, unbiased=False, eps_outside=False,
                detach_mean=True, detach_variance=True):
    """Layer norm without weight and bias whose mean, deviation or both count as constants in the
    backward. Xu et al. 2019, section 3.3. Without normalized_shape a row is the last axis."""
    return _row("detach_norm", x, normalized_shape, (), eps=eps, unbiased=unbiased,
                eps_outside=eps_outside, detach_mean=detach_mean, detach_variance=detach_variance)


def scale_norm(x, gain, *, normalized_shape=None, eps=1e-5):
    """y = gain x / max(|x|, eps); gain is one number. Nguyen & Salazar 2019. Without
    normalized_shape a row is the last axis."""
    return _row("scale_norm", x, normalized_shape, (gain,), eps=eps)


def seed_norm(x, gain, a, b, *, normalized_shape=None, eps=1e-6):
    """y = (tanh(sum(x b)) a + gain) x / sqrt(mean(x^2) + eps), over a row. Cai et al. 2025. Without
    normalized_shape a row is the last axis."""
    return _row("seed_norm", x, normalized_shape, (gain, a, b), eps=eps)


def dyt(x, alpha, weight=None, bias=None, *, normalized_shape=None):
    """y = weight tanh(alpha x) + bias; alpha is one number. Zhu et al. 2025. Without
    normalized_shape weight and bias lie along the last axis."""
    return _row("dyt", x, normalized_shape, (weight, bias, alpha))


def derf(x, alpha, shift=None, weight=None, bias=None, *, normalized_shape=None):
    """y = weight erf(alpha x + shift) + bias; alpha and shift are one number each. Chen et al.
    2025. Without normalized_shape weight and bias lie along the last axis."""
    return _row("derf", x, normalized_shape, (weight, bias, alpha, shift))


def group_scaling(x, num_groups=1, *, eps=1e-5):
    """y = x / sqrt(mean(x^2) + eps), over groups of the last axis. Shen et al. 2020, appendix
    A.1."""
    expect_tensor("group_scaling", x)
    attributes = ("groups", num_groups), ("eps", eps)
    return kept(x, _autograd.row("group_scaling", attributes, x))


def group_norm(x, num_groups, weight=None, bias=None, eps=1e-5, *, unbiased=False,
               eps_outside=False):
    """Group norm of (n, channels, ...). Wu & He 2018."""
    expect_tensor("group_norm", x)
    attributes = (("groups", num_groups), ("eps", eps), ("unbiased", unbiased),
                  ("eps_outside", eps_outside))
    if x.dim() == 2:
        return _autograd.row("group_norm", attributes, x, weight, bias)
    image = x.flatten(2).unsqueeze(3)
    y = _autograd.row("group_norm", attributes, image, weight, bias)
    return kept(x, y.reshape(x.shape))


def instance_norm(x, weight=None, bias=None, eps=1e-5):
    """Instance norm of (n, channels, ...) with an area of more than one element. Ulyanov et al.
    2016."""
    expect_tensor("instance_norm", x)
    if x.shape[2:].numel() == 1:
        raise ValueError("instance_norm: expected more than 1 element in an area, got "
                         f"{tuple(x.shape)}")
    return group_norm(x, x.shape[1], weight, bias, eps)


def weight_norm(v, g, dim=0, *, eps=0.0):
    """w = g v / sqrt(sum(v^2) + eps), the sum over all axes of v but `dim`. With dim None, or -1 as
    in PyTorch, it is over all axes, and g is one number. Salimans & Kingma 2016."""
    if dim in (None, -1):
        return _weight_norm(v.reshape(1, -1), g, eps).reshape(v.shape)
    if not 0 <= dim < v.dim():
        raise ValueError(f"weight_norm: dim: expected an axis of {tuple(v.shape)}, -1 or None, "
                         f"got {dim}")
    if 0 < dim == v.dim() - 1:
        return _weight_norm(v.flatten(0, -2), g, eps, by_column=True).reshape(v.shape)
    units_first = v.movedim(dim, 0)
    rows = units_first.unsqueeze(1) if v.dim() == 1 else units_first.flatten(1)
    return _weight_norm(rows, g, eps).reshape(units_first.shape).movedim(0, dim)


def _weight_norm(v, g, eps, by_column=False):
    """Weight norm of a matrix v, whose rows, or columns, are the units."""
    return _autograd.row("weight_norm", (("by_column", by_column), ("eps", eps)), v, g.flatten())


def column_norm(norm, x, values, attributes, shards=None):
    """A norm over the batch. x has its channels last, as (..., channels) with a mask of the other
    axes, or is an image (n, channels, h, w). Returns all outputs by name; next states are
    `next_...`, of the shape (0) in evaluation. `shards` are those of a batch on several
    processes. A batch without elements gives only y: there is nothing to learn from it."""
    mask = values.get("mask")
    if mask is not None:
        if x.dim() == 4:
            raise KeelError(f"[{norm}] mask: expected none for images, got {tuple(mask.shape)} for "
                            f"{tuple(x.shape)}")
        values = {**values, "mask": rows_of_mask(norm, mask, x.shape[:-1], x.device)}
    if shards is None and x.numel() == 0:
        return {"y": _affine(x, values.get("gain"), values.get("bias"))}
    if x.dim() == 4 and not attributes.get("groups") and channels_last(x):
        rows = x.movedim(1, -1)  # the same memory as rows of channels
        outputs = column_norm(norm, rows.flatten(0, -2), values, attributes, shards)
        return {**outputs, "y": outputs["y"].reshape(rows.shape).movedim(-1, 1)}
    rows = x if x.dim() in (2, 4) else x.reshape(-1, x.shape[-1])
    if shards is not None and rows.numel() < 2 * _channels(x):
        rows, values, shards = _padded(rows, values, shards)
    outputs = _autograd.apply(norm, {**values, "x": rows}, attributes, shards)
    if shards is not None and shards.padding:
        outputs["y"] = outputs["y"][:-shards.padding]
    if rows is not x:
        outputs["y"] = outputs["y"].reshape(x.shape)
    return outputs


def _affine(x, gain, bias):
    """gain x + bias, in the type of x."""
    channels = (-1, 1, 1) if x.dim() == 4 else (-1,)
    y = x if gain is None else x * gain.reshape(channels)
    return (y if bias is None else y + bias.reshape(channels)).to(x.dtype)


def _channels(x):
    return x.shape[1] if x.dim() == 4 else x.shape[-1]


def _padded(rows, values, shards):
    """A shard of fewer than two elements a channel as two rows, of which a mask leaves those out
    that are not its own. By them the gradient finds its way to an x without elements."""
    rows = rows.reshape(-1, _channels(rows))
    own = rows.shape[0]
    mask = values.get("mask")
    mask = rows.new_ones(own, dtype=torch.uint8) if mask is None else mask
    pad = torch.nn.functional.pad
    return (pad(rows, (0, 0, 0, 2 - own)), {**values, "mask": pad(mask, (0, 2 - own))},
            type(shards)(shards.group, 2 - own))
