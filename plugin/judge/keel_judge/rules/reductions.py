"""Sums, means, norms and variances."""
import torch

from keel_judge.measure import Expected
from keel_judge.rounding import EPS, TINY, relative_sum_error, sum_error
from keel_judge.rules.exact import exact
from keel_judge.rules.sums import of_arguments, sums_of


def terms_of(call, values):
    return call["self"].numel() / max(1, values[0].numel())


def total(call):
    """T of the number of terms; integers are exact."""
    if not call.floats():
        return exact(call)
    return sums_of(call, ["self"], terms_of(call, call.results_shapes()))


def mean(call):
    """T / n, and the division: T has room for 3 of the 5 eps of an approximate inverse."""
    count = terms_of(call, call.results_shapes())
    results = sums_of(call, ["self"], count, share=1.0)
    for r in results:
        sizes = of_arguments(call, ["self"], torch.abs)[0]
        squares = of_arguments(call, ["self"], torch.square)[0] / count
        e = sum_error(count, sizes, squares, r.value)
        more = 2 * EPS * r.value.abs()
        r.error, r.usual, r.deviation = e.largest + more, e.usual + more, e.deviation + more / 2
    return results


def dims_of(call):
    dim = call["dim"]
    if dim is None or dim == []:
        return list(range(call["self"].dim()))
    return [d % max(1, call["self"].dim()) for d in ([dim] if isinstance(dim, int) else dim)]


def vector_norm(call):
    """(sum |x|^p)^(1/p): half the relative error of the sum for p = 2; a maximum is exact."""
    values = call.run()
    order = call["ord"] if call.has("ord") else (call["p"] if call.has("p") else 2)
    if order in (float("inf"), float("-inf")):
        return exact(call)
    terms = call["self"].abs() ** float(order)
    dims = dims_of(call)
    keep = bool(call["keepdim"])
    p = relative_sum_error(terms, dims, keep) if dims else torch.zeros(())
    order = float(order) or 1.0
    power = 0 if order in (1, 2) else 10
    error = values[0].abs() * ((p + power * EPS) / order + 4 * EPS) + underflow(call, order)
    return [Expected(values[0], error.reshape(values[0].shape))]


def underflow(call, order):
    """Squares below the floats vanish: at most their number's root times the root of TINY."""
    x = call["self"]
    if order <= 1 or x.numel() == 0 or float(x.abs().max()) == 0:
        return TINY
    small = float((x.abs() ** order).sum()) < x.numel() * TINY * 2.0**24
    return (x.numel() * TINY) ** (1 / order) if small else TINY


def variance_errors(call):
    """In two passes: mean, variance, and the relative error of the variance."""
    x, dims = call["self"], dims_of(call)
    mu = x.mean(dims, keepdim=True)
    count = x.numel() / max(1, mu.numel())
    of_mean = sum_error(count, x.abs().sum(dims, keepdim=True),
                        x.square().sum(dims, keepdim=True), x.sum(dims, keepdim=True)).largest
    of_mean = of_mean / count + EPS * mu.abs()
    squares = (x - mu).square()
    var = squares.mean(dims, keepdim=True)
    p = relative_sum_error(squares, dims, True)
    kappa = (x.square().mean(dims, keepdim=True) / var).sqrt().nan_to_num(0, 0, 0)
    rv = p * (2 + kappa) + (p * kappa).square() + 3 * EPS
    absolute = rv * var + of_mean.square() + 4 * (EPS * x.square().mean(dims, True)) * EPS
    return mu, var, of_mean, absolute


def shaped(t, value):
    return t.reshape(value.shape)


def variance(call):
    """var, std and their pairs with the mean."""
    values = call.run()
    mu, var, of_mean, absolute = variance_errors(call)
    factor = values[0] / shaped(var, values[0]) if "var" in call.name else None
    error = shaped(absolute, values[0])
    if factor is not None:
        error = error * factor.nan_to_num(1, 1, 1).abs() + 4 * EPS * values[0].abs()
    else:
        low = (values[0].square() - error).clamp(min=0).sqrt()
        error = (values[0] - low) * 1.01 + 4 * EPS * values[0]
    results = [Expected(values[0], error + TINY)]
    if len(values) > 1:
        results.append(Expected(values[1], shaped(of_mean, values[1]) + TINY))
    return results


def running(call):
    """cumsum: T of the terms so far."""
    if not call.floats():
        return exact(call)
    x, dim = call["self"], call["dim"]
    value = call.run()[0]
    shape = [1] * x.dim()
    if x.dim():
        shape[dim] = x.shape[dim]
    counts = torch.arange(1, x.shape[dim] + 1 if x.dim() else 2, dtype=torch.float64)
    e = sum_error(counts.reshape(shape), x.abs().cumsum(dim), x.square().cumsum(dim), value)
    return [Expected(value, e.largest, e.usual)]


def running_product(call):
    value = call.run()[0]
    count = call["self"].shape[call["dim"]] if call["self"].dim() else 1
    return [Expected(value, 2 * count * EPS * value.abs() + TINY)]


def whole_product(call):
    value = call.run()[0]
    count = call["self"].numel() / max(1, value.numel())
    return [Expected(value, 2 * count * EPS * value.abs() + TINY)]


RULES = {"sum": total, "nansum": total, "mean": mean, "linalg_vector_norm": vector_norm,
         "norm": vector_norm, "var": variance, "std": variance, "var_mean": variance,
         "std_mean": variance, "cumsum": running, "cumprod": running_product,
         "prod": whole_product, "trace": total}
