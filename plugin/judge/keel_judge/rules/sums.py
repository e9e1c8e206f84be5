"""Results that are sums of products: the parts that the families of rules share."""
import torch

from keel_judge.measure import Expected
from keel_judge.rounding import TINY, sum_error


def of_arguments(call, names, function):
    """The judge's results for `function` of the arguments `names`, numbers of the program too."""
    values = dict(call.wide)
    for name in names:
        value = values[name]
        if isinstance(value, torch.Tensor):
            values[name] = function(value)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            values[name] = float(function(torch.tensor(float(value))))
        elif isinstance(value, (list, tuple)):
            values[name] = [function(v) for v in value]
    return call.run_on(values)


def kept(x):
    return torch.where(x.abs() < TINY, torch.zeros_like(x), x.abs())


def has_subnormals(call, names):
    tensors = [call[name] for name in names if isinstance(call[name], torch.Tensor)]
    return any(bool(((t != 0) & (t.abs() < TINY)).any()) for t in tensors)


def sums_of(call, names, count, **options):
    """Expected for results that are linear in each of the arguments `names`, with coefficients
    that are not negative. `count`: terms of an element, one number or one for each result.

    Options: `share` multiplies every term (a mean); `extra` counts more roundings, as shares of
    the sizes; `eps` is that of the type in which is added up."""
    values, share = call.run(), options.get("share", 1.0)
    sizes = of_arguments(call, names, torch.abs)
    squares = of_arguments(call, names, torch.square)
    flushes = of_arguments(call, names, kept) if has_subnormals(call, names) else sizes
    counts = count if isinstance(count, (list, tuple)) else [count] * len(values)
    results = []
    for k, v, a, q, f in zip(counts, values, sizes, squares, flushes):
        if not v.is_floating_point():
            results.append(Expected(v))
            continue
        results.append(summed(v, (k, a, share * q), options, a - f))
    return results


def summed(value, terms, options, lost=0.0):
    """`terms`: their number, the sum of their sizes and that of their squares."""
    count, sizes, squares = terms
    eps = options.get("eps") or 2.0**-24
    error = sum_error(count, sizes, squares, value, eps)
    more = options.get("extra", 0) * eps * sizes + lost
    return Expected(value, error.largest + more, error.usual + more,
                    error.deviation if eps == 2.0**-24 else None)
