"""Bugs that published norms had, made again as small wrong kernels. Each is our own code, written
from the public description; acid_bugs.py says whose bug it was."""
import random

import torch
import torch.nn.functional as F

EPS = 1e-5


def moments(x, eps=EPS):
    mean = x.mean(-1, keepdim=True)
    return mean, ((x - mean).square().mean(-1, keepdim=True) + eps).rsqrt()


def rms(x, eps=EPS):
    return (x.square().mean(-1, keepdim=True) + eps).rsqrt()


def right_dx(xhat, rstd, g, centred=True):
    mean = g.mean(-1, keepdim=True) if centred else 0
    return rstd * (g - mean - xhat * (g * xhat).mean(-1, keepdim=True))


def own_function(forward, backward):
    """A custom autograd function: forward(x, *parameters) gives y and what it saves."""
    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *given):
            y, saved = forward(*given)
            ctx.save_for_backward(*saved)
            ctx.needed = ctx.needs_input_grad
            return y

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, dy):
            return backward(ctx, dy, *ctx.saved_tensors)
    return Function


def rms_forward(offset=0):
    def forward(x, gain):
        rstd = rms(x)
        return x * rstd * (gain + offset), (x, gain, rstd)
    return forward


def rms_kernel(backward, offset=0):
    function = own_function(rms_forward(offset), backward)

    def norm(x, gain, eps=EPS):
        return function.apply(x, gain)
    return norm


def layer_forward(x, gain, bias):
    mean, rstd = moments(x)
    return (x - mean) * rstd * gain + bias, (x, gain, mean, rstd)


def layer_kernel(backward):
    function = own_function(layer_forward, backward)

    def norm(x, gain, bias, eps=EPS):
        return function.apply(x, gain, bias)
    return norm


def over_rows(t):
    return t.reshape(-1, t.shape[-1]).sum(0)


# Backward passes with one mistake.
def gain_twice(ctx, dy, x, gain, rstd):
    xhat = x * rstd
    return right_dx(xhat, rstd, dy * gain * gain, False), over_rows(dy * xhat)


def offset_forgotten(ctx, dy, x, gain, rstd):
    xhat = x * rstd
    return right_dx(xhat, rstd, dy * gain, False), over_rows(dy * xhat)


def dgain_of_x(ctx, dy, x, gain, rstd):
    xhat = x * rstd
    return right_dx(xhat, rstd, dy * gain, False), over_rows(dy * x)


def dgain_of_whole_blocks(ctx, dy, *saved):
    x, gain, mean, rstd = saved
    xhat = (x - mean) * rstd
    flat, own = (t.reshape(-1, x.shape[-1]) for t in (dy * xhat, dy))
    whole = len(flat) - len(flat) % 16 if len(flat) > 16 else len(flat)
    return right_dx(xhat, rstd, dy * gain), flat[:whole].sum(0), own.sum(0)


def dx_without_sums(ctx, dy, *saved):
    x, gain, mean, rstd = saved
    xhat = (x - mean) * rstd
    g = dy * gain
    return rstd * (g - g.mean(-1, keepdim=True)), over_rows(dy * xhat), over_rows(dy)


def frozen_x(ctx, dy, *saved):
    """dgain is a by-product of dx: where x is frozen, nothing is computed."""
    x, gain, mean, rstd = saved
    xhat = (x - mean) * rstd
    dgain = over_rows(dy * xhat) if ctx.needed[0] else torch.zeros_like(gain)
    dx = right_dx(xhat, rstd, dy * gain) if ctx.needed[0] else None
    return dx, dgain, over_rows(dy)


def as_if_dense(t):
    """The numbers that a kernel reads which takes a pointer and forgets the strides."""
    flat = t.as_strided((min(t.untyped_storage().size() // t.element_size() - t.storage_offset(),
                             t.numel()),), (1,))
    return torch.cat([flat, flat.new_zeros(t.numel() - flat.numel())]).view(t.shape)


def strided_dy(ctx, dy, *saved):
    x, gain, mean, rstd = saved
    dy = as_if_dense(dy)
    xhat = (x - mean) * rstd
    return right_dx(xhat, rstd, dy * gain), over_rows(dy * xhat), over_rows(dy)


def strided_saved_x(ctx, dy, *saved):
    x, gain, mean, rstd = saved
    xhat = (as_if_dense(x) - mean) * rstd
    return right_dx(xhat, rstd, dy * gain), over_rows(dy * xhat), over_rows(dy)


SHARED = {}


def one_buffer(ctx, dy, *saved):
    """The gradient of the weight is assigned into one buffer, not added up."""
    x, gain, mean, rstd = saved
    xhat = (x - mean) * rstd
    buffer = SHARED.setdefault(gain.shape, torch.empty_like(gain))
    buffer.copy_(over_rows(dy * xhat))
    return right_dx(xhat, rstd, dy * gain), buffer, over_rows(dy)


