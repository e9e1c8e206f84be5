"""keel's norms by the names and options of its command line, as modules, and layers with them."""
import math

from torch import nn

from .._library import KeelError
from .column_modules import MABN, PNV, BatchRenorm1d, PowerNorm, UnifiedNorm, _ColumnNorm
from .row_modules import (AdaNorm, Derf, DetachNorm, DyT, GroupNorm, GroupScaling,
                          InstanceNorm2d, LayerNorm, RMSNorm, ScaleNorm, SeeDNorm)
from .weight_modules import weight_norm

_FIRST = {"gain_init": 1.0, "bias_init": 0.0}
_AFFINE = {"gain": True, "bias": True, **_FIRST}
_ROW = {"axes": 0, "eps": 1e-5}
_XU = {"unbiased": False, "eps_outside": False}
_LAYER = {**_ROW, **_AFFINE, **_XU, "per_pixel": False}
_DETACH = {**_ROW, **_XU, "detach_mean": True, "detach_variance": True}
_BATCH = {"eps": 1e-5, "keep": 0.9, **_AFFINE, "unbiased": False, "running_unbiased": False,
          "padding": "exact", "mean_penalty": 0.0, "deviation_penalty": 0.0}
_SCALING = {"groups": 32, "eps": 1e-5}

# The options and defaults of each norm: those that `keel list norms` prints.
DEFAULTS = {
    "none": {},
    "layernorm": _LAYER,
    "layernorm_simple": {**_LAYER, "gain": False, "bias": False},
    "detachnorm": _DETACH,
    "detachmean": {**_DETACH, "detach_variance": False},
    "detachvariance": {**_DETACH, "detach_mean": False},
    "adanorm": {**_ROW, "C": 1.0, "k": 0.1, **_XU, "detach": True},
    "rmsnorm": {**_ROW, "eps": 1e-8, **_AFFINE, "bias": False, "offset": 0.0},
    "scalenorm": {**_ROW, "gain_init": 1.0},
    "seednorm": {"axes": 0, "eps": 1e-6, "gain_init": 1.0, "a_init": 1.0, "b_init": 0.0},
    "dyt": {"axes": 0, **_AFFINE, "alpha_init": 0.5},
    "derf": {"axes": 0, **_AFFINE, "alpha_init": 0.5, "shift_init": 0.0},
    "groupnorm": {**_SCALING, **_AFFINE, **_XU},
    "instancenorm": {"eps": 1e-5, **_AFFINE, "gain": False, "bias": False},
    "groupscaling": _SCALING,
    "layerscaling": {**_SCALING, "groups": 1},
    "batchnorm": _BATCH,
    "sequencebatchnorm": {**_BATCH, "eps": 1e-6, "keep": 0.99, "gain_init": 0.1},
    "batchrenorm": {"eps": 1e-3, "rate": 0.01, "r_max": -1.0, "d_max": -1.0, "r_max_limit": 3.0,
                    "d_max_limit": 5.0, "r_start": 5000.0, "r_end": 40000.0, "d_start": 5000.0,
                    "d_end": 25000.0, "updates": 100000.0, **_AFFINE},
    "pn_v": {"eps": 1e-5, "keep": 0.9, **_AFFINE},
    "powernorm": {"mode": "release", "heads": 1, "warmup": 0, "alpha_f": 0.9, "alpha_b": 0.9,
                  "eps": 1e-5, **_AFFINE, "pad_stats": False},
    "mabn": {"m": 16, "warmup": 100, "clip_after": 1000, "keep": 0.98, "clip": 5.0, "eps": 1e-5,
             **_AFFINE, "centralize": False},
    "unifiednorm": {"m": 4, "warmup": 4000, "clip_after": 1000, "filter": True, "keep": 0.9,
                    "clip": 5.0, "eps": 1e-5, **_AFFINE},
    "weightnorm": {"eps": 0.0, "deviation": 0.05, "gain_init": 1.0},
}


def parse(text, defaults=""):
    """The name and all options of "name{key=value,...}"; `defaults` are options that it may leave
    out, in the form of those in the braces."""
    name, _, given = text.partition("{")
    if name not in DEFAULTS:
        raise KeelError(f"norm {name}: expected one that keel_norms.torch has: "
                        f"{', '.join(DEFAULTS)}")
    options = dict(DEFAULTS[name])
    asked = dict(pair.split("=", 1) for part in (defaults, given.removesuffix("}"))
                 for pair in part.split(",") if pair)
    if asked.get("mode") == "paper":  # the paper's roots have none
        options["eps"] = 0.0
    for key, value in asked.items():
        if key not in options:
            raise KeelError(f"norm {name}: expected one of the options {', '.join(options)}, "
                            f"got {key}")
        kind = type(options[key])
        options[key] = value == "true" if kind is bool else kind(value)
    return name, options


def norm(text, shape, defaults=""):
    """The module of a norm for x (rows, shape[0]) or (rows, length, shape[0]), or for images (n,
    *shape). `text` is what a recipe has, such as "powernorm{heads=4}"."""
    name, options = parse(text, defaults)
    if name not in _MAKE:
        raise KeelError(f"norm {name}: expected a norm of a layer's output, got one of its weight")
    for key in _FIRST:  # of the first weights, which a module of trained ones does not take
        options.pop(key, None)
    return _MAKE[name](shape, **options)


