"""Norms for kernels of any program (docs/numerics.md, Results of any program). The values are
computed here from the formulas, not by PyTorch's float64 kernels."""
from dataclasses import dataclass

import torch

from keel_judge.measure import Expected
from keel_judge.rounding import EPS, TINY, relative_sum_error, sum_error_of


@dataclass
class Groups:
    """x as (groups, elements that share statistics), with gain and bias of each element."""

    x: torch.Tensor
    gain: torch.Tensor
    bias: torch.Tensor

    def shaped(self, per_group):
        return per_group.reshape(-1, 1)


def of_rstd(of_variance):
    """From the relative error of a variance to that of 1 / s. At 1 and above there is no bound."""
    rr = of_variance / (2 * (1 - of_variance)) + 3 * EPS
    return torch.where(of_variance < 1, rr, torch.inf)


class Statistics:
    """Mean and 1 / s of every group, and how far a kernel may be from them: in two passes, or in
    one (mean(x^2) - mean^2)."""

    def __init__(self, groups, eps, is_centred=True):
        x = groups.x
        n = x.shape[1]
        self.mean = x.mean(1, keepdim=True) if is_centred else torch.zeros_like(x[:, :1])
        squares = (x - self.mean).square()
        self.var = squares.mean(1, keepdim=True)
        self.rstd = (self.var + eps).rsqrt()
        of_sum = sum_error_of(x, 1, True).largest
        self.of_mean = of_sum / max(1, n) + EPS * self.mean.abs() if is_centred \
            else torch.zeros_like(self.mean)
        kappa2 = x.square().mean(1, keepdim=True) * self.rstd.square()
        p = relative_sum_error(squares, 1, True)
        shift = (self.of_mean * self.rstd).square()
        p_x = relative_sum_error(x.square(), 1, True)
        self.of_variance = p * (2 + kappa2.sqrt()) + (p * kappa2.sqrt()).square() + shift \
            + 3 * EPS
        self.of_one_pass = (p_x + 4 * EPS) * 2 * kappa2 + self.of_variance
        self.of_rstd = of_rstd(self.of_variance)


def normalized(groups, stats, of_rstd_relative, eps=EPS):
    """y and its bound, for given errors of 1 / s; `eps` is that of the type of the kernel's
    numbers, between statistics and result."""
    of_mean = stats.of_mean + (eps * stats.mean.abs() if eps > EPS else 0)
    xhat = (groups.x - stats.mean) * stats.rstd
    y = xhat * groups.gain + groups.bias
    of_xhat = stats.rstd * of_mean + xhat.abs() * of_rstd_relative \
        + 2 * eps * stats.rstd * (groups.x.abs() + stats.mean.abs())
    error = groups.gain.abs() * of_xhat + 4 * eps * (y.abs() + groups.bias.abs()) + TINY
    return y, error.nan_to_num(torch.inf)


def forward(groups, stats, back, narrow=0.0):
    """y, mean and rstd; `back` gives y its shape, `narrow` is the eps of 16-bit inputs."""
    y, error = normalized(groups, stats, stats.of_rstd)
    loose = normalized(groups, stats, of_rstd(stats.of_one_pass))[1]
    one_pass = of_rstd(stats.of_one_pass) * stats.rstd
    results = [Expected(back(y), back(error), wider={"one-pass variance": back(loose)}),
               Expected(stats.mean.flatten(), stats.of_mean.flatten() + TINY),
               Expected(stats.rstd.flatten(), (stats.of_rstd * stats.rstd).flatten() + TINY,
                        wider={"one-pass variance": one_pass.flatten() + TINY})]
    if narrow:
        add_narrow(results, groups, stats, (back, narrow))
    return results


def add_narrow(results, groups, stats, how):
    """Kernels that keep statistics, or x a + b, in the 16 bits of their inputs."""
    back, eps = how
    of_rstd_narrow = stats.of_rstd + 4 * eps
    results[0].wider["statistics in 16 bits"] = back(
        normalized(groups, stats, of_rstd_narrow, eps)[1])
    results[1].wider["statistics in 16 bits"] = results[1].error \
        + 2 * eps * stats.mean.flatten().abs()
    results[2].wider["statistics in 16 bits"] = (of_rstd_narrow * stats.rstd).flatten()


def affine(call, like, expand):
    """gain and bias as groups; 1 and 0 where there are none."""
    one, zero = torch.ones_like(like), torch.zeros_like(like)
    gain = expand(call["weight"]) if call.has("weight") else one
    return gain, expand(call["bias"]) if call.has("bias") else zero


