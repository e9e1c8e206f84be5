"""Convolutions: sums of products over a window and over channels. One that may be computed in
tiles (Winograd's, or by Fourier transforms) mixes the elements of a tile, so it is held to 10 T on
the largest |x| within 5 places, and is suspect beyond W of the direct sum (docs/numerics.md)."""
import math

import torch
import torch.nn.functional as F

from keel_judge.measure import allow_narrow_steps
from keel_judge.rounding import sum_error
from keel_judge.rules.sums import of_arguments, sums_of

REACH = 5


def window(weight):
    return math.prod(weight.shape[2:])


def may_be_tiled(call):
    kernel = call["weight"].shape[2:]
    strides = call["stride"] or [1]
    return max(kernel, default=1) >= 3 and max(strides) == 1 and not call.narrow_eps()


def spread_of(x):
    """The largest |x| within reach, in the places of an image."""
    pool = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}.get(x.dim() - 2)
    if pool is None:
        return torch.full_like(x, float(x.abs().max()) if x.numel() else 0.0)
    return pool(x.abs(), 2 * REACH + 1, stride=1, padding=REACH)


def as_tiles(call, names, counts, results, images):
    """Replaces each error by 10 T on the spread images; the usual error stays W."""
    sizes = of_arguments(call, names, torch.abs)
    wide = dict(call.wide) | {name: spread_of(call[name]) for name in images}
    wide |= {name: call[name].abs() for name in names
             if name not in images and isinstance(call[name], torch.Tensor)}
    spread = call.run_on(wide)
    for number, (result, size, over) in enumerate(zip(results, sizes, spread)):
        if result is not None:
            result.usual, result.is_mixed = torch.minimum(result.error, result.usual), True
            tiled = sum_error(counts[number], over, over.square(), over).largest
            result.error = torch.maximum(10 * tiled, result.error)


def convolution(call):
    """Sums of (channels / groups) window products and a bias."""
    weight, groups = call["weight"], call["groups"] if call.has("groups") else 1
    channels = weight.shape[0] // groups if call["transposed"] else weight.shape[1]
    count = channels * window(weight) + 1
    names = [n for n in ("input", "self", "weight", "bias") if call.has(n)]
    results = sums_of(call, names, count)
    if may_be_tiled(call):
        image = "input" if call.has("input") else "self"
        as_tiles(call, names, [count], results, [image])
    return allow_narrow_steps(call, results)


def backward_counts(call):
    """Terms of dx: units by window; of dweight: images by places; of dbias the same."""
    dy, weight = call["grad_output"], call["weight"]
    groups = call["groups"]
    units = weight.shape[1] if call["transposed"] else weight.shape[0] // groups
    places = dy.numel() // max(1, dy.shape[1])
    if call["transposed"]:
        places = max(places, call["input"].numel() // max(1, call["input"].shape[1]))
    return [units * window(weight), places, places]


def convolution_backward(call):
    """dx, dweight and dbias, each linear in dy and in weight or x; those not asked for are None."""
    counts = [k for k, wanted in zip(backward_counts(call), call["output_mask"]) if wanted]
    names = ["grad_output", "input", "weight"]
    results = sums_of(call, names, counts)
    if may_be_tiled(call):
        biased = bool(call["output_mask"][2])
        tiled = results[:-1] if biased else results
        as_tiles(call, names, counts, tiled, ["grad_output", "input"])
    return allow_narrow_steps(call, results)


RULES = {name: convolution for name in (
    "convolution", "_convolution", "mkldnn_convolution", "cudnn_convolution",
    "_slow_conv2d_forward", "convolution_overrideable")}
RULES["convolution_backward"] = convolution_backward
