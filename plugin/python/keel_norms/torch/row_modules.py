"""Norms of a row: no state, and a result that does not depend on other rows. `norm` is keel's op,
by which the docs have formula and paper of a module."""
import math

import torch
from torch import nn

from .._given import expect_size
from .._library import KeelError
from . import functional
from ._autograd import row
from ._fx import Proxy, leaf
from ._options import extending, named


class NoFastPath:
    """A norm that torch.nn.TransformerEncoderLayer must call: where both of its norms have the same
    `eps`, that layer computes layer norms itself in evaluation and calls neither."""

    eps = float("nan")  # equal to no number, not to itself either


def expect_channels(module, x, channels, axes="(n, {}, ...)"):
    """Refuses an x of other channels than the module has."""
    functional.expect_tensor(type(module).__name__, x)
    if x.dim() < 2 or x.shape[1] != channels:
        raise KeelError(f"{type(module).__name__}: x: expected {axes.format(channels)}, for a "
                        f"weight of ({channels},), got {tuple(x.shape)}")


class LayerNorm(nn.LayerNorm):
    """torch.nn.LayerNorm on keel's kernels. With `unbiased` the variance is divided by n - 1, with
    `eps_outside` eps is added to the deviation."""

    norm = "layer_norm"
    unbiased = eps_outside = False  # in modules that were pickled without them, too

    @extending(nn.LayerNorm.__init__)
    def __init__(self, *, unbiased=False, eps_outside=False, **pytorchs):
        super().__init__(**pytorchs)
        self.unbiased, self.eps_outside = unbiased, eps_outside

    def forward(self, x):
        if isinstance(x, Proxy):
            return leaf(self, x)
        shape = self.normalized_shape
        functional.expect_row("LayerNorm", x, shape, "weight")
        attributes = (("axes", len(shape)), ("eps", self.eps), ("unbiased", self.unbiased),
                      ("eps_outside", self.eps_outside))
        return functional.kept(x, row("layer_norm", attributes, x, self.weight, self.bias))


class RMSNorm(nn.RMSNorm):
    """torch.nn.RMSNorm on keel's kernels. With offset=1 the weight is offset by one and starts at
    0, as some models keep it. With cast_first the normalized x is cast to its type in front of the
    product with the weight, as Llama does, not after it."""

    norm = "rms_norm"
    cast_first = False  # in modules that were pickled without it, too

    @extending(nn.RMSNorm.__init__)
    def __init__(self, *, offset=0.0, cast_first=False, **pytorchs):
        super().__init__(**pytorchs)
        self.offset, self.cast_first = offset, cast_first
        if offset and self.elementwise_affine:
            nn.init.constant_(self.weight, 1 - offset)

    def forward(self, x):
        if isinstance(x, Proxy):
            return leaf(self, x)
        functional.expect_row("RMSNorm", x, self.normalized_shape, "weight")
        norm = functional.rms_norm_cast_first if self.cast_first else functional.rms_norm
        return norm(x, self.normalized_shape, self.weight, self.eps, offset=self.offset)


class GroupNorm(nn.GroupNorm):
    """torch.nn.GroupNorm on keel's kernels; `unbiased` and `eps_outside` are those of LayerNorm."""

    norm = "group_norm"
    unbiased = eps_outside = False  # in modules that were pickled without them, too

    @extending(nn.GroupNorm.__init__)
    def __init__(self, *, unbiased=False, eps_outside=False, **pytorchs):
        super().__init__(**pytorchs)
        self.unbiased, self.eps_outside = unbiased, eps_outside

    def forward(self, x):
        if isinstance(x, Proxy):
            return leaf(self, x)
        expect_channels(self, x, self.num_channels)
        return functional.group_norm(x, self.num_groups, self.weight, self.bias, self.eps,
                                     unbiased=self.unbiased, eps_outside=self.eps_outside)


class _InstanceNorm:
    def forward(self, x):
        if isinstance(x, Proxy):
            return leaf(self, x)
        functional.expect_tensor(type(self).__name__, x)
        self._check_input_dim(x)
        if self.track_running_stats:
            raise NotImplementedError("instance norm: running statistics are not kept")
        batch = x if x.dim() == self.axes else x.unsqueeze(0)
        if self.affine:  # without parameters PyTorch takes any number of channels, too
            expect_channels(self, batch, self.num_features)
        y = functional.instance_norm(batch, self.weight, self.bias, self.eps)
        return y if batch is x else y.squeeze(0)


