"""The formula that a norm claims, and its results with their bounds: y, dx, dgain and dbias.

Formulas and bounds are those of `identify` (keel_judge.norms); this file only chooses among them.
"""
from dataclasses import dataclass, replace

import torch

from keel_judge.measure import Expected
from keel_judge.norms.forms import Candidate, OptionStatistics, StateStatistics
from keel_judge.norms.gradients import Gradient, gain_gradient
from keel_judge.norms.groupings import Grouping, expanded
from keel_judge.rounding import EPS, TINY, sum_error
from keel_judge.rules.norms import Groups, Statistics, normalized, of_rstd

# norm: (whether it subtracts the mean, over what, whether it usually has a bias).
KINDS = {"layernorm": (True, "row", True), "rmsnorm": (False, "row", False),
         "groupnorm": (True, "group", True), "instancenorm": (True, "sequence", True),
         "batchnorm": (True, "batch", True)}
DEFAULT_EPS = {"rmsnorm": 1e-6}
CASTS = ("end", "before gain")


@dataclass(frozen=True)
class Claim:
    """The norm by keel's name, and its options; None is what is not claimed."""

    norm: str
    eps: float | None = None
    eps_place: str = "inside"
    unbiased: bool = False
    offset: int = 0
    groups: int = 2
    cast: str | None = None  # where 16-bit kernels round xhat: one of CASTS
    momentum: float = 0.1

    def __post_init__(self):
        if self.norm not in KINDS:
            raise ValueError(f"--as {self.norm}: expected one of {', '.join(KINDS)}")
        if self.cast not in (None, *CASTS):
            raise ValueError(f"--cast {self.cast}: expected one of {', '.join(CASTS)}")

    @property
    def is_centred(self):
        return KINDS[self.norm][0]

    @property
    def extent(self):
        return KINDS[self.norm][1]

    @property
    def of_rows(self):
        return self.extent == "row"

    @property
    def used_eps(self):
        return DEFAULT_EPS.get(self.norm, 1e-5) if self.eps is None else self.eps

    def text(self):
        parts = [f"eps={self.used_eps:g}"]
        parts += ["eps outside the root"] if self.eps_place == "outside" else []
        parts += ["variance over n - 1"] if self.unbiased else []
        parts += [f"offset={self.offset}"] if self.offset else []
        parts += [f"groups={self.groups}"] if self.extent == "group" else []
        return f"{self.norm}{{{', '.join(parts)}}}"


def flat(claim, t):
    """A tensor in two or three axes, in which groupings are told: rows, or channels and steps."""
    if claim.of_rows:
        return t.reshape(t.shape[:-1].numel() if t.dim() > 1 else 1, t.shape[-1])
    return t.reshape(t.shape[0], t.shape[1], t.shape[2:].numel())


def grouping_of(claim, shape):
    if claim.of_rows:
        return Grouping("row", shape, [1])
    if claim.extent == "group":
        whole = Grouping("one group", shape, [1, 2]) if claim.groups == 1 else \
            Grouping("group", shape, [2, 3], (1, claim.groups))
    else:
        whole = Grouping(claim.extent, shape, [2] if claim.extent == "sequence" else [0, 2])
    whole.by_channel = True
    return whole


