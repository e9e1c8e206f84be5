"""Element-wise ops: how many eps of the result, and of the operands where small differences of
larger numbers are formed. Functions are those that any kernel may have: an argument scaled before
an exponential of 2, a division by an approximate inverse (docs/numerics.md)."""
import math

import torch

from keel_judge.measure import Expected, allow_narrow_steps
from keel_judge.rounding import EPS, TINY
from keel_judge.rules.exact import exact


def sized(value):
    """|value| of a tensor or a number."""
    return value.abs() if isinstance(value, torch.Tensor) else abs(value)


def is_power_of_two(value):
    return not isinstance(value, torch.Tensor) and (value == 0 or math.frexp(value)[0] in
                                                    (0.5, -0.5))


def number_error(value):
    """A number of the program is rounded once: its size; a tensor is exact."""
    return 0.0 if isinstance(value, torch.Tensor) or is_power_of_two(value) else abs(value)


def add(c, y):
    other, alpha = c["other"], c["alpha"] if c.has("alpha") else 1
    scaled = 0.0 if is_power_of_two(alpha) else 2 * sized(alpha * other)
    return y.abs() + scaled + number_error(other) * abs(alpha)


def rsub(c, y):
    return add(c, y) + 2 * sized(c["self"])


def mul(c, y):
    return y.abs() * (1 if number_error(c["other"]) == 0 else 2)


def div(c, y):
    return y.abs() * (5 if number_error(c["other"]) == 0 else 6)


def power(c, y):
    """exp(e log x): a logarithm and a product that are each rounded, then an exponential."""
    x = c["self"]
    e = c["exponent"]
    if not isinstance(e, torch.Tensor) and e in (0.5, 1, 2, 3, -1, -2):
        return 5 * y.abs()
    x = torch.as_tensor(x, dtype=torch.float64).abs().clamp(min=1e-300)
    return y.abs() * (4 + 4 * sized(torch.log(x) * e))


def addcmul(c, y):
    return y.abs() + 3 * (c["value"] * c["tensor1"] * c["tensor2"]).abs()


def addcdiv(c, y):
    return y.abs() + 8 * (c["value"] * c["tensor1"] / c["tensor2"]).nan_to_num(0, 0, 0).abs()


def lerp(c, y):
    """start + w (end - start), or end - (1 - w) (end - start) with 1 - w from a float."""
    weight = torch.as_tensor(c["weight"], dtype=torch.float64)
    change = (c["end"] - c["self"]).abs()
    return y.abs() + change * torch.where(weight.abs() < 0.5, 4 * weight.abs(), 4.0)


def below(x):
    """|x| left of 0."""
    return (-x).clamp(min=0)


def logistic(x):
    return torch.sigmoid(x)


def log_of(base):
    """A fast logarithm that passes through 0 has an absolute error."""
    return lambda c, y: 4 * y.abs() + 4 * base


def gelu(c, y):
    """Kernels of the form x (1 + erf) / 2 subtract from 1 left of 0."""
    return 6 * c["self"].abs() + 8 * y.abs()


def softplus_backward(c, y):
    x = c["self"]
    return y.abs() * (9 + 2.4 * below(x * c["beta"]) + (0 if c["beta"] == 1 else 2))


def elu(c, y):
    """exp(x) - 1 left of 0, by expm1 or with a rounding of 1."""
    return (10 + 2.4 * below(c["self"])) * y.abs() + 4 * below(c["self"].sign())


def elu_backward(c, y):
    return (10 + 2.4 * c["self_or_result"].abs()) * y.abs() + 4 * c["grad_output"].abs()


def of_x(relative, absolute):
    return lambda c, y: relative * y.abs() + absolute * c["self"].abs()


def relative(roundings):
    return lambda c, y: roundings * y.abs()


def of_gradient(relative_part, gradient_part):
    """A backward: roundings of the result, and of the gradient times a factor of the size of 1."""
    return lambda c, y: relative_part * y.abs() + gradient_part * c["grad_output"].abs()


def gelu_backward(c, y):
    """With tanh, 1 - t^2 is off by 14 eps, times x (1 + 0.134 x^2) sqrt(2 / pi) / 2; beyond 10 it
    is 0."""
    error = 2 * y.abs() + 12 * c["grad_output"].abs()
    if c["approximate"] != "tanh":
        return error
    x = c["self"].abs().clamp(max=10)
    return error + 6 * c["grad_output"].abs() * x * (1 + 0.134 * x.square())


def silu_backward(c, y):
    x = c["self"]
    return 10 * c["grad_output"].abs() * (1 + x.abs() * logistic(x)) + 2.4 * below(x) * y.abs()


def sigmoid_backward(c, y):
    return 5 * y.abs() + (c["grad_output"] * c["output"]).abs()


def mish_backward(c, y):
    return c["grad_output"].abs() * 24 * (1 + c["self"].abs() * logistic(c["self"]))


def hardswish(c, y):
    return 6 * y.abs() + 2 * c["self"].abs()


