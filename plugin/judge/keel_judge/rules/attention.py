"""Attention in its fused forms (docs/numerics.md, Attention), on (batch, heads, places, width).
Kernels with 16-bit factors round P and dS to the type of the factors between their products, which
is `narrow` more of each."""
import math

import torch

from keel_judge.call import Refused
from keel_judge.measure import Expected
from keel_judge.rounding import EPS, TINY, relative_sum_error, sum_error

SECOND_ORDER = 1.05
TILE = 16


def product_error(a, b):
    """T of a @ b, with the sums of sizes and squares of its terms."""
    return sum_error(a.shape[-1], a.abs() @ b.abs(), a.square() @ b.square(), a @ b).largest


class Scores:
    """Scores of queries and keys with their errors, and their row sums."""

    def __init__(self, call):
        q, k = call["query"], call["key"]
        if q.shape[1] != k.shape[1]:
            k = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
        if call["dropout_p"]:
            raise Refused("attention with dropout: the random numbers are the kernel's own")
        call.need(12 * q[..., 0].numel() * k.shape[-2])
        scale = call["scale"] if call.has("scale") else 1 / math.sqrt(q.shape[-1])
        self.q, self.k, self.scale, self.narrow = q, k, scale, call.narrow_eps()
        self.least = 2.0**-25 if call.given["query"].dtype == torch.float16 else TINY
        self.seen, bias = masks(call, q.shape[-2], k.shape[-2])
        plain = scale * (q @ k.transpose(-1, -2))
        self.s = (plain + bias).masked_fill(~self.seen, -torch.inf)
        self.of_s = abs(scale) * product_error(q, k.transpose(-1, -2)) + 4 * EPS * plain.abs() \
            + EPS * bias.abs() + (EPS * plain.abs() if bias.dim() else 0.0)

    def of_exp(self, distance, more=0.0, is_tiled=True):
        """Relative, of exp(s - something) at such a distance; 0 where nothing is seen. In the
        backward no sum is scaled down."""
        tiles = 8 * math.sqrt(self.s.shape[-1] / TILE) if is_tiled else 0.0
        error = self.of_s + EPS * (2.4 * distance + 8 + tiles) + more
        return error.masked_fill(~self.seen, 0.0).nan_to_num(0.0)


def masks(call, queries, keys):
    """Which keys a query sees, and what is added to its scores."""
    seen = torch.ones(queries, keys, dtype=torch.bool)
    if call["is_causal"]:
        seen = seen.tril()
    mask = call["attn_mask"] if call.has("attn_mask") else call["attn_bias"]
    if mask is None:
        return seen, torch.zeros((), dtype=torch.float64)
    if mask.dtype == torch.bool:
        return seen & mask, torch.zeros((), dtype=torch.float64)
    return seen & (mask != -torch.inf), mask.masked_fill(mask == -torch.inf, 0.0)


def forward(call):
    """y and the log of the sum of exponentials."""
    t, v = Scores(call), call["value"]
    if v.shape[1] != t.q.shape[1]:
        v = v.repeat_interleave(t.q.shape[1] // v.shape[1], 1)
    high = t.s.amax(-1, keepdim=True)
    nothing = high == -torch.inf
    exps = torch.exp(t.s - torch.where(nothing, 0.0, high))
    total = exps.sum(-1, keepdim=True)
    p = torch.where(nothing, 0.0, exps / total)
    e = t.of_exp((high - t.s).nan_to_num(0.0, 0.0))
    of_sum = (p * e).sum(-1, keepdim=True) + relative_sum_error(exps, -1, True)
    weights = p * (e + of_sum + 6 * EPS + 2 * t.narrow) + t.least
    y = p @ v
    error = SECOND_ORDER * (weights @ v.abs()) + product_error(p, v) + 2 * EPS * y.abs() \
        + TINY * t.s.shape[-1]
    lse = (high + total.log()).squeeze(-1)
    of_lse = of_sum.squeeze(-1) + EPS * (4 + 3 * lse.abs() + 3 * math.log(t.s.shape[-1] + 1))
    results = [Expected(y, error, roundings=2)]
    if len(call.results) > 1 and call.results[1].got.shape == lse.shape:
        log = Expected(lse, SECOND_ORDER * of_lse.nan_to_num(torch.inf) + TINY)
        log.right = nothing.squeeze(-1)
        if t.narrow:  # P is rounded to this type, so its exponentials may be as rough
            log.wider["exponentials of 16 bits"] = log.error + t.narrow
        results.append(log)
    return results + [None] * (len(call.results) - len(results))


def backward(call):
    """dq, dk, dv from the saved y and lse, which are read as they are."""
    t, v, dy = Scores(call), call["value"], call["grad_out"]
    y, lse = call["out"], call["logsumexp"].reshape(t.s.shape[:-1]).unsqueeze(-1)
    if v.shape[1] != t.q.shape[1]:
        raise Refused("backward of attention with fewer heads of keys")
    nothing = ~t.seen.expand_as(t.s).any(-1, keepdim=True) | (lse == -torch.inf)
    p = torch.where(nothing, 0.0, torch.exp(t.s - torch.where(nothing, 0.0, lse)))
    size = torch.where(nothing, 0.0, lse).abs()
    ep = t.of_exp((t.s - lse).abs().nan_to_num(0.0, 0.0), EPS * size, is_tiled=False)
    dp, terms = dy @ v.transpose(-1, -2), dy * y
    delta = terms.sum(-1, keepdim=True)
    of_delta = sum_error(y.shape[-1], terms.abs().sum(-1, keepdim=True),
                         terms.square().sum(-1, keepdim=True), delta).largest
    ds = p * (dp - delta)
    eds = p * ((ep + 3 * EPS) * (dp.abs() + delta.abs())
               + product_error(dy, v.transpose(-1, -2)) + of_delta) \
        + 2 * t.narrow * ds.abs() + t.least
    ev = p * (ep + 2 * EPS + 2 * t.narrow) + t.least
    scale = abs(t.scale)
    parts = [gradient(ds, eds, t.k, scale, t.scale),
             gradient(ds.transpose(-1, -2), eds.transpose(-1, -2), t.q, scale, t.scale),
             gradient(p.transpose(-1, -2), ev.transpose(-1, -2), dy, 1.0, 1.0)]
    return parts + [None] * (len(call.results) - 3)


def gradient(factor, of_factor, x, scale, signed):
    value = signed * (factor @ x)
    error = SECOND_ORDER * (of_factor @ x.abs()) + product_error(factor, x)
    return Expected(value, scale * error + 4 * EPS * value.abs() + TINY, roundings=2)


FORMS = ("flash_attention_for_cpu", "flash_attention", "efficient_attention", "cudnn_attention")
RULES = {f"_scaled_dot_product_{form}": forward for form in FORMS} \
    | {f"_scaled_dot_product_{form}_backward": backward for form in FORMS}