class Reference:
    """The results of one call in float64, each an Expected: y, and after `backward(dy)` dx, dgain
    and dbias. `state` holds the running statistics of a norm that is evaluated."""

    def __init__(self, claim, x, gain=None, bias=None, state=None):
        self.claim, self.shape = claim, x.shape
        self.x = flat(claim, x.detach().double())
        self.grouping = grouping_of(claim, self.x.shape)
        self.own_gain = gain.detach().double() if gain is not None else None
        self.has_bias, self.state = bias is not None, state
        self.bias = self._wide(bias.detach().double() if bias is not None else None, 0.0)
        taken = self.grouping.take(self.x)
        self.groups = Groups(taken, self.grouping.take(self._wide(self.own_gain, 1.0))
                             + (claim.offset if gain is not None else 0),
                             self.grouping.take(self.bias))
        self.stats = self._statistics()
        self.candidate = Candidate(claim.norm, {"offset": claim.offset} if claim.offset else {},
                                   None, self.stats, self.groups, self.grouping)

    def _wide(self, parameter, default):
        return expanded(parameter, self.x.shape, default, self.grouping.by_channel)

    def _statistics(self):
        claim, x = self.claim, self.groups.x
        if self.state is not None:
            return StateStatistics(*self.state, claim.used_eps)
        base = Statistics(Groups(x, x, x), 0.0, claim.is_centred)
        return OptionStatistics(base, x.shape[1], (claim.eps_place, not claim.unbiased,
                                                   claim.used_eps))

    def back(self, t):
        return self.grouping.back(t).reshape(self.shape)

    def y(self, narrow=0.0):
        """With the classes of kernels that have larger errors; `narrow` is the eps of a 16-bit
        type."""
        groups, stats = self.groups, self.stats
        value, error = normalized(groups, stats, stats.of_rstd)
        wider = {}
        if narrow:
            xhat = ((groups.x - stats.mean) * stats.rstd * groups.gain).abs()
            wider["x̂ rounded before the gain"] = error + narrow * 1.01 * xhat
            wider["steps in 16 bits"] = error + 4 * narrow * (xhat + groups.bias.abs())
            wider["statistics in 16 bits"] = normalized(groups, stats, stats.of_rstd + 4 * narrow,
                                                        narrow)[1]
        if self.state is None and self.claim.is_centred:
            share = stats.of_variance / stats.base.of_variance
            loose = of_rstd((stats.base.of_one_pass * share.nan_to_num(1.0)) + 3 * EPS)
            wider["one-pass variance"] = normalized(groups, stats, loose)[1]
        return Expected(self.back(value), self.back(error).nan_to_num(torch.inf),
                        wider={k: self.back(v).nan_to_num(torch.inf) for k, v in wider.items()})

    def backward(self, dy, narrow=0.0):
        """dx, dgain and dbias as a dictionary of those that there are."""
        self.dy = flat(self.claim, dy.detach().double())
        gradient = self._gradient()
        value = next(gradient.variants())[1]
        error = self._of_state(value) if self.state is not None else gradient.bound(0.0)
        wider = {"steps in 16 bits": error + narrow * self._step_sizes()} if narrow else {}
        found = {"dx": Expected(self.back(value), self.back(error).nan_to_num(torch.inf),
                                wider={k: self.back(v).nan_to_num(torch.inf)
                                       for k, v in wider.items()})}
        if self.own_gain is not None:
            terms = self.dy * self.grouping.back(gradient.xhat)
            found["dgain"] = self._parameter(*gain_gradient(self.candidate, self, self.collect),
                                             (narrow, terms))
        if self.has_bias:
            value = self.collect(self.dy)
            e = sum_error(self.dy.numel() / max(1, value.numel()), self.collect(self.dy.abs()),
                          self.collect(self.dy.square()), value).largest
            found["dbias"] = self._parameter(value, e + TINY, (narrow, self.dy))
        return found

    def _gradient(self):
        gradient = Gradient(self.candidate, self.dy, self._wide(self.own_gain, 1.0))
        gradient.is_centred = self.claim.is_centred  # also where every mean happens to be 0
        return gradient

    def _step_sizes(self):
        """Four roundings of each term of dx."""
        g = (self.grouping.take(self.dy) * self.groups.gain).abs()
        xhat = ((self.groups.x - self.stats.mean) * self.stats.rstd).abs()
        product = (g * xhat).mean(1, keepdim=True)
        mean = g.mean(1, keepdim=True) if self.claim.is_centred else 0
        return 4 * self.stats.rstd * (g + mean + xhat * product)

    def _parameter(self, value, error, rounded):
        """Terms that are rounded to 16 bits one by one, independently (docs/numerics.md: 8 of their
        deviations), and a result that is rounded twice."""
        narrow, terms = rounded
        steps = 8 * self.collect(terms.square()).sqrt() + 2 * value.abs()
        wider = {"steps in 16 bits": error + 2 * narrow * steps} if narrow else {}
        return Expected(value, error.nan_to_num(torch.inf), wider=wider)

    def _of_state(self, value):
        return 8 * EPS * value.abs() + TINY

    def variants(self):
        """dx for each wrong way in which programs form it, by name."""
        gradient = self._gradient()
        return {name: self.back(value) for name, value in gradient.variants()}

    def collect(self, t):
        """The sum over all that shares a parameter."""
        return t.sum(0) if self.claim.of_rows else t.sum((0, 2))

    def running(self, before, count_less=1):
        """Running mean and variance after a step of training, with their bounds."""
        share, n = self.claim.momentum, self.groups.x.shape[1]
        base, found = self.stats.base, []
        new = {"running_mean": (base.mean, base.of_mean), "running_var": (
            base.var * n / max(1, n - count_less),
            base.of_variance.nan_to_num(1.0) * base.var + 2 * base.of_mean.square())}
        for name, (value, error) in new.items():
            value, error, former = value.flatten(), error.flatten(), before[name].double()
            sizes = (1 - share) * former.abs() + share * value.abs()
            found.append((name, Expected((1 - share) * former + share * value,
                                         2 * share * error + 6 * EPS * sizes + TINY)))
        return dict(found)


def claim_with(claim, **changes):
    return replace(claim, **changes)
