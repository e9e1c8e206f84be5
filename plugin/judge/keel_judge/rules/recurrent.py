"""LSTM layers that run as one op, followed step by step on numbers with errors: each product adds T
of its terms, and each function moves an operand to both its ends."""
import torch

from keel_judge.call import Refused
from keel_judge.measure import Expected
from keel_judge.rounding import EPS, Number, exact, sum_error
from keel_judge.rules.elementwise import below

LSTM = 2  # PyTorch's number of the mode


def function(f, x, roundings):
    """f of a number; `roundings` of the result, in EPS."""
    value = f(x.value)
    moved = torch.maximum((f(x.value + x.error) - value).abs(),
                          (f(x.value - x.error) - value).abs())
    return Number(value, moved + EPS * roundings * (value.abs() + moved))


def logistic(x):
    return function(torch.sigmoid, x, 8 + 2.4 * below(x.value))


def times(x, weight):
    """x (rows, k) times weight (k, columns), which is exact."""
    value = x.value @ weight
    own = sum_error(weight.shape[0], x.value.abs() @ weight.abs(),
                    x.value.square() @ weight.square(), value).largest
    return Number(value, own + torch.as_tensor(x.error).expand_as(x.value) @ weight.abs())


class Layer:
    """One direction of a layer. `steps` are the numbers of each step that the backward needs."""

    def __init__(self, call, weights):
        if call["mode"] != LSTM or call["batch_sizes"]:
            raise Refused("a recurrent layer that is no LSTM, or has packed sequences")
        w = [call[name] for name in weights]
        self.w_ih, self.w_hh = w[0], w[1]
        self.bias = [exact(b) for b in w[2:4]] if call["has_biases"] else []
        self.x = self.turned(call["input"], call)
        self.h, self.c = (exact(call[n].reshape(self.x.shape[1], -1)) for n in self.states(call))
        self.steps, self.before = [], []

    @staticmethod
    def states(call):
        return ("hx_", "cx_") if "cx_" in call.given else ("hx_", "cx_tmp")

    @staticmethod
    def turned(t, call):
        return t.flip(0) if call["reverse"] else t

    def run(self):
        for x in self.x:
            self.before.append((self.h, self.c))
            total = times(exact(x), self.w_ih.t()) + times(self.h, self.w_hh.t())
            for bias in self.bias:
                total = total + bias
            parts = zip(total.value.chunk(4, 1), total.error.chunk(4, 1))
            i, f, g, o = (Number(v, e) for v, e in parts)
            i, f, o, g = logistic(i), logistic(f), logistic(o), function(torch.tanh, g, 6)
            self.c = f * self.c + i * g
            t = function(torch.tanh, self.c, 6)
            self.h = o * t
            self.steps.append((i, f, g, o, t))
        return self


WEIGHTS = ("weight0", "weight1", "weight2", "weight3")


def stacked(numbers):
    return (torch.stack([n.value for n in numbers]), torch.stack([n.error for n in numbers]))


def forward(call):
    """All h, the last h and the last c; the rest is the kernel's own."""
    layer = Layer(call, WEIGHTS)
    layer.run()
    outputs = [o * t for _, _, _, o, t in layer.steps]
    value, error = (layer.turned(t, call) for t in stacked(outputs))
    last = [Expected(n.value.reshape(r.got.shape), n.error.reshape(r.got.shape))
            for n, r in zip((layer.h, layer.c), call.results[1:3])]
    return [Expected(value, error), *last] + [None] * (len(call.results) - 3)


def of_step(layer, number, dh, dc):
    """From the gradients of h and c of a step to those of its gates' sums, and of c before it."""
    i, f, g, o, t = layer.steps[number]
    one = exact(torch.ones(()))
    dc = dc + dh * o * (one - t * t)
    gates = (dc * g * i * (one - i), dc * layer.before[number][1] * f * (one - f),
             dc * i * (one - g * g), dh * t * o * (one - o))
    joined = Number(torch.cat([n.value for n in gates], 1), torch.cat([n.error for n in gates], 1))
    return joined, dc * f


def over_rows(left, right):
    """The sum over all steps and rows of left (n, a) times right (n, b), both with errors."""
    (a, ea), (b, eb) = left, right
    value = a.t() @ b
    own = sum_error(a.shape[0], a.abs().t() @ b.abs(), a.square().t() @ b.square(), value).largest
    return Expected(value, own + ea.t() @ (b.abs() + eb) + a.abs().t() @ eb)


def backward(call):
    """dx, the gradients of both weights and biases, and those of the first h and c."""
    layer = Layer(call, ("weight1", "weight2", "weight3", "weight4")).run()
    zero = torch.zeros_like(layer.h.value)
    dy = layer.turned(call["grad_output"], call) if call.has("grad_output") \
        else zero.expand(len(layer.x), *zero.shape)
    dh, dc = (exact(call[n].reshape(zero.shape) if call.has(n) else zero)
              for n in ("grad_hy", "grad_cy"))
    gates, dx = [], []
    for number in reversed(range(len(layer.x))):
        joined, dc = of_step(layer, number, dh + exact(dy[number]), dc)
        gates.insert(0, joined)
        dx.insert(0, times(joined, layer.w_ih))
        dh = times(joined, layer.w_hh)
    rows = [t.flatten(0, 1) for t in stacked(gates)]
    inputs = layer.x.flatten(0, 1)
    states = [t.flatten(0, 1) for t in stacked([exact_error(h) for h, _ in layer.before])]
    ones = torch.ones(len(inputs), 1)
    bias = over_rows(rows, (ones, 0 * ones))
    value, error = (layer.turned(t, call) for t in stacked(dx))
    found = [Expected(value, error), over_rows(rows, (inputs, 0 * inputs)),
             over_rows(rows, states), bias, bias, Expected(dh.value, dh.error),
             Expected(dc.value, dc.error)]
    return [shaped(e, r.got) for e, r in zip(found, call.results)]


def exact_error(number):
    return Number(number.value, torch.as_tensor(number.error).expand_as(number.value))


def shaped(expected, got):
    """None for a bias that is not there."""
    if got.numel() != expected.value.numel():
        return None
    return Expected(expected.value.reshape(got.shape), expected.error.reshape(got.shape))


RULES = {"mkldnn_rnn_layer": forward, "mkldnn_rnn_layer_backward": backward}