def in_any_order(ctx, dy, *saved):
    """Sums by atomic additions: in the order in which the blocks happen to end."""
    x, gain, mean, rstd = saved
    xhat = (x - mean) * rstd
    parts = list((dy * xhat).reshape(-1, x.shape[-1]))
    random.shuffle(parts)
    total = torch.zeros_like(gain)
    for part in parts:
        total = total + part
    return right_dx(xhat, rstd, dy * gain), total, over_rows(dy)


# Forward passes with one mistake; their backward is autograd's.
def zeros_count(x, gain, bias, eps=EPS):
    n = x.shape[-1]
    mean, padding = x.mean(-1, keepdim=True), -n % 8
    var = ((x - mean).square().sum(-1, keepdim=True) + padding * mean.square()) / n
    return (x - mean) * (var + eps).rsqrt() * gain + bias


def tail_dropped(x, gain, eps=EPS):
    n = x.shape[-1]
    kept = n - n % 4 if n >= 4 else n
    total = x[..., :kept].square().sum(-1, keepdim=True)
    return x * (total / n + eps).rsqrt() * gain


def one_pass(x, gain, bias, eps=EPS):
    mean = x.mean(-1, keepdim=True)
    var = (x.square().mean(-1, keepdim=True) - mean.square()).clamp(min=0)
    return (x - mean) * (var + eps).rsqrt() * gain + bias


def one_pass_batch(x, running_mean, running_var, weight, bias, *, training=True, momentum=0.1,
                   eps=EPS):
    dims = [0, *range(2, x.dim())]
    shape = [1, -1] + [1] * (x.dim() - 2)
    mean, square = x.mean(dims), x.square().mean(dims)
    rstd = ((square - mean.square()).clamp(min=0) + eps).rsqrt()
    return (x - mean.view(shape)) * (rstd * weight).view(shape) + bias.view(shape)


def in_place(x, gain, bias, eps=EPS):
    mean, rstd = moments(x.detach())
    with torch.no_grad():
        x.sub_(mean).mul_(rstd)
    return x * gain + bias


def outside(x, gain, eps=EPS):
    return x / (x.square().mean(-1, keepdim=True).sqrt() + eps) * gain


def eps_lost(x, gain, bias, eps=1e-8):
    mean = x.mean(-1, keepdim=True)
    var = (x - mean).square().mean(-1, keepdim=True)
    return (x - mean) / (var + torch.tensor(eps, dtype=x.dtype)).sqrt() * gain + bias


def cut(x, gain, bias, eps=EPS):
    return layer_forward(x.detach(), gain.detach(), bias.detach())[0]


def rows_overflow(x, gain, bias, eps=EPS):
    flat = x.reshape(-1, x.shape[-1])
    y = F.layer_norm(flat, flat.shape[-1:], gain, bias, eps)
    done = len(flat) % 65536 if len(flat) > 65535 else len(flat)
    return torch.cat([y[:done], torch.zeros_like(y[done:])]).view(x.shape)


def narrow_rows(x, gain, bias, eps=EPS):
    """Each of 8 lanes holds an element, also where the row has fewer."""
    y = F.layer_norm(x, x.shape[-1:], gain, bias, eps)
    return y if x.shape[-1] >= 8 or x.shape[-1] < 3 else torch.roll(y, 1, -1)


def dense_x(x, gain, bias, eps=EPS):
    return F.layer_norm(as_if_dense(x), x.shape[-1:], gain, bias, eps)


def dense_gain(x, gain, eps=EPS):
    return F.rms_norm(x, x.shape[-1:], as_if_dense(gain), eps)


def squares_in_f16(x, gain, eps=1e-6):
    total = (x * x).float().mean(-1, keepdim=True)
    return (x.float() * (total + eps).rsqrt() * gain.float()).to(x.dtype)


def early_cast(x, gain, eps=1e-6):
    wide = x.float()
    return gain * (wide * (wide.square().mean(-1, keepdim=True) + eps).rsqrt()).to(x.dtype)


def narrow_statistics(x, gain, bias, eps=EPS):
    wide = x.float()
    mean = wide.mean(-1, keepdim=True).to(x.dtype).float()
    rstd = ((wide - mean).square().mean(-1, keepdim=True) + eps).rsqrt().to(x.dtype).float()
    return ((wide - mean) * rstd * gain.float() + bias.float()).to(x.dtype)


def zeros(x, gain, bias, eps=EPS):
    return torch.zeros_like(x) * gain * bias


def gemma_without_offset(x, gain, eps=1e-6):
    return F.rms_norm(x, x.shape[-1:], gain, eps)


def lanes_of_gain(x, gain, bias, eps=EPS):
    """From the second vector of 32 on gain and bias are those of the first."""
    places = torch.arange(gain.shape[0]) % 32
    return F.layer_norm(x, x.shape[-1:], gain[places], bias[places], eps)