class InstanceNorm1d(_InstanceNorm, nn.InstanceNorm1d):
    """torch.nn.InstanceNorm1d on keel's kernels, without running statistics."""

    norm = "instance_norm"
    axes = 3
    __init__ = named(nn.InstanceNorm1d.__init__)


class InstanceNorm2d(_InstanceNorm, nn.InstanceNorm2d):
    """torch.nn.InstanceNorm2d on keel's kernels, without running statistics."""

    norm = "instance_norm"
    axes = 4
    __init__ = named(nn.InstanceNorm2d.__init__)


class _Row(NoFastPath, nn.Module):
    """A norm of rows that PyTorch does not have, over the axes of normalized_shape. `options` are
    those of its function."""

    def __init__(self, normalized_shape, eps, **options):
        super().__init__()
        self.normalized_shape = functional.sizes(normalized_shape)
        self.added, self.options = eps, options

    def _expect(self, x):
        functional.expect_row(type(self).__name__, x, self.normalized_shape)

    def extra_repr(self):
        told = {"eps": self.added, **self.options}
        return ", ".join([str(self.normalized_shape), *(f"{k}={v}" for k, v in told.items())])


class LayerNormSimple(_Row):
    """Layer norm without weight and bias. Xu et al. 2019, equation 2. `eps` is added to the
    variance, or with `eps_outside` to the deviation; with `unbiased` the variance is divided by
    n - 1."""

    norm = "layer_norm"

    @named
    def __init__(self, normalized_shape, *, eps=1e-5, unbiased=False, eps_outside=False):
        super().__init__(normalized_shape, eps, unbiased=unbiased, eps_outside=eps_outside)

    def forward(self, x):
        if isinstance(x, Proxy):
            return leaf(self, x)
        self._expect(x)
        return functional.layer_norm(x, self.normalized_shape, eps=self.added, **self.options)


class AdaNorm(_Row):
    """y = `C` (1 - `k` xhat) xhat, with xhat as of LayerNormSimple, whose options it has. The
    factor C (1 - k xhat) counts as a constant in the backward, unless `detach` is False. Xu et al.
    2019."""

    norm = "ada_norm"

    @named
    def __init__(self, normalized_shape, *, C=1.0, k=0.1, eps=1e-5,  # noqa: N803 the paper's letter
                 unbiased=False, eps_outside=False, detach=True):
        super().__init__(normalized_shape, eps, C=C, k=k, unbiased=unbiased,
                         eps_outside=eps_outside, detach=detach)

    def forward(self, x):
        if isinstance(x, Proxy):
            return leaf(self, x)
        self._expect(x)
        return functional.ada_norm(x, self.normalized_shape, eps=self.added, **self.options)


class DetachNorm(_Row):
    """LayerNormSimple, whose options it has, with mean and deviation as constants in the backward:
    the mean if `detach_mean`, the deviation if `detach_variance`. Xu et al. 2019."""

    norm = "detach_norm"

    @named
    def __init__(self, normalized_shape, *, eps=1e-5, unbiased=False, eps_outside=False,
                 detach_mean=True, detach_variance=True):
        super().__init__(normalized_shape, eps, unbiased=unbiased, eps_outside=eps_outside,
                         detach_mean=detach_mean, detach_variance=detach_variance)

    def forward(self, x):
        if isinstance(x, Proxy):
            return leaf(self, x)
        self._expect(x)
        return functional.detach_norm(x, self.normalized_shape, eps=self.added, **self.options)


class ScaleNorm(_Row):
    """y = gain x / max(|x|, `eps`); gain is one number and starts at the root of the row's size.
    Nguyen & Salazar 2019."""

    norm = "scale_norm"

    @named
    def __init__(self, normalized_shape, *, eps=1e-5, device=None, dtype=None):
        super().__init__(normalized_shape, eps)
        first = math.prod(self.normalized_shape)**0.5
        self.gain = nn.Parameter(torch.full((1,), first, device=device, dtype=dtype))

    def forward(self, x):
        if isinstance(x, Proxy):
            return leaf(self, x)
        self._expect(x)
        return functional.scale_norm(x, self.gain, normalized_shape=self.normalized_shape,
                                     eps=self.added)


