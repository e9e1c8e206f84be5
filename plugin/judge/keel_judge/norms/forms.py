"""The forms that norms have, with their values in float64 and the bounds of rounding."""
from dataclasses import dataclass, field

import torch

from keel_judge.rounding import EPS, TINY
from keel_judge.rules.norms import Groups, Statistics, normalized, of_rstd

# 1.1920929e-07, the spacing of float32 at 1, is what PyTorch's RMSNorm takes where none is given.
EPSILONS = (0.0, 1e-12, 1e-8, 1e-7, 1.1920929e-07, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)


@dataclass
class Candidate:
    """A norm with options: y and its bound, and what its gradients need. y is computed when it is
    asked for, because there are a thousand candidates."""

    norm: str
    options: dict
    own_y: torch.Tensor | None = None  # of a form without statistics
    stats: object = None
    groups: Groups = None
    grouping: object = None
    multiplied: torch.Tensor | None = None  # what the gain multiplies, if it is not xhat
    own_error: torch.Tensor | None = None
    distance: float = float("inf")
    gradients: dict = field(default_factory=dict)

    @property
    def y(self):
        if self.own_y is not None:
            return self.own_y
        xhat = (self.groups.x - self.stats.mean) * self.stats.rstd
        return xhat * self.groups.gain + self.groups.bias

    def text(self):
        options = ", ".join(f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}"
                            for k, v in self.options.items())
        return f"{self.norm}{{{options}}}" if options else self.norm


class OptionStatistics:
    """Statistics with eps inside or outside of the root, and a variance over n or n - 1. `base`
    are those without eps, which candidates share; what rounding adds is computed when asked for."""

    def __init__(self, base, n, how):
        self.place, self.biased, self.eps = how
        self.base, self.mean, self.of_mean = base, base.mean, base.of_mean
        self.var = base.var if self.biased else base.var * n / max(1, n - 1)
        if self.place == "outside":
            self.rstd = 1 / (self.var.sqrt() + self.eps)
        elif self.place == "clamp":  # of the length, not of the mean
            self.rstd = 1 / (self.var * n).sqrt().clamp(min=self.eps)
        else:
            self.rstd = (self.var + self.eps).rsqrt()

    @property
    def of_variance(self):
        """An eps inside of the root takes its share of the error away. In a group of equal numbers
        each square is that of the mean's error; the roundings of their sum cannot double it."""
        of_variance = self.base.of_variance.nan_to_num(torch.inf)
        if self.place != "inside":
            return of_variance
        of_equal = 2 * (self.of_mean * self.rstd).square().nan_to_num(torch.inf)
        of_others = of_variance * (self.var * self.rstd.square()).nan_to_num(0.0).clamp(max=1)
        return torch.where(self.base.var == 0, of_equal, of_others)

    @property
    def of_rstd(self):
        return of_rstd(self.of_variance + 3 * EPS)


def plain_name(problem, grouping, is_centred, place):
    """keel's name of a norm with such statistics."""
    has_parameters = problem.has_parameters
    if place == "clamp":
        return "weightnorm" if problem.has_unit_gain else "scalenorm"
    if is_centred:
        of_rows = "layernorm" if has_parameters else "layernorm_simple"
        return {"row": of_rows, "place": of_rows, "batch": "batchnorm", "sequence": "instancenorm",
                "group": "groupnorm", "one group": "groupnorm",
                "step": "recurrentbatchnorm"}[grouping.name]
    return {"row": "rmsnorm", "batch": "pn_v", "group": "groupscaling", "one group": "rmsnorm",
            "sequence": "filter response norm", "step": "pn_v of a time step",
            "place": "rmsnorm of channels"}[grouping.name]


def plain(problem, grouping):
    """Every centred and uncentred norm over a grouping, with all options."""
    x, bias = grouping.take(problem.x), grouping.take(problem.bias(grouping))
    bases = {centred: Statistics(Groups(x, x, x), 0.0, centred) for centred in (True, False)}
    for offset in (0, 1) if problem.has_gain else (0,):
        groups = Groups(x, grouping.take(problem.gain(grouping)) + offset, bias)
        for is_centred in (True, False):
            for place, biased, eps in options(grouping, is_centred):
                stats = OptionStatistics(bases[is_centred], x.shape[1], (place, biased, eps))
                named = {"eps": eps}
                named |= {"eps_place": place} if place != "inside" else {}
                named |= {} if biased else {"unbiased": True}
                named |= {"offset": 1} if offset else {}
                named |= shown(grouping, is_centred)
                yield Candidate(plain_name(problem, grouping, is_centred, place), named, None,
                                stats, groups, grouping)


def shown(grouping, is_centred):
    """The options of a grouping that are shown beside the norm's name."""
    named = {"groups": grouping.parts} if grouping.parts > 1 else {}
    named |= {"groups": 1} if grouping.name == "one group" and is_centred else {}
    named |= {"per_pixel": True} if grouping.name == "place" and is_centred else {}
    return named | ({"channel_axis": 1} if grouping.by_channel else {})


def options(grouping, is_centred):
    for eps in EPSILONS:
        yield "inside", True, eps
        if eps > 0:
            yield "outside", True, eps
        if is_centred:
            yield "inside", False, eps
            if eps > 0:
                yield "outside", False, eps
        elif grouping.name == "row":
            yield "clamp", True, eps


