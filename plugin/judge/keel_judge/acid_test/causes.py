"""Likely causes of wrong numbers: wrong forms that programs had, tried on the numbers at hand.

A cause is named where what is left of the error is a fiftieth of it. It explains; it decides
nothing."""
import torch

EXPLAINS = 1 / 50
VECTORS = (4, 8, 16, 32, 64, 128, 256, 512, 1024)


def left_over(got, wanted, form):
    """The error against a form as a share of the error against what was expected."""
    error = (got - wanted).square().mean().sqrt()
    rest = (got - form).square().mean().sqrt()
    share = float(rest / error) if float(error) > 0 else float("inf")
    return share if share == share else float("inf")


def cause_of(name, got, expected, seen):
    """The name of the form that explains a result best, or ""."""
    got, wanted = got.detach().double(), expected.value
    trial, reference, arrays = seen
    if not bool(got.isfinite().all()):
        return "not finite"
    if not bool((got != 0).any()):
        return "all zeros"
    forms = {"y": of_y, "dx": of_dx, "dgain": of_parameter, "dbias": of_parameter}[name]
    best, share = "", EXPLAINS
    try:
        for cause, form in forms(trial, reference, (arrays, name)):
            rest = left_over(got, wanted, form)
            if rest < share:
                best, share = cause, rest
    except (RuntimeError, ValueError, IndexError, AttributeError):
        pass  # a form that does not fit the shapes
    return best


def normalized(reference, mean, var, eps=None, gain=None):
    groups, claim = reference.groups, reference.claim
    eps = claim.used_eps if eps is None else eps
    gain = groups.gain if gain is None else gain
    return reference.back((groups.x - mean) * (var + eps).rsqrt() * gain + groups.bias)


def of_y(trial, reference, seen):
    """Wrong forms of y."""
    groups, stats, claim = reference.groups, reference.stats, reference.claim
    x, n, var, mean = groups.x, groups.x.shape[1], stats.var, stats.mean
    square = x.square().mean(1, keepdim=True)
    plain = reference.back((x - mean) * stats.rstd)
    yield "y is x", reference.back(x)
    yield "gain and bias are ignored", plain
    yield "the bias is ignored", reference.back((x - mean) * stats.rstd * groups.gain)
    yield "the gain is ignored", plain + reference.back(groups.bias)
    yield "the gain lacks its offset", normalized(reference, mean, var, gain=groups.gain - 1)
    yield "the gain has an offset of 1", normalized(reference, mean, var, gain=groups.gain + 1)
    yield "the gain is applied twice", normalized(reference, mean, var, gain=groups.gain.square())
    yield "the mean is not subtracted from x", normalized(reference, 0 * mean, var)
    yield "no mean is subtracted", normalized(reference, 0 * mean, square)
    yield "a mean is subtracted", normalized(reference, x.mean(1, keepdim=True),
                                             x.var(1, correction=0, keepdim=True))
    yield "the variance is over n - 1", normalized(reference, mean, var * n / max(1, n - 1))
    yield "the sum of squares is not divided by n", normalized(reference, mean, var * n)
    yield "eps is outside the root", reference.back(
        (x - mean) / (var.sqrt() + claim.used_eps) * groups.gain + groups.bias)
    yield "eps is left out", normalized(reference, mean, var, eps=0.0)
    for eps in (1e-12, 1e-8, 1e-6, 1e-5, 1e-3):
        yield f"eps is {eps:g}", normalized(reference, mean, var, eps=eps)
    yield from of_width(reference, square)
    if claim.of_rows:
        yield "statistics are those of the whole batch", normalized(
            reference, x.mean() * claim.is_centred, (x - x.mean() * claim.is_centred).square()
            .mean())
        yield "statistics are those of the row before", normalized(
            reference, mean.roll(1, 0), var.roll(1, 0))
        yield "statistics are those of the first row", normalized(reference, mean[:1], var[:1])


