"""The derivatives of <dx, v> by x, dy and gain, with bounds.

With h = xhat, r = 1 / s, g = dy gain, and the means a of g h, b of h v, and c of g v less the
product of their means, <dx, v> = n r (c - a b). Then

    by g     r (v - mean v - h b)
    by x    -r² (h (c - 3 a b) + b (g - mean g) + a (v - mean v))

A bound is 16 times the largest relative error of a factor (at most 8 factors, two roundings each)
of the sum of the sizes of all terms, where |h| is made as large as its own error asks for."""
import math

from keel_judge.acid_test.claim import Reference
from keel_judge.rounding import EPS, TINY

FACTORS = 16


class Terms:
    """Terms of groups that both formulas share: values, and their sizes."""

    def __init__(self, reference, dy, v):
        stats, x, n = reference.stats, reference.groups.x, reference.groups.x.shape[1]
        self.centred, self.r = reference.claim.is_centred, stats.rstd
        self.g, self.v = dy * reference.groups.gain, v
        self.h = (x - stats.mean) * stats.rstd
        self.share = EPS * (min(n, 8 * math.sqrt(n)) + 2) + stats.of_rstd
        off = stats.rstd * stats.of_mean + self.h.abs() * stats.of_rstd \
            + 2 * EPS * stats.rstd * (x.abs() + stats.mean.abs())
        self.size = (off / self.share).maximum(self.h.abs())

    def mean(self, t):
        return t.mean(1, keepdim=True)

    def less_mean(self, t):
        return t - self.mean(t) if self.centred else t

    def and_mean(self, t):
        return t.abs() + self.mean(t.abs()) if self.centred else t.abs()

    def by_g(self):
        b = self.mean(self.h * self.v)
        size_b = self.mean(self.size * self.v.abs())
        value = self.r * (self.less_mean(self.v) - self.h * b)
        return value, FACTORS * self.share * self.r * (self.and_mean(self.v) + self.size * size_b)

    def by_x(self):
        g, v, h, size = self.g, self.v, self.h, self.size
        a, b = self.mean(g * h), self.mean(h * v)
        c = self.mean(g * v) - (self.mean(g) * self.mean(v) if self.centred else 0)
        value = -self.r.square() * (h * (c - 3 * a * b) + b * self.less_mean(g)
                                    + a * self.less_mean(v))
        a, b = self.mean(g.abs() * size), self.mean(size * v.abs())
        c = self.mean(g.abs() * v.abs()) + self.mean(g.abs()) * self.mean(v.abs())
        sizes = size * (c + 3 * a * b) + b * self.and_mean(g) + a * self.and_mean(v)
        return value, FACTORS * self.share * self.r.square() * sizes


def second_order(claim, arrays, v):
    """name: (value, bound) of the derivatives of <dx, v> by x, dy and gain."""
    reference = Reference(claim, arrays.x, arrays.gain, arrays.bias)
    reference.backward(arrays.dy)
    take, back = reference.grouping.take, reference.back
    terms = Terms(reference, take(reference.dy), take(v.double().reshape(reference.x.shape)))
    found = {"x": tuple(back(t) + TINY * k for k, t in enumerate(terms.by_x()))}
    value, error = terms.by_g()
    gain = reference.groups.gain
    found["dy"] = back(value * gain), back(error * gain.abs()) + TINY
    if reference.own_gain is not None:
        of_dy, unshaped = take(reference.dy), reference.grouping.back
        own, more = unshaped(of_dy * value), unshaped(of_dy.abs() * error)
        collect = reference.collect
        count = own.numel() / max(1, reference.own_gain.numel())
        rounding = EPS * (min(count, 8 * math.sqrt(count)) + 2)
        found["gain"] = collect(own), collect(more) + rounding * collect(own.abs()) + TINY
    return found