class Rows:
    """The groups of layer norm: everything below the normalized shape."""

    def __init__(self, call):
        x, shape = call["input"], call["normalized_shape"]
        width = 1
        for size in shape:
            width *= size
        self.shape, self.width = x.shape, width

    def take(self, t):
        return t.reshape(-1, self.width)

    def expand(self, weight):
        return weight.reshape(1, -1).expand(self.shape.numel() // self.width, self.width)

    def back(self, t):
        return t.reshape(self.shape)

    def per_feature(self, t):
        return t.sum(0)


class Channels:
    """The groups of group norm (N, groups), or of batch norm (channels over the batch)."""

    def __init__(self, shape, groups=None):
        self.shape, self.groups = shape, groups
        self.area = shape[2:].numel() if len(shape) > 2 else 1

    def take(self, t):
        if self.groups is not None:
            return t.reshape(self.shape[0] * self.groups, -1)
        return t.transpose(0, 1).reshape(self.shape[1], -1)

    def expand(self, weight):
        whole = weight.reshape(1, -1, *[1] * (len(self.shape) - 2)).expand(self.shape)
        return self.take(whole)

    def back(self, t):
        if self.groups is not None:
            return t.reshape(self.shape)
        return t.reshape(self.shape[1], self.shape[0], *self.shape[2:]).transpose(0, 1)


def takes_one_pass(call):
    """PyTorch's group norm of channels-last images is the one kernel that is known to."""
    x = call.given["input"]
    return call.name == "native_group_norm" and not x.is_contiguous()


def shape_results(call, results):
    """Saved statistics in the shape that the op gave them."""
    for expected in results if not takes_one_pass(call) else ():
        expected.wider.pop("one-pass variance", None)
    for result, expected in zip(call.results[1:], results[1:]):
        expected.value = expected.value.reshape(result.got.shape)
        expected.error = expected.error.reshape(result.got.shape)
        expected.wider = {k: v.reshape(result.got.shape) for k, v in expected.wider.items()}
    return results


def layer_norm(call):
    rows = Rows(call)
    x = rows.take(call["input"])
    groups = Groups(x, *affine(call, x, rows.expand))
    return shape_results(call, forward(groups, Statistics(groups, call["eps"]), rows.back,
                                       call.narrow_eps()))


def rms_norm(call):
    """y = gain x / sqrt(mean(x^2) + eps), and 1 / s. The eps that is not given is the type's."""
    rows = Rows(call)
    x = rows.take(call["input"])
    groups = Groups(x, *affine(call, x, rows.expand))
    eps = call["eps"] if call.has("eps") else torch.finfo(call.given["input"].dtype).eps
    results = forward(groups, Statistics(groups, eps, is_centred=False), rows.back,
                      call.narrow_eps())
    return shape_results(call, [results[0], results[2]][:len(call.results)])


def group_norm(call):
    """input as (N, C, HxW) in groups of channels."""
    x = call["input"]
    if x.numel() == 0:
        return [Expected(torch.zeros(r.got.shape), is_exact=True) for r in call.results]
    view = Channels(x.shape, call["group"])
    groups = Groups(view.take(x), *affine(call, view.take(x), view.expand))
    return shape_results(call, forward(groups, Statistics(groups, call["eps"]), view.back,
                                       call.narrow_eps()))


class Given:
    """Statistics of a state: read, not computed."""

    def __init__(self, mean, var, eps):
        self.mean, self.var = mean.reshape(-1, 1), var.reshape(-1, 1)
        self.rstd = (self.var + eps).rsqrt()
        self.of_mean, self.of_rstd = EPS * self.mean.abs(), torch.full_like(self.mean, 4 * EPS)
        self.of_one_pass = torch.full_like(self.mean, 4 * EPS)


def batch_norm(call):
    """y, saved mean and rstd, and the running statistics after a step of training."""
    x = call["input"]
    view = Channels(x.shape)
    groups = Groups(view.take(x), *affine(call, view.take(x), view.expand))
    trains = call["training"] if call.has("training") else "no_" not in call.name
    stats = Statistics(groups, call["eps"]) if trains else \
        Given(call["running_mean"], call["running_var"], call["eps"])
    results = forward(groups, stats, view.back, call.narrow_eps())
    if not trains:
        return ([results[0]] + [None] * len(call.results))[:len(call.results)]
    wanted = []
    for expected in results:
        expected.wider.pop("one-pass variance", None)
    for result in call.results:
        wanted.append(of_batch(call, result, results, (stats, groups.x.shape[1])))
    return wanted


def of_batch(call, result, results, seen):
    """The Expected of one result of a batch norm that trains, by its name."""
    stats, count = seen
    if result.name in ("running_mean", "running_var"):
        former = call[result.name]
        return blended(call, former, stats, count) if former is not None else None
    place = [r.name for r in call.results].index(result.name)
    if place > 2:
        return None  # what cuDNN reserves
    expected = results[place]
    if result.got.numel() == 0:
        return None
    expected.value = expected.value.reshape(result.got.shape)
    return expected


def blended(call, former, stats, count):
    """(1 - momentum) former + momentum new, with the variance over one less."""
    share = call["momentum"]
    is_mean = former is call["running_mean"]
    new = stats.mean if is_mean else stats.var * count / max(1, count - 1)
    error = stats.of_mean if is_mean else stats.of_variance * new + 2 * stats.of_mean.square()
    new, error = new.flatten(), error.flatten()
    value = (1 - share) * former + share * new
    sizes = (1 - share) * former.abs() + share * new.abs()
    return Expected(value, share * error + 4 * EPS * sizes + TINY, wider={
        "statistics in 16 bits": share * error + 4 * call.narrow_eps() * sizes})


RULES = {"native_layer_norm": layer_norm, "layer_norm": layer_norm, "_fused_rms_norm": rms_norm,
         "rms_norm": rms_norm, "native_group_norm": group_norm, "native_batch_norm": batch_norm,
         "_native_batch_norm_legit": batch_norm, "cudnn_batch_norm": batch_norm,
         "_batch_norm_with_update": batch_norm, "_batch_norm_no_update": batch_norm,
         "_native_batch_norm_legit_no_training": batch_norm}
