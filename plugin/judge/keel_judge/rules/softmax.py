"""Softmax, its logarithm, their backwards, and logsumexp (docs/numerics.md, Softmax and losses):
exp(x - max) is off by 2.4 d + 4 eps for a distance d, and the sum is scaled down in tiles."""
import math

import torch

from keel_judge.measure import Expected, allow_narrow_steps
from keel_judge.rounding import EPS, TINY, relative_sum_error, sum_error_of

TILE = 16  # the least that a kernel takes at a time


class Row:
    """Rows of logits along `dim`, with the relative error of their sums of exponentials."""

    def __init__(self, x, dim, counts=None):
        self.high = x.amax(dim, keepdim=True)
        self.distance = self.high - x
        exps = torch.exp(-self.distance)
        total = exps.sum(dim, keepdim=True)
        self.p = exps / total
        n = x.shape[dim]
        tiles = 8 * EPS * math.sqrt(1 + n / TILE)
        of_terms = (self.p * self.of_exp()).nan_to_num(0, 0, 0).sum(dim, keepdim=True)
        self.of_sum = of_terms + tiles + relative_sum_error(exps, dim, True)
        self.log = total.log()
        self.lse = self.high + self.log

    def of_exp(self):
        """Relative; an exponential of minus infinity is 0, exactly."""
        return EPS * (2.4 * self.distance + 4)

    def of_lse(self):
        return self.of_sum + EPS * (8 * self.log.abs() + 2 * self.lse.abs())


def finite(error):
    """Where p is 0 the distance may be infinite: 0 times infinity is nothing."""
    return error.nan_to_num(0.0, torch.inf)


def softmax(call):
    value = call.run()[0]
    row = Row(call["self"], call["dim"])
    error = finite(value * (row.of_exp() + 5 * EPS + row.of_sum)) + TINY
    return [Expected(value, error)]


def log_softmax(call):
    value = call.run()[0]
    row = Row(call["self"], call["dim"])
    error = row.of_lse() + EPS * (2 * row.distance + 2 * value.abs())
    return allow_narrow_steps(call, [Expected(value, error.nan_to_num(0.0, torch.inf),
                                              roundings=2)])


def softmax_backward(call):
    """dx = y (dy - sum dy y); of 16-bit numbers PyTorch 2.6 rounds dy - sum to 16 bits on a CPU."""
    dy, y, dim = call["grad_output"], call["output"], call["dim"]
    terms = dy * y
    dot = terms.sum(dim, keepdim=True)
    of_dot = sum_error_of(terms, dim, True).largest
    error = y.abs() * (of_dot + 4 * EPS * (dy.abs() + dot.abs())) + TINY
    return allow_narrow_steps(call, [Expected(y * (dy - dot), error)])


def log_softmax_backward(call):
    """dx = dy - exp(y) sum dy"""
    dy, y, dim = call["grad_output"], call["output"], call["dim"]
    total = dy.sum(dim, keepdim=True)
    p = torch.exp(y)
    value = dy - (p * total)
    of_exp = ((6 + 2.4 * y.abs()) * p).nan_to_num(0, 0, 0)
    error = p * sum_error_of(dy, dim, True).largest + EPS * of_exp * total.abs() \
        + 2 * EPS * dy.abs() + TINY
    return [Expected(value, error, roundings=2)]


def logsumexp(call):
    x, dims = call["self"], call["dim"]
    dims = [dims] if isinstance(dims, int) else list(dims)
    value = call.run()[0]
    order = [d for d in range(x.dim()) if d not in [d % x.dim() for d in dims]]
    flat = x.permute(*order, *[d % x.dim() for d in dims]).flatten(len(order))
    row = Row(flat, -1)
    error = row.of_lse().reshape(value.shape).nan_to_num(0.0, torch.inf) + TINY
    return [Expected(value, error, roundings=2)]


RULES = {"_softmax": softmax, "_safe_softmax": softmax, "_log_softmax": log_softmax,
         "_softmax_backward_data": softmax_backward,
         "_log_softmax_backward_data": log_softmax_backward, "logsumexp": logsumexp}