def adanorm(problem, grouping):
    """C (1 - k xhat) xhat, with C and k found by least squares."""
    if grouping.name != "row" or problem.has_parameters:
        return
    x = grouping.take(problem.x)
    base = Statistics(Groups(x, x, x), 0.0, True)
    for place, biased, eps in options(grouping, True):
        stats = OptionStatistics(base, x.shape[1], (place, biased, eps))
        xhat = (x - stats.mean) * stats.rstd
        columns = torch.stack([xhat.flatten(), xhat.square().flatten()], 1)
        if not bool(columns.isfinite().all()):
            continue
        c, ck = torch.linalg.lstsq(columns, grouping.take(problem.y).reshape(-1, 1)) \
            .solution.flatten().tolist()
        if abs(ck) < 1e-3 * abs(c) or c == 0:
            continue
        scale, k = float(f"{c:.4g}"), float(f"{-ck / c:.4g}")
        factor = scale * (1 - k * xhat)
        named = {"scale": scale, "k": k, "eps": eps}
        named |= {"eps_place": place} if place != "inside" else {}
        named |= {} if biased else {"unbiased": True}
        groups = Groups(x, factor, torch.zeros_like(x))
        yield Candidate("adanorm", named, None, stats, groups, grouping)


class StateStatistics:
    """Statistics that were read from a state."""

    def __init__(self, mean, square, eps):
        self.mean, self.rstd = mean.reshape(-1, 1), (square + eps).rsqrt().reshape(-1, 1)
        self.of_mean = EPS * self.mean.abs()
        self.of_rstd = torch.full_like(self.mean, 4 * EPS)
        self.var = square.reshape(-1, 1)


def of_state(problem, grouping):
    """Norms that divide by what an earlier step left: batch norm in evaluation, PowerNorm, and
    BatchRenorm."""
    if grouping.name != "batch":
        return
    x = grouping.take(problem.x)
    before = {name: state for name, state in problem.before.items() if state.numel() == len(x)}
    for eps in EPSILONS:
        groups = Groups(x, grouping.take(problem.gain(grouping)),
                        grouping.take(problem.bias(grouping)))
        found = []
        if "running_mean" in before and "running_var" in before:
            found.append(("batchnorm", {"evaluation": True},
                          StateStatistics(before["running_mean"], before["running_var"], eps)))
        if "psi2" in before:
            zero = torch.zeros_like(before["psi2"])
            found.append(("powernorm", {}, StateStatistics(zero, before["psi2"], eps)))
        for name, named, stats in found:
            yield Candidate(name, named | {"eps": eps} | shown(grouping, True), None, stats, groups,
                            grouping)
        if "running_mean" in before and "running_std" in before:
            yield from batchrenorm(groups, grouping, before, eps)


def batchrenorm(groups, grouping, before, eps):
    """r xhat + d with both clipped, for bounds that are usual."""
    base = Statistics(groups, 0.0, True)
    stats = OptionStatistics(base, groups.x.shape[1], ("inside", True, eps))
    xhat = (groups.x - stats.mean) * stats.rstd
    mean, std = before["running_mean"].reshape(-1, 1), before["running_std"].reshape(-1, 1)
    for r_max, d_max in ((1.0, 0.0), (3.0, 5.0), (float("inf"), float("inf"))):
        r = (1 / stats.rstd / std).clamp(1 / r_max, r_max)
        d = ((stats.mean - mean) / std).clamp(-d_max, d_max)
        gain = groups.gain * r
        shifted = Groups(groups.x, gain, groups.bias + groups.gain * d)
        yield Candidate("batchrenorm", {"r_max": r_max, "d_max": d_max, "eps": eps}, None, stats,
                        shifted, grouping, r * xhat + d)


def without_statistics(problem, grouping):
    """No norm at all, and DyT: gain tanh(alpha x) + bias, with alpha from the elements that are
    not saturated."""
    if grouping.name not in ("row", "one group"):
        return
    yield Candidate("none", {}, grouping.take(problem.x), grouping=grouping,
                    own_error=torch.zeros(()))
    gain, bias = problem.gain(grouping), problem.bias(grouping)
    inner = ((problem.y - bias) / gain).flatten()
    x = problem.x.flatten()
    usable = (inner.abs() < 0.7) & (inner.abs() > 0.05) & (x != 0)
    if int(usable.sum()) < 3:
        return
    alpha = float(f"{float((torch.atanh(inner[usable]) / x[usable]).median()):.4g}")
    y = gain * torch.tanh(alpha * problem.x) + bias
    error = 8 * EPS * (gain.abs() + y.abs() + bias.abs())
    yield Candidate("dynamic tanh", {"alpha": alpha}, grouping.take(y), grouping=grouping,
                    own_error=grouping.take(error))


def bound_of(candidate, narrow):
    """The bound of y, with the rounding to its type."""
    if candidate.stats is None:
        error = candidate.own_error
    else:
        error = normalized(candidate.groups, candidate.stats, candidate.stats.of_rstd)[1]
    return error + narrow * (candidate.y.abs() + error) + TINY


FORMS = (plain, adanorm, of_state, without_statistics)