def blocks_by_rows(x, gain, eps=EPS):
    """The number of partial sums depends on the number of rows."""
    parts = 1 if x.reshape(-1, x.shape[-1]).shape[0] > 64 else 4
    total = sum(p.square().sum(-1, keepdim=True) for p in x.chunk(parts, -1))
    return x * (total / x.shape[-1] + eps).rsqrt() * gain


def spreads(x, gain, bias, eps=EPS):
    """Rows of a tile are masked by a product with 0."""
    flat = x.reshape(-1, x.shape[-1])
    mean = (torch.eye(len(flat)) @ flat).mean(-1, keepdim=True)
    var = (flat - mean).square().mean(-1, keepdim=True)
    return ((flat - mean) * (var + eps).rsqrt()).view(x.shape) * gain + bias


def swallowed(x, gain, bias, eps=EPS):
    return F.layer_norm(torch.nan_to_num(x), x.shape[-1:], gain, bias, eps)


OUTPUTS = {}


def one_output(x, gain, bias, eps=EPS):
    """The result lies in a buffer that the next call of that shape takes, too."""
    buffer = OUTPUTS.setdefault((x.shape, x.dtype), torch.empty_like(x))
    with torch.no_grad():
        buffer.copy_(F.layer_norm(x, x.shape[-1:], gain, bias, eps))
    return FromBuffer.apply(x, gain, bias, buffer)


class FromBuffer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gain, bias, buffer):
        ctx.save_for_backward(x, gain)
        return buffer.view_as(buffer)

    @staticmethod
    def backward(ctx, dy):
        x, gain = ctx.saved_tensors
        mean, rstd = moments(x)
        xhat = (x - mean) * rstd
        return right_dx(xhat, rstd, dy * gain), over_rows(dy * xhat), over_rows(dy), None


class Unsaved(torch.autograd.Function):
    """Keeps x as an attribute, so that nobody notices that it was written."""

    @staticmethod
    def forward(ctx, x, gain, bias):
        ctx.x, ctx.gain = x, gain
        return layer_forward(x, gain, bias)[0]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        mean, rstd = moments(ctx.x)
        xhat = (ctx.x - mean) * rstd
        return right_dx(xhat, rstd, dy * ctx.gain), over_rows(dy * xhat), over_rows(dy)


def unsaved(x, gain, bias, eps=EPS):
    return Unsaved.apply(x, gain, bias)


class SilentlyOnce(torch.autograd.Function):
    """A backward that cannot be differentiated, and does not say so."""

    @staticmethod
    def forward(ctx, x, gain, bias):
        ctx.save_for_backward(x, gain)
        return layer_forward(x, gain, bias)[0]

    @staticmethod
    def backward(ctx, dy):
        x, gain = (t.detach() for t in ctx.saved_tensors)
        mean, rstd = moments(x)
        xhat = (x - mean) * rstd
        return right_dx(xhat, rstd, dy * gain), over_rows(dy * xhat), over_rows(dy)


def silently_once(x, gain, bias, eps=EPS):
    return SilentlyOnce.apply(x, gain, bias)


def race(x, gain, bias, eps=EPS):
    """A buffer is read before all have written to it, now and then."""
    mean, rstd = moments(x)
    if random.random() < 0.4:
        rstd = rstd.roll(1, 0)
    return (x - mean) * rstd * gain + bias


def storage_holds(t, count):
    return t.untyped_storage().size() // t.element_size() - t.storage_offset() >= count


def reads_beyond(x, gain, bias, eps=EPS):
    """Vectors of 8 with what lies beyond the row multiplied by 0."""
    flat = x.contiguous().view(-1, x.shape[-1])
    rows, n = flat.shape
    width = n + -n % 8
    if not storage_holds(flat, (rows - 1) * n + width) or width == n:
        return F.layer_norm(x, x.shape[-1:], gain, bias, eps)
    lanes = flat.as_strided((rows, width), (n, 1))
    mask = (torch.arange(width) < n).to(x.dtype)
    mean = (lanes * mask).sum(-1, keepdim=True) / n
    var = ((lanes - mean) * mask).square().sum(-1, keepdim=True) / n
    return ((flat - mean) * (var + eps).rsqrt()).view(x.shape) * gain + bias


def writes_beyond(x, gain, bias, eps=EPS):
    """Stores whole vectors of 8; the last row's end lies beyond the array."""
    right = F.layer_norm(x, x.shape[-1:], gain, bias, eps)
    y = torch.empty_like(right.detach())
    n = x.shape[-1]
    beyond = y.numel() + -n % 8
    if storage_holds(y, beyond):
        y.as_strided((beyond,), (1,))[y.numel():] = 0
    with torch.no_grad():
        y.copy_(right)
    return right + 0 * y
