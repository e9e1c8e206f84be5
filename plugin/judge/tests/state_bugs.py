"""Bugs of norms with a state or of few rows, and callables that do what no norm may."""
import time

import torch
import torch.nn.functional as F

from norm_bugs import moments, over_rows, own_function, right_dx

EPS = 1e-5


# Norms with a state.
def batch(x, running_mean, running_var, weight, bias, *, training=True, momentum=0.1, eps=EPS):
    return F.batch_norm(x, running_mean, running_var, weight, bias, training, momentum, eps)


def biased_state(x, running_mean, running_var, weight, bias, *, training=True, momentum=0.1,
                 eps=EPS):
    y = F.batch_norm(x, None, None, weight, bias, True, momentum, eps) if training else \
        F.batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps)
    if training and running_mean is not None:
        dims = [0, *range(2, x.dim())]
        with torch.no_grad():
            running_mean.lerp_(x.mean(dims), momentum)
            running_var.lerp_(x.var(dims, correction=0), momentum)
    return y


def counted_twice(x, running_mean, running_var, weight, bias, *, training=True, momentum=0.1,
                  eps=EPS):
    if training and running_mean is not None:
        F.batch_norm(x, running_mean, running_var, weight, bias, True, momentum, eps)
    return batch(x, running_mean, running_var, weight, bias, training=training, momentum=momentum,
                 eps=eps)


def old_momentum(x, running_mean, running_var, weight, bias, *, training=True, momentum=0.1,
                 eps=EPS):
    return batch(x, running_mean, running_var, weight, bias, training=training,
                 momentum=1 - momentum, eps=eps)


def trains_in_evaluation(x, running_mean, running_var, weight, bias, *, training=True,
                         momentum=0.1, eps=EPS):
    if running_mean is None or training:
        return batch(x, running_mean, running_var, weight, bias, training=training,
                     momentum=momentum, eps=eps)
    y = batch(x, running_mean, running_var, weight, bias, training=False, momentum=momentum,
              eps=eps)
    batch(x, running_mean, running_var, weight, bias, training=True, momentum=momentum, eps=eps)
    return y


# Norms with a mask, which is true for the rows that are kept.
def masked_batch(x, running_mean, running_var, weight, bias, *, mask=None, training=True,
                 momentum=0.1, eps=EPS):
    if mask is None:
        return batch(x, running_mean, running_var, weight, bias, training=training,
                     momentum=momentum, eps=eps)
    y = batch(x[mask], running_mean, running_var, weight, bias, training=training,
              momentum=momentum, eps=eps)
    return torch.zeros_like(x).masked_scatter(mask[:, None], y)


def multiplied_mask(x, running_mean, running_var, weight, bias, *, mask=None, training=True,
                    momentum=0.1, eps=EPS):
    """Rows that are left out are multiplied by 0, which NaN survives."""
    keep = torch.ones(len(x), dtype=x.dtype) if mask is None else mask.to(x.dtype)
    if not training or x.dim() > 2:
        return batch(x, running_mean, running_var, weight, bias, training=training,
                     momentum=momentum, eps=eps)
    keep, n = keep[:, None], keep.sum()
    mean = (x * keep).sum(0) / n
    var = ((x * keep - mean).square() * keep).sum(0) / n
    if running_mean is not None:
        with torch.no_grad():
            running_mean.lerp_(mean, momentum)
            running_var.lerp_(var * n / (n - 1), momentum)
    return (x * keep - mean) * (var + eps).rsqrt() * weight + bias


def mask_after(x, running_mean, running_var, weight, bias, *, mask=None, training=True,
               momentum=0.1, eps=EPS):
    """The statistics count the rows that are left out."""
    y = batch(x, running_mean, running_var, weight, bias, training=training, momentum=momentum,
              eps=eps)
    return y if mask is None else y * mask[:, None]


def mask_without_state(x, running_mean, running_var, weight, bias, *, mask=None, training=True,
                       momentum=0.1, eps=EPS):
    """Results are right, and the running statistics are those of all rows."""
    state = [None if t is None else t.clone() for t in (running_mean, running_var)]
    y = masked_batch(x, *state, weight, bias, mask=mask, training=training, momentum=momentum,
                     eps=eps)
    if training and running_mean is not None:
        batch(x.detach(), running_mean, running_var, weight, bias, training=True,
              momentum=momentum, eps=eps)
    return y


# Behaviour that no norm may have.
def raises(x, gain, bias, eps=EPS):
    raise RuntimeError("no kernel for this device")


def hangs(x, gain, bias, eps=EPS):
    while True:
        time.sleep(1)


def spins(x, gain, bias, eps=EPS):
    while True:
        pass


def sleeps(x, gain, bias, eps=EPS):
    """Slow, as on a machine that is busy with other work, but right."""
    time.sleep(2)
    return F.layer_norm(x, x.shape[-1:], gain, bias, eps)


def other_shape(x, gain, bias, eps=EPS):
    return F.layer_norm(x, x.shape[-1:], gain, bias, eps).flatten()


def other_type(x, gain, bias, eps=EPS):
    return F.layer_norm(x, x.shape[-1:], gain, bias, eps).double()


# Bugs of certain rows or types.
def equal_rows(x, gain, bias, eps=EPS):
    """Adds a half to rows of equal numbers, which have no variance."""
    y = F.layer_norm(x, x.shape[-1:], gain, bias, eps)
    return torch.where(x.amax(-1, keepdim=True) == x.amin(-1, keepdim=True), y + 0.5, y)


def narrow_forward(x, gain, bias):
    """Computes in float32 and saves mean and 1/s in the type of x."""
    mean, rstd = moments(x.float())
    y = (x.float() - mean) * rstd * gain.float() + bias.float()
    return y.to(x.dtype), (x, gain, mean.to(x.dtype), rstd.to(x.dtype))


def of_narrow_statistics(ctx, dy, *saved):
    x, gain, mean, rstd = saved
    wide, rstd = dy.float(), rstd.float()
    xhat = (x.float() - mean.float()) * rstd
    dx = right_dx(xhat, rstd, wide * gain.float())
    return tuple(t.to(x.dtype) for t in (dx, over_rows(wide * xhat), over_rows(wide)))


def narrow_statistics_saved(x, gain, bias, eps=EPS):
    """As PyTorch 2.15 has it on a CPU, for bf16."""
    return own_function(narrow_forward, of_narrow_statistics).apply(x, gain, bias)
