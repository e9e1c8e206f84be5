"""Losses: the error of each term, and T of their sum. The backward is element-wise."""
import torch

from keel_judge.measure import Expected, allow_narrow_steps
from keel_judge.rounding import EPS, TINY, sum_error_of

NONE, MEAN = 0, 1


def reduced(terms, errors, reduction, divisor):
    """A sum or mean of losses that are each off by an error; divided as a mean is."""
    if reduction == NONE:
        return Expected(terms, errors + TINY)
    flat = terms.flatten()
    e = sum_error_of(flat, 0)
    value, more = flat.sum(), errors.sum() + TINY
    if reduction != MEAN:
        return Expected(value, e.largest + more)
    return Expected(value / divisor, (e.largest + more) / abs(divisor) + 2 * EPS
                    * abs(value / divisor) + TINY)


def picked(call):
    """Log-probabilities of the labels times their weights, which of them count, and the weights."""
    x, target = call["self"], call["target"]
    ignored = target == call["ignore_index"]
    safe = torch.where(ignored, 0, target)
    axis = 1 if x.dim() > 1 else 0
    chosen = x.gather(axis, safe.unsqueeze(axis)).squeeze(axis)
    weight = call["weight"][safe] if call.has("weight") else torch.ones_like(chosen)
    return -torch.where(ignored, 0.0, chosen * weight), torch.where(ignored, 0.0, weight)


def nll_forward(call):
    """The loss and the sum of the weights."""
    terms, weights = picked(call)
    roundings = 2 if call.has("weight") else 0
    of_weight = sum_error_of(weights.flatten(), 0).largest if call.has("weight") else 0.0
    total = weights.sum()
    loss = reduced(terms, roundings * EPS * terms.abs(), call["reduction"], total)
    if call["reduction"] == MEAN:
        loss.error = loss.error + loss.value.abs() * (of_weight / total)
    kept = torch.zeros(()) if call["reduction"] == NONE else total
    results = [loss, Expected(kept.double(), torch.as_tensor(of_weight + TINY).double())]
    return results[:len(call.results)]


def pointwise(of_term):
    """A loss of pairs. `of_term` gives the error of a term, in EPS, from x, t and the term."""
    def rule(call):
        values = dict(call.wide) | {"reduction": NONE}
        terms = call.run_on(values)[0]
        errors = EPS * of_term(call, terms)
        reduction = call["reduction"] if call.has("reduction") else MEAN
        return allow_narrow_steps(call, [
            reduced(terms, errors.expand_as(terms), reduction, max(1, terms.numel()))])
    return rule


def squared(call, terms):
    return 4 * terms


def bce_with_logits(call, terms):
    """softplus, and products with the target and with weights."""
    x, t = call["self"], call["target"]
    size = (x * t).abs() + x.abs()
    scale = call["weight"].abs() if call.has("weight") else 1.0
    scale = scale * (call["pos_weight"].abs().clamp(min=1) if call.has("pos_weight") else 1.0)
    return scale * (6 * size + (10 + 2.4 * x.abs()) * torch.nn.functional.softplus(-x.abs()) + 4)


def bce(call, terms):
    scale = call["weight"].abs() if call.has("weight") else 1.0
    return 8 * terms.abs() + 8 * scale


def huber(call, terms):
    return 6 * terms + 4 * (call["self"] - call["target"]).abs() * EPS


def l1(call, terms):
    return 2 * terms


def gradient(roundings):
    """The backward of a loss of pairs: a few roundings of the factor and of a difference."""
    def rule(call):
        value = call.run()[0]
        return allow_narrow_steps(call, [Expected(value, EPS * roundings(call, value) + TINY)])
    return rule


def bce_gradient(call, value):
    """(x - t) / (x (1 - x)): 1 - x is rounded."""
    x = call["self"]
    return value.abs() * (12 + 2 / (1 - x).clamp(min=1e-12))


def nll_backward(call):
    """-weight of the label, divided by the sum of weights."""
    return [Expected(v, 6 * EPS * v.abs()) for v in call.run()]


RULES = {
    "nll_loss_forward": nll_forward, "nll_loss2d_forward": nll_forward,
    "nll_loss_backward": nll_backward, "nll_loss2d_backward": nll_backward,
    "mse_loss": pointwise(squared), "l1_loss": pointwise(l1),
    "smooth_l1_loss": pointwise(huber), "huber_loss": pointwise(huber),
    "binary_cross_entropy": pointwise(bce), "soft_margin_loss": pointwise(lambda c, t: 14 * t + 8),
    "binary_cross_entropy_with_logits": pointwise(bce_with_logits),
    "mse_loss_backward": gradient(lambda c, y: 6 * y.abs()),
    "smooth_l1_loss_backward": gradient(lambda c, y: 8 * y.abs()),
    "huber_loss_backward": gradient(lambda c, y: 8 * y.abs()),
    "binary_cross_entropy_backward": gradient(bce_gradient),
}
