"""Running statistics after a step: their share of the batch, and the divisor of the variance."""
from keel_judge.norms.gradients import largest
from keel_judge.rounding import EPS


def share_of(before, after, new):
    """a of after = (1 - a) before + a new, by least squares, to four digits; or None."""
    change = new - before
    if float(change.abs().max()) == 0:
        return None
    return float(f"{float((change * (after - before)).sum() / change.square().sum()):.4g}")


def running(candidate, before, after):
    """Sentences about running statistics before and after a step."""
    if candidate.stats is None or candidate.grouping.name != "batch":
        return []
    n = candidate.groups.x.shape[1]
    var = (candidate.groups.x - candidate.groups.x.mean(1, keepdim=True)).square().mean(1)
    square = candidate.groups.x.square().mean(1)
    new = {"running_mean": [("", candidate.groups.x.mean(1))],
           "running_var": [("biased", var), ("unbiased", var * n / max(1, n - 1))],
           "running_std": [("biased", (var + candidate.options.get("eps", 0.0)).sqrt())],
           "psi2": [("", square)]}
    return [told(name, before[name], after[name], forms) for name, forms in new.items()
            if name in before and name in after]


def told(name, before, after, forms):
    """The form and the share that explain one state, or the nearest."""
    best = None
    for label, new in forms:
        share = share_of(before, after, new)
        if share is None:
            continue
        value = (1 - share) * before + share * new
        size = before.abs() + new.abs()
        distance = largest((after - value).abs(), 64 * EPS * size + 1e-30)
        if best is None or distance < best[0]:
            best = distance, label, share
    if best is None:
        return f"{name}: equal to the batch's statistic, so that nothing can be told"
    distance, label, share = best
    kind = f", {label}" if label else ""
    if distance > 1:
        return f"{name}: no running average of this batch; nearest takes {share:g} of it{kind}"
    return f"{name}: takes {share:g} of the batch and keeps {1 - share:g}{kind}"