def hardswish_backward(c, y):
    return 4 * y.abs() + 2 * c["grad_output"].abs() * (c["self"].abs().clamp(max=3) / 3 + 0.5)


def glu(c, y):
    return y.abs() * (10 + 2.4 * below(c["self"].chunk(2, c["dim"])[1]))


def glu_backward(c, y):
    value, gate = c["self"].chunk(2, c["dim"])
    part = 16 * c["grad_output"].abs() * (1 + value.abs())
    return 14 * y.abs() + 2.4 * y.abs() * torch.cat([below(gate)] * 2, c["dim"]) \
        + torch.cat([0 * part, part * logistic(gate)], c["dim"])


# Errors in EPS, from the call and the result.
TABLE = {
    "add": add, "sub": add, "rsub": rsub, "mul": mul, "div": div, "pow": power,
    "addcmul": addcmul, "addcdiv": addcdiv, "lerp": lerp,
    "square": relative(1), "sqrt": relative(2), "rsqrt": relative(5), "reciprocal": relative(5),
    "exp": lambda c, y: (4 + 2.4 * c["self"].abs()) * y.abs(),
    "exp2": lambda c, y: (4 + 2.4 * c["self"].abs()) * y.abs(),
    "expm1": lambda c, y: (6 + 2.4 * c["self"].abs()) * y.abs(),
    "log": log_of(1), "log2": log_of(1.5), "log10": log_of(0.5), "log1p": relative(4),
    "sin": lambda c, y: 4 * y.abs() + 4, "cos": lambda c, y: 4 * y.abs() + 4,
    "tan": lambda c, y: 8 * y.abs() * (1 + y.abs()) + 4, "atan": relative(6),
    "asin": relative(8), "acos": lambda c, y: 6 * y.abs() + 6, "atan2": relative(8),
    "tanh": relative(6), "erf": relative(4),
    "erfc": lambda c, y: y.abs() * (12 + 4 * c["self"].square()) + 4,
    "sinh": lambda c, y: (8 + 2.4 * c["self"].abs()) * y.abs(),
    "cosh": lambda c, y: (8 + 2.4 * c["self"].abs()) * y.abs(),
    "sigmoid": lambda c, y: (8 + 2.4 * below(c["self"])) * y.abs(),
    "silu": lambda c, y: (9 + 2.4 * below(c["self"])) * y.abs(),
    "softplus": lambda c, y: ((6 if c["beta"] == 1 else 8)
                              + 2.4 * (c["self"] * c["beta"]).abs()) * y.abs(),
    "log_sigmoid_forward": lambda c, y: (8 + 2.4 * c["self"].abs()) * y.abs(),
    "gelu": gelu, "elu": elu, "celu": elu, "selu": elu,
    "mish": lambda c, y: (16 + 4.8 * below(c["self"])) * y.abs(),
    "hardswish": hardswish, "hardsigmoid": lambda c, y: 4 * y.abs() + 1,
    "leaky_relu": relative(2), "prelu": relative(2), "_prelu_kernel": relative(2), "glu": glu,
    "hypot": relative(6), "fmod": relative(0), "xlogy": relative(6),
    "logaddexp": lambda c, y: 10 * y.abs() + 10,
    "gelu_backward": gelu_backward, "silu_backward": silu_backward,
    "tanh_backward": of_gradient(3, 2), "sigmoid_backward": sigmoid_backward,
    "elu_backward": elu_backward, "softplus_backward": softplus_backward,
    "leaky_relu_backward": relative(2), "hardsigmoid_backward": relative(3),
    "hardswish_backward": hardswish_backward, "mish_backward": mish_backward,
    "log_sigmoid_backward": lambda c, y: (14 + 2.4 * c["self"].abs()) * y.abs(),
    "glu_backward": glu_backward,
    "native_dropout_backward": relative(3), "_masked_scale": relative(3),
    "_prelu_kernel_backward": relative(2),
    "arange": relative(4), "linspace": relative(8), "deg2rad": relative(3), "rad2deg": relative(3),
}


def flushed(x):
    """Subnormal numbers taken as 0."""
    return torch.where(x.abs() < TINY, torch.zeros_like(x), x)


def flush_error(call, values):
    """How far the results move if subnormal operands are taken as 0."""
    if not any(bool(((t != 0) & (t.abs() < TINY)).any()) for t in call.floats()):
        return [0.0] * len(values)
    return [(v - w).abs().nan_to_num(torch.inf) for v, w in zip(values, call.mapped(flushed))]


def rounded(roundings):
    def rule(call):
        if not call.floats() and not any(r.got.is_floating_point() for r in call.results):
            return exact(call)
        values = call.run()
        moved = flush_error(call, values)
        return allow_narrow_steps(call, [
            Expected(v, EPS * roundings(call, v) + m + TINY) if v.is_floating_point()
            else Expected(v) for v, m in zip(values, moved)])
    rule.__doc__ = roundings.__doc__
    return rule


RULES = {name: rounded(roundings) for name, roundings in TABLE.items()}
