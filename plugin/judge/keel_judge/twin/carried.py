"""What an op makes of the distances of its inputs: |f(a') - f(a)| for all a' within them, by the
ends of the interval where f is monotone, and by f(|a| + r) - f(|a|) where it is linear in each
input with coefficients that are not negative.

A function takes the call in float64, the distances by the names of the arguments (None for what has
none), and the results; it gives a distance for each of these, or None where it knows none."""
import torch

from keel_judge.call import Refused
from keel_judge.rules.exact import COPIES


def ends(call, distances, sign):
    """The results for all floating inputs moved by their distances."""
    def moved(value, distance):
        if isinstance(value, (list, tuple)):
            return [moved(v, d) for v, d in zip(value, distance)]
        return value if distance is None else value + sign * distance
    return call.run_on({name: moved(value, distances.get(name)) for name, value
                        in call.wide.items()})


def monotone(call, distances, values):
    """Ops that rise, or fall, with every input; an end outside of the domain has no bound."""
    low, high = (ends(call, distances, sign) for sign in (-1, 1))
    return [torch.maximum((h - v).abs(), (v - w).abs()).nan_to_num(torch.inf, torch.inf)
            if v.is_floating_point() else None for v, w, h in zip(values, low, high)]


def root(call, distances, values):
    low = (call["self"] - distances["self"]).clamp(min=0).sqrt()
    return [torch.maximum(values[0] - low, (call["self"] + distances["self"]).sqrt() - values[0])]


def inverse(call, distances, values):
    """rsqrt and reciprocal: no bound where the interval reaches 0."""
    least = call["self"].abs() - distances["self"]
    worst = least.rsqrt() if call.name == "rsqrt" else least.reciprocal()
    return [torch.where(least > 0, worst - values[0].abs(), torch.inf)]


def linear(call, distances, values):
    """Products, and sums of products."""
    def sizes(more):
        def of(name, value, distance):
            if isinstance(value, (list, tuple)) and any(isinstance(v, torch.Tensor) for v in value):
                return [of(name, v, d) for v, d in zip(value, distance)]
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                return value.abs() + (more * distance if distance is not None else 0)
            return abs(value) if name in ("other", "alpha", "beta", "value") and \
                isinstance(value, (int, float)) else value
        return call.run_on({name: of(name, value, distances.get(name))
                            for name, value in call.wide.items()})
    return [(high - low).abs() + 2.0**-44 * low.abs() for low, high in zip(sizes(0), sizes(1))]


def total(call, distances, values):
    """add, sub and rsub."""
    alpha = call["alpha"] if call.has("alpha") else 1
    of_self, of_other = (distances.get(n) if distances.get(n) is not None else 0.0
                         for n in ("self", "other"))
    scales = (abs(alpha), 1) if call.name == "rsub" else (1, abs(alpha))
    return [torch.zeros_like(values[0]) + scales[0] * of_self + scales[1] * of_other]


def quotient(call, distances, values):
    if call.has("rounding_mode"):
        raise Refused("a division that rounds to whole numbers")
    of_self, of_other = (distances.get(n) if distances.get(n) is not None else torch.zeros(())
                         for n in ("self", "other"))
    size = torch.as_tensor(call["other"], dtype=torch.float64).abs()
    moved = (of_self + values[0].abs() * of_other) / (size - of_other)
    return [torch.where((size > of_other) | (of_other == 0), moved, torch.inf)
            + torch.zeros_like(values[0])]


def power(call, distances, values):
    x, k, r = call["self"], call["exponent"], distances.get("self")
    if isinstance(k, torch.Tensor) or not isinstance(x, torch.Tensor):
        raise Refused("a power of two tensors")
    if k >= 0 and k == int(k):
        return [(x.abs() + r) ** k - x.abs() ** k]
    low, high = (x - r) ** k, (x + r) ** k
    moved = torch.maximum((high - values[0]).abs(), (values[0] - low).abs())
    return [torch.where(x > r, moved, torch.inf)]


def square(call, distances, values):
    r = distances["self"]
    return [2 * call["self"].abs() * r + r * r]


def steep(slope):
    """A function of one input that is nowhere steeper."""
    return lambda call, distances, values: [slope * distances["self"]]


def variance(call, distances, values):
    """var and var_mean: (c + d)^2 of the centred numbers, whose mean moves, too."""
    x, r = call["self"], distances["self"] + torch.zeros_like(call["self"])
    dims = call["dim"] if call.has("dim") else list(range(x.dim()))
    centred = x - x.mean(dims, keepdim=True)
    of_centred = r + r.mean(dims, keepdim=True)
    moved = (2 * centred.abs() * of_centred + of_centred.square()).mean(dims)
    count = x.numel() / max(1, moved.numel())
    correction = call["correction"] if call.has("correction") else 1
    moved = moved * count / max(count - correction, 1e-300)
    return [m.reshape(v.shape) for m, v in zip((moved, r.mean(dims)), values)]


def compared(call, distances, values):
    """Truth values that change within the distances."""
    of_self, of_other = (distances.get(n) if distances.get(n) is not None else 0.0
                         for n in ("self", "other"))
    return [(call["self"] - call["other"]).abs() <= of_self + of_other + 0 * values[0].double()]


CARRIED = {
    **dict.fromkeys([*COPIES, *"""
        sum mean cumsum relu clamp clamp_min clamp_max maximum minimum amax amin max min exp expm1
        log log1p log2 tanh sigmoid erf atan neg avg_pool2d scatter_add index_add index_put
        _unsafe_index_put _unsafe_index _unsafe_masked_index_put_accumulate leaky_relu hardtanh
        """.split()], monotone),
    **dict.fromkeys(["mul", "mm", "bmm", "addmm", "baddbmm", "mv", "dot", "convolution",
                     "convolution_backward", "linear", "embedding_dense_backward", "addcmul", "fma",
                     "mkldnn_linear", "_convolution"], linear),
    **dict.fromkeys(["add", "sub", "rsub"], total),
    **dict.fromkeys(["abs", "sin", "cos"], steep(1)), "silu": steep(1.1), "gelu": steep(1.13),
    **dict.fromkeys(["eq", "ne", "lt", "le", "gt", "ge"], compared),
    **dict.fromkeys(["var", "var_mean"], variance),
    **dict.fromkeys(["rsqrt", "reciprocal"], inverse),
    "sqrt": root, "div": quotient, "pow": power, "square": square,
}
