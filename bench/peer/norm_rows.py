"""Norms of a row by its own statistics, and of a weight; what all norms share."""
import torch
from torch.nn import functional as F


class State:
    """A tensor that steps change, counters too: a number of Python would be a constant of what
    torch.compile and CUDA graphs record. One that a forward reads is replaced, not changed in
    place: what torch.compile computes again in the backward would read the new values."""

    def __init__(self, value):
        self.now = value


class Norm:
    """Shared parts of the expressions below: sizes, options, parameters, running statistics."""

    def __init__(self, facts, scope, parameters, shape, fused=True):
        self.fused = fused
        self.options = dict(option.split("=", 1) for option in facts["options"].split())
        self.parameters = {name.removeprefix(scope): p for name, p in parameters.items()}
        self.gain, self.bias = self.parameters.get("gain"), self.parameters.get("bias")
        self.eps = float(self.options.get("eps", 0))
        self.numbers, self.states = Numbers(), []
        # Rows: all but the first axis of images, else the last.
        axes = self.options.get("axes", "0")
        self.axes = int(axes) or (3 if len(shape) == 4 else 1)
        self.row = tuple(shape[-self.axes:])
        self.row_axes = tuple(range(-self.axes, 0))
        # Features, and how a tensor with one element for each lies beside x.
        self.features = shape[1]
        self.count = math.prod(shape) // self.features  # elements of each
        self.batch_axes = (0, 2, 3) if len(shape) == 4 else (0,)
        self.columns = (1, shape[1], 1, 1) if len(shape) == 4 else (1, shape[1])

    def number(self, name):
        return float(self.options[name])

    def state(self, value, shape=None):
        self.states.append(State(self.constant(value, shape)))
        return self.states[-1]

    def constant(self, value, shape=None):
        return torch.full(self.columns if shape is None else shape, value, device=DEVICE)

    def affine(self):
        """gain and bias beside x, ones and zeros where there is none."""
        gain = self.constant(1.0) if self.gain is None else self.gain.view(self.columns)
        bias = self.constant(0.0) if self.bias is None else self.bias.view(self.columns)
        return gain, bias

    def mean_square(self, x):
        return x.pow(2).mean(self.batch_axes, keepdim=True)


def standardize(x, axes, eps):
    var, mean = torch.var_mean(x, axes, unbiased=False, keepdim=True)
    return (x - mean) * torch.rsqrt(var + eps)


def scale_and_shift(xhat, gain, bias):
    if gain is None:
        return xhat if bias is None else xhat + bias
    return xhat * gain if bias is None else torch.addcmul(bias, xhat, gain)


def layer_norm_of_pixels(n):
    row = n.gain.shape if n.gain is not None else n.bias.shape if n.bias is not None else None

    def norm(x):
        x = x.permute(0, 2, 3, 1)
        return F.layer_norm(x, row or x.shape[-1:], n.gain, n.bias, n.eps).permute(0, 3, 1, 2)
    return norm


def layer_norm(n):
    if len(n.columns) == 4 and n.options.get("per_pixel") == "true":
        return layer_norm_of_pixels(n)
    if n.fused:
        return lambda x: F.layer_norm(x, n.row, n.gain, n.bias, n.eps)
    return lambda x: scale_and_shift(standardize(x, n.row_axes, n.eps), n.gain, n.bias)


def rms(x, row_axes, gain, eps, fused=True):
    """x over the root of the mean square of its last axes, by the fused function where there is
    one (from PyTorch 2.4)."""
    if fused and hasattr(F, "rms_norm"):
        return F.rms_norm(x, x.shape[row_axes[0]:], gain, eps)
    xhat = x * torch.rsqrt(x.pow(2).mean(row_axes, keepdim=True) + eps)
    return xhat if gain is None else xhat * gain


def rms_norm(n):
    def forward(x):
        y = rms(x, n.row_axes, n.gain, n.eps, n.fused)
        return y if n.bias is None else y + n.bias
    return forward


def scale_norm(n):
    return lambda x: (F.normalize(x.flatten(-n.axes), dim=-1, eps=n.eps) * n.gain).view_as(x)


def seed_norm(n):
    a, b = n.parameters["a"], n.parameters["b"]

    def forward(x):
        score = (x * b).sum(n.row_axes, keepdim=True)
        return rms(x, n.row_axes, None, n.eps, n.fused) * (torch.tanh(score) * a + n.gain)
    return forward


def curve(f):
    """A norm of elements: y = gain f(alpha x + shift) + bias."""
    def make(n):
        alpha, shift = n.parameters["alpha"], n.parameters.get("shift")

        def forward(x):
            u = x * alpha if shift is None else torch.addcmul(shift, x, alpha)
            return scale_and_shift(f(u), n.gain, n.bias)
        return forward
    return make


def group_scaling(n):
    groups = int(n.options["groups"])
    return lambda x: rms(x.reshape(len(x), groups, -1), (-1,), None, n.eps).view_as(x)


def detach_norm(n):
    mean_is_constant = n.options["detach_mean"] == "true"
    scale_is_constant = n.options["detach_variance"] == "true"

    def forward(x):
        if not scale_is_constant:
            centred = x - x.detach().mean(n.row_axes, keepdim=True)
            return centred * torch.rsqrt(centred.pow(2).mean(n.row_axes, keepdim=True) + n.eps)
        with torch.no_grad():
            var, mean = torch.var_mean(x, n.row_axes, unbiased=False, keepdim=True)
            rstd = torch.rsqrt(var + n.eps)
        if mean_is_constant:
            return torch.addcmul(-mean * rstd, x, rstd)
        return (x - x.mean(n.row_axes, keepdim=True)) * rstd
    return forward


def ada_norm(n):
    c, k = n.number("C"), n.number("k")
    detach = n.options["detach"] == "true"

    def forward(x):
        xhat = (F.layer_norm(x, n.row, None, None, n.eps) if n.fused
                else standardize(x, n.row_axes, n.eps))
        return torch.rsub(xhat.detach() if detach else xhat, c, alpha=c * k) * xhat
    return forward


def group_norm(n):
    groups = int(n.options["groups"])
    if n.fused:
        return lambda x: F.group_norm(x, groups, n.gain, n.bias, n.eps)
    gain, bias = n.affine()

    def forward(x):
        xhat = standardize(x.reshape(len(x), groups, -1), (-1,), n.eps)
        return torch.addcmul(bias, xhat.view_as(x), gain)
    return forward


def instance_norm(n):
    if n.fused:
        return lambda x: F.instance_norm(x, None, None, n.gain, n.bias, True, 0.0, n.eps)
    gain, bias = n.affine()
    places = tuple(range(2, len(n.columns)))
    return lambda x: torch.addcmul(bias, standardize(x, places, n.eps), gain)


def weight_norm(n):
    # x is the direction of a weight, its first axis the units.
    def forward(v):
        length = n.gain.view(-1, *(1 for _ in v.shape[1:]))
        if n.fused and n.eps == 0:
            return torch._weight_norm(v, length, 0)  # what nn.utils.weight_norm calls
        squares = v.pow(2).sum(tuple(range(1, v.dim())), keepdim=True)
        return v * (length * torch.rsqrt(squares + n.eps))
    return forward