class SeeDNorm(_Row):
    """y = (tanh(sum(x b)) a + gain) x / sqrt(mean(x^2) + `eps`), over a row. The gain and a start
    at 1 and `a_init`, b at `b_init`. Cai et al. 2025."""

    norm = "seed_norm"

    @named
    def __init__(self, normalized_shape, *, eps=1e-6, a_init=1.0, b_init=0.0, device=None,
                 dtype=None):
        super().__init__(normalized_shape, eps)
        for name, first in (("gain", 1.0), ("a", a_init), ("b", b_init)):
            setattr(self, name, nn.Parameter(torch.full(self.normalized_shape, first,
                                                        device=device, dtype=dtype)))

    def forward(self, x):
        if isinstance(x, Proxy):
            return leaf(self, x)
        self._expect(x)
        return functional.seed_norm(x, self.gain, self.a, self.b, eps=self.added,
                                    normalized_shape=self.normalized_shape)


class _Curve(NoFastPath, nn.Module):
    """A curve in place of a norm, whose numbers are parameters, beside weight and bias; with
    `elementwise_affine` False there are neither of these two."""

    def __init__(self, normalized_shape, numbers, elementwise_affine, bias, place):
        super().__init__()
        self.normalized_shape = functional.sizes(normalized_shape)
        self.elementwise_affine, self.first = elementwise_affine, numbers
        for name, exists in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            self.register_parameter(name, nn.Parameter(
                torch.empty(self.normalized_shape, **place)) if exists else None)
        for name in numbers:
            setattr(self, name, nn.Parameter(torch.empty(1, **place)))
        self.reset_parameters()

    def reset_parameters(self):
        for name, first in {**self.first, "weight": 1.0, "bias": 0.0}.items():
            if (parameter := getattr(self, name)) is not None:
                nn.init.constant_(parameter, first)

    def forward(self, x):
        if isinstance(x, Proxy):
            return leaf(self, x)
        functional.expect_row(type(self).__name__, x, self.normalized_shape)
        attributes = ("axes", len(self.normalized_shape)),
        return functional.kept(x, row(self.norm, attributes, x, self.weight, self.bias,
                                      *[getattr(self, name) for name in self.first]))

    def extra_repr(self):
        told = {**{f"{name}_init": first for name, first in self.first.items()},
                "elementwise_affine": self.elementwise_affine}
        return ", ".join([str(self.normalized_shape), *(f"{k}={v}" for k, v in told.items())])


class DyT(_Curve):
    """y = weight tanh(alpha x) + bias; alpha is one number and starts at `alpha_init`. Zhu et al.
    2025."""

    norm = "dyt"

    @named
    def __init__(self, normalized_shape, *, alpha_init=0.5, elementwise_affine=True, bias=True,
                 device=None, dtype=None):
        super().__init__(normalized_shape, {"alpha": alpha_init}, elementwise_affine, bias,
                         {"device": device, "dtype": dtype})


class Derf(_Curve):
    """y = weight erf(alpha x + shift) + bias; alpha and shift are one number each and start at
    `alpha_init` and `shift_init`. Chen et al. 2025."""

    norm = "derf"

    @named
    def __init__(self, normalized_shape, *, alpha_init=0.5, shift_init=0.0,
                 elementwise_affine=True, bias=True, device=None, dtype=None):
        super().__init__(normalized_shape, {"alpha": alpha_init, "shift": shift_init},
                         elementwise_affine, bias, {"device": device, "dtype": dtype})


class GroupScaling(NoFastPath, nn.Module):
    """y = x / sqrt(mean(x^2) + `eps`) of (..., num_channels), the mean over each of num_groups
    groups of the channels. Shen et al. 2020, appendix A.1."""

    norm = "group_scaling"

    @named
    def __init__(self, num_groups, num_channels, *, eps=1e-5):
        super().__init__()
        expect_size("num_groups", num_groups)
        expect_size("num_channels", num_channels, 0)
        if num_channels % num_groups:
            raise ValueError(f"GroupScaling: num_channels: expected a multiple of num_groups, "
                             f"{num_groups}, got {num_channels}")
        self.num_groups, self.num_channels, self.added = num_groups, num_channels, eps

    def forward(self, x):
        if isinstance(x, Proxy):
            return leaf(self, x)
        functional.expect_row("GroupScaling", x, (self.num_channels,), "num_channels")
        return functional.group_scaling(x, self.num_groups, eps=self.added)

    def extra_repr(self):
        return f"{self.num_groups}, {self.num_channels}, eps={self.added}"
