"""Whether a gradient is a norm's, or that of one with constant parts or a lost offset."""
import torch

from keel_judge.norms.forms import StateStatistics
from keel_judge.rounding import EPS, TINY, sum_error
from keel_judge.rules.norm_gradients import Backward


def over(stats, n):
    """By what the sum of g xhat is divided: n, n - 1, or 1 where the statistic is a length."""
    if getattr(stats, "place", "") == "clamp":
        return 1
    return n if getattr(stats, "biased", True) else n - 1


class Gradient:
    """dx of a candidate for each way in which programs form it."""

    def __init__(self, candidate, dy, gain, nu=None):
        g = candidate.grouping
        self.candidate, self.stats = candidate, candidate.stats
        self.x, self.dy, self.gain = candidate.groups.x, g.take(dy), candidate.groups.gain
        self.plain_gain = g.take(gain)
        self.n, self.nu = self.x.shape[1], nu
        self.xhat = (self.x - self.stats.mean) * self.stats.rstd
        self.is_centred = bool((self.stats.mean != 0).any())

    def variants(self):
        """(name, value) of dx, the right one first."""
        if isinstance(self.stats, StateStatistics):
            yield from self.of_state()
            return
        whole = self.dx(self.dy * self.gain, True, True)
        yield "exact", whole
        if self.is_centred:
            yield ("backward treats mean and deviation as constants",
                   self.dx(self.dy * self.gain, False, False))
            yield ("backward treats the mean as a constant",
                   self.dx(self.dy * self.gain, False, True))
            yield ("backward treats the deviation as a constant",
                   self.dx(self.dy * self.gain, True, False))
        else:
            yield ("backward treats the divisor as a constant",
                   self.dx(self.dy * self.gain, False, False))
        if self.candidate.options.get("offset"):
            yield ("backward ignores the +1 on the gain",
                   self.dx(self.dy * self.plain_gain, True, True))
        else:
            yield "backward adds 1 to the gain", self.dx(self.dy * (self.gain + 1), True, True)
        yield "backward ignores the gain", self.dx(self.dy, True, True)
        yield ("backward multiplies by the gain twice",
               self.dx(self.dy * self.gain.square(), True, True))
        if self.is_centred:
            yield "mean of xhat forgotten", self.dx(self.dy * self.gain, True, True, True)

    def of_state(self):
        """Statistics of a state are constants; PowerNorm takes nu for the mean of g xhat."""
        g = self.dy * self.gain
        if self.nu is not None:
            yield "exact", self.stats.rstd * (g - self.nu.reshape(-1, 1) * self.xhat)
            yield "without nu", self.stats.rstd * g
        else:
            yield "exact", self.stats.rstd * g
        yield "as if the statistics were the batch's", self.dx(g, True, True)

    def dx(self, g, through_mean, through_scale, xhat_only=False):
        value = g.clone()
        if through_mean and self.is_centred and not xhat_only:
            value = value - g.mean(1, keepdim=True)
        if through_scale:
            slope = (g * self.xhat).sum(1, keepdim=True) / over(self.stats, self.n)
            value = value - self.slope_share() * self.xhat * slope
        return self.stats.rstd * value

    def slope_share(self):
        """With eps outside of the root ds / dx has another factor: 1 / (s - eps) for 1 / s."""
        stats = self.stats
        if getattr(stats, "place", "") == "outside":
            sd = stats.var.sqrt()
            return 1 / (stats.rstd * sd)
        if getattr(stats, "place", "") == "clamp":
            length = (stats.var * self.n).sqrt()
            return (length > stats.eps).double()
        return torch.ones_like(stats.rstd)

    def bound(self, narrow):
        """The bound of the exact form, with statistics that the other program found for itself."""
        stats = self.stats
        backward = Backward((self.x, self.dy, self.gain), stats.mean, stats.rstd)
        backward.is_centred = self.is_centred
        value, error = backward.dx()
        g = (self.dy * self.gain).abs()
        of_xhat = stats.rstd * stats.of_mean + self.xhat.abs() * stats.of_rstd
        product = (g * self.xhat.abs()).mean(1, keepdim=True)
        moved_sum = (g * of_xhat).mean(1, keepdim=True)
        if getattr(stats, "place", "") == "clamp":
            product, moved_sum = product * self.n, moved_sum * self.n
        mean_g = g.mean(1, keepdim=True) if self.is_centred else 0
        moved = stats.of_rstd * (g + mean_g + 3 * self.xhat.abs() * product) \
            + of_xhat * (product + moved_sum) + self.xhat.abs() * moved_sum
        share = self.slope_share().clamp(min=1)
        total = share * (error + stats.rstd.abs() * moved) * (
            self.n / max(1, over(stats, self.n)) if over(stats, self.n) > 1 else 1)
        if getattr(stats, "place", "") == "clamp":
            total = total * self.n**0.5
        return total + narrow * (value.abs() + total) + TINY


def distances(candidate, problem):
    """The distance of dx, in bounds, from each variant."""
    if problem.dy is None or problem.dx is None or candidate.stats is None:
        return {}
    nu = problem.before.get("nu") if candidate.norm == "powernorm" else None
    gradient = Gradient(candidate, problem.dy, problem.gain(candidate.grouping), nu)
    bound = gradient.bound(problem.narrow)
    dx = candidate.grouping.take(problem.dx)
    return {name: largest((dx - value).abs(), bound) for name, value in gradient.variants()}


def largest(error, bound):
    share = torch.where(error == 0, 0.0, error / bound)
    return float(share.nan_to_num(torch.inf).max())


def gain_gradient(candidate, problem, collect):
    """The sum of dy xhat, and its bound before it is rounded to its type."""
    g, stats, x = candidate.grouping, candidate.stats, candidate.groups.x
    xhat = (x - stats.mean) * stats.rstd
    multiplied = xhat if candidate.multiplied is None else candidate.multiplied
    terms = g.back(g.take(problem.dy) * multiplied)
    unit = g.back((x.abs() + stats.mean.abs()) * stats.rstd.abs())
    off = g.back(stats.rstd * stats.of_mean + xhat.abs() * stats.of_rstd)
    value = collect(terms)
    e = sum_error(terms.numel() / max(1, value.numel()), collect(terms.abs()),
                  collect(terms.square()), value).largest
    return value, e + collect(problem.dy.abs() * (4 * EPS * unit + off)) + TINY


def gain_distance(candidate, problem):
    """The distance of dgain from the sum of dy xhat, in bounds; None if it was not given."""
    if problem.dy is None or problem.dgain is None or candidate.stats is None:
        return None
    g, dy, shape = candidate.grouping, problem.dy, problem.dgain
    axis = 1 if dy.dim() == 4 or g.by_channel else dy.dim() - 1

    def collect(t):
        if shape.numel() == 1 or of_rows:
            return t.sum(0) if of_rows else t.sum().reshape(shape.shape)
        return t.movedim(axis, 0).flatten(1).sum(1).reshape(shape.shape)
    of_rows = dy.dim() > 2 and shape.shape == dy.shape[1:]
    if shape.numel() not in (1, dy.shape[axis]) and not of_rows:
        return None
    value, bound = gain_gradient(candidate, problem, collect)
    bound = bound + problem.narrow * (shape.abs() + bound)
    return largest((shape - value).abs(), bound)
