"""Pooling and resizing: means of windows, choices, and the sums of their backwards."""
import math

import torch.nn.functional as F

from keel_judge.measure import Expected, allow_narrow_steps
from keel_judge.rounding import EPS
from keel_judge.rules.sums import sums_of


def length(value, dims):
    return [value] * dims if isinstance(value, int) else (list(value) * dims)[:dims]


def average(call):
    """A sum over the window, and a division."""
    dims = len(call["kernel_size"]) if not isinstance(call["kernel_size"], int) else 1
    count = math.prod(length(call["kernel_size"], dims))
    return sums_of(call, ["self"], count + 5)


def average_backward(call):
    """Terms: the windows over an element, each with a division."""
    dims = 3 if "3d" in call.name else 2
    kernel = length(call["kernel_size"], dims)
    strides = length(call["stride"] or kernel, dims)
    windows = math.prod(math.ceil(k / s) for k, s in zip(kernel, strides))
    return sums_of(call, ["grad_output"], windows + 5)


def adaptive(call):
    """Windows of at most ceil(in / out) + 1 places."""
    x, y = call["self"], call.results[0].got
    dims = y.dim() - (2 if y.dim() > 3 else 1)
    windows = [math.ceil(a / b) + 1 for a, b in zip(x.shape[-dims:], y.shape[-dims:])]
    return sums_of(call, ["self"], math.prod(windows) + 5)


def adaptive_backward(call):
    x, dy = call["self"], call["grad_output"]
    dims = 2
    windows = [math.ceil(b / a) + 1 for a, b in zip(x.shape[-dims:], dy.shape[-dims:])]
    return sums_of(call, ["grad_output"], math.prod(windows) + 5)


def largest(call):
    """The values exactly; any place of a largest value is right."""
    values, places = call.run()
    got, area = call.results[1].got.cpu(), places.dim() - (2 if places.dim() > 3 else 1)
    flat = call["self"].flatten(-area)
    right = None
    if bool(((got >= 0) & (got < flat.shape[-1])).all()):
        right = (flat.gather(-1, got.flatten(-area)) == values.flatten(-area)).reshape(got.shape)
    return [Expected(values, 0.0, is_exact=True), Expected(places, right=right)]


def largest_backward(call):
    """The windows over an element may all choose it."""
    kernel = call["kernel_size"] if call.has("kernel_size") else [4, 4]
    return sums_of(call, ["grad_output"], math.prod(length(kernel, 2)))


def nearest_backward(call):
    dx, dy = call.results[0].got, call["grad_output"]
    return sums_of(call, ["grad_output"], dy.numel() / max(1, dx.numel()) + 1)


def linear(call):
    """Places of the source are products in float32: off by 4 eps of the source's length, which
    moves the result along its slope."""
    x = call["self"]
    results = sums_of(call, ["self"], 2 ** (x.dim() - 2) + 4)
    near = F.max_pool2d(x.abs(), 3, 1, 1) if x.dim() == 4 else x.abs().amax().expand_as(x)
    slope = call.run_on(dict(call.wide) | {"self": near})[0]
    for r in results:
        r.error = r.error + 8 * EPS * max(x.shape[2:]) * slope
        r.usual = r.deviation = None
    return results


def linear_backward(call):
    dy = call["grad_output"]
    shape = call["input_size"]
    count = dy.numel() / max(1, math.prod(shape)) * 4 + 4
    results = sums_of(call, ["grad_output"], count)
    size = float(dy.abs().max()) if dy.numel() else 0.0
    for r in results:
        r.error = r.error + 8 * EPS * max(shape[2:]) * size * count
        r.usual = r.deviation = None
    return results


TABLE = {
    "avg_pool1d": average, "avg_pool2d": average, "avg_pool3d": average,
    "avg_pool2d_backward": average_backward, "avg_pool3d_backward": average_backward,
    "_adaptive_avg_pool2d": adaptive, "_adaptive_avg_pool2d_backward": adaptive_backward,
    "max_pool2d_with_indices": largest, "max_pool3d_with_indices": largest,
    "max_pool2d_with_indices_backward": largest_backward,
    "adaptive_max_pool2d": largest, "adaptive_max_pool2d_backward": largest_backward,
    "upsample_nearest2d_backward": nearest_backward,
    "upsample_bilinear2d": linear, "upsample_linear1d": linear,
    "upsample_bilinear2d_backward": linear_backward,
}


def with_narrow_steps(rule):
    return lambda call: allow_narrow_steps(call, rule(call))


RULES = {name: with_narrow_steps(rule) for name, rule in TABLE.items()}
