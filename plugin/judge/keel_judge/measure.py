"""Holds a result to its bound."""
from dataclasses import dataclass, field

import torch

from keel_judge.rounding import EPS, FORMATS

BLIND = 0.01  # a bound wider than this share of the values hides faults of that size
SAMPLE = 4096
LONE = 1 / 8  # an error is alone where no other takes this part of its share of the usual error
SHARED_ROUNDINGS, DEVIATIONS = 2, 8  # of a common factor (docs/numerics.md)


@dataclass
class Expected:
    """The judge's value of one result, and how far a kernel may be from it.

    `usual` is the error that sums have unless their roundings are dependent, `deviation` that of
    one element; `wider` names classes of kernels with larger errors. `right`, if given, is a mask
    of elements that are right whatever their values (ties)."""

    value: torch.Tensor
    error: torch.Tensor | float = 0.0
    usual: torch.Tensor | None = None
    deviation: torch.Tensor | None = None
    wider: dict = field(default_factory=dict)
    is_exact: bool = False
    right: torch.Tensor | None = None
    is_mixed: bool = False  # an error of one element shows in others, too (tiles)
    roundings: int = 1  # to the result's type, where that has 16 bits


def allow_narrow_steps(call, results):
    """Adds a class of kernels to results: those that round each step, or partial sums, to the 16
    bits of their inputs, as PyTorch's element-wise ops and convolutions may on a CPU. The same
    analysis holds, with the eps of that type."""
    eps = call.narrow_eps()
    for expected in results if eps else ():
        if expected is not None and not expected.is_exact:
            expected.wider["steps in 16 bits"] = expected.error * (eps / EPS) + 2.0**-24
    return results


@dataclass
class Measured:
    """How a result compares: elements beyond the bound, the worst share of it, and doubts."""

    wrong: torch.Tensor
    share: torch.Tensor
    bound: torch.Tensor
    power: float = 0.0
    unjudged: int = 0
    suspicion: str = ""
    kernels: str = ""  # the class of kernels that alone explains the result


def rounded_bound(expected, got, widest):
    """The bound with the rounding to the result's own type."""
    value = expected.value
    error = torch.as_tensor(expected.error, dtype=torch.float64).expand_as(value)
    return with_rounding(expected, error, got, widest)


def with_rounding(expected, error, got, widest):
    form = FORMATS.get(got.dtype)
    if form is None or (expected.is_exact and widest <= got.dtype.itemsize):
        return error
    if got.dtype == torch.float32 and not expected.is_exact:
        return error  # rules state the error in float32, rounding included
    roundings = expected.roundings if form.eps > EPS else 1
    return error + roundings * form.eps * (expected.value.abs() + error) + form.tiny


def distance(got, value, allowed, largest):
    """|got - value|, where a value beyond the type may be met by its largest numbers, and one that
    `allowed` takes there by infinity."""
    difference = (got - value).abs()
    difference = torch.where(got == value, torch.zeros_like(difference), difference)
    along = got * torch.sign(value)
    beyond = value.abs() > largest
    difference = torch.where(beyond & (along >= largest), 0.0, difference)
    overflows = got.isinf() & (along > 0) & (value.abs() + allowed >= largest)
    difference = torch.where(overflows & allowed.isfinite(), 0.0, difference)
    both_nan = got.isnan() & value.isnan()
    unknown = allowed.isnan() & ~got.isfinite() & ~value.isfinite()
    one_nan = (got.isnan() != value.isnan()) & ~unknown
    difference = torch.where(unknown, 0.0, difference)
    difference = torch.where(both_nan, 0.0, difference)
    return torch.where(one_nan, torch.inf, difference)


def shares(error, bound):
    share = error / bound
    if not bool(share.isfinite().all()):
        share = torch.where(error == 0, torch.zeros_like(share), share)
        share = torch.where(share.isnan(), torch.inf, share)
    return share


def measure(got, expected, widest):
    """`widest` is the size in bytes of the widest floating input."""
    value = expected.value
    if got.shape != value.shape:
        raise ValueError(f"the judge has shape {tuple(value.shape)}, the op {tuple(got.shape)}")
    if not got.is_floating_point():
        return measure_exact(got.cpu(), expected)
    form = FORMATS.get(got.dtype, FORMATS[torch.float32])
    wide = got.detach().cpu().double()
    bound = rounded_bound(expected, got, widest)
    error = (wide - value).abs()
    if not bool((error <= bound).all()):
        error = distance(wide, value, bound, form.largest)
    share, unjudged = shares(error, bound), 0
    if not bool(bound.isfinite().all()):
        open_ended = ~bound.isfinite() & (value.abs() <= form.largest)
        share = torch.where(open_ended, 0.0, share)
        unjudged = int((open_ended & (wide != value)).sum())
    if expected.right is not None:
        share = torch.where(expected.right, 0.0, share)
    measured = Measured(share > 1, share, bound, power_of(value, bound), unjudged)
    judge_classes(measured, expected, wide, got, widest)
    return measured