def of_width(reference, square):
    """Loops over vectors or blocks that do not fit the width."""
    groups, stats = reference.groups, reference.stats
    x, n, var, mean = groups.x, groups.x.shape[1], stats.var, stats.mean
    for vector in VECTORS:
        padding, kept = -n % vector, n - n % vector
        if padding:
            name = f"the zeros that fill up vectors of {vector}"
            yield f"{name} count in the variance", normalized(
                reference, mean, var + padding * mean.square() / n)
            yield f"{name} count as elements", normalized(
                reference, mean * n / (n + padding), (square * n) / (n + padding)
                - (mean * n / (n + padding)).square())
            yield f"means are over n filled up to {vector}", normalized(
                reference, mean, var * n / (n + padding))
        if 0 < kept < n:
            part = x[:, :kept]
            m = part.sum(1, keepdim=True) / n * reference.claim.is_centred
            yield f"the last n mod {vector} elements are left out of statistics", normalized(
                reference, m, (part - m).square().sum(1, keepdim=True) / n)
        if n > vector:
            m = x[:, :vector].mean(1, keepdim=True) * reference.claim.is_centred
            yield f"statistics are those of the first {vector} elements", normalized(
                reference, m, (x[:, :vector] - m).square().mean(1, keepdim=True))


_DX_CAUSES = {"backward ignores the gain": "dx without the gain",
              "backward multiplies by the gain twice": "dx with the gain twice"}


def of_dx(trial, reference, seen):
    """Wrong forms of dx."""
    arrays, _ = seen
    for name, value in reference.variants().items():
        if name != "exact":
            yield _DX_CAUSES.get(name, f"dx: {name}"), value
    g = reference.grouping.take(reference.dy) * reference.groups.gain
    rstd, x = reference.stats.rstd, reference.groups.x
    xhat = (x - reference.stats.mean) * rstd
    mean_g = g.mean(1, keepdim=True) * reference.claim.is_centred
    product = (g * xhat).mean(1, keepdim=True)
    back = reference.back
    yield "dx without 1/s", back(g - mean_g - xhat * product)
    yield "dx with 1/s twice", back(rstd.square() * (g - mean_g - xhat * product))
    yield "dx with x in place of x̂", back(rstd * (g - mean_g - x * product))
    yield "dx with sums in place of means", back(
        rstd * (g - x.shape[1] * (mean_g + xhat * product)))
    yield "dx with the other sign of a term", back(rstd * (g - mean_g + xhat * product))
    if is_narrow(trial.dtype):
        xhat, rstd = saved_narrow(reference, trial.dtype)
        yield f"dx {SAVED}", back(rstd * (g - mean_g - xhat * (g * xhat).mean(1, keepdim=True)))
    if arrays.dy.dim() > 1 and reference.claim.of_rows:
        yield "dy is read as if its rows were one", back(rstd * (g[:1] - mean_g[:1]
                                                                 - xhat * product[:1]))


SAVED = "with mean and 1/s as 16 bits hold them"


def is_narrow(dtype):
    return dtype.itemsize == 2


def saved_narrow(reference, dtype):
    """xhat and 1/s of a backward whose forward saved its statistics in 16 bits."""
    stats = reference.stats
    mean, rstd = (t.to(dtype).double() for t in (stats.mean, stats.rstd))
    return (reference.groups.x - mean) * rstd, rstd


def of_parameter(trial, reference, seen):
    """Wrong forms of dgain and dbias."""
    arrays, name = seen
    stats, x = reference.stats, reference.groups.x
    xhat = reference.grouping.back((x - stats.mean) * stats.rstd)
    dy, collect = reference.dy, reference.collect
    terms = dy * xhat if name == "dgain" else dy
    whole = collect(terms)
    rows = len(dy)
    yield f"{name} is a mean, not a sum", whole * whole.numel() / max(1, terms.numel())
    yield f"{name} is twice what it should be", 2 * whole
    if name == "dgain":
        gain = reference._wide(reference.own_gain, 1.0)
        yield "dgain has x in place of x̂", collect(dy * reference.x)
        yield "dgain is multiplied by the gain", collect(terms * gain)
        yield "dgain is dbias", collect(dy)
        if is_narrow(trial.dtype):
            narrow = reference.grouping.back(saved_narrow(reference, trial.dtype)[0])
            yield f"dgain {SAVED}", collect(dy * narrow)
    if not reference.claim.of_rows:
        return
    yield f"{name} has the last row only", terms[-1]
    yield f"{name} has the first row only", terms[0]
    for block in (2, 4, 8, 16, 32, 64, 128):
        if block < rows:
            yield f"{name} has the first {block} rows only", terms[:block].sum(0)
            yield f"{name} lacks the rows beyond a multiple of {block}", \
                terms[:rows - rows % block].sum(0)
            yield f"{name} has the last block of {block} rows only", \
                terms[(rows - 1) // block * block:].sum(0)