class _PixelLayerNorm(LayerNorm):
    """Layer norm of images; a row is the channels of one pixel."""

    def forward(self, x):
        return super().forward(x.movedim(1, -1)).movedim(-1, 1)


class _GroupNorm(GroupNorm):
    """The channels of tokens (rows, length, channels) lie last."""

    def forward(self, x):
        if x.dim() != 3:
            return super().forward(x)
        return super().forward(x.flatten(0, 1)).reshape(x.shape)


class _ImageScaling(GroupScaling):
    """An image is one row."""

    def forward(self, x):
        return super().forward(x.flatten(1)).reshape(x.shape)


class BatchNorm(_ColumnNorm):
    """Batch norm with the options of keel's command line, of (..., channels) with a mask of the
    other axes, or of images. BatchNorm1d and BatchNorm2d have PyTorch's options and axes."""

    norm = "batch_norm"


def _lacks(name, what):
    raise KeelError(f"norm {name}: keel_norms.torch has no module of it {what}")


def _affine(module, gain, bias):
    module.weight = module.weight if gain else None
    module.bias = module.bias if bias else None
    return module


def _row(shape, axes):
    """The sizes of a row: the last `axes` axes, or for 0 all."""
    if axes > len(shape):
        raise KeelError(f"axes: expected 0 to {len(shape)} for rows of {shape}, got {axes}")
    return shape[-axes:]


def _layer_norm(shape, *, axes, gain, bias, per_pixel, **options):
    if per_pixel and len(shape) == 3:
        return _affine(_PixelLayerNorm(shape[0], **options), gain, bias)
    return _affine(LayerNorm(_row(shape, axes), **options), gain, bias)


def _rms_norm(shape, *, axes, eps, gain, bias, offset):
    if bias:
        _lacks("rmsnorm{bias=true}", "with a bias")
    return RMSNorm(_row(shape, axes), eps, gain, offset=offset)


def _group_norm(shape, *, groups, eps, gain, bias, **options):
    return _affine(_GroupNorm(groups, shape[0], eps, **options), gain, bias)


def _instance_norm(shape, *, eps, gain, bias):
    if len(shape) != 3:
        _lacks("instancenorm", "for sequences with padding")
    return _affine(InstanceNorm2d(shape[0], eps, affine=True), gain, bias)


def _scaling(shape, *, groups, eps):
    kind = _ImageScaling if len(shape) == 3 else GroupScaling
    return kind(groups, math.prod(shape), eps=eps)


def _power_norm(shape, *, heads, **options):
    return PowerNorm(shape[0], heads=0 if len(shape) == 3 else heads, **options)


def _mabn(shape, *, centralize, **options):
    if centralize:
        _lacks("mabn{centralize=true}", "that acts on a layer's weight")
    return MABN(shape[0], **options)


def _by_curve(kind):
    return lambda shape, *, axes, gain, bias, **first: _affine(
        kind(_row(shape, axes), **first), gain, bias)


def _by_rows(kind):
    return lambda shape, *, axes, **options: kind(_row(shape, axes), **options)


def _by_channels(kind):
    return lambda shape, **options: kind(shape[0], **options)


_MAKE = {
    "none": lambda shape: None,
    "layernorm": _layer_norm, "layernorm_simple": _layer_norm,
    **dict.fromkeys(("detachnorm", "detachmean", "detachvariance"), _by_rows(DetachNorm)),
    "adanorm": _by_rows(AdaNorm), "rmsnorm": _rms_norm, "scalenorm": _by_rows(ScaleNorm),
    "seednorm": _by_rows(SeeDNorm),
    "dyt": _by_curve(DyT), "derf": _by_curve(Derf),
    "groupnorm": _group_norm, "instancenorm": _instance_norm,
    "groupscaling": _scaling, "layerscaling": _scaling,
    **dict.fromkeys(("batchnorm", "sequencebatchnorm"), _by_channels(BatchNorm)),
    "batchrenorm": _by_channels(BatchRenorm1d), "pn_v": _by_channels(PNV),
    "powernorm": _power_norm, "mabn": _mabn,
    "unifiednorm": _by_channels(UnifiedNorm),
}


def apply(layer, x, mask=None):
    """A norm of x, or x where there is none. Those over the batch take the mask of the rows."""
    if layer is None:
        return x
    return layer(x, mask) if isinstance(layer, _ColumnNorm) else layer(x)


class _Normed:
    """A layer with a norm of its output or of its weight."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.norm = None

    def normed(self, text="none", shape=(), defaults=""):
        """The layer with the norm that a recipe calls `text`, for rows or images of `shape`."""
        name, options = parse(text, defaults)
        if name == "weightnorm":
            weight_norm(self, eps=options["eps"])
        self.norm = None if name == "weightnorm" else norm(text, shape, defaults)
        return self

    def forward(self, x):
        return apply(self.norm, super().forward(x))


class Linear(_Normed, nn.Linear):
    """x W + b and the norm of it. keel's W is (in, out), PyTorch's (out, in)."""


class Conv2d(_Normed, nn.Conv2d):
    """A convolution and the norm of it."""