def measure_exact(got, expected):
    wrong = got != expected.value
    if expected.right is not None:
        wrong &= ~expected.right
    bound = torch.zeros(got.shape, dtype=torch.float64)
    return Measured(wrong, torch.where(wrong, torch.inf, 0.0), bound)


def judge_classes(measured, expected, wide, got, widest):
    """Classes of kernels that explain a result beyond its bound, and doubts about one within."""
    form = FORMATS.get(got.dtype, FORMATS[torch.float32])
    if bool(measured.wrong.any()):
        for name, error in expected.wider.items():
            bound = with_rounding(expected, error.expand_as(expected.value), got, widest)
            share = shares(distance(wide, expected.value, bound, form.largest), bound)
            if expected.right is not None:
                share = torch.where(expected.right, 0.0, share)
            if bool((share <= 1).all()):
                measured.wrong, measured.share = share > 1, share
                measured.bound, measured.kernels = bound, name
                measured.power = power_of(expected.value, bound)
                return
    elif expected.usual is not None and not measured.suspicion:
        lone = lone_error(expected, wide, got, widest) if expected.is_mixed else None
        if lone is not None:
            measured.wrong, measured.share, measured.bound = lone
            return
        measured.suspicion = doubt_of_sums(expected, wide, got, widest)


def lone_error(expected, wide, got, widest):
    """Where an element is beyond the usual error of sums, and all others are far from its share,
    though tiles would have spread its roundings: what is wrong, shares and bounds. Else None."""
    form = FORMATS.get(got.dtype, FORMATS[torch.float32])
    usual = with_rounding(expected, expected.usual.expand_as(expected.value), got, widest)
    share = shares(distance(wide, expected.value, usual, form.largest), usual)
    if share.numel() < 16 or not bool(usual.isfinite().all()):
        return None
    first, second = share.flatten().topk(2).values
    return (share == first, share, usual) if first > 1 and second < LONE * first else None


def doubt_of_sums(expected, wide, got, widest):
    form = FORMATS.get(got.dtype, FORMATS[torch.float32])
    usual = with_rounding(expected, expected.usual.expand_as(expected.value), got, widest)
    error = (wide - expected.value).abs_()
    if not bool((error <= usual).all()):
        error = distance(wide, expected.value, usual, form.largest)
        if bool(((error > usual) & usual.isfinite()).any()):
            return "beyond the usual error of sums"
    if expected.deviation is None or form.eps > EPS:
        return ""
    return "all off by a common factor" if has_common_factor(expected, wide) else ""


def has_common_factor(expected, wide):
    """Whether errors fit a factor, of the whole or of a slice (docs/numerics.md)."""
    value, error = expected.value, wide - expected.value
    products, squares = error * value, value.square()
    variance = expected.deviation.expand_as(value).square() * squares
    if not bool(products.isfinite().all() & squares.isfinite().all()):
        return False
    axes = [None] if value.dim() < 2 else [None, *range(value.dim())]
    return any(bool(fits(*(slice_sums(t, axis) for t in (products, squares, variance))).any())
               for axis in axes)


def slice_sums(terms, axis):
    if axis is None:
        return terms.sum().reshape(1)
    return terms.movedim(axis, 0).flatten(1).sum(1)


def fits(products, squares, variance):
    allowed = SHARED_ROUNDINGS * EPS * squares + DEVIATIONS * variance.sqrt()
    return (squares > 0) & (products.abs() > allowed)


def power_of(value, bound):
    """The median bound over the root mean square of the values: the share of them that half of the
    elements would show. Of large results a sample is taken."""
    step = max(1, value.numel() // SAMPLE)
    value, bound = value.flatten()[::step], bound.expand_as(value).flatten()[::step]
    known = value.isfinite() & ~bound.isnan()
    if not bool(known.any()):
        return 0.0
    rms = value[known].square().mean().sqrt()
    return float(bound[known].median() / rms) if float(rms) > 0 else 0.0
