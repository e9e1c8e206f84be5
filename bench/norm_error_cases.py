"""Inputs on which norms are measured, their exact results, and the error of a result.

The exact results are computed in numpy.longdouble, which must have 64 bits of mantissa. A float is
exact in it, and no product of the formulas leaves its range. The mean is subtracted twice: the
first one is off by at most 2^-60 of itself, which is 2^-37 deviations where the mean is 2^23 of
them, and the second takes that away, too. So what rounding adds is below 2^-50 of a result's scale,
and the unit of float32 is 2^-23 of it. `distance_from_digits` compares that with 400 bits."""
from dataclasses import dataclass, replace

import numpy as np

GROUPS = 8
RESULTS = ("y", "dx", "dgain", "dbias")
# The spacing of the type's numbers from 1 on, its largest number, and what may become 0.
TYPES = {"float32": (2.0**-23, float(np.finfo(np.float32).max), 2.0**-126),
         "bf16": (2.0**-7, (2 - 2.0**-7) * 2.0**127, 2.0**-126)}
# The bound that keel promises, in units of 2^-23 (docs/norms.md). A result in bf16 is rounded once
# more.
BOUNDS = {"y": 16, "dx": 64, "dgain": 64, "dbias": 64}


def bound(result, dtype):
    return BOUNDS[result] if dtype == "float32" else 0.5 + BOUNDS[result] * 2.0**-16


@dataclass(frozen=True)
class Inputs:
    """x, dy (rows, width), gain and bias (width), in float32 whatever their type."""
    x: np.ndarray
    dy: np.ndarray
    gain: np.ndarray
    bias: np.ndarray
    eps: float = 1e-5

    @property
    def width(self):
        return self.x.shape[1]


def to_bf16(values):
    """Rounds float32 to bf16, ties to even."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    bits = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))
    return (bits & np.uint32(0xFFFF0000)).view(np.float32)


def with_mean(mean):
    return lambda x, draw: x + np.float32(mean)


def of_size(size):
    """Numbers up to a size, both signs of which are in every row."""
    def make(x, draw):
        x, rows = draw.uniform(-1, 1, x.shape), np.arange(len(x))
        x[rows, rows % x.shape[1]], x[rows, (rows + 1) % x.shape[1]] = 1, -1
        return size * x
    return make


def with_huge(size):
    def make(x, draw):
        x[np.arange(len(x)), draw.integers(x.shape[1], size=len(x))] = size
        return x
    return make


def constant(values):
    return lambda x, draw: np.broadcast_to(np.resize(values, (1, x.shape[1])), x.shape)


# A name, eps, and what makes x and dy of normally distributed numbers.
CASES = {
    **{f"mean / deviation {name}": (1e-5, with_mean(mean), None) for name, mean in
       (("0", 0), ("1", 1), ("100", 100), ("1e4", 1e4), ("1e6", 1e6), ("2^23", 2**23))},
    **{f"x up to {size:g}": (1e-5, of_size(size), None)
       for size in (1e-38, 1e-20, 1e20, 1e38, 3e38)},
    "x up to 1e-38, eps = 0": (0.0, of_size(1e-38), of_size(1e-3)),
    "x up to 1e-20, eps = 0": (0.0, of_size(1e-20), None),
    "x subnormal": (1e-5, of_size(1e-40), None),
    "x subnormal, eps = 0": (0.0, of_size(1e-39), of_size(1e-3)),
    **{f"all x = {value:g}": (1e-5, constant([value]), None) for value in (0, 0.1, 1e6, 3e38)},
    **{f"one x = {size:g} among small ones": (1e-5, with_huge(size), None)
       for size in (1e4, 1e10, 1e30, 3e38)},
    **{f"dy up to {size:g}": (1e-5, None, of_size(size)) for size in (1e-38, 1e-20, 1e20, 1e37)},
    "one dy = 3e38 among small ones": (1e-5, of_size(1e3), with_huge(3e38)),
}


def fits(name, dtype):
    """Whether the type tells the numbers of a case apart."""
    return dtype == "float32" or not name.startswith("mean") or name[17:] in ("0", "1", "100")


def inputs(name, shape, dtype, seed=1):
    eps, make_x, make_dy = CASES[name]
    draw = np.random.default_rng(seed)
    x, dy = draw.standard_normal(shape), draw.standard_normal(shape)
    x, dy = (np.float32(make(v, draw) if make else v) for make, v in ((make_x, x), (make_dy, dy)))
    gain, bias = draw.uniform(0.5, 1.5, shape[1]), draw.normal(size=shape[1])
    made = Inputs(x, dy, np.float32(gain), np.float32(bias), eps)
    if dtype == "float32":
        return made
    return replace(made, **{f: to_bf16(getattr(made, f)) for f in ("x", "dy", "gain", "bias")})


def exact(norm, given):
    """Results by name and the scales of their errors, as docs/numerics.md has them. The sets of a
    statistic are the last axis of (rows, sets, n), or the rows of a batch."""
    if np.finfo(np.longdouble).nmant < 63:
        raise SystemExit("norm_errors: expected a long double with 64 bits of mantissa")
    sets = {"GroupNorm": GROUPS}.get(norm, 1)
    axis = 0 if norm == "BatchNorm" else -1
    shape = (len(given.x), sets, given.width // sets)
    x, dy = (np.longdouble(v).reshape(shape) for v in (given.x, given.dy))
    gain, bias = (np.longdouble(v).reshape(1, *shape[1:]) for v in (given.gain, given.bias))
    least = np.longdouble(1)
    if norm == "RMSNorm":
        bias, least = 0 * bias, np.longdouble(0)
    else:
        x = x - x.mean(axis, keepdims=True)
        x = x - x.mean(axis, keepdims=True)
    rstd = 1 / np.sqrt((x * x).mean(axis, keepdims=True) + np.longdouble(given.eps))
    xhat, g = x * rstd, dy * gain
    slope = (g * xhat).mean(axis, keepdims=True)
    mean_g = 0 if norm == "RMSNorm" else g.mean(axis, keepdims=True)
    largest = [np.abs(v).max(axis, keepdims=True) for v in (g, xhat)]
    y = xhat * gain + bias
    results = {"y": y, "dx": rstd * (g - mean_g - slope * xhat),
               "dgain": (dy * xhat).sum(0), "dbias": dy.sum(0)}
    scales = {"y": np.maximum(np.maximum(np.abs(y), np.abs(bias)),
                              np.abs(gain) * np.maximum(1, np.abs(xhat))),
              "dx": rstd * np.maximum(largest[0], largest[1] * np.abs(slope)) + 0 * x,
              "dgain": (np.abs(dy) * np.maximum(least, np.abs(xhat))).sum(0),
              "dbias": np.abs(dy).sum(0)}
    if norm == "RMSNorm":
        del results["dbias"], scales["dbias"]
    flat = {"y": given.x.shape, "dx": given.x.shape}
    return ({k: v.reshape(flat.get(k, -1)) for k, v in results.items()},
            {k: v.reshape(flat.get(k, -1)) for k, v in scales.items()})


@dataclass
class Error:
    """The worst error of a result, in units of its type and as it is."""
    units: float = 0.0
    absolute: float = 0.0
    finite: bool = True

    def add(self, other):
        self.units, self.absolute = (max(getattr(self, f), getattr(other, f))
                                     for f in ("units", "absolute"))
        self.finite = self.finite and other.finite


def error(values, result, dtype, rows):
    """The error in (result, exact result, scale of the error) beyond the least normal number,
    because every term of a sum may be flushed to 0. What is beyond the type's numbers must be its
    largest or infinite, and is no error; nothing is said of results whose terms are beyond them."""
    got, expected, scale = values
    unit, largest, least = TYPES[dtype]
    least *= rows if result in ("dgain", "dbias") else 1
    most = largest * (1 - bound(result, dtype) * unit)
    got, is_judged = np.longdouble(got), scale <= most
    right = ~is_judged | ((np.abs(expected) > most) & (got * np.sign(expected) >= most))
    if not np.all(np.isfinite(got) | right):
        return Error(float("inf"), float("inf"), False)
    off = np.where(right, 0, np.abs(np.where(right, 0, got) - np.where(right, 0, expected)))
    more, unit_of = np.maximum(off - least, 0), unit * scale
    if dtype == "bf16":  # the last rounding is of the result, which may be above the scale
        unit_of = np.maximum(unit_of, unit * np.abs(expected))
    units = np.divide(more, unit_of, out=np.where(more > 0, np.inf, 0).astype(np.longdouble),
                      where=is_judged & (unit_of > 0))
    return Error(float(units.max()), float(off.max()))


def distance_from_digits(given, bits=400):
    """How far `exact` is from a computation with as many bits, on the first row of a layer norm, in
    units of float32."""
    import mpmath
    with mpmath.workprec(bits):
        x, dy, gain, bias = ([mpmath.mpf(float(v)) for v in values] for values in
                             (given.x[0], given.dy[0], given.gain, given.bias))
        n = len(x)
        mean = mpmath.fsum(x) / n
        var = mpmath.fsum((v - mean) ** 2 for v in x) / n
        rstd = 1 / mpmath.sqrt(var + mpmath.mpf(given.eps))
        xhat, g = [(v - mean) * rstd for v in x], [a * b for a, b in zip(dy, gain)]
        slope = mpmath.fsum(a * b for a, b in zip(g, xhat)) / n
        mean_g = mpmath.fsum(g) / n
        wanted = {"y": [z * a + b for z, a, b in zip(xhat, gain, bias)],
                  "dx": [rstd * (a - mean_g - slope * z) for a, z in zip(g, xhat)]}
        results, scales = exact("LayerNorm", given)
        return max(float(abs(mpmath.mpf(str(got)) - want) / mpmath.mpf(str(scale)) * 2**23)
                   for name, values in wanted.items()
                   for got, want, scale in zip(results[name][0], values, scales[name][0]))
